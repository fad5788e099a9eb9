//! Tools that are loaded in mid-conversation.
//!
//! The API strips tools with `defer_loading` before it computes the cache key, and reads the
//! definition of each where the history has a reference to it. So a definition that is added at the
//! end of the tools changes nothing that was sent before.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};
use posse_port::model::{Encoded, Request, definitions_as_text};
use posse_protocol::{ContentBlock, ToolContent, ToolSpec};
use serde::Deserialize;

use super::{decode, encode, names};
use crate::encoded_entries::Splice;
use crate::preamble;

/// What a preamble's tools begin with.
const TOOLS: &[u8] = br#","tools":"#;
/// What a definition ends with, instead of its brace.
const DEFERRED: &[u8] = br#","defer_loading":true}"#;

/// A definition, as far as it matters here.
#[derive(Deserialize)]
struct NamedTool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// Returns the definitions to add to the preamble's tools; `None` if there are none, or if the model
/// does not take them.
pub(super) fn splice(request: &Request<'_>) -> Option<Splice> {
    if request.loaded.is_empty() {
        return None;
    }
    let (model, rest) = preamble::split(&request.preamble.bytes)?;
    if !names::loads_tools(&model) {
        return None;
    }
    let list = rest.strip_prefix(TOOLS)?;
    let mut values = serde_json::Deserializer::from_slice(list).into_iter::<Vec<NamedTool<'_>>>();
    let known = values.next()?.ok()?;
    // Before the bracket that ends the list.
    let at = request.preamble.bytes.len() - list.len() + values.byte_offset() - 1;
    let mut bytes = BytesMut::new();
    for definition in request.loaded {
        let tool: NamedTool<'_> = serde_json::from_slice(definition).ok()?;
        // The API refuses two tools of one name.
        let is_known = known.iter().any(|known| known.name == tool.name);
        let Some(open) = definition.strip_suffix(b"}").filter(|_| !is_known) else {
            continue;
        };
        for part in [&b","[..], open, DEFERRED] {
            bytes.put_slice(part);
        }
    }
    let bytes: Bytes = bytes.freeze();
    Some(Splice { at, bytes })
}

/// Returns a message whose references are definitions as text; as it is, if it has none.
pub(super) fn as_text(entry: &Encoded, tools: &[ToolSpec]) -> Encoded {
    let Some(mut message) = decode::message(&entry.bytes) else {
        return entry.clone();
    };
    let mut has_references = false;
    for block in &mut message.content {
        let ContentBlock::ToolResult { content, .. } = block else {
            continue;
        };
        for part in content {
            if let ToolContent::Tools { tools: named } = part {
                let of_name = |name: &str| tools.iter().find(|tool| tool.name == name).cloned();
                let known: Vec<ToolSpec> = named
                    .iter()
                    .map(|tool| of_name(&tool.name).unwrap_or_else(|| tool.clone()))
                    .collect();
                *part = ToolContent::text(definitions_as_text(&known));
                has_references = true;
            }
        }
    }
    match has_references {
        true => encode::entry(&message),
        false => entry.clone(),
    }
}

#[cfg(test)]
mod tests {
    use posse_port::model::{BreakpointPosition, CacheBreakpoint, Preamble, Thinking, Ttl};
    use posse_protocol::{Message, RawJson, Role};
    use serde_json::Value;

    use super::*;
    use crate::anthropic::{AnthropicWire, ApiVersion};

    fn tool(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: "Says \"]\".".into(),
            input_schema: RawJson::parse(r#"{"type": "object","x":[1.50]}"#).unwrap(),
        }
    }

    fn definition(name: &str) -> Bytes {
        serde_json::to_vec(&tool(name)).unwrap().into()
    }

    fn preamble(model: &str, tools: &[&str], system: &[&str]) -> Encoded {
        encode::preamble(&Preamble {
            model: model.into(),
            tools: tools.iter().map(|name| tool(name)).collect(),
            system: system.iter().map(|text| (*text).to_owned()).collect(),
            thinking: Thinking::Adaptive,
            effort: None,
        })
    }

    fn body(preamble: &Encoded, loaded: &[Bytes]) -> String {
        let wire = AnthropicWire {
            version: ApiVersion::V2026,
            diagnose: true,
        };
        let place = BreakpointPosition::Preamble;
        let marks = [CacheBreakpoint {
            place,
            ttl: Ttl::OneHour,
        }];
        let body = wire.body(&Request {
            preamble,
            loaded,
            entries: &[encode::entry(&Message::user("hi"))],
            marks: &marks,
            max_tokens: 9,
            previous: None,
        });
        String::from_utf8(body.concat()).unwrap()
    }

    #[test]
    fn definitions_are_added_at_the_end_of_the_tools_and_change_nothing_else() {
        let added: String = ["x", "y"]
            .map(|name| {
                let definition = String::from_utf8(definition(name).to_vec()).unwrap();
                let open = definition.strip_suffix('}').unwrap();
                format!(r#",{open},"defer_loading":true}}"#)
            })
            .concat();
        for system in [&[][..], &["You are ],\"tools\":[{}]."][..]] {
            let preamble = preamble("claude-opus-5-5", &["Read", "a"], system);
            let without = body(&preamble, &[]);
            // One whose name is that of a tool of the preamble is left out.
            let loaded = [definition("x"), definition("a"), definition("y")];
            let with = body(&preamble, &loaded);
            assert_eq!(with.matches("defer_loading").count(), 2, "{with}");
            let whole: Value = serde_json::from_str(&with).unwrap();
            let names: Vec<&str> = (whole["tools"].as_array().unwrap().iter())
                .map(|tool| tool["name"].as_str().unwrap())
                .collect();
            assert_eq!(names, ["Read", "a", "x", "y"]);
            assert_eq!(with.replacen(&added, "", 1), without);
        }
    }

    #[test]
    fn a_model_that_cannot_load_tools_gets_none() {
        for (model, tools) in [
            ("claude-opus-4-1", &["Read"][..]),
            ("llama", &["Read"]),
            ("claude-opus-5-5", &[]),
        ] {
            let preamble = preamble(model, tools, &["You are."]);
            assert_eq!(body(&preamble, &[definition("x")]), body(&preamble, &[]));
        }
    }

    #[test]
    fn references_become_text_and_come_back_as_names() {
        let result = |content| Message {
            role: Role::User,
            content: vec![ContentBlock::ToolResult {
                tool_use_id: "t".into(),
                content,
                is_error: false,
            }],
        };
        let tools = vec![tool("x"), tool("y")];
        let loads = result(vec![
            ToolContent::text("Found."),
            ToolContent::Tools {
                tools: tools.clone(),
            },
        ]);
        let entry = encode::entry(&loads);
        let sent = r#"{"type":"tool_reference","tool_name":"x"},{"type":"tool_reference","tool_name":"y"}"#;
        let text = String::from_utf8(entry.bytes.to_vec()).unwrap();
        assert!(text.contains(sent), "{text}");
        let as_text = result(vec![
            ToolContent::text("Found."),
            ToolContent::text(definitions_as_text(&tools)),
        ]);
        assert_eq!(super::as_text(&entry, &tools), encode::entry(&as_text));
        let plain = encode::entry(&Message::user("hi"));
        assert_eq!(super::as_text(&plain, &tools), plain);
    }
}
