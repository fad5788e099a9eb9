//! The run of a sub-agent as others see it: its last step, its report and its worktree.

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
use crate::agent::hooked_worktree::WorktreeHooks;
use crate::agent::output::Output;
use crate::agent::step::{Closing, Run as Tally};
use crate::definition::tool_name::meant;
use crate::live::registry::By;
use crate::live::run::Run;
use crate::live::stop;

/// Time that checking a worktree may take before the end of a run is reported. About as long as a
/// stopped agent is waited for.
const LOOK: Duration = Duration::from_millis(1500);

/// What a sub-agent has that a main agent has not.
pub(crate) struct SubAgent {
    /// Its run, shared with those that wait for it.
    pub(crate) run: Arc<Run>,
    /// The agent that created it. Its starter may be another, if a message revived it.
    pub(crate) parent: AgentId,
    /// File that people and agents can read while it runs.
    pub(crate) output: Output,
    /// Its first prompt; empty if it was revived.
    pub(crate) prompt: String,
    /// True if the store knows who is told of its end.
    pub(crate) starter_kept: bool,
    /// Tool that it used last.
    pub(crate) last_tool: Option<String>,
    /// Its end, once its last step is being committed.
    pub(crate) end: Option<Notification>,
    /// Worktree of its own.
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

    /// Returns the starter, if the store has to be told of it. Only of background runs: while a
    /// call waits, the open call says who started it.
    pub(crate) fn untold_starter(&mut self) -> Option<AgentId> {
        let untold = self.run.is_background() && !self.starter_kept;
        self.starter_kept |= untold;
        untold.then(|| self.run.starter())
    }
}

/// What the last step of a run adds.
pub(crate) struct LastWords {
    /// State that the step sets.
    pub(crate) state: StateChange,
    /// End that is stored in the agent's record.
    pub(crate) ended: Option<Box<EndedRun>>,
    /// Mail to its starter, if no call waits for the end.
    pub(crate) notification: Option<Operation>,
}

/// Returns what is reported of a worktree at the end of a run.
pub(crate) async fn worktree_end(ports: &Ports, worktree: &Worktree) -> WorktreeEnd {
    let mut late = ports.clock.sleep(LOOK);
    let kept = tokio::select! {
        kept = ports.worktrees.changes(worktree) => kept,
        // An unchecked worktree counts as changed: it must not be removed.
        () = &mut late => Some("changes that could not be checked in time".into()),
    };
    worktree_end_with(worktree, kept)
}

fn worktree_end_with(worktree: &Worktree, kept: Option<String>) -> WorktreeEnd {
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

/// Returns what a run has used.
fn used(tally: &Tally, took: Duration) -> RunUsage {
    RunUsage {
        total_tokens: tally.tokens(),
        tool_uses: tally.tool_uses,
        duration_ms: millis(took),
    }
}

/// Writes a line for those who follow the run; if it cannot be written, they see less.
fn note(output: &mut Output, text: &str) {
    let _ = output.append(text);
}

/// Tries to store the end of a run that broke off, and to tell its starter. If that fails too, the
/// process that takes the agent next finds the run open.
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
        // Kept in the row only if no mail has it: a resumed starter must hear of it once.
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

/// Returns the mail that reports an end.
pub(crate) fn notification(end: &Notification, to: AgentId) -> Operation {
    let body = serde_json::to_string(end).unwrap_or_default();
    // The run's own ID: reported twice, it is the same mail.
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

/// Reports progress. A full channel drops it, because there will be more.
pub(super) fn tell(sink: &crate::agent::events::EventSink, run: &RunFacts, what: News) {
    let news = RunUpdate {
        run: run.clone(),
        what,
    };
    sink.events.try_send(Event {
        agent: sink.agent,
        kind: EventKind::Run(Box::new(news)),
    });
}

/// Returns the status, the state and the reason of an end.
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

/// Gives the agent a worktree of its own; it is released when the agent departs.
pub(crate) fn set_worktree(actor: &mut Actor, worktree: Option<Worktree>) {
    if let Some(sub) = actor.role.sub_agent_mut() {
        sub.worktree = worktree;
    }
}

/// Returns what is reported of its own worktree at the end of a run.
pub(super) async fn own_worktree_end(actor: &Actor) -> Option<WorktreeEnd> {
    let worktree = actor.role.sub_agent()?.worktree.as_ref()?;
    if worktree.by_hook && worktree_hooks(actor).can_remove() {
        return Some(worktree_end_with(worktree, None));
    }
    Some(worktree_end(&actor.ports, worktree).await)
}

/// Returns the hooks for the agent's worktree.
pub(super) fn worktree_hooks(actor: &Actor) -> WorktreeHooks<'_> {
    WorktreeHooks {
        ports: &actor.ports,
        session: &actor.session,
        rights: actor.machine.rights(),
        agent: actor.identity.agent,
    }
}

/// Returns what the last step of a run says. What the agent has started, and nobody will hear of
/// any more, is stopped first.
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
    // An agent that was not told to stop was interrupted by a person's answer.
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
    // Mail up to here was there when it was stopped, and must not revive it.
    let mail = if by.is_some() {
        newest_mail(actor).await
    } else {
        0
    };
    let worktree = own_worktree_end(actor).await;
    let is_teammate = actor.role.is_teammate();
    let Some(sub) = actor.role.sub_agent_mut() else {
        // Cannot happen: only sub-agents close a run.
        return LastWords {
            state: StateChange::To(state),
            ended: None,
            notification: None,
        };
    };
    // From here on the run cannot be detached: the step below says how its end is reported.
    let told_by_mail = sub.run.close();
    let starter = sub.run.starter();
    let quiet = by.is_some_and(|by| match by {
        // A starter that is stopped as well must not be woken by it.
        By::Above { .. } => actor.registry.is_frozen(starter),
        By::Agent(by) => by == starter,
        By::Person | By::Shutdown => false,
    });
    // A teammate that agreed to end has answered its lead, and those that end with the session need
    // no report. The lead is told of any other end.
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

/// Notes that a step is durable: the first makes the run visible, and mail that came before the
/// last one lets the run continue.
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

/// Writes an entry's text for those who follow the run.
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
                let (name, input) = meant(name, input);
                note(
                    &mut sub.output,
                    &format!("→ {name} {}\n", text::summary(input.get())),
                );
                sub.last_tool = Some(name.into_owned());
            }
            _ => {}
        }
    }
    tell_progress(actor, summary, began);
}

/// Reports a call that begins: it may take long, and no reply comes meanwhile.
pub(super) fn note_call(actor: &mut Actor, event: &EventKind, began: Duration) {
    let (EventKind::CallStarted { tool, title, .. }, Some(sub)) =
        (event, actor.role.sub_agent_mut())
    else {
        return;
    };
    sub.last_tool = Some(tool.clone());
    tell_progress(actor, title.clone(), began);
}

/// Reports what a sub-agent has used and does now.
fn tell_progress(actor: &Actor, summary: String, began: Duration) {
    let Some(sub) = actor.role.sub_agent() else {
        return;
    };
    let elapsed = actor.ports.clock.now().saturating_sub(began);
    let progress = News::Progress {
        usage: used(actor.machine.run(), elapsed),
        last_tool: sub.last_tool.clone(),
        summary,
    };
    tell(&actor.sink, &sub.run.facts, progress);
}

/// Returns the number of the newest mail that waits.
pub(super) async fn newest_mail(actor: &mut Actor) -> u64 {
    loop {
        let before = actor.inbox.last;
        // The error is dropped: the commit that follows meets the same failure.
        let fetched = actor.fetch_mail().await;
        if fetched.is_err() || actor.inbox.last == before {
            return actor.inbox.last;
        }
    }
}

/// Returns true if it is a sub-agent that was stopped.
pub(super) fn is_stopped(actor: &Actor) -> bool {
    !actor.role.is_main() && actor.stop.token.is_cancelled()
}
