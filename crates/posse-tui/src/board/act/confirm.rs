//! What cannot be undone: a person is asked first, and told what a yes would do.

use posse_protocol::{AgentId, ListId, TaskId};

use super::{only_on_agents, was_lost};
use crate::board::review::CommentId;
use crate::board::{Board, BoardEffect, BoardScreen};
use crate::conversation::SETTLE_MS;
use crate::text::one_line;

/// Something that waits for a yes, since it cannot be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::board) enum Confirm {
    /// Stops an agent and all below it.
    Stop {
        agent: AgentId,
        /// Number of those below it, and how many of them are at work.
        below: (usize, usize),
        /// Since when that is so, if it has changed while it was asked.
        changed_ms: Option<i64>,
    },
    /// Deletes a task.
    DeleteTask {
        list: ListId,
        task: TaskId,
        subject: String,
    },
    /// Deletes a worktree.
    Discard {
        agent: AgentId,
        /// What would be lost.
        loss: Option<String>,
        /// When it was asked: not at once with the key.
        asked_ms: i64,
    },
    /// Deletes a comment of the review.
    DeleteComment(CommentId),
    /// Deletes all comments of the review, which were not sent.
    DropComments(DropReason),
}

/// What the person wants that the comments of a review would be lost for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::board) enum DropReason {
    /// To close the review.
    Close,
    /// Something that ends the board.
    Effect(Box<BoardEffect>),
}

/// Asks whether an agent is to be stopped.
pub(super) fn stop(it: &mut Board, now_ms: i64) {
    if !only_on_agents(it) || was_lost(it, now_ms) {
        return;
    }
    match it.agents.highlighted() {
        Some(agent) => {
            it.confirm = Some(Confirm::Stop {
                agent,
                below: it.agents.tree.below(agent),
                changed_ms: None,
            });
        }
        None => it.notice = Some("no agent is highlighted".to_owned()),
    }
}

/// Agents have changed: what a yes would stop is counted again.
pub(in crate::board) fn check_confirm(it: &mut Board, now_ms: i64) {
    let Some(Confirm::Stop {
        agent,
        below,
        changed_ms,
    }) = &mut it.confirm
    else {
        return;
    };
    let agent = *agent;
    if it.agents.tree.get(agent).is_none() {
        it.confirm = None;
        it.notice = Some("the agent to be stopped has gone".to_owned());
        return;
    }
    let count = it.agents.tree.below(agent);
    if count != *below {
        *below = count;
        *changed_ms = Some(now_ms);
    }
}

/// The person says yes. Nothing happens if what it means has only just changed.
pub(in crate::board) fn confirmed(it: &mut Board, now_ms: i64) -> Vec<BoardEffect> {
    match it.confirm.take() {
        Some(Confirm::Stop {
            agent,
            below,
            changed_ms,
        }) => {
            let is_new = |at: i64| now_ms.saturating_sub(at) < SETTLE_MS as i64;
            if changed_ms.is_some_and(is_new) {
                it.confirm = Some(Confirm::Stop {
                    agent,
                    below,
                    changed_ms,
                });
                return Vec::new();
            }
            vec![BoardEffect::Stop(agent)]
        }
        Some(Confirm::DeleteTask { list, task, .. }) => {
            vec![BoardEffect::DeleteTask { list, task }]
        }
        Some(Confirm::Discard {
            agent,
            loss,
            asked_ms,
        }) => {
            if now_ms.saturating_sub(asked_ms) < SETTLE_MS as i64 {
                it.confirm = Some(Confirm::Discard {
                    agent,
                    loss,
                    asked_ms,
                });
                return Vec::new();
            }
            vec![BoardEffect::Discard { agent, loss }]
        }
        Some(Confirm::DeleteComment(comment)) => {
            if let Some(review) = &mut it.worktrees.review {
                review.delete(comment);
            }
            Vec::new()
        }
        Some(Confirm::DropComments(wanted)) => {
            it.worktrees.close();
            match wanted {
                DropReason::Close => Vec::new(),
                DropReason::Effect(effect) => vec![*effect],
            }
        }
        None => Vec::new(),
    }
}

/// Asks whether a task is to be deleted.
pub(super) fn delete_task(it: &mut Board) {
    let line = it.tasks.highlighted();
    let line = line.filter(|_| it.screen == BoardScreen::Tasks);
    match line.and_then(|line| Some((line.list(), line.task()?))) {
        Some((list, task)) => {
            it.confirm = Some(Confirm::DeleteTask {
                list: list.clone(),
                task: task.id,
                subject: one_line(&task.subject),
            });
        }
        None => it.notice = Some("no task is highlighted".to_owned()),
    }
}
