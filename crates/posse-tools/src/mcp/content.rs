//! What a tool has answered, as a model reads it.

use std::path::Path;

use base64::Engine as _;
use posse_port::servers::ServerAnswer;
use posse_protocol::ToolContent;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::image::encoded;
use crate::output_file::OutputFile;

/// How long the text of an answer is if its tool says nothing, in characters: 25,000 tokens.
const MOST_TEXT: usize = 100_000;

/// Returns an answer. Text that is longer than `longest` is cut in the middle, and all of it is in
/// the file `overflow`, if there is one.
pub(super) async fn answered(
    result: CallToolResult,
    longest: Option<usize>,
    overflow: Option<&Path>,
) -> ServerAnswer {
    let mut content: Vec<ToolContent> = result.content.into_iter().map(shown).collect();
    if content.is_empty()
        && let Some(structured) = &result.structured_content
    {
        content.push(ToolContent::text(structured.to_string()));
    }
    ServerAnswer {
        content: bounded(content, longest.unwrap_or(MOST_TEXT), overflow).await,
        structured: result.structured_content,
        is_error: result.is_error == Some(true),
        restarted: false,
    }
}

/// Reads an answer of which a part is unknown: that part is shown as it is.
pub(super) fn read_loosely(value: Value) -> Option<CallToolResult> {
    let Value::Object(mut fields) = value else {
        return None;
    };
    let parts = match fields.remove("content") {
        Some(Value::Array(parts)) => parts,
        Some(_) => return None,
        None => Vec::new(),
    };
    let structured = fields.remove("structuredContent");
    if parts.is_empty() && structured.is_none() {
        return None;
    }
    let block = |part: Value| {
        serde_json::from_value(part.clone())
            .unwrap_or_else(|_| ContentBlock::text(part.to_string()))
    };
    let mut result = CallToolResult::success(parts.into_iter().map(block).collect());
    result.structured_content = structured;
    result.is_error = fields.get("isError").and_then(Value::as_bool);
    Some(result)
}

/// Returns a part of an answer.
pub(super) fn shown(block: ContentBlock) -> ToolContent {
    match block {
        ContentBlock::Text(text) => ToolContent::Text { text: text.text },
        ContentBlock::Image(image) => picture(&image.data, &image.mime_type),
        ContentBlock::Audio(audio) => ToolContent::text(not_shown("audio", &audio.mime_type)),
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => {
            let mut text = format!("[resource {}: {}]", link.name, link.uri);
            if let Some(description) = &link.description {
                text.push('\n');
                text.push_str(description);
            }
            ToolContent::text(text)
        }
        _ => ToolContent::text(not_shown("content", "of a kind that is not known")),
    }
}

/// Returns the content of a resource.
pub(super) fn resource(contents: ResourceContents) -> ToolContent {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            ToolContent::text(format!("[resource {uri}]\n{text}"))
        }
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let kind = mime_type.unwrap_or_else(|| "binary".into());
            match picture(&blob, &kind) {
                ToolContent::Text { text } => {
                    ToolContent::text(format!("[resource {uri}]\n{text}"))
                }
                other => other,
            }
        }
        _ => ToolContent::text(not_shown("a resource", "of a kind that is not known")),
    }
}

/// Returns an image, or says why it cannot be shown.
fn picture(data: &str, kind: &str) -> ToolContent {
    let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(data.trim()) else {
        return ToolContent::text(not_shown("data", kind));
    };
    match encoded(&bytes) {
        Ok(image) => ToolContent::Image {
            media_type: image.media_type.into(),
            data: image.data,
        },
        Err(why) => ToolContent::text(format!("[not shown: {kind}, {} bytes; {why}]", bytes.len())),
    }
}

fn not_shown(what: &str, kind: &str) -> String {
    format!("[not shown: {what}, {kind}]")
}

/// Cuts text that is too long. What is left is one text, before the images.
pub(super) async fn bounded(
    content: Vec<ToolContent>,
    longest: usize,
    overflow: Option<&Path>,
) -> Vec<ToolContent> {
    let length = |part: &ToolContent| match part {
        ToolContent::Text { text } => text.chars().count(),
        _ => 0,
    };
    let total: usize = content.iter().map(length).sum();
    if total <= longest {
        return content;
    }
    let (mut texts, mut bounded) = (Vec::new(), Vec::new());
    for part in content {
        match part {
            ToolContent::Text { text } => texts.push(text),
            other => bounded.push(other),
        }
    }
    let whole = texts.join("\n");
    let kept = kept(&whole, overflow).await;
    let half = longest / 2;
    let start = whole
        .char_indices()
        .nth(half)
        .map_or(whole.len(), |(at, _)| at);
    let end = whole.char_indices().rev().take(half).last();
    let end = end.map_or(whole.len(), |(at, _)| at);
    let left_out = whole[start..end].chars().count();
    let text = format!(
        "{}\n[… {left_out} of {total} characters left out here; {kept} …]\n{}",
        &whole[..start],
        &whole[end..]
    );
    bounded.insert(0, ToolContent::Text { text });
    bounded
}

/// Keeps the whole text in a file. Returns what is in it, as part of a sentence.
async fn kept(whole: &str, overflow: Option<&Path>) -> String {
    let Some(path) = overflow else {
        return "the rest is lost: ask for less".into();
    };
    let made = OutputFile::create(path).await;
    let mut file = made.unwrap_or_else(|error| OutputFile::failed(path, &error));
    file.add(whole.as_bytes()).await;
    file.finish().await;
    file.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn content_of(parts: Value) -> Vec<ToolContent> {
        let result = json!({"content": parts});
        let result = serde_json::from_value(result.clone())
            .ok()
            .or_else(|| read_loosely(result))
            .unwrap();
        answered(result, None, None).await.content
    }

    #[tokio::test]
    async fn each_kind_of_content_is_shown_or_named() {
        let image = base64::engine::general_purpose::STANDARD.encode(b"GIF89a..");
        let content = content_of(json!([
            {"type": "text", "text": "a"},
            {"type": "image", "data": image, "mimeType": "image/png"},
            {"type": "image", "data": "AAAA", "mimeType": "image/tiff"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///b", "name": "b", "description": "More."},
            {"type": "resource", "resource": {"uri": "x://c", "text": "C"}},
            {"type": "resource", "resource": {"uri": "x://d", "blob": "AAAA", "mimeType": "a/b"}},
            {"type": "later", "x": 1},
        ]));
        let image = ToolContent::Image {
            media_type: "image/gif".into(),
            data: image,
        };
        let no_image = "it is not a PNG, JPEG, GIF or WebP image";
        let texts = [
            format!("[not shown: image/tiff, 3 bytes; {no_image}]"),
            "[not shown: audio, audio/wav]".into(),
            "[resource b: file:///b]\nMore.".into(),
            "[resource x://c]\nC".into(),
            format!("[resource x://d]\n[not shown: a/b, 3 bytes; {no_image}]"),
            "{\"type\":\"later\",\"x\":1}".into(),
        ];
        let mut expected = vec![ToolContent::text("a"), image];
        expected.extend(texts.map(ToolContent::text));
        assert_eq!(content.await, expected);
    }

    #[tokio::test]
    async fn an_object_alone_is_its_text() {
        let result = json!({"structuredContent": {"a": [1]}, "isError": true});
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        let answer = answered(result, None, None).await;
        assert_eq!(answer.content, [ToolContent::text("{\"a\":[1]}")]);
        assert_eq!(answer.structured, Some(json!({"a": [1]})));
        assert!(answer.is_error);
        assert!(read_loosely(json!({"tools": []})).is_none());
    }

    #[tokio::test]
    async fn long_text_is_cut_in_the_middle() {
        let result = CallToolResult::success(vec![
            ContentBlock::text("ä".repeat(10)),
            ContentBlock::text("b".repeat(10)),
        ]);
        let answer = answered(result.clone(), Some(8), None).await;
        let cut =
            "ääää\n[… 13 of 20 characters left out here; the rest is lost: ask for less …]\nbbbb";
        assert_eq!(answer.content, [ToolContent::text(cut)]);
        let answer = answered(result, Some(20), None).await;
        assert_eq!(answer.content.len(), 2);
    }
}
