//! The queue of one viewer: events that it has not read yet, at most so many and so large.

use std::collections::{HashMap, VecDeque};

use posse_protocol::{AgentId, ContentBlock, Delta, Event, EventKind, ToolContent, ToolSpec};

use super::Viewed;

/// Maximum number of events that wait for a viewer.
const EVENTS: usize = 256;
/// Maximum size of what waits, about, in bytes.
const BYTES: usize = 4 << 20;
/// Maximum size of a tool's output that is joined while it waits, in bytes; its end is kept.
const OUTPUT: usize = 64 << 10;
/// Size of an event without its texts, about, in bytes.
const HEAD: usize = 128;

/// Events that wait for a viewer.
#[derive(Default)]
pub(super) struct EventQueue {
    events: VecDeque<Event>,
    bytes: usize,
    /// The number of events that were ever taken out: the first that waits has this number.
    taken: u64,
    /// The number of the last event of each agent that waits.
    last: HashMap<AgentId, u64>,
    /// The number of events that were lost since the viewer last read.
    lost: u64,
}

impl EventQueue {
    /// Adds an event. Text of a reply or of a tool's output is added to the text of it that waits
    /// already. Returns true if the viewer has to be woken.
    pub(super) fn push(&mut self, event: &Event) -> bool {
        if self.lost > 0 {
            // It has to read the store in any case: until it does, nothing is kept for it.
            self.lost += 1;
            return false;
        }
        let bytes = size(&event.kind);
        if self.bytes + bytes > BYTES {
            return self.lose_all();
        }
        if self.joins(event) {
            return false;
        }
        if self.events.len() == EVENTS {
            return self.lose_all();
        }
        self.bytes += bytes;
        let number = self.taken + self.events.len() as u64;
        self.last.insert(event.agent, number);
        self.events.push_back(event.clone());
        self.events.len() == 1
    }

    /// Drops what waits and the event that has no room.
    fn lose_all(&mut self) -> bool {
        self.lost = 1 + self.events.len() as u64;
        self.clear();
        true
    }

    /// Takes what the viewer reads next.
    pub(super) fn pop(&mut self) -> Option<Viewed> {
        if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            return Some(Viewed::Behind { lost });
        }
        let event = self.events.pop_front()?;
        self.taken += 1;
        self.bytes -= size(&event.kind);
        if self.events.is_empty() {
            // The numbers of agents that are gone must not add up.
            self.clear();
        }
        Some(Viewed::Event(event))
    }

    fn clear(&mut self) {
        self.taken += self.events.len() as u64;
        self.bytes = 0;
        self.events.clear();
        self.last.clear();
    }

    /// Adds the event to the last one of its agent, if both are text of the same kind.
    fn joins(&mut self, event: &Event) -> bool {
        if !matches!(event.kind, EventKind::Delta(_) | EventKind::Output { .. }) {
            return false;
        }
        let at = self.last.get(&event.agent).copied();
        let at = at.and_then(|number| usize::try_from(number.checked_sub(self.taken)?).ok());
        let Some(waiting) = at.and_then(|at| self.events.get_mut(at)) else {
            return false;
        };
        let before = size(&waiting.kind);
        let joined = match (&mut waiting.kind, &event.kind) {
            (EventKind::Delta(waiting), EventKind::Delta(more)) => waiting.join(more),
            (waiting @ EventKind::Output { .. }, more) => join_output(waiting, more),
            _ => false,
        };
        self.bytes = self.bytes + size(&waiting.kind) - before;
        joined
    }
}

/// Adds more output of the same call, and keeps its end.
fn join_output(waiting: &mut EventKind, more: &EventKind) -> bool {
    let (
        EventKind::Output {
            call,
            text,
            skipped,
        },
        EventKind::Output {
            call: of,
            text: next,
            skipped: gap,
        },
    ) = (waiting, more)
    else {
        return false;
    };
    if call != of {
        return false;
    }
    if *gap > 0 {
        // What comes before a gap is skipped with it: one number says how much is missing.
        *skipped += text.len() as u64 + gap;
        text.clear();
    }
    text.push_str(next);
    if let Some(over) = text.len().checked_sub(OUTPUT) {
        let over = text.ceil_char_boundary(over);
        text.drain(..over);
        *skipped += over as u64;
    }
    true
}

/// Returns about how many bytes an event takes.
fn size(kind: &EventKind) -> usize {
    let texts = match kind {
        EventKind::Delta(Delta::Text(text) | Delta::Thinking(text) | Delta::ToolInput(text)) => {
            text.len()
        }
        EventKind::Entry(entry) => entry.message.content.iter().map(size_of_block).sum(),
        EventKind::Output { call, text, .. } => call.len() + text.len(),
        EventKind::Mail(mail) => mail.body.len(),
        EventKind::Request(request) => request.text.len(),
        EventKind::Queue(prompts) => prompts.iter().map(|prompt| prompt.text.len()).sum(),
        EventKind::Ended(end) => end.text.len(),
        EventKind::Warning(text) => text.len(),
        _ => 0,
    };
    HEAD + texts
}

fn size_of_block(block: &ContentBlock) -> usize {
    HEAD + match block {
        ContentBlock::Text { text } => text.len(),
        ContentBlock::Image { data, .. } | ContentBlock::RedactedThinking { data } => data.len(),
        ContentBlock::Thinking {
            thinking,
            signature,
        } => thinking.len() + signature.len(),
        ContentBlock::ToolUse { input, .. } => input.get().len(),
        ContentBlock::ToolResult { content, .. } => content
            .iter()
            .map(|content| match content {
                ToolContent::Text { text } => text.len(),
                ToolContent::Image { data, .. } => data.len(),
                ToolContent::Tools { tools } => tools.iter().map(size_of_tool).sum(),
            })
            .sum(),
        ContentBlock::Opaque { block } => block.get().len(),
    }
}

fn size_of_tool(tool: &ToolSpec) -> usize {
    HEAD + tool.name.len() + tool.description.len() + tool.input_schema.get().len()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn event(agent: u128, kind: EventKind) -> Event {
        Event {
            agent: AgentId::from(Uuid::from_u128(agent)),
            kind,
        }
    }

    fn text(agent: u128, text: &str) -> Event {
        event(agent, EventKind::Delta(Delta::Text(text.into())))
    }

    fn all(queue: &mut EventQueue) -> Vec<Viewed> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    // proves WA-02 (part: joined)
    #[test]
    fn texts_of_an_agent_are_joined_and_others_stay_apart() {
        let mut queue = EventQueue::default();
        for one in [text(1, "a"), text(2, "x"), text(1, "b")] {
            queue.push(&one);
        }
        queue.push(&event(1, EventKind::Delta(Delta::BlockDone)));
        queue.push(&text(1, "c"));
        let expected = [
            text(1, "ab"),
            text(2, "x"),
            event(1, EventKind::Delta(Delta::BlockDone)),
            text(1, "c"),
        ];
        assert_eq!(all(&mut queue), expected.map(Viewed::Event));
        // What was read is not added to.
        assert!(queue.push(&text(1, "d")));
        assert_eq!(all(&mut queue), [Viewed::Event(text(1, "d"))]);
    }

    fn output(call: &str, text: &str, skipped: u64) -> Event {
        let (call, text) = (call.to_owned(), text.to_owned());
        let kind = EventKind::Output {
            call,
            text,
            skipped,
        };
        event(1, kind)
    }

    // proves WA-05 (part: joined)
    #[test]
    fn output_that_is_not_read_is_joined_and_its_end_kept() {
        let mut queue = EventQueue::default();
        for one in [
            output("a", "1", 0),
            output("a", "2", 0),
            output("b", "3", 7),
            output("b", "4", 0),
            output("b", "5", 2),
        ] {
            queue.push(&one);
        }
        // A gap takes what comes before it along, so that one number says what is missing.
        let expected = [output("a", "12", 0), output("b", "5", 11)];
        assert_eq!(all(&mut queue), expected.map(Viewed::Event));
        let piece = "ä".repeat(OUTPUT / 8);
        for _ in 0..100 {
            queue.push(&output("a", &piece, 0));
        }
        assert!(queue.bytes <= HEAD + OUTPUT + 1);
        let kept = "ä".repeat(OUTPUT / 2);
        let skipped = (100 * piece.len() - kept.len()) as u64;
        assert_eq!(
            all(&mut queue),
            [Viewed::Event(output("a", &kept, skipped))]
        );
        assert_eq!(queue.bytes, 0);
    }

    // proves WA-02 (part: bounded)
    #[test]
    fn a_viewer_that_does_not_read_loses_all_and_is_told_how_many() {
        let mut queue = EventQueue::default();
        for _ in 0..EVENTS + 10 {
            queue.push(&event(1, EventKind::Started));
        }
        assert!(queue.events.is_empty() && queue.last.is_empty());
        queue.push(&text(1, "lost too"));
        let lost = EVENTS as u64 + 11;
        assert_eq!(all(&mut queue), [Viewed::Behind { lost }]);
        assert!(queue.push(&text(1, "read again")));
        assert_eq!(all(&mut queue), [Viewed::Event(text(1, "read again"))]);

        // One text that grows, too.
        let piece = "x".repeat(BYTES / 8);
        for _ in 0..8 {
            queue.push(&text(1, &piece));
            assert!(queue.bytes <= BYTES);
        }
        assert_eq!(all(&mut queue), [Viewed::Behind { lost: 2 }]);
        assert_eq!(queue.bytes, 0);
    }
}
