//! How soon the pager shows a long transcript, and finds a text in it.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Failed;
use crate::board::{LEAVE, NOWHERE, SHOWN};
use crate::lags::summary;
use crate::long_reply::{PART, line, name};
use crate::session::Session;
use crate::stored::StoredSession;

/// Lines of a part of a reply that have a name: the first ones, and the last.
const FIRST: [usize; 2] = [2, 6];
const LAST: usize = 12;

/// Opens the transcript of an agent of `lines` lines from the board, and searches from its end for
/// a text at its beginning.
pub(crate) fn run(place: &Path, lines: usize, rounds: usize) -> Result<Value, Failed> {
    let mut stored = StoredSession::create(place, 2)?;
    let parts = lines / PART.len();
    let part = |number: usize| (0..PART.len()).map(move |at| line(number * PART.len() + at));
    let texts: Vec<String> = (0..parts).map(|number| part(number).collect()).collect();
    stored.say(&texts)?;
    let last = name((parts - 1) * PART.len() + LAST);
    let mut board = Session::exec(place, NOWHERE, &["board"], &SHOWN)?;
    board.settle();
    let before = board.process.resident_mb()?;
    let (mut opened, mut found) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        opened.push(until(&mut board, "o", &last)?);
        board.settle();
        let [sought, beside] = FIRST.map(name);
        board.press(&format!("/{sought}"))?;
        board.settle();
        found.push(until(&mut board, "\r", &beside)?);
        board.settle();
        until(&mut board, LEAVE, SHOWN[1])?;
        board.settle();
    }
    let rss = board.process.resident_mb()? - before;
    board.leave_by(LEAVE)?;
    Ok(json!({"open": summary(opened), "search": summary(found), "rss_mb": rss}))
}

/// Presses a key, and returns the time until a text is on the screen.
fn until(session: &mut Session, key: &str, text: &str) -> Result<Duration, Failed> {
    let (from, pressed) = (session.screen.length(), Instant::now());
    session.press(key)?;
    Ok(session.screen.wait_for(text, from)? - pressed)
}
