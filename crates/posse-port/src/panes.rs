//! The panes port: terminal panes in which teammates run.

use std::path::PathBuf;

use posse_protocol::{AgentId, Cost};

use super::BoxFuture;

/// A request for a teammate's pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPane {
    /// The teammate's session.
    pub session: AgentId,
    /// The teammate.
    pub member: AgentId,
    /// The pane's title: `name@team`.
    pub title: String,
    /// The teammate's colour in the team.
    pub color: String,
    /// The teammate's working directory.
    pub cwd: PathBuf,
    /// What the teammate may spend. The process in the pane knows no other budget: if the session
    /// has one and this is absent, no pane is opened.
    pub budget: Option<Cost>,
}

/// Opens panes. Each runs a process that takes the member from the store; the pane closes when that
/// process ends.
pub trait Panes: Send + Sync + std::fmt::Debug {
    /// Returns the backend's name in rosters, for example `tmux`.
    fn name(&self) -> &str;

    /// Opens a pane for a member that no host holds. Returns once the pane is open; the error is
    /// text for people.
    fn open(&self, pane: NewPane) -> BoxFuture<'_, Result<(), String>>;
}
