//! What follows from what hooks have said.

use std::sync::Arc;

use posse_port::tool::{Intent, ToolError};
use posse_protocol::{ContentBlock, EventKind, Limit, Outcome, ToolContent};
use serde_json::Value;

use crate::agent::step::hooks::{BatchHooks, HookStage, RanFacts};
use crate::agent::step::open_calls::{CallPhase, OpenToolCall, failure};
use crate::agent::step::{Decision, Effect, Machine, State, finish, tools, turn};
use crate::hook::answer::HookDecision;
use crate::hook::{HookEvent, Merged, strictest};
use crate::prompt;

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
                call.hooks.decision = strictest(said.decision, call.hooks.decision.take());
            }
            if let Some(why) = ends {
                let outcome = ended_by(decision, event, &why);
                return tools::stop(machine, decision, outcome);
            }
        }
        HookStage::Asking(why) => {
            let event = HookEvent::PermissionRequest;
            match said.decision {
                _ if ends.is_some() => call.not_run(failure(prompt::hook::ENDED)),
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

/// Returns how a run ends because a hook says so, and tells people.
fn ended_by(decision: &mut Decision, event: HookEvent, why: &str) -> Outcome {
    let told = prompt::hook::ended_run(event, why);
    decision.after.push(Effect::Emit(EventKind::Warning(told)));
    Outcome::Partial(Limit::Hook)
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
