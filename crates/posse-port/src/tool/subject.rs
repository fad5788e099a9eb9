//! What a call touches, and what the disk has there.

use std::path::PathBuf;

use posse_protocol::QuestionKind;

use crate::confinement::Tier;

/// What a call touches, in the terms of permission rules. Paths are absolute and without `.` or
/// `..`; for links, both the named path and its target are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Nothing that a rule could match.
    Nothing,
    /// Reads these paths.
    Reads(Vec<PathBuf>),
    /// Changes these paths.
    Edits(Vec<PathBuf>),
    /// Runs a shell command.
    Runs {
        /// The command.
        command: String,
        /// What the disk had at the paths that it names, when it was judged.
        disk: CommandDisk,
        /// The sandbox that it would run in.
        tier: Tier,
        /// True if that holds it to what its agent may do unasked, whatever it does.
        is_held: bool,
        /// True if it is to run outside the sandbox.
        outside: bool,
    },
    /// Fetches from a host.
    Fetches {
        /// The host's name.
        host: String,
    },
    /// A command connects to a host.
    Connects {
        /// The host's name in small letters, or its address.
        host: String,
        /// The port.
        port: u16,
    },
    /// Starts an agent.
    Starts {
        /// The agent's type.
        agent: String,
    },
    /// Follows a skill.
    Follows {
        /// The skill's name.
        skill: String,
    },
    /// Asks a person, whatever the rules allow. With [`QuestionKind::Permission`] the call runs once
    /// it is allowed; any other question is answered without a run: the answer is the result.
    Asks(QuestionKind),
}

impl Subject {
    /// Returns a shell command of which nothing is known but its words.
    pub fn runs(command: impl Into<String>) -> Self {
        Self::Runs {
            command: command.into(),
            disk: CommandDisk::default(),
            tier: Tier::C,
            is_held: false,
            outside: false,
        }
    }
}

/// What the disk has at the paths that a command names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandDisk {
    /// Paths that are more than their text says, sorted by their names.
    pub leads: Vec<PathLead>,
    /// True if the command names more paths than were looked at.
    pub is_cut: bool,
    /// True if git runs nothing of the repository while it only reads there.
    pub has_plain_git: bool,
}

/// A path that is more than its text says: links lead elsewhere, a file has other names, or it is a
/// directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathLead {
    /// The path as it is named, absolute and with its `.` and `..`.
    pub named: PathBuf,
    /// Where it leads.
    pub real: PathBuf,
    /// What is there.
    pub kind: LeadKind,
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeadKind {
    /// A directory.
    Directory,
    /// A file that has other names, too: hard links.
    SharedFile,
    /// Anything else, or nothing.
    Other,
}
