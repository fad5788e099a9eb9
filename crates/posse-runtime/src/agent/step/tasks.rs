//! Tasks that are ready or were found.

use posse_protocol::{ContentBlock, Outcome, Task};

use crate::agent::step::machine::Departure;
use crate::agent::step::{Decision, Effect, Ended, Machine, State, finish, turn};
use crate::prompt;

/// Makes an idle teammate look for a task.
pub(super) fn on_tasks_ready(machine: &mut Machine, decision: &mut Decision) {
    let free = matches!(machine.state, State::Idle)
        && machine.is_awake()
        && machine.departure == Departure::Stays;
    if free && machine.is_teammate() && !machine.queue.has_mail() && !machine.queue.has_prompts() {
        machine.state = State::Looking { open: false };
        decision.after.push(Effect::Look { claim: true });
    }
}

/// Handles what was found: a claimed task begins a run of its own; of an unfinished one the agent
/// is reminded once.
pub(super) fn on_tasks_found(
    machine: &mut Machine,
    decision: &mut Decision,
    open: &[Task],
    claimed: Option<Box<Task>>,
) {
    let State::Looking { open: run_open } = machine.state else {
        return;
    };
    machine.owning = !open.is_empty() || claimed.is_some();
    if let Some(task) = claimed {
        if run_open {
            let run = std::mem::take(&mut machine.run);
            decision.after.push(Effect::End(Box::new(Ended {
                outcome: Outcome::Completed,
                run,
            })));
        }
        return turn::begin(
            machine,
            decision,
            vec![ContentBlock::text(prompt::team::claimed(&task))],
        );
    }
    if !run_open {
        machine.state = State::Idle;
        // Mail that came while it looked was queued and began nothing.
        if machine.begins_by_mail() {
            turn::begin(machine, decision, Vec::new());
        }
        return;
    }
    if machine.begins_by_mail() && !machine.queue.has_prompts() {
        return turn::next_turn(machine, decision, Vec::new());
    }
    if !open.is_empty() && !machine.run.reminded {
        machine.run.reminded = true;
        return turn::next_turn(
            machine,
            decision,
            vec![ContentBlock::text(prompt::team::unfinished(open))],
        );
    }
    finish::conclude(machine, decision);
}
