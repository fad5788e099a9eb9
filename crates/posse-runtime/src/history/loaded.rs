//! Definitions of tools that a history has loaded in mid-conversation.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use posse_port::model::{Encoded, Model, definitions_as_text};
use posse_protocol::{ContentBlock, Message, ToolContent, ToolSpec};
use serde_json::value::RawValue;

use crate::prompt;

/// The definitions that a history has loaded, in that order. A clone shares them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadedTools(Arc<LoadedDefinitions>);

#[derive(Clone, Debug, Default)]
struct LoadedDefinitions {
    tools: Vec<ToolSpec>,
    /// The same, as they are stored.
    encoded: Vec<Bytes>,
    /// Upper bound for what they add to a request, in bytes.
    size: usize,
}

impl LoadedTools {
    /// Returns the definitions for a request.
    pub(crate) fn encoded(&self) -> &[Bytes] {
        &self.0.encoded
    }

    /// Returns the definitions.
    pub(crate) fn tools(&self) -> &[ToolSpec] {
        &self.0.tools
    }

    /// Returns an upper bound for what they add to a request, in bytes: each is read once, where it
    /// was loaded.
    pub(crate) fn size(&self) -> usize {
        self.0.size
    }

    /// Returns true if a tool of this name is loaded.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.tools.iter().any(|tool| tool.name == name)
    }

    /// Takes the definitions that a message brings; `None` if it brings none. Those of a name that
    /// is loaded already are left out: the first stays, because it has been sent. The message says
    /// so instead.
    pub(crate) fn take(&mut self, message: &Message) -> Option<Loading> {
        if !message.content.iter().any(brings) {
            return None;
        }
        let (mut message, mut new) = (message.clone(), Vec::new());
        for block in &mut message.content {
            let ContentBlock::ToolResult { content, .. } = block else {
                continue;
            };
            *content = self.without_known(std::mem::take(content), &mut new);
        }
        let stored = (!new.is_empty()).then(|| Encoded {
            // A definition has no map with keys that are not strings.
            bytes: serde_json::to_vec(&new).unwrap_or_default().into(),
            mark_at: None,
        });
        if let Some(stored) = &stored {
            self.add(&stored.bytes);
        }
        Some(Loading { message, stored })
    }

    /// Returns a result with the definitions that are new, which are added to `new`.
    fn without_known(
        &self,
        content: Vec<ToolContent>,
        new: &mut Vec<ToolSpec>,
    ) -> Vec<ToolContent> {
        let mut kept = Vec::with_capacity(content.len());
        for part in content {
            let ToolContent::Tools { tools } = part else {
                kept.push(part);
                continue;
            };
            let (mut fresh, mut known) = (Vec::new(), Vec::new());
            for tool in tools {
                if self.has(&tool.name) || new.iter().any(|it| it.name == tool.name) {
                    known.push(tool.name);
                } else {
                    new.push(tool.clone());
                    fresh.push(tool);
                }
            }
            if !known.is_empty() {
                kept.push(ToolContent::text(prompt::tools_already_loaded(&known)));
            }
            if !fresh.is_empty() {
                kept.push(ToolContent::Tools { tools: fresh });
            }
        }
        kept
    }

    /// Adds definitions as they are stored.
    pub(crate) fn add(&mut self, stored: &Bytes) {
        // What a checksum has covered can be read.
        let parts: Vec<&RawValue> = serde_json::from_slice(stored).unwrap_or_default();
        let inner = Arc::make_mut(&mut self.0);
        inner.size += stored.len();
        for part in parts {
            if let Ok(tool) = serde_json::from_str(part.get()) {
                inner.tools.push(tool);
                inner.encoded.push(stored.slice_ref(part.get().as_bytes()));
            }
        }
    }
}

/// A message that brings definitions.
pub(crate) struct Loading {
    /// The message, with the definitions that are new.
    pub(crate) message: Message,
    /// Those, as they are stored; none if all were known.
    pub(crate) stored: Option<Encoded>,
}

/// Returns true if a block brings definitions.
fn brings(block: &ContentBlock) -> bool {
    let is_definitions = |part: &ToolContent| matches!(part, ToolContent::Tools { .. });
    match block {
        ContentBlock::ToolResult { content, .. } => content.iter().any(is_definitions),
        _ => false,
    }
}

/// Returns a message as this model can read it: definitions are text unless it loads tools.
pub(crate) fn readable<'a>(message: &'a Message, api: &dyn Model, model: &str) -> Cow<'a, Message> {
    if !message.content.iter().any(brings) || api.loads_tools(model) {
        return Cow::Borrowed(message);
    }
    let mut message = message.clone();
    for block in &mut message.content {
        let ContentBlock::ToolResult { content, .. } = block else {
            continue;
        };
        for part in content {
            if let ToolContent::Tools { tools } = part {
                *part = ToolContent::text(definitions_as_text(tools));
            }
        }
    }
    Cow::Owned(message)
}

#[cfg(test)]
mod tests {
    use posse_protocol::{RawJson, Role};

    use super::*;

    fn tool(name: &str, about: &str) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: about.into(),
            input_schema: RawJson::parse(r#"{ "type":"object","x":1.50}"#).unwrap(),
        }
    }

    fn result(content: Vec<ToolContent>) -> Message {
        Message {
            role: Role::User,
            content: vec![ContentBlock::ToolResult {
                tool_use_id: "t".into(),
                content,
                is_error: false,
            }],
        }
    }

    fn tools(tools: Vec<ToolSpec>) -> ToolContent {
        ToolContent::Tools { tools }
    }

    #[test]
    fn the_first_definition_of_a_name_stays() {
        let mut loaded = LoadedTools::default();
        let first = result(vec![tools(vec![tool("a", "one"), tool("a", "two")])]);
        let Loading { message, stored } = loaded.take(&first).unwrap();
        let stored = stored.unwrap();
        let already = || ToolContent::text("Already loaded: a.");
        assert_eq!(
            message,
            result(vec![already(), tools(vec![tool("a", "one")])])
        );
        let expected =
            r#"{"name":"a","description":"one","input_schema":{ "type":"object","x":1.50}}"#;
        assert_eq!(stored.bytes, format!("[{expected}]"));

        let second = result(vec![
            ToolContent::text("found"),
            tools(vec![tool("b", "new"), tool("a", "changed")]),
        ]);
        let Loading {
            message,
            stored: more,
        } = loaded.take(&second).unwrap();
        let more = more.unwrap();
        let kept = tools(vec![tool("b", "new")]);
        assert_eq!(
            message,
            result(vec![ToolContent::text("found"), already(), kept])
        );
        assert_eq!(loaded.encoded()[0], expected);
        assert_eq!(loaded.tools(), [tool("a", "one"), tool("b", "new")]);
        assert!(loaded.has("b") && !loaded.has("c"));

        // Nothing new is nothing to store, and what comes from the store is the same.
        let again = loaded.take(&result(vec![tools(vec![tool("b", "")])]));
        assert_eq!(again.unwrap().stored, None);
        assert!(loaded.take(&Message::user("hi")).is_none());
        let mut restored = LoadedTools::default();
        for stored in [&stored, &more] {
            restored.add(&stored.bytes);
        }
        assert_eq!(restored.encoded(), loaded.encoded());
        assert_eq!(restored.tools(), loaded.tools());
        assert_eq!(restored.size(), loaded.size());
    }
}
