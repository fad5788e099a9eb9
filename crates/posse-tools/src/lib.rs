//! The tools of agents: files, search, shell, web.
//!
//! Each tool is a file; what several of them share is a file named after it. File tools reach
//! nothing outside the workspace's roots (`rooted_fs`), nothing that the shell starts outlives
//! its call or run (`processes`) or posse itself (`watchdog`), and the web is reached at public
//! addresses only (`address`).

mod address;
mod answer;
mod bash;
mod capture;
mod cgroup;
mod child;
mod command_disk;
mod detached;
mod edit;
mod git;
mod glob;
mod grep;
mod hooks;
pub mod image;
mod live_sink;
mod markdown;
mod mcp;
mod origin;
mod output_file;
mod panes;
mod preview;
mod process;
mod process_start;
mod process_table;
mod processes;
mod proxy;
mod read;
mod replace;
mod rooted_fs;
mod sandbox;
mod shell;
mod spawner;
mod system_processes;
mod walk;
mod watchdog;
mod web_fetch;
mod worktree;
mod write;

use std::sync::Arc;

use posse_port::tool::{Toolbox, typed};

pub use address::Reach;
pub use bash::{Bash, BashInput, ForegroundBash, ForegroundBashInput};
pub use edit::{Edit, EditInput};
pub use git::{HoldError, is_untracked};
pub use glob::{Glob, GlobInput};
pub use grep::{Grep, GrepInput, OutputMode};
pub use hooks::SystemHooks;
pub use mcp::{McpServers, McpSignIns, PendingSignIn, SignInAnswer, SignInError, SignedIn};
pub use origin::call_above;
pub use panes::{
    Color, CommandPanes, Inside, Launch, Place, Template, TmuxPanes, Variable, WrongTemplate,
};
pub use process_table::CALL_MARK;
pub use proxy::Upstream;
pub use read::{Read, ReadInput};
pub use sandbox::{Sandbox, SandboxConfig};
pub use system_processes::SystemProcesses;
pub use watchdog::{GUARD, Watchdog, run_watchdog};
pub use web_fetch::{WebFetch, WebFetchInput};
pub use worktree::{
    ChangedFile, CheckoutGate, Found, FoundBranch, GitWorktrees, Swept, WorktreeDiff,
    WorktreeError, WorktreePlace, WorktreeSummary,
};
pub use write::{Write, WriteInput};

/// The configuration of a process's tools.
#[derive(Clone, Debug)]
pub struct ToolsConfig {
    /// The addresses that may be reached.
    pub reach: Reach,
    /// True if commands may continue after their call.
    pub background: bool,
    /// Starts what agents run.
    pub processes: SystemProcesses,
    /// Says where git may read without being asked about; nowhere if there is none.
    pub gate: Option<Arc<dyn CheckoutGate>>,
}

/// Returns all tools, by name. Nothing that costs time happens here: the HTTP client is built
/// with the first fetch, the watchdog started with the first command.
pub fn all(means: ToolsConfig) -> Toolbox {
    let bash = Bash::new(means.processes, means.gate);
    Toolbox::from_iter([
        if means.background {
            typed(bash)
        } else {
            typed(ForegroundBash(bash))
        },
        typed(Edit),
        typed(Glob),
        typed(Grep),
        typed(Read),
        typed(WebFetch::new(means.reach)),
        typed(Write),
    ])
}
