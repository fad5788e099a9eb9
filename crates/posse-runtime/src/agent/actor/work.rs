//! What an actor has in progress: the model call, tool calls, commands, timers.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use posse_port::BoxFuture;
use posse_port::model::{Failure, Reply};
use posse_port::store::CallKey;
use posse_port::tool::{NewRun, RunReport, ToolError, ToolOutput};
use posse_protocol::{Activity, Command, QueuedPrompt, SpendingUpdate, WaitReason};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::actor::hook_work::{GateRan, HookKey, HookWork, HooksRan, RanBeside};
use crate::agent::actor::skill_queue::{SkillDone, SkillQueue};
use crate::agent::call_cost::CallReservation;
use crate::agent::host_gate::CallHosts;
use crate::agent::side_query::SideReply;
use crate::agent::step::{CompactionRequest, Input};
use crate::definition::instructions::Instruction;
use crate::govern::{RunPermit, Ticket, WarmupLead};
use crate::live::questions::SideQuestion;
use crate::live::wakeup::WakeReasons;
use crate::supervise::Calls;

/// Result of a tool call.
pub(super) type Ran = Result<RanTool, ToolError>;

/// A tool call that has succeeded.
pub(super) struct RanTool {
    pub(super) output: ToolOutput,
    /// Memory files about what it has read or edited.
    pub(super) about: Vec<Instruction>,
    /// How long it took.
    pub(super) took: Duration,
}

/// Everything in progress.
pub(super) struct Work {
    /// Inputs to handle before anything else.
    pub(super) inputs: VecDeque<Input>,
    /// Place in the cache warm-up, kept from before a commit until the call after it.
    pub(super) entry: Option<Ticket>,
    /// Model call in progress.
    pub(super) model: ModelWork,
    /// Compaction to make before the next call.
    pub(super) compaction_request: Option<CompactionRequest>,
    /// Cancels the model call; a new token for each.
    pub(super) cancel_model: CancellationToken,
    /// Tool calls in progress.
    pub(super) calls: Calls<CallKey, Ran>,
    /// Hosts that the calls of the last reply were allowed: a command may run again.
    pub(super) hosts: HashMap<CallKey, Arc<CallHosts>>,
    /// Background commands that calls have begun and that wait for their step, with the model's IDs
    /// of the calls.
    pub(super) begun: HashMap<Uuid, (NewRun, String)>,
    /// Background commands in progress.
    pub(super) shells: Calls<Uuid, RunReport>,
    /// Commands that a person has started.
    pub(super) person_shells: Calls<Uuid, RanByPerson>,
    /// Hooks in progress, and what waits for them.
    pub(super) hooks: HookWork,
    /// Skills that a person has called.
    pub(super) skills: SkillQueue,
    /// What it waits for besides.
    pub(super) timers: Timers,
    /// Questions that others ask by it.
    pub(super) side_questions: Vec<SideQuestion>,
    /// When the run began, and what of it went to model calls.
    pub(super) time: RunTime,
    /// True while commands may come.
    pub(super) open: bool,
    /// True once it was told to stop.
    pub(super) stopping: bool,
    /// True if its last run completed.
    pub(super) completed: bool,
    /// What viewers were told last.
    pub(super) shown: LastShown,
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
            hosts: HashMap::new(),
            begun: HashMap::new(),
            shells: Calls::new(),
            person_shells: Calls::new(),
            hooks: HookWork::new(),
            skills: SkillQueue::default(),
            timers: Timers::default(),
            side_questions: Vec::new(),
            time: RunTime::since(began),
            open: true,
            stopping: false,
            completed: false,
            shown: LastShown::default(),
        }
    }
}

impl Work {
    /// Returns true while something is in progress that a person has started, or that a run waits
    /// for.
    pub(super) fn is_busy(&self) -> bool {
        self.skills.is_busy() || !self.person_shells.is_empty() || self.hooks.is_busy()
    }
}

/// Times at which something is done.
#[derive(Default)]
pub(super) struct Timers {
    /// Fires when cancelled tools have not ended in time.
    pub(super) grace: Option<BoxFuture<'static, ()>>,
    /// While the main agent's teams work: fires when they are checked again.
    pub(super) heal: Option<BoxFuture<'static, ()>>,
    /// While a question waits: fires when its time is over.
    pub(super) overdue: Option<BoxFuture<'static, ()>>,
    /// While nothing is to be done and hooks want to know: fires when a person has said nothing for
    /// a while.
    pub(super) quiet: Option<BoxFuture<'static, ()>>,
}

/// The time of a run.
pub(super) struct RunTime {
    /// When it began.
    pub(super) began: Duration,
    /// How long its model calls took.
    pub(super) api: Duration,
}

impl RunTime {
    pub(super) fn since(began: Duration) -> Self {
        let api = Duration::ZERO;
        Self { began, api }
    }
}

/// What viewers were told last.
#[derive(Default)]
pub(super) struct LastShown {
    pub(super) activity: Option<Activity>,
    pub(super) spending: Option<SpendingUpdate>,
    pub(super) queue: Vec<QueuedPrompt>,
}

/// Result of waiting in the queues before a call.
pub(super) struct Admission {
    /// None for a main agent, which needs no permit.
    pub(super) place: Option<RunPermit>,
    /// Set if siblings wait for its call.
    pub(super) lead: Option<WarmupLead>,
    /// True if it stopped waiting for its siblings.
    pub(super) impatient: bool,
}

/// A finished model call.
pub(super) struct ModelReturn {
    pub(super) result: Result<Reply, Failure>,
    /// Unix time when it began, in milliseconds.
    pub(super) at_ms: i64,
    /// Number of bytes that were sent.
    pub(super) size: usize,
    /// Duration of the call.
    pub(super) took: Duration,
    /// Reservation, to be settled.
    pub(super) call_reservation: CallReservation,
}

/// A person's command that has ended.
pub(super) struct RanByPerson {
    pub(super) command: String,
    pub(super) result: Result<ToolOutput, ToolError>,
}

/// A finished compaction.
pub(super) struct Compacted {
    pub(super) answer: SideReply,
    pub(super) compaction_request: CompactionRequest,
    /// What hooks add to the summary.
    pub(super) told: Vec<String>,
}

/// What the agent does about the model: one thing at a time.
pub(super) enum ModelWork {
    /// Nothing.
    None,
    /// Waits until it may call.
    Queued {
        why: WaitReason,
        admission: BoxFuture<'static, Admission>,
    },
    /// The model replies.
    Calling(BoxFuture<'static, ModelReturn>),
    /// The model writes a summary.
    Compacting(BoxFuture<'static, Compacted>),
}

impl ModelWork {
    /// Waits for it; for ever if there is nothing.
    pub(super) async fn next(&mut self) -> Next {
        let next = match self {
            Self::None => std::future::pending().await,
            Self::Queued { admission, .. } => Next::Admitted(admission.await),
            Self::Calling(calling) => Next::Called(Box::new(calling.await)),
            Self::Compacting(compacting) => Next::Compacted(Box::new(compacting.await)),
        };
        *self = Self::None;
        next
    }

    /// Leaves the queue. Returns true if it waited in one.
    pub(super) fn leave_queue(&mut self) -> bool {
        let queued = matches!(self, Self::Queued { .. });
        if queued {
            *self = Self::None;
        }
        queued
    }
}

/// What the actor waited for.
pub(super) enum Next {
    /// A command; none if all handles are gone.
    Command(Option<Command>),
    /// It was told to stop.
    Stop,
    /// It was woken.
    WakeReasons(WakeReasons),
    /// It may call the model.
    Admitted(Admission),
    /// A model call has ended.
    Called(Box<ModelReturn>),
    /// A compaction has ended.
    Compacted(Box<Compacted>),
    /// A tool call has ended; none if it panicked or was aborted.
    CallDone(CallKey, Option<Ran>),
    /// A background command has ended; none if it panicked.
    ShellDone(Uuid, Option<RunReport>),
    /// A person's command has ended; none if it panicked.
    PersonShellDone(Option<RanByPerson>),
    /// Hooks have run; none if one panicked.
    HooksRan(HookKey, Option<HooksRan>),
    /// The hooks of a prompt have run.
    GateRan(Option<GateRan>),
    /// A hook has run that nothing waited for; none if it panicked.
    BesideRan(Option<RanBeside>),
    /// A skill is prepared, or was followed.
    SkillDone(SkillDone),
    /// Cancelled tools have not ended in time.
    GraceOver,
    /// It is time to check the teams.
    Heal,
    /// The time of a question is over.
    Overdue,
    /// Nobody has prompted it for a while.
    Quiet,
}
