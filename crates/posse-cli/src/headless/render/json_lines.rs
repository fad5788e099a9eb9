//! One JSON object per line: `--output-format stream-json`.

use std::collections::VecDeque;

use posse_protocol::{
    AgentId, ContentBlock, Denial, Entry, EntryKind, EventKind, HookUpdate, MemberUpdate, Retry,
    RunEnd, RunFacts, Task,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::partial::PartialReply;
use super::{members, result, shape, tasks};
use crate::assemble::facts::SessionFacts;
use crate::headless::team_snapshot::TaskProgress;
use crate::present::model;

/// Turns events into lines.
pub(crate) struct JsonLines {
    facts: SessionFacts,
    /// Follows replies while they arrive, if requested.
    partial: Option<PartialReply>,
    /// True if hooks are reported.
    includes_hooks: bool,
    /// Prompts that are not in the transcript yet.
    prompts: VecDeque<Vec<ContentBlock>>,
    /// Facts about a compaction whose summary has not arrived yet.
    compacting: Option<Value>,
}

impl JsonLines {
    pub(crate) fn new(facts: SessionFacts, include_partial: bool) -> Self {
        let partial = include_partial.then(PartialReply::default);
        Self {
            facts,
            partial,
            includes_hooks: false,
            prompts: VecDeque::new(),
            compacting: None,
        }
    }

    /// Sets whether hooks are reported.
    pub(crate) fn include_hooks(&mut self, includes_hooks: bool) {
        self.includes_hooks = includes_hooks;
    }

    /// Notes a prompt that the agent will get.
    pub(crate) fn told(&mut self, prompt: Vec<ContentBlock>) {
        self.prompts.push_back(prompt);
    }

    /// Waits until it is known which servers are there.
    pub(crate) async fn ready(&self) {
        self.facts.servers.first_wait().await;
    }

    /// Returns the first line, which describes the session.
    pub(crate) fn init(&self) -> Value {
        let facts = &self.facts;
        let servers = result::servers(&facts.servers);
        let tools: Vec<String> = facts
            .tools
            .iter()
            .cloned()
            .chain(facts.servers.tools())
            .collect();
        let prompts = facts.servers.prompts().into_iter().map(|(name, _)| name);
        let commands: Vec<String> = facts.commands.iter().cloned().chain(prompts).collect();
        let mut init = json!({
            "type": "system", "subtype": "init",
            "cwd": facts.cwd.to_string_lossy(), "tools": tools, "mcp_servers": servers, "model": facts.model,
            "permissionMode": facts.mode, "slash_commands": commands, "agents": facts.agents, "skills": facts.skills, "plugins": [],
            "output_style": "default", "apiKeySource": facts.key_source.unwrap_or("none"),
            "claude_code_version": env!("CARGO_PKG_VERSION"), "capabilities": [],
        });
        if !facts.missing_guards.is_empty() {
            init["missing_guards"] = result::missing_guards(facts);
        }
        self.stamped(init)
    }

    /// Returns the lines of an event. Requests for approval are sent as control requests instead.
    pub(crate) fn event(&mut self, event: &EventKind) -> Vec<Value> {
        let told = match event {
            EventKind::Entry(entry) => self.entry(entry),
            EventKind::Delta(delta) => {
                let events = self
                    .partial
                    .as_mut()
                    .map_or_else(Vec::new, |partial| partial.delta(delta));
                events.into_iter().map(stream_event).collect()
            }
            EventKind::Retry(retry) => {
                if let Some(partial) = &mut self.partial {
                    partial.void();
                }
                vec![retry_line(retry, self.facts.retries)]
            }
            EventKind::Denied(denial) => vec![denied_line(denial)],
            EventKind::Mode(mode) => {
                vec![json!({"type": "system", "subtype": "status", "permissionMode": mode})]
            }
            EventKind::Model(update) => vec![model::line(update)],
            EventKind::Ended(end) => vec![result::result(&self.facts, end)],
            EventKind::Run(news) => tasks::lines(news, self.facts.session),
            EventKind::Hook(hook) if self.includes_hooks => vec![hook_line(hook)],
            EventKind::Compacting { auto, tokens } => {
                let trigger = if *auto { "auto" } else { "manual" };
                self.compacting = Some(json!({"trigger": trigger, "pre_tokens": tokens}));
                vec![json!({"type": "system", "subtype": "status", "status": "compacting"})]
            }
            EventKind::Started
            | EventKind::State(_)
            | EventKind::Spending(_)
            | EventKind::Queue(_)
            | EventKind::Task(_)
            | EventKind::Mail(_)
            | EventKind::Request(_)
            | EventKind::Output { .. }
            | EventKind::Member(_)
            | EventKind::AllIdle
            | EventKind::Noted { .. }
            | EventKind::Listed(_)
            | EventKind::Aside(_)
            | EventKind::Hook(_)
            | EventKind::Warning(_)
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalWithdrawn { .. }
            | EventKind::CallStarted { .. }
            | EventKind::CallDone { .. } => Vec::new(),
        };
        told.into_iter().map(|line| self.stamped(line)).collect()
    }

    /// Returns the line about input that was not understood.
    pub(crate) fn not_understood(&self, what: &str) -> Value {
        self.stamped(json!({"type": "system", "subtype": "input_error", "error": what}))
    }

    /// Returns the line about the session's state. It is for the SDK and not for its user.
    pub(crate) fn state(&self, state: &str) -> Value {
        self.stamped(json!({
            "type": "system", "subtype": "session_state_changed", "state": state, "sdk_host_only": true,
        }))
    }

    /// Returns the line about a warning.
    pub(crate) fn warning(&self, what: &str) -> Value {
        self.stamped(json!({"type": "system", "subtype": "unheard", "message": what}))
    }

    /// Returns the line about a change of a team's member.
    pub(crate) fn member(&self, agent: AgentId, news: &MemberUpdate) -> Value {
        self.stamped(members::line(agent, news))
    }

    /// Returns the line about a task of a team that has changed.
    pub(crate) fn task(&self, team: &str, task: &Task) -> Value {
        self.stamped(members::task_line(team, task))
    }

    /// Returns the line about a denied call of a sub-agent.
    pub(crate) fn denied_below(&self, agent: AgentId, name: &str, denial: &Denial) -> Value {
        let mut line = denied_line(denial);
        line["agent_id"] = json!(agent);
        line["agent_name"] = json!(name);
        self.stamped(line)
    }

    /// Returns the result of a team that left tasks open.
    pub(crate) fn open_tasks(&self, all: &RunEnd, progress: &TaskProgress) -> Value {
        let mut result = result::result(&self.facts, all);
        result["tasks"] = progress.object();
        self.stamped(result)
    }

    /// Returns the line about runs that nobody waits for any longer.
    pub(crate) fn left_running(&self, left: &[RunFacts], seconds: u64) -> Value {
        self.stamped(json!({
            "type": "system", "subtype": "left_running", "tasks": tasks::list(left), "waited_seconds": seconds,
        }))
    }

    /// Returns the lines of a transcript entry.
    fn entry(&mut self, entry: &Entry) -> Vec<Value> {
        let (EntryKind::Reply, Some(facts)) = (entry.kind, &entry.reply) else {
            let mut line = json!({"type": "user", "message": shape::message(&entry.message), "parent_tool_use_id": null});
            match entry.kind {
                EntryKind::Prompt => line[self.origin(&entry.message.content)] = true.into(),
                EntryKind::Compaction => {
                    line["isSynthetic"] = true.into();
                    let about = self.compacting.take().unwrap_or_default();
                    let boundary = json!({"type": "system", "subtype": "compact_boundary", "compact_metadata": about});
                    return vec![boundary, line];
                }
                // Its line is that of the event.
                EntryKind::Model => return Vec::new(),
                EntryKind::Reply | EntryKind::Results => {}
            }
            return vec![line];
        };
        let events = self
            .partial
            .as_mut()
            .map_or_else(Vec::new, |partial| partial.whole(facts));
        let mut lines: Vec<Value> = events.into_iter().map(stream_event).collect();
        let last = entry.message.content.len().saturating_sub(1);
        let mut facts = facts.clone();
        if facts.id.is_empty() {
            // It was cut off before it had an id; lines of one reply must still be recognizable
            // as such.
            facts.id = format!("msg_cut_{}", entry.seq);
        }
        lines.extend(entry.message.content.iter().enumerate().map(|(index, block)| {
            let message = shape::reply_part(block, &facts, index == last);
            let mut line = json!({"type": "assistant", "message": message, "parent_tool_use_id": null});
            if facts.stop.is_none() {
                line["aborted"] = true.into();
            }
            line
        }));
        lines
    }

    /// Returns whose text a prompt is. A program that sent it gets it back as confirmation that
    /// it is stored. Text of posse itself or of another agent was sent by no program.
    fn origin(&mut self, content: &[ContentBlock]) -> &'static str {
        let is_next = |sent: &Vec<ContentBlock>| sent.iter().all(|block| content.contains(block));
        match self.prompts.pop_front_if(|sent| is_next(sent)) {
            Some(_) => "isReplay",
            None => "isSynthetic",
        }
    }

    /// Adds an id and the session to a line.
    fn stamped(&self, mut line: Value) -> Value {
        line["uuid"] = json!(Uuid::now_v7());
        line["session_id"] = json!(self.facts.session);
        line
    }
}

fn stream_event(event: Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null})
}

fn retry_line(retry: &Retry, max_retries: u32) -> Value {
    json!({
        "type": "system", "subtype": "api_retry", "attempt": retry.attempt, "max_retries": max_retries,
        "retry_delay_ms": retry.wait_ms, "error_status": retry.fault.status, "error": retry.fault.message,
    })
}

fn denied_line(denial: &Denial) -> Value {
    json!({
        "type": "system", "subtype": "permission_denied", "tool_name": denial.tool,
        "tool_use_id": denial.call, "tool_input": shape::value(&denial.input), "message": denial.why,
    })
}

/// Returns the line about a hook that runs or has run.
fn hook_line(hook: &HookUpdate) -> Value {
    let name = match hook.about.as_str() {
        "" => hook.event.clone(),
        about => format!("{}:{about}", hook.event),
    };
    let mut line = json!({
        "type": "system", "subtype": "hook_started", "hook_id": hook.id, "hook_name": name, "hook_event": hook.event,
    });
    if let Some(end) = &hook.end {
        line["subtype"] = "hook_response".into();
        line["output"] = format!("{}{}", end.output, end.errors).into();
        line["stdout"] = end.output.clone().into();
        line["stderr"] = end.errors.clone().into();
        line["exit_code"] = json!(end.code);
        let is_well = end.failure.is_none() && end.code.is_none_or(|code| code == 0);
        line["outcome"] = if is_well { "success" } else { "error" }.into();
        if let Some(failure) = &end.failure {
            line["failure"] = failure.clone().into();
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use posse_protocol::{
        Delta, Fault, FaultClass, Message, Outcome, RawJson, ReplyFacts, StopReason, Usage,
    };

    use super::*;
    use crate::headless::fixtures::{end, facts, session};

    fn entry(kind: EntryKind, message: Message, stop: Option<StopReason>) -> EventKind {
        let facts = ReplyFacts {
            id: "msg_1".into(),
            model: "m".into(),
            stop,
            usage: Usage::default(),
            missed: None,
        };
        let reply = (kind == EntryKind::Reply).then_some(facts);
        EventKind::Entry(Box::new(Entry {
            seq: 0,
            kind,
            message: Arc::new(message),
            reply,
        }))
    }

    /// Returns the lines without what differs from run to run; all must carry it.
    fn lines(lines: &mut JsonLines, event: &EventKind) -> Vec<Value> {
        let mut told = lines.event(event);
        for line in &mut told {
            let line = line.as_object_mut().unwrap();
            assert_eq!(line.remove("session_id").unwrap(), json!(session()));
            assert!(Uuid::parse_str(line.remove("uuid").unwrap().as_str().unwrap()).is_ok());
        }
        told
    }

    #[test]
    fn the_first_line_says_what_the_session_is() {
        let init = JsonLines::new(facts(), false).init();
        assert_eq!(
            (&init["type"], &init["subtype"]),
            (&json!("system"), &json!("init"))
        );
        assert_eq!(init["tools"], json!(["Read", "Bash"]));
        assert_eq!(init["permissionMode"], json!("default"));
        assert_eq!(
            (&init["skills"], &init["slash_commands"]),
            (&json!(["pdf"]), &json!(["pdf", "compact"]))
        );
        assert_eq!(
            (&init["cwd"], &init["model"]),
            (&json!("/work"), &json!("m"))
        );
    }

    #[test]
    fn a_reply_is_a_line_per_block_under_one_id() {
        let mut out = JsonLines::new(facts(), false);
        let call = ContentBlock::ToolUse {
            id: "t1".into(),
            name: "Read".into(),
            input: RawJson::parse(r#"{"file_path": "a"}"#).unwrap(),
        };
        let message = Message::assistant(vec![ContentBlock::text("I look."), call]);
        let told = lines(
            &mut out,
            &entry(EntryKind::Reply, message, Some(StopReason::ToolUse)),
        );
        let usage = crate::present::usage::usage(&Usage::default());
        let part = |block: Value, stop: Value| {
            json!({
                "type": "assistant",
                "message": {
                    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [block],
                    "stop_reason": stop, "stop_sequence": null, "usage": usage,
                },
                "parent_tool_use_id": null,
            })
        };
        let use_block =
            json!({"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a"}});
        assert_eq!(
            told,
            [
                part(json!({"type": "text", "text": "I look."}), Value::Null),
                part(use_block, json!("tool_use"))
            ]
        );
    }

    #[test]
    fn prompts_come_back_and_results_are_told() {
        let mut out = JsonLines::new(facts(), false);
        out.told(vec![ContentBlock::text("fix it")]);
        let told = lines(
            &mut out,
            &entry(EntryKind::Prompt, Message::user("a run has ended"), None),
        );
        assert_eq!(
            (&told[0]["isSynthetic"], told[0].get("isReplay")),
            (&json!(true), None)
        );
        let told = lines(
            &mut out,
            &entry(EntryKind::Prompt, Message::user("fix it"), None),
        );
        assert_eq!(
            (&told[0]["isReplay"], told[0].get("isSynthetic")),
            (&json!(true), None)
        );
        assert_eq!(
            told[0]["message"]["content"],
            json!([{"type": "text", "text": "fix it"}])
        );
        let result = ContentBlock::ToolResult {
            tool_use_id: "t1".into(),
            content: vec![posse_protocol::ToolContent::text("no such file")],
            is_error: true,
        };
        let message = Message {
            role: posse_protocol::Role::User,
            content: vec![result],
        };
        let told = lines(&mut out, &entry(EntryKind::Results, message, None));
        let block = json!({"type": "tool_result", "tool_use_id": "t1",
            "content": [{"type": "text", "text": "no such file"}], "is_error": true});
        assert_eq!(
            told,
            [
                json!({"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": null})
            ]
        );
    }

    #[test]
    fn a_reply_that_was_cut_off_says_so() {
        let mut out = JsonLines::new(facts(), false);
        let message = Message::assistant(vec![ContentBlock::text("I was abo")]);
        let told = lines(&mut out, &entry(EntryKind::Reply, message, None));
        assert_eq!(
            (&told[0]["aborted"], &told[0]["message"]["stop_reason"]),
            (&json!(true), &Value::Null)
        );
    }

    #[test]
    fn deltas_are_lines_only_if_they_are_wanted() {
        let delta = EventKind::Delta(Delta::Text("a".into()));
        assert!(lines(&mut JsonLines::new(facts(), false), &delta).is_empty());
        let told = lines(&mut JsonLines::new(facts(), true), &delta);
        assert_eq!(told.len(), 2);
        assert_eq!(
            told[1]["event"]["delta"],
            json!({"type": "text_delta", "text": "a"})
        );
    }

    #[test]
    fn retries_denials_and_ends_are_lines() {
        let mut out = JsonLines::new(facts(), true);
        let fault = Fault {
            class: FaultClass::Busy,
            status: Some(529),
            message: "overloaded".into(),
        };
        let told = lines(
            &mut out,
            &EventKind::Retry(Retry {
                attempt: 1,
                wait_ms: 20,
                fault,
            }),
        );
        let line = json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 8,
            "retry_delay_ms": 20, "error_status": 529, "error": "overloaded"});
        assert_eq!(told, [line]);
        let end = end(Outcome::Completed);
        let told = lines(&mut out, &EventKind::Denied(end.denials[0].clone()));
        assert_eq!(
            (&told[0]["tool_name"], &told[0]["message"]),
            (&json!("Bash"), &json!("a rule says so"))
        );
        let told = lines(&mut out, &EventKind::Ended(Box::new(end)));
        assert_eq!(
            (&told[0]["type"], &told[0]["result"]),
            (&json!("result"), &json!("all done"))
        );
    }
}
