//! Worktrees of agents for a person at the board: what git says of them. Everything here blocks.

use std::collections::HashSet;
use std::path::PathBuf;

use posse_port::worktree::Worktree;
use posse_protocol::AgentId;
use posse_tools::{Found, GitWorktrees, WorktreeDiff};
use posse_tui::board::{BoardReview, BoardWorktree, ReviewFile, WorktreeChanges};

use super::own_worktrees::own_worktrees;

/// Worktrees of agents.
#[derive(Clone)]
pub(crate) struct ReviewedWorktrees {
    worktrees: GitWorktrees,
}

/// A worktree that was found.
#[derive(Clone)]
pub(crate) struct WorktreeSite {
    worktree: Worktree,
    /// As a board shows it.
    pub(crate) shown: BoardWorktree,
}

impl WorktreeSite {
    /// Returns its directory.
    pub(crate) fn path(&self) -> PathBuf {
        self.worktree.path.clone()
    }
}

impl ReviewedWorktrees {
    /// Returns those of this posse's home.
    pub(crate) fn open() -> anyhow::Result<Self> {
        let worktrees = own_worktrees()?;
        Ok(Self { worktrees })
    }

    /// Returns those of a directory.
    #[cfg(test)]
    pub(crate) fn at(directory: PathBuf) -> Self {
        let worktrees = GitWorktrees::new(directory);
        Self { worktrees }
    }

    /// Returns the worktrees of some agents, newest first. Git is not asked.
    pub(crate) fn of(&self, agents: &HashSet<AgentId>) -> anyhow::Result<Vec<WorktreeSite>> {
        let mut places = self.worktrees.places_of(|agent| agents.contains(&agent))?;
        // The ids of agents begin with the time.
        places.sort_by_key(|place| std::cmp::Reverse(place.agent));
        let sites = places.into_iter().map(|place| WorktreeSite {
            shown: BoardWorktree {
                agent: place.agent,
                branch: place.worktree.branch.clone(),
                base: place.worktree.base.clone(),
                is_live: place.live,
            },
            worktree: place.worktree,
        });
        Ok(sites.collect())
    }

    /// Returns how much differs in a worktree.
    pub(crate) fn changes(&self, site: &WorktreeSite) -> WorktreeChanges {
        match self.worktrees.summary(&site.worktree) {
            Ok(summary) => WorktreeChanges::Read {
                commits: summary.commits,
                files: summary.files,
                added: summary.added,
                removed: summary.removed,
            },
            Err(error) => WorktreeChanges::Unreadable(error.to_string()),
        }
    }

    /// Returns all that differs in a worktree.
    pub(crate) fn review(&self, site: &WorktreeSite) -> anyhow::Result<BoardReview> {
        let WorktreeDiff { files, left_out } = self.worktrees.diff(&site.worktree)?;
        let files = files.into_iter().map(|file| ReviewFile {
            change: file.change,
            note: file.note,
        });
        Ok(BoardReview {
            agent: site.shown.agent,
            branch: site.worktree.branch.clone(),
            base: site.worktree.base.clone(),
            files: files.collect(),
            left_out,
        })
    }

    /// Returns what would be lost with the worktree of an agent that has ended; none if nothing
    /// would.
    pub(crate) fn loss(&self, agent: AgentId) -> anyhow::Result<Option<String>> {
        Ok(self.ended(agent)?.keeps)
    }

    /// Removes the worktree of an agent with all that is in it, and its branch, if no more would be
    /// lost than the person was told. Returns commits by which work can be restored.
    pub(crate) fn discard(
        &self,
        agent: AgentId,
        told: Option<&str>,
    ) -> anyhow::Result<Vec<String>> {
        let found = self.ended(agent)?;
        if found.keeps.as_deref() != told {
            let now = found.keeps.as_deref().unwrap_or("nothing");
            anyhow::bail!("nothing was discarded: the worktree has changed, and holds {now} now");
        }
        // Before it is removed: afterwards nothing names them any more.
        let commits = self.worktrees.commits(&found);
        self.worktrees.discard(&found)?;
        Ok(commits)
    }

    fn ended(&self, agent: AgentId) -> anyhow::Result<Found> {
        let found = self.worktrees.list_of(|it| it == agent)?.into_iter().next();
        let found = found.ok_or_else(no_worktree)?;
        anyhow::ensure!(
            !found.live,
            "its agent runs: stop the process that hosts it first"
        );
        Ok(found)
    }
}

/// Returns the error that a worktree is gone.
pub(crate) fn no_worktree() -> anyhow::Error {
    anyhow::anyhow!("there is no such worktree any more")
}
