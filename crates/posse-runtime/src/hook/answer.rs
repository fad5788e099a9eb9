//! What a hook says: its exit code, its text, its JSON.

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use posse_port::hooks::HookReturn;
use posse_protocol::{ElicitationReply, RawJson};
use serde_json::{Map, Value};

use crate::hook::{Hook, HookAction, HookEvent, Veto};

/// The exit code that refuses.
const REFUSES: i32 = 2;
/// Maximum number of characters of errors that people are shown.
const SHOWN: usize = 500;

/// What one hook has answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What it decides.
    pub decision: Option<HookDecision>,
    /// The input that a call shall have instead.
    pub input: Option<RawJson>,
    /// What the model shall know.
    pub context: Option<String>,
    /// What people shall know.
    pub message: Option<String>,
    /// Why the run shall end.
    pub ends_run: Option<String>,
    /// Why it has not answered as it should.
    pub failure: Option<String>,
    /// What only some events have.
    pub more: Extras,
}

/// What a hook decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookDecision {
    /// It may happen.
    Allow,
    /// A person decides.
    Ask(String),
    /// It waits until a person decides.
    Defer(String),
    /// It may not happen.
    Deny(String),
}

/// Parts of an answer that only some events have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// PostToolUse: what the model reads instead of the output.
    pub output: Option<Value>,
    /// PermissionRequest: changes of the rules.
    pub permissions: Vec<Value>,
    /// PermissionRequest: true if the whole run stops.
    pub interrupts: bool,
    /// PermissionDenied: true if the call may be tried again.
    pub retry: bool,
    /// SessionStart: the first prompt of a run without a terminal.
    pub first_prompt: Option<String>,
    /// UserPromptSubmit: true if the prompt itself is not shown to the model.
    pub hides_prompt: bool,
    /// SessionStart, FileChanged: files that are watched.
    pub watch: Vec<PathBuf>,
    /// MessageDisplay: what is shown instead.
    pub display: Option<String>,
    /// WorktreeCreate: where it is.
    pub worktree: Option<PathBuf>,
    /// Elicitation, ElicitationResult: what the server is answered.
    pub elicited: Option<Box<ElicitationReply>>,
}

impl Answer {
    fn failed(why: impl Into<String>) -> Self {
        Self {
            failure: Some(why.into()),
            ..Self::default()
        }
    }
}

/// Returns what a hook's reply means. A failure counts as a refusal if the hook says so.
pub fn interpret(hook: &Hook, returned: &HookReturn) -> Answer {
    let mut answer = match &hook.action {
        // Nothing else than JSON, or nothing at all, is an answer of a server.
        HookAction::Http { .. } if !is_object_or_empty(&returned.output) => {
            Answer::failed("its reply is not a JSON object")
        }
        HookAction::Prompt { continues, .. } => judged(hook.event, *continues, returned),
        HookAction::Agent { .. } => judged(hook.event, true, returned),
        _ => read(hook.event, returned),
    };
    if let Some(why) = &answer.failure
        && hook.event == HookEvent::WorktreeCreate
    {
        // There is no other way to a worktree than this.
        answer.decision = Some(HookDecision::Deny(why.clone()));
        return answer;
    }
    if !hook.blocks_on_failure() {
        return answer;
    }
    // One that says nothing against a call, and then fails, does not guard it.
    let denies = matches!(answer.decision, Some(HookDecision::Deny(_)));
    if answer.failure.is_none() && !denies && !matches!(returned.code, None | Some(0 | REFUSES)) {
        answer.failure = Some(ended(returned));
    }
    if let Some(why) = &answer.failure {
        let why = format!("it failed, which counts as a refusal (onFailure: block): {why}");
        answer.decision = Some(HookDecision::Deny(why));
    }
    answer
}

/// Returns what a model's answer means: `{"ok": …, "reason": …}`. `continues` is false if the run ends
/// with a call that it refuses.
fn judged(event: HookEvent, continues: bool, returned: &HookReturn) -> Answer {
    if let Some(failure) = &returned.failure {
        return Answer::failed(failure.to_string());
    }
    let Some(object) = object_in(&returned.output) else {
        return Answer::failed("the model's answer has no JSON object");
    };
    let fields = AnswerFields(&object);
    let read = || {
        let ok = fields.truth("ok")?;
        let reason = fields.text("reason")?.unwrap_or_default();
        Ok((ok, reason, fields.truth("impossible")? == Some(true)))
    };
    let (reason, impossible) = match read() {
        Ok((Some(true), ..)) => return Answer::default(),
        Ok((Some(false), reason, impossible)) => (reason, impossible),
        Ok((None, ..)) => return Answer::failed("the model's answer has no `ok`"),
        Err::<_, WrongField>(why) => {
            return Answer::failed(format!("the model's answer cannot be used: {why}"));
        }
    };
    if impossible && event.is_end_of_turn() {
        return Answer {
            message: Some(reason),
            ..Answer::default()
        };
    }
    Answer {
        ends_run: (event.is_of_tool() && !continues).then(|| reason.clone()),
        decision: Some(HookDecision::Deny(reason)),
        ..Answer::default()
    }
}

/// Returns the JSON object in a model's text: all of it, or what stands between its first brace and
/// its last.
fn object_in(text: &str) -> Option<Map<String, Value>> {
    let (first, last) = (text.find('{')?, text.rfind('}')?);
    serde_json::from_str(text.get(first..=last)?).ok()
}

fn is_object_or_empty(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

fn read(event: HookEvent, returned: &HookReturn) -> Answer {
    if let Some(failure) = &returned.failure {
        return Answer::failed(failure.to_string());
    }
    let text = returned.output.trim();
    let json = text
        .starts_with('{')
        .then(|| serde_json::from_str::<Map<String, Value>>(text));
    let refuses = returned.code == Some(REFUSES);
    let mut answer = match &json {
        Some(Ok(object)) => match AnswerFields(object).answer(event) {
            Ok(answer) => answer,
            Err(_) if refuses => Answer::default(),
            Err(why) => Answer::failed(format!("its answer cannot be used: {why}")),
        },
        // A path is all that it prints.
        _ if event == HookEvent::WorktreeCreate && returned.code == Some(0) => Answer {
            more: Extras {
                worktree: text.lines().last().map(|line| line.trim().into()),
                ..Extras::default()
            },
            ..Answer::default()
        },
        _ if event.reads_text() && returned.code == Some(0) => Answer {
            context: (!text.is_empty()).then(|| text.to_owned()),
            ..Answer::default()
        },
        Some(Err(error)) if !refuses => Answer::failed(format!("it printed broken JSON: {error}")),
        _ => Answer::default(),
    };
    let has_json = matches!(json, Some(Ok(_)));
    match returned.code {
        Some(REFUSES) => refuse(event, &mut answer, returned),
        Some(0) => {}
        _ if event == HookEvent::WorktreeCreate => {
            answer.failure = Some(ended(returned));
        }
        _ if has_json => {}
        _ => answer.failure = Some(ended(returned)),
    }
    answer
}

/// Applies exit code 2, which counts whatever the JSON says.
fn refuse(event: HookEvent, answer: &mut Answer, returned: &HookReturn) {
    let said = returned.errors.trim();
    let reason = match &answer.decision {
        _ if !said.is_empty() => said.to_owned(),
        Some(HookDecision::Deny(reason)) => reason.clone(),
        _ => String::new(),
    };
    match event.veto() {
        Veto::Prevents | Veto::TellsModel => answer.decision = Some(HookDecision::Deny(reason)),
        Veto::TellsPerson => {
            answer.decision = None;
            answer.message.get_or_insert(reason);
        }
        Veto::Ignored => {}
    }
}

/// Returns how a program ended that did not end well.
fn ended(returned: &HookReturn) -> String {
    let code = match returned.code {
        Some(code) => format!("exit code {code}"),
        None => "its exit code is unknown".to_owned(),
    };
    match returned.errors.trim() {
        "" => code,
        said => {
            let said: String = said.chars().take(SHOWN).collect();
            format!("{code}: {said}")
        }
    }
}

/// A value of the wrong type.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum WrongField {
    #[error("`{0}` is not {1}")]
    Type(&'static str, &'static str),
    #[error("`{key}` is `{found}`, not {expected}")]
    Word {
        key: &'static str,
        found: String,
        expected: &'static str,
    },
}

/// The JSON that a hook has printed.
struct AnswerFields<'a>(&'a Map<String, Value>);

impl<'a> AnswerFields<'a> {
    fn answer(&self, event: HookEvent) -> Result<Answer, WrongField> {
        let ends_run = match self.truth("continue")? {
            Some(false) => Some(self.text("stopReason")?.unwrap_or_default()),
            _ => None,
        };
        let reason = || Ok(self.text("reason")?.unwrap_or_default());
        let decision = match self.text("decision")?.as_deref() {
            None => None,
            Some("block" | "deny") => Some(HookDecision::Deny(reason()?)),
            Some("approve" | "allow") => Some(HookDecision::Allow),
            Some(found) => {
                return Err(WrongField::Word {
                    key: "decision",
                    found: found.to_owned(),
                    expected: "block or approve",
                });
            }
        };
        let mut answer = Answer {
            decision,
            message: self.text("systemMessage")?,
            ends_run,
            ..Answer::default()
        };
        if let Some(own) = self.object("hookSpecificOutput")? {
            let named = own.text("hookEventName")?;
            if let Some(found) = named.filter(|name| name != event.as_str()) {
                return Err(WrongField::Word {
                    key: "hookEventName",
                    found,
                    expected: event.as_str(),
                });
            }
            own.of_event(event, &mut answer)?;
        }
        Ok(answer)
    }

    /// Reads what is there for this event only.
    fn of_event(&self, event: HookEvent, answer: &mut Answer) -> Result<(), WrongField> {
        answer.context = self.text("additionalContext")?;
        let more = &mut answer.more;
        match event {
            HookEvent::PreToolUse => {
                let reason = self.text("permissionDecisionReason")?.unwrap_or_default();
                let decision = match self.text("permissionDecision")?.as_deref() {
                    None => answer.decision.take(),
                    Some("allow") => Some(HookDecision::Allow),
                    Some("deny") => Some(HookDecision::Deny(reason)),
                    Some("ask") => Some(HookDecision::Ask(reason)),
                    Some("defer") => Some(HookDecision::Defer(reason)),
                    Some(found) => {
                        return Err(WrongField::Word {
                            key: "permissionDecision",
                            found: found.to_owned(),
                            expected: "allow, deny, ask or defer",
                        });
                    }
                };
                answer.decision = decision;
                answer.input = self.input()?;
            }
            HookEvent::PermissionRequest => {
                if let Some(decision) = self.object("decision")? {
                    decision.permission(answer)?;
                }
            }
            HookEvent::PermissionDenied => more.retry = self.truth("retry")? == Some(true),
            HookEvent::PostToolUse => {
                let output = self.0.get("updatedToolOutput");
                let output = output.or_else(|| self.0.get("updatedMCPToolOutput"));
                more.output = output.filter(|output| !output.is_null()).cloned();
            }
            HookEvent::SessionStart => {
                more.first_prompt = self.text("initialUserMessage")?;
                more.watch = self.paths("watchPaths")?;
            }
            HookEvent::FileChanged => more.watch = self.paths("watchPaths")?,
            HookEvent::UserPromptSubmit => {
                more.hides_prompt = self.truth("suppressOriginalPrompt")? == Some(true);
            }
            HookEvent::MessageDisplay => more.display = self.text("displayContent")?,
            HookEvent::Elicitation | HookEvent::ElicitationResult => {
                let content = self.0.get("content").filter(|it| !it.is_null()).cloned();
                if let Some(found) = self.text("action")? {
                    let reply = ElicitationReply::read(&found, content);
                    let reply = reply.ok_or(WrongField::Word {
                        key: "action",
                        found,
                        expected: "accept, decline or cancel",
                    })?;
                    more.elicited = Some(Box::new(reply));
                }
            }
            HookEvent::WorktreeCreate => {
                more.worktree = self.text("worktreePath")?.map(PathBuf::from);
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads an answer to what a person would be asked.
    fn permission(&self, answer: &mut Answer) -> Result<(), WrongField> {
        let decision = match self.text("behavior")?.as_deref() {
            Some("allow") => HookDecision::Allow,
            Some("deny") => HookDecision::Deny(self.text("message")?.unwrap_or_default()),
            found => {
                return Err(WrongField::Word {
                    key: "behavior",
                    found: found.unwrap_or_default().to_owned(),
                    expected: "allow or deny",
                });
            }
        };
        answer.decision = Some(decision);
        answer.input = self.input()?;
        answer.more.interrupts = self.truth("interrupt")? == Some(true);
        answer.more.permissions = match self.0.get("updatedPermissions") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(changes)) => changes.clone(),
            Some(_) => return Err(WrongField::Type("updatedPermissions", "a list")),
        };
        Ok(())
    }

    fn input(&self) -> Result<Option<RawJson>, WrongField> {
        match self.0.get("updatedInput") {
            None | Some(Value::Null) => Ok(None),
            Some(input @ Value::Object(_)) => Ok(Some(RawJson::from(input))),
            Some(_) => Err(WrongField::Type("updatedInput", "an object")),
        }
    }

    fn text(&self, key: &'static str) -> Result<Option<String>, WrongField> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(WrongField::Type(key, "a text")),
        }
    }

    fn truth(&self, key: &'static str) -> Result<Option<bool>, WrongField> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(truth)) => Ok(Some(*truth)),
            Some(_) => Err(WrongField::Type(key, "true or false")),
        }
    }

    fn object(&self, key: &'static str) -> Result<Option<AnswerFields<'a>>, WrongField> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(object)) => Ok(Some(AnswerFields(object))),
            Some(_) => Err(WrongField::Type(key, "an object")),
        }
    }

    fn paths(&self, key: &'static str) -> Result<Vec<PathBuf>, WrongField> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(paths)) if paths.iter().all(Value::is_string) => {
                let paths = paths.iter().filter_map(Value::as_str);
                Ok(paths.map(PathBuf::from).collect())
            }
            Some(_) => Err(WrongField::Type(key, "a list of paths")),
        }
    }
}
