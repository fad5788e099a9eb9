//! Questions that the person at the terminal answers.

use posse_protocol::{AgentId, Command, Question, QuestionId};
use posse_tui::question::Typing;

use super::Controller;
use crate::headless::output_item::OutputItem;
use crate::headless::question_queue::{QuestionQueue, QueueStep};
use crate::output::tame;
use crate::present::question;

/// Returns what the person is asked: how it is answered, and the number of questions that are
/// on the terminal when this one is. `None` if nothing is asked.
pub(crate) fn typing(controller: &Controller) -> Option<(u64, Typing)> {
    let terminal = controller.plan.terminal.as_ref()?;
    let first = terminal.first()?;
    Some((controller.shown, first.typing()))
}

/// Handles what the person has typed.
pub(crate) fn typed(controller: &mut Controller, typed: &str) -> Vec<OutputItem> {
    let asked = self::typing(controller).map(|(_, typing)| typing);
    // Keys that come together are pasted, or a key that is no letter: no clear answer.
    let is_unclear = asked == Some(Typing::Key) && typed.chars().count() != 1;
    let typed = if is_unclear { "" } else { typed };
    let Some(terminal) = &mut controller.plan.terminal else {
        return Vec::new();
    };
    let call = terminal.first().map(|first| first.question().call.clone());
    match terminal.typed(typed) {
        None => Vec::new(),
        Some(QueueStep::Ask(prompt)) => show(controller, prompt, &call.unwrap_or_default()),
        Some(QueueStep::Answered {
            command,
            note,
            rules,
        }) => {
            if let Command::Answer { question, .. } = &command {
                controller.waiting.remove(question);
            }
            controller.pending.push_back(command);
            controller.to_keep.extend(rules);
            let mut items = controller.renderer.note(note);
            items.extend(show_next(controller));
            items
        }
    }
}

/// Handles a question for the person.
pub(super) fn asked(
    controller: &mut Controller,
    agent: AgentId,
    question: Question,
) -> Vec<OutputItem> {
    controller.waiting.insert(question.id);
    let terminal = controller.plan.terminal.as_mut();
    match terminal.is_some_and(|terminal| terminal.ask(agent, question)) {
        true => show_next(controller),
        false => Vec::new(),
    }
}

/// Handles a question that needs no answer any more.
pub(super) fn withdrawn(controller: &mut Controller, question: QuestionId) -> Vec<OutputItem> {
    let terminal = controller.plan.terminal.as_mut();
    if !terminal.is_some_and(|terminal| terminal.withdraw(question)) {
        return Vec::new();
    }
    let note = "→ needs no answer any more: answered elsewhere, or its time is over";
    let mut items = controller.renderer.note(note.into());
    items.extend(show_next(controller));
    items
}

/// Handles the end of the board, which has shown everything until now: the person has left it, or
/// it has failed.
pub(crate) fn board_closed(
    controller: &mut Controller,
    failed: Option<anyhow::Error>,
) -> Vec<OutputItem> {
    let terminal = controller.plan.terminal.as_mut();
    terminal.into_iter().for_each(QuestionQueue::reveal);
    let note = match failed {
        Some(error) => format!("the board cannot be shown: {error:#}"),
        None => {
            "the team works on; `posse board` in another terminal shows it, Ctrl-C stops it".into()
        }
    };
    let mut items = match controller.is_interrupted() {
        true => Vec::new(),
        false => controller.renderer.note(note),
    };
    items.extend(show_next(controller));
    items
}

/// Shows the first open question, if there is one.
pub(crate) fn show_next(controller: &mut Controller) -> Vec<OutputItem> {
    let Some(terminal) = &controller.plan.terminal else {
        return Vec::new();
    };
    let Some(first) = terminal.first() else {
        return Vec::new();
    };
    let (from, call) = (first.from().map(tame), first.question().call.clone());
    let mut question = question::shown(first, from.as_deref());
    if terminal.behind() > 0 {
        question.push_str(&format!(" · {} more after this", terminal.behind()));
    }
    show(controller, question, &call)
}

fn show(controller: &mut Controller, question: String, call: &str) -> Vec<OutputItem> {
    controller.shown += 1;
    controller.renderer.ask(question, call)
}
