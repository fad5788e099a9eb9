//! An agent's run as others see it, and the commands that it has in the background.

use std::sync::Arc;
use std::time::Duration;

use posse_port::store::{Address, AgentState, EndedRun, Op, Operation, StateChange, Step};
use posse_port::worktree::Worktree;
use posse_port::{Ports, text};
use posse_protocol::{
    AgentId, ContentBlock, Entry, EntryKind, Event, EventKind, MailId, MailKind, Notification,
    Outcome, RunChange as News, RunFacts, RunStatus, RunUpdate, RunUsage, WorktreeEnd,
};

use crate::agent::actor::{Actor, Identity, millis, wall_ms};
use crate::agent::ending;
use crate::agent::output::Output;
use crate::agent::step::{Closing, Run as Tally};
use crate::live::registry::By;
use crate::live::run::Run;
use crate::live::stop;

/// How long is looked at a checkout before the end of a run is told: who was told to stop is waited for
/// about as long.
const LOOK: Duration = Duration::from_millis(1500);

/// What makes an agent a sub-agent.
pub(crate) struct SubAgent {
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

impl SubAgent {
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

/// What is to be told of a checkout at the end of a run.
pub(crate) async fn worktree_end(ports: &Ports, worktree: &Worktree) -> WorktreeEnd {
    let mut late = ports.clock.sleep(LOOK);
    let kept = tokio::select! {
        kept = ports.worktrees.changes(worktree) => kept,
        () = &mut late => Some("changes that could not be checked in time".into()),
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
pub(super) fn tell(sink: &crate::agent::events::EventSink, run: &RunFacts, what: News) {
    let news = RunUpdate {
        run: run.clone(),
        what,
    };
    let _ = sink.events.try_send(Event {
        agent: sink.agent,
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
            Some("the model declined to continue".into()),
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

/// It has a checkout for itself; it is given back when the agent departs.
pub(crate) fn set_worktree(actor: &mut Actor, worktree: Option<Worktree>) {
    if let Some(sub) = actor.role.sub_agent_mut() {
        sub.worktree = worktree;
    }
}

/// What is to be told of its checkout at the end of a run.
pub(super) async fn own_worktree_end(actor: &Actor) -> Option<WorktreeEnd> {
    let worktree = actor.role.sub_agent()?.worktree.as_ref()?;
    Some(worktree_end(&actor.ports, worktree).await)
}

/// What the step says that is to end the run of a sub-agent. What the agent has started and nobody
/// will hear of any more is stopped first.
pub(super) async fn close_run(actor: &mut Actor, closing: &Closing, began: Duration) -> LastWords {
    if closing.outcome != Outcome::Completed || actor.role.is_teammate() {
        stop::stop_agents(
            &actor.registry,
            actor.identity.agent,
            By::Above { person: false },
        )
        .await;
    }
    let tally = &closing.run;
    let usage = used(tally, actor.ports.clock.now().saturating_sub(began));
    // Who was not told to stop was interrupted by a person's answer.
    let by = if actor.stop.token.is_cancelled() {
        actor.stop.by()
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
        .map_or_else(|| actor.spending.model.clone(), |spent| spent.model.clone());
    let mail = if by.is_some() {
        newest_mail(actor).await
    } else {
        0
    };
    let worktree = own_worktree_end(actor).await;
    let is_teammate = actor.role.is_teammate();
    let Some(sub) = actor.role.sub_agent_mut() else {
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
        By::Above { .. } => actor.registry.is_frozen(starter),
        By::Agent(by) => by == starter,
        By::Person | By::Shutdown => false,
    });
    // Who has agreed to end has said so, and with the session all end. Of any other end its lead is told.
    let told_to = actor.stop.token.is_cancelled().then(|| actor.stop.by());
    let quiet = match told_to {
        _ if !is_teammate => quiet,
        by => by.is_none_or(|by| matches!(by, By::Above { .. })),
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
pub(super) async fn on_committed(actor: &mut Actor, mail_waits: bool) {
    let Some(sub) = actor.role.sub_agent_mut() else {
        return;
    };
    if mail_waits {
        sub.end = None;
        if sub.run.reopen() {
            actor.registry.detached(&sub.run);
        }
    }
    if sub.run.born() {
        let (prompt, background) = (sub.prompt.clone(), sub.run.is_background());
        let news = RunUpdate {
            run: sub.run.facts.clone(),
            what: News::Started { prompt, background },
        };
        actor.sink.emit(EventKind::Run(Box::new(news))).await;
    }
}

/// Writes down what an entry says for those who look on.
pub(super) fn note_entry(actor: &mut Actor, entry: &Entry, began: Duration) {
    let Some(sub) = actor.role.sub_agent_mut() else {
        return;
    };
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
    let tally = actor.machine.run();
    let usage = used(tally, actor.ports.clock.now().saturating_sub(began));
    let last_tool = sub.last_tool.clone();
    tell(
        &actor.sink,
        &sub.run.facts,
        News::Progress {
            usage,
            last_tool,
            summary,
        },
    );
}

/// The number of the newest mail that waits.
pub(super) async fn newest_mail(actor: &mut Actor) -> u64 {
    loop {
        let before = actor.inbox.last;
        // A store that fails is noticed by the commit that follows.
        let fetched = actor.fetch_mail().await;
        if fetched.is_err() || actor.inbox.last == before {
            return actor.inbox.last;
        }
    }
}

/// Whether it is a sub-agent that somebody has stopped.
pub(super) fn is_stopped(actor: &Actor) -> bool {
    !actor.role.is_main() && actor.stop.token.is_cancelled()
}
