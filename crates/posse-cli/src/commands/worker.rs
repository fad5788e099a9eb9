//! `posse worker`.

use std::process::ExitCode;
use std::time::Duration;

use posse_protocol::Name;
use posse_runtime::live::setup::Approver;

use crate::assemble::agent_args::AgentArgs;
use crate::assemble::run_config::RunConfig;
use crate::config::store::StoreArgs;
use crate::error::Advised;
use crate::headless::worker::{WorkerConfig, serve};

/// A session whose main agent was at work this recently has somebody who may answer.
const IN_USE: Duration = Duration::from_secs(24 * 60 * 60);

/// Host members of teams that other processes lead, on this machine or on others.
///
/// `--team-backend worker` leaves members to workers. A worker takes members that no process hosts,
/// and continues those of a process that has died. The files they work on must be here as they are
/// where the lead is. Ctrl-C or SIGTERM ends the worker: it releases its members, and others
/// continue them.
#[derive(clap::Args)]
pub(crate) struct WorkerCommand {
    /// Host only members of this team; can be repeated [default: any team of the store]
    #[arg(long, value_name = "NAME")]
    team: Vec<Name>,
    /// Maximum number of members at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max: Option<u32>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    terms: AgentArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl WorkerCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let given = self.terms.given(&["worker"])?;
        if self.terms.names_model() {
            anyhow::bail!(Advised {
                what: "a member keeps the model it was started with".into(),
                advice: "omit --model".into(),
            });
        }
        let on_question = self.terms.on_question;
        let config = RunConfig {
            approver: on_question.map_or(Approver::WhileUsed(IN_USE), Into::into),
            ..self.terms.run_config(None, self.store, given)
        };
        let serving = WorkerConfig {
            teams: self.team,
            most: self.max.map(|most| most as usize),
            json: self.json,
        };
        let runtime = crate::config::runtime()?;
        let result = runtime.block_on(serve(config, &serving));
        // Blocked threads are not waited for: a read of standard input may never return.
        runtime.shutdown_background();
        result
    }
}
