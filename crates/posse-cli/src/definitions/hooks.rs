//! Hooks in the front matter of agent types and skills.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_permission::Source;
use posse_runtime::hook::{FileProblem, Hook, HookFile, HookLayer, PathStep, read};
use serde_json::Value;

use super::{DefinitionSource, Remark, Severity, scan};
use crate::config::search_paths::SearchPaths;

/// Front matter that declares hooks.
pub(super) struct HookFront<'a> {
    /// An agent type or a skill.
    pub(super) layer: HookLayer,
    pub(super) path: &'a Path,
    /// The whole file.
    pub(super) text: &'a str,
    pub(super) source: DefinitionSource,
}

impl HookFront<'_> {
    /// Returns the hooks, and remarks about them. A repository's are here only if the person has
    /// accepted the file.
    pub(super) fn read(
        &self,
        hooks: Option<&Value>,
        places: &SearchPaths,
    ) -> (Vec<Arc<Hook>>, Vec<Remark>) {
        let Some(hooks) = hooks else {
            return Default::default();
        };
        let file = HookFile {
            layer: self.layer,
            path: self.path.to_owned(),
            of_repository: self.source == DefinitionSource::Project,
            source: Source {
                name: self.path.display().to_string(),
                root: places.cwd.clone(),
                cwd: places.cwd.clone(),
                home: places.home.clone(),
            },
        };
        let found = read(hooks, &file);
        let known = found.hooks.into_iter().map(|(mut hook, path)| {
            hook.origin.line = self.line(&path);
            // The administrator's count whatever others may not have.
            if self.source == DefinitionSource::Managed {
                hook.origin.layer = HookLayer::Managed;
            }
            Arc::new(hook)
        });
        let remark = |it: FileProblem| Remark {
            weight: match it.what.is_note() {
                true => Severity::Note,
                false => Severity::Warning,
            },
            path: PathBuf::from(self.path),
            line: self.line(&it.path),
            reason: it.what.to_string(),
        };
        (
            known.collect(),
            found.problems.into_iter().map(remark).collect(),
        )
    }

    /// Returns the line of a place below `hooks`; none without a file.
    fn line(&self, path: &[PathStep]) -> Option<usize> {
        (!self.text.is_empty()).then(|| line_of(self.text, path))
    }
}

/// Returns the line of a place below `hooks`, from 1. In lists and objects that are written on one
/// line, it is that line.
fn line_of(text: &str, path: &[PathStep]) -> usize {
    let mut at = scan::line_of(text, "hooks") - 1;
    let mut lines: Vec<&str> = text.lines().collect();
    let end = lines
        .iter()
        .skip(at)
        .position(|line| line.trim_end() == "---");
    lines.truncate(end.map_or(lines.len(), |end| at + end));
    // The first key of a value in a list is on the line of its dash.
    let mut next = at + 1;
    for step in path {
        let found = match step {
            PathStep::Key(key) => (next..lines.len()).find(|line| has_key(lines[*line], key)),
            PathStep::Index(index) => item(&lines, at + 1, *index),
        };
        let Some(found) = found else { break };
        at = found;
        next = match step {
            PathStep::Key(_) => at + 1,
            PathStep::Index(_) => at,
        };
    }
    at + 1
}

/// Returns true if a line begins with a key, maybe behind the dash of a list.
fn has_key(line: &str, key: &str) -> bool {
    let line = line.trim_start().trim_start_matches("- ").trim_start();
    let rest = line.trim_start_matches(['"', '\'']).strip_prefix(key);
    rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
}

/// Returns the line of a value in the list that begins at a line or below.
fn item(lines: &[&str], from: usize, index: usize) -> Option<usize> {
    let dash = |line: &str| {
        let inside = line.trim_start();
        inside.starts_with('-').then(|| line.len() - inside.len())
    };
    let first = (from..lines.len()).find(|at| !lines[*at].trim().is_empty())?;
    let depth = dash(lines[first])?;
    (first..lines.len())
        .filter(|at| dash(lines[*at]) == Some(depth))
        .nth(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_front_matter_are_found() {
        let text = "---\nname: a\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: one\n        - command: two\n          timout: 3\n  Stop: [{hooks: [{type: command}]}]\n---\nhooks:\n";
        let check = |path: &[&str], line| {
            let step = |word: &&str| match word.parse() {
                Ok(index) => PathStep::Index(index),
                Err(_) => PathStep::Key((*word).to_owned()),
            };
            let steps: Vec<PathStep> = path.iter().map(step).collect();
            assert_eq!(line_of(text, &steps), line, "{path:?}");
        };
        check(&[], 3);
        check(&["PreToolUse"], 4);
        check(&["PreToolUse", "0", "matcher"], 5);
        check(&["PreToolUse", "0", "hooks", "0"], 7);
        check(&["PreToolUse", "0", "hooks", "1"], 9);
        check(&["PreToolUse", "0", "hooks", "1", "timout"], 10);
        check(&["Stop", "0", "hooks", "0"], 11);
    }
}
