//! A reply while it arrives, as the stream events of the Messages API.

use posse_protocol::{Delta, ReplyFacts};
use serde_json::{Value, json};

use super::shape;
use crate::present::usage::usage;

/// The position in a reply.
#[derive(Default)]
pub(crate) struct PartialReply {
    begun: bool,
    /// Index of the open block, or of the next one.
    index: u32,
    open: Option<BlockKind>,
}

/// The kind of the open block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    Tool,
}

impl PartialReply {
    /// Returns the events of a piece of a reply.
    pub(crate) fn delta(&mut self, delta: &Delta) -> Vec<Value> {
        match delta {
            Delta::Started { model } => {
                *self = Self {
                    begun: true,
                    ..Self::default()
                };
                // The provider's id of the reply is known only once it is complete.
                let message = json!({
                    "id": null, "type": "message", "role": "assistant", "model": model, "content": [],
                    "stop_reason": null, "stop_sequence": null, "usage": usage(&Default::default()),
                });
                vec![json!({"type": "message_start", "message": message})]
            }
            Delta::Text(text) => self.more(
                BlockKind::Text,
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": text}),
            ),
            Delta::Thinking(text) => self.more(
                BlockKind::Thinking,
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                json!({"type": "thinking_delta", "thinking": text}),
            ),
            Delta::ToolUse { id, name } => {
                let mut events = self.close();
                events.push(self.open(
                    BlockKind::Tool,
                    json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                ));
                events
            }
            Delta::ToolInput(json) if self.open == Some(BlockKind::Tool) => {
                vec![self.piece(json!({"type": "input_json_delta", "partial_json": json}))]
            }
            Delta::ToolInput(_) => Vec::new(),
            Delta::BlockDone => {
                let events = self.close();
                if events.is_empty() {
                    // A block that shows nothing, such as redacted thinking, still has its index.
                    self.index += 1;
                }
                events
            }
        }
    }

    /// Returns the events that end a complete reply.
    pub(crate) fn whole(&mut self, facts: &ReplyFacts) -> Vec<Value> {
        if !self.begun {
            return Vec::new();
        }
        let mut events = self.close();
        *self = Self::default();
        let stop = facts.stop.as_ref().map(shape::stop_word);
        events.push(json!({
            "type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": usage(&facts.usage),
        }));
        events.push(json!({"type": "message_stop"}));
        events
    }

    /// Forgets what was shown, because the attempt failed.
    pub(crate) fn void(&mut self) {
        *self = Self::default();
    }

    fn more(&mut self, kind: BlockKind, block: Value, delta: Value) -> Vec<Value> {
        let mut events = Vec::new();
        if self.open != Some(kind) {
            events = self.close();
            events.push(self.open(kind, block));
        }
        events.push(self.piece(delta));
        events
    }

    fn open(&mut self, kind: BlockKind, block: Value) -> Value {
        self.open = Some(kind);
        json!({"type": "content_block_start", "index": self.index, "content_block": block})
    }

    fn piece(&self, delta: Value) -> Value {
        json!({"type": "content_block_delta", "index": self.index, "delta": delta})
    }

    fn close(&mut self) -> Vec<Value> {
        if self.open.take().is_none() {
            return Vec::new();
        }
        self.index += 1;
        vec![json!({"type": "content_block_stop", "index": self.index - 1})]
    }
}

#[cfg(test)]
mod tests {
    use posse_protocol::{StopReason, Usage};

    use super::*;

    #[test]
    fn deltas_become_the_events_of_the_api() {
        let mut partial = PartialReply::default();
        let deltas = [
            Delta::Started { model: "m".into() },
            Delta::Thinking("hm".into()),
            Delta::BlockDone,
            Delta::BlockDone,
            Delta::Text("a".into()),
            Delta::Text("b".into()),
            Delta::BlockDone,
            Delta::ToolUse {
                id: "t1".into(),
                name: "Read".into(),
            },
            Delta::ToolInput("{}".into()),
            Delta::BlockDone,
        ];
        let facts = ReplyFacts {
            id: "msg_1".into(),
            model: "m".into(),
            stop: Some(StopReason::ToolUse),
            usage: Usage::default(),
            missed: None,
        };
        let mut events: Vec<Value> = deltas
            .iter()
            .flat_map(|delta| partial.delta(delta))
            .collect();
        events.extend(partial.whole(&facts));
        let told: Vec<(&str, u64)> = events
            .iter()
            .map(|event| {
                (
                    event["type"].as_str().unwrap(),
                    event["index"].as_u64().unwrap_or(9),
                )
            })
            .collect();
        let (start, delta, stop) = (
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
        );
        assert_eq!(
            told,
            [
                ("message_start", 9),
                (start, 0),
                (delta, 0),
                (stop, 0),
                (start, 2),
                (delta, 2),
                (delta, 2),
                (stop, 2),
                (start, 3),
                (delta, 3),
                (stop, 3),
                ("message_delta", 9),
                ("message_stop", 9)
            ]
        );
        assert!(
            partial.whole(&facts).is_empty(),
            "nothing was shown of this one"
        );
    }
}
