//! What preambles of both dialects have in common: they begin with the model.

use serde_json::Value;

/// How a preamble begins.
const MODEL: &[u8] = br#""model":"#;

/// Returns the model that a preamble begins with, and the bytes after it.
pub(crate) fn split(preamble: &[u8]) -> Option<(String, &[u8])> {
    let text = preamble.strip_prefix(MODEL)?;
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<String>();
    let model = values.next()?.ok()?;
    Some((model, text.get(values.byte_offset()..)?))
}

/// Returns the beginning of a preamble for this model.
pub(crate) fn begin(model: &str) -> Vec<u8> {
    [MODEL, Value::from(model).to_string().as_bytes()].concat()
}
