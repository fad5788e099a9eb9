//! Hooks that an agent is started with: they may keep it from being born, and add to what it reads
//! first.

use posse_protocol::AgentId;
use serde_json::json;

use crate::agent::hook_host::HookHost;
use crate::agent::step::HookRequest;
use crate::hook::HookEvent;
use crate::live::registry::LiveAgent;
use crate::prompt;
use crate::session::error::SpawnError;
use crate::session::factory::Factory;

/// Runs the hooks for the start of an agent of this type. Returns what it is told.
pub(super) async fn run(
    factory: &Factory,
    parent: &LiveAgent,
    agent: AgentId,
    kind: &str,
) -> Result<Option<String>, SpawnError> {
    let event = HookEvent::SubagentStart;
    let session = &parent.session;
    let hooks = session
        .setup
        .spawning
        .hooks
        .now()
        .matching(event, kind)
        .hooks;
    if hooks.is_empty() {
        return Ok(None);
    }
    let posse = json!({
        "agent": agent,
        "parent_path": parent.path,
        "depth": parent.depth + 1,
        "type": kind,
    });
    let host = HookHost::new(&factory.ports, session, &parent.rights, posse);
    let own = json!({ "agent_id": agent, "agent_type": kind });
    let request = HookRequest::of_event(event, hooks, kind, own);
    let said = host.run(request, parent.stop.token.child_token()).await;
    host.let_go(&factory.supervisor, said.beside);
    let said = said.merged;
    let refused = said.ends_run.as_deref().or(said.denied());
    if let Some(why) = refused {
        return Err(SpawnError::Hook(prompt::hook::denied(why)));
    }
    let texts = said.contexts.iter();
    let told: Vec<String> = texts
        .map(|text| prompt::hook::context(event, kind, text))
        .collect();
    Ok((!told.is_empty()).then(|| told.join("\n\n")))
}
