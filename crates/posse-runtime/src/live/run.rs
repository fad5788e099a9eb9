//! A run, as seen by those that started it or wait for it.
//!
//! A run is either waited for by a call or in the background. If a call waits, the end is the
//! call's result; in the background it is reported by mail. Which of the two is fixed when the last
//! step is about to be committed ([`Run::close`]), because that step contains the mail.

use std::path::PathBuf;
use std::sync::Arc;

use posse_protocol::{AgentId, Notification, RunFacts, RunKind};
use tokio::sync::watch;
use uuid::Uuid;

/// A run of a sub-agent or of a background command.
pub(crate) struct Run {
    /// What is known of it from the start.
    pub(crate) facts: RunFacts,
    /// ID of this run, in the mail that reports its end. A revived agent has another run.
    pub(crate) id: Uuid,
    phase: watch::Sender<RunPhase>,
}

/// Returns the facts of a background command.
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
        place: None,
    }
}

/// Progress of a run.
#[derive(Default)]
struct RunPhase {
    /// True once its first step is stored.
    born: bool,
    /// True if no call waits for it.
    background: bool,
    last_step: LastStep,
    /// Its end, once it is over.
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

    /// Returns the agent that is told of its end.
    pub(crate) fn starter(&self) -> AgentId {
        self.facts.starter
    }

    pub(crate) fn is_agent(&self) -> bool {
        self.facts.kind == RunKind::Agent
    }

    /// Returns true if no call waits for it.
    pub(crate) fn is_background(&self) -> bool {
        self.phase.borrow().background
    }

    /// Returns its end, once it is over.
    pub(crate) fn outcome(&self) -> Option<Arc<Notification>> {
        self.phase.borrow().over.clone()
    }

    /// Notes that it is durable. Returns true the first time.
    pub(crate) fn born(&self) -> bool {
        self.phase
            .send_if_modified(|phase| !std::mem::replace(&mut phase.born, true))
    }

    /// Returns true if its first step is stored.
    pub(crate) fn is_durable(&self) -> bool {
        self.phase.borrow().born
    }

    /// Moves it to the background. Returns false if it is there already or is over. A run that is
    /// just ending is moved if it continues after all.
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

    /// Notes that its last step is about to be committed. Returns true if its starter must be told
    /// by mail, because no call waits.
    pub(crate) fn close(&self) -> bool {
        let mut background = false;
        self.phase.send_modify(|phase| {
            phase.last_step = LastStep::Committing;
            background = phase.background;
        });
        background
    }

    /// Notes that it continues after all. Returns true if that moved it to the background.
    pub(crate) fn reopen(&self) -> bool {
        let mut detached = false;
        self.phase.send_modify(|phase| {
            let last_step = std::mem::take(&mut phase.last_step);
            detached = last_step == LastStep::LetGo && !phase.background;
            phase.background |= detached;
        });
        detached
    }

    /// Ends it, and wakes everyone who waits.
    pub(crate) fn over(&self, end: Notification) {
        self.phase
            .send_modify(|phase| phase.over = Some(Arc::new(end)));
    }

    /// Waits until it is durable; fails with what it came to if it never became so.
    pub(crate) async fn is_born(&self) -> Result<(), Arc<Notification>> {
        let mut seen = self.phase.subscribe();
        // Cannot fail: the sender lives in `self`.
        let _ = seen
            .wait_for(|phase| phase.born || phase.over.is_some())
            .await;
        // Both may be true by now: what was durable was started, even if it has ended since.
        let phase = self.phase.borrow();
        match &phase.over {
            Some(end) if !phase.born => Err(Arc::clone(end)),
            _ => Ok(()),
        }
    }

    /// Waits until it is over, and returns its end.
    pub(crate) async fn ended(&self) -> Arc<Notification> {
        let mut seen = self.phase.subscribe();
        loop {
            if let Some(end) = self.outcome() {
                return end;
            }
            let _ = seen.changed().await;
        }
    }

    /// Waits until it is over or in the background. Returns its end, if it has one.
    pub(crate) async fn let_go(&self) -> Option<Arc<Notification>> {
        let mut seen = self.phase.subscribe();
        let _ = seen
            .wait_for(|phase| phase.background || phase.over.is_some())
            .await;
        self.outcome()
    }
}
