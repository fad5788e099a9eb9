//! All agents of the board: a tree for each section, kept in order while it changes.
//!
//! The order of agents does not depend on what they do. So a change moves at most its own row, and
//! costs the same however many agents there are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use posse_protocol::{AgentId, Cost};

use super::facts::BoardAgent;
use super::section::{Path, Section, SectionRows};
use crate::edit::fuzzy;

/// Number of agents from a main agent down to another that are looked at.
const DEEPEST: usize = 64;

/// An agent, and where it stands.
#[derive(Debug)]
pub(super) struct AgentRow {
    pub(super) facts: BoardAgent,
    /// The cost of it and of all below it.
    pub(super) cost: Option<Cost>,
    pub(super) path: Path,
}

impl AgentRow {
    pub(super) fn section(&self) -> Section {
        Section::of(self.facts.sign)
    }
}

/// All agents of the board, by section.
pub(super) struct AgentTree {
    agents: HashMap<AgentId, AgentRow>,
    /// By the agent that started them, whether that is on the board or not.
    children: HashMap<AgentId, Vec<AgentId>>,
    sections: [SectionRows; Section::ALL.len()],
    filter: String,
}

impl AgentTree {
    pub(super) fn new() -> Self {
        let mut tree = Self {
            agents: HashMap::new(),
            children: HashMap::new(),
            sections: Default::default(),
            filter: String::new(),
        };
        tree.sections[Section::Done as usize].is_folded = true;
        tree
    }

    /// Notes what agents and those below them have cost.
    pub(super) fn spent(&mut self, spent: Vec<(AgentId, Option<Cost>)>) {
        for (agent, cost) in spent {
            if let Some(row) = self.agents.get_mut(&agent) {
                row.cost = cost;
            }
        }
    }

    /// Shows only agents that fit these words.
    pub(super) fn set_filter(&mut self, words: &str) {
        self.filter = words.to_owned();
        let fitting = self.fitting();
        for section in &mut self.sections {
            let fits = fitting.as_ref().map(|fitting| |id| fitting.contains(&id));
            section.filter(fits);
        }
    }

    pub(super) fn filter(&self) -> &str {
        &self.filter
    }

    /// Returns the agents that fit the filter; none if there is no filter.
    fn fitting(&self) -> Option<HashSet<AgentId>> {
        if self.filter.is_empty() {
            return None;
        }
        let facts = self.agents.values().map(|row| &row.facts);
        let fitting = facts.filter(|facts| self.fits(facts));
        Some(fitting.map(|facts| facts.agent).collect())
    }

    /// Returns true if an agent fits the filter: its name or place fuzzily, or what it does as it is
    /// written, since a sentence has the letters of almost any word in their order.
    fn fits(&self, facts: &BoardAgent) -> bool {
        let is_fuzzy = |text| fuzzy::score(&self.filter, text).is_some();
        self.filter.is_empty()
            || is_fuzzy(&facts.name)
            || is_fuzzy(&facts.place)
            || facts
                .doing
                .to_lowercase()
                .contains(&self.filter.to_lowercase())
    }

    pub(super) fn get(&self, agent: AgentId) -> Option<&AgentRow> {
        self.agents.get(&agent)
    }

    pub(super) fn rows(&self, section: Section) -> &SectionRows {
        &self.sections[section as usize]
    }

    pub(super) fn count(&self) -> usize {
        self.agents.len()
    }

    /// Returns how many agents there are below one, and how many of them are at work. Those who have
    /// ended are not counted.
    pub(super) fn below(&self, agent: AgentId) -> (usize, usize) {
        let Some(row) = self.agents.get(&agent) else {
            return (0, 0);
        };
        let count = |section: Section| self.rows(section).below(&row.path);
        let working = count(Section::NeedsYou) + count(Section::Working);
        (working + count(Section::Idle), working)
    }

    /// Hides the agents of a section, or shows them again.
    pub(super) fn fold(&mut self, section: Section) {
        let rows = &mut self.sections[section as usize];
        rows.is_folded = !rows.is_folded;
    }

    /// Returns true if agents of a section are hidden. A filter finds them, too.
    pub(super) fn is_folded(&self, section: Section) -> bool {
        self.rows(section).is_folded && self.filter.is_empty()
    }

    /// Adds an agent, or changes what is known of it.
    pub(super) fn upsert(&mut self, facts: BoardAgent) {
        let facts = facts.tamed();
        let id = facts.agent;
        let known = self.agents.get(&id);
        let cost = known.and_then(|row| row.cost);
        let is_moved = known.is_none_or(|row| {
            (row.facts.parent, row.facts.session) != (facts.parent, facts.session)
        });
        if !is_moved {
            self.replace(facts);
            return;
        }
        self.unlink(id);
        if let Some(parent) = facts.parent {
            self.children.entry(parent).or_default().push(id);
        }
        let path = self.path(&facts);
        self.insert(AgentRow { facts, cost, path });
        self.move_children(id);
    }

    /// Replaces what is known of an agent that stays at its place of the tree.
    fn replace(&mut self, facts: BoardAgent) {
        let fits = self.fits(&facts);
        let Some(row) = self.agents.get_mut(&facts.agent) else {
            return;
        };
        let (old, new) = (row.section(), Section::of(facts.sign));
        let path = Arc::clone(&row.path);
        row.facts = facts;
        if old != new || !self.filter.is_empty() {
            self.sections[old as usize].remove(&path);
            self.sections[new as usize].insert(&path, fits);
        }
    }

    fn insert(&mut self, row: AgentRow) {
        let fits = self.fits(&row.facts);
        let section = row.section();
        self.sections[section as usize].insert(&row.path, fits);
        self.agents.insert(row.facts.agent, row);
    }

    pub(super) fn remove(&mut self, agent: AgentId) {
        self.unlink(agent);
        self.move_children(agent);
    }

    /// Takes an agent out of the tree. Its children stay where they are.
    fn unlink(&mut self, agent: AgentId) {
        let Some(row) = self.agents.remove(&agent) else {
            return;
        };
        let section = row.section();
        self.sections[section as usize].remove(&row.path);
        let Some(parent) = row.facts.parent else {
            return;
        };
        if let Some(siblings) = self.children.get_mut(&parent) {
            siblings.retain(|child| *child != agent);
            if siblings.is_empty() {
                self.children.remove(&parent);
            }
        }
    }

    /// Brings those below an agent to the places that they have now.
    fn move_children(&mut self, agent: AgentId) {
        let mut seen = HashSet::from([agent]);
        let mut open = self.children.get(&agent).cloned().unwrap_or_default();
        while let Some(child) = open.pop() {
            // Two agents that name each other as the one who started them are moved once.
            if !seen.insert(child) {
                continue;
            }
            let Some(row) = self.agents.get(&child) else {
                continue;
            };
            let path = self.path(&row.facts);
            if path == row.path {
                continue;
            }
            if let Some(mut row) = self.agents.remove(&child) {
                let section = row.section();
                self.sections[section as usize].remove(&row.path);
                row.path = path;
                self.insert(row);
            }
            open.extend(self.children.get(&child).into_iter().flatten());
        }
    }

    /// Returns the place of an agent: below the one who started it, else below its session.
    fn path(&self, facts: &BoardAgent) -> Path {
        let id = facts.agent;
        let parent = facts.parent.and_then(|parent| self.agents.get(&parent));
        let above = parent.map(|row| &row.path);
        let above = above.filter(|path| path.len() < DEEPEST && !path.contains(&id));
        match above {
            Some(path) => path.iter().copied().chain([id]).collect(),
            None if id == facts.session => Arc::new([id]),
            None => Arc::new([facts.session, id]),
        }
    }
}

#[cfg(test)]
impl AgentTree {
    /// Checks that everybody stands once in one section, at the place of its path.
    pub(super) fn check(&self) {
        let shown: usize = Section::ALL.map(|it| self.rows(it).count()).iter().sum();
        assert_eq!(shown, self.agents.len());
        for row in self.agents.values() {
            let fits = self.fits(&row.facts);
            assert_eq!(self.rows(row.section()).place(&row.path).is_ok(), fits);
            assert_eq!(row.path.last(), Some(&row.facts.agent));
        }
        for section in Section::ALL {
            assert!(self.rows(section).shown().is_sorted());
        }
    }
}
