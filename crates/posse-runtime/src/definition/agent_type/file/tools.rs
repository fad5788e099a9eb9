//! Lists of tools in a definition.

use serde_json::Value;

use crate::definition::front::error::FieldError;
use crate::definition::front::value::{joined, quoted};
use posse_port::closest;

/// Tools that posse has. Others are kept, because definitions are shared with other programs.
const TOOLS: [&str; 16] = [
    "Agent",
    "AskUserQuestion",
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "ListMcpResourcesTool",
    "Read",
    "ReadMcpResourceTool",
    "SendMessage",
    "Skill",
    "TaskOutput",
    "TaskStop",
    "Wait",
    "WebFetch",
    "Write",
];

/// Tools of teams, which posse gives to those who need them.
const TEAM_TOOLS: [&str; 10] = [
    "ExitPlanMode",
    "NoteRead",
    "NoteWrite",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
    "TeamHandOver",
];

/// Tools of other programs. They are not typing mistakes.
const FOREIGN: [&str; 14] = [
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "EnterPlanMode",
    "KillBash",
    "KillShell",
    "LSP",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "SlashCommand",
    "TodoWrite",
    "WebSearch",
];

/// Returns the warning about tools that a definition wants and posse does not have; none if it has
/// all of them.
pub fn unavailable(tools: &[String]) -> Option<String> {
    let is_known = |name: &str| {
        // Tools of MCP servers have names of their own.
        TOOLS.contains(&name) || TEAM_TOOLS.contains(&name) || name.starts_with("mcp__")
    };
    let names = |is_foreign: bool| {
        let missing = tools.iter().filter(|name| !is_known(name));
        let missing = missing.filter(|name| FOREIGN.contains(&name.as_str()) == is_foreign);
        let missing: Vec<String> = missing
            .map(|name| format!("`{}`", quoted(name)))
            .take(TOLD)
            .collect();
        missing.join(", ")
    };
    let told = match (names(true), names(false)) {
        (foreign, unknown) if foreign.is_empty() && unknown.is_empty() => return None,
        (foreign, unknown) if unknown.is_empty() => format!("not available in posse: {foreign}"),
        (foreign, unknown) if foreign.is_empty() => format!("unknown tools: {unknown}"),
        (foreign, unknown) => format!("not available in posse: {foreign}; unknown: {unknown}"),
    };
    Some(format!("{told}; the agent works without"))
}

/// Maximum number of tools that a warning names.
const TOLD: usize = 20;
/// Maximum number of names in a list.
const MOST: usize = 500;

/// Returns the tools that `tools` names; none for all.
pub(super) fn granted(
    value: &Value,
    notes: &mut Vec<String>,
) -> Result<Option<Vec<String>>, FieldError> {
    if value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty()) {
        return Err(FieldError::ToolsWithoutValue);
    }
    let names = names("tools", value, notes, |tool, part| {
        format!(
            "`({part})` is ignored, and the agent gets all of `{tool}`; permission rules can \
             forbid a part of it"
        )
    })?;
    Ok((!names.iter().any(|name| name == "*")).then_some(names))
}

/// Returns the tools that `disallowedTools` names.
pub(super) fn denied(value: &Value, notes: &mut Vec<String>) -> Result<Vec<String>, FieldError> {
    let names = names("disallowedTools", value, notes, |tool, part| {
        format!(
            "`({part})` is ignored, and the agent has no `{tool}` at all; permission rules can \
             forbid a part of it"
        )
    })?;
    if names.iter().any(|name| name == "*") {
        return Err(FieldError::AllDisallowed);
    }
    Ok(names)
}

fn names(
    key: &str,
    value: &Value,
    notes: &mut Vec<String>,
    partly: impl Fn(&str, &str) -> String,
) -> Result<Vec<String>, FieldError> {
    let mut names: Vec<String> = Vec::new();
    let text = joined(key, value)?;
    let parts = split(&text);
    if parts.len() > MOST {
        return Err(FieldError::TooMany {
            key: key.to_owned(),
            most: MOST,
            what: "names",
        });
    }
    for written in parts {
        let (name, part) = cut(written)?;
        let name = if name == "Task" { "Agent" } else { name };
        if let Some(part) = part {
            notes.push(partly(name, &quoted(part)));
        }
        if !TOOLS.contains(&name)
            && !FOREIGN.contains(&name)
            && name.len() <= 64
            && let Some(meant) = closest(name, &TOOLS)
        {
            notes.push(format!(
                "there is no tool `{}`; did you mean `{meant}`?",
                quoted(name)
            ));
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Returns a tool's name, and what is in the parentheses after it.
fn cut(written: &str) -> Result<(&str, Option<&str>), FieldError> {
    let (name, part) = match written.split_once('(') {
        Some((name, rest)) => {
            let part = rest.strip_suffix(')');
            let open = || FieldError::Unclosed(quoted(written));
            (name.trim_end(), Some(part.ok_or_else(open)?))
        }
        None => (written, None),
    };
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == ')') {
        return Err(FieldError::NotATool(quoted(written)));
    }
    Ok((name, part))
}

/// Returns the parts between commas outside parentheses, without empty ones.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves FC-13 (part: unknown tools)
    #[test]
    fn tools_that_posse_lacks_are_named() {
        let told = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            unavailable(&names)
        };
        assert_eq!(told(&["Read", "TaskList", "mcp__github__issue"]), None);
        let foreign = "not available in posse: `WebSearch`, `TodoWrite`; the agent works without";
        assert_eq!(
            told(&["WebSearch", "Read", "TodoWrite"]).as_deref(),
            Some(foreign)
        );
        let unknown = "unknown tools: `Raed`; the agent works without";
        assert_eq!(told(&["Raed"]).as_deref(), Some(unknown));
        let both = "not available in posse: `NotebookEdit`; unknown: `X`; the agent works without";
        assert_eq!(told(&["NotebookEdit", "X"]).as_deref(), Some(both));
    }
}
