//! `posse worker`.

use std::process::ExitCode;

use posse_protocol::Name;

use crate::assemble::agent_args::AgentArgs;
use crate::config::store::StoreArgs;
use crate::error::Advised;
use crate::headless::worker::{WorkerConfig, serve};

/// Have members of teams work here that other processes lead, on this machine or on others.
///
/// `--team-backend worker` raises members for workers. A worker takes whoever nobody has, and goes on with whom
/// another had that has died. What they work on must be here as it is where the lead is. Ctrl-C or SIGTERM ends it:
/// what it has is given back, and others go on with it.
#[derive(clap::Args)]
pub(crate) struct WorkerCommand {
    /// Only members of this team; can be said several times [default: any team of the store]
    #[arg(long, value_name = "NAME")]
    team: Vec<Name>,
    /// Have no more than so many members at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max: Option<u32>,
    /// One JSON object per line
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
        let config = self.terms.run_config(None, self.store, given);
        let serving = WorkerConfig {
            teams: self.team,
            most: self.max.map(|most| most as usize),
            json: self.json,
        };
        let runtime = crate::config::runtime()?;
        let result = runtime.block_on(serve(config, &serving));
        // Whatever still waits in a thread is not waited for.
        runtime.shutdown_background();
        result
    }
}
