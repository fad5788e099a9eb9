//! Lists what a prompt may name, for front ends.

use std::future::ready;
use std::sync::Arc;

use posse_port::tool::{FoundFiles, Tool, ToolContext, ToolError};
use posse_port::{BoxFuture, in_a_line};
use posse_protocol::{EventKind, ListKind, ListedName, Listing, RawJson};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::agent::actor::{Actor, skills};
use crate::live::setup::startable;

/// The tool that finds files.
const FINDS: &str = "Glob";
/// Maximum number of names in a list.
const MOST: usize = 100;

/// Lists names that have this part, in any case.
pub(super) fn list(actor: &Actor, what: ListKind, part: String) {
    let listing: BoxFuture<'static, _> = match what {
        ListKind::Files => match resources(actor, &part) {
            Some(listing) => Box::pin(listing),
            None => Box::pin(files(actor, part.clone())),
        },
        ListKind::Agents => Box::pin(ready(Ok(having(agents(actor), &part)))),
        ListKind::Commands => Box::pin(ready(Ok(having(commands(actor), &part)))),
    };
    let sink = actor.sink.clone();
    // On a task of its own: it waits for the disk, or for a front end that does not read.
    actor.supervisor.start_errand(async move {
        let event = match listing.await {
            Ok((names, left_out)) => EventKind::Listed(Box::new(Listing {
                what,
                part,
                names,
                left_out,
            })),
            Err(error) => EventKind::Warning(format!("nothing is listed: {}", in_a_line(&error))),
        };
        sink.emit(event).await;
    });
}

/// Returns the names that have this part, and how many there are beyond them.
fn having(mut names: Vec<ListedName>, part: &str) -> (Vec<ListedName>, u64) {
    let part = part.to_lowercase();
    names.retain(|listed| listed.name.to_lowercase().contains(&part));
    names.sort_by(|one, other| one.name.cmp(&other.name));
    let left_out = names.len().saturating_sub(MOST);
    names.truncate(MOST);
    (names, left_out as u64)
}

fn agents(actor: &Actor) -> Vec<ListedName> {
    let types = startable(&actor.session.setup);
    let listed = types.iter().map(|kind| ListedName {
        name: kind.name.clone(),
        about: kind.description.clone(),
    });
    listed.collect()
}

/// Returns the skills that a person may call.
fn commands(actor: &Actor) -> Vec<ListedName> {
    let setup = &actor.session.setup;
    let known = setup.spawning.skills.as_ref();
    let known = known.map(|skills| skills.now()).unwrap_or_default();
    let names = known.iter().map(|skill| skill.name.as_str());
    let callable = names.filter_map(|name| skills::callable(actor, name).ok());
    let listed = callable.map(|skill| ListedName {
        name: skill.name.clone(),
        about: skill.description.clone(),
    });
    let policy = actor.machine.rights().policy();
    let servers = actor.advertised.servers.iter();
    let prompts = servers.flat_map(|servers| servers.prompts(&policy));
    let prompts = prompts.map(|found| ListedName {
        name: found.name,
        about: found.prompt.description.unwrap_or_default(),
    });
    listed.chain(prompts).collect()
}

/// Asks a server for its resources, if a part begins with its name and a colon.
fn resources(
    actor: &Actor,
    part: &str,
) -> Option<impl Future<Output = Result<(Vec<ListedName>, u64), ToolError>> + Send + 'static> {
    let (of, _) = part.split_once(':')?;
    let policy = actor.machine.rights().policy();
    let usable = actor.advertised.servers.as_ref()?.usable(&policy);
    let (_, server) = usable.into_iter().find(|(name, _)| *name == of)?;
    let listed = server.list_resources();
    let (of, part) = (of.to_owned(), part.to_owned());
    Some(async move {
        let listed = listed.await;
        let listed = listed.map_err(|failure| ToolError::Tell(format!("{of}: {failure}")))?;
        let names = listed.into_iter().map(|resource| ListedName {
            name: format!("{of}:{}", resource.uri),
            about: resource.description.unwrap_or(resource.name),
        });
        Ok(having(names.collect(), &part))
    })
}

/// Looks for files with the agent's own tool, so that nothing is found that it could not find.
fn files(
    actor: &Actor,
    part: String,
) -> impl Future<Output = Result<(Vec<ListedName>, u64), ToolError>> + Send + 'static {
    let tool = actor.setup.tools.get(FINDS);
    let context = skills::without_call(actor, CancellationToken::new());
    async move {
        let tool = tool.ok_or_else(|| ToolError::Tell(format!("there is no tool {FINDS}")))?;
        let context = judged(&tool, context)?;
        let FoundFiles { paths, left_out } = tool.find_files(part, context).await?;
        let names = paths.into_iter().map(|name| ListedName {
            name,
            about: String::new(),
        });
        Ok((names.collect(), left_out))
    }
}

/// Returns the context with what a search of the whole directory means to do.
fn judged(tool: &Arc<dyn Tool>, context: ToolContext) -> Result<ToolContext, ToolError> {
    let input = RawJson::from(&json!({ "pattern": "*" }));
    let subject = tool.intent(&input, &context.workspace)?.subject;
    Ok(ToolContext { subject, ..context })
}
