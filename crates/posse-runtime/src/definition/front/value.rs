//! Values of fields, and the errors for wrong ones.

use serde_json::{Map, Value};

use crate::definition::front::error::FieldError;
use posse_port::closest;
use posse_port::model::Effort;

/// Description of a list of names in errors.
const NAMES: &str = "a list of names, or names with commas";

/// Parses a non-empty text, trimmed.
pub(crate) fn text(key: &str, value: Value) -> Result<String, FieldError> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Value::String(_) | Value::Null => Err(FieldError::Empty(key.to_owned())),
        other => Err(FieldError::NotText {
            key: key.to_owned(),
            found: kind(&other),
        }),
    }
}

/// Returns the kind of a value, for errors.
pub(crate) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        Value::String(text) => format!("`{}`", quoted(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}

/// Returns a part of a file for an error: short and on one line.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let line = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = text.chars().take(LONGEST).map(line).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}

/// Returns the warning about an unknown key. `otherwise` are keys of other programs, or obvious
/// guesses, each with the key that is meant.
pub(crate) fn unknown(
    key: &str,
    known: &[&'static str],
    otherwise: &[(&str, &'static str)],
) -> String {
    let letters: String = key
        .chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .take(64)
        .collect();
    let otherwise = otherwise
        .iter()
        .find(|(name, _)| *name == letters.to_lowercase())
        .map(|(_, field)| *field);
    match otherwise.or_else(|| closest(&letters, known)) {
        Some(meant) => format!("unknown field `{}`; did you mean `{meant}`?", quoted(key)),
        None => format!("unknown field `{}` is ignored", quoted(key)),
    }
}

/// Parses one of a set of words.
pub(crate) fn one_of<T: Copy>(
    key: &str,
    value: &Value,
    words: &[(&str, T)],
) -> Result<T, FieldError> {
    if let Some((_, meant)) = value
        .as_str()
        .and_then(|word| words.iter().find(|(name, _)| *name == word.trim()))
    {
        return Ok(*meant);
    }
    let known: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
    let known = match known.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    };
    Err(unexpected(key, known, value))
}

/// Parses a reasoning effort.
pub(crate) fn effort(value: &Value, notes: &mut Vec<String>) -> Result<Option<Effort>, FieldError> {
    if value.is_u64() {
        notes.push("`effort` as a number is ignored; use a word".to_owned());
        return Ok(None);
    }
    one_of(
        "effort",
        value,
        &Effort::ALL.map(|effort| (effort.as_str(), effort)),
    )
    .map(Some)
}

/// Parses a boolean.
pub(crate) fn truth(key: &str, value: &Value) -> Result<bool, FieldError> {
    value
        .as_bool()
        .ok_or_else(|| unexpected_text(key, "true or false", value))
}

/// Parses names in a list, or in a text with commas.
pub(crate) fn names(key: &str, value: Value) -> Result<Vec<String>, FieldError> {
    match value {
        Value::String(names) => Ok(names
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()),
        Value::Array(items) => items
            .into_iter()
            .map(|item| match item {
                Value::String(name) if !name.trim().is_empty() => Ok(name.trim().to_owned()),
                Value::String(_) => Err(FieldError::EmptyName(key.to_owned())),
                other => Err(unlisted(key, "names", &other)),
            })
            .collect(),
        other => Err(unexpected(key, NAMES, &other)),
    }
}

/// Returns all names as one text, because a YAML list is also split at commas in parentheses.
pub(crate) fn joined(key: &str, value: &Value) -> Result<String, FieldError> {
    match value {
        Value::String(names) => Ok(names.clone()),
        Value::Array(items) => {
            let text = |item: &Value| match item.as_str() {
                Some(name) if !name.trim().is_empty() => Ok(name.to_owned()),
                Some(_) => Err(FieldError::EmptyName(key.to_owned())),
                None => Err(unlisted(key, "names", item)),
            };
            Ok(items
                .iter()
                .map(text)
                .collect::<Result<Vec<_>, _>>()?
                .join(", "))
        }
        other => Err(unexpected(key, NAMES, other)),
    }
}

/// Parses a mapping.
pub(crate) fn mapping(key: &str, value: Value) -> Result<Map<String, Value>, FieldError> {
    match value {
        Value::Object(map) => Ok(map),
        other => Err(unexpected(key, "a mapping", &other)),
    }
}

/// Returns the error for a value of another kind than `expected`.
pub(crate) fn unexpected(key: &str, expected: impl Into<String>, found: &Value) -> FieldError {
    FieldError::Expected {
        key: key.to_owned(),
        expected: expected.into(),
        found: kind(found),
    }
}

/// Returns the same, where a text may look like what is expected.
pub(crate) fn unexpected_text(key: &str, expected: &str, found: &Value) -> FieldError {
    let text = if found.is_string() { "the text " } else { "" };
    FieldError::Expected {
        key: key.to_owned(),
        expected: expected.to_owned(),
        found: format!("{text}{}", kind(found)),
    }
}

/// Returns the error for a list with something else in it.
pub(crate) fn unlisted(key: &str, expected: &'static str, found: &Value) -> FieldError {
    FieldError::Listed {
        key: key.to_owned(),
        expected,
        found: kind(found),
    }
}
