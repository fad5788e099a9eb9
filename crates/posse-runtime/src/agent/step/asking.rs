//! Questions with options that an agent asks a person. The answer is the result of the call; if
//! there is none, the model is told so, and no answer is made up.

use std::sync::Arc;

use posse_port::store::CallOutcome;
use posse_protocol::{Answer, Answerer, Choices, GivenAnswer, QuestionId, RawJson, ToolContent};

use crate::prompt::question;

/// Returns the outcome of a question that nobody is there to answer.
pub(super) fn unasked() -> CallOutcome {
    told(question::nobody_to_choose())
}

/// Returns the outcome of a call whose questions are answered or closed.
pub(super) fn outcome(asked: &RawJson, id: QuestionId, given: &GivenAnswer) -> CallOutcome {
    told(words(asked, id, given))
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
        (Answer::Approve { .. }, _) => question::not_chosen(),
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
