//! A tool of one's own: an agent looks up what a shop has, and answers a customer.
//!
//! ```sh
//! ANTHROPIC_API_KEY=… cargo run -p posse-runtime --example own_tool "Can I have a lamp and a desk?"
//! ```

#![expect(
    clippy::disallowed_methods,
    reason = "a program of its own reads its environment"
)]
#![expect(clippy::print_stdout, reason = "this is what it is for")]

mod model;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::sync::Arc;

use posse_port::Ports;
use posse_port::tool::{
    Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace, typed,
};
use posse_protocol::{Command, ContentBlock, EventKind, Outcome};
use posse_runtime::{AgentProfile, Runtime, Setup};
use posse_store::Sqlite;
use schemars::JsonSchema;
use serde::Deserialize;

/// Says how many of an article there are.
struct Stock {
    articles: BTreeMap<&'static str, u32>,
}

/// Input of Stock. The model reads the comments of its fields.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StockInput {
    /// The article, in small letters.
    article: String,
}

impl TypedTool for Stock {
    type Input = StockInput;

    const NAME: &'static str = "Stock";

    fn description(&self) -> Cow<'static, str> {
        "Says how many of an article the shop has.".into()
    }

    /// What a call would do, before it is done. A tool that changes something is not `read_only`:
    /// then it needs a permission rule with its name, and someone to ask if there is none.
    fn intent(&self, input: &StockInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(Intent {
            read_only: true,
            beside_others: true,
            subject: Subject::Nothing,
            waits: false,
            title: format!("Stock of {}", input.article),
        })
    }

    async fn run(&self, input: StockInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        match self.articles.get(input.article.as_str()) {
            Some(count) => Ok(ToolOutput::text(count.to_string())),
            // The model is told and can try something else; `ToolError::Stop` would end the run.
            None => {
                let known: Vec<&str> = self.articles.keys().copied().collect();
                let known = known.join(", ");
                Err(ToolError::Tell(format!(
                    "unknown article; there are {known}"
                )))
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let question = env::args().nth(1);
    let question = question.unwrap_or_else(|| "Can I have two lamps?".into());
    let home = env::temp_dir().join("posse-example");
    let store = Sqlite::open(&home.join("posse.db"))?;
    let runtime = Runtime::new(Ports::new(
        Arc::new(model::from_environment()?),
        Arc::new(store),
    ));

    let stock = Stock {
        articles: BTreeMap::from([("chair", 4), ("lamp", 2), ("table", 0)]),
    };
    let workspace = Workspace::new(env::current_dir()?.canonicalize()?, home.join("spill"));
    let setup = Setup::new([typed(stock)].into_iter().collect(), workspace);
    let profile = AgentProfile::new("claude-opus-5-5", "You serve the customers of a shop.");
    let mut agent = runtime.start(&profile, setup);

    let prompt = vec![ContentBlock::text(question)];
    agent.handle.send(Command::Prompt(prompt)).await?;
    while let Some(event) = agent.events.recv().await {
        match event.kind {
            EventKind::CallStarted { title, .. } => println!("> {title}"),
            EventKind::CallDone { is_error: true, .. } => println!("> that failed"),
            EventKind::Ended(end) if end.outcome == Outcome::Completed => {
                println!("{}", end.text);
                break;
            }
            EventKind::Ended(end) => return Err(format!("{:?}", end.outcome).into()),
            _ => {}
        }
    }
    runtime.shut_down().await;
    Ok(())
}
