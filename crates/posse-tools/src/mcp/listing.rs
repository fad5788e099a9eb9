//! Lists of a server, page by page, and answers to requests that change nothing.

use std::time::Duration;

use posse_port::clock::Clock;
use posse_port::servers::{PromptArgument, ServedPrompt, ServerFailure};
use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ListPromptsRequest, PaginatedRequestParams, ServerCapabilities, ServerResult,
};
use rmcp::service::{Peer, ServiceError};

use super::facts::short;
use super::send_fault::root;
use crate::processes::within;

/// How long a list of prompts may take: agents wait for it.
const PROMPTS: Duration = Duration::from_secs(3);
/// How many there are, and on how many pages.
const MOST_LISTED: usize = 1000;
const MOST_PAGES: usize = 64;

/// Returns the prompts of a server that has just begun, or says that they have changed.
pub(super) async fn list_prompts(
    peer: &Peer<RoleClient>,
    clock: &dyn Clock,
) -> Result<Vec<ServedPrompt>, ServerFailure> {
    if !says(peer, |capabilities| capabilities.prompts.is_some()) {
        return Ok(Vec::new());
    }
    let ask = |params| {
        let request = ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params));
        async move {
            let sent = within(clock, PROMPTS, peer.send_request(request)).await;
            answered(sent, PROMPTS).map_err(|unanswered| unanswered.failure)
        }
    };
    let read = |answer| match answer {
        ServerResult::ListPromptsResult(page) => Some((page.prompts, page.next_cursor)),
        _ => None,
    };
    let found = list(ask, read).await?.into_iter();
    let served = found.map(|found| ServedPrompt {
        name: found.name,
        description: found.description.as_deref().map(short),
        arguments: found
            .arguments
            .unwrap_or_default()
            .into_iter()
            .map(argument)
            .collect(),
    });
    Ok(served.collect())
}

/// Returns true if a server says that it can do something.
pub(super) fn says(peer: &Peer<RoleClient>, what: impl Fn(&ServerCapabilities) -> bool) -> bool {
    let info = peer.peer_info();
    info.is_some_and(|info| what(&info.capabilities))
}

fn argument(argument: rmcp::model::PromptArgument) -> PromptArgument {
    PromptArgument {
        name: argument.name,
        description: argument.description.as_deref().map(short),
        is_required: argument.required == Some(true),
    }
}

/// Asks for a list, page by page. `read` takes what a page has, and where the next one begins.
pub(super) async fn list<T, F>(
    ask: impl Fn(PaginatedRequestParams) -> F,
    read: impl Fn(ServerResult) -> Option<(Vec<T>, Option<String>)>,
) -> Result<Vec<T>, ServerFailure>
where
    F: Future<Output = Result<ServerResult, ServerFailure>>,
{
    let mut listed = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let (page, next) = read(ask(params).await?).ok_or_else(unreadable)?;
        listed.extend(page);
        let next = next.filter(|next| !next.is_empty() && cursor.as_ref() != Some(next));
        match next {
            Some(next) if listed.len() < MOST_LISTED => cursor = Some(next),
            _ => break,
        }
    }
    listed.truncate(MOST_LISTED);
    Ok(listed)
}

/// Why there is no answer to a request.
pub(super) struct Unanswered {
    pub(super) failure: ServerFailure,
    /// True if nothing may be sent any more.
    pub(super) may_be_closed: bool,
}

/// Returns the answer to a request that was given so much time.
pub(super) fn answered(
    sent: Option<Result<ServerResult, ServiceError>>,
    limit: Duration,
) -> Result<ServerResult, Unanswered> {
    let (failure, may_be_closed) = match sent {
        Some(Ok(result)) => return Ok(result),
        None => (ServerFailure::TimedOut(limit), false),
        Some(Err(ServiceError::McpError(error))) => {
            let refused = ServerFailure::Refused {
                code: error.code.0.into(),
                message: error.message.into_owned(),
            };
            (refused, false)
        }
        Some(Err(error)) => (ServerFailure::Lost(root(&error)), true),
    };
    Err(Unanswered {
        failure,
        may_be_closed,
    })
}

pub(super) fn unreadable() -> ServerFailure {
    ServerFailure::Refused {
        code: 0,
        message: "its answer cannot be read".into(),
    }
}
