//! A run, as those see it who have started it or wait for it.

use std::path::PathBuf;
use std::sync::Arc;

use posse_protocol::{AgentId, Notification, RunFacts, RunKind};
use tokio::sync::watch;
use uuid::Uuid;

/// A run of a sub-agent or of a background command.
pub(crate) struct Run {
    pub(crate) facts: RunFacts,
    /// This run, in the mail that tells of its end. An agent that is revived has another.
    pub(crate) id: Uuid,
    phase: watch::Sender<RunPhase>,
}

/// What is known of a command that an agent has in the background.
pub(crate) fn shell_facts(
    id: Uuid,
    starter: AgentId,
    description: String,
    call: String,
    output_file: PathBuf,
) -> RunFacts {
    let (kind, agent_type) = (RunKind::Shell, String::new());
    RunFacts {
        task: id,
        kind,
        agent_type,
        name: None,
        description,
        call,
        starter,
        depth: 0,
        output_file,
    }
}

/// How far it is.
#[derive(Default)]
struct RunPhase {
    /// Whether anything of it is durable.
    born: bool,
    /// Whether nobody waits for it.
    background: bool,
    last_step: LastStep,
    /// What it came to.
    over: Option<Arc<Notification>>,
}

/// How far the step is that may be its last.
#[derive(Clone, Copy, Default, PartialEq)]
enum LastStep {
    #[default]
    None,
    /// It is being committed: it is too late to change who is told.
    Committing,
    /// Somebody wanted to stop waiting when it was too late for that.
    LetGo,
}

impl Run {
    pub(crate) fn new(facts: RunFacts, id: Uuid, background: bool) -> Self {
        Self {
            facts,
            id,
            phase: watch::Sender::new(RunPhase {
                background,
                ..RunPhase::default()
            }),
        }
    }

    pub(crate) fn starter(&self) -> AgentId {
        self.facts.starter
    }

    pub(crate) fn is_agent(&self) -> bool {
        self.facts.kind == RunKind::Agent
    }

    /// Whether nobody waits for it.
    pub(crate) fn is_background(&self) -> bool {
        self.phase.borrow().background
    }

    /// What it came to, once it is over.
    pub(crate) fn outcome(&self) -> Option<Arc<Notification>> {
        self.phase.borrow().over.clone()
    }

    /// It is durable now; true the first time.
    pub(crate) fn born(&self) -> bool {
        self.phase
            .send_if_modified(|phase| !std::mem::replace(&mut phase.born, true))
    }

    /// Whether anything of it is durable.
    pub(crate) fn is_durable(&self) -> bool {
        self.phase.borrow().born
    }

    /// Nobody waits for it any more. False if it was so already, or is over; what is just ending is let
    /// go if it goes on after all.
    pub(crate) fn detach(&self) -> bool {
        self.phase.send_if_modified(|phase| {
            if phase.last_step == LastStep::Committing {
                phase.last_step = LastStep::LetGo;
            }
            let open = phase.last_step == LastStep::None && phase.over.is_none();
            let now = !phase.background && open;
            phase.background |= now;
            now
        })
    }

    /// Its last step is about to be committed: whether its starter must be told by mail.
    pub(crate) fn close(&self) -> bool {
        let mut background = false;
        self.phase.send_modify(|phase| {
            phase.last_step = LastStep::Committing;
            background = phase.background;
        });
        background
    }

    /// It goes on after all; whether it is in the background from now on.
    pub(crate) fn reopen(&self) -> bool {
        let mut detached = false;
        self.phase.send_modify(|phase| {
            let last_step = std::mem::take(&mut phase.last_step);
            detached = last_step == LastStep::LetGo && !phase.background;
            phase.background |= detached;
        });
        detached
    }

    /// It is over.
    pub(crate) fn over(&self, end: Notification) {
        self.phase
            .send_modify(|phase| phase.over = Some(Arc::new(end)));
    }

    /// Waits until it is durable; fails with what it came to if it never became so.
    pub(crate) async fn is_born(&self) -> Result<(), Arc<Notification>> {
        let mut seen = self.phase.subscribe();
        // The sender lives in `self`.
        let _ = seen
            .wait_for(|phase| phase.born || phase.over.is_some())
            .await;
        let phase = self.phase.borrow();
        match &phase.over {
            Some(end) if !phase.born => Err(Arc::clone(end)),
            _ => Ok(()),
        }
    }

    /// Waits until it is over.
    pub(crate) async fn ended(&self) -> Arc<Notification> {
        let mut seen = self.phase.subscribe();
        loop {
            if let Some(end) = self.outcome() {
                return end;
            }
            let _ = seen.changed().await;
        }
    }

    /// Waits until nobody has to wait for it any more: it is over, or in the background.
    pub(crate) async fn let_go(&self) -> Option<Arc<Notification>> {
        let mut seen = self.phase.subscribe();
        let _ = seen
            .wait_for(|phase| phase.background || phase.over.is_some())
            .await;
        self.outcome()
    }
}
