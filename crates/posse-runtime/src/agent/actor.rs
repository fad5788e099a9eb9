//! The actor of one agent: it waits for the next input, asks [`Machine::step`] what to do, commits
//! that, and then carries out the effects. It owns all of the agent's state.
//!
//! One turn of its loop:
//! 1. Take an input that waits, or wait for the next event: a command, a wake-up, a reply, a timer,
//!    or the end of a tool call or a background command.
//! 2. Add what the model has to be told with the next entry: new types and skills, notes, notices.
//! 3. Decide. Pure, in `agent/step`.
//! 4. Commit the decision in one transaction. If that fails, the agent ends without any effect.
//! 5. Carry out the effects in order. Most start something whose end is a later input.

mod call;

mod command;
mod commit;
mod compact;
pub(crate) mod depart;
mod fork;
mod hook_transcript;
mod hook_work;
mod hooks;
mod instructions;
mod lead;
mod listing;
mod memory_note;
pub(crate) mod model;
mod offer;
mod person_shell;
mod questions;
mod report;
mod server_words;
pub(crate) mod shells;
mod show;
mod skill_queue;
mod skills;
mod standing;
pub(crate) mod sub_agent;
mod tasks;
pub(crate) mod teammate;
mod work;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use posse_port::BoxFuture;
use posse_port::Ports;
use posse_port::clock::Clock;
use posse_port::model::{Attribution, Encoded, Lineage, Preamble};
use posse_port::store::{
    AgentState, Birth, CallKey, Charge, Epoch, MailFilter, Page, Segment, StoreError,
};
use posse_port::tool::{FollowUp, Intent, KnownFiles, ToolError, ToolOutput};
use posse_protocol::{
    Activity, AgentId, Command, EventKind, Name, Outcome, RawJson, RealmId, TaskId,
};
use tokio::sync::mpsc;

pub(crate) use crate::agent::actor::instructions::ToldInstructions;
use crate::agent::actor::model::ModelSwitch;
pub(crate) use crate::agent::actor::offer::Advertised;
pub(crate) use crate::agent::actor::sub_agent::{SubAgent, last_resort};
pub(crate) use crate::agent::actor::teammate::Teammate;
use crate::agent::actor::work::{Next, Ran, RanTool, Work};
use crate::agent::events::EventSink;
use crate::agent::lifecycle::Lifecycle;
use crate::agent::step::{Answered, Consequence, Decision, Input, Machine, RanFacts};
use crate::definition::terms::Terms;
use crate::definition::tool_name::OF_SERVERS;
use crate::govern::{Account, CacheWarmup, RunPermit};
use crate::history::History;
use crate::history::cache_ttl::CacheTtl;
use crate::history::fork_point::ForkPoint;
use crate::history::request_size::RequestSize;
use crate::live::registry::{Registry, Stop};
use crate::live::session::Session;
use crate::live::setup::{Approver, Setup};
use crate::live::wakeup::{WakeReason, WakeReasons, Wakeup};
use crate::prompt;
use crate::supervise::{AliveGuard, Supervisor};

/// Time that tools have to end when they are told to; then they are aborted.
const GRACE: Duration = Duration::from_millis(900);
/// The same for tools that wait for other agents, which have their own tools to end first.
const LONG_GRACE: Duration = Duration::from_millis(1800);
/// Number of messages that are read at once.
const MAIL: usize = 256;

/// Identity of an agent in the store. The epoch makes writes of an earlier holder fail.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    /// Realm that the agent belongs to.
    pub(crate) realm: RealmId,
    /// ID of the agent.
    pub(crate) agent: AgentId,
    /// Epoch in which this process holds it.
    pub(crate) epoch: Epoch,
}

/// One agent, with everything it owns.
pub(crate) struct Actor {
    /// Dropped first: once the agent's events have ended, it may be started again.
    pub(crate) alive: Option<AliveGuard>,
    /// Store, model, clock and everything else outside.
    pub(crate) ports: Ports,
    /// Starts tasks that outlive a turn.
    pub(crate) supervisor: Supervisor,
    /// Agents that live in this process.
    pub(crate) registry: Arc<Registry>,
    /// The way to what starts and revives agents, which is above this room.
    pub(crate) lifecycle: Arc<dyn Lifecycle>,
    /// What it shares with the agents of its session.
    pub(crate) session: Arc<Session>,
    /// What this process has given it.
    pub(crate) setup: Setup,
    pub(crate) identity: Identity,
    /// Main agent, sub-agent or teammate.
    pub(crate) role: Role,
    /// Terms that were agreed with a sub-agent.
    pub(crate) terms: Option<Box<Terms>>,
    /// Stored with the first step; set until then.
    pub(crate) birth: Option<Box<Birth>>,
    /// What its requests begin with.
    pub(crate) prefix: Prefix,
    /// What it needs to call the model.
    pub(crate) spending: Spending,
    pub(crate) inbox: Inbox,
    /// Decides what to do about each input.
    pub(crate) machine: Machine,
    /// Files it has read, against which edits are checked.
    pub(crate) known_files: KnownFiles,
    /// Agent types, skills, servers and memory files that its model was told of.
    pub(crate) advertised: Advertised,
    /// Tasks that it has claimed, with their lists.
    pub(crate) tasks: BTreeSet<(Option<Name>, TaskId)>,
    /// Sends its events.
    pub(crate) sink: EventSink,
    /// Tells it to end.
    pub(crate) stop: Stop,
}

/// The agent's part in its session.
pub(crate) enum Role {
    /// The main agent of its session.
    Main {
        /// False if it is known to lead no team: then the store need not be asked about members.
        leads: bool,
    },
    /// An agent that another has started for one piece of work.
    Sub(Box<SubAgent>),
    /// A long-lived member of a team.
    Teammate(Box<SubAgent>, Box<Teammate>),
}

impl Role {
    pub(crate) fn is_main(&self) -> bool {
        matches!(self, Self::Main { .. })
    }

    pub(crate) fn is_teammate(&self) -> bool {
        matches!(self, Self::Teammate(..))
    }

    /// Returns what it has as a sub-agent. A teammate is a sub-agent too.
    pub(crate) fn sub_agent(&self) -> Option<&SubAgent> {
        match self {
            Self::Main { .. } => None,
            Self::Sub(sub) | Self::Teammate(sub, _) => Some(sub),
        }
    }

    pub(crate) fn sub_agent_mut(&mut self) -> Option<&mut SubAgent> {
        match self {
            Self::Main { .. } => None,
            Self::Sub(sub) | Self::Teammate(sub, _) => Some(sub),
        }
    }

    pub(crate) fn teammate(&self) -> Option<&Teammate> {
        match self {
            Self::Teammate(_, teammate) => Some(teammate),
            Self::Main { .. } | Self::Sub(_) => None,
        }
    }

    pub(crate) fn teammate_mut(&mut self) -> Option<&mut Teammate> {
        match self {
            Self::Teammate(_, teammate) => Some(teammate),
            Self::Main { .. } | Self::Sub(_) => None,
        }
    }
}

/// The beginning of every request, and what is known of how it was last sent.
pub(crate) struct Prefix {
    /// Sent with every call: which agent of which session makes it.
    pub(crate) attribution: Arc<Attribution>,
    /// Whose share of the account its calls use.
    pub(crate) lineage: Lineage,
    /// Encoded system prompt and tools, with the model.
    pub(crate) preamble: Encoded,
    /// The one that it was born with.
    pub(crate) born: Encoded,
    /// What a main agent's was made from, until it is born.
    pub(crate) unborn: Option<Box<Preamble>>,
    /// The model that it gets with the next entry about it.
    pub(crate) switch: Option<Box<ModelSwitch>>,
    /// Parts of other agents' histories that its own begins with.
    pub(crate) segments: Vec<Segment>,
    /// Encoded entries.
    pub(crate) history: History,
    /// The provider's ID of the last reply.
    pub(crate) previous_reply: Option<String>,
    /// What its calls have left in the prompt cache.
    pub(crate) cache_ttl: CacheTtl,
    /// Size of its last request.
    pub(crate) last_request: RequestSize,
    /// True if the last compaction failed: none is tried before another reply.
    pub(crate) compaction_failed: bool,
    /// Its fork point, once a call of its last reply has asked for a fork.
    pub(crate) fork_point: Option<Arc<ForkPoint>>,
    /// The parent's fork point, until the first entry of a fork.
    pub(crate) opening: Option<Arc<ForkPoint>>,
}

/// What an agent needs before it may call the model.
pub(crate) struct Spending {
    /// Account that pays for its calls.
    pub(crate) account: Account,
    /// Name of the model, for charges of calls that got no reply.
    pub(crate) model: String,
    /// Permit to call the model; held while it works.
    pub(crate) permit: Option<RunPermit>,
    /// Set while the bytes that it shares with its siblings may not be cached yet: its first call
    /// waits for that.
    pub(crate) warmup: Option<Arc<CacheWarmup>>,
    /// True if the store was told that it waits for a permit.
    pub(crate) told_queued: bool,
    /// Cap on the output of its next call that the store knows to be reserved.
    pub(crate) output_cap: Option<u32>,
    /// What the models have cost that its hooks asked; stored with the next step.
    pub(crate) owed: Vec<Charge>,
}

/// Mail of the agent, and what wakes it.
pub(crate) struct Inbox {
    /// Wakes it.
    pub(crate) wakeup: Arc<Wakeup>,
    /// Number of the newest mail that it has read.
    pub(crate) last: u64,
    /// True if mail waited when its last run ended.
    pub(crate) waits: bool,
}

impl Actor {
    /// Tells front ends what did not happen as somebody wanted.
    fn warn(&self, what: String) {
        let sink = self.sink.clone();
        self.supervisor
            .start_errand(async move { sink.emit(EventKind::Warning(what)).await });
    }

    /// Runs until it is stopped, or idle with no handles left. Returns true if mail arrived that it
    /// did not process.
    pub(crate) async fn live(
        mut self: Box<Self>,
        mut commands: mpsc::Receiver<Box<Command>>,
    ) -> bool {
        let mut work = Work::new(self.ports.clock.now());
        Box::pin(teammate::announce(&mut self)).await;
        let mut lost = None;
        while work.open || !self.machine.is_idle() || work.is_busy() {
            lost = match self.turn(&mut work, &mut commands).await {
                Err(error) => Some(depart::on_store_error(&self, &error)),
                Ok(()) => self.halted(),
            };
            show::show_changes(&self, &mut work);
            if lost.is_some() {
                break;
            }
        }
        if lost.is_none() {
            // The error is dropped: what stays open is withdrawn when the agent is taken again.
            let _ = Box::pin(questions::side::withdraw(&mut self, &mut work)).await;
        }
        Box::pin(hooks::end_session(&self, &mut work)).await;
        // Dismissing writes to the store, which may have failed.
        let completed = work.completed && lost.is_none();
        Box::pin(lead::dismiss(&mut self, completed)).await;
        let event = lost.map(|outcome| depart::break_off(&mut self, outcome, &mut work));
        Box::pin(shells::wind_up(&mut self, &mut work, event.is_none())).await;
        let audience = self.sink.audience.clone();
        let left_mail = Box::pin(depart::depart(*self, event)).await;
        audience.show(&EventKind::State(Activity::Gone));
        left_mail
    }

    /// Returns how its run ends if its session was halted, which the main agent speaks for.
    fn halted(&self) -> Option<Outcome> {
        let halted = self.session.halted.get();
        halted.filter(|_| self.role.is_main()).cloned()
    }

    /// Waits for the next input and handles it.
    async fn turn(
        &mut self,
        work: &mut Work,
        commands: &mut mpsc::Receiver<Box<Command>>,
    ) -> Result<(), StoreError> {
        // Runs of others may have ended since the last turn, which decides what this agent waits
        // for.
        self.machine
            .set_live(self.registry.live(self.identity.agent));
        let waiting = self.machine.left().or_else(|| work.inputs.pop_front());
        let waiting = waiting.or_else(|| self.machine.next());
        let input = match waiting.or_else(|| command::next_held(self, work)) {
            Some(input) => input,
            None => {
                let next = self.next(work, commands).await;
                // Handlers are boxed, here and below, so that the future of an idle agent does not
                // reserve space for them.
                match Box::pin(self.on_next(next, work)).await? {
                    Some(input) => input,
                    None => return Ok(()),
                }
            }
        };
        self.machine
            .set_live(self.registry.live(self.identity.agent));
        hooks::look(self, work);
        offer::check_offer(self);
        instructions::check_changes(self);
        Box::pin(teammate::check_notes(self, &input)).await?;
        lead::take_notices(self);
        let decision = self.decide(input, work);
        let silent = self.role.is_teammate() && decision.commit.state == Some(AgentState::Idle);
        Box::pin(self.carry_out(decision, work)).await?;
        // Only after the commit: the main agent asks the store whether its members are idle.
        if silent {
            lead::wake_main(self);
        }
        tasks::show_accepts_tasks(self);
        Ok(())
    }

    /// Decides about an input. Calls that have ended together are handled together: one commit each
    /// would make many that end at once wait for each other.
    fn decide(&mut self, input: Input, work: &mut Work) -> Decision {
        let ends = matches!(input, Input::CallDone { .. });
        let mut decision = self.machine.step(input);
        while ends && let Some((key, result)) = work.calls.try_next() {
            let ended = self.call_done(key, result, work);
            decision.add(self.machine.step(ended));
        }
        decision
    }

    /// Waits for whatever comes next.
    async fn next(&self, work: &mut Work, commands: &mut mpsc::Receiver<Box<Command>>) -> Next {
        // Not biased: a stream of one kind of input must not starve the others. Every branch can be
        // dropped without losing anything.
        tokio::select! {
            command = commands.recv(), if work.open => Next::Command(command.map(|command| *command)),
            () = self.stop.token.cancelled(), if !work.stopping => Next::Stop,
            reasons = self.inbox.wakeup.raised() => Next::WakeReasons(reasons),
            next = work.model.next() => next,
            Some((key, result)) = work.calls.next(), if !work.calls.is_empty() => Next::CallDone(key, result),
            Some((id, report)) = work.shells.next(), if !work.shells.is_empty() => Next::ShellDone(id, report),
            Some((_, ran)) = work.person_shells.next(), if !work.person_shells.is_empty() => Next::PersonShellDone(ran),
            Some((key, ran)) = work.hooks.running.next(), if !work.hooks.running.is_empty() => Next::HooksRan(key, ran),
            Some((_, ran)) = work.hooks.gate.next(), if !work.hooks.gate.is_empty() => Next::GateRan(ran),
            Some((_, ran)) = work.hooks.beside.next(), if !work.hooks.beside.is_empty() => Next::BesideRan(ran),
            done = work.skills.next() => Next::SkillDone(done),
            () = maybe(&mut work.timers.grace) => Next::GraceOver,
            () = maybe(&mut work.timers.heal) => Next::Heal,
            () = maybe(&mut work.timers.overdue) => Next::Overdue,
            () = maybe(&mut work.timers.quiet) => Next::Quiet,
        }
    }

    /// Turns what came into an input; none if there is nothing to decide.
    async fn on_next(&mut self, next: Next, work: &mut Work) -> Result<Option<Input>, StoreError> {
        Ok(match next {
            Next::Command(Some(Command::Answer {
                question, answer, ..
            })) => {
                questions::on_answer(self, question, answer, work).await?;
                None
            }
            Next::Command(Some(command)) => {
                let command = hooks::gate(self, command, work);
                command.and_then(|command| command::receive(self, command, work))
            }
            Next::HooksRan(key, ran) => hooks::on_done(self, key, ran, work),
            Next::GateRan(ran) => hooks::on_gate_done(self, ran, work),
            Next::BesideRan(ran) => hooks::on_beside_done(self, ran),
            Next::Command(None) => {
                work.open = false;
                if self.role.is_main() {
                    // All handles of the front end are gone: nobody can answer any agent of the
                    // session.
                    self.registry.unattended(&self.session);
                }
                self.unattended(work).await?
            }
            Next::Stop => {
                (work.open, work.stopping) = (false, true);
                teammate::on_stop(self);
                self.machine.forget_waiting();
                work.skills.forget();
                work.hooks.stop();
                work.person_shells.cancel();
                shells::stop_all(self);
                Some(Input::Interrupt)
            }
            Next::WakeReasons(reasons) => self.reasons(reasons, work).await?,
            Next::Admitted(admission) => {
                call::on_admitted(self, admission, work).await?;
                None
            }
            Next::Called(called) => Some(call::on_reply(self, *called, work)),
            Next::Compacted(compacted) => Some(compact::on_compacted(self, *compacted).await?),
            Next::CallDone(key, result) => {
                questions::side::withdraw_unheard(self, work).await?;
                Some(self.call_done(key, result, work))
            }
            Next::ShellDone(id, report) => {
                shells::on_done(self, id, report).await?;
                None
            }
            Next::PersonShellDone(ran) => person_shell::on_done(ran),
            Next::SkillDone(done) => {
                questions::side::withdraw_unheard(self, work).await?;
                Some(skills::on_done(self, done, work))
            }
            Next::GraceOver => {
                work.calls.give_up();
                None
            }
            Next::Heal => {
                lead::check_teams(self, work).await?;
                None
            }
            Next::Overdue => {
                questions::on_overdue(self, work).await?;
                None
            }
            Next::Quiet => {
                hooks::on_quiet(self, work);
                None
            }
        })
    }

    /// Returns the input for a call that has ended; a result of none means that it panicked.
    fn call_done(&mut self, key: CallKey, result: Option<Ran>, work: &mut Work) -> Input {
        if work.calls.is_empty() {
            work.timers.grace = None;
        }
        if let Some(Ok(RanTool { about, .. })) = &result {
            instructions::tell_touched(self, about);
            let files: Vec<_> = about.iter().collect();
            hooks::on_instructions(self, &files, "path_glob_match", work);
        }
        let call = self.call_id(key);
        let result = result.map(|ran| {
            ran.map(|RanTool { output, took, .. }| match output.then {
                FollowUp::ToolFirst { tool, input } => {
                    let intent = self.intent(&tool, &input);
                    Answered {
                        content: Vec::new(),
                        then: Consequence::ToolFirst {
                            tool,
                            input,
                            intent,
                        },
                        ran: RanFacts::default(),
                    }
                }
                _ => {
                    let mut answered = answered(output, call, work);
                    answered.ran.took_ms = Some(millis(took));
                    answered
                }
            })
        });
        Input::CallDone { key, result }
    }

    /// Returns the model's id of an open call.
    fn call_id(&self, key: CallKey) -> &str {
        let open = self.machine.open_calls();
        open.and_then(|calls| calls.call_id(key))
            .unwrap_or_default()
    }

    /// Turns wake-ups into inputs. The first is returned, the others are queued.
    async fn reasons(
        &mut self,
        reasons: WakeReasons,
        work: &mut Work,
    ) -> Result<Option<Input>, StoreError> {
        if reasons.about(WakeReason::Watched) {
            show::introduce(self, work);
            if questions::is_asking(self, work) {
                questions::show_open(self).await;
            }
        }
        if reasons.about(WakeReason::Asks) {
            questions::side::ask(self, work).await?;
        }
        if reasons.about(WakeReason::Unattended) {
            let input = self.unattended(work).await?;
            work.inputs.extend(input);
        }
        if reasons.about(WakeReason::Mail) {
            questions::hear(self, work).await?;
            let mail = self.fetch_mail().await?;
            work.inputs.push_back(mail);
        }
        if reasons.about(WakeReason::Settle) {
            work.inputs.push_back(Input::Settle);
            if work.timers.heal.is_some() {
                lead::check_teams(self, work).await?;
            }
        }
        if reasons.about(WakeReason::Tasks) {
            work.inputs.extend(tasks::on_hint(self));
        }
        Ok(work.inputs.pop_front())
    }

    /// Denies what its front end was asked, which has left.
    async fn unattended(&mut self, work: &mut Work) -> Result<Option<Input>, StoreError> {
        if self.machine.approver() == Approver::FrontEnd {
            questions::give_up(self, work).await?;
        }
        Ok(Some(Input::Unattended))
    }

    /// Reads the mail that it has not read yet.
    async fn fetch_mail(&mut self) -> Result<Input, StoreError> {
        let Identity { realm, agent, .. } = self.identity;
        let (filter, page) = (
            MailFilter { waiting: true },
            Page::after(self.inbox.last, MAIL),
        );
        let mut mail = self.ports.store.mail(realm, agent, filter, page).await?;
        self.inbox.last = mail.last().map_or(self.inbox.last, |mail| mail.number);
        if mail.len() == MAIL {
            // There may be more. It is read in a turn of its own, after this has been handled.
            self.inbox.wakeup.raise(WakeReason::Mail);
        }
        teammate::handle_dismissal(self, &mut mail);
        Ok(Input::Mail(mail))
    }

    /// Makes it read its inbox when it starts.
    pub(crate) fn expect_mail(&self) {
        self.inbox.wakeup.raise(WakeReason::Mail);
    }

    pub(crate) fn agent(&self) -> AgentId {
        self.identity.agent
    }

    /// Reads the inbox before it starts. The decision is dropped: the messages wait in the machine.
    pub(crate) async fn look_for_mail(&mut self) -> Result<(), StoreError> {
        let mail = self.fetch_mail().await?;
        self.machine.step(mail);
        Ok(())
    }

    /// Returns what a call of a tool means to do.
    pub(crate) fn intent(&self, tool: &str, input: &RawJson) -> Result<Intent, ToolError> {
        let tools = &self.setup.tools;
        // Its definition stays in the history, whatever became of the tool.
        if tool.starts_with(OF_SERVERS) && tools.get(tool).is_none() {
            return Err(ToolError::Tell(prompt::served::gone(tool)));
        }
        tools.intent(tool, input, &self.setup.workspace)
    }
}

/// Keeps a background command that a call has begun, and returns the rest of its output.
fn answered(output: ToolOutput, call: &str, work: &mut Work) -> Answered {
    let then = match output.then {
        // Only a first result can ask for another tool; this may be the result of an operation.
        FollowUp::Nothing | FollowUp::ToolFirst { .. } => Consequence::Nothing,
        FollowUp::Operations(ops) => Consequence::Operations(ops),
        FollowUp::MailShown(numbers) => Consequence::MailShown(numbers),
        FollowUp::Mode(mode) => Consequence::Mode(mode),
        FollowUp::Refused { refusal, failed } => Consequence::Refused { refusal, failed },
        FollowUp::Runs(run) => {
            let (id, description, output) = (run.id, run.description.clone(), run.output.clone());
            work.begun.insert(id, (*run, call.to_owned()));
            Consequence::Began {
                id,
                description,
                output,
            }
        }
    };
    Answered {
        content: output.content,
        then,
        ran: RanFacts {
            answer: output.answer,
            took_ms: None,
        },
    }
}

/// Returns the current Unix time in milliseconds.
pub(crate) fn wall_ms(clock: &dyn Clock) -> i64 {
    let since = clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns a marker that is unique to a call. Processes that it starts carry it, so that they are
/// found after a crash.
pub(crate) fn marker(agent: AgentId, key: CallKey) -> String {
    format!("{agent}.{}.{}", key.seq, key.ordinal)
}

/// Waits for the future; for ever if there is none.
async fn maybe<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(waiting) => {
            let result = waiting.await;
            // Cleared, because a finished future must not be polled again.
            *future = None;
            result
        }
        None => std::future::pending().await,
    }
}
