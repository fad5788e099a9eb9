//! What a model and people are told of hooks. What a hook says stands in a frame that it cannot
//! close.

use posse_port::text::neutral;

use crate::hook::HookEvent;
use crate::prompt::reminder;

/// What a model is told of a call that did not run because a hook has ended the run.
pub(crate) const ENDED: &str = "Not run: a hook has ended the run.";
/// Maximum number of characters of what hooks say that a model reads.
const MOST: usize = 10_000;

/// Why something is refused whose hooks were lost.
pub(crate) const LOST: &str = "posse lost track of its hooks";
/// What people are told if a workspace is to be prepared and nothing prepares it.
pub(crate) const NO_SETUP: &str =
    "there are no Setup hooks: --init and --maintenance have nothing to run";

/// Returns why a call is denied.
pub(crate) fn denied(why: &str) -> String {
    match why.trim() {
        "" => "Denied by a hook of the user.".to_owned(),
        why => format!("Denied by a hook of the user: {}", cut(why)),
    }
}

/// Returns why a person is asked.
pub(crate) fn asks(why: &str) -> String {
    match why.trim() {
        "" => "a hook wants a person's approval".to_owned(),
        why => format!("a hook wants a person's approval: {}", cut(why)),
    }
}

/// Returns what a hook objects to, after the fact or at the end of a turn.
pub(crate) fn said(event: HookEvent, about: &str, why: &str) -> String {
    let title = title(event, about);
    let said = match why.trim() {
        "" => "It gave no reason.".to_owned(),
        why => neutral(&cut(why)).to_string(),
    };
    match event {
        HookEvent::Stop | HookEvent::SubagentStop | HookEvent::TeammateIdle => reminder(&format!(
            "A hook of the user ({title}) does not let you end your turn yet:\n{said}"
        )),
        _ => reminder(&format!("A hook of the user ({title}) objects:\n{said}")),
    }
}

/// Returns what a hook adds.
pub(crate) fn context(event: HookEvent, about: &str, text: &str) -> String {
    let title = title(event, about);
    let text = cut(text);
    reminder(&format!(
        "A hook of the user ({title}) says:\n{}",
        neutral(&text)
    ))
}

/// Returns that a call ran with another input.
pub(crate) fn changed_input(tool: &str, call: &str, input: &str) -> String {
    let input = cut(input);
    reminder(&format!(
        "A hook of the user has changed the input of the {tool} call {call}. It is now:\n{}",
        neutral(&input)
    ))
}

/// Returns that a call that was denied may be tried again.
pub(crate) fn may_retry(tool: &str) -> String {
    reminder(&format!(
        "A hook of the user says that you may try the {tool} call again that was denied."
    ))
}

/// Returns why a run has ended, for people.
pub(crate) fn ended_run(event: HookEvent, why: &str) -> String {
    match why.trim() {
        "" => format!("a {event} hook has ended the run"),
        why => format!("a {event} hook has ended the run: {why}"),
    }
}

/// Returns that an agent was held back too often, for people.
pub(crate) fn held_back_too_often(why: &str) -> String {
    format!("it held the agent back as often as it may, and still says:\n{why}")
}

/// Returns why a run waits, for people.
pub(crate) fn deferred(tool: &str, why: &str) -> String {
    match why.trim() {
        "" => format!("a hook has deferred the {tool} call until somebody decides about it"),
        why => format!("a hook has deferred the {tool} call until somebody decides: {why}"),
    }
}

/// Returns an event with the tool that it is about.
fn title(event: HookEvent, about: &str) -> String {
    match about {
        "" => event.to_string(),
        about => format!("{event} of {about}"),
    }
}

/// Returns the beginning of a text.
fn cut(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}\n(cut after {MOST} characters)", &text[..at]),
        None => text.to_owned(),
    }
}

/// Returns why a prompt is not worked on, for people.
pub(crate) fn refused_prompt(event: HookEvent, why: &str) -> String {
    match why.trim() {
        "" => format!("a {event} hook has refused the prompt"),
        why => format!("a {event} hook has refused the prompt: {why}"),
    }
}
