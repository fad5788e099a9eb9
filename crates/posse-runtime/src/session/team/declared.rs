//! Starts declared teams. The step that stores the goal creates the team and its tasks; then its
//! members are spawned like every agent. Members that a crash prevented are started on resume.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use posse_port::store::CallKey;
use posse_port::text::line;
use posse_protocol::{Event, EventKind, Name, PermissionMode, Team, TeamPlan};
use serde_json::Value;

use crate::definition::team_plan::{GOAL, PLAN, names};
use crate::definition::terms::Granted;
use crate::live::roster;
use crate::live::roster::has;
use crate::live::session::Session;
use crate::prompt::agent_tool::AgentInput;
use crate::prompt::reminder;
use crate::session::error::SpawnError;
use crate::session::factory::Factory;
use crate::session::spawn;
use crate::session::spawn::{RoleOptions, SpawnRequest};

/// Counts a team as being started until it is dropped.
struct Raising(Arc<Session>);

impl Drop for Raising {
    fn drop(&mut self) {
        self.0.raising.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Starts the missing members of a session's declared teams. Until they are there, the session does
/// not count as idle.
pub(crate) fn start_declared_members(factory: &Arc<Factory>, session: &Arc<Session>) {
    // Raised here and not in the task: otherwise the main agent could see an idle team before the
    // task first runs.
    session.raising.fetch_add(1, Ordering::AcqRel);
    let (there, raising) = (Arc::clone(factory), Raising(Arc::clone(session)));
    factory
        .supervisor
        .start_errand(async move { start_missing_members(&there, &raising.0).await });
}

/// Starts the members of a session's declared teams that are not there and never were.
async fn start_missing_members(factory: &Arc<Factory>, session: &Arc<Session>) {
    // The error is dropped: the next commit meets the same failure and reports it.
    let Ok(teams) = roster::teams(&*factory.ports.store, session.realm).await else {
        return;
    };
    for team in teams.into_iter().filter(|team| has(team, session.root)) {
        let plan = team
            .settings
            .get(PLAN)
            .cloned()
            .map(serde_json::from_value::<TeamPlan>);
        let Some(Ok(plan)) = plan else { continue };
        let there = |name: &Name| {
            // A member that has left is not started again.
            team.former.contains(name) || team.members.iter().any(|member| member.name == *name)
        };
        let missing = names(&plan)
            .into_iter()
            .zip(0..)
            .filter(|((_, name), _)| !there(name));
        for ((role, name), nth) in missing {
            start_member(factory, session, &team, &plan, (role, name, nth)).await;
        }
    }
}

/// Spawns one member. `nth` is its position in the team's plan.
async fn start_member(
    factory: &Arc<Factory>,
    session: &Arc<Session>,
    team: &Team,
    plan: &TeamPlan,
    (role, name, nth): (&Name, Name, u32),
) {
    let Some(declared) = plan.roles.get(role) else {
        return;
    };
    let goal = team
        .settings
        .get(GOAL)
        .and_then(Value::as_str)
        .unwrap_or_default();
    let prompt = [declared.prompt.trim(), "The goal of the team:", goal.trim()];
    let prompt = prompt
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n");
    let input = AgentInput {
        description: format!("{name} of team {}", team.name),
        prompt,
        subagent_type: declared.agent.clone(),
        model: declared.model.clone(),
        effort: declared.effort.clone(),
        name: Some(name.clone()),
        team_name: Some(team.name.to_string()),
        mode: (declared.mode == Some(PermissionMode::Plan)).then(|| String::from("plan")),
        isolation: declared.worktree.then(|| String::from("worktree")),
        ..AgentInput::default()
    };
    let role = RoleOptions {
        role: role.to_string(),
        takes: declared.takes.clone(),
        mode: declared.mode,
        budget: declared.budget,
    };
    // No call has started it. The lead's first entry stands in for one, so that the key is unique.
    let (key, call) = (
        CallKey {
            seq: 0,
            ordinal: nth,
        },
        String::new(),
    );
    let request = SpawnRequest {
        by: session.root,
        key,
        call,
        input,
        granted: Granted::default(),
        role: Some(role),
    };
    match spawn::spawn(factory, request).await {
        Ok(guard) => guard.off(),
        Err(why) => not_started(session, &name, &why).await,
    }
}

/// Tells people and the lead that a member could not be started.
async fn not_started(session: &Session, name: &Name, why: &SpawnError) {
    let what = format!("{name} could not be started: {why}");
    let event = Event {
        agent: session.root,
        kind: EventKind::Warning(what.clone()),
    };
    session.events.send(event).await;
    session.notice(reminder(&line(&what)));
}
