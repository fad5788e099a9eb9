//! The list of agents as lines, with one that is highlighted.

use posse_protocol::AgentId;

use super::cursor::ListCursor;
use super::facts::BoardAgent;
use super::section::{Path, Section, agent_of};
use super::tree::{AgentRow, AgentTree};

/// A line of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentLine {
    /// The title of a section.
    Title(Section),
    /// An agent.
    Agent(AgentId),
}

/// The list of agents.
pub(super) struct AgentList {
    pub(super) tree: AgentTree,
    cursor: ListCursor<AgentLine>,
    /// When the highlighted agent was last replaced because it vanished, and its name.
    lost: Option<(String, i64)>,
}

/// Where an agent stood that was highlighted.
struct HighlightedPlace {
    name: String,
    section: Section,
    path: Path,
}

impl AgentList {
    pub(super) fn new() -> Self {
        Self {
            tree: AgentTree::new(),
            cursor: ListCursor::default(),
            lost: None,
        }
    }

    /// Adds and changes some, and removes others. What is highlighted stays where it is.
    pub(super) fn update(&mut self, changed: Vec<BoardAgent>, gone: &[AgentId], now_ms: i64) {
        let before = self.place();
        for agent in changed {
            self.tree.upsert(agent);
        }
        for agent in gone {
            self.tree.remove(*agent);
        }
        self.keep_cursor(before, Some(now_ms));
    }

    /// Shows only agents that fit these words.
    pub(super) fn set_filter(&mut self, words: &str) {
        if self.tree.filter() != words {
            let before = self.place();
            self.tree.set_filter(words);
            self.keep_cursor(before, None);
        }
    }

    /// Returns where the highlighted agent stands.
    fn place(&self) -> Option<HighlightedPlace> {
        let row = self.tree.get(self.highlighted()?)?;
        Some(HighlightedPlace {
            name: row.facts.name.clone(),
            section: row.section(),
            path: row.path.clone(),
        })
    }

    pub(super) fn highlighted(&self) -> Option<AgentId> {
        match self.cursor.key() {
            Some(AgentLine::Agent(agent)) => Some(*agent),
            Some(AgentLine::Title(_)) | None => None,
        }
    }

    pub(super) fn cursor(&self) -> &ListCursor<AgentLine> {
        &self.cursor
    }

    /// Returns the name of the agent that was highlighted until it vanished, and since when it is
    /// not.
    pub(super) fn lost(&self) -> Option<(&str, i64)> {
        self.lost.as_ref().map(|(name, at)| (name.as_str(), *at))
    }

    /// Returns the number of lines.
    pub(super) fn lines(&self) -> usize {
        let lines = Section::ALL.map(|section| self.lines_of(section));
        lines.into_iter().sum()
    }

    /// Returns a line by its number.
    pub(super) fn line(&self, mut number: usize) -> Option<AgentLine> {
        for section in Section::ALL {
            let lines = self.lines_of(section);
            if number >= lines {
                number -= lines;
                continue;
            }
            return match number.checked_sub(1) {
                None => Some(AgentLine::Title(section)),
                Some(_) if self.tree.is_folded(section) => self.cursor.key().copied(),
                Some(row) => {
                    let path = self.tree.rows(section).shown().get(row)?;
                    agent_of(path).map(AgentLine::Agent)
                }
            };
        }
        None
    }

    /// Highlights a line that the person chose, on a list of this height.
    pub(super) fn go(&mut self, number: usize, height: usize) {
        let last = self.lines().saturating_sub(1);
        let key = self.line(number.min(last));
        self.highlight(key, height);
    }

    /// Highlights the title of a section, or an agent.
    pub(super) fn highlight(&mut self, key: Option<AgentLine>, height: usize) {
        self.lost = None;
        // An agent of a folded section has a line only while it is highlighted.
        self.cursor.keep(key, self.cursor.at());
        let at = key.and_then(|key| self.find(key)).unwrap_or_default();
        self.cursor.go(key, at, (self.lines(), height));
    }

    /// The list has this many rows of the screen.
    pub(super) fn fit(&mut self, height: usize) {
        let lines = self.lines();
        self.cursor.fit(lines, height);
    }

    /// Hides the agents of a section, or shows them again.
    pub(super) fn fold(&mut self, section: Section, height: usize) {
        self.tree.fold(section);
        self.highlight(Some(AgentLine::Title(section)), height);
    }

    /// Returns the section of an agent that is highlighted, or the one whose title is.
    pub(super) fn highlighted_section(&self) -> Option<Section> {
        match self.cursor.key()? {
            AgentLine::Title(section) => Some(*section),
            AgentLine::Agent(agent) => self.tree.get(*agent).map(AgentRow::section),
        }
    }

    fn lines_of(&self, section: Section) -> usize {
        let rows = self.tree.rows(section);
        match (rows.shown().len(), self.tree.is_folded(section)) {
            (0, _) => 0,
            (_, true) => 1 + usize::from(self.is_pinned(section)),
            (count, false) => 1 + count,
        }
    }

    /// Returns true if the highlighted agent is in this section: then it is shown though the
    /// section is folded. Else a key would go to another agent than the person looks at, only since
    /// that one has ended.
    fn is_pinned(&self, section: Section) -> bool {
        let row = self.highlighted().and_then(|agent| self.tree.get(agent));
        row.is_some_and(|row| {
            row.section() == section && self.tree.rows(section).place(&row.path).is_ok()
        })
    }

    /// Returns the number of the first line of a section.
    fn start(&self, section: Section) -> usize {
        let before = Section::ALL
            .into_iter()
            .take_while(|other| *other < section);
        before.map(|section| self.lines_of(section)).sum()
    }

    /// Returns the number of a line.
    fn find(&self, line: AgentLine) -> Option<usize> {
        match line {
            AgentLine::Title(section) => (self.lines_of(section) > 0).then(|| self.start(section)),
            AgentLine::Agent(agent) => {
                let row = self.tree.get(agent)?;
                let section = row.section();
                let rows = self.tree.rows(section);
                let place = rows.place(&row.path).ok()?;
                let place = if self.tree.is_folded(section) {
                    0
                } else {
                    place
                };
                Some(self.start(section) + 1 + place)
            }
        }
    }

    /// Highlights what was highlighted before, or what is at its place if it has vanished.
    fn keep_cursor(&mut self, before: Option<HighlightedPlace>, now_ms: Option<i64>) {
        let key = self.cursor.key().copied();
        if let Some(key) = key
            && let Some(at) = self.find(key)
        {
            self.cursor.keep(Some(key), at);
            return;
        }
        if key.is_none() {
            // The first agent of all, not the title above it.
            let first = self.line(1).or_else(|| self.line(0));
            self.highlight(first, usize::MAX);
            return;
        }
        let at = match &before {
            Some(HighlightedPlace { section, path, .. }) => {
                let rows = self.tree.rows(*section);
                let place = rows.place(path).unwrap_or_else(|place| place);
                self.start(*section)
                    + if self.tree.is_folded(*section) {
                        0
                    } else {
                        1 + place
                    }
            }
            None => self.cursor.at(),
        };
        let at = at.min(self.lines().saturating_sub(1));
        let is_agent = |at: &usize| matches!(self.line(*at), Some(AgentLine::Agent(_)));
        let above = at.checked_sub(1).filter(|above| is_agent(above));
        let at = match is_agent(&at) {
            true => at,
            false => above.unwrap_or(at),
        };
        let line = self.line(at);
        self.cursor.keep(line, at);
        if let (Some(HighlightedPlace { name, .. }), Some(now_ms)) = (before, now_ms) {
            self.lost = Some((name, now_ms));
        }
    }
}
