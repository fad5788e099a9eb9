//! A command that is being sent to an agent.

use posse_port::BoxFuture;
use posse_protocol::Command;
use posse_runtime::live::handle::AgentHandle;

/// A send in progress. The agent may wait for its events to be read, so that the loop must not
/// wait for this alone.
pub(crate) struct Sending(BoxFuture<'static, ()>);

impl Sending {
    pub(crate) fn new(handle: &AgentHandle, command: Command) -> Self {
        let handle = handle.clone();
        Self(Box::pin(async move {
            // An agent that is gone closes its events, where it is noticed.
            let _ = handle.send(command).await;
        }))
    }
}

/// Waits until the command is sent, if there is one.
pub(crate) async fn sent(sending: &mut Option<Sending>) {
    if let Some(Sending(sending)) = sending {
        sending.await;
    }
}
