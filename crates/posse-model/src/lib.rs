//! Adapters to model APIs, behind the runtime's model port.
//!
//! A dialect ([`Anthropic`], [`OpenAi`]) encodes requests as bytes and assembles a reply from a
//! stream of events. What they share is here once: server-sent events, sending in turn, retrying,
//! prices.

mod address;
mod anthropic;
pub mod blocks;
mod connection;
mod decode;
mod dialect;
mod encoded_entries;
mod governor;
mod openai;
mod preamble;
pub mod price;
mod response;
mod retry;
pub mod sse;
mod wire_message;

pub use address::is_local;
pub use anthropic::{Anthropic, ApiVersion};
pub use connection::{Auth, Connection, Endpoint, SetupError, http_client};
pub use decode::{DecodeError, decode};
pub use governor::{AccountLimits, Governor};
pub use openai::OpenAi;
pub use retry::RetryPolicy;
