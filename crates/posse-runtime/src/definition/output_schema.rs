//! The JSON Schema of an agent's answer, and what the agent is told about it. Pure.

mod bounds;
mod error;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use posse_protocol::RawJson;
use serde_json::Value;

pub use crate::definition::output_schema::error::SchemaError;
use posse_port::text::{neutral, plain_line};

/// Maximum size of a schema, in bytes.
const MOST_BYTES: usize = 64 * 1024;
/// Maximum depth of a schema with references expanded.
const MOST_LEVELS: usize = 128;
/// Maximum number of objects and lists with references expanded.
const MOST_PARTS: usize = 20_000;
/// Maximum number of lines about errors.
const MOST_LINES: usize = 10;
/// Maximum size of an answer in bytes: it is part of a message.
const MOST_VALUE: usize = 64 * 1024;
/// Maximum number of errors that are looked at.
const MOST_ERRORS: usize = 100;
/// Maximum length of a line, in characters.
const LINE_CHARACTERS: usize = 300;
/// Maximum length of a quoted value, in characters.
const VALUE_CHARACTERS: usize = 80;

/// A compiled schema. Cheap to clone.
#[derive(Clone)]
pub struct OutputSchema(Arc<Inner>);

struct Inner {
    schema: Value,
    validator: Validator,
}

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Contract")
            .field(&format_args!("{}", self.0.schema))
            .finish()
    }
}

impl OutputSchema {
    /// Compiles a schema, or returns why it cannot be used.
    ///
    /// It must be self-contained and must not refer to itself: nothing is fetched, and checking any
    /// answer takes bounded time and space.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(SchemaError::NotAnObject);
        }
        let bytes = schema.to_string().len();
        if bytes > MOST_BYTES {
            return Err(SchemaError::TooLong(bytes));
        }
        if matches!(
            Draft::default().detect(schema),
            Draft::Draft4 | Draft::Unknown
        ) {
            return Err(SchemaError::UnknownDraft);
        }
        bounds::check(schema)?;
        // A regular-expression engine without backtracking, so that no pattern makes a check slow.
        let options = jsonschema::options()
            .offline()
            .with_pattern_options(PatternOptions::regex());
        let validator = options
            .build(schema)
            .map_err(|error| SchemaError::Invalid(tell(&error)))?;
        Ok(Self(Arc::new(Inner {
            schema: schema.clone(),
            validator,
        })))
    }

    /// Returns the schema.
    pub fn schema(&self) -> &Value {
        &self.0.schema
    }

    /// Parses an answer into a compact value, or returns its errors, a line each.
    pub fn check(&self, text: &str) -> Result<RawJson, String> {
        let text = without_fence(text.trim());
        if text.is_empty() {
            return Err("there is no text, and so no JSON value".to_owned());
        }
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("the text is not one JSON value: {error}"))?;
        if self.0.validator.is_valid(&value) {
            // The parsed value is passed on, not the text: of a duplicate key only one was checked.
            let value = RawJson::from(&value);
            return match value.get().len() {
                long if long > MOST_VALUE => Err(format!(
                    "it has {long} bytes; at most {MOST_VALUE} are allowed"
                )),
                _ => Ok(value),
            };
        }
        let mut lines = Vec::new();
        for error in self.0.validator.iter_errors(&value).take(MOST_ERRORS) {
            describe(&error, &mut lines);
        }
        Err(listed(lines))
    }

    /// Returns the text about the schema for the first message.
    pub fn asked(&self) -> String {
        format!(
            "A program reads your result. Your last message must be one JSON value that matches \
             the schema below, and nothing else: no text before or after it, no code fence.\n\n\
             JSON Schema:\n\
             {}",
            neutral(&self.0.schema.to_string())
        )
    }

    /// Returns the text that asks, once, for a corrected answer.
    pub fn repair(&self, wrong: &str) -> String {
        format!(
            "Your last message is not the required JSON value:\n\
             {wrong}\n\
             Answer again with the whole corrected value and nothing else. It is taken as your \
             result; this is the last try."
        )
    }
}

/// Returns a text without the code fence around it.
fn without_fence(text: &str) -> &str {
    let inner = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"));
    let Some(inner) = inner else { return text };
    let named = inner
        .get(..4)
        .is_some_and(|tag| tag.eq_ignore_ascii_case("json"));
    inner[if named { 4 } else { 0 }..].trim()
}

/// Adds the lines for one error. Of several allowed forms, only the intended one is reported.
fn describe(error: &ValidationError<'_>, lines: &mut Vec<String>) {
    let forms = match error.kind() {
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => context.as_slice(),
        _ => &[],
    };
    lines.push(tell(error));
    // A form that expects another type at this place was not intended.
    let elsewhere = |wrong: &ValidationError<'_>| {
        matches!(wrong.kind(), Kind::Type { .. }) && wrong.instance_path() == error.instance_path()
    };
    let meant = forms
        .iter()
        .filter(|form| !form.iter().any(elsewhere))
        .min_by_key(|form| form.len());
    for error in meant.into_iter().flatten() {
        describe(error, lines);
    }
}

/// Returns the place and the error.
fn tell(error: &ValidationError<'_>) -> String {
    let value = cut(&error.instance().to_string(), VALUE_CHARACTERS);
    let path = error.instance_path().to_string();
    let path = if path.is_empty() { "/" } else { path.as_str() };
    cut(
        &plain_line(&format!("{path}: {}", error.masked_with(value))),
        LINE_CHARACTERS,
    )
}

/// Returns the first lines, without duplicates.
fn listed(lines: Vec<String>) -> String {
    let mut told: Vec<String> = Vec::new();
    for line in lines {
        if !told.contains(&line) {
            told.push(line);
        }
        if told.len() > MOST_LINES {
            told[MOST_LINES - 1] = "… and more".to_owned();
            told.truncate(MOST_LINES);
            break;
        }
    }
    told.join("\n")
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
