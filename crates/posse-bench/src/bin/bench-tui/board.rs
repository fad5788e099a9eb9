//! How soon the board is there, and what it costs when agents change.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Failed;
use crate::lags::{milliseconds, summary};
use crate::session::Session;
use crate::stored::StoredSession;

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
/// that in the end all have.
pub(crate) fn refresh(place: &Path, agents: usize, rounds: usize) -> Result<Value, Failed> {
    let mut session = StoredSession::create(place, agents)?;
    let board = Session::exec(place, NOWHERE, &["board"], &SHOWN)?;
    board.settle();
    let (cpu, bytes) = (board.process.cpu()?, board.screen.bytes());
    let mut unchanged = 0;
    for round in 0..rounds {
        let before = board.screen.bytes();
        let first = round * CHANGED;
        session.change(first..first + CHANGED)?;
        std::thread::sleep(DRAWN);
        board.screen.wait_for_quiet(DRAWN);
        unchanged += usize::from(board.screen.bytes() == before);
    }
    let cpu = board.process.cpu()? - cpu;
    let bytes = board.screen.bytes() - bytes;
    let found = json!({
        "cpu_ms": milliseconds(cpu) / rounds as f64,
        "bytes": bytes / rounds,
        "unchanged": unchanged,
        "rss_mb": board.process.resident_mb()?,
    });
    board.leave_by(LEAVE)?;
    Ok(found)
}
