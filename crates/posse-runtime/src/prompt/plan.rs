//! Plan mode, as a main agent or a planning sub-agent is told of it.

use posse_port::text::neutral;
use posse_protocol::PermissionMode;

use crate::prompt::place::reminder;

/// What plan mode means, and how it ends.
pub(crate) const RULES: &str = "You are in plan mode: look, and change nothing. Submit your plan with \
                                ExitPlanMode; you may change things once it is approved.";

/// What is told of a plan that is handed in outside plan mode.
pub(crate) const NOT_ON: &str =
    "Nothing was submitted: you are not in plan mode. Carry out what was approved.";

/// What is told of a plan if nobody can approve it.
pub(crate) const NOBODY: &str = "Not submitted: no one is available to approve a plan. You stay in plan mode: change nothing, and \
     end your turn with the plan as your answer.";

/// Returns that plan mode has begun.
pub(crate) fn begun() -> String {
    reminder(RULES)
}

/// Returns that plan mode has ended without a plan that was approved.
pub(crate) fn ended(mode: PermissionMode) -> String {
    reminder(&format!(
        "Plan mode is off: the permission mode is {mode}. You may change things now."
    ))
}

/// Returns that a plan is approved, with the text that was approved if a person edited it. `mode` is
/// none for an agent that does not carry it out itself.
pub(crate) fn approved(edited: Option<&str>, mode: Option<PermissionMode>) -> String {
    let then = match mode {
        Some(mode) => format!(
            "carry it out. You may change things now (permission mode {mode}). It is kept as the note \
             `plan` of this session."
        ),
        None => "end your turn with it as your answer. You change nothing yourself.".to_owned(),
    };
    match edited {
        None => format!("The user has approved your plan: {then}"),
        Some(plan) => format!(
            "The user has edited your plan and approved it: {then} The approved plan:\n\n{plan}"
        ),
    }
}

/// Returns that a plan is not approved, and what a person says about it.
pub(crate) fn rejected(feedback: &str) -> String {
    format!(
        "The user has not approved your plan. Change nothing; improve the plan and submit it with \
         ExitPlanMode. Feedback:\n\n{feedback}"
    )
}

/// Returns the approved plan for an agent whose history is gone.
pub(crate) fn kept(plan: &str) -> String {
    format!(
        "The plan that the user approved last, unless it is done (note `plan`):\n{}\n",
        neutral(plan.trim_end())
    )
}
