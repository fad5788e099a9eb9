//! Time from the sending of a token to its text on the screen, and what a token costs.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Failed;
use crate::lags::{milliseconds, summary};
use crate::model::Model;
use crate::session::Session;

/// Words of a paragraph: three rows.
const PARAGRAPH: usize = 60;
/// Time for the first request of the session and all that follows the last token.
const SLACK: Duration = Duration::from_secs(20);

pub(crate) fn run(place: &Path, gap: Duration, count: usize) -> Result<Value, Failed> {
    let model = Model::start()?;
    let mut session = Session::settled(place, &model)?;
    // What only the first request does is no part of a token.
    reply(&mut session, &model, gap.min(Duration::from_millis(10)), 20)?;
    let found = reply(&mut session, &model, gap, count)?;
    session.leave()?;
    Ok(found)
}

/// Measures one reply. What a token costs is counted from the first to the last but one: the rest
/// is the cost of a turn.
fn reply(
    session: &mut Session,
    model: &Model,
    gap: Duration,
    count: usize,
) -> Result<Value, Failed> {
    let tokens = prose(count);
    let words: Vec<&str> = tokens.iter().map(|token| token.trim()).collect();
    let [first, .., last, _] = words[..] else {
        return Err("a reply has more tokens".into());
    };
    let sent = model.will_say(tokens.clone(), gap);
    let from = session.screen.length();
    session.say("go")?;
    let (screen, process) = (&session.screen, session.process);
    screen.wait_for(first, from)?;
    let before = (process.cpu()?, screen.bytes());
    let time = gap * u32::try_from(count)? + SLACK;
    screen.wait_within(time, last, from)?;
    let after = (process.cpu()?, screen.bytes());
    let sent = sent.recv_timeout(time)?;
    session.settle();
    let arrivals = screen.arrivals(words.iter().copied(), from);
    let lags: Vec<Duration> = (arrivals.iter().zip(&sent))
        .filter_map(|(seen, sent)| seen.map(|seen| seen.saturating_duration_since(*sent)))
        .collect();
    let lost = count - lags.len();
    let each = (count - 2) as f64;
    let mut found = summary(lags);
    found["lost"] = json!(lost);
    found["bytes_per_token"] = json!((after.1 - before.1) as f64 / each);
    found["cpu_ms_per_token"] = json!(milliseconds(after.0 - before.0) / each);
    Ok(found)
}

/// Returns tokens of prose, each with a word that no other has.
pub(crate) fn prose(count: usize) -> Vec<String> {
    let token = |number: usize| {
        let word = word(number);
        match number % PARAGRAPH {
            0 if number == 0 => word,
            0 => format!("\n\n{word}"),
            _ => format!(" {word}"),
        }
    };
    (0..count).map(token).collect()
}

/// Returns a word of five letters that begins unlike its neighbours: a screen that only writes what
/// has changed writes all of it.
fn word(number: usize) -> String {
    let letter = |number: usize| char::from(b'a' + (number % 26) as u8);
    let mixed = number.wrapping_mul(2_654_435_761) >> 7;
    let letters = [mixed, mixed / 26];
    let unique = [number, number / 26, number / 676];
    letters.into_iter().chain(unique).map(letter).collect()
}
