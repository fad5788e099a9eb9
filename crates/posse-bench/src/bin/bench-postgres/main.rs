//! Measures posse's load on PostgreSQL, and the same rows written by plain statements.
//!
//! - `serve [--slow]`: runs a separate server; prints its URL, and ends when its input ends. With
//!   `--slow` each sync takes a millisecond more;
//! - `steps posse|bare AGENTS SECONDS one|each URL`: steps of AGENTS agents, all in one realm or
//!   each in its own;
//! - `claims posse|bare AGENTS TASKS one|each URL`: AGENTS agents claim TASKS tasks, until none is
//!   left;
//! - `turns AGENTS SECONDS URL`: whole turns;
//! - `idle AGENTS SECONDS URL`: AGENTS idle agents for SECONDS seconds;
//! - `takeover AGENTS LEASE_MS URL`: a host is killed, and another takes its agents;
//! - `hold AGENTS URL`: the host that is killed; prints its agents.
//!
//! Each measurement has its own database on the server at URL, and prints one JSON object.

#![expect(
    clippy::print_stdout,
    reason = "a measuring program prints what it measured"
)]

mod claims;
mod idle;
mod line;
mod meter;
mod place;
mod steps;
mod takeover;
mod turns;
mod words;

use std::error::Error;
use std::io::Write as _;
use std::time::Duration;

use posse_testkit::postgres::{Options, Server, Sync};

use place::Place;

type Failed = Box<dyn Error + Send + std::marker::Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve"] => return serve(Sync::On),
        ["serve", "--slow"] => return serve(Sync::Late(Duration::from_millis(1))),
        ["hold", agents, url] => return takeover::hold(url, agents.parse()?).await,
        _ => {}
    }
    let place = Place::new(words.last().copied().unwrap_or_default()).await?;
    let found = match words[..] {
        ["steps", side, agents, seconds, realms, _] => {
            steps::run(
                &place,
                side.parse()?,
                agents.parse()?,
                secs(seconds)?,
                realms.parse()?,
            )
            .await
        }
        ["claims", side, agents, tasks, realms, _] => {
            claims::run(
                &place,
                side.parse()?,
                agents.parse()?,
                tasks.parse()?,
                realms.parse()?,
            )
            .await
        }
        ["turns", agents, seconds, _] => turns::run(&place, agents.parse()?, secs(seconds)?).await,
        ["idle", agents, seconds, _] => idle::run(&place, agents.parse()?, secs(seconds)?).await,
        ["takeover", agents, lease, _] => {
            takeover::run(&place, agents.parse()?, lease.parse()?).await
        }
        _ => Err("see the head of this program for its arguments".into()),
    };
    place.leave().await?;
    println!("{}", found?);
    Ok(())
}

/// The writer that is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Posse,
    Bare,
}

impl std::str::FromStr for Side {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "posse" => Ok(Self::Posse),
            "bare" => Ok(Self::Bare),
            _ => Err(format!("`{word}` is no side")),
        }
    }
}

fn secs(text: &str) -> Result<Duration, Failed> {
    Ok(Duration::try_from_secs_f64(text.parse()?)?)
}

fn serve(sync: Sync) -> Result<(), Failed> {
    // Large enough that no checkpoint interferes.
    let options = Options {
        sync,
        ..Options::default()
    }
    .set("shared_buffers", "256MB")
    .set("max_wal_size", "4GB")
    .set("checkpoint_timeout", "30min");
    let server = Server::start(options)?;
    say(&server.url())?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

/// Prints and flushes a line: the parent process waits for it.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
