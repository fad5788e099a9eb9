//! Picks the rule that answers and renders its reply. Holds the script's state between turns.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::conversation::Conversation;
use crate::script::{Fault, Say, Script, ScriptRule, ToolInput};
use crate::template::{TemplateValues, TextTemplate};

/// A rule's answer to a request.
#[derive(Debug)]
pub(crate) struct PickedAnswer {
    pub(crate) rule: String,
    pub(crate) blocks: Vec<RenderedBlock>,
    pub(crate) stop: Option<String>,
    pub(crate) delay_ms: u64,
    pub(crate) tokens_per_s: Option<f64>,
    pub(crate) fault: Option<Fault>,
}

impl PickedAnswer {
    /// Returns the names of the tools that it calls.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match block {
            RenderedBlock::Tool { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }
}

/// A block, rendered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RenderedBlock {
    Text(String),
    Thinking(String),
    RedactedThinking(String),
    /// `typed` is the input as it is sent.
    Tool {
        name: String,
        input: Value,
        typed: String,
        id: Option<String>,
    },
}

/// A script being played.
#[derive(Debug)]
pub(crate) struct Play {
    script: Script,
    /// How often each rule was used.
    used: Vec<u32>,
    /// What rules have set, by agent; keys that begin with `shared.` belong to all agents.
    state: HashMap<String, BTreeMap<String, String>>,
    shared: BTreeMap<String, String>,
}

impl Play {
    pub(crate) fn new(script: Script) -> Self {
        let used = vec![0; script.rules.len()];
        Self {
            script,
            used,
            state: HashMap::new(),
            shared: BTreeMap::new(),
        }
    }

    /// Returns true if a rule looks for a marker, so that all text must be collected.
    pub(crate) fn reads_all_text(&self) -> bool {
        self.script
            .rules
            .iter()
            .any(|rule| rule.when.marker.is_some())
    }

    /// Returns the answer of the first rule that matches, and counts its use.
    pub(crate) fn answer(&mut self, conversation: &Conversation) -> Option<PickedAnswer> {
        let mut values = TemplateValues {
            user: conversation.last_user.clone(),
            tool: conversation.last_tool.clone(),
            agent: conversation.agent.clone(),
            model: conversation.model.clone(),
            turn: conversation.turn,
            state: self.state_of(&conversation.agent),
            ..TemplateValues::default()
        };
        let chosen = self.script.rules.iter().enumerate().find(|(index, rule)| {
            rule.times.is_none_or(|times| self.used[*index] < times)
                && fits(rule, conversation, &mut values)
        });
        let (index, rule) = chosen?;
        let answer = PickedAnswer {
            rule: rule.name.clone(),
            blocks: rule.reply.iter().map(|say| spoken(say, &values)).collect(),
            stop: rule.stop.clone(),
            delay_ms: rule.delay_ms,
            tokens_per_s: rule.tokens_per_s,
            fault: rule.fault.clone(),
        };
        let set: Vec<(String, String)> = rule
            .set
            .iter()
            .map(|(key, value)| (key.clone(), value.render(&values)))
            .collect();
        self.used[index] += 1;
        for (key, value) in set {
            let keys = if key.starts_with("shared.") {
                &mut self.shared
            } else {
                self.state.entry(conversation.agent.clone()).or_default()
            };
            keys.insert(key, value);
        }
        Some(answer)
    }

    fn state_of(&self, agent: &str) -> BTreeMap<String, String> {
        let mut state = self.shared.clone();
        state.extend(self.state.get(agent).cloned().unwrap_or_default());
        state
    }
}

/// Returns true if a rule matches, and sets the groups of its patterns.
fn fits(rule: &ScriptRule, conversation: &Conversation, values: &mut TemplateValues) -> bool {
    let when = &rule.when;
    let plain = [
        (&when.agent, conversation.agent.as_str()),
        (&when.model, conversation.model.as_str()),
        (&when.marker, conversation.all_text.as_str()),
    ];
    if when.turn.is_some_and(|turn| turn != conversation.turn)
        || plain
            .iter()
            .any(|(pattern, text)| pattern.as_ref().is_some_and(|it| it.groups(text).is_none()))
        || when
            .state
            .iter()
            .any(|(key, value)| values.state.get(key).map_or("", String::as_str) != value)
    {
        return false;
    }
    let groups = |pattern: &Option<crate::script::Pattern>, text: &str| match pattern {
        Some(pattern) => pattern.groups(text),
        None => Some(Vec::new()),
    };
    let (Some(user), Some(tool)) = (
        groups(&when.user, &conversation.last_user),
        groups(&when.tool, &conversation.last_tool),
    ) else {
        return false;
    };
    // A rule about a tool's result applies only to a request that contains one.
    if when.tool.is_some() && conversation.last_tool.is_empty() {
        return false;
    }
    (values.user_groups, values.tool_groups) = (user, tool);
    true
}

fn spoken(say: &Say, values: &TemplateValues) -> RenderedBlock {
    match say {
        Say::Text(text) => RenderedBlock::Text(text.render(values)),
        Say::Thinking(text) => RenderedBlock::Thinking(text.render(values)),
        Say::RedactedThinking(data) => RenderedBlock::RedactedThinking(data.clone()),
        Say::Tool { name, input, id } => {
            let (input, typed) = match input {
                ToolInput::Fields(fields) => {
                    let fields = fields.iter();
                    let rendered = fields.map(|(key, value)| {
                        (key.clone(), TextTemplate::render_value(value, values))
                    });
                    let input: Value = rendered.collect();
                    let typed = input.to_string();
                    (input, typed)
                }
                ToolInput::Typed(typed, input) => (input.clone(), typed.clone()),
            };
            RenderedBlock::Tool {
                name: name.render(values),
                input,
                typed,
                id: id.clone(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(play: &mut Play, conversation: &Conversation) -> Option<String> {
        let answer = play.answer(conversation)?;
        match &answer.blocks[..] {
            [RenderedBlock::Text(text)] => Some(text.clone()),
            other => Some(format!("{other:?}")),
        }
    }

    #[test]
    fn rules_are_tried_in_order_counted_and_remember() {
        let script = Script::parse(
            r#"
            [[rule]]
            when.user = "re:call me (\\w+)"
            set = { name = "{{user.1}}", "shared.last" = "{{user.1}}" }
            reply = [{ text = "hello {{user.1}}" }]
            [[rule]]
            when.state = { name = "Ann" }
            times = 1
            reply = [{ text = "you are {{state.name}}" }]
            [[rule]]
            when.turn = 3
            reply = [{ text = "third turn" }]
            [[rule]]
            when.tool = "ok"
            reply = [{ text = "tool said {{tool}}" }]
            [[rule]]
            when.user = "?"
            reply = [{ text = "last was {{state.shared.last}}" }]
            "#,
        )
        .unwrap();
        let mut play = Play::new(script);
        let ask = |agent: &str, user: &str| Conversation {
            agent: agent.into(),
            last_user: user.into(),
            turn: 1,
            ..Conversation::default()
        };
        assert_eq!(
            said(&mut play, &ask("/a", "call me Ann")).unwrap(),
            "hello Ann"
        );
        assert_eq!(
            said(&mut play, &ask("/b", "who?")).unwrap(),
            "last was Ann",
            "another agent's state"
        );
        assert_eq!(said(&mut play, &ask("/a", "who?")).unwrap(), "you are Ann");
        assert_eq!(
            said(&mut play, &ask("/a", "who?")).unwrap(),
            "last was Ann",
            "used up"
        );
        let third = Conversation {
            turn: 3,
            ..Conversation::default()
        };
        assert_eq!(said(&mut play, &third).unwrap(), "third turn");
        let tool = Conversation {
            last_tool: "all ok".into(),
            turn: 2,
            ..Conversation::default()
        };
        assert_eq!(said(&mut play, &tool).unwrap(), "tool said all ok");
        assert_eq!(said(&mut play, &Conversation::default()), None);
    }
}
