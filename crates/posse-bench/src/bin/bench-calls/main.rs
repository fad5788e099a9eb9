//! What hooks and servers cost: runs of agents that make calls of a tool which does nothing, with hooks
//! and without, and of a server's tool.
//!
//! Each prints one JSON object:
//! - `commits none|unmatched CALLS DIR`: commits of a run of so many calls, without hooks or with
//!   hooks that match none of them;
//! - `programs POSSE CALLS ROUNDS DIR`: two `sh` on each call, started by this watchdog;
//! - `persistent POSSE CALLS ROUNDS DIR`: a program that stays;
//! - `http AGENTS CALLS DIR`: one server, and so many agents with so many calls each;
//! - `answers`: is the program that stays;
//! - `served MCP-SERVER CALLS ROUNDS DIR`: calls of a server's tool, and the same without an agent;
//! - `shared MCP-SERVER AGENTS DIR`: so many agents and one server;
//! - `memory MCP-SERVER|none AGENTS DIR`: memory of so many agents.

#![expect(
    clippy::print_stdout,
    reason = "a measuring program prints what it measured"
)]

mod call;
mod run;
mod served;
mod server;

use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::path::Path;

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let found = match words[..] {
        ["commits", hooks, calls, directory] => {
            run::commits(hooks, calls.parse()?, Path::new(directory)).await?
        }
        ["programs", posse, calls, rounds, directory] => {
            let rounds = (calls.parse()?, rounds.parse()?);
            run::programs(Path::new(posse), rounds, Path::new(directory)).await?
        }
        ["persistent", posse, calls, rounds, directory] => {
            let rounds = (calls.parse()?, rounds.parse()?);
            run::persistent(Path::new(posse), rounds, Path::new(directory)).await?
        }
        ["http", agents, calls, directory] => {
            run::http(agents.parse()?, calls.parse()?, Path::new(directory)).await?
        }
        ["served", server, calls, rounds, directory] => {
            let rounds = (calls.parse()?, rounds.parse()?);
            served::served(server, rounds, Path::new(directory)).await?
        }
        ["shared", server, agents, directory] => {
            served::shared(server, agents.parse()?, Path::new(directory)).await?
        }
        ["memory", server, agents, directory] => {
            served::memory(server, agents.parse()?, Path::new(directory)).await?
        }
        ["answers"] => return answers(),
        _ => return Err("see the head of this program for its arguments".into()),
    };
    println!("{found}");
    Ok(())
}

/// Answers each line with an empty object.
fn answers() -> Result<(), Failed> {
    let mut output = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        line?;
        output.write_all(b"{}\n")?;
        output.flush()?;
    }
    Ok(())
}
