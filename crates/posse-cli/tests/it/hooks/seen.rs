//! What matters of a run to those who write hooks, read from a recording or from a run of posse.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::scene::blocks;

/// The words by which cases trace what is said.
static MARK: LazyLock<Regex> = LazyLock::new(|| Regex::new("(HOOK|TOOL|USER)-[A-Z0-9]+").unwrap());

/// Fields whose values differ from run to run or are text of the program: their types are compared, and
/// the marked words in them.
const LOOSE: &[&str] = &[
    "agent_id",
    "agent_transcript_path",
    "agentId",
    "error",
    "id",
    "message",
    "message_id",
    "permission_suggestions",
    "prompt_id",
    "resolvedModel",
    "session_id",
    "tool_use_id",
    "transcript_path",
    "turn_id",
];

/// Events whose hooks hold nothing up in posse: their place among others is open.
const BESIDE: &[&str] = &["InstructionsLoaded", "MessageDisplay", "PostCompact"];

/// The outcome of a case.
pub(super) struct Seen {
    /// The hooks that ran: number of the hook, event and tool.
    hooks: Vec<String>,
    /// Those of other events, in any order.
    beside: Vec<String>,
    /// Their inputs, by the same words and how often they came before.
    inputs: BTreeMap<(String, usize), Value>,
    /// What tools have left.
    files: Value,
    /// Per request the agent, which calls succeeded and failed, and the marked words that are new in it.
    requests: Value,
    /// Exit codes.
    codes: Value,
}

/// One respect in which two outcomes differ.
pub(super) struct Difference {
    /// `hooks`, `beside`, `files`, `requests`, `codes`, or an event with the path of a field.
    pub(super) aspect: String,
    pub(super) claude: Value,
    pub(super) posse: Value,
}

impl Seen {
    /// A line of recorded.jsonl.
    pub(super) fn recorded(line: &Value) -> Self {
        let inputs = line["inputs"].as_array().unwrap().iter();
        let inputs = inputs.map(|input| {
            let mut input = input.as_object().unwrap().clone();
            let hook = input
                .remove("hook")
                .map_or(0, |hook| hook.as_u64().unwrap());
            (hook, Value::Object(input))
        });
        let requests = line["requests"].as_array().unwrap().iter().map(|request| {
            let told = request["told"].as_array().unwrap().iter();
            let told = told.map(|told| Told::recorded(told.as_str().unwrap()));
            summary(
                request["agent"].as_str().unwrap(),
                &told.collect::<Vec<_>>(),
            )
        });
        let runs = line["runs"].as_array().unwrap().iter();
        Self {
            requests: requests.collect(),
            files: line["files"].clone(),
            codes: runs.map(|run| run["code"].clone()).collect(),
            ..Self::of(inputs.collect())
        }
    }

    /// What a run of posse in this directory has left.
    pub(super) fn posse(base: &Path, bodies: &[Value], codes: &[Option<i32>]) -> Self {
        let inputs = fs::read_to_string(base.join("inputs")).unwrap_or_default();
        let inputs = inputs.lines().map(|line| {
            let (number, input) = line.split_once(' ').unwrap();
            let input = serde_json::from_str(input).unwrap();
            (number.parse().unwrap(), plain(base, input))
        });
        let listed = fs::read_dir(base.join("w")).unwrap();
        let names = listed.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let files: BTreeSet<String> = names.filter(|name| name.starts_with("ran")).collect();
        Self {
            requests: requests(bodies),
            files: json!(files),
            codes: json!(codes),
            ..Self::of(in_order(inputs.collect()))
        }
    }

    /// The number of a hook is there if several have run.
    fn of(inputs: Vec<(u64, Value)>) -> Self {
        let several: BTreeSet<u64> = inputs.iter().map(|(number, _)| *number).collect();
        let mut seen = Self {
            hooks: Vec::new(),
            beside: Vec::new(),
            inputs: BTreeMap::new(),
            files: Value::Null,
            requests: Value::Null,
            codes: Value::Null,
        };
        for (number, input) in inputs {
            let event = input["hook_event_name"].as_str().unwrap();
            let tool = input["tool_name"].as_str().unwrap_or_default();
            let number = if several.len() > 1 { number } else { 0 };
            let name = format!("{number} {event} {tool}").trim_end().to_owned();
            let earlier = seen
                .inputs
                .keys()
                .filter(|(other, _)| *other == name)
                .count();
            match BESIDE.contains(&event) {
                true => seen.beside.push(name.clone()),
                false => seen.hooks.push(name.clone()),
            }
            seen.inputs.insert((name, earlier), input);
        }
        seen.beside.sort();
        seen
    }

    /// Returns where posse differs from this recording. It may say more in an input.
    pub(super) fn differences(&self, posse: &Self) -> Vec<Difference> {
        let mut found = Found::default();
        let hooks = (json!(self.hooks), json!(posse.hooks));
        let beside = (json!(self.beside), json!(posse.beside));
        let wholes = [
            ("hooks", &hooks.0, &hooks.1),
            ("beside", &beside.0, &beside.1),
            ("files", &self.files, &posse.files),
            ("requests", &self.requests, &posse.requests),
            ("codes", &self.codes, &posse.codes),
        ];
        for (aspect, claude, own) in wholes {
            if claude != own {
                found.add(aspect, claude, own);
            }
        }
        for (key, claude) in &self.inputs {
            if let Some(own) = posse.inputs.get(key) {
                let event = claude["hook_event_name"].as_str().unwrap();
                found.compare(event, "", claude, own);
                // Scripts know a sub-agent by them.
                for name in ["agent_id", "agent_type"] {
                    if claude[name].is_null() && !own[name].is_null() {
                        found.add(&format!("{event}.{name}"), &claude[name], &own[name]);
                    }
                }
            }
        }
        found.0.into_values().collect()
    }
}

/// Differences by aspect; the first of each.
#[derive(Default)]
struct Found(BTreeMap<String, Difference>);

impl Found {
    fn add(&mut self, aspect: &str, claude: &Value, posse: &Value) {
        let difference = || Difference {
            aspect: aspect.to_owned(),
            claude: claude.clone(),
            posse: posse.clone(),
        };
        self.0.entry(aspect.to_owned()).or_insert_with(difference);
    }

    /// Compares what an input has at a path that ends with `field`.
    fn compare(&mut self, path: &str, field: &str, claude: &Value, posse: &Value) {
        match (claude, posse) {
            _ if claude == "…" && !posse.is_null() => {}
            _ if LOOSE.contains(&field) && is_alike(claude, posse) => {}
            (Value::Object(fields), Value::Object(own)) => {
                for (name, value) in fields {
                    let own = own.get(name).unwrap_or(&Value::Null);
                    if value.is_null() != own.is_null() {
                        self.add(&format!("{path}.{name}"), value, own);
                    } else {
                        self.compare(&format!("{path}.{name}"), name, value, own);
                    }
                }
            }
            (Value::Array(parts), Value::Array(own)) if parts.len() == own.len() => {
                for (part, own) in parts.iter().zip(own) {
                    self.compare(path, field, part, own);
                }
            }
            _ if claude == posse || is_shortened(claude, posse) => {}
            // What the model is told is in each program's own words.
            _ if path == "PostToolBatch.tool_calls.tool_response" && is_alike(claude, posse) => {}
            _ => self.add(path, claude, posse),
        }
    }
}

/// Returns true if two values have one type and the same marked words.
fn is_alike(claude: &Value, posse: &Value) -> bool {
    let kind = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    };
    kind(claude) == kind(posse) && marks(&claude.to_string()) == marks(&posse.to_string())
}

/// The recording keeps the beginning of long texts.
fn is_shortened(claude: &Value, posse: &Value) -> bool {
    let begins = |kept: &str, whole: &str| {
        kept.strip_suffix('…')
            .is_some_and(|kept| whole.starts_with(kept))
    };
    matches!((claude, posse), (Value::String(kept), Value::String(whole)) if begins(kept, whole))
}

fn marks(text: &str) -> BTreeSet<&str> {
    MARK.find_iter(text).map(|mark| mark.as_str()).collect()
}

/// Hooks of one moment run at the same time: their inputs are put in the order of the hooks.
fn in_order(inputs: Vec<(u64, Value)>) -> Vec<(u64, Value)> {
    let moment = |input: &Value| {
        ["hook_event_name", "tool_use_id", "agent_id"].map(|key| input[key].clone())
    };
    let mut ordered: Vec<(u64, Value)> = Vec::new();
    let mut begun = 0;
    for (number, input) in inputs {
        let together = &ordered[begun..];
        let other = together
            .first()
            .is_some_and(|(_, first)| moment(first) != moment(&input));
        if other || together.iter().any(|(earlier, _)| *earlier == number) {
            begun = ordered.len();
        }
        ordered.push((number, input));
        ordered[begun..].sort_by_key(|(number, _)| *number);
    }
    ordered
}

/// Returns a value in which the directory of the run has another name.
fn plain(base: &Path, value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, plain(base, value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(parts) => parts.into_iter().map(|part| plain(base, part)).collect(),
        Value::String(text) => text.replace(base.to_str().unwrap(), "BASE").into(),
        other => other,
    }
}

/// One thing that the model is told.
#[derive(Clone, PartialEq)]
struct Told {
    /// If it is the result of a call: whether the call failed.
    failed: Option<bool>,
    text: String,
}

impl Told {
    fn recorded(told: &str) -> Self {
        let (kind, text) = told.split_once(": ").unwrap();
        Self {
            failed: kind
                .contains("tool_result")
                .then(|| kind.contains("(error)")),
            text: text.to_owned(),
        }
    }
}

fn summary(agent: &str, told: &[Told]) -> String {
    let calls = told
        .iter()
        .filter_map(|told| told.failed)
        .map(|failed| match failed {
            true => "failed",
            false => "ok",
        });
    let words: BTreeSet<&str> = told.iter().flat_map(|told| marks(&told.text)).collect();
    let parts = [agent].into_iter().chain(calls).chain(words);
    parts.collect::<Vec<_>>().join(" ")
}

/// Returns for each request what earlier requests of its agent did not contain.
fn requests(bodies: &[Value]) -> Value {
    let mut earlier: BTreeMap<&str, Vec<Told>> = BTreeMap::new();
    let summaries = bodies.iter().map(|body| {
        let agent = agent(body);
        let told = told(body);
        let mut left = earlier.insert(agent, told.clone()).unwrap_or_default();
        let is_new = |told: &Told| match left.iter().position(|before| before == told) {
            Some(place) => {
                left.remove(place);
                false
            }
            None => true,
        };
        let new: Vec<Told> = told.into_iter().filter(is_new).collect();
        summary(agent, &new)
    });
    json!(summaries.collect::<Vec<_>>())
}

fn agent(body: &Value) -> &'static str {
    let messages = body["messages"].as_array().unwrap();
    let holds = |message: Option<&Value>, words: &str| message.unwrap().to_string().contains(words);
    match () {
        () if holds(messages.first(), "USER-SUB") => "sub",
        () if holds(messages.last(), "HOOK-ASKED {") => "hook",
        () => "main",
    }
}

fn told(body: &Value) -> Vec<Told> {
    let mut told = Vec::new();
    let text = |block: &Value| block["text"].as_str().unwrap_or_default().to_owned();
    let mut texts = |content: &Value| {
        for block in blocks(content) {
            if block["type"] == "tool_result" {
                let parts = blocks(&block["content"]);
                told.push(Told {
                    failed: Some(block["is_error"] == true),
                    text: parts.iter().map(text).collect(),
                });
            } else if MARK.is_match(&text(&block)) {
                told.push(Told {
                    failed: None,
                    text: text(&block),
                });
            }
        }
    };
    texts(&body["system"]);
    for message in body["messages"].as_array().unwrap() {
        if message["role"] != "assistant" {
            texts(&message["content"]);
        }
    }
    told
}
