//! A skill that a sub-agent follows.

use posse_port::store::{AgentState, CallKey};
use posse_protocol::{
    ContentBlock, EntryKind, Fault, FaultClass, Message, Outcome, ReplyFacts, Role, StopReason,
    Usage,
};

use crate::agent::step::machine::Attention;
use crate::agent::step::{Decision, Delegated, Effect, Machine, Run, State, turn};

/// Begins a run in which a sub-agent follows a skill.
pub(super) fn on_delegate(
    machine: &mut Machine,
    decision: &mut Decision,
    content: Vec<ContentBlock>,
) {
    if !matches!(machine.state, State::Idle) {
        let message = "another run started before the skill was ready; call it again".to_owned();
        let fault = Fault {
            class: FaultClass::Busy,
            status: None,
            message,
        };
        return decision.after.push(Effect::Refuse(Outcome::Failed(fault)));
    }
    machine.attention = Attention::Awake;
    machine.run = Run::default();
    decision.after.push(Effect::Begin);
    let key = CallKey {
        seq: machine.next_seq,
        ordinal: 0,
    };
    turn::add_entry(
        machine,
        decision,
        EntryKind::Prompt,
        Message {
            role: Role::User,
            content,
        },
        None,
    );
    machine.state = State::Delegating;
    decision.commit.state = Some(AgentState::Waiting);
    decision.after.push(Effect::Delegate(key));
}

/// Ends the run with the sub-agent's answer; the model sees it with the next prompt.
pub(super) fn on_delegated(machine: &mut Machine, decision: &mut Decision, delegated: Delegated) {
    if !matches!(machine.state, State::Delegating) {
        return;
    }
    let Delegated {
        outcome,
        text,
        told,
    } = delegated;
    // Marked as answered, so that a resumed session does not ask the model for a reply.
    let (usage, stop) = (Usage::default(), Some(StopReason::EndTurn));
    let facts = ReplyFacts {
        id: String::new(),
        model: String::new(),
        stop,
        usage,
        missed: None,
    };
    turn::add_entry(
        machine,
        decision,
        EntryKind::Prompt,
        Message::user(told),
        Some(facts),
    );
    machine.run.text = text;
    turn::end_run(machine, decision, outcome);
}
