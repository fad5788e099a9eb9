//! The tools of agents, and the watchdog that ends what their commands leave running.

use std::ffi::OsString;
use std::sync::{Arc, LazyLock};

use posse_port::tool::Toolbox;
pub(crate) use posse_tools::GUARD;
use posse_tools::{Reach, Sandbox, SystemProcesses, ToolsConfig, Watchdog};

use super::trust_gate::TrustGate;
use crate::config::settings::Settings;

/// The watchdog of this process, shared by the commands of all agents.
static GUARDIAN: LazyLock<Watchdog> = LazyLock::new(|| {
    // If it cannot be found, the first command reports that it could not be started.
    let posse = std::env::current_exe().unwrap_or_else(|_| "posse".into());
    Watchdog::new(posse)
});

/// Returns the tools of an agent, without those that rules forbid entirely. If `trusts`, every
/// workspace is trusted.
pub(crate) fn tools(settings: &Settings, sandbox: Option<Sandbox>, trusts: bool) -> Toolbox {
    let mut tools = all_tools(settings, sandbox, trusts);
    tools.retain(|tool| !settings.policy.forbids_tool(tool));
    tools
}

/// Returns what starts programs, with the watchdog of this process.
pub(crate) fn processes(
    sandbox: Option<Sandbox>,
    variables: Vec<(OsString, OsString)>,
) -> SystemProcesses {
    SystemProcesses::new(Some(GUARDIAN.clone()), sandbox, variables)
}

/// Returns all tools.
pub(crate) fn all_tools(settings: &Settings, sandbox: Option<Sandbox>, trusts: bool) -> Toolbox {
    posse_tools::all(ToolsConfig {
        reach: Reach::Public,
        background: true,
        processes: processes(sandbox, settings.env.clone()),
        gate: Some(Arc::new(TrustGate { trusts })),
    })
}

/// Runs as a watchdog until the process that started it ends. Returns `None` if the arguments are
/// not those of a watchdog.
pub(crate) fn run_watchdog(arguments: &[OsString]) -> Option<()> {
    // Standard input is the connection to posse.
    posse_tools::run_watchdog(arguments, std::io::stdin())
}
