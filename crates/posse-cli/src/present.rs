//! What commands and front ends show alike: rows, JSON objects and phrases of stored things.

pub(crate) mod cache_misses;
