//! Returns to before a prompt: the person's prompts in a session, and the branch that continues
//! before one of them.

use posse_port::store::{Page, Store, StoredEntry};
use posse_protocol::{AgentId, ContentBlock, EntryKind};
use posse_runtime::session::branch::CopiedHistory;
use posse_tui::conversation::person_words;
use posse_tui::picker::PickerItem;

use crate::output::time::{age, now_ms};
use crate::output::transcript::shortened;
use crate::present::history::decoded;
use crate::present::sessions::short;

/// Number of characters of a prompt in a list.
const WORDS: usize = 200;
/// Number of characters of a prompt in a sentence.
const FEW: usize = 40;

/// The entry with which a branch ends: of which session, and its number there.
pub(super) type BranchPlace = (AgentId, u64);

/// A prompt to return to.
#[derive(Clone)]
pub(crate) struct RewindPoint {
    /// The session in which it was said.
    session: AgentId,
    /// The prompt.
    pub(super) words: String,
    /// When it was said, in milliseconds of Unix time.
    at_ms: i64,
    /// The entry before it; none if it is the first.
    pub(super) place: Option<BranchPlace>,
}

impl RewindPoint {
    /// Returns it for a list.
    pub(super) fn item(&self) -> PickerItem {
        PickerItem {
            words: shortened(&self.words, WORDS),
            about: format!("{:>4}", age(now_ms().saturating_sub(self.at_ms))),
        }
    }

    /// Returns what the person is told in the session that continues there.
    pub(super) fn note(&self) -> String {
        format!(
            "\nreturned to before “{}”, in a new session; Enter sends the prompt again\n\
             files are as they are now: nothing in them was undone\n\
             the conversation as it was is kept: /resume {}",
            shortened(&self.words, FEW),
            short(self.session)
        )
    }

    /// Returns how much of its session the branch has.
    pub(super) fn copied(&self) -> Option<CopiedHistory> {
        self.place.map(|(_, entry)| CopiedHistory::Through(entry))
    }
}

/// Returns the person's prompts in a session, newest first; those of a copy are the ones that were
/// copied.
///
/// What joined a run between a call and its result is not among them: no branch can begin there.
pub(super) async fn points(
    store: &dyn Store,
    session: AgentId,
    copied: CopiedHistory,
) -> anyhow::Result<Vec<RewindPoint>> {
    let mut entries = store.entries(session, Page::all()).await?.entries;
    if let CopiedHistory::Through(last) = copied {
        entries.retain(|stored| stored.agent != session || stored.entry.seq <= last);
    }
    let mut points = Vec::new();
    let mut before: Option<&StoredEntry> = None;
    for stored in &entries {
        let place = before.replace(stored);
        if stored.entry.kind != EntryKind::Prompt || place.is_some_and(calls_tools) {
            continue;
        }
        if let Some(words) = decoded(stored).ok().as_ref().and_then(person_words) {
            points.push(RewindPoint {
                session,
                words,
                at_ms: stored.at_ms,
                place: place.map(|before| (before.agent, before.entry.seq)),
            });
        }
    }
    points.reverse();
    Ok(points)
}

/// Returns true for a reply whose calls need results.
fn calls_tools(stored: &StoredEntry) -> bool {
    let is_call = |block: &ContentBlock| matches!(block, ContentBlock::ToolUse { .. });
    stored.entry.kind == EntryKind::Reply
        && decoded(stored).is_ok_and(|entry| entry.message.content.iter().any(is_call))
}

/// Returns prompts for those who have lines alone.
pub(super) fn listed(points: &[RewindPoint]) -> String {
    if points.is_empty() {
        return "there is no prompt to return to yet".to_owned();
    }
    let lines = (1..).zip(points).map(|(number, point)| {
        let item = point.item();
        format!("/rewind {number}  {}  {}", item.about, item.words)
    });
    lines.collect::<Vec<_>>().join("\n")
}
