//! A store of one's own: it prints each step of an agent once it is durable, and leaves the rest to
//! a store below.
//!
//! What a store promises stands at [`Store`]: a step is durable whole or not at all when `commit`
//! returns, steps of an agent keep the order of the calls, and only the holder of the newest epoch
//! may write. A layer keeps these promises by passing each step on as it is. A store with an engine
//! of its own implements all of [`Store`]; the functions of `posse_testkit::store_contract`, one for
//! each promise, prove it, as they do for SQLite and PostgreSQL.
//!
//! ```sh
//! ANTHROPIC_API_KEY=… cargo run -p posse-runtime --example own_store "Say hello."
//! ```

#![expect(
    clippy::disallowed_methods,
    reason = "a program of its own reads its environment"
)]
#![expect(clippy::print_stdout, reason = "this is what it is for")]

mod model;

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use posse_port::clock::{Clock, SystemClock};
use posse_port::store::{Committed, Step, Store, StoreError, StoreLayer};
use posse_port::tool::{Toolbox, Workspace};
use posse_port::{BoxFuture, Ports};
use posse_protocol::{Command, ContentBlock, EventKind, Outcome};
use posse_runtime::{AgentProfile, Runtime, Setup};
use posse_store::Sqlite;

/// Prints each step once it is durable.
struct PrintedSteps<S> {
    below: S,
    clock: SystemClock,
    /// Number of steps so far.
    count: AtomicU64,
}

impl<S: Store> StoreLayer for PrintedSteps<S> {
    fn below(&self) -> &dyn Store {
        &self.below
    }

    fn commit(&self, step: Step) -> BoxFuture<'_, Result<Committed, StoreError>> {
        let kinds = step.entries.iter().map(|entry| format!("{:?}", entry.kind));
        let entries = kinds.collect::<Vec<_>>().join(", ");
        let agent = step.agent;
        let begun = self.clock.now();
        // Called here, not in the future: steps keep the order of the calls.
        let committed = self.below.commit(step);
        Box::pin(async move {
            let committed = committed.await?;
            let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
            let took = self.clock.now().saturating_sub(begun);
            println!("step {number} of {agent} is durable after {took:.1?}: [{entries}]");
            Ok(committed)
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let question = env::args().nth(1).unwrap_or_else(|| "Say hello.".into());
    let home = env::temp_dir().join("posse-example");
    let store = Arc::new(PrintedSteps {
        below: Sqlite::open(&home.join("posse.db"))?,
        clock: SystemClock::default(),
        count: AtomicU64::new(0),
    });
    let runtime = Runtime::new(Ports::new(
        Arc::new(model::from_environment()?),
        Arc::clone(&store) as _,
    ));

    let workspace = Workspace::new(env::current_dir()?.canonicalize()?, home.join("spill"));
    let setup = Setup::new(Toolbox::default(), workspace);
    let profile = AgentProfile::new("claude-opus-5-5", "You answer in a sentence.");
    let mut agent = runtime.start(&profile, setup);
    let prompt = vec![ContentBlock::text(question)];
    agent.handle.send(Command::Prompt(prompt)).await?;
    while let Some(event) = agent.events.recv().await {
        if let EventKind::Ended(end) = event.kind {
            if end.outcome != Outcome::Completed {
                return Err(format!("{:?}", end.outcome).into());
            }
            println!("{}", end.text);
            break;
        }
    }
    runtime.shut_down().await;
    println!("{} steps in all", store.count.load(Ordering::Relaxed));
    Ok(())
}
