//! Time from exec to the prompt.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Failed;
use crate::lags::{milliseconds, summary};
use crate::model::Model;
use crate::session::Session;

/// The first start makes the home and its store; the others find them.
pub(crate) fn run(place: &Path, rounds: usize) -> Result<Value, Failed> {
    let model = Model::start()?;
    let start = || -> Result<Duration, Failed> {
        let session = Session::start(place, &model)?;
        let prompt = session.first;
        // Not in the middle of what it still has to do.
        session.settle();
        session.leave()?;
        Ok(prompt)
    };
    let first = start()?;
    let others = (0..rounds)
        .map(|_| start())
        .collect::<Result<Vec<_>, _>>()?;
    let mut found = summary(others);
    found["first_ms"] = json!(milliseconds(first));
    Ok(found)
}
