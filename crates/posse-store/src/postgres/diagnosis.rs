//! Why a server cannot be used, as far as a person can do something about it.

use std::error::Error as _;
use std::io;

use posse_port::store::StoreError;
use tokio_postgres::error::SqlState;

use super::error::PgCause;

/// Why a server cannot be used, where that is known: each wants something else to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTrouble {
    /// Nobody answers there.
    Unreachable,
    /// There is no host of this name.
    UnknownHost,
    /// The password is missing or wrong, or this user may not come in at all.
    Password,
    /// There is no such database.
    NoDatabase,
    /// It cannot be spoken to in secret.
    Tls,
    /// This user may not do that there.
    Forbidden,
    /// The address itself is wrong; the error's text says how.
    Address,
    /// Its tables are not for this posse; the error's text says what to do.
    Older,
    /// Something else.
    Other,
}

/// Returns what is wrong with a server, if an error is about one.
pub fn server_trouble(error: &StoreError) -> Option<ServerTrouble> {
    let StoreError::Engine { place, source } = error else {
        return None;
    };
    if !place.starts_with("postgres") {
        return None;
    }
    if let Some(cause) = source.downcast_ref::<PgCause>() {
        return Some(cause.driver().map_or(ServerTrouble::Other, said));
    }
    match source.downcast_ref::<io::Error>() {
        Some(_) => Some(ServerTrouble::Address),
        None => Some(ServerTrouble::Older),
    }
}

/// Returns what the driver's error means for people.
fn said(error: &tokio_postgres::Error) -> ServerTrouble {
    if let Some(state) = error.code() {
        return match *state {
            SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                ServerTrouble::Password
            }
            SqlState::INVALID_CATALOG_NAME => ServerTrouble::NoDatabase,
            SqlState::INSUFFICIENT_PRIVILEGE => ServerTrouble::Forbidden,
            _ => ServerTrouble::Other,
        };
    }
    // The driver tells its own kinds apart by words alone.
    let words = error.to_string();
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    if words.contains("TLS") || cause.contains("TLS") {
        ServerTrouble::Tls
    } else if cause.contains("password") || words.contains("authentication") {
        ServerTrouble::Password
    } else if cause.contains("lookup address") {
        ServerTrouble::UnknownHost
    } else if words.contains("connecting") || words.contains("timeout") || error.is_closed() {
        ServerTrouble::Unreachable
    } else {
        ServerTrouble::Other
    }
}
