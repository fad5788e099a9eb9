//! The OpenAI side: Chat Completions, streamed or whole.

mod reply;
mod request;

pub(crate) use reply::Reply;
pub(crate) use request::{Request, check_key};
