//! An MCP server with faults, for tests. It speaks both eras of the protocol, `initialize` of 2025-11-25
//! and `server/discover` of 2026-07-28, over its input and output or over streamable HTTP. All
//! messages are made by hand, so that a fault is exactly what it says.
//!
//! `mcp-server [OPTION …]`, see [`options::Options`] for what each option does, and `tools.rs` for
//! the tools.

mod http;
mod lists;
mod log;
mod options;
mod outbox;
mod server;
mod sign_in;
mod stdio;
mod tools;

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use crate::options::Options;
use crate::server::Server;

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Failed> {
    let options = Options::read(std::env::args().skip(1))?;
    let log = log::Log::open(options.log.as_deref())?;
    log.write("start", serde_json::json!({ "args": options.words }))?;
    if options.has("--fail-start") {
        let mut errors = std::io::stderr();
        errors.write_all(b"this server always fails\n")?;
        return Ok(ExitCode::from(7));
    }
    if options.has("--ignore-term") {
        ignore_term()?;
    }
    if let Some(delay) = options.slow_start {
        pause(delay).await;
    }
    let server = Server::new(options, log);
    match server.options.http {
        Some(port) => http::run(server, port).await?,
        None => stdio::run(server).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes SIGTERM do nothing.
fn ignore_term() -> Result<(), Failed> {
    use tokio::signal::unix::{SignalKind, signal};
    // Once a handler is there, the signal does not end the process, whoever listens.
    drop(signal(SignalKind::terminate())?);
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "that it is slow in real time is the fault"
)]
pub(crate) async fn pause(delay: Duration) {
    tokio::time::sleep(delay).await;
}
