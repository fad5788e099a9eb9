//! A thousand streams at once: does the server carry them, and what does the client spend on them?
//!
//! The client is measured beside a bare program (same HTTP crate, same streams, same run).

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Effort, Figure, Found, cpu_ms, median};

/// Streams of 500 tokens over two seconds, and one small reply.
const SCRIPT: &str = r#"
[[rule]]
when.user = "small"
reply = [{ text = "ok" }]
[[rule]]
tokens_per_s = 250
reply = [{ text = "TEXT" }]
"#;

struct Server {
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing else to do about it here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let rounds = if effort == Effort::Quick { 1 } else { 5 };
    let mut script = tempfile()?;
    script.1.write_all(SCRIPT.replace("TEXT", &"word ".repeat(400)).as_bytes())?;
    let server = start(binaries, &script.0)?;
    let client = |kind: &str, text: &str, streams: u32| client(binaries, &server.url, kind, text, streams);
    client("posse", "small", 200)?;
    let small = if effort == Effort::Quick { 1000 } else { 5000 };
    let before = cpu_ms(server.child.id())?;
    let answered = client("bare", "small", small)?;
    let per_request = (cpu_ms(server.child.id())? - before) / f64::from(small);
    let (mut ratios, mut completed) = (Vec::new(), answered.completed == u64::from(small));
    let mut notes = vec!["cpu of 1,000 streams, ms: posse, bare".to_owned()];
    for _ in 0..rounds {
        let (ours, bare) = (client("posse", "long", 1000)?, client("bare", "long", 1000)?);
        completed &= ours.completed == 1000 && bare.completed == 1000;
        ratios.push(ours.cpu_ms / bare.cpu_ms);
        notes.push(format!("  {:.0}, {:.0}", ours.cpu_ms, bare.cpu_ms));
    }
    std::fs::remove_file(&script.0)?;
    Ok(Found {
        figures: vec![
            Figure { key: "server_cpu_ms_per_request", value: per_request, most: 0.3 },
            Figure { key: "client_cpu_ratio_vs_bare", value: median(ratios), most: 1.2 },
        ],
        truths: vec![("streams_1000_ok", completed)],
        notes,
    })
}

fn tempfile() -> Result<(std::path::PathBuf, std::fs::File)> {
    let path = std::env::temp_dir().join(format!("posse-bench-{}.toml", std::process::id()));
    Ok((path.clone(), std::fs::File::create(path)?))
}

fn start(binaries: &Path, script: &Path) -> Result<Server> {
    let mut child = Command::new(binaries.join("posse"))
        .args(["scripted-model", "--port", "0", "--json"])
        .arg(script)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("stdout is piped")?).read_line(&mut line)?;
    let told: Value = serde_json::from_str(&line).context("the server did not start")?;
    Ok(Server { child, url: told["url"].as_str().unwrap_or_default().to_owned() })
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
