//! A declared team is raised: first it is made, with its tasks, by the step that brings the goal; then its members
//! are started, through the same door as every agent. What a crash left out is started by whoever goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use posse_protocol::{
    AgentId, ContentBlock, Event, EventKind, Member, MemberState, Name, PermissionMode,
    PlannedTask, RealmId, Takes, TaskId, Team, TeamPlan, TeamRole,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::roster::has;
use super::words::{self, Raised};
use crate::spawn::definition::GENERAL_PURPOSE;
use crate::spawn::door::{RoleWish, Wish};
use crate::spawn::house::House;
use crate::spawn::route::AgentInput;
use crate::spawn::terms::Granted;
use crate::spawn::tree::Tree;
use crate::spawn::words::reminder;
use posse_port::store::{CallKey, Joining, NewTask, Op, TaskChange};
use posse_port::text::line;

/// Where the plan of a team is kept among its settings, and the goal.
const PLAN: &str = "plan";
const GOAL: &str = "goal";

/// What makes a declared team, and what its lead is told of it.
pub(crate) fn founding(
    team: &Name,
    plan: &TeamPlan,
    goal: &[ContentBlock],
    (lead, model, cwd): (AgentId, String, PathBuf),
) -> (Vec<Op>, String) {
    let texts = goal.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let goal = texts.collect::<Vec<_>>().join("\n");
    let mut settings = Map::new();
    settings.insert(PLAN.into(), serde_json::to_value(plan).unwrap_or_default());
    settings.insert(GOAL.into(), goal.into());
    let told = words::raised(&Raised {
        team: &expected(team, plan, lead),
        tasks: plan.tasks.len(),
        missing: &[],
    });
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
        // What comes later cannot be waited for before it is there.
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
    ([made].into_iter().chain(tasks).chain(waits).collect(), told)
}

/// The team as it will be.
fn expected(team: &Name, plan: &TeamPlan, lead: AgentId) -> Team {
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

/// Who belongs to a team, by role and name.
fn names(plan: &TeamPlan) -> Vec<(&Name, Name)> {
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

/// A team is being raised, until this is dropped.
struct Raising(Arc<Tree>);

impl Drop for Raising {
    fn drop(&mut self) {
        self.0.raising.fetch_sub(1, Ordering::AcqRel);
    }
}

impl House {
    /// Starts what is missing of a session's declared teams. Until that is there, nobody takes a team for one that
    /// has nothing to do.
    pub(crate) fn raise(self: &Arc<Self>, tree: &Arc<Tree>) {
        tree.raising.fetch_add(1, Ordering::AcqRel);
        let (house, raising) = (Arc::clone(self), Raising(Arc::clone(tree)));
        self.supervisor
            .start_errand(async move { house.raise_missing(&raising.0).await });
    }

    /// Starts the members of a session's declared teams that are not there and never were.
    async fn raise_missing(self: &Arc<Self>, tree: &Arc<Tree>) {
        // A store that fails is noticed by whoever commits next.
        let Ok(teams) = self.teams(tree.realm).await else {
            return;
        };
        for team in teams.into_iter().filter(|team| has(team, tree.root)) {
            let plan = team
                .settings
                .get(PLAN)
                .cloned()
                .map(serde_json::from_value::<TeamPlan>);
            let Some(Ok(plan)) = plan else { continue };
            let there = |name: &Name| {
                team.former.contains(name) || team.members.iter().any(|member| member.name == *name)
            };
            let missing = names(&plan)
                .into_iter()
                .zip(0..)
                .filter(|((_, name), _)| !there(name));
            for ((role, name), nth) in missing {
                self.start_member(tree, &team, &plan, (role, name, nth))
                    .await;
            }
        }
    }

    async fn start_member(
        self: &Arc<Self>,
        tree: &Arc<Tree>,
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
        let prompt = [
            declared.prompt.trim(),
            "What all of this is for:",
            goal.trim(),
        ];
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
        let role = RoleWish {
            role: role.to_string(),
            takes: declared.takes.clone(),
            mode: declared.mode,
            budget: declared.budget,
        };
        // No call has started it: the first entry of its lead has.
        let (key, call) = (
            CallKey {
                seq: 0,
                ordinal: nth,
            },
            String::new(),
        );
        let wish = Wish {
            by: tree.root,
            key,
            call,
            input,
            granted: Granted::default(),
            role: Some(role),
        };
        match self.spawn(wish).await {
            Ok(leash) => leash.off(),
            Err(why) => Self::not_started(tree, &name, &why).await,
        }
    }

    /// A member could not be started: people and the lead are told.
    async fn not_started(tree: &Tree, name: &Name, why: &str) {
        let what = format!("{name} could not be started: {why}");
        let event = Event {
            agent: tree.root,
            kind: EventKind::Unheard(what.clone()),
        };
        let _ = tree.events.send(event).await;
        tree.notice(reminder(&line(&what)));
    }
}
