//! A process that guards the PostgreSQL servers of tests, so that they end even if the tests are
//! killed.
//!
//! - `watch DIR`: when its input ends, removes DIR and ends the processes that work in it;
//! - `share DIR`: runs the server that all tests share, with its files in DIR; prints `ready`;
//! - `database`: an empty database of that server for a program outside the testkit's tests; prints
//!   its URL, and drops it when its input ends.

#![expect(clippy::print_stdout, reason = "whoever started it reads what it says")]

use std::path::Path;

use posse_testkit::postgres::{Database, keep, watch};
use posse_testkit::scripted::SetupError;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> Result<(), SetupError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["watch", directory] => watch(Path::new(directory)),
        ["share", directory] => share(Path::new(directory)),
        ["database"] => {
            let database = Database::empty()?;
            println!("{}", database.url());
            std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
            Ok(())
        }
        _ => Err("see the head of this program for its arguments".into()),
    }
}

fn share(directory: &Path) -> Result<(), SetupError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let kept = runtime.block_on(async {
        let (mut end, mut interrupt) = (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        );
        let told = async move {
            tokio::select! { _ = end.recv() => {}, _ = interrupt.recv() => {} }
        };
        keep(directory, || println!("ready"), told).await
    });
    // It may still wait for a lock.
    runtime.shutdown_background();
    kept
}
