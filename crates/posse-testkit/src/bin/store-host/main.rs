//! A process with an open store, for tests that kill, stop and race processes.
//!
//! `store-host STORE ROLE [lease=MS] [sweep=MS] [patience=MS] [deaf]`. Prints `ready`, processes
//! the lines it is given according to its role, and ends when its input ends.

#![expect(clippy::print_stdout, reason = "whoever started it reads what it says")]

mod door;
mod serve;

use std::error::Error;
use std::str::FromStr;
use std::time::Duration;

use posse_store::Timing;
use posse_testkit::place::Place;

type Failed = Box<dyn Error + Send + Sync>;

/// The role of the process.
enum Role {
    /// Executes commands on the store.
    Serve,
    /// Holds the writer's lock of the turnstile.
    Door,
}

impl FromStr for Role {
    type Err = Failed;

    fn from_str(text: &str) -> Result<Self, Failed> {
        match text {
            "serve" => Ok(Self::Serve),
            "door" => Ok(Self::Door),
            _ => Err(format!("there is no role {text}").into()),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, role, times @ ..] = &arguments[..] else {
        return Err("see the head of this program for its arguments".into());
    };
    let (place, timing): (Place, _) = (store.parse()?, timing(times)?);
    match role.parse()? {
        Role::Serve => serve::run(&place, timing).await,
        Role::Door => door::run(place.file()?),
    }
}

fn timing(words: &[String]) -> Result<Timing, Failed> {
    let mut timing = Timing::default();
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, "0"));
        let value = Duration::from_millis(value.parse()?);
        match name {
            "lease" => timing.lease = value,
            "sweep" => timing.sweep = value,
            "patience" => timing.patience = value,
            "deaf" => timing.deaf = true,
            _ => return Err(format!("there is no time called {name}").into()),
        }
    }
    Ok(timing)
}
