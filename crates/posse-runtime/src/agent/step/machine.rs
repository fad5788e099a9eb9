//! State of the machine, and what the actor asks of it.

use std::sync::Arc;

use posse_permission::{Consent, Rights};
use posse_port::confinement::Where;
use posse_port::store::Charge;
use posse_port::tool::Subject;
use posse_protocol::{Activity, AgentId, PermissionMode, Question, Suggestion, WaitReason};

use crate::agent::step::compaction::Compaction;
use crate::agent::step::models::Models;
use crate::agent::step::open_calls::{AskedCall, OpenCalls};
use crate::agent::step::queue::Queue;
use crate::agent::step::repetition::Repetition;
use crate::agent::step::{AgentHooks, CompactionRequest, Input, Run, State};
use crate::definition::output_schema::OutputSchema;
use crate::hook::HookSet;
use crate::live::setup::{Approver, Limits};

/// What an agent may do, and who is asked for approval.
#[derive(Clone)]
pub(crate) struct Authority {
    /// The agent, from whose ID those of its questions follow.
    pub(crate) agent: AgentId,
    pub(crate) rights: Rights,
    pub(crate) approver: Approver,
    /// Name of the agent in questions to a person; none for the main agent.
    pub(crate) name: Option<String>,
    pub(crate) limits: Limits,
    /// Hooks that hold for it.
    pub(crate) hooks: AgentHooks,
}

/// Kind of life of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// A main agent: prompted by a person, run by run. If it `joins`, prompts that arrive during a
    /// run are shown at the next tool boundary. `then` is its mode once its plan is approved, unless
    /// a person chooses another.
    Root { joins: bool, then: PermissionMode },
    /// A sub-agent: it has one run and ends with it.
    Sub,
    /// A teammate: it gets mail and prompts, run by run, and looks for tasks in between. `then` is
    /// its mode once its plan is approved; none for its lead's.
    Teammate { then: Option<PermissionMode> },
}

/// What can begin a run of an idle agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attention {
    /// Mail, tasks and prompts.
    Awake,
    /// Prompts only: it was interrupted, or was just resumed.
    Muted,
}

/// What happens to an agent when its run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// It stays as long as its kind does.
    Stays,
    /// It ends for good.
    Leaving,
    /// Its process ends, and it continues another time.
    Suspended,
}

/// State of one agent, as far as decisions need it.
pub(crate) struct Machine {
    /// What it is doing.
    pub(super) state: State,
    /// What it may do.
    pub(super) rights: Authority,
    /// Main agent, sub-agent or teammate.
    pub(super) life: Life,
    /// Prompts and mail that wait.
    pub(super) queue: Queue,
    /// Sums of the current run.
    pub(super) run: Run,
    /// Calls that fail in the same way again and again.
    pub(super) repetition: Repetition,
    /// Mail that results of the open calls show; taken by the step that stores the results.
    pub(super) took: Vec<u64>,
    /// Notices of posse itself for the next entry.
    pub(super) notices: Vec<String>,
    /// Agent types and skills that are new to the model: their fingerprint, and the text about
    /// them.
    pub(super) offer: Option<(u64, String)>,
    /// State of compactions.
    pub(super) compaction: Compaction,
    /// The model that it has or gets, besides the first.
    pub(super) models: Models,
    /// Schema of its answer.
    pub(super) output_schema: Option<OutputSchema>,
    /// Number of its background runs that are not over.
    pub(super) live: usize,
    /// What can begin a run.
    pub(super) attention: Attention,
    /// What happens after the run.
    pub(super) departure: Departure,
    /// True while a skill is prepared, whose run comes before any other.
    pub(super) preparing: bool,
    /// True if it may have tasks in progress.
    pub(super) owning: bool,
    /// Number of the agent's next own entry.
    pub(super) next_seq: u64,
    /// True if the last entry waits for a reply.
    pub(super) unanswered: bool,
    /// Questions that a dead process or a hook has left; the run goes on with them.
    pub(super) left: Vec<Question>,
}

impl Machine {
    /// Returns the machine of an idle agent.
    pub(crate) fn new(rights: Authority, life: Life, next_seq: u64, unanswered: bool) -> Self {
        Self {
            state: State::Idle,
            rights,
            life,
            queue: Queue::default(),
            run: Run::default(),
            repetition: Repetition::default(),
            took: Vec::new(),
            notices: Vec::new(),
            offer: None,
            compaction: Compaction::default(),
            models: Models::default(),
            output_schema: None,
            live: 0,
            attention: Attention::Awake,
            departure: Departure::Stays,
            preparing: false,
            owning: false,
            next_seq,
            unanswered,
            left: Vec::new(),
        }
    }

    /// Sets whether its history begins with another agent's.
    pub(crate) fn inherits(&mut self, inherits: bool) {
        self.compaction.inherits = inherits;
    }

    /// Sets the schema of its answer.
    pub(crate) fn bind(&mut self, output_schema: Option<OutputSchema>) {
        self.output_schema = output_schema;
    }

    /// Adds a notice of posse itself to the next entry.
    pub(crate) fn tell(&mut self, notice: String) {
        self.notices.push(notice);
    }

    /// Adds what the models have cost that hooks of the run asked.
    pub(crate) fn book(&mut self, charges: &[Charge]) {
        self.run.charge(charges);
    }

    /// Sets the agent types and skills that are new to the model; none if it knows all.
    pub(crate) fn offer(&mut self, offer: Option<(u64, String)>) {
        self.offer = offer;
    }

    /// Sets whether it may have tasks in progress.
    pub(crate) fn set_owning(&mut self, owning: bool) {
        self.owning = owning;
    }

    /// Makes it end for good after its run.
    pub(crate) fn leave(&mut self) {
        self.departure = Departure::Leaving;
    }

    /// Returns true if it ends for good after its run.
    pub(crate) fn is_leaving(&self) -> bool {
        self.departure == Departure::Leaving
    }

    /// Notes that its process ends and that it continues elsewhere or later.
    pub(crate) fn suspend(&mut self) {
        // An agent that leaves for good ends with its run, whatever happens to the process.
        if self.departure == Departure::Stays {
            self.departure = Departure::Suspended;
        }
    }

    /// Returns true if it would take a task.
    pub(crate) fn accepts_tasks(&self) -> bool {
        let free = matches!(
            self.state,
            State::Idle | State::Looking { .. } | State::Ending(_)
        );
        free && self.is_teammate() && self.is_awake() && self.departure == Departure::Stays
    }

    /// Returns true if a run is open.
    pub(crate) fn has_run(&self) -> bool {
        !matches!(self.state, State::Idle | State::Looking { open: false })
    }

    /// Returns true if it does nothing, so that an input would wake it.
    pub(crate) fn rests(&self) -> bool {
        matches!(self.state, State::Idle | State::Looking { .. })
    }

    /// Mutes a teammate that a person interrupts: nothing begins until it gets a message or a
    /// prompt.
    pub(super) fn settle_down(&mut self) {
        if self.is_teammate() {
            self.attention = Attention::Muted;
        }
    }

    /// Returns true if the last entry waits for a reply.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.unanswered
    }

    /// Returns true if it is a main agent.
    pub(super) fn is_root(&self) -> bool {
        matches!(self.life, Life::Root { .. })
    }

    /// Returns true if it is a teammate.
    pub(super) fn is_teammate(&self) -> bool {
        matches!(self.life, Life::Teammate { .. })
    }

    /// Returns true if mail begins a run.
    pub(crate) fn is_awake(&self) -> bool {
        self.attention == Attention::Awake
    }

    /// Returns true if mail that it has read still waits, because its run ended first.
    pub(crate) fn left_mail(&self) -> bool {
        self.queue.has_left_mail()
    }

    /// Lets no mail begin a run until a person sends a prompt.
    pub(crate) fn mute(&mut self) {
        self.attention = Attention::Muted;
    }

    /// Sets whether a skill is being prepared; until it is, no other run begins.
    pub(crate) fn set_preparing(&mut self, preparing: bool) {
        self.preparing = preparing;
    }

    /// Returns true if nothing is in progress and nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        let rests = matches!(self.state, State::Idle) || self.rests_on_questions();
        rests && !self.queue.has_prompts() && !self.begins_by_mail()
    }

    /// Returns true if its run has ended with questions that a later one goes on with.
    pub(crate) fn rests_on_questions(&self) -> bool {
        self.is_root() && !self.left.is_empty()
    }

    /// Returns true if the run waits for what the agent has started, or for a person.
    pub(crate) fn waits(&self) -> bool {
        match &self.state {
            State::Waiting | State::Delegating => true,
            State::Acting(acting) => acting.waits(),
            State::Idle
            | State::Calling { .. }
            | State::Hooked { .. }
            | State::Ending(_)
            | State::Looking { .. } => false,
        }
    }

    /// Returns what the agent does, as far as the machine knows: it takes an agent that waits for
    /// its turn to call the model for one that works.
    pub(crate) fn activity(&self) -> Activity {
        match &self.state {
            State::Idle | State::Looking { open: false } => Activity::Idle,
            State::Waiting | State::Delegating => Activity::Waiting(WaitReason::Children),
            State::Acting(acting) if acting.waits() => Activity::Waiting(acting.wait_reason()),
            State::Acting(_) | State::Calling { .. } => Activity::Working,
            State::Hooked { .. } | State::Ending(_) | State::Looking { .. } => Activity::Working,
        }
    }

    /// Sets the number of its background runs that are not over.
    pub(crate) fn set_live(&mut self, live: usize) {
        // An agent that starts something wants to hear of its end, even if it was muted.
        if live > self.live {
            self.attention = Attention::Awake;
        }
        self.live = live;
    }

    /// Returns what waited for the previous run, if its turn has come.
    pub(crate) fn next(&mut self) -> Option<Input> {
        if self.preparing || !matches!(self.state, State::Idle) {
            return None;
        }
        if let Some(CompactionRequest { keep, .. }) = self.compaction.due() {
            // It was requested while the previous run was ending.
            return Some(Input::Compact { keep });
        }
        let prompt = self.queue.next_prompt().map(Input::Prompt);
        prompt.or_else(|| self.begins_by_mail().then(|| Input::Mail(Vec::new())))
    }

    /// Returns true if waiting mail begins a run.
    pub(super) fn begins_by_mail(&self) -> bool {
        self.is_awake() && !self.preparing && self.queue.has_mail()
    }

    /// Drops everything that waits, so that nothing new begins.
    pub(crate) fn forget_waiting(&mut self) {
        self.queue.clear();
        self.attention = Attention::Muted;
    }

    /// Returns the sums of the run so far.
    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// Takes the sums of a run that cannot continue.
    pub(crate) fn take_run(&mut self) -> Run {
        std::mem::take(&mut self.run)
    }

    /// Returns true if there is something to continue.
    pub(crate) fn unfinished(&self) -> bool {
        self.unanswered || self.queue.has_mail() || self.live > 0 || !self.left.is_empty()
    }

    /// Returns true if a person is asked about a call.
    pub(crate) fn asks(&self) -> bool {
        self.open_calls().is_some_and(OpenCalls::asks)
    }

    /// Returns the input that continues a run whose questions a dead process has left. A main agent
    /// waits for a person's word.
    pub(crate) fn left(&self) -> Option<Input> {
        (!self.left.is_empty() && !self.is_root()).then_some(Input::Left)
    }

    /// Returns its rights.
    pub(crate) fn rights(&self) -> &Rights {
        &self.rights.rights
    }

    /// Returns who is asked for approval.
    pub(crate) fn approver(&self) -> Approver {
        self.rights.approver
    }

    /// Sets the hooks that hold for it.
    pub(crate) fn set_hooks(&mut self, hooks: &Arc<HookSet>) {
        if !Arc::ptr_eq(&self.rights.hooks.set, hooks) {
            self.rights.hooks.set = Arc::clone(hooks);
        }
    }

    /// Returns the calls of the reply that are open.
    pub(crate) fn open_calls(&self) -> Option<&OpenCalls> {
        match &self.state {
            State::Acting(acting) => Some(acting),
            _ => None,
        }
    }
}

/// Returns where a call's commands run.
pub(crate) fn place(machine: &Machine, subject: &Subject, consent: &Consent) -> Where {
    machine.rights.rights.place(subject, consent)
}

/// Returns the rules that a person may accept instead of being asked about such a call again.
pub(crate) fn suggestions(machine: &Machine, call: &AskedCall<'_>) -> Vec<Suggestion> {
    let rights = &machine.rights.rights;
    match call.refused {
        Some(refused) => rights.wider_suggestions(call.tool, call.intent, refused),
        None => rights.suggestions(call.tool, call.intent),
    }
}
