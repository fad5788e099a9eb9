//! A process that works on a store, to be killed, stopped, raced and measured by tests and benches.
//!
//! STORE is a file or a URL, DB a file.
//!
//! - `prepare STORE DEED`: creates the state a deed starts from;
//! - `deed STORE DEED`: performs it, and prints each acknowledged part on a line of its own;
//! - `tasks STORE N`: makes N claimable tasks;
//! - `claim STORE FILE AGENTS`: AGENTS agents claim until nothing is left; writes the numbers to
//!   FILE;
//! - `across STORE N`, `healed STORE SWEEP_MS`, `within STORE N`: wake latency;
//! - `hear STORE [--deaf SWEEP_MS]`: the other side of the first two;
//! - `feed STORE AGENTS`: AGENTS agents write without end; prints what was acknowledged;
//! - `agent STORE URL DIR LEASE_MS`: a whole agent, whose model is at URL;
//! - `inbox DB`, `claims DB TASKS`: the cost of operations on much data compared with little;
//! - `claiming posse|bare AGENTS BATCHES DB`: claims, and the same statements alone.

#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

mod agent;
mod claiming;
mod deed;
mod feed;
mod growth;
mod race;
mod wake;
mod words;

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["prepare", store, deed] => deed::prepare(&store.parse()?, deed.parse()?).await,
        ["deed", store, deed] => deed::perform(&store.parse()?, deed.parse()?).await,
        ["tasks", store, count] => race::tasks(&store.parse()?, count.parse()?).await,
        ["claim", store, into, agents] => {
            race::claims(&store.parse()?, Path::new(into), agents.parse()?).await
        }
        ["feed", store, agents] => feed::write(&store.parse()?, agents.parse()?).await,
        ["agent", store, url, directory, lease] => {
            agent::run(&store.parse()?, url, Path::new(directory), millis(lease)?).await
        }
        ["hear", store] => wake::hear(&store.parse()?, None).await,
        ["hear", store, "--deaf", sweep] => wake::hear(&store.parse()?, Some(millis(sweep)?)).await,
        ["across", store, count] => print(wake::across(&store.parse()?, count.parse()?).await?),
        ["healed", store, sweep] => print(wake::healed(&store.parse()?, millis(sweep)?).await?),
        ["within", store, count] => print(wake::within(&store.parse()?, count.parse()?).await?),
        ["claiming", "posse", agents, batches, database] => {
            print(claiming::posse(Path::new(database), agents.parse()?, batches.parse()?).await?)
        }
        ["claiming", "bare", agents, batches, database] => {
            print(claiming::bare(Path::new(database), agents.parse()?, batches.parse()?).await?)
        }
        ["inbox", database] => print(growth::inbox(Path::new(database)).await?),
        ["claims", database, tasks] => {
            print(growth::claims(Path::new(database), tasks.parse()?).await?)
        }
        _ => Err("see the head of this program for its arguments".into()),
    }
}

fn millis(text: &str) -> Result<Duration, Failed> {
    Ok(Duration::from_millis(text.parse()?))
}

/// Prints and flushes a line: the parent process waits for it.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn print(found: Value) -> Result<(), Failed> {
    println!("{found}");
    Ok(())
}
