//! Measures the feed: that readers miss nothing, how soon they have a row, what it adds to a step,
//! and what a list costs that is kept by it.
//!
//! - `follow STEPS STORE`: 4 processes write one realm, STEPS steps for each of their agents, and 8
//!   readers follow; counts what a reader missed or saw twice;
//! - `latency within|across posse|bare ROWS STORE`: time from a durable commit until a reader has
//!   its row, in this process or in another one; the bare reader has the same wake and runs a plain
//!   `SELECT`;
//! - `steps SECONDS STORE`: steps of 16 agents in one realm, with the feed and without it by turns;
//! - `list ROUNDS STORE`: processor time of a list of 1,000 agents of which 10 have changed;
//! - `write STEPS PLACE`, `read posse|bare ROWS PLACE`: the other processes of the first two.
//!
//! STORE is a directory, or a server's URL: each measurement makes its own store there. Each prints
//! one JSON object.

#![expect(
    clippy::print_stdout,
    reason = "a measuring program prints what it measured"
)]

mod follow;
mod ground;
mod latency;
mod list;
mod reader;
mod steps;
mod words;

use std::error::Error;
use std::io::Write as _;
use std::time::Duration;

use ground::Ground;

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let found = match words[..] {
        ["write", steps, place] => return follow::write(&place.parse()?, steps.parse()?).await,
        ["read", side, rows, place] => {
            return reader::run(&place.parse()?, side.parse()?, rows.parse()?).await;
        }
        ["follow", steps, store] => {
            let ground = Ground::new(store)?;
            follow::run(&ground.place, steps.parse()?).await?
        }
        ["latency", distance, side, rows, store] => {
            let ground = Ground::new(store)?;
            let (distance, side) = (distance.parse()?, side.parse()?);
            latency::run(&ground.place, distance, side, rows.parse()?).await?
        }
        ["list", rounds, store] => {
            let ground = Ground::new(store)?;
            list::run(&ground.place, rounds.parse()?).await?
        }
        ["steps", seconds, store] => {
            let (with, without) = (Ground::new(store)?, Ground::new(store)?);
            let time = Duration::try_from_secs_f64(seconds.parse()?)?;
            steps::run(&with.place, &without.place, time).await?
        }
        _ => return Err("see the head of this program for its arguments".into()),
    };
    println!("{found}");
    Ok(())
}

/// Prints and flushes a line: the parent process waits for it.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Returns the machine's clock, the same in all processes.
fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
