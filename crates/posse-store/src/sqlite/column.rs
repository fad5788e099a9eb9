//! How words are spelt in columns, and read back.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use posse_protocol::{Cost, EntryKind, Usage};
use posse_runtime::port::store::AgentState;
use rusqlite::Row;
use rusqlite::types::{FromSqlError, Type};
use uuid::Uuid;

pub(super) fn kind(kind: EntryKind) -> i64 {
    match kind {
        EntryKind::Prompt => 1,
        EntryKind::Reply => 2,
        EntryKind::Results => 3,
    }
}

pub(super) fn kind_from(number: i64) -> Option<EntryKind> {
    [EntryKind::Prompt, EntryKind::Reply, EntryKind::Results].into_iter().find(|it| kind(*it) == number)
}

pub(super) fn state(state: AgentState) -> i64 {
    match state {
        AgentState::Idle => 0,
        AgentState::Running => 1,
        AgentState::Paused => 2,
    }
}

pub(super) fn state_from(number: i64) -> Option<AgentState> {
    [AgentState::Idle, AgentState::Running, AgentState::Paused].into_iter().find(|it| state(*it) == number)
}

/// 64 bits without a sign, as SQLite can keep them.
pub(super) fn bits(number: u64) -> i64 {
    number.cast_signed()
}

pub(super) fn from_bits(number: i64) -> u64 {
    number.cast_unsigned()
}

pub(super) fn path(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

pub(super) fn path_from(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// An id in column `at`.
pub(super) fn id(row: &Row<'_>, at: usize) -> rusqlite::Result<Uuid> {
    Ok(Uuid::from_bytes(row.get(at)?))
}

/// An id in column `at`, if there is one.
pub(super) fn maybe_id(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Uuid>> {
    Ok(row.get::<_, Option<[u8; 16]>>(at)?.map(Uuid::from_bytes))
}

/// An offset in column `at`, if there is one.
pub(super) fn mark(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<usize>> {
    let offset: Option<i64> = row.get(at)?;
    offset.map(|offset| usize::try_from(offset).map_err(|_| senseless(at))).transpose()
}

/// Tokens and money in seven columns from `at` on.
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

/// The seven columns.
pub(super) fn spend(usage: &Usage, cost: Option<Cost>) -> [Option<i64>; 7] {
    let Usage { input, cache_read, cache_write_5m, cache_write_1h, output, thinking } = *usage;
    let [a, b, c, d, e, f] =
        [input, cache_read, cache_write_5m, cache_write_1h, output, thinking].map(|it| Some(bits(it)));
    [a, b, c, d, e, f, cost.map(|cost| bits(cost.pico_usd()))]
}

/// What column `at` holds means nothing.
pub(super) fn senseless(at: usize) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(at, Type::Null, Box::new(FromSqlError::InvalidType))
}
