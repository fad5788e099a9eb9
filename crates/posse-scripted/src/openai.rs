//! The OpenAI side: Chat Completions, streamed or whole.

mod reply;
mod request;

pub(crate) use reply::OpenAiReply;
pub(crate) use request::{OpenAiRequest, check_key};
