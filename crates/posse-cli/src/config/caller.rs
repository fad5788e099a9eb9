//! Who has started this process: a person, or an agent's command.

use std::sync::LazyLock;

use posse_tools::{CALL_MARK, call_above};

use super::environment;
use crate::error::StartedByAgent;

/// Refuses `what` if an agent's command has started this process.
pub(crate) fn only_a_person_can(what: &'static str) -> Result<(), StartedByAgent> {
    match CALL.clone() {
        Some(call) => Err(StartedByAgent { call, what }),
        None => Ok(()),
    }
}

/// Returns true if no agent's command has started this process.
pub(crate) fn is_person() -> bool {
    CALL.is_none()
}

/// Returns true if an agent's command has started a process, or if that cannot be told.
pub(crate) fn is_agents_command(pid: u32) -> bool {
    call_above(pid).map_or(true, |call| call.is_some())
}

/// The call of the agent whose command has started this process. It is looked up once: the
/// processes above are read from `/proc`, and who started this one does not change.
static CALL: LazyLock<Option<String>> = LazyLock::new(|| {
    let above = call_above(std::process::id());
    // Without /proc only the environment is left, which a command can clear.
    above.unwrap_or_else(|_| environment::variable(CALL_MARK))
});
