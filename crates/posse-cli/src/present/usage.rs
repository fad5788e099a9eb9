//! Token counts for programs: the same keys in every JSON object that posse prints.

use posse_protocol::Usage;
use serde_json::{Value, json};

/// Bytes of text that are about one token.
pub(crate) const TOKEN_BYTES: u64 = 4;

/// Returns token counts with the keys of the result message.
pub(crate) fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write_5m.saturating_add(usage.cache_write_1h),
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_5m,
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
        },
    })
}

/// Returns the token counts of several calls.
pub(crate) fn list(calls: &[Usage]) -> Value {
    calls.iter().map(usage).collect()
}
