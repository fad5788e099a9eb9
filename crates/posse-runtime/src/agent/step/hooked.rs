//! Hooks in the course of a run: which are to be run, and what follows from what they say. The
//! actor runs them.

use std::sync::Arc;

use posse_permission::Verdict;
use posse_port::store::{
    AgentState, CallChange, CallChangeKind, CallOutcome, Op, Operation, QuestionChangeKind,
};
use posse_port::tool::{Intent, ToolError, Workspace};
use posse_protocol::{
    ContentBlock, EventKind, Fault, FaultClass, Limit, Outcome, QuestionKind, RawJson, TaskStatus,
    ToolContent,
};
use serde_json::{Map, Value, json};

use crate::agent::step::open_calls::{CallPhase, NOT_RUN, OpenCalls, OpenToolCall, failure};
use crate::agent::step::{Decision, Effect, Ended, Life, Machine, State, finish, tools, turn};
use crate::hook::answer::HookDecision;
use crate::hook::{Hook, HookEvent, HookSet, Matched, MatchedCall, Merged};
use crate::prompt;

/// Hooks of an agent, as far as decisions need them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentHooks {
    /// Those that hold now.
    pub(crate) set: Arc<HookSet>,
    /// The agent's type; none for a main agent.
    own_type: Option<String>,
    /// Number of times that hooks were run.
    runs: u64,
}

impl AgentHooks {
    /// Returns the hooks of an agent of this type; none for a main agent.
    pub(crate) fn of(own_type: Option<String>) -> Self {
        Self {
            own_type,
            ..Self::default()
        }
    }

    /// Returns a number for the next run of hooks.
    fn next_run(&mut self) -> u64 {
        self.runs += 1;
        self.runs
    }
}

/// Hooks that are to be run side by side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HookRequest {
    /// Number of this run of hooks; [`Input::Hooked`](crate::agent::step::Input::Hooked) returns it.
    pub(crate) run: u64,
    /// The event.
    pub(crate) event: HookEvent,
    /// The hooks, in the order in which they count.
    pub(crate) hooks: Vec<Arc<Hook>>,
    /// What their matchers were compared with; empty if the event has nothing.
    pub(crate) about: String,
    /// The model's ID of the call that it is about.
    pub(crate) call: Option<String>,
    /// What only this event tells.
    pub(crate) own: Map<String, Value>,
}

/// What a call waits for while hooks run.
#[derive(Debug, PartialEq)]
pub(super) enum HookStage {
    /// Whether it may run.
    Before,
    /// Whether a person must be asked, for this reason.
    Asking(String),
    /// Whether its operations may be committed.
    Operating(Vec<Operation>),
    /// What is added to its outcome, which is stored.
    After(CallOutcome),
    /// Whether the model may try it again: it was denied without asking anybody.
    Denied(CallOutcome),
}

/// What hooks have said about a call.
#[derive(Debug, Default)]
pub(super) struct CallHooks {
    /// True once the hooks before it were run for its input.
    pub(super) asked: bool,
    /// What they have decided, unless they refused.
    decision: Option<HookDecision>,
    /// What the model reads after the results.
    pub(super) words: Vec<String>,
    /// The input as the model has given it, if a hook has changed it.
    original: Option<RawJson>,
}

impl CallHooks {
    /// Returns what is known of a call about which hooks were asked by a dead process.
    pub(super) fn asked() -> Self {
        Self {
            asked: true,
            ..Self::default()
        }
    }
}

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
    let run = start(
        &mut machine.rights.hooks,
        event,
        matched.hooks,
        call,
        own,
        decision,
    );
    call.phase = CallPhase::Hooked(run, HookStage::Before);
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

/// A verdict on a call that hooks were asked about.
pub(super) enum HookedVerdict {
    /// What the rules say, or more strictly.
    Ruled(Verdict),
    /// A hook has answered what a person would be asked.
    Agreed,
    /// It waits until somebody decides, for this reason.
    Deferred(String),
}

/// Asks about a call, first the hooks that may answer instead of a person.
pub(super) fn ask(machine: &mut Machine, decision: &mut Decision, index: usize, why: String) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let call = &mut acting.calls[index];
    let event = HookEvent::PermissionRequest;
    let matched = matching(&machine.rights, event, call);
    if matched.hooks.is_empty() {
        return tools::ask_person(machine, decision, index, why);
    }
    let own = own_of_call(call, false, machine.rights.rights.workspace());
    let run = start(
        &mut machine.rights.hooks,
        event,
        matched.hooks,
        call,
        own,
        decision,
    );
    call.phase = CallPhase::Hooked(run, HookStage::Asking(why));
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
    let run = start(
        &mut machine.rights.hooks,
        event,
        matched.hooks,
        call,
        own,
        decision,
    );
    call.phase = CallPhase::Hooked(run, HookStage::Operating(operations));
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
    let run = start(
        &mut machine.rights.hooks,
        event,
        matched.hooks,
        call,
        own,
        decision,
    );
    call.phase = CallPhase::Hooked(run, HookStage::After(outcome.clone()));
    true
}

/// Denies a call that nobody was asked about. Hooks may say that the model may try it again.
pub(super) fn deny_unasked(
    machine: &mut Machine,
    decision: &mut Decision,
    index: usize,
    why: String,
) {
    tools::deny(machine, decision, index, why.clone());
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
    let run = start(&mut machine.rights.hooks, event, hooks, call, own, decision);
    call.phase = CallPhase::Hooked(run, HookStage::Denied(outcome));
}

/// What is known of a call that ran, beside its outcome.
#[derive(Debug, Default)]
pub(crate) struct RanFacts {
    /// The result as hooks read it.
    pub(crate) answer: Option<Value>,
    /// How long it took.
    pub(crate) took_ms: Option<u64>,
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

/// The hooks for all calls of a reply.
#[derive(Debug, Default, PartialEq)]
pub(super) enum BatchHooks {
    /// They were not looked for.
    #[default]
    NotRun,
    /// They run.
    Running(u64),
    /// They have said this.
    Done(Vec<String>),
}

impl BatchHooks {
    /// Notes that they are ended. Returns true if they ran.
    pub(super) fn stopped(&mut self) -> bool {
        let ran = matches!(self, Self::Running(_));
        if ran {
            *self = Self::Done(Vec::new());
        }
        ran
    }
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

/// Handles what hooks have said. `intent` is that of the input that replaces a call's.
pub(super) fn on_hooked(
    machine: &mut Machine,
    decision: &mut Decision,
    run: u64,
    said: Merged,
    intent: Option<Result<Intent, ToolError>>,
) {
    match &mut machine.state {
        State::Hooked { run: waited, event } if *waited == run => {
            let event = *event;
            on_end_hooked(machine, decision, event, said);
        }
        State::Acting(acting) if acting.batch == BatchHooks::Running(run) => {
            acting.batch = BatchHooks::Done(words(HookEvent::PostToolBatch, &said));
            let ends = said.ends_run.clone();
            if let Some(why) = ends.or_else(|| said.denied().map(str::to_owned)) {
                acting.stopping = Some(ended_by(decision, HookEvent::PostToolBatch, &why));
            }
            tools::advance(machine, decision);
        }
        State::Acting(acting) => {
            let waits =
                |call: &OpenToolCall| matches!(call.phase, CallPhase::Hooked(it, _) if it == run);
            if let Some(index) = acting.calls.iter().position(waits) {
                on_call_hooked(machine, decision, index, said, intent);
            }
        }
        // It was stopped meanwhile.
        _ => {}
    }
}

/// Handles what the hooks of a call have said.
fn on_call_hooked(
    machine: &mut Machine,
    decision: &mut Decision,
    index: usize,
    said: Merged,
    intent: Option<Result<Intent, ToolError>>,
) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let call = &mut acting.calls[index];
    let CallPhase::Hooked(_, stage) = std::mem::replace(&mut call.phase, CallPhase::Waiting) else {
        return;
    };
    let ends = said.ends_run.clone();
    match stage {
        HookStage::Before => {
            let event = HookEvent::PreToolUse;
            call.hooks.words.extend(contexts(event, &call.tool, &said));
            if let Some(why) = said.denied() {
                let why = prompt::hook::denied(why);
                tools::deny(machine, decision, index, why);
            } else if ends.is_some() {
                call.not_run(failure(prompt::hook::ENDED));
            } else {
                call.change_input(said.input, intent);
                call.hooks.decision = said.decision.or(call.hooks.decision.take());
            }
            if let Some(why) = ends {
                let outcome = ended_by(decision, event, &why);
                return tools::stop(machine, decision, outcome);
            }
        }
        HookStage::Asking(why) => {
            let event = HookEvent::PermissionRequest;
            match said.decision {
                Some(HookDecision::Allow) => {
                    call.change_input(said.input, intent);
                    tools::permit(machine, decision, index);
                }
                Some(HookDecision::Deny(message)) => {
                    let message = call.with_output(prompt::hook::denied(&message));
                    tools::deny(machine, decision, index, message);
                    if said.more.interrupts {
                        return tools::stop(machine, decision, Outcome::Interrupted);
                    }
                }
                _ => tools::ask_person(machine, decision, index, why),
            }
            if let Some(why) = ends {
                let outcome = ended_by(decision, event, &why);
                return tools::stop(machine, decision, outcome);
            }
        }
        HookStage::Operating(operations) => {
            // Like the other stages, but what would be committed is not there if it is refused.
            call.phase = CallPhase::Running;
            let Some(why) = said.denied().map(prompt::hook::denied) else {
                decision.commit.operations.extend(operations);
                if ends.is_some() && machine.is_teammate() {
                    machine.leave();
                }
                return;
            };
            return tools::end_call(machine, decision, index, failure(why), RanFacts::default());
        }
        HookStage::Denied(outcome) => {
            let event = HookEvent::PermissionDenied;
            let retry = said.more.retry.then(|| prompt::hook::may_retry(&call.tool));
            call.hooks.words.extend(retry);
            call.hooks.words.extend(contexts(event, &call.tool, &said));
            call.phase = CallPhase::Done(outcome);
            if let Some(why) = ends {
                let outcome = ended_by(decision, event, &why);
                return tools::stop(machine, decision, outcome);
            }
        }
        HookStage::After(mut outcome) => {
            let event = match outcome.is_error {
                true => HookEvent::PostToolUseFailure,
                false => HookEvent::PostToolUse,
            };
            if let Some(output) = &said.more.output {
                outcome.content = Arc::new([ToolContent::text(told_instead(output))]);
            }
            if let Some(why) = said.denied() {
                let words = prompt::hook::said(event, &call.tool, why);
                call.hooks.words.push(words);
            }
            call.hooks.words.extend(contexts(event, &call.tool, &said));
            call.phase = CallPhase::Done(outcome);
            if let Some(why) = ends {
                let outcome = ended_by(decision, event, &why);
                return tools::stop(machine, decision, outcome);
            }
        }
    }
    tools::advance(machine, decision);
}

/// Handles what the hooks at the end of a turn have said.
fn on_end_hooked(machine: &mut Machine, decision: &mut Decision, event: HookEvent, said: Merged) {
    if said.ends_run.is_some() {
        if machine.is_teammate() {
            machine.leave();
        }
        return finish::end_turn(machine, decision);
    }
    let words = words(event, &said);
    if words.is_empty() {
        return match machine.begins_by_mail() && !machine.queue.has_prompts() {
            true => turn::next_turn(machine, decision, Vec::new()),
            false => finish::end_turn(machine, decision),
        };
    }
    if machine.run.held_back >= machine.rights.hooks.set.stop_limit() {
        let why = words.join("\n");
        let outcome = ended_by(decision, event, &prompt::hook::held_back_too_often(&why));
        return turn::end_run(machine, decision, outcome);
    }
    machine.run.held_back += 1;
    let words = words.into_iter().map(ContentBlock::text).collect();
    turn::next_turn(machine, decision, words);
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

/// Returns how a run ends because a hook says so, and tells people.
fn ended_by(decision: &mut Decision, event: HookEvent, why: &str) -> Outcome {
    let told = prompt::hook::ended_run(event, why);
    decision.after.push(Effect::Emit(EventKind::Warning(told)));
    Outcome::Partial(Limit::Hook)
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

/// Asks for hooks to be run for a call.
fn start(
    hooks: &mut AgentHooks,
    event: HookEvent,
    matched: Vec<Arc<Hook>>,
    call: &OpenToolCall,
    own: Map<String, Value>,
    decision: &mut Decision,
) -> u64 {
    let run = hooks.next_run();
    decision.after.push(Effect::Hook(Box::new(HookRequest {
        run,
        event,
        hooks: matched,
        about: call.tool.clone(),
        call: Some(call.id.clone()),
        own,
    })));
    run
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

/// Returns what the model is told of what hooks want and add.
fn words(event: HookEvent, said: &Merged) -> Vec<String> {
    let denied = said.denied().map(|why| prompt::hook::said(event, "", why));
    denied
        .into_iter()
        .chain(contexts(event, "", said))
        .collect()
}

/// Returns what hooks add for the model.
fn contexts(event: HookEvent, about: &str, said: &Merged) -> Vec<String> {
    let contexts = said.contexts.iter();
    contexts
        .map(|text| prompt::hook::context(event, about, text))
        .collect()
}

/// Returns the text that takes the place of a tool's output.
fn told_instead(output: &Value) -> String {
    let parts = |keys: &[&str]| {
        let found = keys.iter().filter_map(|key| output.get(key)?.as_str());
        let found: Vec<&str> = found.filter(|text| !text.is_empty()).collect();
        (!found.is_empty()).then(|| found.join("\n"))
    };
    match output {
        Value::String(text) => text.clone(),
        _ => parts(&["stdout", "stderr"])
            .or_else(|| parts(&["content"]))
            .or_else(|| Some(output.get("file")?.get("content")?.as_str()?.to_owned()))
            .unwrap_or_else(|| output.to_string()),
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
    fn change_input(&mut self, input: Option<RawJson>, intent: Option<Result<Intent, ToolError>>) {
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
