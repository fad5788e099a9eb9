//! Latency of messages between agents.

use std::collections::BTreeSet;
use std::path::Path;

use posse_protocol::{ContentBlock, EntryKind, Event, EventKind, Outcome, RunChange};
use serde_json::{Value, json};

use crate::Failed;
use crate::record::{self, Request, millis};
use posse_testkit::test_runtime::TestRuntime;

/// The texts that the main agent was told, and its idle state.
#[derive(Default)]
pub(crate) struct Told {
    what: BTreeSet<String>,
    pub(crate) idle: bool,
}

impl Told {
    pub(crate) fn count(&self) -> usize {
        self.what.len()
    }

    /// Records the numbers that follow `word` in what it is told.
    pub(crate) fn hear(&mut self, event: &Event, word: &str) -> Result<(), Failed> {
        match &event.kind {
            EventKind::Started => self.idle = false,
            EventKind::Ended(end) if end.outcome == Outcome::Completed => self.idle = true,
            EventKind::Ended(end) => return Err(format!("{:?}", end.outcome).into()),
            EventKind::Entry(entry) if entry.kind != EntryKind::Reply => {
                for block in &entry.message.content {
                    if let ContentBlock::Text { text } = block {
                        let parts = text.split(word).skip(1);
                        self.what.extend(
                            parts.filter_map(|part| part.split_once('.').map(|it| it.0.to_owned())),
                        );
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Measures from the last reply of a background sub-agent to the request that tells its idle
/// parent.
pub(crate) async fn ends(
    url: &str,
    directory: &Path,
    rounds: u32,
    count: usize,
) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::new(url, directory, 64)?;
    let (mut samples, mut busy, mut next) = (Vec::new(), 0, 0);
    for _ in 0..rounds {
        let mut session = test_runtime.session();
        session.say("go").await?;
        let mut told = Told::default();
        while told.count() < count || !told.idle {
            let event = session.event().await?;
            told.hear(&event, "held ")?;
        }
        let requests = record::since(url, &session.id(), &mut next).await?;
        for number in 0..count {
            let child = find(&requests, false, &format!("hold {number}."))?;
            let parent = find(&requests, true, &format!("held {number}."))?;
            let ended = child.ended()?;
            let works = |it: &&Request| {
                it.is_main() && it.at_us < ended && it.ended_us.is_none_or(|at| at > ended)
            };
            match requests.iter().find(works) {
                Some(_) => busy += 1,
                None => samples.push(millis(ended, parent.at_us)),
            }
        }
    }
    Ok(spread(samples, busy))
}

/// Measures from the reply that calls SendMessage to the request of the recipient, which had ended.
pub(crate) async fn messages(
    url: &str,
    directory: &Path,
    rounds: u32,
    count: usize,
) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::new(url, directory, 64)?;
    let (mut samples, mut next) = (Vec::new(), 0);
    for _ in 0..rounds {
        let mut session = test_runtime.session();
        session.say("start").await?;
        session.end().await?;
        let mut told = Told {
            idle: true,
            ..Told::default()
        };
        for number in 0..count {
            session
                .say(&format!("write {number}. to r{}", number % 4))
                .await?;
            let mut over = false;
            // Its answer must have reached the main agent, and its run must have ended, before the
            // next message.
            while told.count() <= number || !told.idle || !over {
                let event = session.event().await?;
                told.hear(&event, "heard ")?;
                if let EventKind::Run(news) = &event.kind {
                    over |= matches!(news.what, RunChange::Ended(_));
                }
            }
        }
        let requests = record::since(url, &session.id(), &mut next).await?;
        for number in 0..count {
            let sender = find(&requests, true, &format!("write {number}. to"))?;
            let reader = find(&requests, false, &format!("word {number}."))?;
            samples.push(millis(sender.ended()?, reader.at_us));
        }
    }
    Ok(spread(samples, 0))
}

/// Returns the first request of the main agent, or of another, that contains a text.
pub(crate) fn find<'a>(
    requests: &'a [Request],
    main: bool,
    text: &str,
) -> Result<&'a Request, Failed> {
    let mut requests = requests.iter().filter(|request| request.is_main() == main);
    requests
        .find(|request| request.body.contains(text))
        .ok_or_else(|| format!("nobody was told {text}").into())
}

/// Summarises samples: median, 99th percentile and maximum; `busy` counts those left out.
pub(crate) fn spread(mut samples: Vec<f64>, busy: u32) -> Value {
    samples.sort_by(f64::total_cmp);
    let at = |part: f64| {
        samples.get(((samples.len() as f64 * part) as usize).min(samples.len().saturating_sub(1)))
    };
    json!({"p50_ms": at(0.5), "p99_ms": at(0.99), "most_ms": samples.last(), "samples": samples.len(), "busy": busy})
}
