//! What servers give for a person's words: prompts that are called by name, and resources that are
//! named with `@`. It is got while nothing else begins, as skills are prepared.

use std::sync::Arc;
use std::time::Duration;

use posse_permission::Policy;
use posse_port::clock::Clock;
use posse_port::servers::{PromptMessage, ServedPrompt, Server};
use posse_protocol::{Command, ContentBlock, ToolContent};
use tokio_util::sync::CancellationToken;

use crate::agent::actor::Actor;
use crate::agent::actor::skill_queue::{NotServed, ServedWords, SkillDone};
use crate::agent::actor::work::Work;
use crate::agent::step::Input;
use crate::definition::instructions::imports::imports;
use crate::definition::skill::arguments::split;
use crate::definition::tool_name::OF_SERVERS;
use crate::live::servers::AgentServers;
use crate::prompt;

/// How long a server is waited for whose prompt is called.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many resources a prompt can name.
const MOST: usize = 20;

/// A prompt that a person has called, and what they have written after it.
pub(super) struct CalledPrompt {
    pub(super) name: String,
    pub(super) arguments: String,
}

/// A resource that a prompt names.
struct NamedResource {
    server: Arc<dyn Server>,
    of: String,
    uri: String,
}

/// Returns true if a name can be that of a server's prompt.
pub(super) fn is_prompt(actor: &Actor, name: &str) -> bool {
    name.starts_with(OF_SERVERS) && actor.advertised.servers.is_some()
}

/// Gets a prompt from its server.
pub(super) fn call_prompt(
    actor: &mut Actor,
    called: CalledPrompt,
    words: Vec<ContentBlock>,
    work: &mut Work,
) {
    let Some(servers) = actor.advertised.servers.clone() else {
        return;
    };
    let (policy, clock) = (actor.machine.rights().policy(), &actor.ports.clock);
    let clock = Arc::clone(clock);
    begin(actor, work, async move {
        let (of, messages) = messages(&servers, &policy, &*clock, called).await?;
        let mut words = words;
        words.extend(given(&of, messages));
        let warnings = Vec::new();
        Ok(ServedWords { words, warnings })
    });
}

/// Returns what a prompt says, and the name of its server.
async fn messages(
    servers: &AgentServers,
    policy: &Policy,
    clock: &dyn Clock,
    called: CalledPrompt,
) -> Result<(String, Vec<PromptMessage>), NotServed> {
    let CalledPrompt { name, arguments } = called;
    let mut found = servers.prompt(&name, policy);
    if found.is_none() {
        tokio::select! {
            biased;
            () = servers.set.settled() => {}
            () = clock.sleep(PATIENCE) => {}
        }
        found = servers.prompt(&name, policy);
    }
    let Some(found) = found else {
        let known = servers.prompts(policy).into_iter();
        let known: Vec<_> = known.map(|known| known.name).collect();
        return Err(NotServed(prompt::served::no_prompt(&name, &known)));
    };
    let arguments = filled(&found.prompt, &arguments)?;
    let got = found.at.get_prompt(found.prompt.name, arguments).await;
    let messages = got.map_err(|failure| NotServed(format!("/{name}: {failure}")))?;
    Ok((found.server, messages))
}

/// Returns the arguments of a prompt: a word for each, in their order, and the rest for the last.
fn filled(prompt: &ServedPrompt, words: &str) -> Result<Vec<(String, String)>, NotServed> {
    let mut words = split(words);
    let wanted = &prompt.arguments;
    if let Some(last) = wanted.len().checked_sub(1)
        && words.len() > wanted.len()
    {
        let rest = words.split_off(last).join(" ");
        words.push(rest);
    }
    if let Some(missing) = wanted.iter().skip(words.len()).find(|it| it.is_required) {
        let names = wanted.iter().map(|it| match it.is_required {
            true => format!(" <{}>", it.name),
            false => format!(" [{}]", it.name),
        });
        let names: String = names.collect();
        return Err(NotServed(format!(
            "the prompt needs {}; it is called with{names}",
            missing.name
        )));
    }
    let names = wanted.iter().map(|argument| argument.name.clone());
    Ok(names.zip(words).collect())
}

/// Returns what a model reads of a prompt.
fn given(server: &str, messages: Vec<PromptMessage>) -> Vec<ContentBlock> {
    let mut blocks = Vec::new();
    for PromptMessage { is_user, content } in messages {
        match content {
            ToolContent::Text { text } => {
                let text = prompt::served::message(server, is_user, &text);
                blocks.push(ContentBlock::text(text));
            }
            ToolContent::Image { media_type, data } => {
                blocks.push(ContentBlock::Image { media_type, data });
            }
            ToolContent::Tools { .. } => {}
        }
    }
    blocks
}

/// Returns true if a command is a prompt that names resources of servers.
pub(super) fn names_resources(actor: &Actor, command: &Command) -> bool {
    match command {
        Command::Prompt(words) => !named(actor, words).is_empty(),
        _ => false,
    }
}

/// Reads the resources that a prompt names, and returns a prompt that names none.
pub(super) fn bring_resources(
    actor: &mut Actor,
    words: Vec<ContentBlock>,
    work: &mut Work,
) -> Option<Input> {
    let named = named(actor, &words);
    if named.is_empty() {
        return Some(Input::Prompt(words));
    }
    begin(actor, work, async move {
        let (mut words, mut warnings) = (words, Vec::new());
        for NamedResource { server, of, uri } in named {
            match server.read_resource(uri.clone()).await {
                Ok(content) => words.extend(attached(&of, &uri, content)),
                Err(failure) => {
                    warnings.push(format!("@{of}:{uri} is left as text: {failure}"));
                }
            }
        }
        Ok(ServedWords { words, warnings })
    });
    None
}

/// Returns the resources that a prompt names with `@SERVER:URI`. What comes after the first block was
/// piped in, and is not what the person typed.
fn named(actor: &Actor, words: &[ContentBlock]) -> Vec<NamedResource> {
    let (Some(ContentBlock::Text { text }), Some(servers)) =
        (words.first(), &actor.advertised.servers)
    else {
        return Vec::new();
    };
    // What a server has pushed is not what a person names.
    if !text.contains('@') || prompt::served::is_pushed(text) {
        return Vec::new();
    }
    let policy = actor.machine.rights().policy();
    let usable = servers.usable(&policy);
    let resource = |name: String| {
        let (of, uri) = name.split_once(':')?;
        let (_, server) = usable.iter().find(|(name, _)| *name == of)?;
        Some(NamedResource {
            server: Arc::clone(server),
            of: of.to_owned(),
            uri: uri.to_owned(),
        })
    };
    imports(text)
        .into_iter()
        .filter_map(resource)
        .take(MOST)
        .collect()
}

/// Returns what a model reads of a resource.
fn attached(server: &str, uri: &str, content: Vec<ToolContent>) -> Vec<ContentBlock> {
    let mut texts = Vec::new();
    let mut others = Vec::new();
    for content in content {
        match content {
            ToolContent::Text { text } => texts.push(text),
            ToolContent::Image { media_type, data } => {
                others.push(ContentBlock::Image { media_type, data });
            }
            ToolContent::Tools { .. } => {}
        }
    }
    let text = prompt::served::resource(server, uri, &texts.join("\n"));
    let mut blocks = vec![ContentBlock::text(text)];
    blocks.extend(others);
    blocks
}

/// Begins to get something; nothing else begins meanwhile.
fn begin(
    actor: &mut Actor,
    work: &mut Work,
    get: impl Future<Output = Result<ServedWords, NotServed>> + Send + 'static,
) {
    work.skills.cancel = CancellationToken::new();
    let cancel = work.skills.cancel.clone();
    work.skills.work = Some(Box::pin(async move {
        let got = cancel.run_until_cancelled(get).await;
        SkillDone::Served(got.unwrap_or_else(|| Err(NotServed("it was stopped".into()))))
    }));
    actor.machine.set_preparing(true);
}

#[cfg(test)]
mod tests {
    use posse_port::servers::PromptArgument;

    use super::*;

    #[test]
    fn words_are_given_in_order_and_the_rest_to_the_last() {
        let argument = |name: &str, is_required| PromptArgument {
            name: name.into(),
            description: None,
            is_required,
        };
        let prompt = ServedPrompt {
            name: "report".into(),
            description: None,
            arguments: vec![argument("who", true), argument("what", false)],
        };
        let given = |words: &str| {
            let pairs = filled(&prompt, words)?;
            let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
            Ok::<_, NotServed>(pairs.collect::<Vec<_>>())
        };
        assert_eq!(given("ada").unwrap(), ["who=ada"]);
        assert_eq!(
            given("'ada l' all of it").unwrap(),
            ["who=ada l", "what=all of it"]
        );
        let missing = given("").unwrap_err().to_string();
        assert_eq!(
            missing,
            "the prompt needs who; it is called with <who> [what]"
        );
    }
}
