//! Mail for people and programs.

use posse_port::store::Receipt;
use posse_protocol::{
    IdleReason, IdleReport, Mail, MailKind, Notification, Request, RequestKind, Response,
    TaskReport,
};
use serde_json::{Value, json};

use crate::output::time::moment;

/// Returns in one word whether a message was read.
pub(crate) fn state(mail: &Mail) -> &'static str {
    if mail.shown_in.is_some() {
        "shown"
    } else {
        "waits"
    }
}

/// Returns a message to `to` for programs, with its text.
pub(crate) fn object(to: &str, mail: &Mail) -> Value {
    json!({
        "id": mail.id, "to": to, "agent_id": mail.to, "number": mail.number, "from": mail.from.name(),
        "kind": mail.kind, "summary": mail.summary, "text": mail.body, "sent_at": moment(mail.sent_ms),
        "state": state(mail),
    })
}

/// Returns what a message says, in people's words.
pub(crate) fn body(mail: &Mail) -> String {
    typed(mail).unwrap_or_else(|| mail.body.clone())
}

/// Returns the same of a message whose body is for programs; none of another, and of one that cannot
/// be parsed.
fn typed(mail: &Mail) -> Option<String> {
    let of = |kind: RequestKind| kind.asking() == mail.kind || kind.answering() == mail.kind;
    let kind = RequestKind::ALL.into_iter().find(|kind| of(*kind));
    Some(match (mail.kind, kind) {
        (MailKind::Idle, _) => idle(&serde_json::from_str(&mail.body).ok()?),
        (MailKind::Notification, _) => {
            let end: Notification = serde_json::from_str(&mail.body).ok()?;
            let parts = [Some(end.summary), Some(end.result), end.error];
            let parts = parts.into_iter().flatten();
            let parts = parts.filter(|part| !part.trim().is_empty());
            parts.collect::<Vec<_>>().join("\n")
        }
        (asks, Some(kind)) if asks == kind.asking() => {
            let request: Request = serde_json::from_str(&mail.body).ok()?;
            sentence(kind.asked(), &request.text)
        }
        (_, Some(kind)) => {
            let answer: Response = serde_json::from_str(&mail.body).ok()?;
            sentence(kind.answered(answer.approve), &answer.text)
        }
        _ => return None,
    })
}

/// Returns what a member has done before it became idle.
fn idle(report: &IdleReport) -> String {
    let IdleReport {
        reason,
        error,
        answer,
        tasks,
        branch,
        ..
    } = report;
    let what = match reason {
        IdleReason::Available => "idle",
        IdleReason::Interrupted => "interrupted",
        IdleReason::Failed => "failed",
    };
    let words = error.as_deref().unwrap_or(answer);
    let tasks = tasks.iter().map(|task: &TaskReport| {
        let TaskReport {
            id,
            subject,
            status,
        } = task;
        format!("task #{id} {subject}: {}", status.as_str())
    });
    let branch = branch.iter().map(|branch| format!("branch {branch}"));
    let lines = [sentence(what, words)]
        .into_iter()
        .chain(tasks)
        .chain(branch);
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns what happened, with the words that were said about it.
fn sentence(what: &str, words: &str) -> String {
    match words.trim() {
        "" => what.to_owned(),
        words => format!("{what}: {words}"),
    }
}

/// Returns for programs that a message is in an inbox.
pub(crate) fn receipt(receipt: &Receipt) -> Value {
    json!({
        "to": receipt.name, "agent_id": receipt.to, "number": receipt.number,
    })
}

#[cfg(test)]
mod tests {
    use posse_protocol::{AgentId, MailId, Sender};
    use uuid::Uuid;

    use super::*;

    fn told(kind: MailKind, text: &str) -> String {
        let agent = AgentId::from(Uuid::from_u128(7));
        let from = Sender::Agent {
            id: agent,
            name: "dev".into(),
        };
        body(&Mail {
            id: MailId::from(Uuid::from_u128(1)),
            number: 1,
            to: agent,
            from,
            kind,
            summary: String::new(),
            body: text.into(),
            sent_ms: 0,
            shown_in: None,
        })
    }

    #[test]
    fn what_is_for_programs_is_a_sentence_for_people() {
        let idle = r#"{"team":"sums","reason":"available","answer":"It is right now.",
            "tasks":[{"id":1,"subject":"add","status":"completed"}]}"#;
        assert_eq!(
            told(MailKind::Idle, idle),
            "idle: It is right now.\ntask #1 add: completed"
        );
        let failed = r#"{"team":"sums","reason":"failed","error":"no key","answer":"","tasks":[]}"#;
        assert_eq!(told(MailKind::Idle, failed), "failed: no key");
        let id = Uuid::from_u128(2);
        let asked = format!(r#"{{"request_id":"{id}","text":""}}"#);
        assert_eq!(
            told(MailKind::ShutdownRequest, &asked),
            "asked to shut down"
        );
        let no = format!(r#"{{"request_id":"{id}","approve":false,"text":"I work."}}"#);
        assert_eq!(
            told(MailKind::ShutdownResponse, &no),
            "declines to shut down: I work."
        );
        assert_eq!(told(MailKind::Text, idle), idle, "words are left alone");
        assert_eq!(told(MailKind::Idle, "{"), "{", "what cannot be parsed, too");
    }
}
