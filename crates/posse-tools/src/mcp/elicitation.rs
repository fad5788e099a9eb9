//! What a server asks a person, in its words and in posse's.

use posse_protocol::{Elicitation, ElicitationReply, ElicitationWish};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};

use crate::answer::clip;

/// How long the server's words are, in bytes.
const MOST_TEXT: usize = 4 << 10;
/// How large a form and how long an address are, in bytes.
const MOST_SCHEMA: usize = 64 << 10;

/// Returns what a server asks; none if it is too long or of a kind that is not known.
pub(super) fn elicitation(server: &str, asked: ElicitRequestParams) -> Option<Elicitation> {
    let (message, wish) = match asked {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => {
            let schema = serde_json::to_value(requested_schema).ok()?;
            (message, ElicitationWish::Form { schema })
        }
        ElicitRequestParams::UrlElicitationParams {
            message,
            url,
            elicitation_id,
            ..
        } => {
            // A person is to open it, so it must be one that a browser opens safely.
            let known = reqwest::Url::parse(&url).ok()?;
            matches!(known.scheme(), "http" | "https").then_some(())?;
            let id = Some(elicitation_id);
            (message, ElicitationWish::Url { url, id })
        }
        _ => return None,
    };
    let asked = Elicitation {
        server: server.to_owned(),
        message: clip(&message, MOST_TEXT).to_owned(),
        wish,
    };
    (asked.to_input().get().len() <= MOST_SCHEMA).then_some(asked)
}

/// Returns the answer in the server's words.
pub(super) fn elicited(reply: ElicitationReply) -> ElicitResult {
    match reply {
        ElicitationReply::Accept(None) => ElicitResult::new(ElicitationAction::Accept),
        ElicitationReply::Accept(Some(content)) => {
            ElicitResult::new(ElicitationAction::Accept).with_content(content)
        }
        ElicitationReply::Decline => ElicitResult::new(ElicitationAction::Decline),
        ElicitationReply::Cancel => ElicitResult::new(ElicitationAction::Cancel),
    }
}
