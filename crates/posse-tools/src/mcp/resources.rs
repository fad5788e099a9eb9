//! Resources and prompts of a server. What they say is asked for when somebody wants it, and not kept.

use std::time::Duration;

use posse_port::servers::{PromptMessage, ServedResource, ServerFailure};
use posse_protocol::ToolContent;
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ListResourcesRequest,
    ReadResourceRequest, ReadResourceRequestParams, Role, ServerCapabilities, ServerResult,
};
use serde_json::Value;

use super::connection::Connection;
use super::content::{bounded, resource, shown};
use super::facts::short;
use super::kept_server::KeptServer;
use super::listing::{answered, list, says, unreadable};
use crate::processes::within;

/// How long a request may take.
const LIMIT: Duration = Duration::from_secs(60);
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
