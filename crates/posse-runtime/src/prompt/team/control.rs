//! Typed messages between members: what they mean, and how they are answered.

use posse_protocol::{Mail, MailKind, Request, Response, Sender};

use posse_port::text::line;

/// A typed message as posse explains it, with the sender's text.
pub(crate) struct Spoken {
    /// Text before the frame.
    pub(crate) preface: String,
    /// ID of the request.
    pub(crate) request: Option<String>,
    /// The sender's text, to be framed.
    pub(crate) text: String,
}

/// Returns what a typed message says; none for plain text, and for what cannot be parsed.
pub(crate) fn spoken(mail: &Mail) -> Option<Spoken> {
    let from = match &mail.from {
        Sender::User => "The user".to_owned(),
        Sender::Agent { name, .. } => line(name),
    };
    let request = || serde_json::from_str::<Request>(&mail.body).ok();
    let response = || serde_json::from_str::<Response>(&mail.body).ok();
    let (preface, id, text) = match mail.kind {
        MailKind::ShutdownRequest => {
            let Request { request_id, text } = request()?;
            let preface = format!(
                "{from} asks you to shut down. Leave your work in order, then answer with \
                 SendMessage to `team-lead`, message {{\"type\": \"shutdown_response\", \
                 \"request_id\": \"{request_id}\", \"approve\": true}}; or with false and a \
                 \"reason\" if you cannot stop yet."
            );
            (preface, Some(request_id), text)
        }
        MailKind::PlanApprovalRequest => {
            let Request { request_id, text } = request()?;
            let preface = format!(
                "{from} has submitted a plan, and changes nothing until you answer with \
                 SendMessage, message {{\"type\": \"plan_approval_response\", \"request_id\": \
                 \"{request_id}\", \"approve\": true}}; or with false and \"feedback\" that says \
                 what to change."
            );
            (preface, Some(request_id), text)
        }
        MailKind::ShutdownResponse => {
            let Response {
                request_id,
                approve,
                text,
            } = response()?;
            let preface = match approve {
                true => format!("{from} agrees to shut down and leaves the team."),
                false => format!("{from} does not shut down yet."),
            };
            (preface, Some(request_id), text)
        }
        MailKind::PlanApprovalResponse => {
            let Response {
                request_id,
                approve,
                text,
            } = response()?;
            let preface = match approve {
                true => format!(
                    "{from} has approved your plan: carry it out. You may change things now."
                ),
                false => format!(
                    "{from} has not approved your plan. Change nothing; improve the plan and \
                     submit it with ExitPlanMode."
                ),
            };
            (preface, Some(request_id), text)
        }
        MailKind::Interruption => {
            let preface = format!(
                "{from} interrupted you and stopped what you were doing. Do not continue it unless \
                 told to."
            );
            (preface, None, mail.body.clone())
        }
        MailKind::Text | MailKind::Idle | MailKind::Notification | MailKind::Dismissal => {
            return None;
        }
    };
    Some(Spoken {
        preface,
        request: id.map(|id| id.to_string()),
        text,
    })
}
