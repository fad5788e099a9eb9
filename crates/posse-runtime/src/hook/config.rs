//! Hooks in a file of settings or in front matter: groups of each event, hooks of each group. What is
//! wrong or unknown is reported with its place, and the rest counts.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use posse_permission::{CallPattern, RuleError, Source};
use posse_port::closest;
use serde_json::{Map, Value};

use crate::hook::matcher::WrongPattern;
use crate::hook::{
    Condition, Hook, HookAction, HookEvent, HookLayer, HookOrigin, HookProgram, HookState,
    HookTool, Matcher, OnFailure, RunsBeside,
};

/// The keys of a group.
const GROUP: [&str; 2] = ["matcher", "hooks"];
/// The keys that each kind of hook has.
const COMMON: [&str; 6] = [
    "type",
    "if",
    "timeout",
    "statusMessage",
    "once",
    "onFailure",
];
/// The kinds, each with its own keys.
const KINDS: [(&str, &[&str]); 5] = [
    (
        "command",
        &[
            "command",
            "args",
            "shell",
            "async",
            "asyncRewake",
            "persistent",
        ],
    ),
    ("http", &["url", "headers", "allowedEnvVars"]),
    ("mcp_tool", &["server", "tool", "input"]),
    ("prompt", &["prompt", "model", "continueOnBlock"]),
    ("agent", &["prompt", "model"]),
];
/// Most seconds that a hook may take.
const LONGEST: f64 = 86_400.0;

/// The file that hooks are read from.
#[derive(Clone, Debug)]
pub struct HookFile {
    /// Who declares them.
    pub layer: HookLayer,
    /// The file.
    pub path: PathBuf,
    /// True if the repository declares them.
    pub of_repository: bool,
    /// What paths in rules mean.
    pub source: Source,
}

/// What a file says.
#[derive(Debug, Default)]
pub struct ReadHooks {
    /// The hooks, in order, each with its place in the file.
    pub hooks: Vec<(Hook, Vec<PathStep>)>,
    /// What is wrong or unknown.
    pub problems: Vec<FileProblem>,
}

/// A step on the way to a place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// The value of a key.
    Key(String),
    /// A value in a list.
    Index(usize),
}

/// Something that is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// Where.
    pub path: Vec<PathStep>,
    /// What.
    pub what: HookProblem,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookProblem {
    /// No event has this name.
    #[error("`{name}` is not a hook event{}", meant(.closest))]
    UnknownEvent {
        /// The name.
        name: String,
        /// The event that may be meant.
        closest: Option<String>,
    },
    /// The event never happens.
    #[error("{event} never happens in posse: {why}")]
    Never {
        /// The event.
        event: HookEvent,
        /// Why.
        why: &'static str,
    },
    /// A key that means nothing.
    #[error("`{key}` is not known and ignored{}", meant(.closest))]
    UnknownKey {
        /// The key.
        key: String,
        /// The key that may be meant.
        closest: Option<String>,
    },
    /// A kind of hook that does not exist.
    #[error("`{0}` is not a kind of hook; there are command, http, mcp_tool, prompt and agent")]
    UnknownKind(String),
    /// A value of the wrong type.
    #[error("`{key}` must be {expected}")]
    Expected {
        /// The key.
        key: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A key that must be there.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A matcher that cannot be used.
    #[error("{0}; the hook runs for everything")]
    Pattern(WrongPattern),
    /// A rule that cannot be used.
    #[error("{0}; the hook runs for every call")]
    Rule(RuleError),
    /// A rule where there is no call.
    #[error("`if` is about tool calls, and {0} is about none: the hook never runs")]
    NoCalls(HookEvent),
    /// A matcher where there is nothing to match.
    #[error("{0} has nothing that `matcher` could be compared with; it is ignored")]
    NoMatcher(HookEvent),
    /// A kind that the event cannot have.
    #[error("{event} has no hooks of the kind `{kind}`")]
    NotForEvent {
        /// The event.
        event: HookEvent,
        /// The kind.
        kind: String,
    },
    /// Something that posse cannot run.
    #[error("a hook of the kind `{kind}` does not run: {why}")]
    Unsupported {
        /// The kind.
        kind: String,
        /// Why.
        why: &'static str,
    },
}

/// Returns a suggestion in words.
fn meant(closest: &Option<String>) -> String {
    let meant = closest.as_ref();
    meant.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

impl HookProblem {
    /// Returns true if the hook does what is written all the same.
    pub fn is_note(&self) -> bool {
        matches!(
            self,
            Self::Never { .. } | Self::UnknownKey { .. } | Self::NoMatcher(_)
        )
    }
}

/// Reads the value of the key `hooks`.
pub fn read(hooks: &Value, file: &HookFile) -> ReadHooks {
    let mut reader = HookReader {
        file,
        read: ReadHooks::default(),
        path: Vec::new(),
    };
    match hooks {
        Value::Null => {}
        Value::Object(events) => {
            for (name, groups) in events {
                reader.within(PathStep::Key(name.clone()), |reader| {
                    reader.event(name, groups);
                });
            }
        }
        _ => reader.report(HookProblem::Expected {
            key: "hooks".into(),
            expected: "an object of events",
        }),
    }
    reader.read
}

struct HookReader<'a> {
    file: &'a HookFile,
    read: ReadHooks,
    /// Where it is.
    path: Vec<PathStep>,
}

impl HookReader<'_> {
    fn within<T>(&mut self, step: PathStep, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let result = read(self);
        self.path.pop();
        result
    }

    fn report(&mut self, what: HookProblem) {
        let path = self.path.clone();
        self.read.problems.push(FileProblem { path, what });
    }

    /// Reports something about a key of the object at hand.
    fn report_at(&mut self, key: &str, what: HookProblem) {
        self.within(PathStep::Key(key.into()), |reader| reader.report(what));
    }

    fn expected(&mut self, key: &str, expected: &'static str) {
        let key_name = key.to_owned();
        self.report_at(
            key,
            HookProblem::Expected {
                key: key_name,
                expected,
            },
        );
    }

    fn event(&mut self, name: &str, groups: &Value) {
        let Some(event) = HookEvent::named(name) else {
            let names: Vec<&str> = HookEvent::ALL.map(HookEvent::as_str).to_vec();
            let closest = closest(name, &names).map(str::to_owned);
            let name = name.to_owned();
            return self.report(HookProblem::UnknownEvent { name, closest });
        };
        let Some(groups) = groups.as_array() else {
            return self.report(HookProblem::Expected {
                key: name.into(),
                expected: "a list of groups, each with a matcher and hooks",
            });
        };
        // An agent of a type is a sub-agent.
        let event = match (event, self.file.layer) {
            (HookEvent::Stop, HookLayer::Definition) => HookEvent::SubagentStop,
            _ => event,
        };
        if let Some(why) = event.never().filter(|_| !groups.is_empty()) {
            self.report(HookProblem::Never { event, why });
        }
        for (index, group) in groups.iter().enumerate() {
            self.within(PathStep::Index(index), |reader| reader.group(event, group));
        }
    }

    fn group(&mut self, event: HookEvent, group: &Value) {
        let Some(group) = group.as_object() else {
            return self.report(HookProblem::Expected {
                key: event.as_str().into(),
                expected: "a list of objects with `matcher` and `hooks`",
            });
        };
        self.unknown_keys(group, &GROUP);
        let matcher = self.matcher(event, group);
        let Some(hooks) = group.get("hooks") else {
            return self.report(HookProblem::Missing("hooks"));
        };
        let Some(hooks) = hooks.as_array() else {
            return self.expected("hooks", "a list");
        };
        self.within(PathStep::Key("hooks".into()), |reader| {
            for (index, hook) in hooks.iter().enumerate() {
                reader.within(PathStep::Index(index), |reader| {
                    reader.hook(event, &matcher, hook);
                });
            }
        });
    }

    fn matcher(&mut self, event: HookEvent, group: &Map<String, Value>) -> Matcher {
        let text = match group.get("matcher") {
            None | Some(Value::Null) => return Matcher::All,
            Some(Value::String(text)) => text,
            Some(_) => {
                self.expected("matcher", "a text");
                return Matcher::All;
            }
        };
        if event.matched().is_none() && !matches!(text.as_str(), "" | "*") {
            self.report_at("matcher", HookProblem::NoMatcher(event));
        }
        Matcher::read(text, event).unwrap_or_else(|error| {
            self.report_at("matcher", HookProblem::Pattern(error));
            Matcher::All
        })
    }

    fn hook(&mut self, event: HookEvent, matcher: &Matcher, hook: &Value) {
        let Some(hook) = hook.as_object() else {
            return self.report(HookProblem::Expected {
                key: "hooks".into(),
                expected: "a list of objects with a `type`",
            });
        };
        let action = self.action(event, hook);
        let on_failure = match self.word(hook, "onFailure", &["continue", "block"]) {
            Some("continue") => OnFailure::Continue,
            // Whoever writes it wants another than the usual.
            None if hook.get("onFailure").is_none_or(Value::is_null) => OnFailure::Continue,
            _ => OnFailure::Block,
        };
        let once = self.truth(hook, "once");
        // Of others they are reported as not known.
        let is_program = matches!(action, HookAction::Program { .. });
        let [is_async, rewakes] =
            ["async", "asyncRewake"].map(|key| is_program && self.truth(hook, key));
        let declared = Hook {
            event,
            matcher: matcher.clone(),
            condition: self.condition(event, hook),
            action,
            timeout: self.timeout(hook),
            on_failure,
            status_message: self.text(hook, "statusMessage"),
            once: once && self.file.layer == HookLayer::Skill,
            beside: match (rewakes, is_async) {
                (true, _) => RunsBeside::Rewakes,
                (false, true) => RunsBeside::Async,
                (false, false) => RunsBeside::No,
            },
            origin: HookOrigin {
                layer: self.file.layer,
                file: self.file.path.clone(),
                line: None,
                of_repository: self.file.of_repository,
            },
            state: HookState::Active,
        };
        self.read.hooks.push((declared, self.path.clone()));
    }

    /// Reads what runs. A hook that cannot be run stays, since it may have to refuse.
    fn action(&mut self, event: HookEvent, hook: &Map<String, Value>) -> HookAction {
        let kind = match hook.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(_) => {
                self.expected("type", "a text");
                return unsupported("hook", "its type is no text");
            }
            None => {
                self.report(HookProblem::Missing("type"));
                return unsupported("hook", "it has no type");
            }
        };
        let Some((_, own)) = KINDS.iter().find(|(known, _)| *known == kind) else {
            self.report_at("type", HookProblem::UnknownKind(kind.to_owned()));
            return unsupported(kind, "there is no such kind of hook");
        };
        let known: Vec<&str> = COMMON.iter().chain(own.iter()).copied().collect();
        self.unknown_keys(hook, &known);
        let takes = match kind {
            "prompt" | "agent" => event.takes_prompts(),
            "http" => event.takes_servers(),
            _ => true,
        };
        if !takes {
            let kind = kind.to_owned();
            self.report_at(
                "type",
                HookProblem::NotForEvent {
                    event,
                    kind: kind.clone(),
                },
            );
            return unsupported(&kind, "its event has no hooks of this kind");
        }
        let read = match kind {
            "command" => self.program(hook),
            "http" => self.http(hook),
            "prompt" | "agent" => self.question(kind, hook),
            _ => self.tool(hook),
        };
        read.unwrap_or_else(|why| unsupported(kind, why))
    }

    fn program(&mut self, hook: &Map<String, Value>) -> Result<HookAction, &'static str> {
        let command = self.needed(hook, "command")?;
        let persistent = self.truth(hook, "persistent");
        let program = match hook.get("args") {
            None | Some(Value::Null) => {
                let shell = match self.word(hook, "shell", &["bash", "powershell"]) {
                    Some("powershell") => {
                        let why = "posse runs no PowerShell";
                        let kind = "command".to_owned();
                        self.report_at("shell", HookProblem::Unsupported { kind, why });
                        return Err(why);
                    }
                    Some(_) => "bash",
                    None => "sh",
                };
                HookProgram::Line {
                    shell,
                    line: command,
                }
            }
            Some(Value::Array(args)) if args.iter().all(Value::is_string) => {
                let args = args.iter().filter_map(Value::as_str).map(str::to_owned);
                HookProgram::Words([command].into_iter().chain(args).collect())
            }
            Some(_) => {
                self.expected("args", "a list of texts");
                return Err("its arguments cannot be read");
            }
        };
        Ok(HookAction::Program {
            program,
            persistent,
        })
    }

    fn tool(&mut self, hook: &Map<String, Value>) -> Result<HookAction, &'static str> {
        let server = self.needed(hook, "server")?;
        let tool = self.needed(hook, "tool")?;
        let input = match hook.get("input") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(input)) => input.clone(),
            Some(_) => {
                self.expected("input", "an object");
                return Err("its input cannot be read");
            }
        };
        Ok(HookAction::Tool(HookTool {
            server,
            tool,
            input,
        }))
    }

    fn http(&mut self, hook: &Map<String, Value>) -> Result<HookAction, &'static str> {
        let url = self.needed(hook, "url")?;
        if !url.starts_with("http://") && !url.starts_with("https://") {
            self.expected("url", "an address that begins with http:// or https://");
            return Err("its address is none");
        }
        let texts = |value: &Value| value.as_str().map(str::to_owned);
        let headers = match hook.get("headers") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(headers)) if headers.values().all(Value::is_string) => {
                let pair = |(name, value): (&String, &Value)| Some((name.clone(), texts(value)?));
                headers.iter().filter_map(pair).collect()
            }
            Some(_) => {
                self.expected("headers", "an object of texts");
                return Err("its headers cannot be read");
            }
        };
        let variables = match hook.get("allowedEnvVars") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(names)) if names.iter().all(Value::is_string) => {
                names.iter().filter_map(texts).collect()
            }
            Some(_) => {
                self.expected("allowedEnvVars", "a list of names");
                Vec::new()
            }
        };
        Ok(HookAction::Http {
            url,
            headers,
            variables,
        })
    }

    fn question(
        &mut self,
        kind: &str,
        hook: &Map<String, Value>,
    ) -> Result<HookAction, &'static str> {
        let prompt = self.needed(hook, "prompt")?;
        let model = self.text(hook, "model");
        if kind == "agent" {
            return Ok(HookAction::Agent { prompt, model });
        }
        Ok(HookAction::Prompt {
            prompt,
            model,
            continues: self.truth(hook, "continueOnBlock"),
        })
    }

    fn condition(&mut self, event: HookEvent, hook: &Map<String, Value>) -> Condition {
        let Some(rule) = self.text(hook, "if") else {
            return Condition::None;
        };
        if !event.is_of_tool() {
            self.report_at("if", HookProblem::NoCalls(event));
            return Condition::Never;
        }
        match CallPattern::new(&rule, &self.file.source) {
            Ok(pattern) => Condition::Calls(Box::new(pattern)),
            Err(error) => {
                self.report_at("if", HookProblem::Rule(error));
                Condition::None
            }
        }
    }

    fn timeout(&mut self, hook: &Map<String, Value>) -> Option<Duration> {
        let value = hook.get("timeout").filter(|value| !value.is_null())?;
        let seconds = value.as_f64().filter(|it| *it > 0.0 && *it <= LONGEST);
        if seconds.is_none() {
            self.expected("timeout", "a number of seconds, at most a day");
        }
        seconds.map(Duration::from_secs_f64)
    }

    /// Returns a text that must be there.
    fn needed(
        &mut self,
        hook: &Map<String, Value>,
        key: &'static str,
    ) -> Result<String, &'static str> {
        match hook.get(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
            None => {
                self.report(HookProblem::Missing(key));
                Err("it does not say what to run")
            }
            Some(_) => {
                self.expected(key, "a text");
                Err("it does not say what to run")
            }
        }
    }

    fn text(&mut self, hook: &Map<String, Value>, key: &str) -> Option<String> {
        match hook.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                self.expected(key, "a text");
                None
            }
        }
    }

    fn truth(&mut self, hook: &Map<String, Value>, key: &str) -> bool {
        match hook.get(key) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(truth)) => *truth,
            Some(_) => {
                self.expected(key, "true or false");
                false
            }
        }
    }

    fn word(
        &mut self,
        hook: &Map<String, Value>,
        key: &str,
        words: &[&'static str; 2],
    ) -> Option<&'static str> {
        let text = self.text(hook, key)?;
        let found = words.iter().copied().find(|word| *word == text);
        if found.is_none() {
            let expected = match key {
                "shell" => "bash or powershell",
                _ => "continue or block, and counts as block",
            };
            self.expected(key, expected);
        }
        found
    }

    fn unknown_keys(&mut self, object: &Map<String, Value>, known: &[&str]) {
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            let what = HookProblem::UnknownKey {
                key: key.clone(),
                closest: closest(key, known).map(str::to_owned),
            };
            self.report_at(key, what);
        }
    }
}

fn unsupported(kind: &str, why: &'static str) -> HookAction {
    HookAction::Unsupported {
        kind: kind.to_owned(),
        why,
    }
}
