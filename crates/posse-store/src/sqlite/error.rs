//! What can go wrong, sorted by whom it concerns.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use posse_runtime::port::store::StoreError;
use rusqlite::ErrorCode;

use super::place::Place;

/// Why something was not done.
pub(super) enum Failure {
    /// A refusal: it concerns one caller, and the transaction is as good as before.
    Refused(StoreError),
    /// The engine, or the file system below it: it concerns everybody in the transaction.
    Broken(Cause),
}

impl Failure {
    /// A step that breaks a rule of the port.
    pub(super) fn bad_step(what: impl Into<String>) -> Self {
        Self::Refused(StoreError::BadStep(what.into()))
    }

    /// The error of the port.
    pub(super) fn at(self, place: &Place) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Broken(cause) => cause.at(place),
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig) => Self::bad_step(error.to_string()),
            // Not the engine but a row of it: one that makes no sense concerns whoever asked for it.
            None => {
                Self::Refused(StoreError::Engine { place: "a row of it".into(), source: Box::new(error) })
            }
            _ => Self::Broken(error.into()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.into())
    }
}

/// What broke. Everybody whose step was in the same batch gets a copy.
#[derive(Clone, Debug)]
pub(super) struct Cause {
    error: Arc<dyn Error + Send + Sync>,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// There is no space left.
    Full,
    /// Reading or writing failed, and SQLite does not say why.
    Io,
    Other,
}

impl Cause {
    pub(super) fn at(&self, place: &Place) -> StoreError {
        let source = Box::new(self.clone());
        // SQLite says "full" when a write found no space; of a failed sync or of its shared memory it
        // only says that it failed.
        let full = self.what == What::Full || (self.what == What::Io && place.has_no_space());
        let place = place.to_string();
        match full {
            true => StoreError::Full { place, source },
            false => StoreError::Engine { place, source },
        }
    }
}

impl From<rusqlite::Error> for Cause {
    fn from(error: rusqlite::Error) -> Self {
        let what = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => What::Full,
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => What::Io,
            _ => What::Other,
        };
        Self { error: Arc::new(error), what }
    }
}

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Self {
        let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        Self { error: Arc::new(error), what: if full { What::Full } else { What::Other } }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}
