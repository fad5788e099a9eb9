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
mod sign_in;
mod token_request;
mod web;

pub use self::fault::SignInError;
pub use self::sign_in::{McpSignIns, PendingSignIn, SignInAnswer, SignedIn};
