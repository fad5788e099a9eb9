//! The tools of agents, and the guardian that ends what their commands leave running.

use std::ffi::OsString;
use std::sync::LazyLock;

use posse_permission::Policy;
use posse_port::tool::Toolbox;
use posse_tools::{Reach, ToolsConfig, Watchdog};

/// The command of posse that stands guard.
pub(crate) const GUARD: &str = "guard";

/// The one of this process: all agents' commands are its care.
static GUARDIAN: LazyLock<Watchdog> = LazyLock::new(|| {
    // If it is not known, the first command says so.
    let posse = std::env::current_exe().unwrap_or_else(|_| "posse".into());
    Watchdog::new(posse, [GUARD])
});

/// Returns the tools of an agent, without those that the rules forbid altogether.
pub(crate) fn tools(policy: &Policy) -> Toolbox {
    let mut tools = all_tools();
    tools.retain(|tool| !policy.forbids_tool(tool));
    tools
}

/// Returns every tool that there is.
pub(crate) fn all_tools() -> Toolbox {
    posse_tools::all(ToolsConfig {
        reach: Reach::Public,
        background: true,
        guardian: Some(GUARDIAN.clone()),
    })
}

/// Stands guard until the process that started it ends. Returns none if no process of posse's did.
pub(crate) fn run_watchdog(arguments: &[OsString]) -> Option<()> {
    // Only the process that started us holds the other end open: it closes however that process ends.
    posse_tools::run_watchdog(arguments, std::io::stdin().lock())
}
