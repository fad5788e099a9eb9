//! What a conversation costs in which nothing happens.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Failed;
use crate::lags::milliseconds;
use crate::model::Model;
use crate::session::Session;

/// Measures for a time, after it has become quiet.
pub(crate) fn run(place: &Path, time: Duration) -> Result<Value, Failed> {
    let model = Model::start()?;
    let session = Session::settled(place, &model)?;
    let process = session.process;
    let before = (process.cpu()?, process.switches()?, session.screen.bytes());
    thread::sleep(time);
    let after = (process.cpu()?, process.switches()?, session.screen.bytes());
    let found = json!({
        "cpu_ms": milliseconds(after.0 - before.0),
        "switches": after.1.since(&before.1),
        "bytes": after.2 - before.2,
        "rss_mb": process.resident_mb()?,
        "threads": process.threads()?,
        "children": process.children()?.len(),
    });
    session.leave()?;
    Ok(found)
}
