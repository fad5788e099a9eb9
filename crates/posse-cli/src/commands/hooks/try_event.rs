//! `posse hooks try`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use posse_port::clock::SystemClock;
use posse_port::hooks::{HookCall, HookFailure, HookReturn};
use posse_port::process::ProcessBoundary;
use posse_port::tool::{Intent, Subject, Workspace};
use posse_protocol::{AgentId, RawJson};
use posse_runtime::hook::answer::{Answer, HookDecision, interpret};
use posse_runtime::hook::{
    Hook, HookEvent, HookFacts, Matched, MatchedCall, Merged, SubAgentFacts, merge, payload,
    target, variables,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::LocalHooks;
use crate::assemble::{hooks, open, sandbox, tools};
use crate::definitions::shown;
use crate::error::{Advised, FAILED};
use crate::output::{json_line, print, tame};
use crate::present::hooks::object;

/// The type of the agent that events of sub-agents are about.
const KIND: &str = "general-purpose";

/// Run the hooks of an event with a made-up input, and show what they say.
///
/// The hooks run as in a session: those of a repository in the sandbox, and only if you have
/// accepted them. No tool is called and no model is asked. Exits with 1 if a hook fails.
#[derive(clap::Args)]
pub(super) struct TryHooks {
    /// Event, such as PreToolUse
    event: String,
    /// Tool of the call
    #[arg(long, value_name = "NAME", default_value = "Bash")]
    tool: String,
    /// Input of the call, or what another event says, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = input)]
    input: Option<Map<String, Value>>,
    /// More settings: JSON, or the path of a file
    #[arg(long, value_name = "JSON|FILE")]
    settings: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn input(text: &str) -> Result<Map<String, Value>, serde_json::Error> {
    serde_json::from_str(text)
}

/// A hook that was run.
struct TriedHook {
    hook: Arc<Hook>,
    returned: HookReturn,
    answer: Answer,
}

/// An event that was made up, and what hooks said about it.
struct Trial {
    input: Value,
    waits: Option<String>,
    tried: Vec<TriedHook>,
    merged: Merged,
}

impl TryHooks {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Some(event) = HookEvent::named(&self.event) else {
            anyhow::bail!(unknown(&self.event));
        };
        let here = LocalHooks::here(self.settings.clone())?;
        let workspace = Arc::new(open::workspace(&here.settings, here.cwd.clone())?);
        let trial = crate::config::runtime()?.block_on(self.attempt(event, &here, &workspace));
        match self.json {
            true => print(json_line(&trial.object(event)).as_bytes())?,
            false => print(trial.in_words(&here.cwd).as_bytes())?,
        }
        let is_failed = trial
            .tried
            .iter()
            .any(|tried| tried.answer.failure.is_some());
        Ok(match is_failed {
            true => ExitCode::from(FAILED),
            false => ExitCode::SUCCESS,
        })
    }

    /// Runs the hooks that match, one after the other.
    async fn attempt(
        &self,
        event: HookEvent,
        here: &LocalHooks,
        workspace: &Arc<Workspace>,
    ) -> Trial {
        let session = AgentId::from(Uuid::now_v7());
        let own = self.own(event, &here.cwd);
        let matched = self.matched(event, &own, here, workspace);
        let is_of_sub_agent = matches!(event, HookEvent::SubagentStart | HookEvent::SubagentStop);
        let facts = HookFacts {
            session,
            transcript: Path::new("/dev/null"),
            directory: &here.cwd,
            prompt: Some(Uuid::now_v7()),
            mode: here.settings.mode,
            effort: None,
            sub_agent: is_of_sub_agent.then_some(SubAgentFacts {
                id: session,
                kind: KIND,
            }),
            posse: Map::new(),
        };
        let input = payload(event, &facts, own);
        let sandbox = sandbox::sandbox(&here.settings.sandbox, &[], None);
        let runner = hooks::runner(tools::processes(sandbox, Vec::new()), None);
        let mut tried = Vec::new();
        for hook in matched.hooks {
            let returned = match target(&hook, &here.cwd, None) {
                Err(why) => HookReturn {
                    failure: Some(HookFailure::NotRun(why.to_string())),
                    ..HookReturn::default()
                },
                Ok(target) => {
                    let call = HookCall {
                        target,
                        input: input.clone(),
                        directory: here.cwd.clone(),
                        marker: format!("{session}.hook.{}", Uuid::now_v7()),
                        variables: variables(session, &here.cwd, false)
                            .into_iter()
                            // What is tried sets nothing.
                            .chain([("CLAUDE_ENV_FILE".into(), "/dev/null".into())])
                            .collect(),
                        limit: hook.limit(),
                        boundary: here.boundary(&hook, workspace),
                        clock: Arc::new(SystemClock::default()),
                        beside: false,
                        cancel: CancellationToken::new(),
                    };
                    runner.run(call).await
                }
            };
            tried.push(TriedHook {
                answer: interpret(&hook, &returned),
                hook,
                returned,
            });
        }
        let answers = tried.iter();
        let answers = answers.map(|it| (Arc::clone(&it.hook), it.answer.clone()));
        Trial {
            merged: merge::merge(answers),
            input: serde_json::from_slice(&input).unwrap_or_default(),
            waits: matched.waits,
            tried,
        }
    }

    /// Returns the hooks for the event.
    fn matched(
        &self,
        event: HookEvent,
        own: &Map<String, Value>,
        here: &LocalHooks,
        workspace: &Workspace,
    ) -> Matched {
        if !event.is_of_tool() {
            let name = event.matched().and_then(|key| own.get(key));
            return here
                .set
                .matching(event, name.and_then(Value::as_str).unwrap_or_default());
        }
        let input = RawJson::from(&own["tool_input"]);
        let tools = tools::all_tools(&here.settings, None, false);
        let intent = tools.intent(&self.tool, &input, workspace);
        // Of a tool that is not there without an agent, nothing is known but its name.
        let intent = intent.unwrap_or_else(|_| Intent {
            read_only: false,
            beside_others: false,
            subject: Subject::Nothing,
            waits: false,
            title: self.tool.clone(),
        });
        let call = MatchedCall {
            tool: &self.tool,
            intent: &intent,
            workspace,
        };
        here.set.matching_call(event, call)
    }

    /// Returns what only this event's input has.
    fn own(&self, event: HookEvent, cwd: &Path) -> Map<String, Value> {
        let given = self.input.clone().unwrap_or_default();
        let mut own = sample(event);
        if !event.is_of_tool() {
            own.extend(given);
            return own;
        }
        let input = match &self.input {
            Some(input) => Value::Object(input.clone()),
            None => match self.tool.as_str() {
                "Bash" => json!({"command": "echo hello"}),
                "Read" => json!({"file_path": cwd.join("README.md")}),
                "Write" => json!({"file_path": cwd.join("new.txt"), "content": "hello\n"}),
                "Edit" => json!({
                    "file_path": cwd.join("README.md"), "old_string": "a", "new_string": "b",
                }),
                _ => json!({}),
            },
        };
        own.insert("tool_name".into(), json!(self.tool));
        own.insert("tool_input".into(), input);
        own.insert("tool_use_id".into(), json!("toolu_try"));
        own
    }
}

/// Returns what an event says that nobody has described.
fn sample(event: HookEvent) -> Map<String, Value> {
    let own = match event {
        HookEvent::SessionStart => json!({"source": "startup"}),
        HookEvent::SessionEnd => json!({"reason": "other"}),
        HookEvent::Setup => json!({"trigger": "init"}),
        HookEvent::UserPromptSubmit => json!({"prompt": "hello"}),
        HookEvent::UserPromptExpansion => json!({
            "expansion_type": "slash_command", "command_name": "hello", "command_args": "",
            "prompt": "/hello",
        }),
        HookEvent::PermissionDenied => json!({"reason": "a rule denies it"}),
        HookEvent::PostToolUse => json!({"tool_response": {}, "duration_ms": 1}),
        HookEvent::PostToolUseFailure => json!({"error": "it failed", "duration_ms": 1}),
        HookEvent::PostToolBatch => json!({"tool_calls": []}),
        HookEvent::Stop => json!({"stop_hook_active": false, "last_assistant_message": "done"}),
        HookEvent::SubagentStart => json!({"agent_type": KIND}),
        HookEvent::SubagentStop => json!({
            "agent_type": KIND, "stop_hook_active": false, "last_assistant_message": "done",
        }),
        HookEvent::StopFailure => json!({"error": "server_error"}),
        HookEvent::TeammateIdle => json!({"teammate_name": "dev-1", "team_name": "team"}),
        HookEvent::TaskCreated | HookEvent::TaskCompleted => {
            json!({"task_id": "1", "task_subject": "Write tests"})
        }
        HookEvent::PreCompact => json!({"trigger": "manual", "custom_instructions": null}),
        HookEvent::PostCompact => json!({"trigger": "manual", "compact_summary": "a summary"}),
        HookEvent::Notification => json!({
            "message": "a question waits", "notification_type": "permission_prompt",
        }),
        HookEvent::ConfigChange => json!({"source": "project_settings"}),
        HookEvent::FileChanged => json!({"file_path": "README.md", "event": "change"}),
        HookEvent::WorktreeCreate => json!({"name": "try"}),
        _ => Value::Null,
    };
    match own {
        Value::Object(own) => own,
        _ => Map::new(),
    }
}

impl LocalHooks {
    /// Returns what holds a hook: that of a repository may do what an agent's command may unasked.
    fn boundary(&self, hook: &Hook, workspace: &Arc<Workspace>) -> ProcessBoundary {
        if !hook.origin.of_repository {
            return ProcessBoundary::None;
        }
        sandbox::of_repository(&self.settings, workspace, "a hook of the repository")
    }
}

impl Trial {
    fn object(&self, event: HookEvent) -> Value {
        let tried = self.tried.iter().map(|it| {
            let mut about = object(&it.hook);
            about["output"] = json!(it.returned.output);
            about["errors"] = json!(it.returned.errors);
            about["code"] = json!(it.returned.code);
            about["took_ms"] = json!(it.returned.took.as_millis());
            about["failure"] = json!(it.answer.failure);
            about["decision"] = decision(it.answer.decision.as_ref());
            about
        });
        json!({
            "event": event.as_str(), "input": self.input, "hooks": tried.collect::<Vec<_>>(),
            "waits": self.waits, "decision": decision(self.merged.decision.as_ref()),
            "updated_input": self.merged.input.as_ref().map(RawJson::get),
            "contexts": self.merged.contexts, "ends_run": self.merged.ends_run,
            "remarks": self.merged.remarks,
        })
    }

    /// Returns it for people.
    fn in_words(&self, cwd: &Path) -> String {
        let mut lines = vec![format!("input: {}", self.input)];
        for tried in &self.tried {
            let (hook, returned) = (&tried.hook, &tried.returned);
            let line = hook.origin.line.map(|line| format!(":{line}"));
            let file = shown(&hook.origin.file, cwd);
            lines.push(format!(
                "{} ({file}{})",
                hook.title(),
                line.unwrap_or_default()
            ));
            let said = [("said", &returned.output), ("errors", &returned.errors)];
            let said = said.into_iter().filter(|(_, text)| !text.trim().is_empty());
            lines.extend(said.map(|(word, text)| format!("  {word}: {}", text.trim())));
            let code = returned.code.map(|code| format!(", exit code {code}"));
            let comes_to = match &tried.answer.failure {
                Some(why) => format!("it failed: {why}"),
                None => in_words(tried.answer.decision.as_ref()),
            };
            let took = returned.took.as_millis();
            lines.push(format!(
                "  {comes_to} ({took} ms{})",
                code.unwrap_or_default()
            ));
        }
        if self.tried.is_empty() {
            lines.push("no hook runs".into());
        }
        lines.extend(
            self.waits
                .iter()
                .map(|why| format!("a person is asked: {why}")),
        );
        lines.extend(self.merged.remarks.iter().cloned());
        let contexts = self.merged.contexts.iter();
        lines.extend(contexts.map(|context| format!("the model is told: {context}")));
        let input = self.merged.input.as_ref();
        lines.extend(input.map(|input| format!("the call gets this input: {}", input.get())));
        let ends = self.merged.ends_run.as_ref();
        lines.extend(ends.map(|why| format!("the run ends: {why}")));
        lines.push(format!(
            "together: {}",
            in_words(self.merged.decision.as_ref())
        ));
        lines.iter().map(|line| tame(line) + "\n").collect()
    }
}

/// Returns a decision as JSON: its name, and the reason.
fn decision(decision: Option<&HookDecision>) -> Value {
    let (name, reason) = match decision {
        None => return Value::Null,
        Some(HookDecision::Allow) => ("allow", None),
        Some(HookDecision::Ask(why)) => ("ask", Some(why)),
        Some(HookDecision::Defer(why)) => ("defer", Some(why)),
        Some(HookDecision::Deny(why)) => ("deny", Some(why)),
    };
    json!({"decision": name, "reason": reason})
}

/// Returns a decision in words.
fn in_words(decision: Option<&HookDecision>) -> String {
    match decision {
        None => "no decision".to_owned(),
        Some(HookDecision::Allow) => "allowed".to_owned(),
        Some(HookDecision::Ask(why)) => format!("a person is asked: {why}"),
        Some(HookDecision::Defer(why)) => format!("deferred: {why}"),
        Some(HookDecision::Deny(why)) => format!("denied: {why}"),
    }
}

/// Returns the error for an event that does not exist.
fn unknown(name: &str) -> Advised {
    let names: Vec<&str> = HookEvent::ALL.map(HookEvent::as_str).to_vec();
    let closest = posse_port::closest(name, &names);
    let meant = closest.map_or_else(String::new, |name| format!("did you mean {name}? "));
    Advised {
        what: format!("`{name}` is not a hook event"),
        advice: format!("{meant}`posse help hooks` lists them"),
    }
}
