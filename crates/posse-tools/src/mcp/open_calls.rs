//! Calls that a server works on: whom it reaches when it asks something without saying about which.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posse_port::servers::{ServerAsker, ServerCall};
use posse_protocol::{AgentId, Elicitation, ElicitationReply};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The calls that are open, the oldest first.
#[derive(Default)]
pub(super) struct OpenCalls(Arc<Mutex<Vec<Arc<WaitingCaller>>>>);

/// Who waits for a call.
struct WaitingCaller {
    session: AgentId,
    asker: Arc<dyn ServerAsker>,
    /// How many questions of the server wait for an answer.
    asking: Mutex<usize>,
    answered: Notify,
    /// Cancelled when the call is over.
    over: CancellationToken,
}

/// A call that is open until this is dropped.
pub(super) struct OpenCall {
    calls: Arc<Mutex<Vec<Arc<WaitingCaller>>>>,
    caller: Arc<WaitingCaller>,
    _over: DropGuard,
}

impl OpenCalls {
    /// Takes note of a call.
    pub(super) fn open(&self, call: &ServerCall) -> OpenCall {
        let over = CancellationToken::new();
        let caller = Arc::new(WaitingCaller {
            session: call.session,
            asker: Arc::clone(&call.asker),
            asking: Mutex::default(),
            answered: Notify::new(),
            over: over.clone(),
        });
        lock(&self.0).push(Arc::clone(&caller));
        OpenCall {
            calls: Arc::clone(&self.0),
            caller,
            _over: over.drop_guard(),
        }
    }

    /// Asks the latest caller. If callers of several sessions wait, nobody is asked: what one is asked
    /// is not the others' business.
    pub(super) async fn ask(&self, asked: Elicitation) -> ElicitationReply {
        let caller = {
            let calls = lock(&self.0);
            let latest = calls.last();
            let is_alone =
                |latest: &&Arc<WaitingCaller>| calls.iter().all(|it| it.session == latest.session);
            latest.filter(is_alone).map(Arc::clone)
        };
        let Some(caller) = caller else {
            return ElicitationReply::Decline;
        };
        let _asking = AskingGuard::new(&caller);
        let reply = caller.asker.ask(asked);
        let reply = caller.over.run_until_cancelled(reply).await;
        reply.unwrap_or(ElicitationReply::Cancel)
    }
}

/// A question of the server that waits for its answer, until this is dropped.
struct AskingGuard<'a>(&'a WaitingCaller);

impl<'a> AskingGuard<'a> {
    fn new(caller: &'a WaitingCaller) -> Self {
        *lock(&caller.asking) += 1;
        Self(caller)
    }
}

impl Drop for AskingGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.0.asking) -= 1;
        self.0.answered.notify_one();
    }
}

impl OpenCall {
    /// Returns true if a question of the server waits for an answer.
    pub(super) fn is_asking(&self) -> bool {
        *lock(&self.caller.asking) > 0
    }

    /// Waits until a question was answered.
    pub(super) async fn answered(&self) {
        self.caller.answered.notified().await;
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        lock(&self.calls).retain(|it| !Arc::ptr_eq(it, &self.caller));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
