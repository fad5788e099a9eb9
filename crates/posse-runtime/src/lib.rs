//! Agents as a library: what the program `posse` is made of, without its terminal, its files and
//! its settings.
//!
//! An agent talks with a model, calls tools, starts other agents and sends them messages.
//! Everything that it does is stored before it has an effect, so an agent continues after a crash
//! where it was, in this process or in another.
//!
//! # Four ideas
//!
//! **A runtime runs agents.** [`Runtime::start`] makes one, [`Runtime::resume`] continues a stored
//! one, and [`Runtime::fork_session`] begins another with its history. A store has one runtime in a
//! process. Agents are tasks of tokio; [`Runtime::shut_down`] stops them and waits.
//!
//! **An agent has a profile and a setup.** The [`AgentProfile`] is what it is for its whole life:
//! its model and system prompt. It is stored. The [`Setup`] is what this process gives it: tools,
//! permission rules, directories, limits, who answers questions, and how it may start other
//! agents. It is given again when the agent is resumed.
//!
//! **Commands go in, events come out.** [`Agent::handle`] takes [`Command`]s: a prompt, an answer,
//! an interruption. [`Agent::events`] gives [`Event`]s: text while it arrives, calls, questions, the
//! end of a run. What an event says has happened is durable. When all handles are dropped, the agent
//! finishes what it was told and ends. [`Runtime::watch`] shows agents to any number of viewers.
//!
//! **Ports reach the outside.** The runtime calls no API and starts no program: it asks the
//! [`Ports`] that it was given. A model and a store are all that [`Ports::new`] needs. posse brings
//! adapters, and each of them can be one of yours:
//!
//! | port | what posse brings |
//! |---|---|
//! | [`Model`](posse_port::model::Model) | `posse_model`: the APIs of Anthropic and OpenAI |
//! | [`Store`](posse_port::store::Store) | `posse_store`: a file of SQLite, a PostgreSQL server |
//! | [`Tool`](posse_port::tool::Tool) | `posse_tools`: files, shell, web; write your own as a [`TypedTool`](posse_port::tool::TypedTool) |
//! | [`Prices`](posse_port::price::Prices) | `posse_model::price`: prices of models, which budgets in dollars need |
//! | [`Worktrees`](posse_port::worktree::Worktrees) | `posse_tools::GitWorktrees`: checkouts of agents |
//! | [`HookRunner`](posse_port::hooks::HookRunner), [`Servers`](posse_port::servers::Servers) | `posse_tools`: hooks as programs and requests, MCP servers |
//!
//! # An agent
//!
//! ```
//! use std::error::Error;
//! use std::path::PathBuf;
//! use std::sync::Arc;
//!
//! use posse_port::Ports;
//! use posse_port::model::Model;
//! use posse_port::store::Store;
//! use posse_port::tool::{Toolbox, Workspace};
//! use posse_protocol::{Command, ContentBlock, EventKind};
//! use posse_runtime::{AgentProfile, Runtime, Setup};
//!
//! async fn answer(
//!     model: Arc<dyn Model>,
//!     store: Arc<dyn Store>,
//!     directory: PathBuf,
//! ) -> Result<String, Box<dyn Error>> {
//!     let runtime = Runtime::new(Ports::new(model, store));
//!     let profile = AgentProfile::new("claude-opus-5-5", "You answer in a sentence.");
//!     let workspace = Workspace::new(directory.clone(), directory.join("spill"));
//!     let mut agent = runtime.start(&profile, Setup::new(Toolbox::default(), workspace));
//!
//!     let prompt = vec![ContentBlock::text("Why is the sky blue?")];
//!     agent.handle.send(Command::Prompt(prompt)).await?;
//!     while let Some(event) = agent.events.recv().await {
//!         if let EventKind::Ended(end) = event.kind {
//!             return Ok(end.text);
//!         }
//!     }
//!     Err("the agent ended without an answer".into())
//! }
//! ```
//!
//! # Where to go next
//!
//! - Programs to begin with are in this crate's `examples/`: `one_agent.rs`, `own_tool.rs` (a tool of
//!   yours), `team.rs` (members, tasks, a lead) and `own_store.rs` (a store of yours).
//! - Rules: [`Policy`](posse_permission::Policy) in [`Setup::policy`], and [`Approver`] for what they
//!   do not decide. Without either, an agent reads in its workspace and changes nothing.
//! - Money and time: [`Budget`] in [`Limits::budget`] for the session, [`Budgets`] in
//!   [`Setup::spawning`] for each agent that it starts.
//! - Other agents: [`Spawning::types`] says which; [`definition::agent_type::built_in`] are posse's own.
//!   The texts of files that declare types, skills, servers and hooks are parsed by [`definition`] and [`hook`].
//! - Tests: `posse_scripted` plays a model from a script, over HTTP; `posse_testkit` has a clock that
//!   obeys, and the contract of every store.
//!
//! [`Command`]: posse_protocol::Command
//! [`Event`]: posse_protocol::Event
//! [`Ports`]: posse_port::Ports
//! [`Ports::new`]: posse_port::Ports::new

pub mod agent;
pub mod definition;
pub mod govern;
pub(crate) mod history;
pub mod hook;
pub mod live;
pub mod prompt;
pub mod runtime;
pub mod session;
mod supervise;
pub(crate) mod toolset;

pub use crate::definition::agent_type::Definition;
pub use crate::definition::spawning::{Background, Spawning};
pub use crate::session::team::host::{Hosted, Hosting, Members};
pub use govern::{Budget, Budgets};
pub use live::handle::{Agent, AgentHandle};
pub use live::setup::{AgentProfile, Approver, Limits, Setup};
pub use runtime::Runtime;
pub use session::session_hooks::SessionHooks;
pub use session::start_error::StartError;
