//! Task lists, and operations on behalf of a person.

use posse_port::store::{Done, Op, OpResult, Order, Store};
use posse_protocol::{ListId, RealmId, Team};

use crate::config::caller;
use crate::output::time::now_ms;

/// Returns the list of a team.
pub(crate) fn list_of(team: &Team) -> ListId {
    ListId {
        realm: team.realm,
        team: Some(team.name.clone()),
    }
}

/// Performs an operation for the person and returns its result; a refusal is an error. An agent's
/// command is refused, too.
pub(crate) async fn operate(store: &dyn Store, realm: RealmId, op: Op) -> anyhow::Result<Done> {
    caller::only_a_person_can("send, answer or change anything here")?;
    let results: Vec<OpResult> = store
        .operate(Order {
            realm,
            ops: vec![op],
            at_ms: now_ms(),
        })
        .await?;
    match results.into_iter().next() {
        Some(result) => Ok(result?),
        // A store answers every operation, so this is a bug of its engine.
        None => anyhow::bail!("the store did not report the result"),
    }
}

/// Maximum length of a subject in characters: it is shown in lists.
const SUBJECT: usize = 500;

/// Why a text cannot be the subject of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubjectError {
    #[error("a task needs a subject")]
    Empty,
    #[error("a subject must be one line; use --description for the rest")]
    SeveralLines,
    #[error(
        "a subject has at most {limit} characters, not {length}; use --description for the rest",
        limit = SUBJECT
    )]
    TooLong { length: usize },
}

/// Parses a subject, which must be one line and not empty.
pub(crate) fn subject(text: &str) -> Result<String, SubjectError> {
    let subject = text.trim();
    match subject.chars().count() {
        0 => Err(SubjectError::Empty),
        _ if subject.contains(['\n', '\r']) => Err(SubjectError::SeveralLines),
        1..=SUBJECT => Ok(subject.to_owned()),
        length => Err(SubjectError::TooLong { length }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_one_short_line() {
        assert_eq!(subject(" lex it \n"), Ok("lex it".into()));
        assert_eq!(subject(&"é".repeat(500)).unwrap().chars().count(), 500);
        assert!(
            subject(&"é".repeat(501))
                .unwrap_err()
                .to_string()
                .contains("at most 500 characters, not 501")
        );
        assert!(
            subject("a\nb")
                .unwrap_err()
                .to_string()
                .contains("--description")
        );
        assert!(
            subject(" \n")
                .unwrap_err()
                .to_string()
                .contains("needs a subject")
        );
    }
}
