//! What an agent has under way.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use posse_port::BoxFuture;
use posse_port::model::{Failure, Reply};
use posse_port::store::CallKey;
use posse_port::tool::{NewRun, RunReport, ToolError, ToolOutput};
use posse_protocol::Command;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::actor::skill_queue::{SkillDone, SkillQueue};
use crate::agent::call_cost::CallReservation;
use crate::agent::side_query::SideReply;
use crate::agent::step::{CompactionRequest, Input};
use crate::govern::{RunPermit, Ticket, WarmupLead};
use crate::live::wakeup::WakeReasons;
use crate::supervise::Calls;

pub(super) type Ran = Result<ToolOutput, ToolError>;

/// What is under way.
pub(super) struct Work {
    /// What is to be looked at before anything else.
    pub(super) inputs: VecDeque<Input>,
    /// Whether it may call at once, as far as its siblings are concerned; from before a commit until after it.
    pub(super) entry: Option<Ticket>,
    pub(super) model: ModelWork,
    /// How the history is to be compacted before the next call.
    pub(super) compaction_request: Option<CompactionRequest>,
    pub(super) cancel_model: CancellationToken,
    pub(super) calls: Calls<CallKey, Ran>,
    /// What calls have begun and nobody follows yet, with the model's ids of the calls.
    pub(super) begun: HashMap<Uuid, (NewRun, String)>,
    pub(super) shells: Calls<Uuid, RunReport>,
    pub(super) skills: SkillQueue,
    /// Fires when tools that were told to end have not.
    pub(super) grace: Option<BoxFuture<'static, ()>>,
    /// While the main agent's teams do something: when it is looked whether they still do.
    pub(super) heal: Option<BoxFuture<'static, ()>>,
    pub(super) began: Duration,
    pub(super) api: Duration,
    /// Whether somebody may tell it more.
    pub(super) open: bool,
    pub(super) stopping: bool,
    /// Whether its last run ended by itself.
    pub(super) completed: bool,
}

impl Work {
    pub(super) fn new(began: Duration) -> Self {
        Self {
            inputs: VecDeque::new(),
            entry: None,
            model: ModelWork::None,
            compaction_request: None,
            cancel_model: CancellationToken::new(),
            calls: Calls::new(),
            begun: HashMap::new(),
            shells: Calls::new(),
            skills: SkillQueue::default(),
            grace: None,
            heal: None,
            began,
            api: Duration::ZERO,
            open: true,
            stopping: false,
            completed: false,
        }
    }
}

/// What it has waited for.
pub(super) struct Admission {
    /// None for a root.
    pub(super) place: Option<RunPermit>,
    pub(super) lead: Option<WarmupLead>,
    /// Whether it has waited for its siblings long enough.
    pub(super) impatient: bool,
}

/// What came of a call.
pub(super) struct ModelReturn {
    pub(super) result: Result<Reply, Failure>,
    /// When it began, in milliseconds of Unix time.
    pub(super) at_ms: i64,
    /// How many bytes were sent.
    pub(super) size: usize,
    pub(super) took: Duration,
    pub(super) call_reservation: CallReservation,
}

/// What came of a compaction.
pub(super) struct Compacted {
    pub(super) answer: SideReply,
    pub(super) compaction_request: CompactionRequest,
}

/// The one thing that goes on about the model.
pub(super) enum ModelWork {
    None,
    /// Waits until it may call.
    Queued(BoxFuture<'static, Admission>),
    Calling(BoxFuture<'static, ModelReturn>),
    Compacting(BoxFuture<'static, Compacted>),
}

impl ModelWork {
    /// Ends when that does; never if there is nothing.
    pub(super) async fn next(&mut self) -> Next {
        let next = match self {
            Self::None => std::future::pending().await,
            Self::Queued(waiting) => Next::Admitted(waiting.await),
            Self::Calling(calling) => Next::Called(Box::new(calling.await)),
            Self::Compacting(compacting) => Next::Compacted(Box::new(compacting.await)),
        };
        *self = Self::None;
        next
    }

    /// Gives up waiting, and returns true if that is what it did.
    pub(super) fn leave_queue(&mut self) -> bool {
        let queued = matches!(self, Self::Queued(_));
        if queued {
            *self = Self::None;
        }
        queued
    }
}

/// What comes next.
pub(super) enum Next {
    Command(Option<Command>),
    Stop,
    WakeReasons(WakeReasons),
    Admitted(Admission),
    Called(Box<ModelReturn>),
    Compacted(Box<Compacted>),
    CallDone(CallKey, Option<Ran>),
    ShellDone(Uuid, Option<RunReport>),
    SkillDone(SkillDone),
    GraceOver,
    Heal,
}
