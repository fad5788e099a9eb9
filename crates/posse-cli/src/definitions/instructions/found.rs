//! What became of a memory file.

use std::path::PathBuf;

use posse_runtime::definition::instructions::Instruction;

/// A memory file that exists, or that another one imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    pub(crate) reason: Reason,
    /// Its size in bytes, if it was read.
    pub(crate) bytes: Option<u64>,
    pub(crate) fate: Fate,
    /// The instructions, if the file is used.
    pub(crate) used: Option<Instruction>,
}

/// Why a file is a memory file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is the administrator's.
    Managed,
    /// It is the user's, for all projects.
    User,
    /// It is the project's.
    Project,
    /// It is the user's, for this project.
    Local,
    /// It is a rule.
    Rule,
    /// This file imports it.
    ImportOf(PathBuf),
}

impl Reason {
    /// Returns the reason in one word.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Rule => "rule",
            Self::ImportOf(_) => "import",
        }
    }
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is used.
    Used,
    /// Nobody has trusted it: models are told what it says, but not as instructions.
    Information,
    /// Only this many bytes of it are used.
    Cut(usize),
    /// There is no room for it.
    LeftOut,
    /// It says the same as this file.
    SameAs(PathBuf),
    /// It has nothing but imports, which are used in its place.
    OnlyImports,
    /// It may not be read, or cannot be.
    Refused(String),
    /// It does not exist.
    Missing,
}
