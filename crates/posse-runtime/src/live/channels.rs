//! Channels: servers whose messages become prompts of the session's main agent. Only those that a person
//! has named.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use posse_port::servers::{PushTaker, ServerPush};
use posse_protocol::{AgentId, Command, ContentBlock, Event, EventKind};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::live::servers::AgentServers;
use crate::live::session_events::SessionEvents;
use crate::prompt;

/// Number of messages that wait for the agent.
const MOST: usize = 64;

/// The channels of a session.
pub(crate) struct Channels {
    /// The main agent.
    agent: AgentId,
    /// Servers know them as long as they are here.
    takers: Vec<Arc<dyn PushTaker>>,
    pushed: mpsc::Receiver<PushedMessage>,
    lost: Arc<AtomicUsize>,
}

/// A message, and the server that it comes from.
struct PushedMessage {
    server: String,
    push: ServerPush,
}

/// Takes the messages of a server.
struct ChannelTaker {
    server: String,
    to: mpsc::Sender<PushedMessage>,
    lost: Arc<AtomicUsize>,
}

impl PushTaker for ChannelTaker {
    fn take(&self, push: ServerPush) {
        let server = self.server.clone();
        if self.to.try_send(PushedMessage { server, push }).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Channels {
    /// Listens to servers; none if the session listens to none.
    pub(crate) fn open(agent: AgentId, servers: &AgentServers, names: &[String]) -> Option<Self> {
        let (to, pushed) = mpsc::channel(MOST);
        let lost = Arc::<AtomicUsize>::default();
        let mut takers = Vec::new();
        for (name, server) in servers.set.named(names) {
            let taker: Arc<dyn PushTaker> = Arc::new(ChannelTaker {
                server: name.to_owned(),
                to: to.clone(),
                lost: Arc::clone(&lost),
            });
            server.push_to(&taker);
            takers.push(taker);
        }
        (!takers.is_empty()).then_some(Self {
            agent,
            takers,
            pushed,
            lost,
        })
    }

    /// Hands messages to the main agent, as prompts, until it ends.
    pub(crate) async fn serve(
        mut self,
        agent: mpsc::WeakSender<Box<Command>>,
        events: SessionEvents,
        stop: CancellationToken,
    ) {
        while let Some(Some(message)) = stop.run_until_cancelled(self.pushed.recv()).await {
            let lost = self.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                let what = format!("{lost} messages of channels were lost: too many came at once");
                let (agent, kind) = (self.agent, EventKind::Warning(what));
                events.try_send(Event { agent, kind });
            }
            let Some(agent) = agent.upgrade() else { break };
            let text = prompt::served::pushed(&message.server, &message.push);
            let prompt = Command::Prompt(vec![ContentBlock::text(text)]);
            let sent = stop.run_until_cancelled(agent.send(Box::new(prompt))).await;
            if !matches!(sent, Some(Ok(()))) {
                break;
            }
        }
        drop(self.takers);
    }
}
