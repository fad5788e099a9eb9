//! Replies of the model, and failed calls.

use posse_port::model::{ApiErrorKind, Failure, ModelError, Reply};
use posse_port::store::Charge;
use posse_port::tool::{Intent, ToolError};
use posse_protocol::{
    ContentBlock, EntryKind, Fault, FaultClass, Limit, Message, Missed, Outcome, ReplyFacts, Role,
    StopReason,
};

use crate::agent::step::machine::Departure;
use crate::agent::step::open_calls::OpenCalls;
use crate::agent::step::{Decision, Life, Machine, State, compact, finish, interrupt, tools, turn};

/// Stores a reply and starts its tool calls, or ends the run.
pub(super) fn on_reply(
    machine: &mut Machine,
    decision: &mut Decision,
    (reply, missed): (Reply, Option<Missed>),
    charges: Vec<Charge>,
    intents: Vec<Result<Intent, ToolError>>,
    capped: bool,
) {
    let State::Calling { cancelled } = machine.state else {
        return;
    };
    // A reply that broke off because the context is full does not count as an answer.
    if reply.stop != StopReason::ContextFull {
        machine.compaction.answered();
    }
    machine.run.charge(&charges);
    decision.commit.charges = charges;
    machine.run.heard(&reply.content, Some(&reply.stop));
    let seq = machine.next_seq;
    let facts = ReplyFacts {
        id: reply.id,
        model: reply.model,
        stop: Some(reply.stop.clone()),
        usage: reply.usage,
        missed,
    };
    machine.run.miss(facts.missed.as_ref());
    let acting = OpenCalls::new(seq, &reply.content, intents);
    turn::add_entry(
        machine,
        decision,
        EntryKind::Reply,
        Message::assistant(reply.content),
        Some(facts),
    );
    if acting.is_empty() {
        return match reply.stop {
            _ if cancelled => turn::end_run(machine, decision, Outcome::Interrupted),
            StopReason::PauseTurn => turn::call_model(machine, decision),
            StopReason::MaxTokens if capped => {
                turn::end_run(machine, decision, Outcome::Partial(Limit::Budget))
            }
            StopReason::MaxTokens => {
                turn::end_run(machine, decision, Outcome::Partial(Limit::Output))
            }
            StopReason::ContextFull => compact::on_overfull(machine, decision),
            StopReason::Refusal => turn::end_run(machine, decision, Outcome::Refused),
            StopReason::EndTurn
            | StopReason::StopSequence
            | StopReason::ToolUse
            | StopReason::Other(_) => finish::finish(machine, decision),
        };
    }
    machine.run.tool_uses += acting.len();
    decision.commit.calls.extend(acting.asked());
    machine.state = State::Acting(acting);
    if cancelled {
        interrupt::interrupt(machine, decision);
    } else {
        tools::advance(machine, decision);
    }
}

/// Handles a failed or cancelled call.
pub(super) fn on_failure(
    machine: &mut Machine,
    decision: &mut Decision,
    failure: Failure,
    charges: Vec<Charge>,
) {
    let State::Calling { cancelled } = machine.state else {
        return;
    };
    machine.run.charge(&charges);
    let model = charges
        .last()
        .map(|charge| charge.model.clone())
        .unwrap_or_default();
    decision.commit.charges = charges;
    if let ModelError::Api(error) = &failure.error
        && error.kind == ApiErrorKind::ContextFull
    {
        if cancelled {
            return turn::end_run(machine, decision, Outcome::Interrupted);
        }
        return compact::on_overfull(machine, decision);
    }
    if !matches!(failure.error, ModelError::Cancelled) {
        let fault = Fault::from(&failure.error);
        // A failure that may pass pauses the run, so that it can be continued later.
        let passes = failure.error.retryable();
        let outcome = if passes {
            Outcome::Paused(fault)
        } else {
            Outcome::Failed(fault)
        };
        return turn::end_run(machine, decision, outcome);
    }
    // Text that people have seen is kept, and the model must know that it said it. Half a tool call
    // never happened, and thinking alone says nothing.
    let said = |block: &ContentBlock| {
        !matches!(
            block,
            ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. }
        )
    };
    // A teammate whose process ends repeats the whole reply when it continues.
    if machine.departure != Departure::Suspended && failure.finished.iter().any(said) {
        machine.run.heard(&failure.finished, None);
        let usage = failure.spent.last().copied().unwrap_or_default();
        let facts = ReplyFacts {
            id: String::new(),
            model,
            stop: None,
            usage,
            missed: None,
        };
        let acting = OpenCalls::new(machine.next_seq, &failure.finished, Vec::new());
        turn::add_entry(
            machine,
            decision,
            EntryKind::Reply,
            Message::assistant(failure.finished),
            Some(facts),
        );
        if !acting.is_empty() {
            // A provider accepts no calls without results.
            let results = acting.not_run();
            turn::add_entry(
                machine,
                decision,
                EntryKind::Results,
                Message {
                    role: Role::User,
                    content: results,
                },
                None,
            );
        }
    }
    turn::end_run(machine, decision, Outcome::Interrupted);
}

/// Handles a call that a budget forbids: a main agent's run ends at its limit, a sub-agent pauses.
pub(super) fn on_refused(
    machine: &mut Machine,
    decision: &mut Decision,
    message: String,
    charges: Vec<Charge>,
) {
    let State::Calling { cancelled } = machine.state else {
        return;
    };
    if charges.is_empty() {
        // No attempt was made, so it does not count as a turn.
        machine.run.turns = machine.run.turns.saturating_sub(1);
    }
    machine.run.charge(&charges);
    decision.commit.charges = charges;
    let outcome = match machine.life {
        _ if cancelled => Outcome::Interrupted,
        Life::Root { .. } => Outcome::Partial(Limit::Budget),
        Life::Sub | Life::Teammate { .. } => Outcome::Paused(Fault {
            class: FaultClass::Budget,
            status: None,
            message,
        }),
    };
    turn::end_run(machine, decision, outcome);
}
