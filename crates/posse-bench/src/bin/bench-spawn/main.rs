//! Measures sub-agents, and a bare program that does the same work with nothing around it. The
//! model is a scripted one in its own process, which records when requests arrive and when replies
//! end.
//!
//! Each prints one JSON object:
//! - `leaves posse URL DIR N`: one reply starts N sub-agents, each of which makes two requests and
//!   runs a command; time, work and disk usage;
//! - `leaves bare URL DIR`: the requests of the last session that URL has seen, made again, with
//!   the same commands and rows;
//! - `together URL DIR N`: N in the background whose replies take a second: how many are open at
//!   once, and how many turns report their ends;
//! - `open URL DIR N`: memory of N in the background while their replies hang;
//! - `waiting URL DIR N SECONDS`: memory and processor time of N that wait for a person;
//! - `ends URL DIR ROUNDS N`: latency from a sub-agent's last reply to its parent's call, N in each
//!   round;
//! - `messages URL DIR ROUNDS N`: latency from a message to the call of an ended sub-agent, N in
//!   each round;
//! - `worktrees prepare REPO FILES`: makes a repository of FILES files;
//! - `worktrees plain REPO DIR N`: time of git to make N worktrees at once;
//! - `worktrees made REPO DIR N`: time of posse to make N at once, without agents;
//! - `worktrees shared URL REPO DIR N`: latency from the starter's reply to the first request of
//!   each of N sub-agents;
//! - `worktrees isolated URL REPO DIR N`: the same with a worktree for each, and a list of defects;
//! - `forks share URL DIR N KB`: what N forks of one reply read from the cache that a parent of KB
//!   kilobytes has left there, and the cost of their first requests compared with the same sent
//!   afresh;
//! - `forks life URL DIR KB`: what forks pay again in a life with a gap, a killed process and a
//!   compaction;
//! - `forks worker URL DIR [SESSION]`: the process that is killed there; executes lines of
//!   commands;
//! - `forks plain URL DIR`: how much of their first requests plain sub-agents of one type have in
//!   common;
//! - `forks many URL SINK DIR N KB`: memory, disk and time of N forks at once whose requests go to
//!   SINK, and the time of a bare program that sends the same;
//! - `teams many URL DIR N`: checks that one reply starts N teammates, and measures the time;
//! - `teams idle URL DIR N SECONDS`: memory and processor time of N idle teammates;
//! - `teams words URL DIR ROUNDS N`: message latency between a lead and its idle teammates, N in
//!   each round;
//! - `teams claims URL DIR ROUNDS N`: latency until an idle teammate begins a task that another's
//!   work has unblocked;
//! - `teams across URL DIR ROUNDS N`: as `words`, with the teammates in another process;
//! - `teams host URL DIR SESSION`: that process;
//! - `sync DIR`: time of the disk to make a page durable.

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
mod waiting;
mod worktrees;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use posse_port::clock::{Clock as _, SystemClock};
use serde_json::Value;

/// Time-out of a measurement.
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
        ["waiting", url, directory, count, seconds] => {
            waiting::run(url, Path::new(directory), count.parse()?, seconds.parse()?).await?
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

/// Returns the processor time so far of this process, all threads, and of the children it has
/// reaped, in milliseconds.
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
