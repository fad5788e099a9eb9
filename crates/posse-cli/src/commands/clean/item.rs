//! A thing that posse has left.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::assemble::maintenance::Unused;
use crate::assemble::own_worktrees::{FoundBranch, FoundWorktree};
use crate::output::time::{age, now_ms};
use crate::output::{count, size, tame};
use crate::present::sessions::short;

/// What there is.
pub(super) enum LeftThing {
    Worktree(FoundWorktree),
    Branch(FoundBranch),
    /// A session with its agents, forks and teams.
    Session(Unused),
    /// What the background runs of a session have printed, and its caches.
    Output(PathBuf),
    /// A file that a process was writing when it died.
    File(PathBuf),
}

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It would be removed.
    Goes,
    Removed,
    /// It is not removed, for a reason.
    Kept(String),
    /// It could not be removed.
    Failed(String),
}

/// A thing that posse has left, and what becomes of it.
pub(super) struct LeftItem {
    pub(super) thing: LeftThing,
    pub(super) bytes: u64,
    pub(super) outcome: Outcome,
}

impl LeftItem {
    /// Returns a thing that stays if there is a reason, and goes otherwise.
    pub(super) fn new(thing: LeftThing, bytes: u64, kept: Option<String>) -> Self {
        let outcome = kept.map_or(Outcome::Goes, Outcome::Kept);
        Self {
            thing,
            bytes,
            outcome,
        }
    }

    pub(super) fn goes(&self) -> bool {
        self.outcome == Outcome::Goes
    }

    fn kind(&self) -> &'static str {
        match self.thing {
            LeftThing::Worktree(_) => "worktree",
            LeftThing::Branch(_) => "branch",
            LeftThing::Session(_) => "session",
            LeftThing::Output(_) => "output",
            LeftThing::File(_) => "file",
        }
    }

    /// Returns what it is, for people.
    pub(super) fn what(&self) -> String {
        let what = match &self.thing {
            LeftThing::Worktree(found) => found.path.display().to_string(),
            LeftThing::Branch(found) => {
                format!("{} of {}", found.name, found.repository.display())
            }
            LeftThing::Session(unused) => {
                let old = age(now_ms().saturating_sub(unused.used_ms));
                let agents = count(unused.agents as usize, "agent");
                let place = unused.cwd.as_ref();
                let place = place.map(|cwd| format!(", in {}", cwd.display()));
                let id = short(unused.id.into());
                format!("{id} ({agents}, {old} old{})", place.unwrap_or_default())
            }
            LeftThing::Output(path) | LeftThing::File(path) => path.display().to_string(),
        };
        tame(&what)
    }

    /// Returns its row in a list, with the reason if it stays.
    pub(super) fn row(&self) -> Vec<String> {
        let what = match &self.outcome {
            // The reason first: a narrow terminal cuts the end off.
            Outcome::Kept(why) => format!("{}: {}", tame(why), self.what()),
            _ => self.what(),
        };
        let bytes = match self.thing {
            LeftThing::Branch(_) => "–".to_owned(),
            _ => size(self.bytes),
        };
        vec![self.kind().to_owned(), bytes, what]
    }

    /// Returns it for programs.
    pub(super) fn object(&self) -> Value {
        let (id, path, branch) = match &self.thing {
            LeftThing::Worktree(found) => (
                Some(found.agent.to_string()),
                Some(&found.path),
                found.branch.as_ref(),
            ),
            LeftThing::Branch(found) => (
                Some(found.agent.to_string()),
                Some(&found.repository),
                Some(&found.name),
            ),
            LeftThing::Session(unused) => (Some(unused.id.to_string()), unused.cwd.as_ref(), None),
            LeftThing::Output(path) | LeftThing::File(path) => (None, Some(path), None),
        };
        let (outcome, why) = match &self.outcome {
            Outcome::Goes => ("goes", None),
            Outcome::Removed => ("removed", None),
            Outcome::Kept(why) => ("kept", Some(why)),
            Outcome::Failed(why) => ("failed", Some(why)),
        };
        json!({
            "kind": self.kind(), "id": id, "path": path.map(|path| path.to_string_lossy()), "branch": branch,
            "bytes": self.bytes, "outcome": outcome, "why": why,
        })
    }
}
