//! Sub-agents to be measured, and a bare program that does the same work with nothing around it. The model
//! is a scripted one in a process of its own, which notes when requests come and when replies end.
//!
//! Each prints one JSON object:
//! - `leaves posse URL DIR N`: one reply starts N sub-agents, each of which makes two requests and runs a
//!   command; what that took in time, work and disk;
//! - `leaves bare URL DIR`: the requests of the last session that URL has seen, made again, with the same
//!   commands and rows;
//! - `together URL DIR N`: N in the background whose replies take a second: how many are open at once, and
//!   in how many turns their ends are told;
//! - `open URL DIR N`: memory of N in the background while their replies hang;
//! - `ends URL DIR ROUNDS N`: how soon after its last word the parent of a sub-agent is called, N in each round;
//! - `messages URL DIR ROUNDS N`: how soon a message calls a sub-agent that had ended, N in each round;
//! - `worktrees prepare REPO FILES`: makes a repository of so many files;
//! - `worktrees plain REPO DIR N`: how long git takes to make N worktrees at once;
//! - `worktrees made REPO DIR N`: how long posse takes to make N at once, with no agent around;
//! - `worktrees shared URL REPO DIR N`: how soon after its starter's reply each of N sub-agents makes its first
//!   request;
//! - `worktrees isolated URL REPO DIR N`: the same with a worktree for each, and whether all was as it should be;
//! - `forks share URL DIR N KB`: what N forks of one reply read from the cache that a parent of so many kilobytes
//!   has left there, and what their first requests cost beside the same sent afresh;
//! - `forks life URL DIR KB`: what forks pay again in a life with a gap, a killed process and a compaction;
//! - `forks worker URL DIR [SESSION]`: the process that is killed there; does what it is told by lines;
//! - `forks plain URL DIR`: how much of their first requests plain sub-agents of one type have in common;
//! - `forks many URL SINK DIR N KB`: memory, disk and time of N forks at once whose requests go to SINK, and the
//!   time of a bare program that sends the same;
//! - `teams many URL DIR N`: whether N teammates that one reply starts are all there, and how long that took;
//! - `teams idle URL DIR N SECONDS`: what N idle teammates take in memory and in time;
//! - `teams words URL DIR ROUNDS N`: how soon a lead and its idle teammates hear each other, N in each round;
//! - `teams claims URL DIR ROUNDS N`: how soon an idle teammate begins what another's work has freed;
//! - `teams across URL DIR ROUNDS N`: as `words`, with the teammates in another process;
//! - `teams host URL DIR SESSION`: that process;
//! - `sync DIR`: how long the disk takes to make a page durable.

#![expect(
    clippy::print_stdout,
    reason = "a measuring program prints what it measured"
)]

mod bare;
mod disk;
mod forks;
mod leaves;
mod memory;
mod record;
mod rows;
mod soon;
mod teams;
mod together;
mod worktrees;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use posse_port::clock::{Clock as _, SystemClock};
use serde_json::Value;

/// No measurement takes as long as this.
const PATIENCE: Duration = Duration::from_secs(300);

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let found = tokio::select! {
        found = measured(&words) => found?,
        () = SystemClock::default().sleep(PATIENCE) => return Err("it has hung".into()),
    };
    println!("{found}");
    Ok(())
}

async fn measured(words: &[&str]) -> Result<Value, Failed> {
    Ok(match words[..] {
        ["leaves", "posse", url, directory, count] => {
            leaves::run(url, Path::new(directory), count.parse()?).await?
        }
        ["leaves", "bare", url, directory] => bare::run(url, Path::new(directory)).await?,
        ["together", url, directory, count] => {
            together::run(url, Path::new(directory), count.parse()?).await?
        }
        ["open", url, directory, count] => {
            memory::run(url, Path::new(directory), count.parse()?).await?
        }
        ["ends", url, directory, rounds, count] => {
            soon::ends(url, Path::new(directory), rounds.parse()?, count.parse()?).await?
        }
        ["messages", url, directory, rounds, count] => {
            soon::messages(url, Path::new(directory), rounds.parse()?, count.parse()?).await?
        }
        ["worktrees", "prepare", repository, files] => {
            worktrees::prepare(Path::new(repository), files.parse()?)?
        }
        ["worktrees", "plain", repository, directory, count] => {
            worktrees::plain(Path::new(repository), Path::new(directory), count.parse()?)?
        }
        ["worktrees", "made", repository, directory, count] => {
            worktrees::made(Path::new(repository), Path::new(directory), count.parse()?).await?
        }
        ["worktrees", "shared", url, repository, directory, count] => {
            worktrees::shared(
                url,
                Path::new(repository),
                Path::new(directory),
                count.parse()?,
            )
            .await?
        }
        ["worktrees", "isolated", url, repository, directory, count] => {
            worktrees::isolated(
                url,
                Path::new(repository),
                Path::new(directory),
                count.parse()?,
            )
            .await?
        }
        ["forks", ref words @ ..] => forks::run(words).await?,
        ["teams", ref words @ ..] => teams::run(words).await?,
        ["sync", directory] => disk::sync(Path::new(directory))?,
        _ => return Err("see the head of this program for its arguments".into()),
    })
}

/// Processor time so far of this process, all its threads, and of the children that it has reaped, in
/// milliseconds.
fn cpu_ms() -> Result<f64, Failed> {
    use nix::sys::resource::{UsageWho, getrusage};
    let mut total = 0.0;
    for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
        let usage = getrusage(who)?;
        for time in [usage.user_time(), usage.system_time()] {
            total += time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3;
        }
    }
    Ok(total)
}
