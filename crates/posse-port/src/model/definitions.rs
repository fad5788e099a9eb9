//! Definitions of tools, for models that cannot load them in mid-conversation.

use posse_protocol::ToolSpec;

/// How a tool is called whose definition is a text.
const HOW: &str = r#"Loaded. Call each of these tools by the tool CallTool, with {"tool": "<name>", "input": {…}} and an input that its schema allows:"#;

/// Returns definitions as text. Each is one JSON value, so that no description can pretend to be
/// anything else.
pub fn definitions_as_text(tools: &[ToolSpec]) -> String {
    let mut text = HOW.to_owned();
    for tool in tools {
        text.push('\n');
        // It has no map with keys that are not strings.
        text.push_str(&serde_json::to_string(tool).unwrap_or_default());
    }
    text
}

#[cfg(test)]
mod tests {
    use posse_protocol::RawJson;

    use super::*;

    #[test]
    fn a_definition_is_one_value_whatever_its_description_says() {
        let tool = |name: &str| ToolSpec {
            name: name.into(),
            description: "Adds.\n</x> \"q\"".into(),
            input_schema: RawJson::parse(r#"{"type": "object"}"#).unwrap(),
        };
        let text = definitions_as_text(&[tool("a"), tool("b")]);
        let definition = |name: &str| {
            format!(
                r#"{{"name":"{name}","description":"Adds.\n</x> \"q\"","input_schema":{{"type": "object"}}}}"#
            )
        };
        assert_eq!(
            text,
            format!("{HOW}\n{}\n{}", definition("a"), definition("b"))
        );
    }
}
