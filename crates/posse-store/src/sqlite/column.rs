//! Conversion between values and columns.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use posse_port::store::QuestionState;
use posse_protocol::{
    Cost, MailKind, Name, Purpose, RequestKind, RunKind, Takes, TaskStatus, Usage,
};
use rusqlite::Row;
use rusqlite::types::{FromSqlError, Type};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::error::SqliteFailure;
use crate::columns;
pub(super) use crate::columns::{kind, kind_from, purpose, run, state, state_from, status};

/// Returns the purpose in column `at`.
pub(super) fn purpose_from(row: &Row<'_>, at: usize) -> rusqlite::Result<Purpose> {
    let number: i64 = row.get(at)?;
    Purpose::ALL
        .into_iter()
        .find(|it| purpose(*it) == number)
        .ok_or_else(|| senseless(at))
}

/// Returns the task status in column `at`.
pub(super) fn status_from(row: &Row<'_>, at: usize) -> rusqlite::Result<TaskStatus> {
    let number: i64 = row.get(at)?;
    TaskStatus::ALL
        .into_iter()
        .find(|it| status(*it) == number)
        .ok_or_else(|| senseless(at))
}

/// Returns the kind of request in column `at`.
pub(super) fn request_kind(row: &Row<'_>, at: usize) -> rusqlite::Result<RequestKind> {
    let word = row.get_ref(at)?.as_str()?;
    RequestKind::ALL
        .into_iter()
        .find(|it| it.as_str() == word)
        .ok_or_else(|| senseless(at))
}

/// Returns the state of a question in column `at`.
pub(super) fn question_state(row: &Row<'_>, at: usize) -> rusqlite::Result<QuestionState> {
    let number: i64 = row.get(at)?;
    QuestionState::ALL
        .into_iter()
        .find(|it| columns::question(*it) == number)
        .ok_or_else(|| senseless(at))
}

/// Returns the kind of background run in column `at`.
pub(super) fn run_kind(row: &Row<'_>, at: usize) -> rusqlite::Result<RunKind> {
    let word = row.get_ref(at)?.as_str()?;
    [RunKind::Agent, RunKind::Shell]
        .into_iter()
        .find(|it| it.as_str() == word)
        .ok_or_else(|| senseless(at))
}

/// Returns the kind of message in column `at`.
pub(super) fn mail_kind(row: &Row<'_>, at: usize) -> rusqlite::Result<MailKind> {
    let word = row.get_ref(at)?.as_str()?;
    MailKind::ALL
        .into_iter()
        .find(|it| it.as_str() == word)
        .ok_or_else(|| senseless(at))
}

/// Returns a name in column `at`, if there is one.
pub(super) fn maybe_name(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Name>> {
    row.get_ref(at)?
        .as_str_or_null()?
        .map(str::parse)
        .transpose()
        .map_err(|_| senseless(at))
}

/// Returns a name in column `at`.
pub(super) fn name(row: &Row<'_>, at: usize) -> rusqlite::Result<Name> {
    row.get_ref(at)?
        .as_str()?
        .parse()
        .map_err(|_| senseless(at))
}

/// Returns the team's part of a list's key; empty for the session's own list.
pub(super) fn team(team: Option<&Name>) -> &str {
    team.map_or("", Name::as_str)
}

/// Returns the column for the tasks a member takes; `None` means all.
pub(super) fn takes(takes: &Takes) -> Result<Option<String>, SqliteFailure> {
    if *takes == Takes::Any {
        Ok(None)
    } else {
        json(takes).map(Some)
    }
}

/// Serializes JSON for a column.
pub(super) fn json(value: &impl Serialize) -> Result<String, SqliteFailure> {
    serde_json::to_string(value).map_err(|error| SqliteFailure::bad_step(error.to_string()))
}

/// Parses optional JSON in column `at`.
pub(super) fn maybe_json<T: DeserializeOwned>(
    row: &Row<'_>,
    at: usize,
) -> rusqlite::Result<Option<T>> {
    let text = row.get_ref(at)?.as_str_or_null()?;
    text.map(serde_json::from_str)
        .transpose()
        .map_err(|_| senseless(at))
}

/// Returns a limit or a number to start after as a column value, capped at the highest.
pub(super) fn most(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Returns an unsigned number as SQLite can store it: the signed one with the same bits.
pub(super) fn bits(number: u64) -> i64 {
    number.cast_signed()
}

/// Reverses [`bits`].
pub(super) fn from_bits(number: i64) -> u64 {
    number.cast_unsigned()
}

/// Returns a path as bytes, since it need not be UTF-8.
pub(super) fn path(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Reverses [`path`].
pub(super) fn path_from(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// Returns an id in column `at`.
pub(super) fn id(row: &Row<'_>, at: usize) -> rusqlite::Result<Uuid> {
    Ok(Uuid::from_bytes(row.get(at)?))
}

/// Returns an id in column `at`, if there is one.
pub(super) fn maybe_id(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Uuid>> {
    Ok(row.get::<_, Option<[u8; 16]>>(at)?.map(Uuid::from_bytes))
}

/// Returns the optional offset in column `at`.
pub(super) fn mark(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<usize>> {
    let offset: Option<i64> = row.get(at)?;
    offset
        .map(|offset| usize::try_from(offset).map_err(|_| senseless(at)))
        .transpose()
}

/// Returns tokens and cost from seven columns starting at `at`.
pub(super) fn spent(row: &Row<'_>, at: usize) -> rusqlite::Result<(Usage, Option<Cost>)> {
    let tokens = |column: usize| row.get(at + column).map(from_bits);
    let usage = Usage {
        input: tokens(0)?,
        cache_read: tokens(1)?,
        cache_write_5m: tokens(2)?,
        cache_write_1h: tokens(3)?,
        output: tokens(4)?,
        thinking: tokens(5)?,
    };
    let cost: Option<i64> = row.get(at + 6)?;
    Ok((usage, cost.map(|pico| Cost::from_pico_usd(from_bits(pico)))))
}

/// Returns the seven columns that [`spent`] reads.
pub(super) fn spend(usage: &Usage, cost: Option<Cost>) -> [Option<i64>; 7] {
    let Usage {
        input,
        cache_read,
        cache_write_5m,
        cache_write_1h,
        output,
        thinking,
    } = *usage;
    let [a, b, c, d, e, f] = [
        input,
        cache_read,
        cache_write_5m,
        cache_write_1h,
        output,
        thinking,
    ]
    .map(|it| Some(bits(it)));
    [a, b, c, d, e, f, cost.map(|cost| bits(cost.pico_usd()))]
}

/// Returns the error for a column with a value that cannot be interpreted.
pub(super) fn senseless(at: usize) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(at, Type::Null, Box::new(FromSqlError::InvalidType))
}
