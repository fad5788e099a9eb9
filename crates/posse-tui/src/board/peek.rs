//! The pane that shows what the highlighted agent says.

use posse_protocol::{AgentId, Entry, EntryKind};
use ratatui_core::text::Line;

use crate::conversation::calls::Calls;
use crate::conversation::transcript;
use crate::text::{render, without_escapes};

/// Number of entries that are shown at most: the pane has a few lines.
const ENTRIES: usize = 20;

/// What the highlighted agent says.
#[derive(Default)]
pub(super) struct PeekPane {
    pub(super) is_open: bool,
    /// The agent whose words are wanted.
    wanted: Option<AgentId>,
    said: Option<SaidWords>,
}

/// What an agent has said.
struct SaidWords {
    agent: AgentId,
    entries: Vec<Entry>,
    arriving: String,
    /// The same as lines, and their width.
    drawn: Option<(u16, Vec<Line<'static>>)>,
}

impl PeekPane {
    /// Notes what an agent has said.
    pub(super) fn set(&mut self, agent: AgentId, mut entries: Vec<Entry>, arriving: String) {
        entries.drain(..entries.len().saturating_sub(ENTRIES));
        if self.wanted == Some(agent) {
            self.said = Some(SaidWords {
                agent,
                entries,
                arriving,
                drawn: None,
            });
        }
    }

    /// Turns to the highlighted agent. Returns whose words are wanted, if those are others.
    pub(super) fn turn_to(&mut self, highlighted: Option<AgentId>) -> Option<Option<AgentId>> {
        let wanted = highlighted.filter(|_| self.is_open);
        if wanted == self.wanted {
            return None;
        }
        self.wanted = wanted;
        self.said = None;
        Some(wanted)
    }

    /// Returns the last lines of what the agent says; none if that is not known yet.
    pub(super) fn lines(&mut self, width: u16, most: usize) -> Option<Vec<Line<'static>>> {
        let said = self.said.as_mut()?;
        debug_assert_eq!(Some(said.agent), self.wanted);
        if !matches!(&said.drawn, Some((drawn, _)) if *drawn == width) {
            said.drawn = Some((width, said.lines(width)));
        }
        let lines = said.drawn.as_ref().map(|(_, lines)| lines.as_slice())?;
        let first = lines.len().saturating_sub(most);
        lines.get(first..).map(<[_]>::to_vec)
    }
}

impl SaidWords {
    fn lines(&self, width: u16) -> Vec<Line<'static>> {
        let mut calls = Calls::default();
        let mut lines = Vec::new();
        for entry in &self.entries {
            match entry.kind {
                EntryKind::Reply => {
                    transcript::note_calls(entry, &mut calls);
                    for text in transcript::reply_texts(entry) {
                        lines.push(Line::default());
                        lines.extend(render(text, width));
                    }
                }
                _ => lines.extend(transcript::other(entry, &mut calls, width)),
            }
        }
        if !self.arriving.is_empty() {
            lines.push(Line::default());
            lines.extend(render(&without_escapes(&self.arriving), width));
        }
        lines
    }
}
