//! The state of the machine, and what others ask of it.

use std::sync::Arc;

use posse_permission::{Policy, Rights};
use posse_protocol::PermissionMode;

use crate::agent::step::compaction::Compaction;
use crate::agent::step::open_calls::OpenCalls;
use crate::agent::step::queue::Queue;
use crate::agent::step::{CompactionRequest, Input, Run, State};
use crate::definition::output_schema::OutputSchema;
use crate::live::setup::{Approver, Limits};

/// What an agent is allowed, and by whom.
#[derive(Clone)]
pub(crate) struct Authority {
    pub(crate) rights: Rights,
    pub(crate) approver: Approver,
    /// What a person calls the agent that asks; none for the main one.
    pub(crate) name: Option<String>,
    pub(crate) limits: Limits,
}

/// Which kind of life it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// A root: told things by a person, run by run. If it `joins`, words that come while it works are
    /// shown at the next tool boundary.
    Root { joins: bool },
    /// A sub-agent: it has one run, and ends with it.
    Sub,
    /// A teammate: told things by mail and by a person, run by run; between them it looks for work. `then` is the
    /// mode that it has once its plan is approved, if not its lead's.
    Teammate { then: Option<PermissionMode> },
}

/// What begins a run of an agent that does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attention {
    /// Mail, tasks and words.
    Awake,
    /// Words only: it was interrupted, or was just resumed.
    Muted,
}

/// What becomes of an agent when its run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// It stays as long as its kind does.
    Stays,
    /// It ends for good.
    Leaving,
    /// Its process ends, and it continues another time.
    Suspended,
}

/// One agent's state, as far as decisions need it.
pub(crate) struct Machine {
    pub(super) state: State,
    pub(super) rights: Authority,
    pub(super) life: Life,
    pub(super) queue: Queue,
    pub(super) run: Run,
    /// Mail that answers of the present calls show.
    pub(super) took: Vec<u64>,
    /// What posse itself has to tell the model with the next entry.
    pub(super) notices: Vec<String>,
    /// Types of agents and skills that the model does not know yet: their fingerprint, and what it is told.
    pub(super) offer: Option<(u64, String)>,
    /// How the history is compacted, and when.
    pub(super) compaction: Compaction,
    /// What its answer must fit.
    pub(super) output_schema: Option<OutputSchema>,
    /// How many runs it has started that are not over.
    pub(super) live: usize,
    /// What begins a run.
    pub(super) attention: Attention,
    /// Whether it stays after the run.
    pub(super) departure: Departure,
    /// Whether a skill is being made ready, whose run comes before any other.
    pub(super) preparing: bool,
    /// Whether it has, or may have, tasks that it is doing.
    pub(super) owning: bool,
    /// The number of the agent's next own entry.
    pub(super) next_seq: u64,
    /// Whether the last entry waits for a reply.
    pub(super) unanswered: bool,
}

impl Machine {
    pub(crate) fn new(rights: Authority, life: Life, next_seq: u64, unanswered: bool) -> Self {
        Self {
            state: State::Idle,
            rights,
            life,
            queue: Queue::default(),
            run: Run::default(),
            took: Vec::new(),
            notices: Vec::new(),
            offer: None,
            compaction: Compaction::default(),
            output_schema: None,
            live: 0,
            attention: Attention::Awake,
            departure: Departure::Stays,
            preparing: false,
            owning: false,
            next_seq,
            unanswered,
        }
    }

    /// Whether its history begins with another's.
    pub(crate) fn inherits(&mut self, inherits: bool) {
        self.compaction.inherits = inherits;
    }

    /// Its answer must fit this.
    pub(crate) fn bind(&mut self, output_schema: Option<OutputSchema>) {
        self.output_schema = output_schema;
    }

    /// Posse itself has something to tell the model; it is shown with the next entry.
    pub(crate) fn tell(&mut self, notice: String) {
        self.notices.push(notice);
    }

    /// The model does not know these types of agents and skills yet; none if it knows all there is.
    pub(crate) fn offer(&mut self, offer: Option<(u64, String)>) {
        self.offer = offer;
    }

    /// It has, or may have, tasks that it is doing.
    pub(crate) fn set_owning(&mut self, owning: bool) {
        self.owning = owning;
    }

    /// It ends for good, as soon as what it does is done.
    pub(crate) fn leave(&mut self) {
        self.departure = Departure::Leaving;
    }

    /// Whether it ends for good.
    pub(crate) fn is_leaving(&self) -> bool {
        self.departure == Departure::Leaving
    }

    /// Its process ends: what it does goes on elsewhere, or another time.
    pub(crate) fn suspend(&mut self) {
        // One that leaves for good ends with its run, whatever becomes of the process.
        if self.departure == Departure::Stays {
            self.departure = Departure::Suspended;
        }
    }

    /// Whether it would take a task.
    pub(crate) fn accepts_tasks(&self) -> bool {
        let free = matches!(
            self.state,
            State::Idle | State::Looking { .. } | State::Ending(_)
        );
        free && self.is_teammate() && self.is_awake() && self.departure == Departure::Stays
    }

    /// Whether a run is open.
    pub(crate) fn has_run(&self) -> bool {
        !matches!(self.state, State::Idle | State::Looking { open: false })
    }

    /// Whether it does nothing, and what comes now would wake it.
    pub(crate) fn rests(&self) -> bool {
        matches!(self.state, State::Idle | State::Looking { .. })
    }

    /// A person interrupts it: it does nothing until it is told more.
    pub(super) fn settle_down(&mut self) {
        if self.is_teammate() {
            self.attention = Attention::Muted;
        }
    }

    /// Whether the last entry waits for a reply.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.unanswered
    }

    pub(super) fn is_teammate(&self) -> bool {
        matches!(self.life, Life::Teammate { .. })
    }

    /// Whether it is interrupted, and nothing but a new word wakes it.
    pub(super) fn is_muted(&self) -> bool {
        self.is_teammate() && !self.is_awake()
    }

    /// The rules that hold now.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.rights.rights.policy()
    }

    /// The mode that holds from now on, for it and all below it.
    pub(crate) fn set_mode(&self, mode: PermissionMode) {
        self.rights.rights.set_mode(mode);
    }

    /// What skills have granted is over with the run.
    pub(crate) fn withdraw(&self) {
        self.rights.rights.withdraw();
    }

    /// Whether mail begins a run.
    pub(crate) fn is_awake(&self) -> bool {
        self.attention == Attention::Awake
    }

    /// Whether mail that it has looked at waits on, because its run ended first.
    pub(crate) fn left_mail(&self) -> bool {
        self.queue.has_left_mail()
    }

    /// Mail begins no run before a person has said something.
    pub(crate) fn mute(&mut self) {
        self.attention = Attention::Muted;
    }

    /// Whether a skill is being made ready that a person has called: until it is, no other run begins.
    pub(crate) fn set_preparing(&mut self, preparing: bool) {
        self.preparing = preparing;
    }

    /// Whether nothing is under way and no words wait.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle) && !self.queue.has_prompts() && !self.begins_by_mail()
    }

    /// Whether the run, or the end of it, waits for what the agent has started or for a person.
    pub(crate) fn waits(&self) -> bool {
        match &self.state {
            State::Waiting | State::Delegating => true,
            State::Acting(acting) => acting.waits(),
            State::Idle | State::Calling { .. } | State::Ending(_) | State::Looking { .. } => false,
        }
    }

    /// How many runs it has started that are not over.
    pub(crate) fn set_live(&mut self, live: usize) {
        // Whoever starts something wants to hear of its end.
        if live > self.live {
            self.attention = Attention::Awake;
        }
        self.live = live;
    }

    /// What waited for the run before it, if its turn has come.
    pub(crate) fn next(&mut self) -> Option<Input> {
        if self.preparing || !matches!(self.state, State::Idle) {
            return None;
        }
        if let Some(CompactionRequest { keep, .. }) = self.compaction.due() {
            // It was wanted while the run before was ending.
            return Some(Input::Compact { keep });
        }
        let prompt = self.queue.next_prompt().map(Input::Prompt);
        prompt.or_else(|| self.begins_by_mail().then(|| Input::Mail(Vec::new())))
    }

    /// Whether mail that waits is reason enough for a run.
    pub(super) fn begins_by_mail(&self) -> bool {
        self.is_awake() && !self.preparing && self.queue.has_mail()
    }

    /// Nothing new will be begun.
    pub(crate) fn forget_waiting(&mut self) {
        self.queue.clear();
        self.attention = Attention::Muted;
    }

    /// What the run has come to so far.
    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// What the run that goes on has come to, when it cannot go on.
    pub(crate) fn take_run(&mut self) -> Run {
        std::mem::take(&mut self.run)
    }

    /// Whether there is something to go on with.
    pub(crate) fn unfinished(&self) -> bool {
        self.unanswered || self.queue.has_mail() || self.live > 0
    }

    /// Returns the calls of the reply that are open.
    pub(crate) fn open_calls(&self) -> Option<&OpenCalls> {
        match &self.state {
            State::Acting(acting) => Some(acting),
            _ => None,
        }
    }
}
