//! Sub-agents: what they cost in time, work, memory and disk, and how soon they hear of each other.
//!
//! The model is scripted, in a process of its own, and answers at once unless a script says otherwise. Times
//! are taken from what it notes: when requests come, and when replies have left.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::program::Bench;
use super::server::Server;
use super::{Bar, Effort, Figure, Found, OF_CPU, median};

/// Each sub-agent runs a command and ends; the main agent starts one to warm up, then as many as it should.
const LEAVES: &str = r#"
[[rule]]
when.agent = "re:^/main/"
when.tool = "hello"
reply = [{ text = "done" }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Bash", input = { command = "echo hello" } }]
[[rule]]
when.tool = "done"
reply = [{ text = "all done" }]
[[rule]]
when.user = "warm up"
reply = [ONE]
[[rule]]
reply = [MANY]
"#;

/// They take a second, and the main agent takes as long to answer as the fastest models do. Their first replies begin
/// at once: the first of them is waited for by the others.
const TOGETHER: &str = r#"
[[rule]]
when = { agent = "re:^/main/", turn = 1 }
reply = [{ tool = "Glob", input = { pattern = "*.none" } }]
[[rule]]
when.agent = "re:^/main/"
when.user = "re:piece (\\d+)\\."
delay_ms = 1000
reply = [{ text = "done {{user.1}}." }]
[[rule]]
when.user = "task-notification"
delay_ms = 300
reply = [{ text = "noted" }]
[[rule]]
when.tool = "background"
reply = [{ text = "They work." }]
[[rule]]
reply = [MANY]
"#;

/// Their replies begin and go no further.
const OPEN: &str = r#"
[[rule]]
when.agent = "re:^/main/"
when.user = "warm 0."
reply = [{ text = "done" }]
[[rule]]
when.agent = "re:^/main/"
fault = { kind = "stall", at = 600 }
reply = [{ text = "TEXT" }]
[[rule]]
when.user = "task-notification"
reply = [{ text = "noted" }]
[[rule]]
when.tool = "background"
reply = [{ text = "They work." }]
[[rule]]
when.tool = "done"
reply = [{ text = "It is warm." }]
[[rule]]
when.user = "warm up"
reply = [ONE]
[[rule]]
reply = [MANY]
"#;

/// They end one after another, each when the main agent has nothing to do any more.
const ENDS: &str = r#"
HOLDS
[[rule]]
when.user = "task-notification"
reply = [{ text = "noted" }]
[[rule]]
when.tool = "background"
reply = [{ text = "They work." }]
[[rule]]
reply = [MANY]
"#;

const MESSAGES: &str = r#"
[[rule]]
when.agent = "re:^/main/"
when.user = "re:word (\\d+)\\."
reply = [{ text = "heard {{user.1}}." }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "ready" }]
[[rule]]
when.user = "task-notification"
reply = [{ text = "noted" }]
[[rule]]
when.tool = "re:."
reply = [{ text = "good" }]
[[rule]]
when.user = "re:write (\\d+)\\. to (r\\d)"
reply = [{ tool = "SendMessage", input = { to = "{{user.2}}", message = "word {{user.1}}." } }]
[[rule]]
reply = [MANY]
"#;

/// How many sub-agents are started together.
const MANY: u32 = 64;
/// How many end one after another, and how far apart, in milliseconds.
const HELD: u32 = 25;
const APART: u32 = 30;

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let quick = effort == Effort::Quick;
    let bench = Bench::new(binaries, "bench-spawn")?;
    let mut notes = Vec::new();
    let mut figures = leaves(binaries, &bench, if quick { 3 } else { 9 }, &mut notes)?;

    let script = TOGETHER.replace("MANY", &calls(MANY, "piece", "run_in_background = true"));
    let together = bench.asking(
        binaries,
        &script,
        &["together", "URL", "DIR", &MANY.to_string()],
    )?;
    notes.push(format!(
        "{MANY} in the background that take a second: {together}"
    ));
    let (flying, turns) = (number(&together, "in_flight")?, number(&together, "turns")?);
    figures.insert(
        3,
        Figure::printed("n64_in_flight", flying, Bar::Least(f64::from(MANY))),
    );

    let script = OPEN.replace("MANY", &calls(1000, "piece", "run_in_background = true"));
    let script = script.replace("ONE", &calls(1, "warm", "run_in_background = false"));
    let script = script.replace("TEXT", &"A word or two. ".repeat(100));
    let open = bench.asking(binaries, &script, &["open", "URL", "DIR", "1000"])?;
    notes.push(format!("with a reply open: {open}"));
    figures.insert(
        5,
        Figure::printed("n1000_kb_each", number(&open, "kb_each")?, Bar::Most(100.0)),
    );

    figures.push(Figure::printed("n64_parent_turns", turns, Bar::Most(2.0)));
    figures.extend(soon(binaries, &bench, quick, &mut notes)?);
    Ok(Found {
        figures,
        truths: Vec::new(),
        notes,
    })
}

/// What many cost that make two requests and run a command, beside a bare program that does the same.
fn leaves(
    binaries: &Path,
    bench: &Bench,
    rounds: u32,
    notes: &mut Vec<String>,
) -> Result<Vec<Figure>> {
    let script = LEAVES.replace("MANY", &calls(MANY, "piece", "run_in_background = false"));
    let script = script.replace("ONE", &calls(1, "piece", "run_in_background = false"));
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let server = Server::start(binaries, &script)?;
        ours.push(bench.run(&["leaves", "posse", &server.url, "DIR", &MANY.to_string()])?);
        bare.push(bench.run(&["leaves", "bare", &server.url, "DIR"])?);
    }
    for (ours, bare) in ours.iter().zip(&bare) {
        notes.push(format!("{MANY} leaves: posse {ours}, bare {bare}"));
    }
    let middle = |found: &[Value], key: &str| -> Result<f64> {
        Ok(median(
            found
                .iter()
                .map(|found| number(found, key))
                .collect::<Result<_>>()?,
        ))
    };
    let (cpu, bare_cpu) = (middle(&ours, "cpu_ms")?, middle(&bare, "cpu_ms")?);
    Ok(vec![
        Figure::printed("n64_wall_s", middle(&ours, "wall_s")?, Bar::Most(0.4)),
        Figure::printed("n64_cpu_ms_each", cpu / f64::from(MANY), Bar::Most(5.0)),
        Figure::ratio("n64_ratio_vs_bare", cpu / bare_cpu, Bar::Most(1.5), OF_CPU),
        Figure::printed(
            "first_child_request_ms",
            middle(&ours, "first_child_request_ms")?,
            Bar::Most(20.0),
        ),
        Figure::printed(
            "disk_kb_each",
            middle(&ours, "disk_kb_each")?,
            Bar::Most(12.0),
        ),
    ])
}

/// How soon agents hear of each other. All of it waits for the disk, several times.
fn soon(
    binaries: &Path,
    bench: &Bench,
    quick: bool,
    notes: &mut Vec<String>,
) -> Result<Vec<Figure>> {
    let before = bench.run(&["sync", "DIR"])?;
    let script = ENDS.replace("HOLDS", &holds());
    let script = script.replace("MANY", &calls(HELD, "hold", "run_in_background = true"));
    let rounds = if quick { "3" } else { "20" };
    let ends = bench.asking(
        binaries,
        &script,
        &["ends", "URL", "DIR", rounds, &HELD.to_string()],
    )?;
    notes.push(format!(
        "a sub-agent's last word to its parent's request: {ends}"
    ));
    let script = MESSAGES.replace("MANY", &named(4));
    let rounds = if quick { "4" } else { "25" };
    let messages = bench.asking(binaries, &script, &["messages", "URL", "DIR", rounds, "20"])?;
    notes.push(format!("a message to one who had ended: {messages}"));
    let after = bench.run(&["sync", "DIR"])?;
    notes.push(format!(
        "a page made durable, before and after: {before}, {after}"
    ));
    let figure = |key, found: &Value, part, most| -> Result<Figure> {
        Ok(Figure::printed(key, number(found, part)?, Bar::Most(most)))
    };
    Ok(vec![
        figure("end_to_parent_p50_ms", &ends, "p50_ms", 3.0)?,
        figure("end_to_parent_p99_ms", &ends, "p99_ms", 15.0)?,
        figure("message_p50_ms", &messages, "p50_ms", 3.0)?,
        figure("message_p99_ms", &messages, "p99_ms", 15.0)?,
    ])
}

/// `count` calls of Agent; `word` and a number are the prompt.
pub(super) fn calls(count: u32, word: &str, how: &str) -> String {
    let call = |number| {
        format!(
            r#"{{ tool = "Agent", input = {{ description = "A piece of work", prompt = "{word} {number}.", {how} }} }}"#
        )
    };
    (0..count).map(call).collect::<Vec<_>>().join(", ")
}

/// `count` calls of Agent that give names.
fn named(count: u32) -> String {
    let call = |number| {
        format!(
            r#"{{ tool = "Agent", input = {{ description = "A reader", prompt = "Be there.", name = "r{number}" }} }}"#
        )
    };
    (0..count).map(call).collect::<Vec<_>>().join(", ")
}

/// Rules by which each sub-agent takes longer than the one before.
fn holds() -> String {
    let rule = |number| {
        let delay = 150 + number * APART;
        format!(
            "[[rule]]\nwhen.agent = \"re:^/main/\"\nwhen.user = \"hold {number}.\"\ndelay_ms = {delay}\n\
             reply = [{{ text = \"held {number}.\" }}]\n"
        )
    };
    (0..HELD).map(rule).collect()
}

pub(super) fn number(found: &Value, key: &str) -> Result<f64> {
    found[key]
        .as_f64()
        .with_context(|| format!("{found} has no {key}"))
}
