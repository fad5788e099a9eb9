//! How long posse takes to be there: `--version`, and the first request of `ask-model`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::{Bar, Effort, Figure, Found, median};

const REPLY: &str = include_str!("../../../crates/posse-scripted/src/server/sink_reply.txt");

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let posse = binaries.join("posse");
    let rounds = if effort == Effort::Quick { 20 } else { 60 };
    let version = (0..rounds)
        .map(|_| version_ms(&posse))
        .collect::<Result<Vec<f64>>>()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let first = (0..rounds)
        .map(|_| first_request(Command::new(&posse).arg("ask-model"), &listener))
        .collect::<Result<Vec<_>>>()?;
    Ok(Found {
        figures: vec![
            Figure::printed("version_ms", median(version), Bar::Most(5.0)),
            Figure::printed(
                "first_request_ms",
                median(first.iter().map(|first| first.0).collect()),
                Bar::Most(15.0),
            ),
            Figure::printed(
                "first_request_rss_mb",
                median(first.iter().map(|first| first.1).collect()),
                Bar::Most(20.0),
            ),
        ],
        truths: Vec::new(),
        notes: vec![format!("medians of {rounds}")],
    })
}

fn version_ms(posse: &Path) -> Result<f64> {
    let start = Instant::now();
    let output = Command::new(posse).arg("--version").output()?;
    ensure!(
        output.status.success() && output.stdout.starts_with(b"posse "),
        "--version failed"
    );
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// Time from exec to the request's head on our socket, and the peak memory by then.
pub(super) fn first_request(command: &mut Command, listener: &TcpListener) -> Result<(f64, f64)> {
    let url = format!("http://{}", listener.local_addr()?);
    let start = Instant::now();
    let mut child = command
        .args(["--base-url", &url, "hello"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let (mut stream, _) = listener.accept()?;
    let mut head = [0; 16 << 10];
    let read = stream.read(&mut head)?;
    let elapsed = start.elapsed().as_secs_f64() * 1e3;
    ensure!(
        head[..read].starts_with(b"POST /v1/messages "),
        "not the request that was expected"
    );
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("no VmHWM")?;
    let kilobytes: f64 = peak.trim().trim_end_matches(" kB").parse()?;
    answer(&mut stream)?;
    ensure!(child.wait()?.success(), "the command failed");
    Ok((elapsed, kilobytes / 1e3))
}

fn answer(stream: &mut TcpStream) -> Result<()> {
    let length = REPLY.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n{REPLY}"
    )?;
    Ok(())
}
