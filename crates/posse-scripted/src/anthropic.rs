//! The Anthropic side: what is refused, what is billed, what is answered.

mod binding;
mod deferred;
mod headers;
mod pairing;
mod reply;
mod request;
mod rules;

pub(crate) use headers::check as check_headers;
pub(crate) use reply::AnthropicReply;
pub(crate) use request::{AnthropicRequest, agent_of};
