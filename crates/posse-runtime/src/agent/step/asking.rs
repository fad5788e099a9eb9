//! Questions with options that an agent asks a person. The answer is the result of the call; if
//! there is none, the model is told so, and no answer is made up.

use std::sync::Arc;

use posse_port::store::{CallChange, CallChangeKind, CallOutcome};
use posse_port::tool::{Intent, Subject};
use posse_protocol::{
    Answer, Answerer, Choices, GivenAnswer, Outcome, QuestionId, QuestionKind, RawJson, ToolContent,
};

use crate::agent::step::{Decision, Machine, State, tools};
use crate::prompt::question;

/// Returns the outcome of a question that nobody is there to answer.
pub(super) fn unasked() -> CallOutcome {
    told(question::nobody_to_choose())
}

/// Handles what a person answers to the question of the call at `index`.
pub(super) fn on_choice(
    machine: &mut Machine,
    decision: &mut Decision,
    (index, id): (usize, QuestionId),
    given: GivenAnswer,
) {
    let State::Acting(acting) = &mut machine.state else {
        return;
    };
    let call = &mut acting.calls[index];
    let outcome = told(words(&call.input, id, &given));
    let (key, change) = (call.key, CallChangeKind::Done(outcome.clone()));
    call.not_run(outcome);
    // While other calls are open, a crash must not lose what a person has said.
    if !acting.all_done() {
        decision.commit.calls.push(CallChange { key, change });
    }
    match given.answer {
        Answer::Deny {
            interrupt: true, ..
        } => tools::stop(machine, decision, Outcome::Interrupted),
        Answer::Deny { .. } | Answer::Allow { .. } => tools::advance(machine, decision),
    }
}

/// Returns what the model is told about its questions.
fn words(asked: &RawJson, id: QuestionId, given: &GivenAnswer) -> String {
    match (&given.answer, given.by) {
        (Answer::Allow { input, .. }, _) => {
            let choices = Choices::read(asked).ok();
            let answers = choices.as_ref().zip(input.as_ref());
            let answers = answers.and_then(|(choices, input)| choices.answered(input).ok());
            match choices.zip(answers) {
                Some((choices, answers)) => question::chosen(&choices, &answers),
                // A yes to a question that is not about yes or no.
                None => question::not_chosen(),
            }
        }
        (Answer::Deny { message, .. }, Answerer::Person) => question::declined(message),
        (Answer::Deny { .. }, Answerer::Nobody) => question::no_choice_in_time(id),
    }
}

fn told(text: String) -> CallOutcome {
    CallOutcome {
        content: Arc::new([ToolContent::text(text)]),
        is_error: false,
    }
}
