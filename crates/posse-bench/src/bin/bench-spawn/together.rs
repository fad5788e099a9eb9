//! Many background sub-agents that end together.

use std::path::Path;

use posse_protocol::{EventKind, RunChange};
use serde_json::{Value, json};

use crate::record::{self, Request};
use crate::{Failed, soon};
use posse_testkit::test_runtime::TestRuntime;

pub(crate) async fn run(url: &str, directory: &Path, count: usize) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::new(url, directory, 64)?;
    let mut session = test_runtime.session();
    session.say("go").await?;
    let (mut over, mut told) = (0, soon::Told::default());
    while over < count || told.count() < count || !told.idle {
        let event = session.event().await?;
        told.hear(&event, "done ")?;
        if let EventKind::Run(news) = &event.kind
            && let RunChange::Ended(_) = news.what
        {
            over += 1;
        }
    }
    let requests = record::of_session(url, &session.id()).await?;
    let (main, below): (Vec<_>, Vec<_>) = requests.iter().partition(|request| request.is_main());
    let last = |list: &[&Request]| list.iter().filter_map(|request| request.ended_us).max();
    let first = below.iter().filter_map(|request| request.ended_us).min();
    Ok(json!({
        "in_flight": most_open(&below)?,
        // The first two start them.
        "turns": main.len().saturating_sub(2),
        "spread_ms": first.zip(last(&below)).map(|(first, last)| record::millis(first, last)),
    }))
}

/// Returns the maximum number of requests open at the same time.
fn most_open(requests: &[&Request]) -> Result<i64, Failed> {
    let mut changes = Vec::new();
    for request in requests {
        changes.push((request.at_us, 1));
        changes.push((request.ended()?, -1));
    }
    changes.sort_unstable();
    let open = changes.iter().scan(0_i64, |open, (_, change)| {
        *open += change;
        Some(*open)
    });
    Ok(open.max().unwrap_or(0))
}
