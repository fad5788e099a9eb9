//! Memory files: instructions that people wrote for agents, such as `CLAUDE.md`. Pure: posse-cli
//! finds and reads the files.

pub mod imports;
mod limit;
pub mod rule;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use limit::{Kept, MemoryRoom, PER_FILE};
use posse_port::tool::Workspace;
use posse_protocol::MemoryScope;
use rule::PathGlobs;

use crate::definition::catalogue::{Catalogue, Listed};

/// The instructions in one memory file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The file.
    pub path: PathBuf,
    /// Its text, as far as it is used.
    pub text: String,
    /// The files it is about; none if it applies from the start.
    pub globs: Option<PathGlobs>,
    /// Whose words they are for a model.
    pub standing: Standing,
}

/// Whose words a memory file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Those of people whom the user trusts: instructions.
    #[default]
    Instructions,
    /// Those of a repository that nobody has trusted: told as information, never in the system
    /// prompt.
    Information,
}

/// Memory files of a session. Its agents share the texts.
#[derive(Clone, Debug)]
pub struct SessionInstructions {
    /// The files as they are now.
    pub files: Arc<Catalogue<Instruction>>,
    /// The files that new agents begin with: those of the session's start, so that all have the
    /// same system prompt.
    pub at_start: Listed<Instruction>,
    /// Finds the files about what an agent reads or edits.
    pub finder: Arc<dyn InstructionFinder>,
    /// Adds a person's notes to them.
    pub keeper: Arc<dyn InstructionKeeper>,
}

/// Finds memory files about a file.
pub trait InstructionFinder: Send + Sync + std::fmt::Debug {
    /// Returns the rules about a file, and the memory files in the directories on the way to it.
    /// Blocks.
    fn about(&self, path: &Path, workspace: &Workspace) -> Vec<Instruction>;
}

/// Adds notes to memory files.
pub trait InstructionKeeper: Send + Sync + std::fmt::Debug {
    /// Adds a line to a file, and returns the file. Blocks.
    fn add(&self, line: &str, scope: MemoryScope) -> Result<PathBuf, NoteError>;
}

/// Why a note was not added.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// It says nothing.
    #[error("it is empty")]
    Empty,
    /// It is too long for a line.
    #[error("it is too long; edit the memory file")]
    TooLong,
    /// Agents would not be told.
    #[error("no memory file of the kind `{}` is read here", .0.as_str())]
    NotRead(MemoryScope),
    /// The file is a link that leads out of its directory.
    #[error("{} is a link that leads out of its directory", .0.display())]
    Elsewhere(PathBuf),
    /// The file cannot be written.
    #[error("{} cannot be written", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The write came to no end.
    #[error("posse failed while it was written")]
    Lost,
}
