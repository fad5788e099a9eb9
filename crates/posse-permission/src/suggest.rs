//! Rules for "don't ask again": what a person is offered instead of being asked about such a call
//! once more. A rule names what was asked about, or the kind of it that its text says.

use std::path::{Path, PathBuf};

use posse_port::tool::{Intent, Subject, Workspace};
use posse_protocol::Suggestion;

use super::host::{preset_of, rule_for};
use super::mirror::RulePaths;
use super::path::is_beneath;
use super::shell::Line;
use super::{Policy, RuleList, Source};

/// Maximum length of a suggested rule: a person must see at a glance what it allows.
const LONGEST: usize = 200;

/// Maximum number of commands or files of a call that get a rule each.
const MOST_RULES: usize = 3;

/// Returns rules that could allow a call that is asked about, from narrow to wide.
pub(super) fn suggest(
    policy: &Policy,
    workspace: &Workspace,
    tool: &str,
    intent: &Intent,
) -> Vec<Suggestion> {
    let sets = match &intent.subject {
        Subject::Runs { command, disk, .. } => {
            Line::read(command, disk, workspace).rules_to_allow(policy)
        }
        Subject::Edits(paths) => path_rules("Edit", paths, workspace),
        Subject::Reads(paths) => path_rules("Read", paths, workspace),
        Subject::Fetches { host } if !host.contains('*') => {
            vec![vec![format!("WebFetch(domain:{host})")]]
        }
        Subject::Connects { host, port } => {
            let preset = preset_of(host, *port).map(|it| vec![format!("Connect({})", it.name)]);
            let alone = vec![rule_for(host, *port)];
            [alone].into_iter().chain(preset).collect()
        }
        Subject::Nothing if names_one_tool(tool) => vec![vec![tool.to_owned()]],
        // Agents and skills are asked about only because of an ask rule.
        _ => Vec::new(),
    };
    let fits = |rules: &Vec<String>| {
        !rules.is_empty()
            && rules.len() <= MOST_RULES
            && rules.iter().all(|rule| rule.len() <= LONGEST)
    };
    let sets = sets.into_iter().filter(fits);
    sets.map(|rules| Suggestion { rules }).collect()
}

/// Returns the rules that let commands write to these directories.
pub(super) fn suggest_edits(directories: &[PathBuf]) -> Option<Suggestion> {
    let rules = directories
        .iter()
        .map(|directory| path_rule("Edit", directory, "/**"))
        .collect::<Option<Vec<_>>>()?;
    (!rules.is_empty() && rules.len() <= MOST_RULES).then_some(Suggestion { rules })
}

/// Returns the rules that let a command run outside the sandbox.
pub(super) fn suggest_outside(
    policy: &Policy,
    workspace: &Workspace,
    subject: &Subject,
) -> Option<Suggestion> {
    let line = Line::of(subject, workspace)?;
    let rules = line.rules_to_allow(policy).into_iter().next()?;
    let rules: Option<Vec<String>> = rules
        .iter()
        .map(|rule| Some(format!("Outside{}", rule.strip_prefix("Bash")?)))
        .collect();
    let suggestion = Suggestion { rules: rules? };
    let wider = added(policy, workspace, &suggestion)?;
    let fits = suggestion.rules.len() <= MOST_RULES
        && suggestion.rules.iter().all(|rule| rule.len() <= LONGEST);
    (fits && line.outside_allowed(&wider)).then_some(suggestion)
}

/// Returns the rules with those of a suggestion; `None` if these are not rules.
pub(super) fn added(
    policy: &Policy,
    workspace: &Workspace,
    suggestion: &Suggestion,
) -> Option<Policy> {
    let source = Source {
        name: "suggestion".into(),
        root: workspace.cwd.clone(),
        cwd: workspace.cwd.clone(),
        home: workspace.home.clone(),
    };
    let rules = RuleList {
        allow: suggestion.rules.clone(),
        ..RuleList::default()
    };
    let mut policy = policy.clone();
    policy.add(&source, &rules).ok()?;
    Some(policy)
}

/// Returns true if the name as a rule is about this tool and no other.
fn names_one_tool(tool: &str) -> bool {
    let of_a_server = |rest: &str| rest.split_once("__").is_some();
    !tool.contains('*') && tool.strip_prefix("mcp__").is_none_or(of_a_server)
}

/// Returns rules for these files, and for the directories that they are in.
fn path_rules(verb: &str, paths: &[PathBuf], workspace: &Workspace) -> Vec<Vec<String>> {
    let file = |path: &PathBuf| path_rule(verb, &workspace.lasting(path), "");
    let directory = |path: &PathBuf| {
        let directory = path.parent()?;
        may_be_whole(directory, workspace)
            .then(|| path_rule(verb, &workspace.lasting(directory), "/**"))
            .flatten()
    };
    let sets: [Option<Vec<String>>; 2] = [
        paths.iter().map(file).collect(),
        paths.iter().map(directory).collect(),
    ];
    let without_repeats = |mut rules: Vec<String>| {
        rules.dedup();
        rules
    };
    sets.into_iter().flatten().map(without_repeats).collect()
}

/// Returns the rule for a path; `None` if a pattern cannot name it alone.
fn path_rule(verb: &str, path: &Path, beneath: &str) -> Option<String> {
    let text = path.to_str()?;
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!' | '#');
    let plain = !text.contains(special)
        && !text.contains(char::is_control)
        && text.split('/').all(|part| part == part.trim());
    (plain && text.len() > 1).then(|| format!("{verb}(/{text}{beneath})"))
}

/// Returns true if a rule for all of a directory is not much more than what was asked: it is
/// below a root, or apart from the roots and the home directory, and not hidden.
fn may_be_whole(directory: &Path, workspace: &Workspace) -> bool {
    let hidden =
        |part: std::path::Component<'_>| part.as_os_str().to_string_lossy().starts_with('.');
    if let Some(root) = workspace.tops().find(|root| directory.starts_with(root)) {
        let inside = directory.strip_prefix(root).unwrap_or(directory);
        return inside.components().next().is_some() && !inside.components().any(hidden);
    }
    let kept: Vec<PathBuf> = workspace
        .tops()
        .map(Path::to_owned)
        .chain(workspace.home.clone())
        .collect();
    let deep = directory.components().count() > 2;
    let holds_kept = kept
        .iter()
        .any(|kept| is_beneath(kept, &[directory.to_owned()]));
    deep && !holds_kept && !directory.components().any(hidden)
}

#[cfg(test)]
mod tests;
