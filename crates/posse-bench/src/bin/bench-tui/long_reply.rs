//! What a long reply costs, and keys after it.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Failed;
use crate::keys;
use crate::lags::summary;
use crate::model::Model;
use crate::session::Session;

/// Lines of a part of the reply. `§` stands for the name of the line.
pub(crate) const PART: [&str; 16] = [
    "## Part §",
    "",
    "The reader § keeps its place, and the writer moves on: neither waits for the other.",
    "",
    "- A step § is durable before anything else happens.",
    "- A *reader* § that is behind takes `a page` at once.",
    "- Nothing § is written twice.",
    "",
    "```rust",
    "/// Returns the rows after a number.",
    "fn rows_§(after: u64, most: usize) -> Vec<Row> {",
    "    let first = after + 1; // §",
    "    take(first, most, \"§\").collect()",
    "}",
    "```",
    "",
];
/// Time that it may take to show it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Keys that are typed after it.
const KEYS: usize = 60;

/// Sends a reply of `lines` lines, a line at a time with a gap between two.
pub(crate) fn run(place: &Path, lines: usize, gap: Duration) -> Result<Value, Failed> {
    let model = Model::start()?;
    let mut session = Session::settled(place, &model)?;
    let process = session.process;
    let sent = model.will_say((0..lines).map(line).collect(), gap);
    session.say("go")?;
    let (from, bytes, begun) = (
        session.screen.length(),
        session.screen.bytes(),
        Instant::now(),
    );
    let cpu = process.cpu()?;
    sent.recv_timeout(PATIENCE)?;
    session.settle();
    let shown = begun.elapsed();
    let cpu = process.cpu()? - cpu;
    let bytes = session.screen.bytes() - bytes;
    let numbers: Vec<String> = (0..lines)
        .filter(|number| PART[number % PART.len()].contains('§'))
        .map(name)
        .collect();
    let arrivals = session
        .screen
        .arrivals(numbers.iter().map(String::as_str), from);
    let lost = arrivals.iter().filter(|seen| seen.is_none()).count();
    let found = json!({
        "cpu_s": cpu.as_secs_f64(),
        "rss_mb": process.resident_mb()?,
        "shown_s": shown.as_secs_f64(),
        "bytes_per_line": bytes / lines,
        "lost": lost,
        "keys": summary(keys::typed(&mut session, KEYS)?),
    });
    session.settle();
    session.leave()?;
    Ok(found)
}

/// Returns a line of a long reply. In those with a `§` it is the name of the line.
pub(crate) fn line(number: usize) -> String {
    let text = PART[number % PART.len()].replace('§', &name(number));
    format!("{text}\n")
}

/// Returns the name of a line.
pub(crate) fn name(number: usize) -> String {
    format!("n{number:05}")
}
