//! Signing in to servers over HTTP: OAuth 2.1 with PKCE, as the Model Context Protocol wants it.
//!
//! A person signs in once (`sign_in`), and every process of the machine uses what is kept of that
//! (`token_source`). Only one of them refreshes a token at a time.

mod callback;
mod challenge;
mod client;
mod credentials;
mod discovery;
mod fault;
mod proof;
mod secret;
mod sign_in;
mod token_request;
mod token_source;
mod web;

pub(super) use self::challenge::Challenge;
pub(super) use self::credentials::CredentialFiles;
pub use self::fault::SignInError;
pub use self::sign_in::{McpSignIns, PendingSignIn, SignInAnswer, SignedIn};
pub(super) use self::token_source::{Token, TokenSource, takes_tokens};
