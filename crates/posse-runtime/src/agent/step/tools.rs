//! Transitions of tool calls: judged, asked about, run, and answered in order.

use posse_permission::{Consent, Verdict};
use posse_port::store::{
    AgentState, CallChange, CallChangeKind, CallKey, CallOutcome, Operation, QuestionChangeKind,
    RunChange, RunChangeKind, TakenMail,
};
use posse_port::tool::{Intent, ToolError};
use posse_protocol::{
    Answer, Answerer, ContentBlock, Denial, EntryKind, EventKind, Fault, FaultClass, GivenAnswer,
    Limit, Message, Outcome, PermissionMode, QuestionId, QuestionKind, Role, RunKind,
    SandboxRefusal,
};

use crate::agent::skill::texts;
use crate::agent::step::hooks::HookedVerdict;
use crate::agent::step::machine::Attention;
use crate::agent::step::open_calls::{
    CRASHED, CallPhase, INTERRUPTED, NOT_RUN, OpenToolCall, failure, result,
};
use crate::agent::step::repetition::Repeated;
use crate::agent::step::{
    Answered, Consequence, Decision, Effect, Life, Machine, RanFacts, State, asking, hooking, plan,
    prompts, turn,
};
use crate::live::setup::Approver;
use crate::prompt;

/// Starts the calls that may start now. When every call is answered, the model is called.
pub(super) fn advance(machine: &mut Machine, decision: &mut Decision) {
    // A loop, because a group of calls may all be denied at once, and then the next one is due.
    loop {
        let State::Acting(acting) = &machine.state else {
            return;
        };
        if acting.all_done() {
            return answer_model(machine, decision);
        }
        let group = acting.group();
        for index in group.clone() {
            judge(machine, decision, index);
        }
        let State::Acting(acting) = &machine.state else {
            return;
        };
        let open = |index: usize| {
            matches!(
                acting.calls[index].phase,
                CallPhase::Hooked(..) | CallPhase::Asked(_) | CallPhase::Running
            )
        };
        if group.into_iter().any(open) {
            if acting.waits() && machine.left.is_empty() {
                decision.commit.state = Some(AgentState::Waiting);
            }
            return;
        }
    }
}

/// Decides whether a call may run: it is run, asked about or denied.
pub(super) fn judge(machine: &mut Machine, decision: &mut Decision, index: usize) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let call = &mut acting.calls[index];
    if call.phase != CallPhase::Waiting {
        return;
    }
    match &call.intent {
        Ok(_) => {}
        Err(ToolError::Tell(what)) => {
            let outcome = failure(what);
            return call.not_run(outcome);
        }
        Err(ToolError::Stop(what)) => {
            let what = what.clone();
            return tool_stops(machine, decision, index, &what);
        }
    }
    if !hooking::before(machine, decision, index) {
        decide(machine, decision, index);
    }
}

/// Decides about a call that no hook has refused.
fn decide(machine: &mut Machine, decision: &mut Decision, index: usize) {
    let State::Acting(acting) = &machine.state else {
        return;
    };
    let Ok(intent) = &acting.calls[index].intent else {
        return;
    };
    let verdict = hooking::verdict(machine, &acting.calls[index], intent);
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let (rights, call) = (&machine.rights, &mut acting.calls[index]);
    let verdict = match verdict {
        HookedVerdict::Ruled(verdict) => verdict,
        HookedVerdict::Agreed => return call.run(Consent::Person, &rights.rights, decision),
        HookedVerdict::Deferred(why) if hooking::can_wait(machine) => {
            return hooking::defer(machine, decision, index, why);
        }
        HookedVerdict::Deferred(why) => Verdict::Ask(prompt::hook::asks(&why)),
    };
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let (rights, call) = (&machine.rights, &mut acting.calls[index]);
    match verdict {
        Verdict::Allow => call.run(Consent::Rules, &rights.rights, decision),
        Verdict::Ask(_) if call.kind() == QuestionKind::Plan && !plan::is_on(rights) => {
            call.not_run(failure(prompt::plan::NOT_ON));
        }
        Verdict::Ask(why) if call.kind() == QuestionKind::Permission => {
            ask(machine, decision, index, why);
        }
        Verdict::Ask(why) if rights.approver != Approver::Nobody => {
            call.ask(rights.agent, rights.name.clone(), why, decision);
        }
        Verdict::Ask(_) if call.kind() == QuestionKind::Choice => {
            call.not_run(asking::unasked());
        }
        Verdict::Ask(_) => deny(machine, decision, index, prompt::plan::NOBODY.into()),
        Verdict::Deny(why) => {
            deny_unasked(machine, decision, index, format!("Denied: {why}"));
        }
    }
}

/// Asks about a call, first the hooks that may answer instead of a person.
fn ask(machine: &mut Machine, decision: &mut Decision, index: usize, why: String) {
    if !hooking::asking(machine, decision, index, &why) {
        ask_person(machine, decision, index, why);
    }
}

/// Asks a person for permission for a call, or denies it if nobody is there.
pub(super) fn ask_person(
    machine: &mut Machine,
    decision: &mut Decision,
    index: usize,
    why: String,
) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let (rights, call) = (&machine.rights, &mut acting.calls[index]);
    if rights.approver != Approver::Nobody {
        return call.ask(rights.agent, rights.name.clone(), why, decision);
    }
    let why = format!("Denied: approval is required and no one is available to give it: {why}");
    deny_unasked(machine, decision, index, why);
}

/// Runs a call that somebody has permitted who may. It is judged again: the input may be changed,
/// and the rules too. A person may allow what a rule asks about, never what a rule denies.
pub(super) fn permit(machine: &mut Machine, decision: &mut Decision, index: usize) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let (rights, call) = (&machine.rights.rights, &mut acting.calls[index]);
    let verdict = call
        .intent
        .as_ref()
        .map(|intent| rights.verdict(&call.tool, intent));
    match verdict {
        Ok(Verdict::Deny(why)) => {
            deny_unasked(machine, decision, index, format!("Denied: {why}"));
        }
        Ok(Verdict::Allow | Verdict::Ask(_)) => {
            let consent = call.consent();
            call.run(consent, rights, decision);
        }
        Err(_) => {
            call.phase = CallPhase::Waiting;
            judge(machine, decision, index);
        }
    }
}

/// Denies a call and reports it to people.
pub(super) fn deny(machine: &mut Machine, decision: &mut Decision, index: usize, why: String) {
    let denial = refuse(machine, index, why);
    decision
        .after
        .extend(denial.map(|denial| Effect::Emit(EventKind::Denied(denial))));
}

/// Denies a call that nobody was asked about.
fn deny_unasked(machine: &mut Machine, decision: &mut Decision, index: usize, why: String) {
    deny(machine, decision, index, why.clone());
    hooking::after_denial(machine, decision, index, &why);
}

/// Denies a call and keeps the denial for the end of the run.
pub(super) fn refuse(machine: &mut Machine, index: usize, why: String) -> Option<Denial> {
    let State::Acting(acting) = &mut machine.state else {
        return None;
    };
    let call = &mut acting.calls[index];
    let (tool, input) = (call.tool.clone(), call.input.clone());
    call.not_run(failure(why.clone()));
    let denial = Denial {
        tool,
        call: call.id.clone(),
        input,
        why,
    };
    machine.run.denials.push(denial.clone());
    Some(denial)
}

/// Handles the answer to a question about a call.
pub(super) fn on_answer(
    machine: &mut Machine,
    decision: &mut Decision,
    question: QuestionId,
    given: GivenAnswer,
    intent: Option<Result<Intent, ToolError>>,
) {
    let asked = |call: &OpenToolCall| call.is_asked(question);
    let found = match &machine.state {
        State::Acting(acting) => acting.calls.iter().position(asked),
        _ => None,
    };
    let (State::Acting(acting), Some(index)) = (&mut machine.state, found) else {
        // Its call was stopped meanwhile, and the question withdrawn with it.
        return;
    };
    acting.calls[index].close_question(QuestionChangeKind::Done, decision);
    let kind = acting.calls[index].kind();
    if kind == QuestionKind::Choice {
        return on_choice(machine, decision, (index, question), given);
    }
    let is_plan = kind == QuestionKind::Plan;
    match given.answer {
        Answer::Allow { input, .. } if is_plan => {
            let edited = input.as_ref().and_then(plan::plan_in);
            plan::approve(machine, decision, index, edited, None);
        }
        Answer::Approve { plan, mode } if is_plan => {
            plan::approve(machine, decision, index, plan, mode);
        }
        Answer::Approve { .. } => {
            let why = "Denied: the answer was the approval of a plan, and this is not a plan.";
            deny(machine, decision, index, why.into());
        }
        Answer::Allow { input, .. } => {
            let call = &mut acting.calls[index];
            if let (Some(input), Some(intent)) = (input, intent) {
                (call.input, call.intent) = (input, intent);
            }
            permit(machine, decision, index);
        }
        Answer::Deny { message, interrupt } => {
            let message = acting.calls[index].with_output(message);
            match given.by {
                Answerer::Person if is_plan => {
                    drop(refuse(machine, index, prompt::plan::rejected(&message)));
                }
                // Not reported: the person who denied it knows.
                Answerer::Person => drop(refuse(machine, index, message)),
                Answerer::Nobody => deny_unasked(machine, decision, index, message),
            }
            if interrupt {
                return stop(machine, decision, Outcome::Interrupted);
            }
        }
    }
    advance(machine, decision);
}

/// Handles what a person answers to the questions of the call at `index`: it is the result.
fn on_choice(
    machine: &mut Machine,
    decision: &mut Decision,
    (index, id): (usize, QuestionId),
    given: GivenAnswer,
) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let call = &mut acting.calls[index];
    let outcome = asking::outcome(&call.input, id, &given);
    let (key, change) = (call.key, CallChangeKind::Done(outcome.clone()));
    call.not_run(outcome);
    // While other calls are open, a crash must not lose what a person has said.
    if !acting.all_done() {
        decision.commit.calls.push(CallChange { key, change });
    }
    match given.answer {
        Answer::Deny {
            interrupt: true, ..
        } => stop(machine, decision, Outcome::Interrupted),
        Answer::Deny { .. } | Answer::Allow { .. } | Answer::Approve { .. } => {
            advance(machine, decision);
        }
    }
}

/// Goes on with a run that a dead process has left, and asks again what it asked.
pub(super) fn on_left(machine: &mut Machine, decision: &mut Decision) {
    let left = std::mem::take(&mut machine.left);
    if left.is_empty() {
        return;
    }
    machine.attention = Attention::Awake;
    machine.queue.show_with_results();
    decision.commit.state = Some(AgentState::Waiting);
    decision.after.push(Effect::Begin);
    decision.after.push(Effect::AskAgain(left));
}

/// Handles the end of a tool call.
pub(super) fn on_call_done(
    machine: &mut Machine,
    decision: &mut Decision,
    key: CallKey,
    ended: Option<Result<Answered, ToolError>>,
) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let running = |call: &OpenToolCall| call.key == key && call.phase == CallPhase::Running;
    let Some(index) = acting.calls.iter().position(running) else {
        return;
    };
    let mut facts = RanFacts::default();
    let outcome = match ended {
        Some(Ok(Answered { content, then, ran })) => {
            facts = ran;
            let mut is_error = false;
            match then {
                Consequence::Nothing => {}
                Consequence::Mode(mode) => {
                    plan::change_mode(&mut machine.life, &machine.rights, decision, mode);
                }
                // The result is known once the operations are committed.
                Consequence::Operations(ops) => {
                    let operation = |op| Operation {
                        call: Some(key),
                        op,
                    };
                    let operations = ops.into_iter().map(operation).collect();
                    let operations = hooking::operate(machine, decision, index, operations);
                    return decision
                        .commit
                        .operations
                        .extend(operations.into_iter().flatten());
                }
                Consequence::MailShown(numbers) => {
                    machine.queue.shown(&numbers);
                    // Two calls may have shown the same mail.
                    machine.took.extend(numbers);
                    machine.took.sort_unstable();
                    machine.took.dedup();
                }
                Consequence::ToolFirst {
                    tool,
                    input,
                    intent,
                } => {
                    acting.calls[index].use_first(tool, input, intent);
                    return advance(machine, decision);
                }
                Consequence::Refused { refusal, failed } => {
                    match machine.rights.rights.liftable(refusal) {
                        Some(refusal) => {
                            let ended = (texts(&content), failed);
                            return on_refused(machine, decision, index, ended, refusal);
                        }
                        None => is_error = failed,
                    }
                }
                Consequence::Began {
                    id,
                    description,
                    output,
                } => {
                    let kind = RunKind::Shell;
                    let change = RunChangeKind::Began {
                        call: key,
                        kind,
                        description,
                        output,
                    };
                    decision.commit.runs.push(RunChange { id, change });
                    decision.after.push(Effect::StartRun(id));
                }
            }
            CallOutcome {
                content: content.into(),
                is_error,
            }
        }
        Some(Err(ToolError::Tell(what))) => failure(what),
        Some(Err(ToolError::Stop(what))) => return tool_stops(machine, decision, index, &what),
        None if acting.stopping.is_some() => failure(INTERRUPTED),
        None => failure(CRASHED),
    };
    if acting.stopping.is_none() && acting.calls[index].after_first(&outcome) {
        return advance(machine, decision);
    }
    end_call(machine, decision, index, outcome, facts);
}

/// Ends a call that ran.
pub(super) fn end_call(
    machine: &mut Machine,
    decision: &mut Decision,
    index: usize,
    outcome: CallOutcome,
    facts: RanFacts,
) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let key = acting.calls[index].key;
    acting.calls[index].done(decision, outcome.clone());
    if acting.stopping.is_none() && hooking::after(machine, decision, index, &outcome, facts) {
        return advance(machine, decision);
    }
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    // While other calls are open, a crash must not make this outcome unknown. The last outcome goes
    // into the results entry at once, which saves a commit.
    if !acting.all_done() {
        decision.commit.calls.push(CallChange {
            key,
            change: CallChangeKind::Done(outcome),
        });
    }
    advance(machine, decision);
}

/// Handles the end of a command to which the sandbox has refused something: a person is asked
/// whether it may run again, if one can be.
fn on_refused(
    machine: &mut Machine,
    decision: &mut Decision,
    index: usize,
    (told, failed): (String, bool),
    refusal: SandboxRefusal,
) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let (rights, call) = (&machine.rights, &mut acting.calls[index]);
    let mode = rights.rights.mode();
    let is_asked = rights.approver != Approver::Nobody
        && acting.stopping.is_none()
        && !matches!(mode, PermissionMode::Plan | PermissionMode::DontAsk);
    if is_asked {
        let why = prompt::sandbox::question(&refusal);
        call.refuse(refusal, told);
        ask(machine, decision, index, why);
        return advance(machine, decision);
    }
    let why = prompt::sandbox::refused(&refusal, mode);
    let outcome = CallOutcome {
        is_error: failed,
        ..failure(format!("{}\n{why}", told.trim_end()))
    };
    if acting.stopping.is_none() && acting.calls[index].after_first(&outcome) {
        return advance(machine, decision);
    }
    end_call(machine, decision, index, outcome, RanFacts::default());
}

/// Ends the run because a tool asks for it.
pub(super) fn tool_stops(machine: &mut Machine, decision: &mut Decision, index: usize, what: &str) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let call = &mut acting.calls[index];
    call.done(decision, failure(what));
    let (key, message) = (call.key, format!("{}: {what}", call.tool));
    if !acting.all_done() {
        decision.commit.calls.push(CallChange {
            key,
            change: CallChangeKind::Done(failure(what)),
        });
    }
    stop(
        machine,
        decision,
        Outcome::Failed(Fault {
            class: FaultClass::Tool,
            status: None,
            message,
        }),
    );
}

/// Starts no further call; when the running ones have ended, the run ends with `outcome`.
pub(super) fn stop(machine: &mut Machine, decision: &mut Decision, outcome: Outcome) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    machine.left.clear();
    let told_to_end = acting.stopping.is_some();
    // The first reason counts.
    acting.stopping.get_or_insert(outcome);
    let (mut running, mut hooked) = (false, false);
    for call in &mut acting.calls {
        call.close_question(QuestionChangeKind::Withdrawn, decision);
        match call.phase {
            CallPhase::Waiting | CallPhase::Asked(_) => {
                let told = call.with_output(NOT_RUN.to_owned());
                call.phase = CallPhase::Done(failure(told));
            }
            CallPhase::Hooked(..) => {
                call.hooks_stopped();
                hooked = true;
            }
            CallPhase::Running => running = true,
            CallPhase::Done(_) => {}
        }
    }
    if hooked || acting.batch.stopped() {
        decision.after.push(Effect::AbortHooks);
    }
    match running {
        // Told once: another signal would start their grace period again.
        true if told_to_end => {}
        true => decision.after.push(Effect::AbortCalls),
        false => advance(machine, decision),
    }
}

/// Sends all outcomes to the model in one message, in order.
pub(super) fn answer_model(machine: &mut Machine, decision: &mut Decision) {
    if hooking::batch(machine, decision) {
        return;
    }
    let State::Acting(mut acting) = std::mem::replace(&mut machine.state, State::Idle) else {
        return;
    };
    let limits = machine.rights.limits.repeats;
    let mut repeated = match acting.stopping {
        None => machine.repetition.count(&acting.calls, limits),
        Some(_) => Repeated::No,
    };
    let said = hooking::said(&mut acting);
    let results = acting
        .calls
        .into_iter()
        .filter_map(|call| match call.phase {
            CallPhase::Done(outcome) => Some(result(call.id, &outcome)),
            _ => None,
        });
    let mut content: Vec<ContentBlock> = results.collect();
    content.extend(said.into_iter().map(ContentBlock::text));
    let entry = machine.next_seq;
    let took = std::mem::take(&mut machine.took).into_iter();
    decision
        .commit
        .mail
        .extend(took.map(|number| TakenMail { number, entry }));
    if let Repeated::Notice(notice) = &repeated {
        content.push(ContentBlock::text(notice.clone()));
    }
    if acting.stopping.is_none() {
        let before = content.len();
        // The tool boundary: prompts and mail that have come are shown with the results.
        let joins = prompts::joins(machine);
        content.extend(machine.queue.prompts_for_results(joins));
        content.extend(turn::show_news(machine, decision));
        // Somebody has said something new, which must be answered and may help.
        if content.len() > before {
            machine.repetition.clear();
            repeated = Repeated::No;
        }
    }
    turn::add_entry(
        machine,
        decision,
        EntryKind::Results,
        Message {
            role: Role::User,
            content,
        },
        None,
    );
    match (acting.stopping, repeated) {
        (Some(outcome), _) => turn::end_run(machine, decision, outcome),
        (None, _) if machine.is_leaving() => turn::end_run(machine, decision, Outcome::Completed),
        (None, Repeated::Stop(reason)) => {
            let outcome = repeats_itself(machine.life, reason);
            turn::end_run(machine, decision, outcome);
        }
        (None, Repeated::No | Repeated::Notice(_)) => turn::call_model(machine, decision),
    }
}

/// Returns how a run ends that repeats itself: a person can say what a main agent should do
/// instead, and the agent above can for any other.
fn repeats_itself(life: Life, message: String) -> Outcome {
    match life {
        Life::Root { .. } => Outcome::Paused(Fault {
            class: FaultClass::Repetition,
            status: None,
            message,
        }),
        Life::Sub | Life::Teammate { .. } => Outcome::Partial(Limit::Repetition),
    }
}
