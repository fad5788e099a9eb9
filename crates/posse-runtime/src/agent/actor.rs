//! One agent that lives: it waits for the next input, asks [`Machine::step`] what to do, commits that,
//! and then does the effects. It owns all of the agent's state; nobody else has any of it.

mod call;
mod carry;
mod compact;
mod fork;
mod mate;
mod offer;
mod runs;
mod skills;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use posse_protocol::{
    AgentId, AgentMisses, Answer, Command, EventKind, Fault, FaultClass, Misses, Name, Outcome,
    RawJson, RealmId, RunEnd, TaskId, Usage,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::actor::call::{Admission, Called};
use crate::agent::actor::compact::Squeezed;
pub(crate) use crate::agent::actor::mate::Mate;
pub(crate) use crate::agent::actor::offer::Known;
pub(crate) use crate::agent::actor::runs::{Sub, last_resort};
use crate::agent::actor::skills::{Followed, Following};
use crate::agent::ending;
use crate::agent::events::Outlet;
use crate::agent::lifecycle::Lifecycle;
use crate::agent::step::{Answered, Consequence, Decision, Ended, Input, Machine, Run, Squeeze};
use crate::definition::terms::Terms;
use crate::govern::{Account, Entry, Place, Warmth};
use crate::history::History;
use crate::history::cache_ttl::Reuse;
use crate::history::fork_point::Branch;
use crate::history::request_size::Paid;
use crate::live::registry::{By, Registry, Stop};
use crate::live::session::Tree;
use crate::live::setup::Setup;
use crate::live::stop;
use crate::live::wakeup::{About, Nudge, Nudged};
use crate::supervise::{Calls, Living, Supervisor};
use posse_port::BoxFuture;
use posse_port::Ports;
use posse_port::clock::Clock;
use posse_port::model::{Attribution, Piece};
use posse_port::store::{AgentState, Birth, CallKey, Epoch, MailFilter, Segment, StoreError};
use posse_port::tool::{Intent, NewRun, RunReport, Seen, Then, ToolError, ToolOutput};

/// How long tools have to end when they are told to; then they are given up.
const GRACE: Duration = Duration::from_millis(900);
/// The same for tools that wait for other agents, who have their own tools to end first.
const LONG_GRACE: Duration = Duration::from_millis(1800);
/// So much mail is looked at together.
const MAIL: usize = 256;

/// Who an agent is.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) realm: RealmId,
    pub(crate) agent: AgentId,
    pub(crate) epoch: Epoch,
}

type Ran = Result<ToolOutput, ToolError>;

/// One agent.
pub(crate) struct Actor {
    /// The first to go: whoever sees the agent's events end may bring it to life again.
    pub(crate) living: Option<Living>,
    pub(crate) ports: Ports,
    pub(crate) supervisor: Supervisor,
    pub(crate) registry: Arc<Registry>,
    pub(crate) lifecycle: Arc<dyn Lifecycle>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) setup: Setup,
    pub(crate) identity: Identity,
    pub(crate) attribution: Arc<Attribution>,
    /// The model's name, for charges of calls that nobody answered.
    pub(crate) model: String,
    pub(crate) preamble: Piece,
    /// The histories of others that its own begins with.
    pub(crate) segments: Vec<Segment>,
    /// What was agreed with a sub-agent.
    pub(crate) terms: Option<Box<Terms>>,
    /// Where it stands, once a call of its last reply has asked for a fork.
    pub(crate) branch: Option<Arc<Branch>>,
    /// Where its parent stands that it is a fork of, until its own first entry.
    pub(crate) opening: Option<Arc<Branch>>,
    /// Until the first step has been committed.
    pub(crate) birth: Option<Box<Birth>>,
    pub(crate) history: History,
    pub(crate) previous_reply: Option<String>,
    pub(crate) reuse: Reuse,
    pub(crate) machine: Machine,
    pub(crate) seen: Seen,
    pub(crate) outlet: Outlet,
    pub(crate) stop: Stop,
    pub(crate) nudge: Arc<Nudge>,
    pub(crate) account: Account,
    /// While it works.
    pub(crate) place: Option<Place>,
    /// Whether what it shares with its siblings can be read from the cache: its first call waits for that.
    pub(crate) warmth: Option<Arc<Warmth>>,
    pub(crate) paid: Paid,
    /// Whether its history could not be compacted: not before the next reply it is tried again.
    pub(crate) unsqueezed: bool,
    /// Whether the store was told that it waits for a place.
    pub(crate) told_queued: bool,
    /// Whether mail waited when its last run ended.
    pub(crate) mail_waits: bool,
    /// The newest mail that it has looked at.
    pub(crate) last_mail: u64,
    pub(crate) known: Known,
    /// What makes it a sub-agent.
    pub(crate) sub: Option<Sub>,
    /// What makes it a teammate.
    pub(crate) mate: Option<Mate>,
    /// Tasks that it has had, by list.
    pub(crate) tasks: BTreeSet<(Option<Name>, TaskId)>,
    /// Whether its last run ended by itself.
    pub(crate) completed: bool,
}

/// What is under way.
pub(crate) struct Work {
    /// What is to be looked at before anything else.
    inputs: VecDeque<Input>,
    /// Whether it may call at once, as far as its siblings are concerned; from before a commit until after it.
    entry: Option<Entry>,
    /// Waits until it may call the model.
    admission: Option<BoxFuture<'static, Admission>>,
    calling: Option<BoxFuture<'static, Called>>,
    /// How the history is to be compacted before the next call, and what is under way of it.
    squeeze: Option<Squeeze>,
    squeezing: Option<BoxFuture<'static, Squeezed>>,
    cancel_model: CancellationToken,
    calls: Calls<CallKey, Ran>,
    /// What calls have begun and nobody follows yet, with the model's ids of the calls.
    begun: HashMap<Uuid, (NewRun, String)>,
    shells: Calls<Uuid, RunReport>,
    following: Following,
    /// Fires when tools that were told to end have not.
    grace: Option<BoxFuture<'static, ()>>,
    /// While the main agent's teams do something: when it is looked whether they still do.
    heal: Option<BoxFuture<'static, ()>>,
    began: Duration,
    api: Duration,
    /// Whether somebody may tell it more, and whether it was told to stop.
    open: bool,
    stopping: bool,
}

impl Work {
    fn new(began: Duration) -> Self {
        Self {
            inputs: VecDeque::new(),
            entry: None,
            admission: None,
            calling: None,
            squeeze: None,
            squeezing: None,
            cancel_model: CancellationToken::new(),
            calls: Calls::new(),
            begun: HashMap::new(),
            shells: Calls::new(),
            following: Following::default(),
            grace: None,
            heal: None,
            began,
            api: Duration::ZERO,
            open: true,
            stopping: false,
        }
    }
}

/// Ends when the future does; never if there is none.
async fn maybe<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(waiting) => {
            let result = waiting.await;
            *future = None;
            result
        }
        None => std::future::pending().await,
    }
}

/// What comes next.
enum Next {
    Command(Option<Command>),
    Stop,
    Nudged(Nudged),
    Admitted(Admission),
    Called(Box<Called>),
    Squeezed(Box<Squeezed>),
    CallDone(CallKey, Option<Ran>),
    ShellDone(Uuid, Option<RunReport>),
    Followed(Followed),
    GraceOver,
    Heal,
}

impl Actor {
    /// Lives until it is told to end and has nothing left to do. Whether mail has come for it that it
    /// did not look at.
    pub(crate) async fn live(mut self, mut commands: mpsc::Receiver<Command>) -> bool {
        let mut work = Work::new(self.ports.clock.now());
        Box::pin(self.arrive()).await;
        let mut lost = None;
        while work.open || !self.machine.is_idle() || work.following.is_busy() {
            if let Err(error) = self.turn(&mut work, &mut commands).await {
                lost = Some(error);
                break;
            }
        }
        if lost.is_none() {
            Box::pin(self.dismiss()).await;
        }
        let event = lost.map(|error| self.lost(&error, &mut work));
        Box::pin(self.wind_up(&mut work, event.is_none())).await;
        Box::pin(self.depart(event)).await
    }

    /// Waits for the next input and does what is to be done about it.
    async fn turn(
        &mut self,
        work: &mut Work,
        commands: &mut mpsc::Receiver<Command>,
    ) -> Result<(), StoreError> {
        self.machine
            .set_live(self.registry.live(self.identity.agent));
        let waiting = work.inputs.pop_front().or_else(|| self.machine.next());
        let input = match waiting.or_else(|| self.next_held(work)) {
            Some(input) => input,
            None => {
                let next = self.next(work, commands).await;
                // What is done about it is boxed, here and below: one that waits does not carry the room for it.
                match Box::pin(self.understood(next, work)).await? {
                    Some(input) => input,
                    None => return Ok(()),
                }
            }
        };
        self.machine
            .set_live(self.registry.live(self.identity.agent));
        self.look_at_offer();
        Box::pin(self.look_at_notes(&input)).await?;
        self.hear_notices();
        let decision = self.decide(input, work);
        let silent = self.mate.is_some() && decision.commit.state == Some(AgentState::Idle);
        Box::pin(self.carry_out(decision, work)).await?;
        if silent {
            self.quiet_again();
        }
        self.show_seeking();
        Ok(())
    }

    /// What is to be done about an input. Calls that have ended together are kept together: one commit
    /// each would make many that end at once wait for each other.
    fn decide(&mut self, input: Input, work: &mut Work) -> Decision {
        let ends = matches!(input, Input::CallDone { .. });
        let mut decision = self.machine.step(input);
        while ends && let Some((key, result)) = work.calls.try_next() {
            let ended = self.call_done(key, result, work);
            decision.add(self.machine.step(ended));
        }
        decision
    }

    async fn next(&self, work: &mut Work, commands: &mut mpsc::Receiver<Command>) -> Next {
        tokio::select! {
            command = commands.recv(), if work.open => Next::Command(command),
            () = self.stop.token.cancelled(), if !work.stopping => Next::Stop,
            nudged = self.nudge.raised() => Next::Nudged(nudged),
            admission = maybe(&mut work.admission) => Next::Admitted(admission),
            called = maybe(&mut work.calling) => Next::Called(Box::new(called)),
            squeezed = maybe(&mut work.squeezing) => Next::Squeezed(Box::new(squeezed)),
            Some((key, result)) = work.calls.next(), if !work.calls.is_empty() => Next::CallDone(key, result),
            Some((id, report)) = work.shells.next(), if !work.shells.is_empty() => Next::ShellDone(id, report),
            followed = work.following.next() => Next::Followed(followed),
            () = maybe(&mut work.grace) => Next::GraceOver,
            () = maybe(&mut work.heal) => Next::Heal,
        }
    }

    /// What came, as an input; none if there is nothing to decide about it.
    async fn understood(
        &mut self,
        next: Next,
        work: &mut Work,
    ) -> Result<Option<Input>, StoreError> {
        Ok(match next {
            Next::Command(Some(command)) => match work.following.hold(command) {
                Ok(input) => input,
                Err(command) => self.heard(command, work),
            },
            Next::Command(None) => {
                work.open = false;
                if self.sub.is_none() {
                    self.registry.unattended(&self.tree);
                }
                Some(Input::Unattended)
            }
            Next::Stop => {
                (work.open, work.stopping) = (false, true);
                self.told_to_stop();
                self.machine.forget_waiting();
                work.following.forget();
                self.stop_shells();
                Some(Input::Interrupt)
            }
            Next::Nudged(nudged) => self.nudged(nudged, work).await?,
            Next::Admitted(admission) => {
                self.admitted(admission, work).await?;
                None
            }
            Next::Called(called) => Some(self.called(*called, work)),
            Next::Squeezed(squeezed) => Some(self.squeezed(*squeezed).await?),
            Next::CallDone(key, result) => Some(self.call_done(key, result, work)),
            Next::ShellDone(id, report) => {
                self.shell_done(id, report).await?;
                None
            }
            Next::Followed(followed) => Some(self.followed(followed, work)),
            Next::GraceOver => {
                work.calls.give_up();
                None
            }
            Next::Heal => {
                self.look_at_teams(work).await?;
                None
            }
        })
    }

    fn call_done(&self, key: CallKey, result: Option<Ran>, work: &mut Work) -> Input {
        if work.calls.is_empty() {
            work.grace = None;
        }
        let call = self.call_id(key);
        let result = result.map(|ran| {
            ran.map(|output| match output.then {
                Then::First { tool, input } => {
                    let intent = self.intent(&tool, &input);
                    Answered {
                        content: Vec::new(),
                        then: Consequence::First {
                            tool,
                            input,
                            intent,
                        },
                    }
                }
                _ => answered(output, call, work),
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

    /// What waits behind a skill, if its turn has come.
    fn next_held(&mut self, work: &mut Work) -> Option<Input> {
        if !self.machine.is_idle() {
            return None;
        }
        match work.following.take()? {
            Command::Skill {
                name,
                arguments,
                words,
            } => self.call_skill(&name, arguments, words, work),
            command => self.heard(command, work),
        }
    }

    fn heard(&mut self, command: Command, work: &mut Work) -> Option<Input> {
        match command {
            Command::Prompt(blocks) => Some(Input::Prompt(blocks)),
            Command::Skill {
                name,
                arguments,
                words,
            } => self.call_skill(&name, arguments, words, work),
            Command::Continue => Some(Input::Continue),
            Command::Interrupt => {
                work.following.stop();
                Some(Input::Interrupt)
            }
            Command::SetMode(mode) => Some(Input::SetMode(mode)),
            Command::Answer {
                agent,
                call,
                answer,
            } if agent == self.identity.agent => {
                let answer = self.registry.questions.answer(agent, &call, answer)?;
                let intent = match &answer {
                    Answer::Allow { input: Some(input) } => self
                        .machine
                        .open_calls()
                        .and_then(|calls| calls.asked_tool(&call))
                        .map(|tool| self.intent(tool, input)),
                    _ => None,
                };
                Some(Input::Answer {
                    call,
                    answer,
                    intent,
                })
            }
            Command::Answer {
                agent,
                call,
                answer,
            } => {
                let passed = self.registry.pass_on(
                    agent,
                    Command::Answer {
                        agent,
                        call: call.clone(),
                        answer,
                    },
                );
                // Who is not here cannot have asked: here nobody has either, and it is reported so.
                let unheard = |_| Input::Answer {
                    call,
                    answer: Answer::Allow { input: None },
                    intent: None,
                };
                passed.err().map(unheard)
            }
            Command::Compact { keep } => Some(Input::Compact { keep }),
            Command::StopRun(task) => {
                let (registry, outlet) = (Arc::clone(&self.registry), self.outlet.clone());
                self.supervisor.start_errand(async move {
                    if stop::stop(&registry, task, By::Person).await.is_none() {
                        let what = format!("{task} cannot be stopped: nothing runs under that id");
                        outlet.emit(EventKind::Unheard(what)).await;
                    }
                });
                None
            }
            Command::StopRuns => {
                // Who stops everything wants nothing to begin by it.
                self.machine.fall_asleep();
                let (registry, root) = (Arc::clone(&self.registry), self.tree.root);
                self.supervisor
                    .start_errand(async move { stop::stop_all(&registry, root, By::Person).await });
                None
            }
            Command::Detach => {
                self.registry.detach_all(self.tree.root);
                None
            }
            Command::Team { name, plan, words } => Some(self.make_team(name, &plan, words)),
            Command::To { agent, command } => {
                let passed = self.registry.pass_on(agent, *command);
                if passed.is_err() {
                    let what = format!("{agent} is not here to be told anything");
                    let outlet = self.outlet.clone();
                    self.supervisor
                        .start_errand(async move { outlet.emit(EventKind::Unheard(what)).await });
                }
                None
            }
        }
    }

    async fn nudged(
        &mut self,
        nudged: Nudged,
        work: &mut Work,
    ) -> Result<Option<Input>, StoreError> {
        if nudged.about(About::Unattended) {
            work.inputs.push_back(Input::Unattended);
        }
        if nudged.about(About::Mail) {
            let mail = self.fetch_mail().await?;
            work.inputs.push_back(mail);
        }
        if nudged.about(About::Settle) {
            work.inputs.push_back(Input::Settle);
            if work.heal.is_some() {
                self.look_at_teams(work).await?;
            }
        }
        if nudged.about(About::Tasks) {
            work.inputs.extend(self.hint());
        }
        Ok(work.inputs.pop_front())
    }

    /// What waits in the inbox and was not looked at yet.
    async fn fetch_mail(&mut self) -> Result<Input, StoreError> {
        let Identity { realm, agent, .. } = self.identity;
        let filter = MailFilter {
            waiting: true,
            after: self.last_mail,
        };
        let mut mail = self.ports.store.mail(realm, agent, filter, MAIL).await?;
        self.last_mail = mail.last().map_or(self.last_mail, |mail| mail.number);
        if mail.len() == MAIL {
            // There may be more.
            self.nudge.raise(About::Mail);
        }
        self.heed_dismissal(&mut mail);
        Ok(Input::Mail(mail))
    }

    /// Has it look into its inbox when it begins to live.
    pub(crate) fn expect_mail(&self) {
        self.nudge.raise(About::Mail);
    }

    pub(crate) fn agent(&self) -> AgentId {
        self.identity.agent
    }

    /// Looks into the inbox before it lives. Nothing begins by it yet.
    pub(crate) async fn look_for_mail(&mut self) -> Result<(), StoreError> {
        let mail = self.fetch_mail().await?;
        self.machine.step(mail);
        Ok(())
    }

    fn intent(&self, tool: &str, input: &RawJson) -> Result<Intent, ToolError> {
        self.setup.tools.intent(tool, input, &self.setup.workspace)
    }

    /// What is done in its place if it panics: whoever waits must not wait for an end that never comes.
    pub(crate) fn crashed(&self) -> impl Future<Output = ()> + Send + 'static {
        let (outlet, ports, identity) = (self.outlet.clone(), self.ports.clone(), self.identity);
        let registry = Arc::clone(&self.registry);
        let run = self.sub.as_ref().map(|sub| Arc::clone(&sub.run));
        let worktree = self.sub.as_ref().and_then(|sub| sub.worktree.clone());
        async move {
            let message = "posse itself failed in the middle of the run".to_owned();
            let mut end = run
                .as_ref()
                .map(|run| ending::broken(&run.facts, run.id, message.clone()));
            if let (Some(end), Some(worktree)) = (&mut end, &worktree) {
                end.worktree = Some(runs::worktree_end(&ports, worktree).await);
            }
            if let (Some(run), Some(end)) = (&run, &end)
                && run.is_durable()
            {
                runs::last_resort(&ports, identity, run, end, 0).await;
            }
            if let Some(worktree) = worktree {
                ports.worktrees.release(&worktree).await;
            }
            registry.leave(identity.agent);
            match run.zip(end) {
                Some((run, end)) => run.over(end),
                None => {
                    let fault = Fault {
                        class: FaultClass::Internal,
                        status: None,
                        message,
                    };
                    outlet
                        .emit(EventKind::Ended(Box::new(RunEnd::of(Outcome::Failed(
                            fault,
                        )))))
                        .await;
                }
            }
            // If it fails, others find out by themselves that this process has ended.
            let _ = ports.store.release(identity.agent, identity.epoch).await;
        }
    }

    /// The store refused: nothing that it did not take has happened, and nothing more will.
    fn lost(&mut self, error: &StoreError, work: &mut Work) -> EventKind {
        let fault = Fault::from(error);
        let ended = Ended {
            outcome: Outcome::Failed(fault),
            run: self.machine.take_run(),
        };
        // Whoever waits for it waits no longer.
        drop((
            work.calling.take(),
            work.squeezing.take(),
            work.admission.take(),
            work.entry.take(),
        ));
        work.calls.cancel();
        self.ended(ended, work, 0)
    }

    fn ended(&self, ended: Ended, work: &Work, busy: usize) -> EventKind {
        let Ended { outcome, run } = ended;
        let is_root = self.sub.is_none();
        let (below, mut misses) = if is_root {
            self.account.take_below()
        } else {
            Default::default()
        };
        misses.append(self.own_misses(&run));
        EventKind::Ended(Box::new(RunEnd {
            outcome,
            text: run.text,
            stop: run.stop,
            turns: run.turns,
            spent: run.spent,
            below,
            misses,
            live: self.going_on() + busy,
            duration_ms: millis(self.ports.clock.now().saturating_sub(work.began)),
            api_ms: millis(work.api),
            denials: run.denials,
        }))
    }

    /// How many runs go on that begin another of this agent when they end.
    fn going_on(&self) -> usize {
        // Mail that came with its last breath begins another run.
        self.registry.live(self.identity.agent) + usize::from(self.mail_waits)
    }

    /// What it missed in the cache in a run.
    fn own_misses(&self, run: &Run) -> Misses {
        let missed = run.missed.clone();
        let usage = run
            .spent
            .iter()
            .fold(Usage::default(), |sum, spent| sum + spent.usage);
        let (agent, path) = (self.identity.agent, self.attribution.path.clone());
        let line = AgentMisses {
            agent,
            path,
            usage,
            missed: missed.clone(),
        };
        Misses {
            agents: if missed.is_empty() {
                Vec::new()
            } else {
                vec![line]
            },
            missed,
            others: 0,
        }
    }
}

/// Keeps what a call has begun, and passes the rest on.
fn answered(output: ToolOutput, call: &str, work: &mut Work) -> Answered {
    let then = match output.then {
        // What follows from an operation wants nothing first.
        Then::Nothing | Then::First { .. } => Consequence::Nothing,
        Then::Operate(ops) => Consequence::Operate(ops),
        Then::Took(numbers) => Consequence::Took(numbers),
        Then::Runs(run) => {
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
    }
}

/// Now, in milliseconds of Unix time.
pub(crate) fn wall_ms(clock: &dyn Clock) -> i64 {
    let since = clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Unique to a call, for ever.
pub(crate) fn marker(agent: AgentId, key: CallKey) -> String {
    format!("{agent}.{}.{}", key.seq, key.ordinal)
}
