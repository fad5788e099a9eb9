//! How soon a conversation of another process is there.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::Failed;
use crate::lags::summary;
use crate::model::Model;
use crate::session::Session;
use crate::tokens::prose;

/// Words of the reply that is shown.
const WORDS: usize = 300;

/// Measures the time from exec to the first frame with what was said.
pub(crate) fn run(place: &Path, rounds: usize) -> Result<Value, Failed> {
    let model = Model::start()?;
    let mut session = Session::settled(place, &model)?;
    let words = prose(WORDS);
    let last = words.last().cloned().unwrap_or_default();
    let sent = model.will_say(words, Duration::ZERO);
    session.say("go")?;
    sent.recv()?;
    session.settle();
    let attach = || -> Result<Duration, Failed> {
        let viewer = Session::exec(place, &model.url, &["attach"], &[last.trim(), "›"])?;
        let first = viewer.first;
        viewer.settle();
        viewer.leave()?;
        Ok(first)
    };
    attach()?;
    let lags = (0..rounds)
        .map(|_| attach())
        .collect::<Result<Vec<_>, _>>()?;
    session.leave()?;
    Ok(summary(lags))
}
