//! Why something could not be done with a worktree.

use std::io;
use std::path::PathBuf;

use tokio::task::JoinError;

use crate::git::GitError;

use super::parent::ParentError;
use super::words::name;

/// What git says if it meets a worktree that another git is just about to register: its `commondir`
/// is there, but empty. A moment later it is complete.
const HALF_MADE: &str = "/commondir: ";

/// Why something could not be done with a worktree. The texts are read by people and by models.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// No worktree can be made from this checkout.
    #[error(transparent)]
    Parent(#[from] ParentError),
    /// The user has not trusted the workspace.
    #[error(
        "this workspace is not trusted, so posse does not run git in it. Omit isolation, or let the \
         user run `posse trust`"
    )]
    Untrusted,
    /// A hook made it, and it is gone: git cannot make it again.
    #[error("the worktree {} that a hook made is gone", .0.display())]
    HookMadeGone(PathBuf),
    /// Its branch is all that names some commits.
    #[error("it has {0}")]
    BranchKeeps(String),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file or directory could not be used.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The directory of a new worktree, or a file that belongs to it, could not be written.
    #[error("the worktree could not be made: {0}. {advice}", advice = io_advice(.0))]
    NoPlace(#[source] io::Error),
    /// Git could not make it.
    #[error("the worktree could not be made: {0}. {advice}", advice = git_advice(.0))]
    NotMade(#[source] GitError),
    /// There is something else in its place.
    #[error(
        "{} already exists, where the worktree would be. Move it away, or omit isolation",
        name(.path)
    )]
    Occupied {
        /// Where it would be.
        path: PathBuf,
    },
    /// Git made it elsewhere.
    #[error("{} is not where git made the worktree. Omit isolation", name(.path))]
    Misplaced {
        /// Where it should be.
        path: PathBuf,
    },
    /// Uncommitted work of the parent could not be copied into it.
    #[error(
        "the uncommitted work in {} cannot be carried over: {source}. Commit it first, or leave out \
         what carries it",
        name(.top)
    )]
    NotCarried {
        /// The parent's checkout.
        top: PathBuf,
        /// What git said.
        source: GitError,
    },
    /// Uncommitted work that it was made with could not be copied into it again.
    #[error("the work that was carried over cannot be had again: {0}")]
    NotCarriedAgain(#[source] GitError),
    /// It could not be made, and what was begun could not be removed.
    #[error("{why}. What was begun could not be removed yet: {left}")]
    LeftBehind {
        /// Why it could not be made.
        why: Box<Self>,
        /// Why the rest could not be removed.
        left: Box<Self>,
    },
    /// The path is not that of a worktree of this posse.
    #[error("{} is not a worktree of this posse", name(.path))]
    NotOfThisPosse {
        /// The path.
        path: PathBuf,
    },
    /// The path is not that of a worktree of any posse.
    #[error("it is not a worktree of posse")]
    NotOfPosse,
    /// The path has no parent directory.
    #[error("it has no directory")]
    NoDirectory,
    /// Its directory is gone, or git does not know it any more.
    #[error("the worktree {} is gone, or git does not know it any more", name(.path))]
    NotThere {
        /// The worktree.
        path: PathBuf,
    },
    /// The worktree's agent is running.
    #[error("an agent works in it")]
    InUse,
    /// Somebody else has locked it.
    #[error("it is locked: {reason}")]
    Locked {
        /// The reason that they gave git.
        reason: String,
    },
    /// A process that is alive has it.
    #[error("another posse works in the worktree {}", name(.path))]
    Taken {
        /// The worktree.
        path: PathBuf,
    },
    /// It is not registered with git, and is not empty.
    #[error(
        "git does not know the worktree {} any more, and there are files in it. Move them away first",
        name(.path)
    )]
    Unregistered {
        /// The worktree.
        path: PathBuf,
    },
    /// Its directory is gone, and its registration has something that would be lost.
    #[error(
        "the directory of the worktree {} is gone, and git alone still has this of it: {lost}. Bring the \
         directory back, or save that first",
        name(.path)
    )]
    OnlyRegistered {
        /// The worktree.
        path: PathBuf,
        /// What would be lost.
        lost: String,
    },
    /// The thread that worked on it ended early.
    #[error("posse broke off: {0}")]
    BrokeOff(#[source] JoinError),
    /// A new worktree was taken a second time.
    #[error("the worktree was given away twice")]
    TakenTwice,
}

impl WorktreeError {
    /// Returns true if git met a worktree that another git had only half registered: the same call
    /// succeeds a moment later.
    pub(super) fn is_half_made(&self) -> bool {
        match self {
            Self::Git(error)
            | Self::NotMade(error)
            | Self::NotCarriedAgain(error)
            | Self::NotCarried { source: error, .. } => error.to_string().contains(HALF_MADE),
            Self::LeftBehind { why, left } => why.is_half_made() || left.is_half_made(),
            _ => false,
        }
    }
}

const FULL: &str = "The disk seems to be full: make room (`posse worktrees list` shows what others \
                    take), or omit isolation";
const NOT_ALLOWED: &str = "Let posse write there, or omit isolation";
const OTHERWISE: &str = "Fix that, or omit isolation";

fn io_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FULL,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => NOT_ALLOWED,
        _ => OTHERWISE,
    }
}

fn git_advice(error: &GitError) -> &'static str {
    match error {
        GitError::Refused { said, .. }
            if said.contains("No space left") || said.contains("unable to write") =>
        {
            FULL
        }
        GitError::Refused { said, .. } if said.contains("Permission denied") => NOT_ALLOWED,
        _ => OTHERWISE,
    }
}
