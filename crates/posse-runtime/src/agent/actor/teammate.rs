//! A teammate in its team: what it learns, what it reports to its lead, and how it leaves.

use std::sync::Arc;

use posse_port::store::{Address, AgentState, Op, Operation, Page, StateChange, StoreError};
use posse_port::text;
use posse_protocol::{
    EventKind, IdleReason, IdleReport, ListId, Mail, MailId, MailKind, MemberChange, Name, Outcome,
    Sender, TaskReport,
};
use uuid::Uuid;

use crate::agent::actor::sub_agent::judged;
use crate::agent::actor::{Actor, Identity, tasks};
use crate::agent::step::{Input, Resting};
use crate::definition::teammate::TeamIdentity;
use crate::live::registry::By;
use crate::live::wakeup::WakeReason;
use crate::live::{lookup, roster};
use crate::prompt;
use crate::prompt::team::{Glance, Welcome};

/// Maximum length of the last answer in the report to the lead, in characters.
const ANSWER: usize = 8_000;

/// What a teammate has that other sub-agents have not.
pub(crate) struct Teammate {
    /// Its name, team and role.
    pub(crate) team_identity: Arc<TeamIdentity>,
    /// Event that announces it when it starts here.
    pub(crate) arrival: Option<MemberChange>,
    /// Report to its lead; set while the step that makes it idle is committed.
    report: Option<IdleReport>,
    /// The team's notes that it has been told of.
    glance: Glance,
}

impl Teammate {
    pub(crate) fn new(team_identity: Arc<TeamIdentity>, arrival: MemberChange) -> Self {
        Self {
            team_identity,
            arrival: Some(arrival),
            report: None,
            glance: Glance::default(),
        }
    }
}

/// Announces the teammate to front ends.
pub(super) async fn announce(actor: &mut Actor) {
    let Some(teammate) = actor.role.teammate_mut() else {
        return;
    };
    if let Some(arrival) = teammate.arrival.take() {
        let news = teammate.team_identity.news(arrival);
        actor.sink.emit(EventKind::Member(news)).await;
    }
}

/// Tells a teammate that has no history yet who it is.
pub(crate) async fn welcome(actor: &mut Actor) -> Result<(), StoreError> {
    let Some(teammate) = actor.role.teammate_mut() else {
        return Ok(());
    };
    let team_identity = &teammate.team_identity;
    let list = ListId {
        realm: actor.identity.realm,
        team: Some(team_identity.team.clone()),
    };
    let notes = actor.ports.store.notes(list, Page::all()).await?;
    // The welcome names these notes, so they need not be reported when it wakes.
    teammate.glance.look(&notes);
    let teams = roster::teams(&*actor.ports.store, actor.identity.realm).await?;
    if let Some(team) = teams.iter().find(|team| team.name == team_identity.team) {
        let plan = actor
            .terms
            .as_ref()
            .and_then(|terms| terms.teammate.as_ref())
            .is_some_and(|teammate| teammate.plan);
        actor.machine.tell(prompt::team::welcome(Welcome {
            team,
            me: &team_identity.name,
            plan,
            notes: &notes,
        }));
    }
    Ok(())
}

/// Tells a teammate that is about to wake of new notes of its team.
pub(super) async fn check_notes(actor: &mut Actor, input: &Input) -> Result<(), StoreError> {
    let wakes = match input {
        Input::Mail(mail) => !mail.is_empty(),
        Input::Prompt(_)
        | Input::Found {
            claimed: Some(_), ..
        } => true,
        _ => false,
    };
    let Some(teammate) = actor
        .role
        .teammate_mut()
        .filter(|_| wakes && actor.machine.rests())
    else {
        return Ok(());
    };
    let list = ListId {
        realm: actor.identity.realm,
        team: Some(teammate.team_identity.team.clone()),
    };
    let notes = actor.ports.store.notes(list, Page::all()).await?;
    teammate
        .glance
        .look(&notes)
        .into_iter()
        .for_each(|told| actor.machine.tell(told));
    Ok(())
}

/// Prepares a revived teammate: it gets its tasks back, and a welcome if it has no history yet.
pub(crate) async fn on_revived(actor: &mut Actor, new: bool) -> Result<(), StoreError> {
    if !actor.role.is_teammate() {
        return Ok(());
    }
    if actor.machine.is_unanswered() {
        // Only a run that was interrupted had tasks at work; after any other, tasks are claimed
        // anew.
        tasks::reclaim(actor).await?;
    }
    if new {
        welcome(actor).await?;
    }
    // What it would have done next is unknown, so it looks for everything.
    actor.inbox.wakeup.raise(WakeReason::Settle);
    actor.inbox.wakeup.raise(WakeReason::Tasks);
    Ok(())
}

/// Reports that a run of a teammate begins.
pub(super) async fn on_run_started(actor: &Actor) {
    if let Some(teammate) = actor.role.teammate() {
        follow_mode_of_main(actor).await;
        actor
            .sink
            .emit(EventKind::Member(
                teammate.team_identity.news(MemberChange::Running),
            ))
            .await;
    }
}

/// Follows the mode of a main agent in another process.
pub(super) async fn follow_mode_of_main(actor: &Actor) {
    let root = actor.session.root;
    if actor.registry.live_agent(root).is_some() {
        return;
    }
    // The error is dropped: the next commit meets the same failure and reports it.
    if let Ok(Some(row)) = lookup::row(&*actor.ports.store, root).await {
        actor.session.rights.set_mode(row.mode);
    }
}

/// Handles the stop of a teammate: for good, or because its process ends.
pub(super) fn on_stop(actor: &mut Actor) {
    match actor.stop.by() {
        _ if !actor.role.is_teammate() => {}
        // It remains a member: the process that takes it continues in the middle of the run.
        By::Shutdown => actor.machine.suspend(),
        By::Person | By::Agent(_) | By::Above { .. } => actor.machine.leave(),
    }
}

/// Ends a teammate that got a dismissal; its model does not see it.
pub(super) fn handle_dismissal(actor: &Actor, mail: &mut Vec<Mail>) {
    if !actor.role.is_teammate() {
        return;
    }
    if let Some(dismissal) = mail.iter().find(|mail| mail.kind == MailKind::Dismissal) {
        actor.stop.stop(match &dismissal.from {
            Sender::User => By::Person,
            Sender::Agent { id, .. } => By::Agent(*id),
        });
        // Nothing is lost: unread mail stays in the store.
        mail.clear();
    }
}

/// Returns the state and the report of the step that makes a teammate idle.
pub(super) async fn idle_report(
    actor: &mut Actor,
    resting: &Resting,
) -> Result<(StateChange, Option<Operation>), StoreError> {
    let paused = matches!(resting.outcome, Outcome::Paused(_));
    let state = if paused {
        AgentState::Paused
    } else {
        AgentState::Idle
    };
    let state = if resting.unless_mail {
        StateChange::UnlessMail(state)
    } else {
        StateChange::To(state)
    };
    let Some(team_identity) = actor
        .role
        .teammate()
        .map(|teammate| Arc::clone(&teammate.team_identity))
    else {
        return Ok((state, None));
    };
    let mut tasks = Vec::new();
    for (team, id) in &actor.tasks {
        if let Some(task) = actor
            .ports
            .store
            .task(tasks::list(actor, team.clone()), *id)
            .await?
        {
            tasks.push(TaskReport {
                id: task.id,
                subject: task.subject,
                status: task.status,
            });
        }
    }
    let (reason, error) = match &resting.outcome {
        Outcome::Completed => (IdleReason::Available, None),
        Outcome::Interrupted => (IdleReason::Interrupted, None),
        outcome => (IdleReason::Failed, judged(outcome, By::Shutdown).2),
    };
    let branch = actor
        .role
        .sub_agent()
        .and_then(|sub| sub.worktree.as_ref())
        .map(|it| it.branch.clone());
    let answer = text::cut(&resting.text, ANSWER, None).into_owned();
    let report = IdleReport {
        team: team_identity.team.clone(),
        reason,
        error,
        answer,
        tasks,
        branch,
    };
    let said = report.error.as_deref().unwrap_or(&report.answer);
    let summary = text::summary(&format!("{}: {said}", reason.as_str()));
    let body = serde_json::to_string(&report).unwrap_or_default();
    let Identity { realm, agent, .. } = actor.identity;
    let leads = actor.ports.store.membership(realm, agent).await?;
    let leads = leads
        .iter()
        .any(|mine| mine.team == team_identity.team && mine.lead == agent);
    // A lead that is a teammate itself reports to the main agent.
    let to = match leads {
        true => Address::Agent(actor.session.root),
        false => Address::Member {
            team: team_identity.team.clone(),
            name: Name::lead(),
        },
    };
    if let Some(teammate) = actor.role.teammate_mut() {
        teammate.report = Some(report);
    }
    let id = MailId::from(Uuid::now_v7());
    let op = Op::Send {
        id,
        to,
        kind: MailKind::Idle,
        summary,
        body,
    };
    Ok((state, Some(Operation { call: None, op })))
}

/// Reports that a teammate is idle.
pub(super) async fn on_idle(actor: &mut Actor) {
    actor.tasks.clear();
    let Some(teammate) = actor.role.teammate_mut() else {
        return;
    };
    if let Some(report) = teammate.report.take() {
        let news = teammate
            .team_identity
            .news(MemberChange::Idle(Box::new(report)));
        actor.sink.emit(EventKind::Member(news)).await;
    }
}

/// Returns the operation by which a teammate leaves its team, part of its last step.
pub(super) fn leave_op(actor: &Actor) -> Option<Operation> {
    let TeamIdentity { team, name, .. } = (*actor.role.teammate()?.team_identity).clone();
    Some(Operation {
        call: None,
        op: Op::Leave { team, name },
    })
}
