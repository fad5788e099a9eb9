//! `posse mcp serve`.

use std::process::ExitCode;

use tokio::task::LocalSet;

use crate::assemble::run_options::RunOptions;
use crate::config::store::StoreArgs;
use crate::serve::rights::ServerRights;
use crate::serve::serve;

/// Be an MCP server on standard input and output: run agents in this directory, and show its
/// sessions, tasks and mail.
///
/// The flags are those of `posse -p`, and hold for all calls. A call can ask for less. It ends when
/// its input does: what still runs is stopped and can be continued.
#[derive(clap::Args)]
#[command(after_help = "For example in the file of an editor:\n  \
    {\"mcpServers\": {\"posse\": {\"command\": \"posse\", \"args\": [\"mcp\", \"serve\", \
    \"--permission-mode\", \"acceptEdits\"]}}}")]
pub(super) struct ServeMcp {
    /// Maximum number of runs at once; others wait
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    max_runs: u32,
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    store: StoreArgs,
}

impl ServeMcp {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let rights = ServerRights::new(self.options, self.store)?;
        let runtime = crate::config::runtime()?;
        let tasks = LocalSet::new();
        let served = runtime.block_on(tasks.run_until(serve(rights, self.max_runs as usize)));
        // Blocked threads are not waited for: a read of standard input may never return.
        runtime.shutdown_background();
        served?;
        Ok(ExitCode::SUCCESS)
    }
}
