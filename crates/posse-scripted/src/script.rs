//! Scripts: what the server is told to say, as data.
//!
//! `docs/scripted-model.md` is the manual. A script is read once, checked as a whole, and errors
//! name the rule they are in.

use std::collections::BTreeMap;

use regex::Regex;
use serde::Deserialize;

use crate::limits::settings::{LimitSettings, LimitsProblem, RawLimits, RawOutage};
use crate::template::{TemplateError, TextTemplate};

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It is not the TOML that a script is.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A rule says something that makes no sense.
    #[error("rule {rule}: {what}")]
    Rule {
        /// The rule's name, or its number.
        rule: String,
        /// What is wrong.
        what: RuleProblem,
    },
    /// A table about limits or an outage says something that makes no sense.
    #[error("{table} {number}: {what}")]
    Limits {
        /// The table's name.
        table: &'static str,
        /// Its number among tables of that name, from 1.
        number: usize,
        /// What is wrong.
        what: LimitsProblem,
    },
}

/// What is wrong with a rule.
#[derive(Debug, thiserror::Error)]
pub enum RuleProblem {
    /// A pattern is not a regular expression.
    #[error(transparent)]
    Pattern(#[from] regex::Error),
    /// A text is not a template.
    #[error(transparent)]
    TextTemplate(#[from] TemplateError),
    /// It has neither a reply nor a fault.
    #[error("it neither replies nor fails; add `reply` or `fault`")]
    Silent,
    /// A rate makes no sense.
    #[error("a rate must be between 0.001 and a billion per second")]
    Rate,
    /// A fault has the status of a success.
    #[error("{status} is not the status of an error")]
    Status {
        /// The status.
        status: u16,
    },
    /// A block of the reply is nothing, or several things.
    #[error("a block of a reply must be `text`, `thinking`, `redacted_thinking` or `tool`")]
    Block,
    /// A block has fields of a tool call and is not one.
    #[error("`input`, `json` and `id` belong to `tool`")]
    OnlyWithTool,
    /// The input of a call is given twice.
    #[error("a call has `input` or `json`, not both")]
    InputAndJson,
    /// The input of a call is not an object.
    #[error("`json` is not an object")]
    JsonNotAnObject,
}

/// A script: rules, tried in order; the first that fits a request answers it.
#[derive(Debug, Default)]
pub struct Script {
    pub(crate) rules: Vec<ScriptRule>,
    pub(crate) limits: LimitSettings,
}

/// The script that runs when none is given: it greets, and repeats what it is told.
const BUILT_IN: &str = include_str!("built_in.toml");

impl Script {
    /// Reads a script.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let raw: RawScript = toml::from_str(text)?;
        let rules = raw
            .rule
            .into_iter()
            .enumerate()
            .map(|(n, rule)| ScriptRule::check(n, rule, &raw.pace));
        Ok(Self {
            rules: rules.collect::<Result<_, _>>()?,
            limits: check_limits(raw.limits, raw.outage)?,
        })
    }

    /// Returns its limits and outages.
    pub fn limits(&self) -> &LimitSettings {
        &self.limits
    }

    /// The script that runs when none is given.
    pub fn built_in() -> Result<Self, ScriptError> {
        Self::parse(BUILT_IN)
    }
}

fn check_limits(
    tables: Vec<RawLimits>,
    outages: Vec<RawOutage>,
) -> Result<LimitSettings, ScriptError> {
    let wrong = |table, index| {
        move |what| ScriptError::Limits {
            table,
            number: index + 1,
            what,
        }
    };
    let mut checked = Vec::new();
    for (index, table) in tables.into_iter().enumerate() {
        let table = table.check(&checked).map_err(wrong("limits", index))?;
        checked.push(table);
    }
    let outages = outages
        .into_iter()
        .enumerate()
        .map(|(index, outage)| outage.check().map_err(wrong("outage", index)));
    let outages = outages.collect::<Result<_, _>>()?;
    Ok(LimitSettings::new(checked, outages))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    #[serde(default)]
    pace: RawPace,
    #[serde(default)]
    rule: Vec<RawRule>,
    #[serde(default)]
    limits: Vec<RawLimits>,
    #[serde(default)]
    outage: Vec<RawOutage>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPace {
    delay_ms: Option<u64>,
    tokens_per_s: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    name: Option<String>,
    #[serde(default)]
    when: RawWhen,
    times: Option<u32>,
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    reply: Vec<RawSay>,
    stop: Option<String>,
    delay_ms: Option<u64>,
    tokens_per_s: Option<f64>,
    fault: Option<Fault>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWhen {
    agent: Option<String>,
    model: Option<String>,
    marker: Option<String>,
    user: Option<String>,
    tool: Option<String>,
    turn: Option<u32>,
    #[serde(default)]
    state: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSay {
    text: Option<String>,
    thinking: Option<String>,
    redacted_thinking: Option<String>,
    tool: Option<String>,
    input: Option<toml::Table>,
    json: Option<String>,
    id: Option<String>,
}

/// One rule.
#[derive(Debug)]
pub(crate) struct ScriptRule {
    pub(crate) name: String,
    pub(crate) when: When,
    /// How often it may answer.
    pub(crate) times: Option<u32>,
    pub(crate) set: Vec<(String, TextTemplate)>,
    pub(crate) reply: Vec<Say>,
    pub(crate) stop: Option<String>,
    pub(crate) delay_ms: u64,
    pub(crate) tokens_per_s: Option<f64>,
    pub(crate) fault: Option<Fault>,
}

/// What a request must be like.
#[derive(Debug)]
pub(crate) struct When {
    pub(crate) agent: Option<Pattern>,
    pub(crate) model: Option<Pattern>,
    pub(crate) marker: Option<Pattern>,
    pub(crate) user: Option<Pattern>,
    pub(crate) tool: Option<Pattern>,
    pub(crate) turn: Option<u32>,
    pub(crate) state: BTreeMap<String, String>,
}

/// A text that must occur, or, after `re:`, a regular expression that must match.
#[derive(Debug)]
pub(crate) enum Pattern {
    Contains(String),
    Regex(Regex),
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, regex::Error> {
        match text.strip_prefix("re:") {
            Some(expression) => Regex::new(expression).map(Self::Regex),
            None => Ok(Self::Contains(text.to_owned())),
        }
    }

    /// Returns the groups of a match, the whole of it first; none if there is no match.
    pub(crate) fn groups(&self, text: &str) -> Option<Vec<String>> {
        match self {
            Self::Contains(part) => text.contains(part.as_str()).then(|| vec![part.clone()]),
            Self::Regex(regex) => regex.captures(text).map(|found| {
                found
                    .iter()
                    .map(|group| group.map_or_else(String::new, |m| m.as_str().to_owned()))
                    .collect()
            }),
        }
    }
}

/// One block of a reply.
#[derive(Debug)]
pub(crate) enum Say {
    Text(TextTemplate),
    Thinking(TextTemplate),
    RedactedThinking(String),
    Tool {
        name: TextTemplate,
        input: ToolInput,
        id: Option<String>,
    },
}

/// A call's input.
#[derive(Debug)]
pub(crate) enum ToolInput {
    Fields(Vec<(String, toml::Value)>),
    /// As it is typed, spaces and all.
    Typed(String, serde_json::Value),
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Fault {
    /// The request is answered with an error.
    Status {
        status: u16,
        #[serde(rename = "type")]
        class: Option<String>,
        message: Option<String>,
        code: Option<String>,
        retry_after: Option<String>,
        retry_after_ms: Option<u64>,
        should_retry: Option<bool>,
    },
    /// The body ends after `at` bytes, and the connection with it.
    Cut { at: usize },
    /// The connection is reset after `at` bytes.
    Reset { at: usize },
    /// Nothing comes after `at` bytes; without `at`, not even the head.
    Stall { at: Option<usize> },
    /// From byte `at` on, bytes that are no text.
    Garbage { at: usize },
    /// Event number `event` (from 0) comes twice.
    Duplicate { event: usize },
    /// The body comes at so many bytes per second.
    Drip { bytes_per_s: f64 },
    /// An `error` event takes the place of event number `event`.
    Error {
        event: usize,
        #[serde(rename = "type")]
        class: String,
    },
    /// The connection is dropped, and for so long no new one is accepted.
    Refuse { for_ms: u64 },
}

impl ScriptRule {
    fn check(number: usize, raw: RawRule, pace: &RawPace) -> Result<Self, ScriptError> {
        let name = raw.name.unwrap_or_else(|| format!("{}", number + 1));
        let wrong = |what: RuleProblem| ScriptError::Rule {
            rule: name.clone(),
            what,
        };
        let pattern = |text: Option<String>| text.map(|text| Pattern::parse(&text)).transpose();
        let when = (|| {
            Ok::<_, regex::Error>(When {
                agent: pattern(raw.when.agent)?,
                model: pattern(raw.when.model)?,
                marker: pattern(raw.when.marker)?,
                user: pattern(raw.when.user)?,
                tool: pattern(raw.when.tool)?,
                turn: raw.when.turn,
                state: raw.when.state,
            })
        })()
        .map_err(|error| wrong(error.into()))?;
        if raw.reply.is_empty() && raw.fault.is_none() {
            return Err(wrong(RuleProblem::Silent));
        }
        let reply = raw
            .reply
            .into_iter()
            .map(Say::check)
            .collect::<Result<_, _>>()
            .map_err(wrong)?;
        let sane = |rate: f64| (1e-3..1e9).contains(&rate);
        let dripping = match raw.fault {
            Some(Fault::Drip { bytes_per_s }) => Some(bytes_per_s),
            _ => None,
        };
        let rates = [raw.tokens_per_s, pace.tokens_per_s, dripping];
        if rates.into_iter().flatten().any(|rate| !sane(rate)) {
            return Err(wrong(RuleProblem::Rate));
        }
        if let Some(Fault::Status { status, .. }) = raw.fault
            && !(400..600).contains(&status)
        {
            return Err(wrong(RuleProblem::Status { status }));
        }
        let set = raw
            .set
            .into_iter()
            .map(|(key, value)| Ok((key, TextTemplate::parse(&value)?)));
        Ok(Self {
            when,
            times: raw.times,
            set: set.collect::<Result<_, RuleProblem>>().map_err(wrong)?,
            reply,
            stop: raw.stop,
            delay_ms: raw.delay_ms.or(pace.delay_ms).unwrap_or(0),
            tokens_per_s: raw.tokens_per_s.or(pace.tokens_per_s),
            fault: raw.fault,
            name,
        })
    }
}

impl Say {
    fn check(raw: RawSay) -> Result<Self, RuleProblem> {
        let only_with_tool =
            raw.tool.is_none() && (raw.input.is_some() || raw.json.is_some() || raw.id.is_some());
        let say = match (raw.text, raw.thinking, raw.redacted_thinking, raw.tool) {
            (Some(text), None, None, None) => Self::Text(TextTemplate::parse(&text)?),
            (None, Some(thinking), None, None) => Self::Thinking(TextTemplate::parse(&thinking)?),
            (None, None, Some(data), None) => Self::RedactedThinking(data),
            (None, None, None, Some(name)) => {
                let input = ToolInput::check(raw.input, raw.json)?;
                Self::Tool {
                    name: TextTemplate::parse(&name)?,
                    input,
                    id: raw.id,
                }
            }
            _ => {
                return Err(RuleProblem::Block);
            }
        };
        if only_with_tool {
            Err(RuleProblem::OnlyWithTool)
        } else {
            Ok(say)
        }
    }
}

impl ToolInput {
    fn check(fields: Option<toml::Table>, typed: Option<String>) -> Result<Self, RuleProblem> {
        let Some(typed) = typed else {
            let fields: Vec<(String, toml::Value)> =
                fields.unwrap_or_default().into_iter().collect();
            fields
                .iter()
                .try_for_each(|(_, value)| TextTemplate::check_value(value))?;
            return Ok(Self::Fields(fields));
        };
        match serde_json::from_str(&typed) {
            Ok(value @ serde_json::Value::Object(_)) if fields.is_none() => {
                Ok(Self::Typed(typed, value))
            }
            Ok(serde_json::Value::Object(_)) => Err(RuleProblem::InputAndJson),
            _ => Err(RuleProblem::JsonNotAnObject),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_script_is_one() {
        assert!(!Script::built_in().unwrap().rules.is_empty());
    }

    #[test]
    fn the_examples_of_the_manual_are_scripts() {
        let manual = include_str!("../../../docs/scripted-model.md");
        let blocks = manual.split("```toml\n").skip(1);
        let examples: Vec<&str> = blocks.filter_map(|rest| rest.split("```").next()).collect();
        assert_eq!(examples.len(), 5);
        for example in examples {
            assert!(Script::parse(example).is_ok(), "{example}");
        }
    }

    #[test]
    fn errors_name_the_rule() {
        let check = |text: &str| Script::parse(text).unwrap_err().to_string();
        assert_eq!(
            check("[[rule]]\nname = 'a'"),
            "rule a: it neither replies nor fails; add `reply` or `fault`"
        );
        assert!(
            check("[[rule]]\nreply = [{ text = 'x', tool = 'y' }]").starts_with("rule 1: a block")
        );
        assert!(
            check("[[rule]]\nwhen.user = 're:('\nreply = [{ text = 'x' }]").starts_with("rule 1: ")
        );
        assert!(check("[[rule]]\nreply = [{ text = '{{nope}}' }]").contains("`nope`"));
        assert!(check("[[rule]]\nwehn = {}").contains("unknown field `wehn`"));
    }

    #[test]
    fn errors_name_the_table_of_limits_or_outages() {
        let check = |text: &str| Script::parse(text).unwrap_err().to_string();
        let limits = |text: &str| check(&format!("[[limits]]\n{text}"));
        assert_eq!(
            limits("model = 'claude-*'"),
            "limits 1: it limits nothing; add `requests_per_minute`, `input_tokens_per_minute`, \
             `output_tokens_per_minute`, `tokens_per_minute` or `concurrency`"
        );
        let range = "must be from 1 to 1,000,000,000,000";
        assert_eq!(
            [
                limits("requests_per_minute = 0"),
                limits("requests_per_minute = 1\ninput_tokens_per_minute = 2000000000000"),
                limits("tokens_per_minute = 5\ntokens_burst = 0"),
                limits("concurrency = 0"),
            ],
            [
                format!("limits 1: `requests_per_minute` {range}"),
                format!("limits 1: `input_tokens_per_minute` {range}"),
                format!("limits 1: `tokens_burst` {range}"),
                format!("limits 1: `concurrency` {range}"),
            ]
        );
        assert_eq!(
            limits("concurrency = 1\noutput_tokens_burst = 5"),
            "limits 1: `output_tokens_burst` belongs to `output_tokens_per_minute`, which is missing"
        );
        for wrong in ["'soon'", "-1", "86401", "1.5"] {
            assert_eq!(
                limits(&format!("concurrency = 1\nretry_after = {wrong}")),
                "limits 1: `retry_after` must be true, false or a number of seconds up to 86,400"
            );
        }
        assert_eq!(
            limits("concurrency = 1\n[[limits]]\nmodel = '*'\nconcurrency = 2"),
            "limits 2: limits 1 has the same `account` and `model`"
        );
        assert!(limits("requests_per_minute = -1").contains("expected u64"));
        assert!(limits("rpm = 5").contains("unknown field `rpm`"));

        let outage = |text: &str| check(&format!("[[outage]]\nfrom_ms = 5\n{text}"));
        assert_eq!(
            [
                outage("for_ms = 0\nstatus = 529"),
                outage("for_ms = 1"),
                outage("for_ms = 1\nstatus = 529\nrefuse = true"),
                outage("for_ms = 1\nstatus = 400"),
                outage("for_ms = 1\nrefuse = true\nretry_after = 1"),
            ],
            [
                "outage 1: `for_ms` must be at least 1",
                "outage 1: an outage has either `status` or `refuse = true`",
                "outage 1: an outage has either `status` or `refuse = true`",
                "outage 1: 400 is not the status of an outage; use 429, or 500 to 599",
                "outage 1: `retry_after` belongs to `status`",
            ]
        );
        assert!(outage("status = 529").contains("missing field `for_ms`"));
    }
}
