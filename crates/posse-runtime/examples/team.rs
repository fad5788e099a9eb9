//! A team: two writers and an editor with a list of tasks, which they take as soon as they are
//! ready. The main agent leads them, and says at the end what came of it.
//!
//! ```sh
//! ANTHROPIC_API_KEY=… cargo run -p posse-runtime --example team "a guide to tea"
//! ```

#![expect(
    clippy::disallowed_methods,
    reason = "a program of its own reads its environment"
)]
#![expect(clippy::print_stdout, reason = "this is what it is for")]

mod model;

use std::env;
use std::error::Error;
use std::sync::Arc;

use posse_port::Ports;
use posse_port::store::{Page, Store, TaskFilter};
use posse_port::tool::{Toolbox, Workspace};
use posse_protocol::{
    Command, ContentBlock, EventKind, ListId, MemberChange, Name, PlannedTask, RealmId, TeamPlan,
    TeamRole,
};
use posse_runtime::definition::agent_type::built_in;
use posse_runtime::{Agent, AgentProfile, Runtime, Setup};
use posse_store::Sqlite;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let goal = env::args()
        .nth(1)
        .unwrap_or_else(|| "a guide to tea".into());
    let home = env::temp_dir().join("posse-example");
    let store = Arc::new(Sqlite::open(&home.join("posse.db"))?);
    let runtime = Runtime::new(Ports::new(
        Arc::new(model::from_environment()?),
        Arc::clone(&store) as _,
    ));

    // Members get the tools of teams by themselves, and those of the setup: none here. They have
    // no more rights than the main agent.
    let workspace = Workspace::new(env::current_dir()?.canonicalize()?, home.join("spill"));
    let mut setup = Setup::new(Toolbox::default(), workspace);
    setup.spawning.types = Arc::new(built_in().into());
    let profile = AgentProfile::new("claude-opus-5-5", "You lead a team of writers.");
    let mut agent = runtime.start(&profile, setup);

    let team: Name = "press".parse()?;
    let command = Command::Team {
        name: team.clone(),
        plan: Box::new(plan()?),
        words: vec![ContentBlock::text(goal)],
    };
    agent.handle.send(command).await?;
    println!("{}", result(&mut agent).await?);

    // Mail, tasks and transcripts are rows, and stay when everybody has gone.
    let list = ListId {
        realm: RealmId::from(agent.id.uuid()),
        team: Some(team),
    };
    for task in store
        .tasks(list, TaskFilter::default(), Page::all())
        .await?
    {
        let owner = task
            .owner
            .as_ref()
            .map_or("nobody", |owner| owner.name.as_str());
        println!("{}. {}: {:?}, {owner}", task.id, task.subject, task.status);
    }
    runtime.shut_down().await;
    Ok(())
}

/// Returns who belongs to the team, and the tasks that it begins with.
fn plan() -> Result<TeamPlan, Box<dyn Error>> {
    let writer = TeamRole {
        prompt: "You write one chapter at a time, in your answer.".into(),
        count: 2,
        ..TeamRole::default()
    };
    let editor = TeamRole {
        prompt: "You say what a text lacks.".into(),
        takes: Some(vec!["edit".into()]),
        ..TeamRole::default()
    };
    let task = |subject: &str, role: &str, blocked_by: &[u64]| PlannedTask {
        subject: subject.into(),
        role: Some(role.into()),
        blocked_by: blocked_by.into(),
        ..PlannedTask::default()
    };
    Ok(TeamPlan {
        description: "It writes small books.".into(),
        roles: [("writer".parse()?, writer), ("editor".parse()?, editor)].into(),
        tasks: vec![
            task("Write the first chapter", "writer", &[]),
            task("Write the second chapter", "writer", &[]),
            task("Edit both chapters", "edit", &[1, 2]),
        ],
    })
}

/// Prints what happens until nobody works any more, and returns what the main agent said last.
async fn result(agent: &mut Agent) -> Result<String, Box<dyn Error>> {
    let mut last = String::new();
    while let Some(event) = agent.events.recv().await {
        match event.kind {
            EventKind::Member(update) => match update.what {
                MemberChange::Joined { .. } => println!("{} has joined", update.name),
                MemberChange::Running => println!("{} is at work", update.name),
                MemberChange::Idle(_) => println!("{} has nothing to do", update.name),
                MemberChange::TakenOver | MemberChange::Left => {}
            },
            // While members work the main agent has a run for each thing that it is told.
            EventKind::Ended(end) => {
                last = end.text;
                if end.live == 0 {
                    return Ok(last);
                }
            }
            EventKind::AllIdle => return Ok(last),
            _ => {}
        }
    }
    Err("the main agent has ended".into())
}
