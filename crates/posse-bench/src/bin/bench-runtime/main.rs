//! Measures runs of agents, and bare programs that do the same work with nothing around it.
//!
//! Each prints one JSON object:
//! - `turns posse|bare URL DIR N`: one conversation of N prompts;
//! - `growth KILOBYTES DIR`: processor time of a turn, without sending, at that size of history;
//! - `build KILOBYTES DIR`: processor time of assembling a request at that size of history;
//! - `steps posse|bare AGENTS BATCHES DIR`: steps of AGENTS agents at once, in batches of as many;
//! - `agents URL DIR N TURNS`: N agents in this process;
//! - `idle DIR N SECONDS`: N idle agents for SECONDS seconds;
//! - `usage PROGRAM ARGUMENTS…`: resource usage of a program.

#![expect(
    clippy::print_stdout,
    reason = "a measuring program prints what it measured"
)]

mod bare;
mod build;
mod instant;
mod ours;

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let found = match words[..] {
        ["turns", "posse", url, directory, turns] => {
            ours::turns(url, Path::new(directory), turns.parse()?).await?
        }
        ["turns", "bare", url, directory, turns] => {
            bare::turns(url, Path::new(directory), turns.parse()?).await?
        }
        ["growth", kilobytes, directory] => {
            instant::growth(Path::new(directory), kilobytes.parse()?).await?
        }
        ["build", kilobytes, directory] => {
            build::run(Path::new(directory), kilobytes.parse()?).await?
        }
        ["steps", "posse", agents, batches, directory] => {
            ours::steps(Path::new(directory), agents.parse()?, batches.parse()?).await?
        }
        ["steps", "bare", agents, batches, directory] => {
            bare::steps(Path::new(directory), agents.parse()?, batches.parse()?)?
        }
        ["agents", url, directory, agents, turns] => {
            ours::agents(url, Path::new(directory), agents.parse()?, turns.parse()?).await?
        }
        ["idle", directory, agents, seconds] => {
            instant::idle(Path::new(directory), agents.parse()?, seconds.parse()?).await?
        }
        ["usage", program, ref arguments @ ..] => usage(program, arguments)?,
        _ => return Err("see the head of this program for its arguments".into()),
    };
    println!("{found}");
    Ok(())
}

/// Returns the processor time of this process so far, all threads, in milliseconds.
fn cpu_ms() -> Result<f64, Failed> {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF)?;
    Ok(millis(usage.user_time()) + millis(usage.system_time()))
}

fn millis(time: nix::sys::time::TimeVal) -> f64 {
    time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3
}

#[expect(clippy::disallowed_methods, reason = "this program measures others")]
fn usage(program: &str, arguments: &[&str]) -> Result<Value, Failed> {
    let start = Instant::now();
    let output = std::process::Command::new(program)
        .args(arguments)
        .output()?;
    let wall_ms = start.elapsed().as_secs_f64() * 1e3;
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN)?;
    Ok(json!({
        "success": output.status.success(),
        "stdout": String::from_utf8_lossy(&output.stdout),
        "stderr": String::from_utf8_lossy(&output.stderr),
        "cpu_ms": millis(usage.user_time()) + millis(usage.system_time()),
        "rss_mb": usage.max_rss() as f64 / 1024.0,
        "wall_ms": wall_ms,
    }))
}
