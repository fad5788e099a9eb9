//! Time from a key to its character on the screen.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Failed;
use crate::lags::{milliseconds, summary};
use crate::model::Model;
use crate::session::Session;
use crate::tokens::prose;

/// Letters that nothing else on the screen has, so that each is found where it was typed.
const LETTERS: std::ops::RangeInclusive<char> = 'А'..='я';
/// Milliseconds between two keys: a fast typist, in no step with frames.
const GAPS_MS: [u64; 5] = [17, 29, 23, 37, 13];
/// Removes what is before the caret.
const KILL_LINE: &str = "\x15";
/// Time after which the screen shows that.
const KILLED: Duration = Duration::from_millis(50);
/// Tokens of the reply during which keys are typed: 200 a second.
const TOKEN_GAP: Duration = Duration::from_millis(5);

pub(crate) fn run(place: &Path, count: usize) -> Result<Value, Failed> {
    let model = Model::start()?;
    let mut session = Session::settled(place, &model)?;
    let (before, bytes) = (session.process.cpu()?, session.screen.bytes());
    let lags = typed(&mut session, count)?;
    session.settle();
    let cpu = session.process.cpu()? - before;
    let bytes = session.screen.bytes() - bytes;
    let mut found = summary(lags);
    found["cpu_ms_per_key"] = json!(milliseconds(cpu) / count as f64);
    found["bytes_per_key"] = json!(bytes / count);
    session.leave()?;
    Ok(found)
}

/// The same while a reply arrives.
pub(crate) fn run_streaming(place: &Path, count: usize) -> Result<Value, Failed> {
    let model = Model::start()?;
    let mut session = Session::settled(place, &model)?;
    let gaps = GAPS_MS.iter().cycle().take(count).sum::<u64>();
    let pauses = KILLED * u32::try_from(count / LETTERS.count())?;
    let time = Duration::from_millis(gaps) + pauses;
    // Half as many again: waiting for keys takes time, too.
    let tokens = time.as_millis() / TOKEN_GAP.as_millis() * 3 / 2 + 40;
    let words = prose(usize::try_from(tokens)?);
    let first = words.first().cloned().unwrap_or_default();
    let sent = model.will_say(words, TOKEN_GAP);
    let from = session.screen.length();
    session.say("go")?;
    session.screen.wait_for(first.trim(), from)?;
    let lags = typed(&mut session, count)?;
    if sent.try_recv().is_ok() {
        return Err("the reply was over before the last key".into());
    }
    session.screen.wait_for_quiet(Duration::from_secs(2));
    session.leave()?;
    Ok(summary(lags))
}

/// Types letters, and returns the time that each took. Nothing is left in the prompt.
pub(crate) fn typed(session: &mut Session, count: usize) -> Result<Vec<Duration>, Failed> {
    let mut lags = Vec::with_capacity(count);
    let letters = LETTERS.enumerate().cycle();
    for ((place, letter), gap) in letters.zip(GAPS_MS.into_iter().cycle()).take(count) {
        if place == 0 && !lags.is_empty() {
            clear(session)?;
        }
        let (from, pressed) = (session.screen.length(), Instant::now());
        session.press(&letter.to_string())?;
        lags.push(session.screen.wait_for(&letter.to_string(), from)? - pressed);
        thread::sleep(Duration::from_millis(gap));
    }
    clear(session)?;
    Ok(lags)
}

fn clear(session: &mut Session) -> Result<(), Failed> {
    session.press(KILL_LINE)?;
    thread::sleep(KILLED);
    Ok(())
}
