//! Worktrees of agents: a list, how much differs in each, and the review of one.

use std::collections::HashMap;

use posse_protocol::AgentId;

use super::facts::{BoardReview, BoardWorktree, WorktreeChanges, column};
use super::review::DiffReview;
use super::rows::{Keyed, RowList};

impl Keyed for BoardWorktree {
    type Key = AgentId;

    fn key(&self) -> AgentId {
        self.agent
    }
}

/// Worktrees of agents.
#[derive(Default)]
pub(super) struct WorktreeList {
    pub(super) list: RowList<BoardWorktree>,
    changes: HashMap<AgentId, WorktreeChanges>,
    /// The agent whose review is wanted and not read yet.
    wanted: Option<AgentId>,
    /// The review that is open.
    pub(super) review: Option<DiffReview>,
}

impl WorktreeList {
    /// Replaces all worktrees. What is known of those that stay is kept.
    pub(super) fn set(&mut self, mut worktrees: Vec<BoardWorktree>) {
        for worktree in &mut worktrees {
            worktree.branch = column(&worktree.branch);
            worktree.base = column(&worktree.base);
        }
        let is_there = |agent: &AgentId| worktrees.iter().any(|it| it.agent == *agent);
        self.changes.retain(|agent, _| is_there(agent));
        self.list.set(worktrees);
    }

    /// Notes how much differs in some of them.
    pub(super) fn set_changes(&mut self, changes: Vec<(AgentId, WorktreeChanges)>) {
        for (agent, changes) in changes {
            let changes = match changes {
                WorktreeChanges::Unreadable(why) => WorktreeChanges::Unreadable(column(&why)),
                changes => changes,
            };
            self.changes.insert(agent, changes);
        }
    }

    /// Returns how much differs in a worktree; none if that is not known yet.
    pub(super) fn changes(&self, agent: AgentId) -> Option<&WorktreeChanges> {
        self.changes.get(&agent)
    }

    /// Returns the agent whose worktree is highlighted or reviewed.
    pub(super) fn target(&self) -> Option<AgentId> {
        match &self.review {
            Some(review) => Some(review.agent()),
            None => self.list.highlighted().map(|it| it.agent),
        }
    }

    /// Notes that the review of a worktree is wanted.
    pub(super) fn want(&mut self, agent: AgentId) {
        self.wanted = Some(agent);
    }

    /// Opens the review that is wanted, or reads the open one again. Another is dropped.
    pub(super) fn set_review(&mut self, review: BoardReview) {
        if self.wanted != Some(review.agent) {
            return;
        }
        self.wanted = None;
        match &mut self.review {
            Some(open) if open.agent() == review.agent => open.read_again(review),
            Some(_) => {}
            None => self.review = Some(DiffReview::new(review)),
        }
    }

    /// The comments of a review have reached the agent.
    pub(super) fn sent(&mut self, agent: AgentId) {
        let review = self.review.as_mut();
        if let Some(review) = review.filter(|review| review.agent() == agent) {
            review.drop_sent();
        }
    }

    /// Returns the number of comments that are not sent.
    pub(super) fn unsent(&self) -> usize {
        self.review.as_ref().map_or(0, DiffReview::unsent)
    }

    /// Closes the review.
    pub(super) fn close(&mut self) {
        self.review = None;
        self.wanted = None;
    }

    /// Returns the worktrees that are on the screen.
    pub(super) fn visible(&self, height: usize) -> Vec<AgentId> {
        if self.review.is_some() {
            return Vec::new();
        }
        let rows = self.list.rows().iter().skip(self.list.cursor().offset());
        rows.take(height).map(|it| it.agent).collect()
    }

    /// What is shown has this many columns and rows.
    pub(super) fn fit(&mut self, width: u16, height: usize) {
        match &mut self.review {
            Some(review) => review.fit(width, height),
            None => self.list.fit(height),
        }
    }

    /// Returns the numbers of the highlighted line and of the first one on the screen.
    pub(super) fn place(&self) -> (usize, usize) {
        match &self.review {
            Some(review) => (review.cursor().at(), review.cursor().offset()),
            None => (self.list.cursor().at(), self.list.cursor().offset()),
        }
    }

    /// Returns the number of lines.
    pub(super) fn lines(&self) -> usize {
        match &self.review {
            Some(review) => review.rows().len(),
            None => self.list.rows().len(),
        }
    }

    /// Highlights a line that the person chose.
    pub(super) fn go(&mut self, number: usize, height: usize) {
        match &mut self.review {
            Some(review) => review.go(number, height),
            None => self.list.go(number, height),
        }
    }
}
