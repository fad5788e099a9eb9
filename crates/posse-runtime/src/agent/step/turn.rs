//! Turns of a run: how they begin, continue and end.

use std::sync::Arc;

use posse_port::store::{AgentState, TakenMail};
use posse_protocol::{
    ContentBlock, EntryKind, Limit, Mail, MailKind, Message, Outcome, ReplyFacts, Response, Role,
    StopReason, Usage,
};

use crate::agent::step::machine::{Attention, Departure};
use crate::agent::step::{
    Closing, Decision, Draft, Effect, Ended, Life, Machine, Resting, Run, State,
};
use crate::history::restore::unanswered;
use crate::prompt;

/// Begins a run, with a prompt, with mail, or without either.
pub(super) fn begin(machine: &mut Machine, decision: &mut Decision, words: Vec<ContentBlock>) {
    machine.attention = Attention::Awake;
    machine.run = Run {
        prompted: !words.is_empty(),
        ..Run::default()
    };
    machine.repetition.clear();
    decision.after.push(Effect::Begin);
    next_turn(machine, decision, words);
    let mut entries = decision.commit.entries.iter().rev();
    let said = entries.find(|entry| entry.kind != EntryKind::Model);
    machine.compaction.begun(said);
}

/// Begins the next turn, with new content and waiting mail.
pub(super) fn next_turn(
    machine: &mut Machine,
    decision: &mut Decision,
    mut content: Vec<ContentBlock>,
) {
    content.extend(show_news(machine, decision));
    if !content.is_empty() {
        add_entry(
            machine,
            decision,
            EntryKind::Prompt,
            Message {
                role: Role::User,
                content,
            },
            None,
        );
    }
    call_model(machine, decision);
}

/// Returns what the next entry shows besides: notices, and mail, which the step with that entry
/// marks as taken.
pub(super) fn show_news(machine: &mut Machine, decision: &mut Decision) -> Vec<ContentBlock> {
    let mail = machine.queue.next_mail();
    apply_approval(machine, decision, &mail);
    let entry = machine.next_seq;
    decision
        .commit
        .mail
        .extend(mail.iter().map(|mail| TakenMail {
            number: mail.number,
            entry,
        }));
    let mut notices = std::mem::take(&mut machine.notices);
    if let Some((fingerprint, text)) = machine.offer.take() {
        decision.commit.types = Some(fingerprint);
        notices.push(text);
    }
    notices
        .into_iter()
        .map(ContentBlock::text)
        .chain(prompt::arrivals(&mail))
        .collect()
}

/// Calls the model unless a limit forbids it. The only place that decides to call.
pub(super) fn call_model(machine: &mut Machine, decision: &mut Decision) {
    if machine
        .rights
        .limits
        .turns
        .is_some_and(|most| machine.run.turns >= most)
    {
        return end_run(machine, decision, Outcome::Partial(Limit::Turns));
    }
    machine.run.turns += 1;
    add_model(machine, decision);
    machine.state = State::Calling { cancelled: false };
    decision.commit.state = Some(AgentState::Running);
    decision.after.push(
        machine
            .compaction
            .due()
            .map_or(Effect::CallModel, Effect::Compact),
    );
}

/// Ends the run with `outcome`.
pub(super) fn end_run(machine: &mut Machine, decision: &mut Decision, outcome: Outcome) {
    add_model(machine, decision);
    machine.state = State::Idle;
    machine.compaction.over(machine.unanswered);
    match machine.life {
        Life::Root { .. } => {
            let paused = matches!(outcome, Outcome::Paused(_));
            decision.commit.state = Some(if paused {
                AgentState::Paused
            } else {
                AgentState::Idle
            });
        }
        Life::Teammate { .. } if machine.departure != Departure::Leaving => {
            idle_after(machine, decision, &outcome)
        }
        Life::Sub | Life::Teammate { .. } => {
            decision.commit.closing = Some(Closing {
                outcome: outcome.clone(),
                run: machine.run.clone(),
                unless_mail: false,
            });
            // Mail that waits begins another run.
            machine.queue.leave();
        }
    }
    let run = std::mem::take(&mut machine.run);
    decision
        .after
        .push(Effect::End(Box::new(Ended { outcome, run })));
}

/// Makes a teammate idle after a run that did not end by itself.
pub(super) fn idle_after(machine: &mut Machine, decision: &mut Decision, outcome: &Outcome) {
    if machine.departure == Departure::Suspended {
        return;
    }
    match outcome {
        Outcome::Interrupted if machine.is_awake() => {}
        Outcome::Completed => machine.attention = Attention::Awake,
        _ => {
            // It goes into the history now, so that the next message is not read without it.
            machine.attention = Attention::Muted;
            show_silently(machine, decision);
        }
    }
    let (outcome, text) = (outcome.clone(), machine.run.text.clone());
    decision.commit.resting = Some(Resting {
        outcome,
        unless_mail: false,
        text,
    });
}

/// Adds waiting mail to the history without calling the model.
pub(super) fn show_silently(machine: &mut Machine, decision: &mut Decision) {
    while machine.queue.has_mail() {
        let content = show_news(machine, decision);
        add_silently(machine, decision, content);
    }
}

/// Shows the model something with the next prompt: as an entry of its own if the agent rests, else
/// with the next entry.
pub(super) fn show(machine: &mut Machine, decision: &mut Decision, text: String) {
    match machine.state {
        // What waits for a reply must stay the last entry, so that it is continued.
        State::Idle if !machine.unanswered => {
            add_silently(machine, decision, vec![ContentBlock::text(text)]);
        }
        _ => machine.tell(text),
    }
}

/// Adds an entry that the model need not answer.
fn add_silently(machine: &mut Machine, decision: &mut Decision, content: Vec<ContentBlock>) {
    // Marked as answered, so that a resumed agent does not ask the model for a reply.
    let (usage, stop) = (Usage::default(), Some(StopReason::EndTurn));
    let facts = ReplyFacts {
        id: String::new(),
        model: String::new(),
        stop,
        usage,
        missed: None,
    };
    add_entry(
        machine,
        decision,
        EntryKind::Prompt,
        Message {
            role: Role::User,
            content,
        },
        Some(facts),
    );
}

/// Changes the mode when a plan is approved, in the step with the entry that says so.
pub(super) fn apply_approval(machine: &mut Machine, decision: &mut Decision, mail: &[Mail]) {
    let Life::Teammate { then } = machine.life else {
        return;
    };
    let approves = |mail: &Mail| {
        let said = serde_json::from_str::<Response>(&mail.body);
        mail.kind == MailKind::PlanApprovalResponse && said.is_ok_and(|said| said.approve)
    };
    if mail.iter().any(approves) {
        let mode = then.unwrap_or_else(|| machine.rights.rights.mode_above());
        decision.set_mode(mode);
    }
}

/// Adds the entry about the model that is wanted, if one is. No calls may be open. An agent that is
/// not stored yet gets it with its first prompt.
pub(super) fn add_model(machine: &mut Machine, decision: &mut Decision) {
    if machine.next_seq == 0 {
        return;
    }
    if let Some(model) = machine.models.due() {
        let (message, facts) = model.entry();
        add_entry(machine, decision, EntryKind::Model, message, Some(facts));
    }
}

/// Adds an entry to the step.
pub(super) fn add_entry(
    machine: &mut Machine,
    decision: &mut Decision,
    kind: EntryKind,
    message: Message,
    reply: Option<ReplyFacts>,
) {
    machine.next_seq += 1;
    if kind != EntryKind::Model {
        machine.unanswered = unanswered(kind, reply.as_ref());
    }
    let message = Arc::new(message);
    machine.compaction.added(kind, &message);
    decision.commit.entries.push(Draft {
        kind,
        message,
        reply,
    });
}
