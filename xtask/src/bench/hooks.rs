//! What hooks cost: nothing if there are none, and little beside what they do themselves.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::program::Bench;
use super::server::Server;
use super::{Bar, Effort, Figure, Found};

/// A command, and then an end.
const SCRIPT: &str = "[[rule]]\nwhen.tool = 're:.'\nreply = [{ text = 'done' }]\n\
                      [[rule]]\nreply = [{ tool = 'Bash', input = { command = 'true' } }]\n";
/// A hook that matches no call of it.
const UNMATCHED: &str = r#"{"hooks": {"PreToolUse": [{"matcher": "Other", "hooks": [{"type": "command", "command": "exit 2"}]}]}}"#;
/// Number of calls of a run whose commits are counted.
const CALLS: u32 = 50;
/// Commits for each call of a run without hooks: a reply with the beginning of its call, and the outcome.
const COMMITS_PER_CALL: u32 = 2;
/// Commits of a run without calls.
const COMMITS_PER_RUN: u32 = 2;
/// Programs that `posse -p` executes for one command: itself, the watchdog and the shell that
/// starts it, the shell of the command.
const PROGRAMS: usize = 4;

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let quick = effort == Effort::Quick;
    let pick = |quickly, fully| if quick { quickly } else { fully };
    let bench = Bench::in_memory(binaries, "bench-calls")?;
    let posse = binaries.join("posse").display().to_string();

    let commits =
        |hooks: &str| bench.measure("commits", &["commits", hooks, &CALLS.to_string(), "DIR"]);
    let (none, unmatched) = (commits("none")?, commits("unmatched")?);
    let known = f64::from(CALLS * COMMITS_PER_CALL + COMMITS_PER_RUN);
    let server = Server::start(binaries, SCRIPT)?;
    let executed = |settings: &str| executed(&bench, &posse, &server.url, settings);
    let (without, with) = (executed("{}")?, executed(UNMATCHED)?);

    let rounds = pick("5", "25");
    let two = bench.run(&["programs", &posse, "40", rounds, "DIR"])?;
    let stays = bench.run(&["persistent", &posse, "200", rounds, "DIR"])?;
    let agents = pick("200", "1000");
    let http = bench.run(&["http", agents, "10", "DIR"])?;
    let beside = |found: &serde_json::Value, keys: &[&str]| -> f64 {
        let time = |key: &str| found[key].as_f64().unwrap_or(f64::NAN);
        time("hooked_ms") - keys.iter().map(|key| time(key)).sum::<f64>()
    };
    Ok(Found {
        figures: vec![
            Figure::exact(
                "none_commits_more",
                none.max(unmatched) - known,
                Bar::Most(0.0),
            ),
            Figure::exact(
                "none_processes_more",
                without.max(with) as f64 - PROGRAMS as f64,
                Bar::Most(0.0),
            ),
            Figure::printed(
                "two_sh_ms",
                beside(&two, &["plain_ms", "scripts_ms"]),
                Bar::Most(5.0),
            ),
            Figure::printed("http_ms", beside(&http, &["plain_ms"]), Bar::Most(1.0)),
            Figure::exact(
                "http_lost",
                http["lost"].as_f64().unwrap_or(f64::NAN),
                Bar::Most(0.0),
            ),
            Figure::printed(
                "persistent_ms",
                beside(&stays, &["plain_ms"]),
                Bar::Most(0.2),
            ),
        ],
        truths: Vec::new(),
        notes: vec![
            format!(
                "commits of {CALLS} calls: {none} without hooks, {unmatched} with one that matches none; {known} are known"
            ),
            format!(
                "programs of a command: {without} without hooks, {with} with one that matches none; {PROGRAMS} are known"
            ),
            format!("two sh on each call, ms a call, medians of {rounds}: {two}"),
            format!("a program that stays, ms a call, medians of {rounds}: {stays}"),
            format!(
                "{agents} agents, 10 calls each, one server, which is part of the time, ms a call: {http}"
            ),
        ],
    })
}

/// Counts the processes that execute a program in a run with one command.
fn executed(bench: &Bench, posse: &str, url: &str, settings: &str) -> Result<usize> {
    let place = bench.directory.fresh()?;
    let log = place.join("executed");
    let output = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=execve",
            "-e",
            "status=successful",
            "-e",
            "signal=none",
            "-o",
        ])
        .arg(&log)
        .args([posse, "-p", "--permission-mode", "bypassPermissions"])
        .args(["--base-url", url, "--settings", settings, "begin"])
        .current_dir(&place)
        .env("HOME", &place)
        .env("POSSE_HOME", place.join("home"))
        .env("POSSE_SANDBOX", "off")
        .env("ANTHROPIC_API_KEY", "none")
        .stdin(Stdio::null())
        .output()
        .context("strace counts programs, and is not there")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "posse failed: {said}");
    let text = std::fs::read_to_string(log)?;
    // A thread that only gets a signal has executed nothing.
    let executed = text.lines().filter(|line| line.contains("execve"));
    let pids = executed.filter_map(|line| line.split_once(' '));
    let pids: BTreeSet<&str> = pids.map(|(pid, _)| pid).collect();
    Ok(pids.len())
}
