//! The panes port: where teammates run that have a terminal of their own.

use std::path::PathBuf;

use posse_protocol::{AgentId, Cost};

use super::BoxFuture;

/// A teammate that is to have a pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPane {
    /// The session that it belongs to.
    pub session: AgentId,
    /// The teammate.
    pub member: AgentId,
    /// What stands above the pane: `name@team`.
    pub title: String,
    /// The colour that it has in the team.
    pub color: String,
    /// Where it works.
    pub cwd: PathBuf,
    /// What it may spend by itself. The process in the pane knows of no other budget: where the session has one
    /// and this is absent no pane is opened.
    pub budget: Option<Cost>,
}

/// Opens panes. In each runs a process that takes the member from the store; when that ends the pane is gone.
pub trait Panes: Send + Sync + std::fmt::Debug {
    /// What it is called in rosters: `tmux` for one.
    fn name(&self) -> &str;

    /// Opens a pane for a member that nobody holds. Returns when the pane is there; why not, for people.
    fn open(&self, pane: NewPane) -> BoxFuture<'_, Result<(), String>>;
}
