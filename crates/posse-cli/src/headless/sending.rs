//! A command on its way to an agent.

use posse_port::BoxFuture;
use posse_protocol::Command;
use posse_runtime::live::handle::AgentHandle;

/// A command on its way. The agent may wait until we have read its events, so we never wait for it alone.
pub(crate) struct Sending(BoxFuture<'static, ()>);

impl Sending {
    pub(crate) fn new(handle: &AgentHandle, command: Command) -> Self {
        let handle = handle.clone();
        Self(Box::pin(async move {
            // An agent that is gone closes its events, and there we notice.
            let _ = handle.send(command).await;
        }))
    }
}

/// Waits until the command has arrived, if there is one.
pub(crate) async fn sent(sending: &mut Option<Sending>) {
    if let Some(Sending(sending)) = sending {
        sending.await;
    }
}
