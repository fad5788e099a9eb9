//! Errors, sorted by whom they concern.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use posse_port::store::StoreError;
use rusqlite::ErrorCode;

use super::place::DatabasePlace;

/// Why a job was not done.
pub(super) enum SqliteFailure {
    /// The job was refused, which concerns only its caller. The transaction is unaffected.
    Refused(StoreError),
    /// The engine or the file system failed, which concerns every job in the transaction.
    Broken(SqliteCause),
}

impl SqliteFailure {
    /// Returns the error for a step that breaks a rule of the port.
    pub(super) fn bad_step(what: impl Into<String>) -> Self {
        Self::Refused(StoreError::BadStep(what.into()))
    }

    /// Returns the error of the port.
    pub(super) fn at(self, place: &DatabasePlace) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Broken(cause) => cause.at(place),
        }
    }
}

impl From<rusqlite::Error> for SqliteFailure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig) => {
                Self::bad_step(error.to_string())
            }
            // Without a code the error is about a value, not about the engine: it concerns only
            // the caller who asked for that row.
            None => Self::Refused(StoreError::Engine {
                place: "a row of it".into(),
                source: Box::new(error),
            }),
            _ => Self::Broken(error.into()),
        }
    }
}

impl From<io::Error> for SqliteFailure {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.into())
    }
}

/// What failed. Everyone whose step was in the same batch gets a copy.
#[derive(Clone, Debug)]
pub(super) struct SqliteCause {
    error: Arc<dyn Error + Send + Sync>,
    what: What,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// The disk has no space left.
    Full,
    /// Reading or writing failed, and SQLite does not say why.
    Io,
    /// Something that a person can repair.
    Known(Trouble),
    Other,
}

/// Why a store's file cannot be used. Each reason needs a different action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is another program's database.
    Foreign,
    /// It is not a database.
    NoDatabase,
    /// The database is damaged.
    Damaged,
    /// It cannot be written to.
    ReadOnly,
    /// This user lacks permission.
    Denied,
    /// Another process has blocked it for too long; the error's text says which one, and what to
    /// do.
    HeldUp,
}

/// Returns what is wrong with a store's file, if the error tells.
pub fn trouble(error: &StoreError) -> Option<Trouble> {
    let StoreError::Engine { source, .. } = error else {
        return None;
    };
    match source.downcast_ref::<SqliteCause>()?.what {
        What::Known(trouble) => Some(trouble),
        What::Full | What::Io | What::Other => None,
    }
}

/// The error for a database of another program.
#[derive(Debug)]
struct Foreign;

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is a database, but not a posse store")
    }
}

impl Error for Foreign {}

impl SqliteCause {
    /// Returns the error for a database of another program.
    pub(super) fn foreign() -> Self {
        Self {
            error: Arc::new(Foreign),
            what: What::Known(Trouble::Foreign),
        }
    }

    pub(super) fn at(&self, place: &DatabasePlace) -> StoreError {
        let mut cause = self.clone();
        // For a file without read permission SQLite only says that it cannot be opened.
        if self.what == What::Io && place.is_denied() {
            cause.what = What::Known(Trouble::Denied);
        }
        let source = Box::new(cause);
        // SQLite says "full" only for a failed write; for a failed sync or for its shared memory
        // it reports a general I/O error.
        let full = self.what == What::Full || (self.what == What::Io && place.has_no_space());
        let place = place.to_string();
        match full {
            true => StoreError::Full { place, source },
            false => StoreError::Engine { place, source },
        }
    }
}

impl From<rusqlite::Error> for SqliteCause {
    fn from(error: rusqlite::Error) -> Self {
        let what = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => What::Full,
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => What::Io,
            Some(ErrorCode::NotADatabase) => What::Known(Trouble::NoDatabase),
            Some(ErrorCode::DatabaseCorrupt) => What::Known(Trouble::Damaged),
            Some(ErrorCode::ReadOnly) => What::Known(Trouble::ReadOnly),
            Some(ErrorCode::PermissionDenied) => What::Known(Trouble::Denied),
            _ => What::Other,
        };
        Self {
            error: Arc::new(error),
            what,
        }
    }
}

impl From<io::Error> for SqliteCause {
    fn from(error: io::Error) -> Self {
        let what = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => What::Full,
            io::ErrorKind::PermissionDenied => What::Known(Trouble::Denied),
            io::ErrorKind::ReadOnlyFilesystem => What::Known(Trouble::ReadOnly),
            // Only the turnstile waits with a time limit.
            io::ErrorKind::TimedOut => What::Known(Trouble::HeldUp),
            _ => What::Other,
        };
        Self {
            error: Arc::new(error),
            what,
        }
    }
}

impl fmt::Display for SqliteCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for SqliteCause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn causes_are_told_apart() {
        let place = DatabasePlace::existing(Path::new("/nowhere/posse.db"));
        let of = |cause: SqliteCause| trouble(&cause.at(&place));
        let engine =
            |code| of(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None).into());
        assert_eq!(
            engine(rusqlite::ffi::SQLITE_CORRUPT),
            Some(Trouble::Damaged)
        );
        assert_eq!(
            engine(rusqlite::ffi::SQLITE_NOTADB),
            Some(Trouble::NoDatabase)
        );
        assert_eq!(
            engine(rusqlite::ffi::SQLITE_READONLY),
            Some(Trouble::ReadOnly)
        );
        assert_eq!(engine(rusqlite::ffi::SQLITE_CANTOPEN), None);
        let system = |kind: io::ErrorKind| of(io::Error::from(kind).into());
        assert_eq!(
            system(io::ErrorKind::PermissionDenied),
            Some(Trouble::Denied)
        );
        assert_eq!(system(io::ErrorKind::TimedOut), Some(Trouble::HeldUp));
        assert_eq!(of(SqliteCause::foreign()), Some(Trouble::Foreign));
    }
}
