//! Resources and prompts of a server. They are asked for when somebody wants them, and not kept.

use std::time::Duration;

use posse_port::servers::{
    PromptArgument, PromptMessage, ServedPrompt, ServedResource, ServerFailure,
};
use posse_protocol::ToolContent;
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest,
    ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
    Role, ServerCapabilities, ServerResult,
};
use serde_json::Value;

use super::connection::Connection;
use super::content::{bounded, resource, shown};
use super::facts::short;
use super::kept_server::KeptServer;
use super::send_fault::root;
use crate::processes::within;

/// How long a request may take.
const LIMIT: Duration = Duration::from_secs(60);
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
    let mut listed = Vec::new();
    let has_some = |capabilities: &ServerCapabilities| capabilities.resources.is_some();
    list(
        core,
        has_some,
        |answer| {
            let ServerResult::ListResourcesResult(page) = answer else {
                return None;
            };
            listed.extend(page.resources.into_iter().map(|found| ServedResource {
                uri: found.uri,
                name: found.name,
                description: found.description.as_deref().map(short),
                media_type: found.mime_type,
            }));
            Some((listed.len(), page.next_cursor))
        },
        |params| ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params)),
    )
    .await?;
    listed.truncate(MOST_LISTED);
    Ok(listed)
}

/// Returns the prompts of a server.
pub(super) async fn list_prompts(core: &KeptServer) -> Result<Vec<ServedPrompt>, ServerFailure> {
    let mut listed = Vec::new();
    let has_some = |capabilities: &ServerCapabilities| capabilities.prompts.is_some();
    list(
        core,
        has_some,
        |answer| {
            let ServerResult::ListPromptsResult(page) = answer else {
                return None;
            };
            listed.extend(page.prompts.into_iter().map(|found| {
                ServedPrompt {
                    name: found.name,
                    description: found.description.as_deref().map(short),
                    arguments: found
                        .arguments
                        .unwrap_or_default()
                        .into_iter()
                        .map(argument)
                        .collect(),
                }
            }));
            Some((listed.len(), page.next_cursor))
        },
        |params| ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params)),
    )
    .await?;
    listed.truncate(MOST_LISTED);
    Ok(listed)
}

fn argument(argument: rmcp::model::PromptArgument) -> PromptArgument {
    PromptArgument {
        name: argument.name,
        description: argument.description.as_deref().map(short),
        is_required: argument.required == Some(true),
    }
}

/// Asks for a list, page by page. `read` takes a page, and says how many there are and what is next.
async fn list(
    core: &KeptServer,
    has_some: impl Fn(&ServerCapabilities) -> bool,
    mut read: impl FnMut(ServerResult) -> Option<(usize, Option<String>)>,
    ask_for: impl Fn(PaginatedRequestParams) -> ClientRequest,
) -> Result<(), ServerFailure> {
    let connection = core.connected().await?;
    let info = connection.peer.peer_info();
    if !info.is_some_and(|info| has_some(&info.capabilities)) {
        return Ok(());
    }
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let answer = ask(core, &connection, ask_for(params)).await?;
        let (count, next) = read(answer).ok_or_else(unreadable)?;
        let next = next.filter(|next| !next.is_empty() && cursor.as_ref() != Some(next));
        match next {
            Some(next) if count < MOST_LISTED => cursor = Some(next),
            _ => break,
        }
    }
    Ok(())
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
    let answer = tokio::select! {
        biased;
        answer = within(&*core.target.place.clock, LIMIT, connection.peer.send_request(request)) => answer,
        why = connection.ended() => return Err(ServerFailure::Lost(why.to_string())),
    };
    match answer {
        None => Err(ServerFailure::TimedOut(LIMIT)),
        Some(Ok(result)) => Ok(result),
        Some(Err(rmcp::service::ServiceError::McpError(error))) => Err(ServerFailure::Refused {
            code: error.code.0.into(),
            message: error.message.into_owned(),
        }),
        Some(Err(error)) => {
            let why = root(&error);
            connection.tell_if_closed(&why);
            Err(ServerFailure::Lost(why))
        }
    }
}

fn unreadable() -> ServerFailure {
    ServerFailure::Refused {
        code: 0,
        message: "its answer cannot be read".into(),
    }
}
