//! Sections of the agents: who needs the person, who works, and who does not.

use std::sync::Arc;

use posse_protocol::AgentId;

use crate::conversation::Sign;

/// The agents from the main agent of a session down to one, by which agents are ordered: those who
/// started others come right before them, and older ones before younger ones.
pub(super) type Path = Arc<[AgentId]>;

/// What kind of thing agents do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// A person is asked.
    NeedsYou,
    /// They work, or wait for something else than a person.
    Working,
    /// They have nothing to do.
    Idle,
    /// They have ended.
    Done,
    /// They have failed.
    Broken,
}

impl Section {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] = [
        Self::NeedsYou,
        Self::Working,
        Self::Idle,
        Self::Done,
        Self::Broken,
    ];

    /// Returns the section of a state.
    pub fn of(sign: Sign) -> Self {
        match sign {
            Sign::Asks => Self::NeedsYou,
            Sign::Working | Sign::Waits => Self::Working,
            Sign::Idle => Self::Idle,
            Sign::Done => Self::Done,
            Sign::Failed => Self::Broken,
        }
    }

    /// Returns its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::NeedsYou => "NEEDS YOU",
            Self::Working => "WORKING",
            Self::Idle => "IDLE",
            Self::Done => "DONE",
            Self::Broken => "BROKEN",
        }
    }
}

/// The agents of a section, in order.
#[derive(Debug, Default)]
pub(super) struct SectionRows {
    all: Vec<Path>,
    /// Those that the filter lets through; none without a filter.
    fitting: Option<Vec<Path>>,
    pub(super) is_folded: bool,
}

impl SectionRows {
    /// Returns the agents that are shown while the section is not folded.
    pub(super) fn shown(&self) -> &[Path] {
        self.fitting.as_ref().unwrap_or(&self.all)
    }

    /// Returns the number of all agents, also of those that the filter hides.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    pub(super) fn insert(&mut self, path: &Path, fits: bool) {
        insert(&mut self.all, path);
        if let Some(fitting) = self.fitting.as_mut().filter(|_| fits) {
            insert(fitting, path);
        }
    }

    pub(super) fn remove(&mut self, path: &Path) {
        remove(&mut self.all, path);
        if let Some(fitting) = &mut self.fitting {
            remove(fitting, path);
        }
    }

    /// Shows only those that fit, or all.
    pub(super) fn filter(&mut self, fits: Option<impl Fn(AgentId) -> bool>) {
        self.fitting = fits.map(|fits| {
            let all = self.all.iter();
            let fitting = all.filter(|path| agent_of(path).is_some_and(&fits));
            fitting.cloned().collect()
        });
    }

    /// Returns the place of an agent, or the one that it would have.
    pub(super) fn place(&self, path: &Path) -> Result<usize, usize> {
        self.shown().binary_search(path)
    }

    /// Returns how many agents there are below one, filtered or not.
    pub(super) fn below(&self, path: &Path) -> usize {
        let start = self.all.partition_point(|other| other <= path);
        let rest = self.all.get(start..).unwrap_or_default();
        rest.partition_point(|other| other.starts_with(path))
    }

    /// Returns true if somebody above an agent is shown in the section.
    pub(super) fn has_above(&self, path: &Path) -> bool {
        let rows = self.shown();
        (1..path.len()).any(|length| {
            let above = path.get(..length).unwrap_or_default();
            rows.binary_search_by(|other| other.as_ref().cmp(above))
                .is_ok()
        })
    }

    /// Returns the branches before the name of a row: for each agent above it that is shown in the
    /// section, from the outermost, true if others below that one follow.
    pub(super) fn branches(&self, row: usize) -> Vec<bool> {
        let rows = self.shown();
        let Some(path) = rows.get(row) else {
            return Vec::new();
        };
        let is_shown = |length: &usize| {
            let above = path.get(..*length).unwrap_or_default();
            rows.binary_search_by(|other| other.as_ref().cmp(above))
                .is_ok()
        };
        let above: Vec<usize> = (1..path.len()).filter(is_shown).collect();
        let nodes = above.iter().copied().skip(1).chain([path.len()]);
        above
            .iter()
            .zip(nodes)
            .map(|(above, node)| {
                let (above, node) = (path.get(..*above), path.get(..node));
                let (Some(above), Some(node)) = (above, node) else {
                    return false;
                };
                let rest = rows.get(row..).unwrap_or_default();
                let end = rest.partition_point(|other| other.starts_with(node));
                rest.get(end).is_some_and(|next| next.starts_with(above))
            })
            .collect()
    }
}

/// Returns true if the time since the last step is shown for a state: only somebody at work makes
/// steps, and a board where nobody works does not change.
pub(super) fn has_age(sign: Sign) -> bool {
    matches!(sign, Sign::Working | Sign::Waits | Sign::Asks)
}

/// Returns the agent at the end of a path.
pub(super) fn agent_of(path: &Path) -> Option<AgentId> {
    path.last().copied()
}

fn insert(rows: &mut Vec<Path>, path: &Path) {
    if let Err(at) = rows.binary_search(path) {
        rows.insert(at, Arc::clone(path));
    }
}

fn remove(rows: &mut Vec<Path>, path: &Path) {
    if let Ok(at) = rows.binary_search(path) {
        rows.remove(at);
    }
}
