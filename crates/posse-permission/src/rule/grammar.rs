//! The syntax of a rule: `Tool` or `Tool(specifier)`.

use super::super::host::HostPattern;
use super::super::path::PathPattern;
use super::super::pattern::{CommandPattern, Domain, Glob};
use super::{About, Source};
use crate::rule_problem::RuleProblem;

/// Tools without specifiers: posse's, and those in settings of other programs.
const PLAIN: &[&str] = &[
    "Write",
    "Grep",
    "Glob",
    "WebSearch",
    "SendMessage",
    "AskUserQuestion",
    "ExitPlanMode",
    "ListMcpResourcesTool",
    "ReadMcpResourceTool",
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

/// Tools of other programs, whose rules are valid but have no effect here.
const FOREIGN: &[&str] = &[
    "BashOutput",
    "EnterPlanMode",
    "KillBash",
    "KillShell",
    "LS",
    "LSP",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "PowerShell",
    "SlashCommand",
    "TaskOutput",
    "TaskStop",
    "TodoWrite",
    "ToolSearch",
];

/// Parses a rule. `allows` is true for the allow list, where less may be left open.
pub(super) fn read(text: &str, source: &Source, allows: bool) -> Result<About, RuleProblem> {
    let text = text.trim();
    if text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return Err(RuleProblem::Invisible);
    }
    let (tool, specifier) = match text.split_once('(') {
        None => (text, None),
        Some((tool, rest)) => {
            let inner = rest.strip_suffix(')').ok_or(RuleProblem::Unclosed)?;
            if inner.trim().is_empty() {
                return Err(RuleProblem::EmptyParentheses);
            }
            (tool, Some(inner.trim()))
        }
    };
    match (tool, specifier) {
        ("", _) => Err(RuleProblem::NoTool),
        ("*", None) if !allows => Ok(About::Tools(Glob::new("*"))),
        ("*", None) => Err(RuleProblem::AllowsEverything),
        (tool, specifier) if tool.starts_with("mcp__") => mcp(tool, specifier, allows),
        ("Bash", None) => Ok(About::Command(CommandPattern::new("*"))),
        ("Bash", Some(command)) => {
            let pattern = CommandPattern::new(command);
            match allows && command.starts_with('*') && !pattern.is_everything() {
                true => Err(RuleProblem::AnyProgram),
                false => Ok(About::Command(pattern)),
            }
        }
        ("Outside", Some(_)) if !allows => Err(RuleProblem::OnlyAllows),
        ("Outside", Some(command)) => {
            let pattern = CommandPattern::new(command);
            match command.starts_with('*') {
                true => Err(RuleProblem::AnyProgram),
                false => Ok(About::Outside(pattern)),
            }
        }
        ("Read", None) => Ok(About::Reading),
        ("Edit", None) => Ok(About::Editing),
        ("Read", Some(pattern)) => paths(pattern, source).map(About::Read),
        ("Edit", Some(pattern)) => paths(pattern, source).map(About::Edit),
        ("WebFetch", None) => Ok(About::Host(Domain::Any)),
        ("WebFetch", Some(specifier)) => {
            let domain = specifier.strip_prefix("domain:").and_then(Domain::new);
            Ok(About::Host(domain.ok_or(RuleProblem::NoDomain)?))
        }
        ("Connect", host) => {
            let pattern = HostPattern::new(host.unwrap_or("*"));
            pattern.map(About::Connect).ok_or(RuleProblem::NoHost)
        }
        // The older name still occurs in settings.
        ("Agent" | "Task", None) => Ok(About::Agent(Glob::new("*"))),
        // Types are found regardless of case, so rules ignore case, too.
        ("Agent" | "Task", Some(name)) => Ok(About::Agent(Glob::new(&name.to_lowercase()))),
        ("Skill", None) => Ok(About::Skill(Glob::new("*"))),
        ("Skill", Some(name)) => Ok(About::Skill(Glob::new(&name.to_lowercase()))),
        ("Write" | "Grep" | "Glob", Some(_)) => Err(RuleProblem::PathsOf(tool.to_owned())),
        (tool, None) if PLAIN.contains(&tool) => Ok(About::Tools(Glob::new(tool))),
        (tool, Some(_)) if PLAIN.contains(&tool) => Err(RuleProblem::NoSpecifier(tool.to_owned())),
        (tool, _) if FOREIGN.contains(&tool) => Ok(About::Elsewhere),
        (tool, _) => Err(RuleProblem::UnknownTool(tool.to_owned())),
    }
}

/// Parses a rule about tools of an MCP server.
fn mcp(tool: &str, specifier: Option<&str>, allows: bool) -> Result<About, RuleProblem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
    if specifier.is_some() || !tool.chars().all(plain) {
        return Err(RuleProblem::ServerTool);
    }
    let rest = tool.strip_prefix("mcp__").unwrap_or(tool);
    let (server, name) = rest
        .split_once("__")
        .map_or((rest, None), |(server, name)| (server, Some(name)));
    if server.is_empty() || (allows && server.contains('*')) {
        return Err(RuleProblem::OpenServer);
    }
    let whole = name.is_none() && !server.contains('*');
    Ok(About::Tools(Glob::new(&if whole {
        format!("mcp__{server}__*")
    } else {
        tool.to_owned()
    })))
}

/// Parses a path pattern; its beginning tells what it is relative to.
fn paths(pattern: &str, source: &Source) -> Result<PathPattern, RuleProblem> {
    if let Some(rest) = pattern.strip_prefix("//") {
        return PathPattern::new("/".as_ref(), &format!("/{rest}"));
    }
    if let Some(rest) = pattern.strip_prefix("~/") {
        let home = source.home.as_deref().ok_or(RuleProblem::NoHome)?;
        return PathPattern::new(home, &format!("/{rest}"));
    }
    if pattern.starts_with('/') {
        return PathPattern::new(&source.root, pattern);
    }
    match pattern.strip_prefix("./") {
        Some(rest) => PathPattern::new(&source.cwd, &format!("/{rest}")),
        None if pattern.split('/').any(|part| part == "..") => Err(RuleProblem::Above),
        None => PathPattern::new(&source.cwd, pattern),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_are_none() {
        let source = Source {
            name: "test".into(),
            root: "/w".into(),
            cwd: "/w".into(),
            home: None,
        };
        let table = [
            ("", true, "does not name a tool"),
            ("bash", true, "no tool `bash`"),
            ("Bash(ls", true, "not closed"),
            ("Bash()", true, "the parentheses are empty"),
            ("*", true, "a permission mode"),
            ("mcp__*", true, "name the server in full"),
            ("mcp__sr*__get", true, "name the server in full"),
            ("mcp__", false, "name the server in full"),
            ("mcp__srv(x)", false, "mcp__server"),
            ("WebFetch(docs.rs)", true, "domain:"),
            ("WebFetch(domain:a b)", true, "domain:"),
            ("Connect(docs.rs/x)", true, "a host"),
            ("Connect(@nix)", true, "a host"),
            ("Write(/src/**)", true, "Edit("),
            ("SendMessage(x)", true, "no specifier"),
            ("Read(!a)", false, "`!`"),
            ("Read(~/a)", false, "home"),
            ("Read(../a)", false, "`..`"),
            ("Read(/)", false, "not name a path"),
            ("Bash(ls\u{7})", true, "invisible characters"),
        ];
        for (rule, allows, expected) in table {
            let why = read(rule, &source, allows).unwrap_err().to_string();
            assert!(why.contains(expected), "{rule}: {why}");
        }
    }

    #[test]
    fn rules_that_are_some() {
        let source = Source {
            name: "test".into(),
            root: "/w".into(),
            cwd: "/w".into(),
            home: Some("/h".into()),
        };
        for rule in [
            "Bash",
            "Bash(git diff *)",
            "Bash(git diff:*)",
            "Read",
            "Read(./secrets/**)",
            "Edit(/src/**)",
            "WebFetch",
            "WebFetch(domain:*.docs.rs)",
            "Connect",
            "Connect(*.docs.rs:8443)",
            "Connect(@crates)",
            "mcp__srv",
            "mcp__srv__*",
            "mcp__srv__get_*",
            "Agent",
            "Agent(scout)",
            "Task(scout)",
            "Skill(pdf)",
            "Write",
            "Read(~/a)",
            " Bash(echo (a)) ",
        ] {
            for allows in [true, false] {
                assert!(read(rule, &source, allows).is_ok(), "{rule}");
            }
        }
        assert!(read("mcp__*", &source, false).is_ok() && read("*", &source, false).is_ok());
    }
}
