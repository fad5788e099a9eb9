//! Hooks of events that a front end notices, such as a changed file.

use std::sync::{Arc, Weak};

use posse_protocol::AgentId;
use serde_json::{Map, Value, json};

use crate::agent::hook_host::{HookHost, HooksSaid};
use crate::agent::step::HookRequest;
use crate::hook::{HookEvent, Merged};
use crate::session::factory::Factory;

/// Runs hooks of a session, as long as it lives in this process.
#[derive(Clone)]
pub struct SessionHooks {
    factory: Weak<Factory>,
    session: AgentId,
}

impl SessionHooks {
    pub(crate) fn new(factory: &Arc<Factory>, session: AgentId) -> Self {
        Self {
            factory: Arc::downgrade(factory),
            session,
        }
    }

    /// Runs the hooks of an event, and returns what they say; nothing if the session does not live
    /// here. `about` is what matchers are compared with. The end of the session ends them. Nobody
    /// waits for async ones, and front ends alone are told what they say.
    pub async fn run(&self, event: HookEvent, about: &str, own: Map<String, Value>) -> Merged {
        let Some(factory) = self.factory.upgrade() else {
            return Merged::default();
        };
        let Some(session) = factory.registry.session_of(self.session) else {
            return Merged::default();
        };
        let hooks = session.setup.spawning.hooks.now();
        let mut hooks = hooks.matching(event, about).hooks;
        // A repository has no say in what others change.
        if event == HookEvent::ConfigChange && about != "project_settings" {
            hooks.retain(|hook| !hook.origin.of_repository);
        }
        if hooks.is_empty() {
            return Merged::default();
        }
        let main = factory.registry.live_agent(self.session);
        // The main agent of a session whose members are hosted here lives elsewhere.
        let cancel = match &main {
            Some(main) => main.stop.token.child_token(),
            None => factory.supervisor.branch(),
        };
        let posse = json!({
            "agent": session.root,
            "path": main.as_ref().map(|main| &main.path),
            "depth": 0,
        });
        let mut host = HookHost::new(&factory.ports, &session, &session.rights, posse);
        host.sink.stop = cancel.clone();
        let request = HookRequest::of_event(event, hooks, about, Value::Object(own));
        let HooksSaid { merged, beside, .. } = host.run(request, cancel.clone()).await;
        host.let_go(&factory.supervisor, beside);
        merged
    }
}
