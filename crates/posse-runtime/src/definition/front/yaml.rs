//! Front matter that is valid YAML.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{
    DuplicateKeyPolicy, Error, Location, MessageFormatter, Options, Spanned, UserMessageFormatter,
};

use crate::definition::front::value::quoted;
use crate::definition::front::{Field, Fields, Keys, Problem};

/// A YAML error.
pub(super) struct Broken {
    /// Line and reason.
    pub problem: Problem,
    /// True if it is too large, rather than wrong.
    pub too_much: bool,
}

/// Parses fields as YAML.
pub(super) fn fields(yaml: &str, keys: &Keys) -> Result<Fields, Broken> {
    let Pairs(fields) =
        serde_saphyr::from_str_with_options(yaml, options()).map_err(|error| broken(&error))?;
    let lines: Vec<&str> = yaml.lines().collect();
    let cut = |field: &Field| {
        let line = lines.get(field.line.checked_sub(1)?)?;
        is_cut(field, line, keys).then(|| {
            let reason = format!(
                "`{}` ends before ` #`, where a comment begins; put it in quotes to keep the rest",
                field.key
            );
            Problem::new(field.line, reason)
        })
    };
    let notes = fields.iter().filter_map(cut).collect();
    Ok((fields, notes))
}

/// Returns true if YAML has cut a text that stands on the line of its key.
fn is_cut(field: &Field, line: &str, keys: &Keys) -> bool {
    let Some(rest) = line
        .strip_prefix(&field.key)
        .and_then(|rest| rest.strip_prefix(':'))
    else {
        return false;
    };
    let plain = !rest.trim_start().starts_with(['"', '\'', '|', '>', '#']);
    keys.prose.contains(&field.key.as_str()) && plain && rest.contains(" #")
}

/// Returns limits that are enough for every file, and keep aliases from multiplying its size.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 32,
            max_nodes: 5_000,
            max_aliases: 100,
            max_anchors: 100,
            max_recorded_anchor_bytes: 16 * 1024,
            max_merge_keys: 100,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 1_000,
            max_replay_stack_depth: 8,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        with_snippet: false,
    }
}

fn broken(error: &Error) -> Broken {
    let line = error.location().map_or(1, line_of);
    let (too_much, reason) = match cause(error) {
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => (
            true,
            "this is too long, too deep or repeated too often".to_owned(),
        ),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (false, format!("`{}` is given twice", quoted(key)))
        }
        Error::Unexpected { .. } => (
            false,
            "front matter consists of lines `key: value`; this is not one".to_owned(),
        ),
        cause => {
            let said = UserMessageFormatter.format_message(cause);
            (
                false,
                format!("invalid YAML: {}", said.replace(char::is_control, " ")),
            )
        }
    };
    Broken {
        problem: Problem::new(line, reason),
        too_much,
    }
}

/// Returns the original error, wherever an alias repeated it.
fn cause(error: &Error) -> &Error {
    match error {
        Error::AliasError { error, .. } => cause(error),
        error => error,
    }
}

fn line_of(at: Location) -> usize {
    usize::try_from(at.line()).unwrap_or(1).max(1)
}

/// A mapping in order, with the lines of its keys.
struct Pairs(Vec<Field>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("lines `key: value`")
            }

            fn visit_unit<E>(self) -> Result<Pairs, E> {
                Ok(Pairs(Vec::new()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut fields = Vec::new();
                while let Some((key, value)) = map.next_entry::<Spanned<String>, Value>()? {
                    let line = line_of(key.referenced);
                    fields.push(Field {
                        key: key.value,
                        line,
                        value,
                    });
                }
                Ok(Pairs(fields))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}
