//! Why nobody is signed in.

use std::io;

/// Why signing in has failed.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The address is not one of HTTP.
    #[error("`{0}` is not an address of a server")]
    Address(String),
    /// The server has no use for it.
    #[error("the server does not ask anybody to sign in")]
    NotWanted,
    /// Something of it would be sent where others can read it.
    #[error("`{0}` is neither https nor on this machine")]
    Unsafe(String),
    /// An address cannot be reached.
    #[error("{url} cannot be reached: {why}")]
    Unreachable {
        /// The address.
        url: String,
        /// Why.
        why: String,
    },
    /// The server describes another one.
    #[error("the server says that it is {0}, which it is not")]
    Resource(String),
    /// Nobody says how to sign in.
    #[error("{0} does not say how to sign in (no metadata of an authorization server)")]
    NoMetadata(String),
    /// The authorization server describes another one.
    #[error("the authorization server {expected} says that it is {found}")]
    Issuer {
        /// The one that is meant.
        expected: String,
        /// The one that it says it is.
        found: String,
    },
    /// The authorization server cannot tell who has begun.
    #[error("the authorization server {0} does not support PKCE with S256")]
    NoProof(String),
    /// It knows only clients that were made known to it.
    #[error("the authorization server {0} takes no clients that it does not know")]
    NoRegistration(String),
    /// It wants a client to show who it is in a way that posse does not know.
    #[error("the authorization server wants `{0}` of clients, which posse does not have")]
    ClientMethod(String),
    /// It has refused a request.
    #[error("the authorization server refuses {what}: {why}")]
    Refused {
        /// What.
        what: &'static str,
        /// Why, in its words.
        why: String,
    },
    /// Its answer is of no use.
    #[error("the authorization server's answer to {what} cannot be used: {why}")]
    Answer {
        /// To what.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// What came back is not the answer to what was asked.
    #[error("this is not the answer to this sign-in: {0}")]
    Callback(&'static str),
    /// No port can be listened at.
    #[error("cannot listen on port {port} of this machine")]
    Port {
        /// The port.
        port: u16,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What was given cannot be kept.
    #[error("cannot keep the credentials")]
    Keep(#[source] io::Error),
}
