//! The only place that starts tasks. Each belongs to an owner that can stop it: agents to the
//! runtime, tool calls to their agent. Cancellation follows the same tree.

use std::collections::HashSet;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use posse_protocol::AgentId;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Starts and stops the agents of a runtime.
#[derive(Clone, Default)]
pub(crate) struct Supervisor {
    agents: TaskTracker,
    stop: CancellationToken,
    alive: AliveAgents,
}

/// The agents that live here. Locked for a moment only: guards are dropped on any thread, outside
/// of tasks too.
type AliveAgents = Arc<Mutex<HashSet<AgentId>>>;

/// Marks an agent as living here, until it is dropped.
pub(crate) struct AliveGuard {
    agent: AgentId,
    all: AliveAgents,
}

impl Drop for AliveGuard {
    fn drop(&mut self) {
        self.all
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.agent);
    }
}

impl Supervisor {
    /// Returns a token that fires when everything must stop, or earlier for one agent.
    pub(crate) fn branch(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Returns the right to start an agent; none while it lives. The store cannot tell: both would
    /// be the same host to it, and the second would take the first's work for a dead process's.
    pub(crate) fn room_for(&self, agent: AgentId) -> Option<AliveGuard> {
        let mut alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        alive.insert(agent).then(|| AliveGuard {
            agent,
            all: Arc::clone(&self.alive),
        })
    }

    /// Starts an agent. It ends when it is told to, or when the runtime stops; if it panics,
    /// `crashed` runs in its place.
    pub(crate) fn start_agent(
        &self,
        agent: impl Future<Output = ()> + Send + 'static,
        crashed: impl Future<Output = ()> + Send + 'static,
    ) {
        // Before the task is made, which would keep room for it for ever.
        let mut agent = Box::pin(agent);
        self.agents.spawn(async move {
            let ended = poll_fn(|context| {
                // Caught here and not by the task, because `crashed` must run before the tracker
                // counts it as ended.
                let polled = catch_unwind(AssertUnwindSafe(|| agent.as_mut().poll(context)));
                polled.map_or(Poll::Ready(false), |poll| poll.map(|()| true))
            });
            if !ended.await {
                crashed.await;
            }
        });
    }

    /// Starts a side task. It must end when [`branch`](Self::branch)es are cancelled, or soon by
    /// itself. Once everything stops, nothing is started.
    pub(crate) fn start_errand(&self, errand: impl Future<Output = ()> + Send + 'static) {
        if !self.stop.is_cancelled() {
            self.agents.spawn(errand);
        }
    }

    /// Tells every agent to stop, and waits until all have.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.agents.close();
        self.agents.wait().await;
    }
}

/// Running tool calls of one agent; they do not outlive it.
pub(crate) struct Calls<K, T> {
    running: JoinSet<T>,
    /// Keys by task, because a task that panicked returns only its ID.
    keys: Vec<(tokio::task::Id, K)>,
    cancel: CancellationToken,
}

impl<K: Copy, T: Send + 'static> Calls<K, T> {
    pub(crate) fn new() -> Self {
        Self {
            running: JoinSet::new(),
            keys: Vec::new(),
            cancel: CancellationToken::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Starts a call; `make` is given the token that tells it to end.
    pub(crate) fn start<F>(&mut self, key: K, make: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        let task = self.running.spawn(make(self.cancel.child_token()));
        self.keys.push((task.id(), key));
    }

    /// Waits for the next call that ends; the result is none if it panicked or was aborted.
    pub(crate) async fn next(&mut self) -> Option<(K, Option<T>)> {
        let ended = self.running.join_next_with_id().await?;
        self.known(ended)
    }

    /// Returns a call that has ended already, if there is one.
    pub(crate) fn try_next(&mut self) -> Option<(K, Option<T>)> {
        let ended = self.running.try_join_next_with_id()?;
        self.known(ended)
    }

    /// Returns the key and the result of a task that has ended.
    fn known(&mut self, ended: Result<(tokio::task::Id, T), JoinError>) -> Option<(K, Option<T>)> {
        let (id, result) = match ended {
            Ok((id, result)) => (id, Some(result)),
            Err(error) => (error.id(), None),
        };
        let index = self.keys.iter().position(|(task, _)| *task == id)?;
        Some((self.keys.swap_remove(index).1, result))
    }

    /// Tells all running calls to end. Calls started later are not affected.
    pub(crate) fn cancel(&mut self) {
        // Replaced by a new token, which later calls get.
        std::mem::take(&mut self.cancel).cancel();
    }

    /// Aborts calls that did not end when they were told to.
    pub(crate) fn give_up(&mut self) {
        self.running.abort_all();
    }
}
