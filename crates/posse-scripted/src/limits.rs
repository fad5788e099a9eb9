//! Rate limits: which requests the provider would admit, and which it would refuse.
//!
//! A pure machine: the time goes in with every question, so that a simulated clock can drive it.
//! It shares no code with the clients that keep to the limits.

mod bucket;

pub use bucket::TokenBucket;
