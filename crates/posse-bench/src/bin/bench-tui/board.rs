//! How soon the board is there, and what it costs when agents change.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Failed;
use crate::lags::{milliseconds, summary};
use crate::session::Session;
use crate::stored::{CENTS, StoredSession};

/// Words of a board: of a row, and of its last line.
pub(crate) const SHOWN: [&str; 2] = ["agent-00", "filter"];
/// The key that leaves it.
pub(crate) const LEAVE: &str = "q";
/// No model is asked for anything.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:1";
/// Agents that change between two refreshes.
const CHANGED: usize = 10;
/// Time after which the board has drawn a change. It reads at most ten times a second.
const DRAWN: Duration = Duration::from_millis(150);

/// Time after which it has read what agents have cost.
const SUMMED: Duration = Duration::from_millis(1500);

/// Measures the time from exec to the first frame, in a store with a session of `agents` agents.
pub(crate) fn run(place: &Path, agents: usize, rounds: usize) -> Result<Value, Failed> {
    let _session = StoredSession::create(place, agents)?;
    let start = || -> Result<Duration, Failed> {
        let board = Session::exec(place, NOWHERE, &["board"], &SHOWN)?;
        let first = board.first;
        board.settle();
        board.leave_by(LEAVE)?;
        Ok(first)
    };
    // What is read from the disk is not in memory yet.
    start()?;
    let lags = (0..rounds)
        .map(|_| start())
        .collect::<Result<Vec<_>, _>>()?;
    Ok(summary(lags))
}

/// Measures the processor time of a refresh in which some of the agents have changed: in turn, so
/// that in the end all have. Fails if the board does not show what all of them have cost by then.
pub(crate) fn refresh(place: &Path, agents: usize, rounds: usize) -> Result<Value, Failed> {
    let mut session = StoredSession::create(place, agents)?;
    let mut board = Session::exec(place, NOWHERE, &["board"], &SHOWN)?;
    board.settle();
    let (cpu, bytes) = (board.process.cpu()?, board.screen.bytes());
    for round in 0..rounds {
        let first = round * CHANGED;
        // Held up meanwhile, so that it reads all of them together.
        board.process.stop()?;
        let changed = session.change(first..first + CHANGED);
        board.process.resume()?;
        changed?;
        thread::sleep(DRAWN);
        board.screen.wait_for_quiet(DRAWN);
    }
    let cpu = board.process.cpu()? - cpu;
    let bytes = board.screen.bytes() - bytes;
    let found = json!({
        "cpu_ms": milliseconds(cpu) / rounds as f64,
        "bytes": bytes / rounds,
        "rss_mb": board.process.resident_mb()?,
    });
    thread::sleep(SUMMED);
    // After the pager, all of the board is drawn again.
    let from = board.screen.length();
    board.press("o")?;
    board.settle();
    board.press(LEAVE)?;
    let cents = (agents + rounds * CHANGED) as u64 * CENTS;
    let total = format!("${}.{:02}", cents / 100, cents % 100);
    board.screen.wait_for(&total, from)?;
    board.leave_by(LEAVE)?;
    Ok(found)
}
