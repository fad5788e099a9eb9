//! A process that works on a store, to be killed, stopped, raced and measured by tests and benches.
//!
//! - `prepare DB DEED`: what a deed starts from;
//! - `deed DB DEED`: does it, and says each part that was acknowledged on a line of its own;
//! - `tasks DB N`: makes N claimable tasks;
//! - `claim DB FILE AGENTS`: so many agents claim until nothing is left; the numbers go to FILE;
//! - `across DB N`, `healed DB SWEEP_MS`, `within DB N`: how soon agents are woken;
//! - `hear DB [--deaf SWEEP_MS]`: the other side of the first two;
//! - `agent DB URL DIR LEASE_MS`: a whole agent, whose model is at URL;
//! - `inbox DB`, `claims DB TASKS`: what much costs beside little;
//! - `claiming posse|bare AGENTS BATCHES DB`: claims, and the same statements with nothing around them.

#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

mod agent;
mod claiming;
mod deed;
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
        ["prepare", database, deed] => deed::prepare(Path::new(database), deed.parse()?).await,
        ["deed", database, deed] => deed::perform(Path::new(database), deed.parse()?).await,
        ["tasks", database, count] => race::tasks(Path::new(database), count.parse()?).await,
        ["claim", database, into, agents] => {
            race::claims(Path::new(database), Path::new(into), agents.parse()?).await
        }
        ["agent", database, url, directory, lease] => {
            agent::run(Path::new(database), url, Path::new(directory), millis(lease)?).await
        }
        ["hear", database] => wake::hear(Path::new(database), None).await,
        ["hear", database, "--deaf", sweep] => wake::hear(Path::new(database), Some(millis(sweep)?)).await,
        ["across", database, count] => print(wake::across(Path::new(database), count.parse()?).await?),
        ["healed", database, sweep] => print(wake::healed(Path::new(database), millis(sweep)?).await?),
        ["within", database, count] => print(wake::within(Path::new(database), count.parse()?).await?),
        ["claiming", "posse", agents, batches, database] => {
            print(claiming::posse(Path::new(database), agents.parse()?, batches.parse()?).await?)
        }
        ["claiming", "bare", agents, batches, database] => {
            print(claiming::bare(Path::new(database), agents.parse()?, batches.parse()?).await?)
        }
        ["inbox", database] => print(growth::inbox(Path::new(database)).await?),
        ["claims", database, tasks] => print(growth::claims(Path::new(database), tasks.parse()?).await?),
        _ => Err("see the head of this program for its arguments".into()),
    }
}

fn millis(text: &str) -> Result<Duration, Failed> {
    Ok(Duration::from_millis(text.parse()?))
}

/// Says a line at once: whoever started this process waits for it.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn print(found: Value) -> Result<(), Failed> {
    println!("{found}");
    Ok(())
}
