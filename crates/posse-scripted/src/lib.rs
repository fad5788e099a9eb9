//! The scripted model: a model server on loopback whose replies are data.
//!
//! It speaks the Anthropic Messages API and OpenAI Chat Completions over real HTTP, is as strict
//! with requests as the real ones are, keeps a prompt cache as they do, and does on demand what a
//! network does by bad luck. Every test of posse runs against it, and so does anybody without a key.
//!
//! [`Server`] is the whole of it; [`Script`] is what it is told to say.

mod anthropic;
mod api_error;
mod body;
mod cache;
pub mod conformance;
mod control;
mod conversation;
mod fault;
mod models;
mod openai;
pub mod pace;
mod pick;
mod prefix;
pub mod record;
mod schema;
pub mod script;
mod server;
mod socket;
mod template;
mod tokens;

pub use pace::{Pace, SystemPace};
pub use record::{Outcome, Recorded};
pub use script::{RuleProblem, Script, ScriptError};
pub use server::{Mode, Server, ServerOptions};
pub use template::TemplateError;
