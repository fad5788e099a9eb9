//! The library behind posse. So far it holds the ports: what the runtime needs from outside, each a
//! trait with its promise in its doc comment. Adapters implement them; the runtime never names one.

pub mod port;
