//! The drafts of all agents: each has its own, and the one that is shown is in the prompt.

use std::collections::HashMap;

use posse_protocol::AgentId;

use super::Conversation;
use super::images::Images;
use crate::edit::Draft;

/// What is kept beside the prompt.
#[derive(Default)]
pub(super) struct KeptDrafts {
    /// Drafts for agents that are not shown.
    others: HashMap<AgentId, Draft>,
    /// The images of all drafts.
    pub(super) images: Images,
}

/// Puts the draft aside, and takes up that of another agent.
pub(super) fn switch(it: &mut Conversation, to: AgentId) {
    let shown = it.draft.draft();
    let aside = match it.history.end() {
        // What was typed before earlier prompts were looked at is the draft.
        Some(before) => {
            it.history.push(shown.expanded());
            before
        }
        None => shown,
    };
    it.draft.take();
    it.menu = None;
    if !aside.is_empty() {
        it.drafts.others.insert(it.shown.agent, aside);
    }
    if let Some(draft) = it.drafts.others.remove(&to) {
        it.draft.restore(&draft);
    }
}

/// Takes up the draft of an agent that an earlier process has kept.
pub(super) fn keep(it: &mut Conversation, agent: Option<AgentId>, text: &str) {
    let agent = agent.unwrap_or(it.main);
    if agent == it.shown.agent {
        it.draft.set(text);
        it.menu = None;
    } else {
        it.drafts.others.insert(agent, Draft::new(text));
    }
}

/// Returns the text of all drafts; none stands for the main agent, which comes first.
pub(super) fn all(it: &Conversation) -> Vec<(Option<AgentId>, String)> {
    let mut shown = it.draft.expanded();
    if let Some(before) = it.history.draft_before() {
        // An earlier prompt is looked at, and may be edited: neither is lost.
        let before = before.expanded();
        shown = match it.history.has(&shown) {
            true => before,
            false => format!("{before}\n{shown}"),
        };
    }
    let others = it.drafts.others.iter();
    let others = others.map(|(agent, draft)| (*agent, draft.expanded()));
    let mut all: Vec<_> = std::iter::once((it.shown.agent, shown))
        .chain(others)
        .filter(|(_, text)| !text.is_empty())
        .map(|(agent, text)| (Some(agent).filter(|agent| *agent != it.main), text))
        .collect();
    all.sort();
    all
}
