//! The scripted model: a model server on loopback whose replies are data.
//!
//! It implements the Anthropic Messages API and OpenAI Chat Completions over real HTTP, is as
//! strict with requests as the real ones, keeps a prompt cache as they do, and produces network
//! failures on demand. All tests of posse run against it, and so can anybody without a key.
//!
//! [`Server`] is the whole of it; [`Script`] is what it answers.

mod admitted;
mod anthropic;
mod api_error;
mod body;
mod cache;
pub mod conformance;
mod control;
mod conversation;
mod fault;
pub mod limits;
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
