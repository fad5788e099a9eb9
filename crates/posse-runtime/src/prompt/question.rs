//! What a model is told when nobody answers its question.

use posse_protocol::{ChoiceAnswers, ChoiceQuestion, Choices, QuestionId};

/// Nobody is there who could answer.
pub(crate) const NOBODY: &str = "Denied: no one is available any longer to give approval.";

/// Returns what is told when nobody has answered in time.
pub(crate) fn no_answer(question: QuestionId) -> String {
    format!(
        "Denied: nobody answered in time. Continue without it if you can, and say in your answer what \
         was not done and that it needs approval (a person answers such questions with `posse \
         requests answer`; this one was {question})."
    )
}

/// What the model shall do about questions that nobody answered.
const ASSUME: &str = "Decide yourself what serves the task best, and state in your answer what you \
                      assumed.";

/// Returns what is told about questions that nobody is there to answer.
pub(crate) fn nobody_to_choose() -> String {
    format!("Not answered: no one is available to answer questions. {ASSUME}")
}

/// Returns what is told about questions that nobody has answered in time.
pub(crate) fn no_choice_in_time(question: QuestionId) -> String {
    format!(
        "Not answered: nobody answered in time (a person answers such questions with `posse requests \
         answer`; this one was {question}). {ASSUME}"
    )
}

/// Returns what is told about questions that were closed without an answer.
pub(crate) fn not_chosen() -> String {
    format!("Not answered: the questions were closed without an answer. {ASSUME}")
}

/// Returns what is told about questions that a person does not answer.
pub(crate) fn declined(message: &str) -> String {
    format!("Not answered: {message}. Unless that says what to do: {ASSUME}")
}

/// Returns what a person has answered, question by question.
pub(crate) fn chosen(choices: &Choices, given: &ChoiceAnswers) -> String {
    let mut told = "The user answered:\n".to_owned();
    for ChoiceQuestion { question, .. } in &choices.questions {
        let answer = given.answers.get(question);
        let answer = answer.map_or("(no answer)", String::as_str);
        told.push_str(&format!("- {question}\n  → {answer}\n"));
    }
    if let Some(words) = &given.response {
        told.push_str(&format!("The user also says: {words}\n"));
    }
    told
}
