//! Reading values from rows. A value that cannot be read is an error for the caller who asked for
//! it, not a failure of the server.

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

/// Returns the value of column `at`.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, PgFailure> {
    row.try_get(at).map_err(PgFailure::senseless)
}

/// Returns text, with hidden NULs restored.
pub(super) fn text(row: &Row, at: usize) -> Result<String, PgFailure> {
    Ok(nul::show_text(get(row, at)?).into_owned())
}

/// Returns optional text, with hidden NULs restored.
pub(super) fn maybe_text(row: &Row, at: usize) -> Result<Option<String>, PgFailure> {
    Ok(get::<Option<&str>>(row, at)?.map(|text| nul::show_text(text).into_owned()))
}

/// Parses optional JSON, with hidden NULs restored.
pub(super) fn maybe_json<T: DeserializeOwned>(
    row: &Row,
    at: usize,
) -> Result<Option<T>, PgFailure> {
    let text = get::<Option<&str>>(row, at)?;
    text.map(|text| serde_json::from_str(&nul::show(text)))
        .transpose()
        .map_err(PgFailure::senseless)
}

/// Returns an optional name.
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

/// Returns an unsigned 64-bit number, which is stored as the same bits with a sign.
pub(super) fn bits(row: &Row, at: usize) -> Result<u64, PgFailure> {
    Ok(get::<i64>(row, at)?.cast_unsigned())
}

/// Returns an optional unsigned 64-bit number.
pub(super) fn maybe_bits(row: &Row, at: usize) -> Result<Option<u64>, PgFailure> {
    Ok(get::<Option<i64>>(row, at)?.map(i64::cast_unsigned))
}

/// Returns the position of a call in its reply.
pub(super) fn ordinal(row: &Row, at: usize) -> Result<u32, PgFailure> {
    Ok(get::<i32>(row, at)?.cast_unsigned())
}

/// Returns the member of `all` that the number in a column stands for.
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

/// Returns the member of `all` whose word is in a column.
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

/// Returns a path. Paths are columns of bytes, since they need not be UTF-8.
pub(super) fn path(row: &Row, at: usize) -> Result<PathBuf, PgFailure> {
    Ok(OsStr::from_bytes(get(row, at)?).into())
}

/// Returns the bytes in column `at + 1`, unpacked if column `at` is true.
pub(super) fn bytes(row: &Row, at: usize) -> Result<Bytes, PgFailure> {
    compress::unpack(get(row, at + 1)?, get(row, at)?).map_err(PgFailure::senseless)
}

/// Returns encoded bytes from three columns: the mark, the packed flag and the bytes.
pub(super) fn encoded(row: &Row, at: usize) -> Result<Encoded, PgFailure> {
    let mark_at = get::<Option<i64>>(row, at)?
        .map(usize::try_from)
        .transpose()
        .map_err(|_| senseless(at))?;
    Ok(Encoded {
        bytes: bytes(row, at + 1)?,
        mark_at,
    })
}

/// Returns a limit or a number to start after as a column value, capped at the highest.
pub(super) fn most(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Returns the error for a column with a value that cannot be interpreted.
pub(super) fn senseless(at: usize) -> PgFailure {
    PgFailure::senseless(format!("column {at} means nothing"))
}
