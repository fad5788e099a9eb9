//! Background commands of an agent.

use std::sync::Arc;

use posse_port::store::{RunChange, RunChangeKind, Step, StoreError};
use posse_port::tool::RunReport;
use posse_protocol::{EventKind, Notification, RunChange as News, RunStatus, RunUpdate, RunUsage};
use uuid::Uuid;

use crate::agent::actor::sub_agent::{notification, tell};
use crate::agent::actor::work::Work;
use crate::agent::actor::{Actor, GRACE, maybe, millis, sub_agent};
use crate::agent::ending;
use crate::live::registry::{By, Shell, Stop};
use crate::live::run::{Run, shell_facts};

/// Moves a command to the background.
pub(super) fn start(actor: &mut Actor, id: Uuid, work: &mut Work) {
    let Some((begun, call)) = work.begun.remove(&id) else {
        return;
    };
    let agent = actor.identity.agent;
    let facts = shell_facts(id, agent, begun.description, call, begun.output);
    // A child token: the command ends with its agent.
    let stop = Stop::new(actor.stop.token.child_token());
    let run = Arc::new(Run::new(facts, id, true));
    // The step that told the model of it has stored its row.
    run.born();
    tell(
        &actor.sink,
        &run.facts,
        News::Started {
            prompt: String::new(),
            background: true,
        },
    );
    let token = stop.token.clone();
    actor.registry.shell_began(
        agent,
        Shell {
            run,
            stop,
            began: actor.ports.clock.now(),
        },
    );
    work.shells.start(id, move |_| (begun.work)(token));
}

/// Handles the end of a background command: stores it and reports it to the agent by mail, in one
/// step.
pub(super) async fn on_done(
    actor: &mut Actor,
    id: Uuid,
    report: Option<RunReport>,
) -> Result<(), StoreError> {
    let agent = actor.identity.agent;
    let Some(shell) = actor
        .registry
        .shells(agent)
        .into_iter()
        .find(|shell| shell.run.facts.task == id)
    else {
        return Ok(());
    };
    let crashed = || RunReport {
        status: RunStatus::Failed,
        summary: "posse lost track of it".into(),
        result: String::new(),
    };
    let report = report.unwrap_or_else(crashed);
    let took = actor.ports.clock.now().saturating_sub(shell.began);
    let usage = RunUsage {
        total_tokens: 0,
        tool_uses: 0,
        duration_ms: millis(took),
    };
    let end = ending::of_shell(&shell.run.facts, &report, usage);
    // A sub-agent whose run is over must not be revived by what it had started.
    let over =
        actor.role.sub_agent().is_some_and(|sub| sub.end.is_some()) || sub_agent::is_stopped(actor);
    // What the agent stopped itself is told to it as the result of that call.
    let quiet = over || (report.status == RunStatus::Killed && shell.stop.by() == By::Agent(agent));
    shell.run.close();
    commit_end(actor, &end, quiet).await?;
    // After the commit: the agent counts as having something to wait for until its mail is there.
    actor.registry.shell_over(agent, id);
    shell.run.over(end.clone());
    let news = RunUpdate {
        run: shell.run.facts.clone(),
        what: News::Ended(Box::new(end)),
    };
    actor.sink.emit(EventKind::Run(Box::new(news))).await;
    Ok(())
}

/// Stores the end of a background command, and reports it by mail unless it is reported otherwise.
pub(crate) async fn commit_end(
    actor: &mut Actor,
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
            vec![notification(end, actor.identity.agent)]
        },
        ..actor.new_step()
    };
    actor.ports.store.commit(step).await.map(drop)
}

/// Tells its background commands to end.
pub(super) fn stop_all(actor: &Actor) {
    for shell in actor.registry.shells(actor.identity.agent) {
        shell.stop.stop(By::Shutdown);
    }
}

/// Ends everything that is still in progress.
pub(super) async fn wind_up(actor: &mut Actor, work: &mut Work, can_write: bool) {
    stop_all(actor);
    let mut grace = Some(actor.ports.clock.sleep(GRACE));
    work.person_shells.cancel();
    while !work.calls.is_empty() || !work.shells.is_empty() || !work.person_shells.is_empty() {
        tokio::select! {
            _ = work.calls.next(), if !work.calls.is_empty() => {}
            _ = work.person_shells.next(), if !work.person_shells.is_empty() => {}
            Some((id, report)) = work.shells.next(), if !work.shells.is_empty() => {
                // The error is dropped: the store has failed before, and nothing more can be
                // stored.
                let kept = if can_write { on_done(actor, id, report).await.is_ok() } else { false };
                if !kept {
                    actor.registry.shell_over(actor.identity.agent, id);
                }
            }
            () = maybe(&mut grace) => {
                work.calls.give_up();
                work.shells.give_up();
                work.person_shells.give_up();
            }
        }
    }
}
