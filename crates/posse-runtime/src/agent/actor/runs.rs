//! An agent's run as others see it, and the commands that it has in the background.

use std::sync::Arc;
use std::time::Duration;

use crate::live::stop;
use posse_protocol::{
    AgentId, ContentBlock, Entry, EntryKind, Event, EventKind, MailId, MailKind, Notification,
    Outcome, RunChange as News, RunFacts, RunNews, RunStatus, RunUsage, WorktreeEnd,
};
use uuid::Uuid;

use crate::agent::actor::{Actor, GRACE, Identity, Work, maybe, millis, wall_ms};
use crate::agent::ending;
use crate::agent::output::Output;
use crate::agent::step::{Closing, Effect, Run as Tally};
use crate::live::registry::{By, Shell, Stop};
use crate::live::run::{Run, shell_facts};
use posse_port::Ports;
use posse_port::store::{
    Address, AgentState, EndedRun, Op, Operation, RunChange, RunChangeKind, StateChange, Step,
    StoreError,
};
use posse_port::text;
use posse_port::tool::RunReport;
use posse_port::worktree::Worktree;

/// How long is looked at a checkout before the end of a run is told: who was told to stop is waited for
/// about as long.
const LOOK: Duration = Duration::from_millis(1500);

/// What makes an agent a sub-agent.
pub(crate) struct Sub {
    pub(crate) run: Arc<Run>,
    pub(crate) parent: AgentId,
    pub(crate) output: Output,
    /// What it was told first; of one that is brought back, nothing.
    pub(crate) prompt: String,
    /// Whether the store knows who is told of its end.
    pub(crate) starter_kept: bool,
    /// The tool it used last.
    pub(crate) last_tool: Option<String>,
    /// What it came to.
    pub(crate) end: Option<Notification>,
    /// The checkout that it has for itself.
    pub(crate) worktree: Option<Worktree>,
}

impl Sub {
    pub(crate) fn new(run: Arc<Run>, parent: AgentId, output: Output, prompt: String) -> Self {
        Self {
            run,
            parent,
            output,
            prompt,
            starter_kept: false,
            last_tool: None,
            end: None,
            worktree: None,
        }
    }

    /// Whom the store is to be told of as its starter, if it was not yet.
    pub(crate) fn untold_starter(&mut self) -> Option<AgentId> {
        let untold = self.run.is_background() && !self.starter_kept;
        self.starter_kept |= untold;
        untold.then(|| self.run.starter())
    }
}

/// What the last step of a run says besides.
pub(crate) struct LastWords {
    pub(crate) state: StateChange,
    pub(crate) ended: Option<Box<EndedRun>>,
    pub(crate) notification: Option<Operation>,
}

impl Actor {
    /// It has a checkout for itself; it is given back when the agent departs.
    pub(crate) fn has_worktree(&mut self, worktree: Option<Worktree>) {
        if let Some(sub) = &mut self.sub {
            sub.worktree = worktree;
        }
    }

    /// What is to be told of its checkout at the end of a run.
    async fn worktree_end(&self) -> Option<WorktreeEnd> {
        let worktree = self.sub.as_ref()?.worktree.as_ref()?;
        Some(worktree_end(&self.ports, worktree).await)
    }

    /// What the step says that is to end the run of a sub-agent. What the agent has started and nobody
    /// will hear of any more is stopped first.
    pub(crate) async fn close(
        &mut self,
        closing: &Closing,
        after: &[Effect],
        began: Duration,
    ) -> LastWords {
        if closing.outcome != Outcome::Completed || self.mate.is_some() {
            stop::stop_agents(
                &self.registry,
                self.identity.agent,
                By::Above { person: false },
            )
            .await;
        }
        let tally = after.iter().find_map(|effect| match effect {
            Effect::End(ended) => Some(&ended.run),
            _ => None,
        });
        let tally = tally.unwrap_or(self.machine.run());
        let usage = used(tally, self.ports.clock.now().saturating_sub(began));
        // Who was not told to stop was interrupted by a person's answer.
        let by = if self.stop.token.is_cancelled() {
            self.stop.by()
        } else {
            By::Person
        };
        let (status, state, error) = judged(&closing.outcome, by);
        let by = (status == RunStatus::Killed).then_some(by);
        let value = tally.value.clone();
        let text = value
            .as_ref()
            .map_or_else(|| tally.text.clone(), |value| value.get().to_owned());
        let model = tally
            .spent
            .last()
            .map_or_else(|| self.model.clone(), |spent| spent.model.clone());
        let mail = if by.is_some() {
            self.newest_mail().await
        } else {
            0
        };
        let worktree = self.worktree_end().await;
        let Some(sub) = &mut self.sub else {
            // Only sub-agents close.
            return LastWords {
                state: StateChange::To(state),
                ended: None,
                notification: None,
            };
        };
        let told_by_mail = sub.run.close();
        let starter = sub.run.starter();
        let quiet = by.is_some_and(|by| match by {
            // Who is stopped too hears nothing.
            By::Above { .. } => self.registry.is_frozen(starter),
            By::Agent(by) => by == starter,
            By::Person | By::Shutdown => false,
        });
        // Who has agreed to end has said so, and with the session all end. Of any other end its lead is told.
        let told_to = self.stop.token.is_cancelled().then(|| self.stop.by());
        let quiet = match (&self.mate, told_to) {
            (None, _) => quiet,
            (Some(_), by) => by.is_none_or(|by| matches!(by, By::Above { .. })),
        };
        let mut end = ending::of_agent(
            &sub.run.facts,
            sub.run.id,
            (status, error.clone()),
            &text,
            usage,
        );
        (end.model, end.value, end.worktree) = (model, value, worktree);
        let notification = (told_by_mail && !quiet).then(|| notification(&end, sub.run.starter()));
        let ended = EndedRun {
            run: sub.run.id,
            error,
            by_person: by.is_some_and(By::is_person),
            mail,
            usage,
            text: (!told_by_mail || quiet).then(|| end.result.clone()),
            value: end.value.clone(),
            worktree: end.worktree.clone(),
        };
        sub.end = Some(end);
        let state = if closing.unless_mail {
            StateChange::UnlessMail(state)
        } else {
            StateChange::To(state)
        };
        LastWords {
            state,
            ended: Some(Box::new(ended)),
            notification,
        }
    }

    /// A step is durable: the run is born by its first, and goes on if its last one ended nothing.
    pub(crate) async fn written(&mut self, mail_waits: bool) {
        let Some(sub) = &mut self.sub else { return };
        if mail_waits {
            sub.end = None;
            if sub.run.reopen() {
                self.registry.detached(&sub.run);
            }
        }
        if sub.run.born() {
            let (prompt, background) = (sub.prompt.clone(), sub.run.is_background());
            let news = RunNews {
                run: sub.run.facts.clone(),
                what: News::Started { prompt, background },
            };
            self.outlet.emit(EventKind::Run(Box::new(news))).await;
        }
    }

    /// Writes down what an entry says for those who look on.
    pub(crate) fn note(&mut self, entry: &Entry, began: Duration) {
        let Some(sub) = &mut self.sub else { return };
        if entry.kind != EntryKind::Reply {
            return;
        }
        let mut summary = String::new();
        for block in &entry.message.content {
            match block {
                ContentBlock::Text { text } if !text.trim().is_empty() => {
                    summary = text::summary(text);
                    note(&mut sub.output, &format!("{}\n", text.trim_end()));
                }
                ContentBlock::ToolUse { name, input, .. } => {
                    note(
                        &mut sub.output,
                        &format!("→ {name} {}\n", text::summary(input.get())),
                    );
                    sub.last_tool = Some(name.clone());
                }
                _ => {}
            }
        }
        let tally = self.machine.run();
        let usage = used(tally, self.ports.clock.now().saturating_sub(began));
        let last_tool = sub.last_tool.clone();
        tell(
            &self.outlet,
            &sub.run.facts,
            News::Progress {
                usage,
                last_tool,
                summary,
            },
        );
    }

    /// Lets a command go on in the background.
    pub(crate) fn start_run(&mut self, id: Uuid, work: &mut Work) {
        let Some((begun, call)) = work.begun.remove(&id) else {
            return;
        };
        let agent = self.identity.agent;
        let facts = shell_facts(id, agent, begun.description, call, begun.output);
        let stop = Stop::new(self.stop.token.child_token());
        let run = Arc::new(Run::new(facts, id, true));
        run.born();
        tell(
            &self.outlet,
            &run.facts,
            News::Started {
                prompt: String::new(),
                background: true,
            },
        );
        let token = stop.token.clone();
        self.registry.shell_began(
            agent,
            Shell {
                run,
                stop,
                began: self.ports.clock.now(),
            },
        );
        work.shells.start(id, move |_| (begun.work)(token));
    }

    /// A background command has ended: that is kept, and told to the agent by mail, in one step.
    pub(crate) async fn shell_done(
        &mut self,
        id: Uuid,
        report: Option<RunReport>,
    ) -> Result<(), StoreError> {
        let agent = self.identity.agent;
        let Some(shell) = self
            .registry
            .shells(agent)
            .into_iter()
            .find(|shell| shell.run.facts.task == id)
        else {
            return Ok(());
        };
        let crashed = || RunReport {
            status: RunStatus::Failed,
            summary: "posse lost sight of it".into(),
            result: String::new(),
        };
        let report = report.unwrap_or_else(crashed);
        let took = self.ports.clock.now().saturating_sub(shell.began);
        let usage = RunUsage {
            total_tokens: 0,
            tool_uses: 0,
            duration_ms: millis(took),
        };
        let end = ending::of_shell(&shell.run.facts, &report, usage);
        // A sub-agent whose run is over is not begun again by what it had started.
        let over = self.sub.as_ref().is_some_and(|sub| sub.end.is_some()) || self.is_stopped();
        let quiet =
            over || (report.status == RunStatus::Killed && shell.stop.by() == By::Agent(agent));
        shell.run.close();
        self.keep_shell_end(&end, quiet).await?;
        self.registry.shell_over(agent, id);
        shell.run.over(end.clone());
        let news = RunNews {
            run: shell.run.facts.clone(),
            what: News::Ended(Box::new(end)),
        };
        self.outlet.emit(EventKind::Run(Box::new(news))).await;
        Ok(())
    }

    /// Keeps that a background command has ended, and tells the agent by mail unless that is told anyway.
    pub(crate) async fn keep_shell_end(
        &mut self,
        end: &Notification,
        quiet: bool,
    ) -> Result<(), StoreError> {
        let step = Step {
            runs: vec![RunChange {
                id: end.task,
                change: RunChangeKind::Ended(end.status),
            }],
            operations: if quiet {
                Vec::new()
            } else {
                vec![notification(end, self.identity.agent)]
            },
            ..self.new_step()
        };
        self.ports.store.commit(step).await.map(drop)
    }

    /// Tells its background commands to end. A sub-agent that is stopped hears nothing of theirs.
    pub(crate) fn stop_shells(&self) {
        for shell in self.registry.shells(self.identity.agent) {
            shell.stop.stop(By::Shutdown);
        }
    }

    /// Whether it is a sub-agent that somebody has stopped.
    fn is_stopped(&self) -> bool {
        self.sub.is_some() && self.stop.token.is_cancelled()
    }

    /// The number of the newest mail that waits.
    async fn newest_mail(&mut self) -> u64 {
        loop {
            let before = self.last_mail;
            // A store that fails is noticed by the commit that follows.
            let fetched = self.fetch_mail().await;
            if fetched.is_err() || self.last_mail == before {
                return self.last_mail;
            }
        }
    }

    /// Ends what is left under way.
    pub(crate) async fn wind_up(&mut self, work: &mut Work, can_write: bool) {
        self.stop_shells();
        let mut grace = Some(self.ports.clock.sleep(GRACE));
        while !work.calls.is_empty() || !work.shells.is_empty() {
            tokio::select! {
                _ = work.calls.next(), if !work.calls.is_empty() => {}
                Some((id, report)) = work.shells.next(), if !work.shells.is_empty() => {
                    // A store that fails has failed before; nothing more can be kept.
                    let kept = if can_write { self.shell_done(id, report).await.is_ok() } else { false };
                    if !kept {
                        self.registry.shell_over(self.identity.agent, id);
                    }
                }
                () = maybe(&mut grace) => {
                    work.calls.give_up();
                    work.shells.give_up();
                }
            }
        }
    }

    /// Leaves the registry, and tells whoever waits how it ended. Whether mail may have come for it since.
    pub(crate) async fn depart(mut self, lost: Option<EventKind>) -> bool {
        let agent = self.identity.agent;
        // Of a run that breaks off nobody has looked yet.
        let looked = if lost.is_some() {
            self.worktree_end().await
        } else {
            None
        };
        let worktree = self.sub.as_mut().and_then(|sub| sub.worktree.take());
        // From here on it can be brought to life again, unless what it works in must be given back first.
        let living = self.living.take().filter(|_| worktree.is_some());
        let unread = self.machine.left_mail() && !self.stop.token.is_cancelled();
        let Some(sub) = self.sub else {
            self.registry.leave(agent);
            if let Some(event) = lost {
                self.outlet.emit(event).await;
            }
            // If it fails, others find out by themselves that this process has ended.
            let _ = self.ports.store.release(agent, self.identity.epoch).await;
            return false;
        };
        if let Some(mate) = self.mate.as_ref().filter(|_| lost.is_none()) {
            match sub.end {
                Some(_) => {
                    let left = mate.card.news(posse_protocol::MemberChange::Left);
                    self.outlet.emit(EventKind::Member(left)).await;
                }
                None => {
                    // It goes on another time, or elsewhere.
                    self.registry.leave(agent);
                    let end = ending::broken(&sub.run.facts, sub.run.id, "posse was ended".into());
                    sub.run.over(end);
                    if let Some(worktree) = worktree {
                        self.ports.worktrees.release(&worktree).await;
                    }
                    let _ = self.ports.store.release(agent, self.identity.epoch).await;
                    return false;
                }
            }
        }
        let broken = |error| ending::broken(&sub.run.facts, sub.run.id, error);
        let mut end = match (sub.end, &lost) {
            (Some(end), None) => end,
            (_, Some(EventKind::Ended(end))) => match &end.outcome {
                Outcome::Failed(fault) => broken(fault.message.clone()),
                _ => broken("the store failed".into()),
            },
            _ => broken("it was stopped before it had begun".into()),
        };
        end.worktree = end.worktree.or(looked);
        if lost.is_some() && sub.run.is_durable() {
            last_resort(&self.ports, self.identity, &sub.run, &end, 0).await;
        }
        let (mail, durable) = (self.registry.leave(agent) || unread, sub.run.is_durable());
        let removed = end
            .worktree
            .as_ref()
            .is_some_and(|worktree| worktree.kept.is_none());
        sub.run.over(end.clone());
        // Of one that is not durable nobody has heard that it began, either.
        if durable {
            let news = RunNews {
                run: sub.run.facts.clone(),
                what: News::Ended(Box::new(end)),
            };
            self.outlet.emit(EventKind::Run(Box::new(news))).await;
        }
        let Some(worktree) = worktree else {
            return mail;
        };
        if let Some(kept) = self
            .ports
            .worktrees
            .release(&worktree)
            .await
            .filter(|_| removed)
        {
            let what = format!(
                "the worktree {} is kept after all: {kept}",
                worktree.path.display()
            );
            self.outlet.emit(EventKind::Unheard(what)).await;
        }
        drop(living);
        // Mail that has come meanwhile could not bring it back. Where the store fails it would fail again.
        mail || lost.is_none()
    }

    /// It was put together, and will not live after all.
    pub(crate) async fn give_back(mut self) {
        self.registry.leave(self.identity.agent);
        // If it fails, others find out by themselves that this process has ended.
        let _ = self
            .ports
            .store
            .release(self.identity.agent, self.identity.epoch)
            .await;
        if let Some(worktree) = self.sub.as_mut().and_then(|sub| sub.worktree.take()) {
            self.ports.worktrees.release(&worktree).await;
        }
    }
}

/// What is to be told of a checkout at the end of a run.
pub(crate) async fn worktree_end(ports: &Ports, worktree: &Worktree) -> WorktreeEnd {
    let mut late = ports.clock.sleep(LOOK);
    let kept = tokio::select! {
        kept = ports.worktrees.changes(worktree) => kept,
        () = &mut late => Some("what could not be looked at in time".into()),
    };
    let Worktree {
        path, branch, base, ..
    } = worktree.clone();
    WorktreeEnd {
        path,
        branch,
        base,
        kept,
    }
}

/// What a run that has come to this has used.
fn used(tally: &Tally, took: Duration) -> RunUsage {
    RunUsage {
        total_tokens: tally.tokens(),
        tool_uses: tally.tool_uses,
        duration_ms: millis(took),
    }
}

/// Writes a line for those who look on; if it cannot be written, they see less.
fn note(output: &mut Output, text: &str) {
    let _ = output.append(text);
}

/// A run broke off: tries to keep that, and to tell its starter. If that fails too, it is found open by
/// whoever takes the agent next.
pub(crate) async fn last_resort(
    ports: &Ports,
    who: Identity,
    run: &Run,
    end: &Notification,
    mail: u64,
) {
    let Identity {
        realm,
        agent,
        epoch,
    } = who;
    let by_mail = run.is_background();
    let ended = EndedRun {
        run: end.run,
        error: end.error.clone(),
        by_person: false,
        mail,
        usage: end.usage,
        text: (!by_mail).then(|| end.result.clone()),
        value: None,
        worktree: end.worktree.clone(),
    };
    let step = Step {
        state: Some(StateChange::To(AgentState::Failed)),
        ended: Some(Box::new(ended)),
        operations: if by_mail {
            vec![notification(end, run.starter())]
        } else {
            Vec::new()
        },
        ..Step::new(realm, agent, epoch, wall_ms(&*ports.clock))
    };
    let _ = ports.store.commit(step).await;
}

/// The mail that tells of an end.
pub(crate) fn notification(end: &Notification, to: AgentId) -> Operation {
    let body = serde_json::to_string(end).unwrap_or_default();
    let (id, summary) = (MailId::from(end.run), end.summary.clone());
    let op = Op::Send {
        id,
        to: Address::Agent(to),
        kind: MailKind::Notification,
        summary,
        body,
    };
    Operation { call: None, op }
}

/// Tells those who look on. Who does not read does not hold up anybody: there will be more to see.
fn tell(outlet: &crate::agent::events::Outlet, run: &RunFacts, what: News) {
    let news = RunNews {
        run: run.clone(),
        what,
    };
    let _ = outlet.events.try_send(Event {
        agent: outlet.agent,
        kind: EventKind::Run(Box::new(news)),
    });
}

/// How a run that came to this ended, and why.
pub(crate) fn judged(outcome: &Outcome, by: By) -> (RunStatus, AgentState, Option<String>) {
    match outcome {
        Outcome::Completed => (RunStatus::Completed, AgentState::Completed, None),
        Outcome::Partial(limit) => (
            RunStatus::Partial,
            AgentState::Partial,
            Some(ending::limit(*limit)),
        ),
        Outcome::Refused => (
            RunStatus::Failed,
            AgentState::Failed,
            Some("the model declined to go on".into()),
        ),
        Outcome::Interrupted => (
            RunStatus::Killed,
            AgentState::Killed,
            Some(ending::stopped(by)),
        ),
        Outcome::Paused(fault) => (
            RunStatus::Paused,
            AgentState::Paused,
            Some(fault.message.clone()),
        ),
        Outcome::Failed(fault) => (
            RunStatus::Failed,
            AgentState::Failed,
            Some(fault.message.clone()),
        ),
    }
}
