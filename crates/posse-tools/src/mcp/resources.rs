//! Resources and prompts of a server. What they say is asked for when somebody wants it, and not kept.

use std::time::Duration;

use posse_port::clock::Clock;
use posse_port::servers::{
    PromptArgument, PromptMessage, ServedPrompt, ServedResource, ServerFailure,
};
use posse_protocol::ToolContent;
use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest,
    ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
    Role, ServerCapabilities, ServerResult,
};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;

use super::connection::Connection;
use super::content::{bounded, resource, shown};
use super::facts::short;
use super::kept_server::KeptServer;
use super::send_fault::root;
use crate::processes::within;

/// How long a request may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How long a list of prompts may take: agents wait for it.
const PROMPTS: Duration = Duration::from_secs(3);
/// How many there are, and on how many pages.
const MOST_LISTED: usize = 1000;
const MOST_PAGES: usize = 64;
/// How long the text of a resource or of a prompt's message is, in characters.
const MOST_TEXT: usize = 100_000;
/// How many messages a prompt has.
const MOST_MESSAGES: usize = 100;

/// Returns the resources of a server.
pub(super) async fn list_resources(
    core: &KeptServer,
) -> Result<Vec<ServedResource>, ServerFailure> {
    let connection = core.connected().await?;
    let has_some = |capabilities: &ServerCapabilities| capabilities.resources.is_some();
    if !says(&connection.peer, has_some) {
        return Ok(Vec::new());
    }
    let ask = |params| {
        let request = ListResourcesRequest::with_param(params);
        ask(
            core,
            &connection,
            ClientRequest::ListResourcesRequest(request),
        )
    };
    let read = |answer| match answer {
        ServerResult::ListResourcesResult(page) => Some((page.resources, page.next_cursor)),
        _ => None,
    };
    let found = list(ask, read).await?.into_iter();
    let served = found.map(|found| ServedResource {
        uri: found.uri,
        name: found.name,
        description: found.description.as_deref().map(short),
        media_type: found.mime_type,
    });
    Ok(served.collect())
}

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
fn says(peer: &Peer<RoleClient>, what: impl Fn(&ServerCapabilities) -> bool) -> bool {
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
async fn list<T, F>(
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

/// Reads a resource.
pub(super) async fn read_resource(
    core: &KeptServer,
    uri: String,
) -> Result<Vec<ToolContent>, ServerFailure> {
    let connection = core.connected().await?;
    let params = ReadResourceRequestParams::new(uri);
    let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
    match ask(core, &connection, request).await? {
        ServerResult::ReadResourceResult(read) => {
            let content = read.contents.into_iter().map(resource).collect();
            Ok(bounded(content, MOST_TEXT, None).await)
        }
        _ => Err(unreadable()),
    }
}

/// Returns what a prompt says.
pub(super) async fn get_prompt(
    core: &KeptServer,
    name: String,
    arguments: Vec<(String, String)>,
) -> Result<Vec<PromptMessage>, ServerFailure> {
    let connection = core.connected().await?;
    let arguments = arguments
        .into_iter()
        .map(|(name, value)| (name, Value::String(value)));
    let params = GetPromptRequestParams::new(name).with_arguments(arguments.collect());
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    let ServerResult::GetPromptResult(prompt) = ask(core, &connection, request).await? else {
        return Err(unreadable());
    };
    let mut messages = Vec::new();
    for message in prompt.messages.into_iter().take(MOST_MESSAGES) {
        for content in bounded(vec![shown(message.content)], MOST_TEXT, None).await {
            messages.push(PromptMessage {
                is_user: message.role == Role::User,
                content,
            });
        }
    }
    Ok(messages)
}

/// Makes a request that changes nothing.
async fn ask(
    core: &KeptServer,
    connection: &Connection,
    request: ClientRequest,
) -> Result<ServerResult, ServerFailure> {
    let clock = &*core.target.place.clock;
    let sent = tokio::select! {
        biased;
        sent = within(clock, LIMIT, connection.peer.send_request(request)) => sent,
        why = connection.ended() => return Err(ServerFailure::Lost(why.to_string())),
    };
    answered(sent, LIMIT).map_err(|unanswered| {
        if unanswered.may_be_closed {
            connection.tell_if_closed(&unanswered.failure.to_string());
        }
        unanswered.failure
    })
}

/// Why there is no answer to a request.
struct Unanswered {
    failure: ServerFailure,
    /// True if nothing may be sent any more.
    may_be_closed: bool,
}

/// Returns the answer to a request that was given so much time.
fn answered(
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

fn unreadable() -> ServerFailure {
    ServerFailure::Refused {
        code: 0,
        message: "its answer cannot be read".into(),
    }
}
