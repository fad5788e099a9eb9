//! What a server says of itself and its tools, within bounds.

use std::collections::HashSet;

use posse_port::servers::{ServedTool, ServerFacts};
use posse_protocol::{RawJson, ToolSpec};
use rmcp::model::{ServerPeerInfo, ServerResult, Tool};
use serde_json::Value;

use super::schema::flattened;
use crate::answer::clip;

/// How long descriptions and instructions are.
const MOST_TEXT: usize = 2 << 10;
/// How many tools a server has.
pub(super) const MOST_TOOLS: usize = 1000;
/// How large a tool's schema is.
const MOST_SCHEMA: usize = 64 << 10;
/// The longest results that a server may ask for, in characters.
const MOST_RESULT: usize = 500_000;

/// Returns what a server says of itself. It has no tools yet.
pub(super) fn introduced(info: &ServerPeerInfo) -> ServerFacts {
    let title = info.server_info.as_ref().map(|server| {
        let name = server.title.as_deref().unwrap_or(&server.name);
        short(format!("{name} {}", server.version).trim())
    });
    let instructions = info.instructions.as_deref().map(str::trim);
    ServerFacts {
        title: title.unwrap_or_default(),
        protocol: info.protocol_version.to_string(),
        instructions: instructions.filter(|it| !it.is_empty()).map(short),
        ..ServerFacts::default()
    }
}

/// A page of a list of tools.
#[derive(Debug, Default)]
pub(super) struct ToolPage {
    pub(super) tools: Vec<Tool>,
    pub(super) next: Option<String>,
    /// Tools that cannot be read, and why.
    pub(super) broken: Vec<String>,
}

impl ToolPage {
    /// Reads a page. A tool that cannot be read does not hide the others.
    pub(super) fn read(result: ServerResult) -> Option<Self> {
        let value = match result {
            ServerResult::ListToolsResult(page) => {
                return Some(Self {
                    tools: page.tools,
                    next: page.next_cursor,
                    broken: Vec::new(),
                });
            }
            ServerResult::CustomResult(result) => result.0,
            _ => return None,
        };
        let mut page = Self {
            next: value
                .get("nextCursor")
                .and_then(Value::as_str)
                .map(str::to_owned),
            ..Self::default()
        };
        for tool in value.get("tools")?.as_array()? {
            match serde_json::from_value(tool.clone()) {
                Ok(tool) => page.tools.push(tool),
                Err(error) => page.broken.push(format!(
                    "the tool {} cannot be read: {error}",
                    tool.get("name").unwrap_or(&Value::Null)
                )),
            }
        }
        Some(page)
    }
}

/// Returns the tools as posse knows them, each name once.
pub(super) fn served(tools: Vec<Tool>) -> Vec<ServedTool> {
    let mut names = HashSet::new();
    let mut served = Vec::new();
    for tool in tools {
        if served.len() < MOST_TOOLS && !tool.name.is_empty() && names.insert(tool.name.clone()) {
            served.push(served_tool(tool));
        }
    }
    served
}

fn served_tool(tool: Tool) -> ServedTool {
    let (schema, note) = flattened(&tool.input_schema);
    let mut description = short(tool.description.as_deref().unwrap_or_default().trim());
    if description.is_empty() {
        description = short(tool.title.as_deref().unwrap_or_default());
    }
    if let Some(note) = note {
        description = short(format!("{description}\n{}", short(&note)).trim_start());
    }
    let mut input_schema = RawJson::from(&Value::Object(schema));
    if input_schema.get().len() > MOST_SCHEMA {
        input_schema = RawJson::from(&serde_json::json!({"type": "object", "properties": {}}));
        description.push_str("\n(Its schema is too long to be shown.)");
    }
    let meta = |name: &str| tool.meta.as_ref().and_then(|meta| meta.0.get(name));
    let longest = meta("anthropic/maxResultSizeChars").and_then(Value::as_u64);
    let longest = longest.and_then(|longest| usize::try_from(longest).ok());
    ServedTool {
        always_loaded: meta("anthropic/alwaysLoad") == Some(&Value::Bool(true)),
        longest: longest.map(|longest| longest.min(MOST_RESULT)),
        says_read_only: tool
            .annotations
            .as_ref()
            .is_some_and(|hints| hints.read_only_hint == Some(true)),
        spec: ToolSpec {
            name: tool.name.to_string(),
            description,
            input_schema,
        },
        name: tool.name.into_owned(),
    }
}

/// Returns a text, or the first part of a long one and a sign that it goes on.
pub(super) fn short(text: &str) -> String {
    if text.len() <= MOST_TEXT {
        return text.to_owned();
    }
    format!("{}…", clip(text, MOST_TEXT - '…'.len_utf8()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_that_cannot_be_read_does_not_hide_the_others() {
        let result: ServerResult = serde_json::from_value(json!({
            "tools": [
                {"name": "a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true},
                 "_meta": {"anthropic/alwaysLoad": true, "anthropic/maxResultSizeChars": 900_000}},
                {"name": "b"},
                {"name": "a", "inputSchema": {}},
                {"name": "c", "title": "See", "inputSchema": {"oneOf": [{"required": ["x"]}, {"required": ["y"]}]}},
            ],
            "nextCursor": "2",
        }))
        .unwrap();
        let page = ToolPage::read(result).unwrap();
        assert_eq!(page.next.as_deref(), Some("2"));
        assert_eq!(page.broken.len(), 1);
        assert!(page.broken[0].starts_with("the tool \"b\" cannot be read: "));
        let tools = served(page.tools);
        assert_eq!(tools.len(), 2);
        assert!(tools[0].always_loaded && tools[0].says_read_only);
        assert_eq!(tools[0].longest, Some(500_000));
        let described = "See\nGive exactly one of these: x; y.";
        assert_eq!(tools[1].spec.description, described);
        assert!(!tools[1].always_loaded && tools[1].longest.is_none());
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(short("short"), "short");
        let cut = short(&"ä".repeat(MOST_TEXT));
        assert!(cut.len() <= MOST_TEXT && cut.ends_with("ä…"));
        let long = json!({"name": "l", "description": "d".repeat(5000),
            "inputSchema": {"description": "x".repeat(MOST_SCHEMA)}});
        let tools = served(vec![serde_json::from_value(long).unwrap()]);
        assert!(tools[0].spec.input_schema.get().len() < 100);
        assert!(tools[0].spec.description.len() < MOST_TEXT + 100);
    }
}
