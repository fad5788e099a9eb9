//! Why a server cannot be used, as far as a person can do something about it.

use std::error::Error as _;
use std::io;

use posse_port::store::StoreError;
use tokio_postgres::error::SqlState;

use super::error::PgCause;

/// The reason why a server cannot be used. Each one needs a different action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTrouble {
    /// The server does not answer.
    Unreachable,
    /// The host name cannot be resolved.
    UnknownHost,
    /// The password is missing or wrong, or the user may not connect at all.
    Password,
    /// The database does not exist.
    NoDatabase,
    /// No encrypted connection can be established.
    Tls,
    /// The user lacks a privilege.
    Forbidden,
    /// The address itself is wrong; the error's text says how.
    Address,
    /// The schema does not match this version of posse; the error's text says what to do.
    Older,
    /// Any other reason.
    Other,
}

/// Returns what is wrong with the server, if the error is about a server.
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

/// Classifies an error of the driver.
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
    // The driver's error kinds are private; its text is the only way to tell them apart.
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
