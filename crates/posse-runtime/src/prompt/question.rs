//! What a model is told when nobody answers its question.

use posse_protocol::QuestionId;

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
