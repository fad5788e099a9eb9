//! Prompts that wait for an agent: which they are, and changes of them.

use posse_protocol::{PromptChange, QueuedPrompt};

use crate::agent::step::{Life, Machine};

/// Returns true if prompts that arrive during a run join it, unless somebody decides otherwise.
pub(super) fn joins(machine: &Machine) -> bool {
    matches!(
        machine.life,
        Life::Root { joins: true, .. } | Life::Teammate { .. }
    )
}

/// Returns the prompts that wait for an agent.
pub(crate) fn waiting(machine: &Machine) -> Vec<QueuedPrompt> {
    machine.queue.queued(joins(machine))
}

/// Changes a prompt that waits. Returns the change if no such prompt does.
pub(crate) fn change(
    machine: &mut Machine,
    prompt: u64,
    change: PromptChange,
) -> Result<(), PromptChange> {
    machine.queue.change(prompt, change)
}

/// Returns a number for a prompt that waits elsewhere.
pub(crate) fn next_id(machine: &mut Machine) -> u64 {
    machine.queue.next_id()
}
