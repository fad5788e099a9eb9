//! Mail that has arrived.

use posse_port::store::AgentState;
use posse_protocol::{Mail, MailKind};

use crate::agent::step::machine::Attention;
use crate::agent::step::{Decision, Machine, State, interrupt, turn};

/// Queues mail, and begins or continues a run with it if the agent may.
pub(super) fn on_mail(machine: &mut Machine, decision: &mut Decision, mut mail: Vec<Mail>) {
    // Mail that an open call shows stays in the store until all calls are answered; it must not be
    // shown twice.
    mail.retain(|mail| !machine.took.contains(&mail.number));
    let interrupts = note_signals(machine, &mail);
    machine.queue.post(mail);
    if interrupts {
        return mute(machine, decision);
    }
    if !machine.queue.has_mail() {
        return;
    }
    match machine.state {
        State::Idle if machine.begins_by_mail() => turn::begin(machine, decision, Vec::new()),
        State::Waiting => turn::next_turn(machine, decision, Vec::new()),
        _ => {}
    }
}

/// Returns true if the mail contains an interruption. A message after it wakes the agent again.
pub(super) fn note_signals(machine: &mut Machine, mail: &[Mail]) -> bool {
    if !machine.is_teammate() || mail.is_empty() {
        return false;
    }
    let signal = |mail: &Mail| mail.kind == MailKind::Interruption;
    let muted = mail.last().is_some_and(signal) || machine.is_leaving();
    machine.attention = if muted {
        Attention::Muted
    } else {
        Attention::Awake
    };
    mail.iter().any(signal)
}

/// Interrupts the agent because of mail. Waiting mail goes into its history and begins nothing.
pub(super) fn mute(machine: &mut Machine, decision: &mut Decision) {
    match machine.state {
        State::Idle if machine.begins_by_mail() => turn::begin(machine, decision, Vec::new()),
        State::Idle => {
            turn::show_silently(machine, decision);
            decision.commit.state = Some(AgentState::Idle);
        }
        _ => interrupt::interrupt(machine, decision),
    }
}
