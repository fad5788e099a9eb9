//! Forks: that the cache knows them for life, what they cost beside agents that begin afresh, and what a
//! thousand of them take.
//!
//! The scripted model's cache is the judge of what is read, written and paid. A thousand forks ask a sink, which
//! takes anything: with real replies it would be the server that is measured.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::program::Bench;
use super::server::Server;
use super::{Bar, Effort, Figure, Found, OF_SPEED, median};

/// The parent is told this and that, then asks for forks, which answer at once.
const SPLIT: &str = r#"
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Scope: a piece. Result: done." }]
[[rule]]
when.tool = "re:."
reply = [{ text = "All told." }]
[[rule]]
when.user = "split COUNT."
reply = [MANY]
[[rule]]
when.user = "split 1."
reply = [ONE]
[[rule]]
reply = [{ text = "Noted." }]
"#;

/// Forks with names that are woken, to work for twenty turns or to look once.
const LIFE: &str = r#"
[[rule]]
when.user = "a summary takes its place"
reply = [{ text = "SUMMARY of it all." }]
[[rule]]
when.agent = "re:^/main/"
when.user = "fork-directive"
reply = [{ text = "Scope: a piece. Result: done." }]
[[rule]]
when.agent = "re:^/main/"
when.user = "Look once"
reply = [{ text = "Scope: a look. Result: nothing new." }]
WORK
[[rule]]
when.tool = "re:."
reply = [{ text = "Good." }]
[[rule]]
when.user = "task-notification"
reply = [{ text = "Noted." }]
[[rule]]
when.user = "wake all to work."
reply = [WORKERS]
[[rule]]
when.user = "wake all to look."
reply = [LOOKERS]
[[rule]]
when.user = "split 16."
reply = [MANY]
[[rule]]
reply = [{ text = "Noted." }]
"#;

/// Plain sub-agents, whose prompts differ from their first word on.
const PLAIN: &str = r#"
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "done" }]
[[rule]]
when.tool = "done"
reply = [{ text = "all done" }]
[[rule]]
reply = [MANY]
"#;

/// How many turns a fork works when it is told to.
const TURNS: u32 = 20;
/// How far the growth may miss its bar: it is 1.6, of times around a microsecond.
const GROWTH: f64 = 1.0;
/// How many forks are woken.
const WOKEN: u32 = 4;

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let quick = effort == Effort::Quick;
    let bench = Bench::new(binaries, "bench-spawn")?;
    let mut notes = Vec::new();
    let (read, alike, cost) = shares(binaries, &bench, &mut notes)?;

    let life = bench.asking(binaries, &life(), &["forks", "life", "URL", "DIR", "200"])?;
    notes.push(format!(
        "{TURNS} turns, gaps, a killed process and a compaction: {life}"
    ));
    let script = PLAIN.replace("MANY", &plain(16));
    let plain = bench.asking(binaries, &script, &["forks", "plain", "URL", "DIR"])?;
    notes.push(format!("16 plain sub-agents of one type: {plain}"));

    let mut found = Vec::new();
    for _ in 0..if quick { 1 } else { 5 } {
        found.push(many(binaries, &bench, &mut notes)?);
    }
    let middle = |key: &str| -> Result<f64> {
        Ok(median(
            found
                .iter()
                .map(|found| number(found, key))
                .collect::<Result<_>>()?,
        ))
    };
    let growth = growth(binaries, quick, &mut notes)?;
    Ok(Found {
        figures: vec![
            Figure::exact("fork_read_share", read, Bar::Least(1.0)),
            Figure::exact(
                "rewrites_after_life",
                number(&life, "rewrites")?,
                Bar::Most(0.0),
            ),
            Figure::exact(
                "plain_sibling_share",
                number(&plain, "share")?,
                Bar::Least(0.995),
            ),
            Figure::exact("cost_16_forks_vs_fresh", cost, Bar::Most(0.15)),
            Figure::printed("n1000_rss_mb", middle("rss_mb")?, Bar::Most(64.0)),
            Figure::printed(
                "n1000_store_kb_each",
                middle("store_kb_each")?,
                Bar::Most(4.0),
            ),
            Figure::ratio(
                "n1000_ratio_vs_bare",
                middle("ratio")?,
                Bar::Most(1.3),
                OF_SPEED,
            ),
            Figure::ratio("build_cpu_growth", growth, Bar::Most(1.3), GROWTH),
        ],
        truths: vec![("sibling_shared_to_directive", alike)],
        notes,
    })
}

/// What one, sixteen and many forks of a parent of 200 KB read: the least share, whether siblings are alike up to
/// what each is told, and what sixteen cost beside as many that are sent the same afresh.
fn shares(binaries: &Path, bench: &Bench, notes: &mut Vec<String>) -> Result<(f64, bool, f64)> {
    let (mut read, mut alike, mut cost) = (1.0_f64, true, f64::NAN);
    for count in [1, 16, 256] {
        let arguments = ["forks", "share", "URL", "DIR", &count.to_string(), "200"];
        let found = bench.asking(binaries, &split(count), &arguments)?;
        notes.push(format!("forks of one reply: {found}"));
        read = read.min(number(&found, "read_share")?);
        alike &= found["shared_to_directive"] == true;
        if count == 16 {
            cost = number(&found, "usd")? / number(&found, "fresh_usd")?;
        }
    }
    Ok((read, alike, cost))
}

/// A thousand forks of a history of a megabyte, against a sink.
fn many(binaries: &Path, bench: &Bench, notes: &mut Vec<String>) -> Result<Value> {
    let sink = Server::sink(binaries)?;
    let arguments = ["forks", "many", "URL", &sink.url, "DIR", "1000", "1000"];
    let found = bench.asking(binaries, &split(1000), &arguments)?;
    notes.push(format!("of a megabyte: {found}"));
    Ok(found)
}

/// What putting a request together takes for a large history, beside a small one.
fn growth(binaries: &Path, quick: bool, notes: &mut Vec<String>) -> Result<f64> {
    let bench = Bench::in_memory(binaries, "bench-runtime")?;
    let at = |kilobytes: &str| bench.measure("build_us", &["build", kilobytes, "DIR"]);
    let (small, large) = (at("10")?, at(if quick { "2000" } else { "10000" })?);
    notes.push(format!(
        "a request is put together in {small:.2} µs at 10 kB, in {large:.2} µs when it is large"
    ));
    Ok(large / small)
}

/// A parent that asks for one fork, or for `count`.
fn split(count: u32) -> String {
    SPLIT
        .replace("COUNT", &count.to_string())
        .replace("MANY", &forks(count, |_| String::new()))
        .replace("ONE", &forks(1, |_| String::new()))
}

fn life() -> String {
    let mut work = String::new();
    for turn in 0..=TURNS {
        let state = if turn == 0 {
            String::new()
        } else {
            turn.to_string()
        };
        let (next, reply) = if turn == TURNS {
            (String::new(), r#"{ text = "Scope: work. Result: done." }"#)
        } else {
            (
                (turn + 1).to_string(),
                r#"{ tool = "Bash", input = { command = "echo worked" } }"#,
            )
        };
        work.push_str(&format!(
            "[[rule]]\nwhen.agent = \"re:^/main/\"\nwhen.state = {{ turn = \"{state}\" }}\n\
             set = {{ turn = \"{next}\" }}\ndelay_ms = 5\nreply = [{reply}]\n"
        ));
    }
    let wake = |message: &str| {
        let send = |number| {
            format!(
                r#"{{ tool = "SendMessage", input = {{ to = "f{number}", message = "{message}" }} }}"#
            )
        };
        (0..WOKEN).map(send).collect::<Vec<_>>().join(", ")
    };
    LIFE.replace("WORKERS", &wake("Work on."))
        .replace("LOOKERS", &wake("Look once."))
        .replace("WORK", &work)
        .replace(
            "MANY",
            &forks(16, |number| format!(r#", name = "f{number}""#)),
        )
}

/// `count` calls that ask for forks.
fn forks(count: u32, more: impl Fn(u32) -> String) -> String {
    let call = |number| {
        format!(
            r#"{{ tool = "Agent", input = {{ description = "A piece", prompt = "piece {number}.", subagent_type = "fork"{} }} }}"#,
            more(number)
        )
    };
    (0..count).map(call).collect::<Vec<_>>().join(", ")
}

/// `count` calls that ask for plain sub-agents of one type.
fn plain(count: u32) -> String {
    let call = |number| {
        format!(
            r#"{{ tool = "Agent", input = {{ description = "A piece", prompt = "{number:02}: look at this piece and say in a line what is in it.", subagent_type = "general-purpose" }} }}"#
        )
    };
    (0..count).map(call).collect::<Vec<_>>().join(", ")
}

fn number(found: &Value, key: &str) -> Result<f64> {
    found[key]
        .as_f64()
        .with_context(|| format!("{found} has no {key}"))
}
