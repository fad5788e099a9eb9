//! One agent that lives: it waits for the next input, asks [`Machine::step`] what to do, commits that,
//! and then does the effects. It owns all of the agent's state; nobody else has any of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use posse_protocol::{
    AgentId, Answer, Command, ContentBlock, Entry, EntryKind, EventKind, Fault, FaultClass, Outcome, RawJson,
    RealmId, RunEnd, Usage,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::history::History;
use super::outlet::{Arriving, Outlet};
use super::step::{Commit, Decision, Effect, Ended, Input, Machine};
use super::{Ports, Setup};
use crate::port::BoxFuture;
use crate::port::model::{Attribution, Failure, Piece, Reply, Request};
use crate::port::store::{Birth, CallKey, Charge, Epoch, StateChange, Step, StoreError};
use crate::supervise::{Calls, Living};
use crate::tool::{Intent, Seen, Subject, ToolContext, ToolError, ToolOutput};

/// How long tools have to end when they are told to; then they are given up.
const GRACE: Duration = Duration::from_millis(900);

/// Who an agent is.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    pub(super) realm: RealmId,
    pub(super) agent: AgentId,
    pub(super) epoch: Epoch,
}

type Called = (Result<Reply, Failure>, Duration);
type Ran = Result<ToolOutput, ToolError>;

/// One agent.
pub(super) struct Actor {
    /// The first to go: whoever sees the agent's events end may bring it to life again.
    pub(super) _living: Option<Living>,
    pub(super) ports: Ports,
    pub(super) setup: Setup,
    pub(super) identity: Identity,
    pub(super) attribution: Arc<Attribution>,
    /// The model's name, for charges of calls that nobody answered.
    pub(super) model: String,
    pub(super) preamble: Piece,
    /// Until the first step has been committed.
    pub(super) birth: Option<Box<Birth>>,
    pub(super) history: History,
    pub(super) previous_reply: Option<String>,
    pub(super) machine: Machine,
    pub(super) seen: Seen,
    pub(super) outlet: Outlet,
    pub(super) stop: CancellationToken,
}

/// What is under way.
struct Work {
    calling: Option<BoxFuture<'static, Called>>,
    cancel_model: CancellationToken,
    calls: Calls<CallKey, Ran>,
    /// Fires when tools that were told to end have not.
    grace: Option<BoxFuture<'static, ()>>,
    began: Duration,
    api: Duration,
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

impl Actor {
    /// Lives until it is told to end and has nothing left to do.
    pub(super) async fn live(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut work = Work {
            calling: None,
            cancel_model: CancellationToken::new(),
            calls: Calls::new(),
            grace: None,
            began: Duration::ZERO,
            api: Duration::ZERO,
        };
        let (mut open, mut stopping) = (true, false);
        while open || !self.machine.is_idle() {
            let input = if let Some(input) = self.machine.next() {
                input
            } else {
                tokio::select! {
                    command = commands.recv(), if open => match command {
                        Some(command) => self.heard(command),
                        None => {
                            open = false;
                            Input::Unattended
                        }
                    },
                    () = self.stop.cancelled(), if !stopping => {
                        (open, stopping) = (false, true);
                        self.machine.forget_waiting();
                        Input::Interrupt
                    }
                    (result, took) = maybe(&mut work.calling) => {
                        work.api += took;
                        self.called(result)
                    }
                    Some((key, result)) = work.calls.next(), if !work.calls.is_empty() => {
                        if work.calls.is_empty() {
                            work.grace = None;
                        }
                        Input::CallDone { key, result }
                    }
                    () = maybe(&mut work.grace) => {
                        work.calls.give_up();
                        continue;
                    }
                }
            };
            let decision = self.machine.step(input);
            if let Err(error) = self.carry_out(decision, &mut work).await {
                self.lost(&error, work).await;
                break;
            }
        }
        // If it fails, others find out by themselves that this process has ended.
        let _ = self.ports.store.release(self.identity.agent, self.identity.epoch).await;
    }

    /// What is done in its place if it panics: a front end must not wait for an end that never comes.
    pub(super) fn crashed(&self) -> impl Future<Output = ()> + Send + 'static {
        let (outlet, store, identity) = (self.outlet.clone(), Arc::clone(&self.ports.store), self.identity);
        async move {
            let message = "posse itself failed in the middle of the run".to_owned();
            let fault = Fault { class: FaultClass::Internal, status: None, message };
            outlet.emit(EventKind::Ended(Box::new(RunEnd::of(Outcome::Failed(fault))))).await;
            // If it fails, others find out by themselves that this process has ended.
            let _ = store.release(identity.agent, identity.epoch).await;
        }
    }

    /// The store refused: nothing that it did not take has happened, and nothing more will.
    async fn lost(&mut self, error: &StoreError, mut work: Work) {
        let ended = Ended { outcome: Outcome::Failed(Fault::from(error)), run: self.machine.take_run() };
        let event = self.ended(ended, &work);
        drop(work.calling.take());
        work.calls.cancel();
        let mut grace = Some(self.ports.clock.sleep(GRACE));
        while !work.calls.is_empty() {
            tokio::select! {
                _ = work.calls.next() => {}
                () = maybe(&mut grace) => work.calls.give_up(),
            }
        }
        self.outlet.emit(event).await;
    }

    fn heard(&self, command: Command) -> Input {
        match command {
            Command::Prompt(blocks) => Input::Prompt(blocks),
            Command::Continue => Input::Continue,
            Command::Interrupt => Input::Interrupt,
            Command::SetMode(mode) => Input::SetMode(mode),
            Command::Answer { call, answer } => {
                let intent = match &answer {
                    Answer::Allow { input: Some(input) } => {
                        self.machine.asked_tool(&call).map(|tool| self.intent(tool, input))
                    }
                    _ => None,
                };
                Input::Answer { call, answer, intent }
            }
        }
    }

    fn intent(&self, tool: &str, input: &RawJson) -> Result<Intent, ToolError> {
        match self.setup.tools.get(tool) {
            Some(tool) => {
                // What a model writes must not end the agent, whatever a tool makes of it.
                let look = AssertUnwindSafe(|| tool.intent(input, &self.setup.workspace));
                let crashed = |_| Err(ToolError::Tell("the tool crashed at the sight of this input".into()));
                catch_unwind(look).unwrap_or_else(crashed)
            }
            None => {
                let names = self.setup.tools.names().join(", ");
                Err(ToolError::Tell(format!("there is no tool {tool}; there are {names}")))
            }
        }
    }

    fn called(&mut self, result: Result<Reply, Failure>) -> Input {
        let prices = Arc::clone(&self.ports.prices);
        // A gateway may call the model by a name of its own.
        let asked = self.model.clone();
        let price =
            |model: &str, usage: &Usage| prices.cost(model, usage).or_else(|| prices.cost(&asked, usage));
        let charge =
            |model: &str, usage| Charge { model: model.to_owned(), usage, cost: price(model, &usage) };
        match result {
            Ok(reply) => {
                let model = if reply.model.is_empty() { &self.model } else { &reply.model };
                let spent = reply.wasted.iter().chain([&reply.usage]);
                let charges = spent.map(|usage| charge(model, *usage)).collect();
                let intents = reply.content.iter().filter_map(|block| match block {
                    ContentBlock::ToolUse { name, input, .. } => Some(self.intent(name, input)),
                    _ => None,
                });
                let intents = intents.collect();
                self.previous_reply = Some(reply.id.clone());
                Input::Reply { reply: Box::new(reply), charges, intents }
            }
            Err(failure) => {
                let charges = failure.spent.iter().map(|usage| charge(&self.model, *usage)).collect();
                Input::Failed { failure: Box::new(failure), charges }
            }
        }
    }

    /// First the commit, then the effects.
    async fn carry_out(&mut self, decision: Decision, work: &mut Work) -> Result<(), StoreError> {
        let Decision { commit, after } = decision;
        self.commit(commit).await?;
        for effect in after {
            match effect {
                Effect::Emit(kind) => self.outlet.emit(kind).await,
                Effect::Begin => {
                    (work.began, work.api) = (self.ports.clock.now(), Duration::ZERO);
                    self.outlet.emit(EventKind::Started).await;
                }
                Effect::CallModel => self.call_model(work),
                Effect::AbortModel => work.cancel_model.cancel(),
                Effect::Run { key, tool, input, subject } => self.run_tool(work, key, &tool, input, subject),
                Effect::AbortCalls => {
                    work.calls.cancel();
                    work.grace = Some(self.ports.clock.sleep(GRACE));
                }
                Effect::End(ended) => self.outlet.emit(self.ended(*ended, work)).await,
            }
        }
        Ok(())
    }

    fn ended(&self, ended: Ended, work: &Work) -> EventKind {
        let Ended { outcome, run } = ended;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        EventKind::Ended(Box::new(RunEnd {
            outcome,
            text: run.text,
            stop: run.stop,
            turns: run.turns,
            spent: run.spent,
            duration_ms: millis(self.ports.clock.now().saturating_sub(work.began)),
            api_ms: millis(work.api),
            denials: run.denials,
        }))
    }

    /// Spells a commit, makes it durable, and tells of its entries.
    pub(super) async fn commit(&mut self, commit: Commit) -> Result<(), StoreError> {
        if let (Some(birth), Some(mode), true) = (&mut self.birth, commit.mode, commit.entries.is_empty()) {
            // Who has not been told anything yet is not in the store either.
            birth.mode = mode;
            return Ok(());
        }
        if commit.is_empty() {
            return Ok(());
        }
        let mut messages = Vec::with_capacity(commit.entries.len());
        let mut parts = Vec::with_capacity(commit.entries.len());
        for draft in commit.entries {
            parts.push((draft.kind, self.ports.model.entry(&draft.message), draft.reply));
            messages.push(draft.message);
        }
        let entries = self.history.draft(parts);
        // What a tool has read is known once the model has been told.
        let told = entries.iter().any(|entry| entry.kind == EntryKind::Results);
        let seen = if told { self.seen.take_fresh() } else { Vec::new() };
        let Identity { realm, agent, epoch } = self.identity;
        let step = Step {
            birth: self.birth.take(),
            entries: entries.clone(),
            calls: commit.calls,
            charges: commit.charges,
            seen,
            state: commit.state.map(StateChange::To),
            mode: commit.mode,
            ..Step::new(realm, agent, epoch, self.wall_ms())
        };
        self.ports.store.commit(step).await?;
        for (entry, message) in entries.into_iter().zip(messages) {
            let (seq, kind) = (entry.seq, entry.kind);
            self.history.push(kind, entry.piece, entry.checksum);
            let told = Entry { seq, kind, message, reply: entry.reply };
            self.outlet.emit(EventKind::Entry(Box::new(told))).await;
        }
        Ok(())
    }

    fn wall_ms(&self) -> i64 {
        let since = self.ports.clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn call_model(&self, work: &mut Work) {
        work.cancel_model = CancellationToken::new();
        let body = self.ports.model.body(&Request {
            preamble: &self.preamble,
            entries: self.history.pieces(),
            marks: &self.history.marks(),
            max_tokens: self.setup.limits.max_tokens,
            previous: self.previous_reply.as_deref(),
        });
        let Ports { model, clock, .. } = self.ports.clone();
        let (attribution, cancel) = (Arc::clone(&self.attribution), work.cancel_model.clone());
        let arriving = Arriving::new(self.outlet.clone());
        work.calling = Some(Box::pin(async move {
            let start = clock.now();
            let result = arriving.follow(&*model, body, &attribution, &cancel).await;
            (result, clock.now().saturating_sub(start))
        }));
    }

    fn run_tool(&self, work: &mut Work, key: CallKey, tool: &str, input: RawJson, subject: Subject) {
        let (name, tool) = (tool.to_owned(), self.setup.tools.get(tool).cloned());
        let marker = marker(self.identity.agent, key);
        let (workspace, policy) = (Arc::clone(&self.setup.workspace), Arc::clone(&self.setup.policy));
        let (seen, clock) = (self.seen.clone(), Arc::clone(&self.ports.clock));
        work.calls.start(key, move |cancel| async move {
            let Some(tool) = tool else { return Err(ToolError::Tell(format!("there is no tool {name}"))) };
            let context = ToolContext { marker, subject, workspace, seen, policy, clock, cancel };
            tool.run(input, context).await
        });
    }
}

/// Unique to a call, for ever.
pub(super) fn marker(agent: AgentId, key: CallKey) -> String {
    format!("{agent}.{}.{}", key.seq, key.ordinal)
}
