//! The drafts of a session's agents, so that not even kill -9 loses one.
//!
//! A file is a JSON object with the draft for each agent that has one; that of the main agent is
//! called `main`. A session that has begun has a file of its own. Before that it belongs to its process and
//! directory: one that a dead process left is taken up by the next new session there.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use posse_protocol::AgentId;
use rustix::fs::fstat;
use rustix::process::{Pid, getpid, test_kill_process};
use serde_json::{Map, Value};

use super::prompt_file::directory_name;
use crate::config::environment::posse_home;
use crate::config::replace::{Durability, FileMode, replace};

/// What the main agent is called in a file.
const MAIN: &str = "main";

/// The drafts for agents; none stands for the main agent.
type Drafts = Vec<(Option<AgentId>, String)>;

/// The file with the drafts.
pub(super) struct DraftFile {
    path: Option<PathBuf>,
    /// What is in it.
    kept: Drafts,
}

impl DraftFile {
    /// Returns the file of a session that has begun.
    pub(super) fn of(session: AgentId) -> Self {
        Self::at(directory().map(|drafts| drafts.join(session.to_string())))
    }

    /// Returns the file of a new session in a directory, with what a dead process left there.
    pub(super) fn of_new(cwd: &Path) -> Self {
        let Some(drafts) = directory() else {
            return Self::at(None);
        };
        let prefix = format!("new-{}-", directory_name(cwd));
        let path = drafts.join(format!("{prefix}{}", getpid().as_raw_nonzero()));
        let files = std::fs::read_dir(&drafts).into_iter().flatten().flatten();
        let left = files.map(|file| file.path()).find(|file| {
            let name = file.file_name().and_then(|name| name.to_str());
            let pid = name.and_then(|name| name.strip_prefix(&prefix)?.parse().ok());
            let pid = pid.and_then(Pid::from_raw);
            pid.is_some_and(|pid| test_kill_process(pid).is_err())
        });
        if let Some(left) = left {
            // Of two that find it, one gets it.
            let _ = std::fs::rename(left, &path);
        }
        Self::at(Some(path))
    }

    /// Returns the file of what is said to an agent of another process from this terminal: several
    /// people may watch it, each with a draft of their own.
    pub(super) fn of_viewer(agent: AgentId) -> Self {
        let terminal = fstat(io::stdin()).map_or(0, |terminal| terminal.st_rdev);
        Self::at(directory().map(|drafts| drafts.join(format!("{agent}-{terminal}"))))
    }

    fn at(path: Option<PathBuf>) -> Self {
        let mut file = Self {
            path,
            kept: Vec::new(),
        };
        let path = file.path.as_deref();
        let text = path.and_then(|path| std::fs::read_to_string(path).ok());
        file.kept = text.map_or_else(Vec::new, |text| read(&text));
        file
    }

    /// Returns the drafts that an earlier process left.
    pub(super) fn left(&self) -> Drafts {
        self.kept.clone()
    }

    /// The session has begun: from now on the draft is its own.
    pub(super) fn move_to(&mut self, session: AgentId) {
        let own = directory().map(|drafts| drafts.join(session.to_string()));
        if own == self.path {
            return;
        }
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
        self.kept.clear();
        self.path = own;
    }

    /// Returns the file in which the draft can be edited, in a directory that exists.
    pub(super) fn for_editor(&self) -> Option<PathBuf> {
        let path = self.path.as_deref()?;
        made(path).ok()?;
        Some(path.with_extension("md"))
    }

    /// Returns true if the drafts differ from what is kept.
    pub(super) fn is_old(&self, drafts: &Drafts) -> bool {
        self.kept != *drafts
    }

    /// Keeps drafts. A file that cannot be written costs only that.
    pub(super) fn keep(&mut self, drafts: Drafts) {
        let Some(path) = self.path.as_deref() else {
            return;
        };
        self.kept = drafts;
        if self.kept.is_empty() {
            let _ = std::fs::remove_file(path);
            return;
        }
        let _ = made(path);
        let text = written(&self.kept);
        let _ = replace(path, &text, FileMode::Private, Durability::Unsynced);
    }
}

/// Returns the content of a file with drafts.
fn written(drafts: &Drafts) -> String {
    let name = |agent: &Option<AgentId>| match agent {
        Some(agent) => agent.to_string(),
        None => MAIN.to_owned(),
    };
    let drafts = drafts.iter();
    let object: Map<String, Value> = drafts
        .map(|(agent, text)| (name(agent), text.as_str().into()))
        .collect();
    Value::Object(object).to_string()
}

/// Returns the drafts of a file. One that is no object is a draft itself, of an earlier version.
fn read(text: &str) -> Drafts {
    let Ok(object) = serde_json::from_str::<BTreeMap<String, String>>(text) else {
        return vec![(None, text.to_owned())];
    };
    let drafts = object.into_iter();
    drafts
        .filter_map(|(name, text)| match name.as_str() {
            MAIN => Some((None, text)),
            agent => Some((Some(agent.parse().ok()?), text)),
        })
        .collect()
}

/// Returns the directory of all drafts.
fn directory() -> Option<PathBuf> {
    posse_home().map(|home| home.join("drafts"))
}

/// Makes the directory of a file.
fn made(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) => DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_of_all_agents_are_kept() {
        let agent: AgentId = uuid::Uuid::from_u128(7).into();
        let mut drafts = vec![
            (None, "half \"a\"\nthought".to_owned()),
            (Some(agent), "look".to_owned()),
        ];
        drafts.sort();
        let mut back = read(&written(&drafts));
        back.sort();
        assert_eq!(back, drafts);
        assert_eq!(read("plain {"), [(None, "plain {".to_owned())]);
    }
}
