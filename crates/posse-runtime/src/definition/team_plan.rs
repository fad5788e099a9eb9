//! A declared team, as operations and as the team it will be. Pure.

use std::path::PathBuf;

use posse_protocol::{
    AgentId, ContentBlock, Member, MemberState, Name, PlannedTask, RealmId, Takes, TaskId, Team,
    TeamPlan, TeamRole,
};
use serde_json::Map;
use uuid::Uuid;

use crate::definition::agent_type::GENERAL_PURPOSE;
use posse_port::store::{Joining, NewTask, Op, TaskChange};

/// Setting of a team that holds its plan.
pub(crate) const PLAN: &str = "plan";
/// Setting of a team that holds its goal.
pub(crate) const GOAL: &str = "goal";

/// Returns the operations that create a declared team.
pub(crate) fn founding(
    team: &Name,
    plan: &TeamPlan,
    goal: &[ContentBlock],
    (lead, model, cwd): (AgentId, String, PathBuf),
) -> Vec<Op> {
    let texts = goal.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let goal = texts.collect::<Vec<_>>().join("\n");
    let mut settings = Map::new();
    settings.insert(PLAN.into(), serde_json::to_value(plan).unwrap_or_default());
    settings.insert(GOAL.into(), goal.into());
    let lead = Joining {
        agent: lead,
        agent_type: String::from("lead"),
        model,
        prompt: String::new(),
        color: None,
        backend: String::from("in-process"),
        cwd,
        role: None,
        takes: Takes::Only {
            unmarked: false,
            roles: Vec::new(),
        },
    };
    let description = plan.description.clone();
    let made = Op::CreateTeam {
        team: team.clone(),
        description,
        settings,
        lead: Box::new(lead),
    };
    let task = |(task, number): (&PlannedTask, u64)| {
        let PlannedTask {
            subject,
            description,
            role,
            blocked_by,
            check,
        } = task.clone();
        // A task can wait only for tasks that exist already, so dependencies on later ones are
        // added afterwards.
        let blocked_by = blocked_by
            .into_iter()
            .filter(|before| *before < number)
            .map(TaskId)
            .collect();
        let task = NewTask {
            subject,
            description,
            role,
            blocked_by,
            check,
            ..NewTask::default()
        };
        Op::CreateTask {
            team: Some(team.clone()),
            task: Box::new(task),
        }
    };
    let waits = |(task, number): (&PlannedTask, u64)| {
        let later = task
            .blocked_by
            .iter()
            .filter(|before| **before >= number)
            .copied()
            .map(TaskId);
        let change = TaskChange {
            block_on: later.collect(),
            ..TaskChange::default()
        };
        let (team, id) = (Some(team.clone()), TaskId(number));
        (!change.block_on.is_empty()).then(|| Op::UpdateTask {
            team,
            id,
            expect: None,
            change: Box::new(change),
        })
    };
    let tasks = plan.tasks.iter().zip(1..).map(task);
    let waits = plan.tasks.iter().zip(1..).filter_map(waits);
    [made].into_iter().chain(tasks).chain(waits).collect()
}

/// Returns the team as it will be.
pub(crate) fn expected(team: &Name, plan: &TeamPlan, lead: AgentId) -> Team {
    let member = |(role, name): (&Name, Name)| Member {
        name,
        agent: AgentId::from(Uuid::nil()),
        agent_type: plan
            .roles
            .get(role)
            .and_then(|role| role.agent.clone())
            .unwrap_or_else(|| GENERAL_PURPOSE.into()),
        model: String::new(),
        prompt: String::new(),
        color: String::new(),
        backend: String::new(),
        cwd: PathBuf::new(),
        joined_ms: 0,
        role: Some(role.to_string()),
        takes: Takes::Any,
        state: MemberState::Created,
        waiting: 0,
        held: false,
    };
    Team {
        realm: RealmId::from(lead.uuid()),
        name: team.clone(),
        description: plan.description.clone(),
        lead,
        created_ms: 0,
        settings: Map::new(),
        members: names(plan).into_iter().map(member).collect(),
        former: Vec::new(),
    }
}

/// Returns the names of the members that a team's declaration demands; none if it has no declaration.
pub fn declared_members(team: &Team) -> Vec<Name> {
    let plan = team.settings.get(PLAN).cloned();
    let plan = plan.and_then(|plan| serde_json::from_value::<TeamPlan>(plan).ok());
    let plan = plan.unwrap_or_default();
    names(&plan).into_iter().map(|(_, name)| name).collect()
}

/// Returns the members of a team, by role and name.
pub(crate) fn names(plan: &TeamPlan) -> Vec<(&Name, Name)> {
    let several = |(role, declared): (&'_ Name, &TeamRole)| -> Vec<Name> {
        let numbered =
            (1..=declared.count).filter_map(|number| format!("{role}-{number}").parse().ok());
        if declared.count == 1 {
            vec![role.clone()]
        } else {
            numbered.collect()
        }
    };
    let of_role = |(role, declared)| {
        several((role, declared))
            .into_iter()
            .map(move |name| (role, name))
    };
    plan.roles.iter().flat_map(of_role).collect()
}
