//! Names of tools that are used outside their own modules, and what names mean.

use std::borrow::Cow;

use posse_protocol::RawJson;
use serde::Deserialize;

/// The tool that asks a person.
pub(crate) const ASK: &str = "AskUserQuestion";
/// The tool that starts agents.
pub(crate) const AGENT: &str = "Agent";
/// The tool that loads skills.
pub(crate) const SKILL: &str = "Skill";
/// The tool that loads tools of servers.
pub(crate) const TOOL_SEARCH: &str = "ToolSearch";
/// The tool by which models call tools that they cannot load.
pub(crate) const CALL_TOOL: &str = "CallTool";
/// The tool that lists resources of servers.
pub(crate) const LIST_RESOURCES: &str = "ListMcpResourcesTool";
/// The tool that reads a resource of a server.
pub(crate) const READ_RESOURCE: &str = "ReadMcpResourceTool";
/// The tools by which tools and resources of servers are reached.
pub(crate) const SERVER_TOOLS: [&str; 4] = [TOOL_SEARCH, CALL_TOOL, LIST_RESOURCES, READ_RESOURCE];
/// What names of tools of servers begin with.
pub(crate) const OF_SERVERS: &str = "mcp__";

/// Returns true if an entry of a list of tools means this tool. `mcp__SERVER` means all of a
/// server's, and one that ends with `*` means all whose names begin so.
pub(crate) fn means(entry: &str, tool: &str) -> bool {
    if entry == tool {
        return true;
    }
    let Some(server) = entry.strip_prefix(OF_SERVERS) else {
        return false;
    };
    match entry.strip_suffix('*') {
        Some(beginning) => tool.starts_with(beginning),
        None => {
            let rest = tool.strip_prefix(entry);
            !server.contains("__") && rest.is_some_and(|rest| rest.starts_with("__"))
        }
    }
}

/// Returns the tool that a call means, and its input: a call of [`CALL_TOOL`] means the tool in it.
pub(crate) fn meant<'a>(tool: &'a str, input: &'a RawJson) -> (Cow<'a, str>, Cow<'a, RawJson>) {
    #[derive(Deserialize)]
    struct Inner<'a> {
        #[serde(borrow)]
        tool: Cow<'a, str>,
        input: RawJson,
    }
    let plain = (Cow::Borrowed(tool), Cow::Borrowed(input));
    if tool != CALL_TOOL {
        return plain;
    }
    match serde_json::from_str::<Inner<'_>>(input.get()) {
        // Of others it says itself that it does not call them.
        Ok(inner) if inner.tool.starts_with(OF_SERVERS) => {
            (Cow::Owned(inner.tool.into_owned()), Cow::Owned(inner.input))
        }
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_means_a_tool_or_those_of_a_server() {
        for (entry, tool, expected) in [
            ("Read", "Read", true),
            ("Read", "ReadMore", false),
            ("Rea*", "Read", false),
            ("mcp__a", "mcp__a__x", true),
            ("mcp__a", "mcp__ab__x", false),
            ("mcp__a__*", "mcp__a__x", true),
            ("mcp__a__x", "mcp__a__x", true),
            ("mcp__a__x", "mcp__a__x__y", false),
            ("mcp__a__g*", "mcp__a__get", true),
            ("mcp__a__g*", "mcp__a__put", false),
        ] {
            assert_eq!(means(entry, tool), expected, "{entry} {tool}");
        }
    }

    #[test]
    fn a_call_of_call_tool_means_the_tool_in_it() {
        let check = |tool, input, expected: (&str, &str)| {
            let input = RawJson::parse(input).unwrap();
            let (tool, input) = meant(tool, &input);
            assert_eq!((&*tool, input.get()), expected);
        };
        let input = r#"{"tool":"mcp__a__x","input":{"n": 1.0}}"#;
        check(CALL_TOOL, input, ("mcp__a__x", r#"{"n": 1.0}"#));
        check("Other", input, ("Other", input));
        for wrong in [
            r#"{"tool":"Bash","input":{}}"#,
            r#"{"tool":"mcp__a__x"}"#,
            "[]",
        ] {
            check(CALL_TOOL, wrong, (CALL_TOOL, wrong));
        }
    }
}
