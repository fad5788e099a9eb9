//! Starts hooks in the course of a run: before a call and after it, for all calls of a reply, and at
//! the end of a turn. The actor runs them.

use std::sync::Arc;

use posse_permission::Verdict;
use posse_port::store::{
    AgentState, CallChange, CallChangeKind, CallOutcome, Op, Operation, QuestionChangeKind,
};
use posse_port::tool::{Intent, ToolError, Workspace};
use posse_protocol::{Fault, FaultClass, Outcome, QuestionKind, RawJson, TaskStatus, ToolContent};
use serde_json::{Map, Value, json};

use crate::agent::step::hooks::{BatchHooks, HookRequest, HookStage, HookedVerdict, RanFacts};
use crate::agent::step::open_calls::{CallPhase, NOT_RUN, OpenCalls, OpenToolCall, failure};
use crate::agent::step::{Decision, Effect, Ended, Life, Machine, State};
use crate::hook::answer::HookDecision;
use crate::hook::{Hook, HookEvent, Matched, MatchedCall};
use crate::prompt;

/// Starts the hooks before a call, if there are any that have not run for its input. Returns false
/// if there are none.
pub(super) fn before(machine: &mut Machine, decision: &mut Decision, index: usize) -> bool {
    let State::Acting(acting) = &mut machine.state else {
        return false;
    };
    let call = &mut acting.calls[index];
    if call.hooks.asked {
        return false;
    }
    call.hooks.asked = true;
    let event = HookEvent::PreToolUse;
    let matched = matching(&machine.rights, event, call);
    if let Some(why) = matched.waits {
        call.hooks.decision = Some(HookDecision::Ask(why));
    }
    if matched.hooks.is_empty() {
        return false;
    }
    let own = own_of_call(call, true, machine.rights.rights.workspace());
    let stage = HookStage::Before;
    start(
        machine.rights.hooks.next_run(),
        (event, matched.hooks, own),
        call,
        stage,
        decision,
    );
    true
}

/// Returns the verdict on a call, with what hooks have decided.
pub(super) fn verdict(machine: &Machine, call: &OpenToolCall, intent: &Intent) -> HookedVerdict {
    let rights = &machine.rights.rights;
    let ruled = rights.verdict(&call.tool, intent);
    match (ruled, &call.hooks.decision) {
        // Nobody but a person answers a question to people.
        (ruled, _) if call.kind() != QuestionKind::Permission => HookedVerdict::Ruled(ruled),
        (Verdict::Deny(why), _) => HookedVerdict::Ruled(Verdict::Deny(why)),
        (_, Some(HookDecision::Defer(why))) => HookedVerdict::Deferred(why.clone()),
        (Verdict::Ask(_), Some(HookDecision::Allow)) => {
            match rights.verdict_agreed(&call.tool, intent) {
                Verdict::Allow => HookedVerdict::Agreed,
                other => HookedVerdict::Ruled(other),
            }
        }
        (Verdict::Allow, Some(HookDecision::Ask(why))) => {
            HookedVerdict::Ruled(Verdict::Ask(prompt::hook::asks(why)))
        }
        (ruled, _) => HookedVerdict::Ruled(ruled),
    }
}

/// Starts the hooks that may answer instead of a person. Returns false if there are none.
pub(super) fn asking(
    machine: &mut Machine,
    decision: &mut Decision,
    index: usize,
    why: &str,
) -> bool {
    let State::Acting(acting) = &mut machine.state else {
        return false;
    };
    let call = &mut acting.calls[index];
    let event = HookEvent::PermissionRequest;
    let matched = matching(&machine.rights, event, call);
    // While a person has not accepted one of them, no other answers in their place.
    if matched.hooks.is_empty() || matched.waits.is_some() {
        return false;
    }
    let own = own_of_call(call, false, machine.rights.rights.workspace());
    let stage = HookStage::Asking(why.to_owned());
    start(
        machine.rights.hooks.next_run(),
        (event, matched.hooks, own),
        call,
        stage,
        decision,
    );
    true
}

/// Holds back the operations of a call while hooks look at the tasks that it creates or completes.
/// Returns them if no hook does.
pub(super) fn operate(
    machine: &mut Machine,
    decision: &mut Decision,
    index: usize,
    operations: Vec<Operation>,
) -> Option<Vec<Operation>> {
    let State::Acting(acting) = &mut machine.state else {
        return Some(operations);
    };
    let call = &mut acting.calls[index];
    let found = operations
        .iter()
        .find_map(|operation| about_task(&operation.op));
    let Some((event, own)) = found else {
        return Some(operations);
    };
    let matched = machine.rights.hooks.set.matching(event, "");
    if matched.hooks.is_empty() {
        return Some(operations);
    }
    let stage = HookStage::Operating(operations);
    start(
        machine.rights.hooks.next_run(),
        (event, matched.hooks, own),
        call,
        stage,
        decision,
    );
    None
}

/// Starts the hooks after a call that ran. Its outcome is stored first: a crash may lose what they
/// say, and never the outcome. Returns false if there are none.
pub(super) fn after(
    machine: &mut Machine,
    decision: &mut Decision,
    index: usize,
    outcome: &CallOutcome,
    ran: RanFacts,
) -> bool {
    let State::Acting(acting) = &mut machine.state else {
        return false;
    };
    let call = &mut acting.calls[index];
    let event = match outcome.is_error {
        true => HookEvent::PostToolUseFailure,
        false => HookEvent::PostToolUse,
    };
    let matched = matching(&machine.rights, event, call);
    if matched.hooks.is_empty() {
        return false;
    }
    let mut own = own_of_call(call, true, machine.rights.rights.workspace());
    match event {
        HookEvent::PostToolUse => {
            let answer = ran.answer.unwrap_or_else(|| json!(text_of(outcome)));
            own.insert("tool_response".into(), answer);
        }
        _ => {
            own.insert("error".into(), json!(text_of(outcome)));
            // They do not run for calls that somebody has interrupted.
            own.insert("is_interrupt".into(), json!(false));
        }
    }
    if let Some(took) = ran.took_ms {
        own.insert("duration_ms".into(), json!(took));
    }
    if let Some(original) = &call.hooks.original {
        own.insert("original_tool_input".into(), value(original));
    }
    decision.commit.calls.push(CallChange {
        key: call.key,
        change: CallChangeKind::Done(outcome.clone()),
    });
    let stage = HookStage::After(outcome.clone());
    start(
        machine.rights.hooks.next_run(),
        (event, matched.hooks, own),
        call,
        stage,
        decision,
    );
    true
}

/// Starts the hooks that may say that the model may try a call again, which was denied without
/// asking anybody.
pub(super) fn after_denial(
    machine: &mut Machine,
    decision: &mut Decision,
    index: usize,
    why: &str,
) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let call = &mut acting.calls[index];
    let event = HookEvent::PermissionDenied;
    let hooks = matching(&machine.rights, event, call).hooks;
    let CallPhase::Done(outcome) = &call.phase else {
        return;
    };
    if hooks.is_empty() {
        return;
    }
    let outcome = outcome.clone();
    let mut own = own_of_call(call, true, machine.rights.rights.workspace());
    own.insert("reason".into(), json!(why));
    let stage = HookStage::Denied(outcome);
    start(
        machine.rights.hooks.next_run(),
        (event, hooks, own),
        call,
        stage,
        decision,
    );
}

/// Starts the hooks for all calls of a reply, once. Returns true while they run.
pub(super) fn batch(machine: &mut Machine, decision: &mut Decision) -> bool {
    let State::Acting(acting) = &mut machine.state else {
        return false;
    };
    let hooks = &mut machine.rights.hooks;
    match acting.batch {
        _ if acting.stopping.is_some() => return false,
        BatchHooks::Running(_) => return true,
        BatchHooks::Done(_) => return false,
        BatchHooks::NotRun => {}
    }
    let event = HookEvent::PostToolBatch;
    let matched = hooks.set.matching(event, "");
    if matched.hooks.is_empty() {
        return false;
    }
    let call = |call: &OpenToolCall| {
        let told = match &call.phase {
            CallPhase::Done(outcome) => text_of(outcome),
            _ => String::new(),
        };
        let input = call.hooks.original.as_ref().unwrap_or(&call.input);
        json!({
            "tool_name": call.tool,
            "tool_input": value(input),
            "tool_use_id": call.id,
            "tool_response": told,
        })
    };
    let calls: Vec<Value> = acting.calls.iter().map(call).collect();
    let run = hooks.next_run();
    decision.after.push(Effect::Hook(Box::new(HookRequest {
        run,
        event,
        hooks: matched.hooks,
        about: String::new(),
        call: None,
        own: Map::from_iter([("tool_calls".to_owned(), json!(calls))]),
    })));
    acting.batch = BatchHooks::Running(run);
    true
}

/// Takes what the model reads after the results: of each call in order, then of all.
pub(super) fn said(acting: &mut OpenCalls) -> Vec<String> {
    let calls = acting.calls.iter_mut();
    let mut said: Vec<String> = calls
        .flat_map(|call| std::mem::take(&mut call.hooks.words))
        .collect();
    if let BatchHooks::Done(words) = std::mem::take(&mut acting.batch) {
        said.extend(words);
    }
    said
}

/// Starts the hooks at the end of a turn. Returns false if there are none.
pub(super) fn at_end(machine: &mut Machine, decision: &mut Decision) -> bool {
    let event = match machine.life {
        Life::Root { .. } => HookEvent::Stop,
        Life::Sub => HookEvent::SubagentStop,
        Life::Teammate { .. } => HookEvent::TeammateIdle,
    };
    let hooks = &mut machine.rights.hooks;
    let about = hooks.own_type.as_deref().unwrap_or_default();
    let matched = hooks.set.matching(event, about);
    if matched.hooks.is_empty() {
        return false;
    }
    let about = about.to_owned();
    let run = hooks.next_run();
    let mut own = Map::new();
    if event != HookEvent::TeammateIdle {
        own.insert("stop_hook_active".into(), json!(machine.run.held_back > 0));
        own.insert("last_assistant_message".into(), json!(machine.run.text));
    }
    decision.after.push(Effect::Hook(Box::new(HookRequest {
        run,
        event,
        hooks: matched.hooks,
        about,
        call: None,
        own,
    })));
    machine.state = State::Hooked { run, event };
    true
}

/// Leaves a call open until somebody has decided about it, and ends the run. Another process can go
/// on with it.
pub(super) fn defer(machine: &mut Machine, decision: &mut Decision, index: usize, why: String) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let (rights, call) = (&machine.rights, &mut acting.calls[index]);
    let message = prompt::hook::deferred(&call.tool, &why);
    call.ask(rights.agent, rights.name.clone(), why, decision);
    let asked = decision.commit.questions.iter().rev();
    let mut asked = asked.filter_map(|change| match &change.change {
        QuestionChangeKind::Asked(new) => Some(new.question.clone()),
        _ => None,
    });
    machine.left = asked.next().into_iter().collect();
    decision.commit.state = Some(AgentState::Paused);
    let fault = Fault {
        class: FaultClass::Hook,
        status: None,
        message,
    };
    let run = std::mem::take(&mut machine.run);
    decision.after.push(Effect::End(Box::new(Ended {
        outcome: Outcome::Paused(fault),
        run,
    })));
}

/// Returns true if a call that a hook defers can wait: it is alone, and a person can be asked later.
pub(super) fn can_wait(machine: &Machine) -> bool {
    match &machine.state {
        State::Acting(acting) => machine.is_root() && acting.len() == 1,
        _ => false,
    }
}

/// Returns the hooks of an event for a call.
fn matching(
    rights: &crate::agent::step::Authority,
    event: HookEvent,
    call: &OpenToolCall,
) -> Matched {
    let set = &rights.hooks.set;
    match &call.intent {
        Ok(intent) if set.has(event) => set.matching_call(
            event,
            MatchedCall {
                tool: &call.tool,
                intent,
                workspace: rights.rights.workspace(),
            },
        ),
        _ => Matched::default(),
    }
}

/// Asks for hooks to be run for a call, which waits for them.
fn start(
    run: u64,
    (event, hooks, own): (HookEvent, Vec<Arc<Hook>>, Map<String, Value>),
    call: &mut OpenToolCall,
    stage: HookStage,
    decision: &mut Decision,
) {
    decision.after.push(Effect::Hook(Box::new(HookRequest {
        run,
        event,
        hooks,
        about: call.tool.clone(),
        call: Some(call.id.clone()),
        own,
    })));
    call.phase = CallPhase::Hooked(run, stage);
}

/// Returns what is told of a call.
fn own_of_call(call: &OpenToolCall, with_id: bool, workspace: &Workspace) -> Map<String, Value> {
    let mut own = Map::new();
    own.insert("tool_name".into(), json!(call.tool));
    let mut input = value(&call.input);
    // Scripts compare it with directories: the file is named in full, however the model names it.
    if let Some(Value::String(path)) = input.get_mut("file_path") {
        *path = workspace.cwd.join(&*path).to_string_lossy().into_owned();
    }
    own.insert("tool_input".into(), input);
    if with_id {
        own.insert("tool_use_id".into(), json!(call.id));
    }
    own
}

/// Returns the event of an operation on a task, and what is told of the task.
fn about_task(op: &Op) -> Option<(HookEvent, Map<String, Value>)> {
    let (event, own) = match op {
        Op::CreateTask { team, task } => (
            HookEvent::TaskCreated,
            json!({
                "task_id": null,
                "task_subject": task.subject,
                "task_description": task.description,
                "team_name": team,
            }),
        ),
        Op::UpdateTask {
            team, id, change, ..
        } if change.status == Some(TaskStatus::Completed) => (
            HookEvent::TaskCompleted,
            json!({
                "task_id": id.to_string(),
                "task_subject": change.subject,
                "task_description": change.description,
                "team_name": team,
            }),
        ),
        _ => return None,
    };
    match own {
        Value::Object(own) => Some((event, own)),
        _ => None,
    }
}

/// Returns the text of an outcome.
fn text_of(outcome: &CallOutcome) -> String {
    let texts = outcome.content.iter().filter_map(|content| match content {
        ToolContent::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns an input as a value.
fn value(input: &RawJson) -> Value {
    serde_json::from_str(input.get()).unwrap_or_default()
}

impl OpenToolCall {
    /// Ends it while hooks run for it: it did not run, or keeps its outcome.
    pub(super) fn hooks_stopped(&mut self) {
        let CallPhase::Hooked(_, stage) = std::mem::replace(&mut self.phase, CallPhase::Waiting)
        else {
            return;
        };
        self.phase = CallPhase::Done(match stage {
            HookStage::After(outcome) | HookStage::Denied(outcome) => outcome,
            HookStage::Before | HookStage::Asking(_) => {
                failure(self.with_output(NOT_RUN.to_owned()))
            }
            HookStage::Operating(_) => failure(NOT_RUN),
        });
    }

    /// Replaces its input, and tells the model so.
    pub(super) fn change_input(
        &mut self,
        input: Option<RawJson>,
        intent: Option<Result<Intent, ToolError>>,
    ) {
        let (Some(input), Some(intent)) = (input, intent) else {
            return;
        };
        if input == self.input {
            return;
        }
        let words = prompt::hook::changed_input(&self.tool, &self.id, input.get());
        self.hooks.words.push(words);
        let own = std::mem::replace(&mut self.input, input);
        self.hooks.original.get_or_insert(own);
        self.intent = intent;
    }
}
