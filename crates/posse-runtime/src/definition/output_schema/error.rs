//! Errors in an output schema.

use crate::definition::output_schema::{MOST_BYTES, MOST_LEVELS, MOST_PARTS};

/// Why a schema cannot be used.
#[expect(missing_docs, reason = "each message says what its variant means")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("the schema is not an object")]
    NotAnObject,
    #[error("the schema has {0} bytes; at most {MOST_BYTES} are allowed")]
    TooLong(usize),
    #[error("$schema: unknown draft; use 2020-12, 2019-09, 7 or 6")]
    UnknownDraft,
    #[error(
        "the schema is {0} levels deep, references followed; at most {MOST_LEVELS} are allowed"
    )]
    TooDeep(usize),
    #[error("the schema has more than {MOST_PARTS} parts, references followed")]
    TooLarge,
    #[error(
        "$ref: {0} is another document, which is not fetched; put it into $defs and refer to `#/$defs/…`"
    )]
    OtherDocument(String),
    #[error("$ref: there is nothing at {0}")]
    Dangling(String),
    #[error("$ref: {0} contains itself; write out the levels you need")]
    Recursive(String),
    #[error("{0}: only a `$ref` to `#/…` is followed")]
    OtherReference(&'static str),
    #[error("{0}: only the whole schema may have one")]
    Inner(&'static str),
    /// Message of the validator.
    #[error("{0}")]
    Invalid(String),
}
