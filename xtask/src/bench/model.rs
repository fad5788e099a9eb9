//! A thousand streams at once: does the server carry them, and what does the client spend on them?
//!
//! The client is measured beside a bare program (same HTTP crate, same streams, same run).

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::server::Server;
use super::{Bar, Effort, Figure, Found, OF_CPU, cpu_ms, median};

/// Streams of 500 tokens over two seconds, and one small reply.
const SCRIPT: &str = r#"
[[rule]]
when.user = "small"
reply = [{ text = "ok" }]
[[rule]]
tokens_per_s = 250
reply = [{ text = "TEXT" }]
"#;

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let rounds = if effort == Effort::Quick { 1 } else { 5 };
    let server = Server::start(binaries, &SCRIPT.replace("TEXT", &"word ".repeat(400)))?;
    let client =
        |kind: &str, text: &str, streams: u32| client(binaries, &server.url, kind, text, streams);
    client("posse", "small", 200)?;
    let small = if effort == Effort::Quick { 1000 } else { 5000 };
    let before = cpu_ms(server.pid())?;
    let answered = client("bare", "small", small)?;
    let per_request = (cpu_ms(server.pid())? - before) / f64::from(small);
    let (mut ratios, mut completed) = (Vec::new(), answered.completed == u64::from(small));
    let mut notes = vec!["cpu of 1,000 streams, ms: posse, bare".to_owned()];
    for _ in 0..rounds {
        let (ours, bare) = (
            client("posse", "long", 1000)?,
            client("bare", "long", 1000)?,
        );
        completed &= ours.completed == 1000 && bare.completed == 1000;
        ratios.push(ours.cpu_ms / bare.cpu_ms);
        notes.push(format!("  {:.0}, {:.0}", ours.cpu_ms, bare.cpu_ms));
    }
    Ok(Found {
        figures: vec![
            Figure::printed("server_cpu_ms_per_request", per_request, Bar::Most(0.3)),
            Figure::ratio(
                "client_cpu_ratio_vs_bare",
                median(ratios),
                Bar::Most(1.2),
                OF_CPU,
            ),
        ],
        truths: vec![("streams_1000_ok", completed)],
        notes,
    })
}

struct Run {
    completed: u64,
    cpu_ms: f64,
}

fn client(binaries: &Path, url: &str, kind: &str, text: &str, streams: u32) -> Result<Run> {
    let output = Command::new(binaries.join("bench-client"))
        .args([kind, url, text, &streams.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the {kind} client failed");
    let told: Value = serde_json::from_slice(&output.stdout)?;
    Ok(Run {
        completed: told["completed"].as_u64().unwrap_or(0),
        cpu_ms: told["cpu_ms"].as_f64().unwrap_or(f64::NAN),
    })
}
