//! Histories in the words of the protocol: entries that were stored in their provider's format.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use posse_model::DecodeError;
use posse_port::store::{EntryPage, Page, Store, StoreError, StoredEntry};
use posse_protocol::{AgentId, ContentBlock, Entry, EntryKind, Message, Role};

use super::entries::{TranscriptView, paragraph};
use crate::output::tame;

/// Number of entries that are read at once.
const WINDOW: usize = 256;

/// Returns an entry as its agent's viewers are told of it.
pub(crate) fn decoded(stored: &StoredEntry) -> Result<Entry, DecodeError> {
    let entry = &stored.entry;
    Ok(Entry {
        seq: entry.seq,
        kind: entry.kind,
        message: Arc::new(posse_model::decode(&entry.sent())?),
        reply: entry.reply.clone(),
    })
}

/// Returns the first line of a prompt, for lists.
pub(crate) fn first_line(bytes: &[u8]) -> Option<String> {
    let message = posse_model::decode(bytes).ok()?;
    message.content.iter().find_map(|block| match block {
        ContentBlock::Text { text } if message.role == Role::User => text
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .map(str::to_owned),
        _ => None,
    })
}

/// Reads a transcript from a position on, window by window.
pub(crate) struct EntryReader {
    agent: AgentId,
    /// Number of entries before the next one to read.
    pub(crate) next: u64,
    /// Number of entries that are not the agent's own.
    inherited: u64,
}

impl EntryReader {
    /// Returns a reader that begins after so many entries.
    pub(crate) fn new(agent: AgentId, next: u64) -> Self {
        Self {
            agent,
            next,
            inherited: 0,
        }
    }

    /// Returns a reader for what follows the last `count` entries, and these.
    pub(crate) async fn tail(
        store: &dyn Store,
        agent: AgentId,
        count: usize,
    ) -> Result<(Self, EntryPage), StoreError> {
        let page = store.entries(agent, Page::last(count)).await?;
        let reader = Self {
            agent,
            next: page.total,
            inherited: page.inherited,
        };
        Ok((reader, page))
    }

    /// Returns how an own entry that was told lies to the next one to read.
    pub(crate) fn compare(&self, entry: &Entry) -> Ordering {
        (self.inherited + entry.seq).cmp(&self.next)
    }

    /// Reads the next entries; none at the end.
    pub(crate) async fn read(
        &mut self,
        store: &dyn Store,
    ) -> Result<Option<EntryPage>, StoreError> {
        let page = Page {
            from: self.next.checked_sub(1),
            ..Page::first(WINDOW)
        };
        let page = store.entries(self.agent, page).await?;
        self.inherited = page.inherited;
        self.next += page.entries.len() as u64;
        Ok((!page.entries.is_empty()).then_some(page))
    }
}

/// Returns entries for people, the result of each call under the call. `show` returns a block of a
/// message.
pub(crate) fn conversation(
    entries: &[StoredEntry],
    show: impl Fn(Role, &ContentBlock, i64) -> String,
) -> String {
    let messages: Vec<(&StoredEntry, Result<Message, DecodeError>)> = entries
        .iter()
        .map(|stored| (stored, posse_model::decode(&stored.entry.sent())))
        .collect();
    let mut results = HashMap::new();
    for (_, message) in &messages {
        for block in message.iter().flat_map(|message| &message.content) {
            if let ContentBlock::ToolResult { tool_use_id, .. } = block {
                results.insert(tool_use_id.as_str(), block);
            }
        }
    }
    let (mut out, mut shown) = (String::new(), HashSet::new());
    for (stored, message) in &messages {
        let message = match message {
            Ok(message) if stored.entry.kind == EntryKind::Model => {
                out.push_str(&notice(message));
                continue;
            }
            Ok(message) => message,
            Err(error) => {
                out.push_str(&format!("  [{}]\n", tame(&error.to_string())));
                continue;
            }
        };
        for block in &message.content {
            match block {
                ContentBlock::ToolResult { tool_use_id, .. }
                    if shown.contains(tool_use_id.as_str()) => {}
                _ => out.push_str(&show(message.role, block, stored.at_ms)),
            }
            if let ContentBlock::ToolUse { id, .. } = block
                && let Some(result) = results.get(id.as_str())
            {
                shown.insert(id.as_str());
                out.push_str(&show(Role::User, result, stored.at_ms));
            }
        }
    }
    out
}

/// Returns what an entry says that was sent to nobody.
fn notice(message: &Message) -> String {
    let lines = message.content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(format!("\n● {}\n", tame(text))),
        _ => None,
    });
    lines.collect()
}

/// Returns entries for people.
pub(crate) fn readable(entries: &[StoredEntry], view: TranscriptView<'_>) -> String {
    conversation(entries, |role, block, at_ms| {
        paragraph(role, block, at_ms, view)
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use posse_port::model::Encoded;

    use super::super::fixtures::transcript;
    use super::*;

    fn text_of(entries: &[StoredEntry]) -> String {
        let (columns, cwd) = (None, Path::new("/work"));
        let shown = readable(entries, TranscriptView { columns, cwd });
        anstream::adapter::strip_str(&shown).to_string()
    }

    fn with(bytes: &'static str) -> StoredEntry {
        let mut stored = transcript().entries.remove(0);
        stored.entry.encoded = Encoded {
            bytes: bytes.as_bytes().into(),
            mark_at: None,
        };
        stored
    }

    fn shown(entries: &[&'static str]) -> String {
        let entries: Vec<_> = entries.iter().map(|bytes| with(bytes)).collect();
        text_of(&entries)
    }

    // proves WA-06 (part: under their calls)
    #[test]
    fn results_stand_under_their_calls() {
        let reply = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{}},{"type":"tool_use","id":"b","name":"Glob","input":{}}]}"#;
        let results = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"one"}]},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"two"}],"is_error":true}]}"#;
        assert_eq!(
            shown(&[reply, results]),
            "  → Read\n  ← one\n  → Glob\n  ✗ two\n"
        );
        // In the other dialect, too, and without the calls as far as they are known.
        let openai = r#"{"role":"assistant","content":"I look.","tool_calls":[{"id":"b","type":"function","function":{"name":"Read","arguments":"{}"}}]}"#;
        assert_eq!(
            shown(&[openai, results]),
            "\nI look.\n  → Read\n  ✗ two\n  ← one\n"
        );
    }

    // proves CV-04 (part: entry)
    #[test]
    fn another_model_is_no_words_of_a_person() {
        let mut stored = with(r#"{"role":"user","content":[{"type":"text","text":"Model: m"}]}"#);
        stored.entry.kind = EntryKind::Model;
        stored.entry.head = Some(stored.entry.encoded.clone());
        let text = text_of(&[stored]);
        assert_eq!(text, "\n● Model: m\n");
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let odd = r#"{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"x"}},{"type":"hologram"},{}]}"#;
        assert_eq!(
            shown(&[odd]),
            "  [an image]\n  [hologram]\n  [a block without a kind]\n"
        );
        assert!(shown(&["{"]).starts_with("  [the entry cannot be read"));
    }

    #[test]
    fn a_list_shows_the_first_words() {
        let prompt = br#"{"role":"user","content":[{"type":"text","text":"\n  fix it\nplease"}]}"#;
        assert_eq!(first_line(prompt).as_deref(), Some("fix it"));
    }
}
