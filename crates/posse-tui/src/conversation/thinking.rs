//! What the model thinks: one line while it does and one when it is done. All of it is printed only
//! if the person asks.

use posse_protocol::{ContentBlock, Entry};

use super::Conversation;
use crate::text::one_line;

/// Number of bytes that are kept of one thought.
const MOST: usize = 256 << 10;
/// Number of characters that are shown while it arrives.
const FIRST_WORDS: usize = 200;

/// The thinking of an agent.
#[derive(Default)]
pub(super) struct Thinking {
    /// What arrives, and since when.
    arriving: Option<(String, u64)>,
    /// The last that is whole.
    last: Option<String>,
}

impl Thinking {
    /// More of it has come.
    pub(super) fn add(&mut self, text: &str, now_ms: u64) {
        let (all, _) = self.arriving.get_or_insert((String::new(), now_ms));
        if all.len() + text.len() <= MOST {
            all.push_str(text);
        }
    }

    /// The model does something else now. Returns for how many milliseconds it has thought, if it
    /// has.
    pub(super) fn end(&mut self, now_ms: u64) -> Option<u64> {
        let (text, since_ms) = self.arriving.take()?;
        self.last = Some(text);
        Some(now_ms.saturating_sub(since_ms))
    }

    /// The attempt failed: what it thought is void.
    pub(super) fn cut_off(&mut self) {
        self.arriving = None;
    }

    /// A reply is in the transcript, with its thinking.
    pub(super) fn replied(&mut self, entry: &Entry) {
        let thoughts = entry.message.content.iter();
        let thoughts: Vec<&str> = thoughts
            .filter_map(|block| match block {
                ContentBlock::Thinking { thinking, .. } => Some(thinking.as_str()),
                ContentBlock::RedactedThinking { .. } => Some(""),
                _ => None,
            })
            .collect();
        if !thoughts.is_empty() {
            self.last = Some(thoughts.join("\n\n"));
        }
    }

    /// Returns the first words of what arrives, and since when it does.
    pub(super) fn arriving(&self) -> Option<(String, u64)> {
        let (text, since_ms) = self.arriving.as_ref()?;
        let first: String = text.chars().take(FIRST_WORDS).collect();
        Some((one_line(first.trim()), *since_ms))
    }
}

/// Prints the last thinking in full.
pub(super) fn print(it: &mut Conversation) {
    let thinking = &it.shown.thinking;
    let arriving = thinking.arriving.as_ref().map(|(text, _)| text);
    let Some(text) = arriving.or(thinking.last.as_ref()).cloned() else {
        it.notice = Some("the model has not thought yet".to_owned());
        return;
    };
    match text.as_str() {
        "" => it.notice = Some("the provider does not show what the model thought".to_owned()),
        text => it.say(text),
    }
}
