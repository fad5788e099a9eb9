//! Texts about what agents repeat.

use posse_port::text::line;

use crate::prompt::reminder;

/// Returns what the model is told of a call that fails in the same way again.
pub(crate) fn repeated(tool: &str, count: u32) -> String {
    reminder(&format!(
        "You have called {} {count} times in a row with the same input, and it failed in the same \
         way each time. Repeating it will not help. Change the input, try something else, or end \
         your turn and say what is in your way.",
        line(tool)
    ))
}

/// Returns what a member is told of a team that does nothing but write messages.
pub(crate) fn talking(count: u32) -> String {
    reminder(&format!(
        "The members of this session have written each other {count} messages in a row, and nobody \
         has done anything else. Stop writing messages. Work on a task, or end your turn."
    ))
}
