//! Errors, sorted by whom they concern and what helps against them.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use deadpool_postgres::PoolError;
use posse_port::store::StoreError;
use tokio_postgres::error::SqlState;

/// Why a job was not done.
#[derive(Debug)]
pub(super) enum PgFailure {
    /// The job was refused, which concerns only its caller.
    Refused(StoreError),
    /// The server or the connection failed, which concerns every job in the transaction.
    Broken(PgCause),
}

impl PgFailure {
    /// Returns the error for a step that breaks a rule of the port.
    pub(super) fn bad_step(what: impl Into<String>) -> Self {
        Self::Refused(StoreError::BadStep(what.into()))
    }

    /// Returns the error for a row that cannot be interpreted: the data are wrong, not the
    /// server.
    pub(super) fn senseless(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Refused(StoreError::Engine {
            place: "a row of it".into(),
            source: error.into(),
        })
    }

    /// Returns what may help against the failure.
    pub(super) fn remedy(&self) -> Remedy {
        match self {
            Self::Refused(_) => Remedy::None,
            Self::Broken(cause) => cause.remedy,
        }
    }

    /// Returns the error of the port; `place` is the server's name for people.
    pub(super) fn at(self, place: &str) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Broken(cause) => cause.at(place),
        }
    }
}

/// What may help against a failure of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Another connection, perhaps to another server. It is unknown if a transaction that was
    /// under way was committed.
    Reconnect,
    /// The same again in a moment: everything was rolled back.
    Again,
    /// Nothing that a program could do.
    None,
}

/// Returns what helps against an error of the server.
fn remedy(state: &SqlState) -> Remedy {
    // The server is shutting down, starting up, or has become a read-only standby.
    const AWAY: [SqlState; 6] = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_SESSION_TIMEOUT,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    const CONTENDED: [SqlState; 3] = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
    ];
    let class = |class: &str| state.code().starts_with(class);
    if class("08") || AWAY.contains(state) {
        Remedy::Reconnect
    } else if class("53") || CONTENDED.contains(state) {
        Remedy::Again
    } else {
        Remedy::None
    }
}

/// Returns what helps against an error that did not come from the server itself.
fn remedy_of_way(error: &tokio_postgres::Error) -> Remedy {
    match error
        .source()
        .map(|cause| cause.downcast_ref::<io::Error>())
    {
        // Closed, timed out, or an unexpected answer.
        None => Remedy::Reconnect,
        // A certificate or message that cannot be trusted or parsed will not be the next time
        // either.
        Some(Some(cause))
            if !matches!(
                cause.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
            ) =>
        {
            Remedy::Reconnect
        }
        Some(_) => Remedy::None,
    }
}

impl From<tokio_postgres::Error> for PgFailure {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(state) = error.code() else {
            let remedy = remedy_of_way(&error);
            return Self::Broken(PgCause {
                error: Arc::new(error),
                remedy,
                full: false,
            });
        };
        if of_the_step(state) {
            return Self::bad_step(
                error
                    .as_db_error()
                    .map_or_else(|| error.to_string(), ToString::to_string),
            );
        }
        let (remedy, full) = (remedy(state), *state == SqlState::DISK_FULL);
        Self::Broken(PgCause {
            error: Arc::new(error),
            remedy,
            full,
        })
    }
}

/// Returns true if an error comes from what was to be written: a value that does not fit, a
/// constraint, a limit.
fn of_the_step(state: &SqlState) -> bool {
    ["22", "23", "54"]
        .iter()
        .any(|class| state.code().starts_with(class))
}

impl From<io::Error> for PgFailure {
    fn from(error: io::Error) -> Self {
        Self::Broken(PgCause::new(error, Remedy::None))
    }
}

impl From<PoolError> for PgFailure {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            PoolError::Timeout(_) => Self::Broken(PgCause::new(error, Remedy::Again)),
            error => Self::Broken(PgCause::new(error, Remedy::None)),
        }
    }
}

/// What failed. Everyone whose job was in the same batch gets a copy.
#[derive(Clone, Debug)]
pub(super) struct PgCause {
    error: Arc<dyn Error + Send + Sync>,
    remedy: Remedy,
    /// The server has no disk space left.
    full: bool,
}

impl PgCause {
    pub(super) fn new(error: impl Into<Box<dyn Error + Send + Sync>>, remedy: Remedy) -> Self {
        Self {
            error: error.into().into(),
            remedy,
            full: false,
        }
    }

    /// Returns the driver's error, if there is one.
    pub(super) fn driver(&self) -> Option<&tokio_postgres::Error> {
        self.error.downcast_ref()
    }

    pub(super) fn at(self, place: &str) -> StoreError {
        let (full, place, source) = (self.full, place.to_owned(), Box::new(self));
        match full {
            true => StoreError::Full { place, source },
            false => StoreError::Engine { place, source },
        }
    }
}

impl fmt::Display for PgCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The driver's own text is only "db error"; its source has what the server said.
        match self
            .error
            .source()
            .and_then(|cause| cause.downcast_ref::<tokio_postgres::error::DbError>())
        {
            Some(said) => f.write_str(said.message()),
            None => self.error.fmt(f),
        }
    }
}

impl Error for PgCause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let cause = self.error.source()?;
        // `Display` already shows it, so that it would appear twice in a chain of causes.
        if cause.is::<tokio_postgres::error::DbError>() {
            None
        } else {
            Some(cause)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps_is_known_by_the_code() {
        let of = |codes: &[&str]| {
            codes
                .iter()
                .map(|code| remedy(&SqlState::from_code(code)))
                .collect::<Vec<_>>()
        };
        let away = [
            "08006", "08P01", "57P01", "57P02", "57P03", "57P05", "25P03", "25006",
        ];
        assert_eq!(of(&away), [Remedy::Reconnect; 8]);
        assert_eq!(
            of(&["40001", "40P01", "55P03", "53300", "53100", "53200"]),
            [Remedy::Again; 6]
        );
        assert_eq!(
            of(&["42P01", "28P01", "3D000", "57014", "XX001", "PO001"]),
            [Remedy::None; 6]
        );
        assert!(
            ["22003", "23505", "54000"]
                .iter()
                .all(|code| of_the_step(&SqlState::from_code(code)))
        );
        assert!(!of_the_step(&SqlState::T_R_SERIALIZATION_FAILURE));
    }

    #[test]
    fn nobody_at_the_other_end_is_a_reason_to_try_again() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let connect =
            |url: String| runtime.block_on(tokio_postgres::connect(&url, tokio_postgres::NoTls));
        let refused = connect(format!("host=127.0.0.1 port={free} user=a"))
            .err()
            .unwrap();
        let failure = PgFailure::from(refused);
        assert_eq!(failure.remedy(), Remedy::Reconnect);
        let StoreError::Engine { place, source } = failure.at("postgres://somewhere") else {
            panic!()
        };
        assert_eq!(
            (place.as_str(), source.to_string().as_str()),
            ("postgres://somewhere", "error connecting to server")
        );
        assert!(
            source.source().unwrap().to_string().contains("refused"),
            "{source:?}"
        );
        assert_eq!(
            PgFailure::from(connect("host=".into()).err().unwrap()).remedy(),
            Remedy::None
        );
    }
}
