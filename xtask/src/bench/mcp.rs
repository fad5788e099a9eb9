//! What MCP servers cost: nothing that was cached, one process for all agents, and none that is left.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::program::Bench;
use super::server::Server;
use super::{Bar, Effort, Figure, Found};

/// How long a killed posse's servers may live.
const SOON: Duration = Duration::from_secs(2);

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let quick = effort == Effort::Quick;
    let pick = |quickly, fully| if quick { quickly } else { fully };
    let bench = Bench::in_memory(binaries, "bench-calls")?;
    let server = binaries.join("mcp-server").display().to_string();

    let changes: u32 = if quick { 25 } else { 100 };
    let mut missed = 0.0;
    let mut notes = Vec::new();
    for (what, options, provider) in [
        ("a list that changes", &["--change-list"][..], "anthropic"),
        (
            "a server that comes late",
            &["--slow-start", "5500"],
            "anthropic",
        ),
        (
            "a list that changes, Chat Completions",
            &["--change-list"],
            "openai",
        ),
    ] {
        let found = missed_tokens(&bench, binaries, options, provider, changes)?;
        notes.push(format!("{what}, {changes} calls: {found} tokens missed"));
        missed += found;
    }
    let left = left_after_kill(&bench, binaries)?;

    let rounds = pick("5", "25");
    let served = bench.run(&["served", &server, "100", rounds, "DIR"])?;
    let agents = pick("200", "1000");
    let shared = bench.run(&["shared", &server, agents, "DIR"])?;
    // What the first agents take is the server's and the process's own.
    let few = pick("50", "200");
    let memory = |server: &str| -> Result<f64> {
        let of = |agents| bench.measure("kb", &["memory", server, agents, "DIR"]);
        Ok(of(agents)? - of(few)?)
    };
    let (with, without) = (memory(&server)?, memory("none")?);
    let number = |found: &Value, key: &str| found[key].as_f64().unwrap_or(f64::NAN);
    let (count, few): (f64, f64) = (agents.parse()?, few.parse()?);
    ensure!(
        number(&shared, "calls") == count,
        "calls are lost: {shared}"
    );
    let over =
        number(&served, "served_ms") - number(&served, "plain_ms") - number(&served, "bare_ms");
    notes.extend([
        format!("100 calls, ms a call, medians of {rounds}: {served}"),
        format!("{agents} agents on one server: {shared}"),
        format!(
            "memory of {} more sessions, kB: {with} with a server, {without} without",
            count - few
        ),
    ]);
    Ok(Found {
        figures: vec![
            Figure::exact("missed_tokens", missed, Bar::Most(0.0)),
            Figure::exact("servers_after_kill", left, Bar::Most(0.0)),
            Figure::exact(
                "n1000_processes",
                number(&shared, "processes"),
                Bar::Most(1.0),
            ),
            Figure::printed("call_over_bare_p50_ms", over, Bar::Most(1.0)),
            Figure::printed("kb_each", (with - without) / (count - few), Bar::Most(2.0)),
        ],
        truths: Vec::new(),
        notes,
    })
}

/// Runs posse with a server of its own, and a model that follows a script.
fn posse(
    place: &Path,
    binaries: &Path,
    (url, provider): (&str, &str),
    options: &[&str],
) -> Command {
    let log = log(place).display().to_string();
    let args: Vec<&str> = ["--log", &log].iter().chain(options).copied().collect();
    let servers = json!({
        "mcpServers": {"s": {"command": binaries.join("mcp-server"), "args": args}},
    });
    let mut command = Command::new(binaries.join("posse"));
    let base = match provider {
        "openai" => format!("{url}/v1"),
        _ => url.to_owned(),
    };
    let model = match provider {
        "openai" => "gpt-6",
        _ => "claude-opus-5-5",
    };
    command
        .args(["-p", "--permission-mode", "bypassPermissions", "begin"])
        .args([
            "--provider",
            provider,
            "--model",
            model,
            "--base-url",
            &base,
        ])
        .args([
            "--output-format",
            "json",
            "--mcp-config",
            &servers.to_string(),
        ])
        .current_dir(place)
        .env("HOME", place)
        .env("POSSE_HOME", place.join("home"))
        .env("POSSE_SANDBOX", "off")
        .env("ANTHROPIC_API_KEY", "none")
        .env("OPENAI_API_KEY", "none")
        .stdin(Stdio::null());
    command
}

fn log(place: &Path) -> PathBuf {
    place.join("log")
}

/// A script that loads tools and calls them so often, and then ends.
fn script(calls: u32, provider: &str) -> String {
    let call = match provider {
        "openai" => "{ tool = 'CallTool', input = { tool = 'mcp__s__echo', input = {} } }",
        _ => "{ tool = 'mcp__s__echo', input = {} }",
    };
    let search = |turn: u32, tool: &str| {
        format!(
            "[[rule]]\nwhen.turn = {turn}\n\
             reply = [{{ tool = 'ToolSearch', input = {{ query = 'select:{tool}' }} }}]\n"
        )
    };
    let end = calls + 3;
    format!(
        "{}{}[[rule]]\nwhen.turn = {end}\nreply = [{{ text = 'done' }}]\n[[rule]]\nreply = [{call}]\n",
        search(1, "mcp__s__echo"),
        search(calls + 2, "mcp__s__add"),
    )
}

/// Returns how many tokens a run has missed that were cached.
fn missed_tokens(
    bench: &Bench,
    binaries: &Path,
    options: &[&str],
    provider: &str,
    calls: u32,
) -> Result<f64> {
    let place = bench.directory.fresh()?;
    let model = Server::start(binaries, &script(calls, provider))?;
    let output = posse(&place, binaries, (&model.url, provider), options).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "posse failed: {said}");
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let made = std::fs::read_to_string(log(&place))?;
    let made = made.matches("\"event\":\"call\"").count();
    ensure!(made as u32 == calls, "{made} calls of {calls}");
    std::fs::remove_dir_all(&place)?;
    let missed = result["cache"]["missed_tokens"].as_f64();
    missed.with_context(|| format!("{result} has no missed tokens"))
}

/// Kills posse in the middle of a call, and returns how many servers live on.
fn left_after_kill(bench: &Bench, binaries: &Path) -> Result<f64> {
    let place = bench.directory.fresh()?;
    let call = "[[rule]]\nwhen.turn = 1\nreply = [{ tool = 'ToolSearch', input = { query = 'select:mcp__s__never' } }]\n\
                [[rule]]\nreply = [{ tool = 'mcp__s__never', input = {} }]\n";
    let model = Server::start(binaries, call)?;
    let options = ["--ignore-eof", "--ignore-term"];
    let mut posse = posse(&place, binaries, (&model.url, "anthropic"), &options)
        .stdout(Stdio::null())
        .spawn()?;
    let mut server = None;
    while server.is_none() {
        let text = std::fs::read_to_string(log(&place)).unwrap_or_default();
        let called = text
            .lines()
            .find(|line| line.contains("\"event\":\"call\""));
        server = called.and_then(|line| serde_json::from_str::<Value>(line).ok());
        ensure!(posse.try_wait()?.is_none(), "posse ended before the call");
        std::thread::yield_now();
    }
    posse.kill()?;
    posse.wait()?;
    let killed = Instant::now();
    let server = server.context("it was called")?;
    let process = PathBuf::from(format!("/proc/{}", server["pid"]));
    while process.exists() && killed.elapsed() < SOON {
        std::thread::yield_now();
    }
    let left = f64::from(u8::from(process.exists()));
    std::fs::remove_dir_all(&place)?;
    Ok(left)
}
