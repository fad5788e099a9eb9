//! What can go wrong, sorted by whom it concerns.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use posse_port::store::StoreError;
use rusqlite::ErrorCode;

use super::place::DatabasePlace;

/// Why something was not done.
pub(super) enum SqliteFailure {
    /// A refusal: it concerns one caller, and the transaction is as good as before.
    Refused(StoreError),
    /// The engine, or the file system below it: it concerns everybody in the transaction.
    Broken(SqliteCause),
}

impl SqliteFailure {
    /// A step that breaks a rule of the port.
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
            // Not the engine but a row of it: one that makes no sense concerns whoever asked for
            // it.
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

/// What broke. Everybody whose step was in the same batch gets a copy.
#[derive(Clone, Debug)]
pub(super) struct SqliteCause {
    error: Arc<dyn Error + Send + Sync>,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// There is no space left.
    Full,
    /// Reading or writing failed, and SQLite does not say why.
    Io,
    /// Something that a person can mend.
    Known(Trouble),
    Other,
}

/// Why a store's file cannot be used, where that is known: each wants something else to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is another program's database.
    Foreign,
    /// It is no database.
    NoDatabase,
    /// The database is damaged.
    Damaged,
    /// It can be read only.
    ReadOnly,
    /// This user may not.
    Denied,
    /// Another process has held it up for too long; the error's text says which, and what to do.
    HeldUp,
}

/// Returns what is wrong with a store's file, if an error says so.
pub fn trouble(error: &StoreError) -> Option<Trouble> {
    let StoreError::Engine { source, .. } = error else {
        return None;
    };
    match source.downcast_ref::<SqliteCause>()?.what {
        What::Known(trouble) => Some(trouble),
        What::Full | What::Io | What::Other => None,
    }
}

/// Why a database is not opened.
#[derive(Debug)]
struct Foreign;

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is a database, but not a posse store")
    }
}

impl Error for Foreign {}

impl SqliteCause {
    /// It is another program's database.
    pub(super) fn foreign() -> Self {
        Self {
            error: Arc::new(Foreign),
            what: What::Known(Trouble::Foreign),
        }
    }

    pub(super) fn at(&self, place: &DatabasePlace) -> StoreError {
        let mut cause = self.clone();
        // Of a file that may not be read it only says that it cannot be opened.
        if self.what == What::Io && place.is_denied() {
            cause.what = What::Known(Trouble::Denied);
        }
        let source = Box::new(cause);
        // SQLite says "full" when a write found no space; of a failed sync or of its shared memory
        // it only says that it failed.
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
            // The turnstile's: nothing else here waits with an end.
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
