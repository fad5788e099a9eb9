//! One agent: it reads the files of the current directory and answers a question about them.
//!
//! ```sh
//! ANTHROPIC_API_KEY=… cargo run -p posse-runtime --example one_agent "What is this project?"
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

use posse_model::price::PriceList;
use posse_port::Ports;
use posse_port::tool::{Workspace, typed};
use posse_protocol::{Command, ContentBlock, Cost, Delta, EventKind, Outcome};
use posse_runtime::{AgentProfile, Runtime, Setup};
use posse_store::Sqlite;
use posse_tools::{Glob, Grep, Read};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let question = env::args().nth(1);
    let question = question.unwrap_or_else(|| "What is in this directory?".into());

    // The ports: what agents need from outside. The store keeps everything that they do.
    let home = env::temp_dir().join("posse-example");
    let store = Sqlite::open(&home.join("posse.db"))?;
    let runtime = Runtime::new(Ports {
        prices: Arc::new(PriceList::built_in()?),
        ..Ports::new(Arc::new(model::from_environment()?), Arc::new(store))
    });

    // The agent: what it is for, the tools that it has, and the directory that it works in. What
    // stays inside that directory and changes nothing needs no permission rule.
    let profile = AgentProfile::new(
        "claude-opus-5-5",
        "You answer questions about the files of a directory, in a sentence or two.",
    );
    let tools = [typed(Glob), typed(Grep), typed(Read)];
    let workspace = Workspace::new(env::current_dir()?.canonicalize()?, home.join("spill"));
    let setup = Setup::new(tools.into_iter().collect(), workspace);
    let mut agent = runtime.start(&profile, setup);

    // Commands go in, events come out.
    let prompt = vec![ContentBlock::text(question)];
    agent.handle.send(Command::Prompt(prompt)).await?;
    while let Some(event) = agent.events.recv().await {
        match event.kind {
            EventKind::Delta(Delta::Text(text)) => print!("{text}"),
            EventKind::CallStarted { title, .. } => println!("\n> {title}"),
            EventKind::Ended(end) => {
                let cost: Cost = end.spent.iter().filter_map(|spent| spent.cost).sum();
                println!("\n({} model calls, {cost}, agent {})", end.turns, agent.id);
                match end.outcome {
                    Outcome::Completed => break,
                    Outcome::Paused(fault) | Outcome::Failed(fault) => {
                        return Err(fault.message.into());
                    }
                    other => return Err(format!("the run did not complete: {other:?}").into()),
                }
            }
            _ => {}
        }
    }
    runtime.shut_down().await;
    Ok(())
}
