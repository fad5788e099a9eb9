//! Asks a person what does not belong to a tool call, and tells them what was denied.

use std::sync::Arc;

use posse_port::store::NewQuestion;
use posse_protocol::{AgentId, Answer, Denial, Event, EventKind};
use tokio::sync::oneshot;

use crate::live::questions::SideQuestion;
use crate::live::registry::{LiveAgent, Registry};
use crate::live::wakeup::WakeReason;

/// Asks, and waits for the answer. Returns none if nobody can answer any more. If this is dropped,
/// the question is withdrawn.
pub(crate) async fn ask(
    registry: &Arc<Registry>,
    agent: AgentId,
    asked: NewQuestion,
) -> Option<Answer> {
    let (answer, answered) = oneshot::channel();
    let question = SideQuestion { asked, answer };
    registry.questions.put(agent, question);
    // Dropped after the receiver: the agent withdraws what nobody waits for.
    let _asking = WakesAgent { registry, agent };
    registry.wake(agent, WakeReason::Asks);
    answered.await.ok()
}

/// Wakes the agent when it is dropped.
struct WakesAgent<'a> {
    registry: &'a Registry,
    agent: AgentId,
}

impl Drop for WakesAgent<'_> {
    fn drop(&mut self) {
        self.registry.wake(self.agent, WakeReason::Asks);
    }
}

/// Returns who asks, if it is not the main agent: its name, or its path.
pub(crate) fn asks_as(who: &LiveAgent) -> Option<String> {
    let run = who.run.as_ref()?;
    let name = run.facts.name.as_ref();
    Some(name.map_or_else(|| who.path.clone(), ToString::to_string))
}

/// Reports a denial to people.
pub(crate) async fn tell_denied(who: &LiveAgent, agent: AgentId, denial: Denial) {
    let kind = EventKind::Denied(denial);
    who.session.events.send(Event { agent, kind }).await;
}
