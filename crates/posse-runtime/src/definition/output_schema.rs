//! The JSON Schema that an answer must fit, and what an agent is told about it. Pure.

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

/// How long a schema may be.
const MOST_BYTES: usize = 64 * 1024;
/// How deep a schema may be nested, references followed.
const MOST_LEVELS: usize = 128;
/// How many objects and lists it may consist of, references followed.
const MOST_PARTS: usize = 20_000;
/// How much is told of what is wrong.
const MOST_LINES: usize = 10;
/// A longer value is none to hand on: it travels in a message.
const MOST_VALUE: usize = 64 * 1024;
/// How much is looked at for that.
const MOST_ERRORS: usize = 100;
/// How long a line of it is.
const LINE_CHARACTERS: usize = 300;
/// How much of a value is told.
const VALUE_CHARACTERS: usize = 80;

/// What an answer must be.
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
    /// Takes a schema if answers can be held to it; else why not, for whoever wrote it.
    ///
    /// It stands for itself: nothing is fetched, and it does not refer to itself, so that judging any answer
    /// takes bounded time and space.
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
        // An engine without backtracking: no pattern makes an answer's check slow.
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

    /// The schema.
    pub fn schema(&self) -> &Value {
        &self.0.schema
    }

    /// The value that a final text is, in compact form; else what is wrong with it, a line each.
    pub fn check(&self, text: &str) -> Result<RawJson, String> {
        let text = without_fence(text.trim());
        if text.is_empty() {
            return Err("there is no text, and so no JSON value".to_owned());
        }
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("the text is not one JSON value: {error}"))?;
        if self.0.validator.is_valid(&value) {
            // What was looked at is what is handed on: of a key that is there twice, only one is.
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

    /// What the agent is told with its first message.
    pub fn asked(&self) -> String {
        format!(
            "A program reads your result. Your last message must be one JSON value that matches \
             the schema below, and nothing else: no text before or after it, no code fence.\n\n\
             JSON Schema:\n\
             {}",
            neutral(&self.0.schema.to_string())
        )
    }

    /// What it is told, once, if its answer does not fit.
    pub fn repair(&self, wrong: &str) -> String {
        format!(
            "Your last message is not the required JSON value:\n\
             {wrong}\n\
             Answer again with the whole corrected value and nothing else. It is taken as your \
             result; this is the last try."
        )
    }
}

/// A text without the one code fence that it stands in.
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

/// The lines for one thing that is wrong. Where several forms are allowed, those of the one that was meant.
fn describe(error: &ValidationError<'_>, lines: &mut Vec<String>) {
    let forms = match error.kind() {
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => context.as_slice(),
        _ => &[],
    };
    lines.push(tell(error));
    // A form that expects another type at this very place was not meant.
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

/// Where, and what is wrong there.
fn tell(error: &ValidationError<'_>) -> String {
    let value = cut(&error.instance().to_string(), VALUE_CHARACTERS);
    let path = error.instance_path().to_string();
    let path = if path.is_empty() { "/" } else { path.as_str() };
    cut(
        &plain_line(&format!("{path}: {}", error.masked_with(value))),
        LINE_CHARACTERS,
    )
}

/// The first lines, each once.
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
