//! What rows hold, read back: what makes no sense concerns whoever asked for it, not the server.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use bytes::Bytes;
use posse_port::model::Encoded;
use posse_protocol::Name;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::error::PgFailure;
use super::{compress, nul};

/// Returns what column `at` holds.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, PgFailure> {
    row.try_get(at).map_err(PgFailure::senseless)
}

/// Text in which NUL was hidden.
pub(super) fn text(row: &Row, at: usize) -> Result<String, PgFailure> {
    Ok(nul::show_text(get(row, at)?).into_owned())
}

/// The same, if there is any.
pub(super) fn maybe_text(row: &Row, at: usize) -> Result<Option<String>, PgFailure> {
    Ok(get::<Option<&str>>(row, at)?.map(|text| nul::show_text(text).into_owned()))
}

/// JSON in which NUL was hidden, if there is any.
pub(super) fn maybe_json<T: DeserializeOwned>(
    row: &Row,
    at: usize,
) -> Result<Option<T>, PgFailure> {
    let text = get::<Option<&str>>(row, at)?;
    text.map(|text| serde_json::from_str(&nul::show(text)))
        .transpose()
        .map_err(PgFailure::senseless)
}

/// Returns a name, if there is one.
pub(super) fn maybe_name(row: &Row, at: usize) -> Result<Option<Name>, PgFailure> {
    get::<Option<&str>>(row, at)?
        .map(str::parse)
        .transpose()
        .map_err(|_| senseless(at))
}

/// Returns a name.
pub(super) fn name(row: &Row, at: usize) -> Result<Name, PgFailure> {
    get::<&str>(row, at)?.parse().map_err(|_| senseless(at))
}

/// 64 bits without a sign.
pub(super) fn bits(row: &Row, at: usize) -> Result<u64, PgFailure> {
    Ok(get::<i64>(row, at)?.cast_unsigned())
}

/// The same, if they are there.
pub(super) fn maybe_bits(row: &Row, at: usize) -> Result<Option<u64>, PgFailure> {
    Ok(get::<Option<i64>>(row, at)?.map(i64::cast_unsigned))
}

/// Returns the place of a call in its reply.
pub(super) fn ordinal(row: &Row, at: usize) -> Result<u32, PgFailure> {
    Ok(get::<i32>(row, at)?.cast_unsigned())
}

/// Returns a small number that stands for one of `all`.
pub(super) fn one_of<T: Copy>(
    row: &Row,
    at: usize,
    all: impl IntoIterator<Item = T>,
    number: fn(T) -> i64,
) -> Result<T, PgFailure> {
    let found = i64::from(get::<i16>(row, at)?);
    all.into_iter()
        .find(|it| number(*it) == found)
        .ok_or_else(|| senseless(at))
}

/// Returns the word of one of `all`.
pub(super) fn word<T: Copy>(
    row: &Row,
    at: usize,
    all: impl IntoIterator<Item = T>,
    word: fn(T) -> &'static str,
) -> Result<T, PgFailure> {
    let found = get::<&str>(row, at)?;
    all.into_iter()
        .find(|it| word(*it) == found)
        .ok_or_else(|| senseless(at))
}

pub(super) fn path(row: &Row, at: usize) -> Result<PathBuf, PgFailure> {
    Ok(OsStr::from_bytes(get(row, at)?).into())
}

/// Bytes in column `at + 1`, of which column `at` says whether they are packed.
pub(super) fn bytes(row: &Row, at: usize) -> Result<Bytes, PgFailure> {
    compress::unpack(get(row, at + 1)?, get(row, at)?).map_err(PgFailure::senseless)
}

/// Returns a mark, whether the bytes are packed, and the bytes, in columns from `at` on.
pub(super) fn piece(row: &Row, at: usize) -> Result<Encoded, PgFailure> {
    let mark_at = get::<Option<i64>>(row, at)?
        .map(usize::try_from)
        .transpose()
        .map_err(|_| senseless(at))?;
    Ok(Encoded {
        bytes: bytes(row, at + 1)?,
        mark_at,
    })
}

/// Returns a limit or a number to start after, as a column has it.
pub(super) fn most(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Returns the error for a column whose value means nothing.
pub(super) fn senseless(at: usize) -> PgFailure {
    PgFailure::senseless(format!("column {at} means nothing"))
}
