//! Cache reads of forks of one reply.

use std::path::Path;

use posse_model::price::PriceList;
use posse_protocol::Usage;
use serde_json::{Value, json};

use super::{bare, common, grow};
use crate::Failed;
use crate::record::{self, Request};
use posse_testkit::test_runtime::TestRuntime;

const MODEL: &str = "claude-opus-5";

pub(crate) async fn run(
    url: &str,
    directory: &Path,
    count: usize,
    kilobytes: u64,
) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::new(url, directory, count + 100)?;
    let mut session = test_runtime.session();
    grow(&mut session, kilobytes).await?;
    session.say(&format!("split {count}.")).await?;
    session.end().await?;
    let requests = record::of_session(url, &session.id()).await?;
    let (main, forks): (Vec<&Request>, Vec<&Request>) =
        requests.iter().partition(|it| it.is_main());
    if forks.len() != count {
        return Err(format!("{} requests of forks instead of {count}", forks.len()).into());
    }
    let [.., asked, _] = main[..] else {
        return Err("the parent has not asked".into());
    };
    let left = billed(asked)?.prompt();
    let first = forks
        .iter()
        .map(|request| billed(request))
        .collect::<Result<Vec<Usage>, Failed>>()?;
    let least = first
        .iter()
        .map(|usage| usage.cache_read)
        .min()
        .unwrap_or(0);
    let bodies: Vec<String> = forks.iter().map(|request| bare(request)).collect();
    let directive = bodies[0].rfind("piece ").ok_or("a fork was told nothing")?;
    let prices = PriceList::built_in()?;
    let cost = |usage: Usage| {
        prices.cost(
            MODEL,
            &Usage {
                output: 0,
                thinking: 0,
                ..usage
            },
        )
    };
    let afresh = |usage: &Usage| {
        cost(Usage {
            input: usage.prompt(),
            ..Usage::default()
        })
    };
    let paid = first
        .iter()
        .copied()
        .filter_map(cost)
        .sum::<posse_protocol::Cost>();
    let fresh = first
        .iter()
        .filter_map(afresh)
        .sum::<posse_protocol::Cost>();
    Ok(json!({
        "forks": count,
        "parent_tokens": left,
        "read_share": (least as f64 / left as f64).min(1.0),
        "shared_to_directive": count == 1 || common(&bodies) >= directive,
        "written": first.iter().map(|usage| usage.cache_write_5m + usage.cache_write_1h).sum::<u64>(),
        "usd": paid.usd(),
        "fresh_usd": fresh.usd(),
    }))
}

/// Returns the billed usage of a request.
pub(super) fn billed(request: &Request) -> Result<Usage, Failed> {
    request
        .usage
        .ok_or_else(|| "a request was not answered".into())
}
