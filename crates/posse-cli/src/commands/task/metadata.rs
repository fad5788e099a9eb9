//! Parses `KEY=JSON` arguments.

use serde_json::{Map, Value};

/// Why a text is not metadata of a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MetadataError {
    #[error("metadata is KEY=JSON, such as effort=3")]
    Form,
    #[error("`{value}` is not JSON; quote a text twice: {key}='\"text\"'")]
    Json { key: String, value: String },
}

/// Parses one `KEY=JSON`.
pub(super) fn pair(text: &str) -> Result<(String, Value), MetadataError> {
    let (key, value) = text
        .split_once('=')
        .filter(|(key, _)| !key.trim().is_empty())
        .ok_or(MetadataError::Form)?;
    let value = serde_json::from_str(value).map_err(|_| MetadataError::Json {
        key: key.to_owned(),
        value: value.to_owned(),
    })?;
    Ok((key.to_owned(), value))
}

/// Joins pairs; of two with the same key the later one counts.
pub(super) fn map(pairs: Vec<(String, Value)>) -> Map<String, Value> {
    pairs.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_json() {
        assert_eq!(pair("a=1"), Ok(("a".into(), 1.into())));
        assert_eq!(
            pair("a={\"b\": \"=\"}"),
            Ok(("a".into(), serde_json::json!({"b": "="})))
        );
        assert!(
            pair("a=text")
                .unwrap_err()
                .to_string()
                .contains("a='\"text\"'")
        );
        assert!(
            pair("=1").unwrap_err().to_string().contains("KEY=JSON")
                && pair("a").unwrap_err().to_string().contains("KEY=JSON")
        );
    }
}
