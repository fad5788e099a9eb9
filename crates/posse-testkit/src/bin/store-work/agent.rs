//! A whole agent in its own process, to be stopped while its tool runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use posse_model::RetryPolicy;
use posse_permission::Policy;
use posse_port::Ports;
use posse_port::clock::SystemClock;
use posse_port::memory::SystemMemory;
use posse_port::model::Thinking;
use posse_port::tool::Workspace;
use posse_protocol::{EventKind, Outcome, PermissionMode};
use posse_runtime::govern::budget::Budget;
use posse_runtime::live::setup::{AgentProfile, Approver, Limits, Repeats, Setup};
use posse_runtime::runtime::Runtime;
use posse_store::Timing;
use posse_testkit::place::Place;
use posse_testkit::rig::{prompt, spawning};
use posse_testkit::scripted;

use crate::{Failed, say};

/// Runs an agent in `directory`, and prints its id and how its run ended.
pub(crate) async fn run(
    place: &Place,
    url: &str,
    directory: &Path,
    lease: Duration,
) -> Result<(), Failed> {
    let timing = Timing {
        lease,
        sweep: lease / 3,
        ..Timing::default()
    };
    let clock = Arc::new(SystemClock::default());
    let runtime = Runtime::new(Ports {
        model: Arc::new(scripted::anthropic(
            url,
            clock.clone(),
            RetryPolicy::default(),
        )?),
        store: place.open_with(timing)?,
        clock,
        prices: Arc::new(posse_model::price::PriceList::built_in()?),
        memory: Arc::new(SystemMemory),
        hooks: Arc::new(posse_port::hooks::NoHooks),
        servers: Arc::new(posse_port::servers::NoServers),
        worktrees: Arc::new(posse_tools::GitWorktrees::new(directory.join("worktrees"))),
    });
    let profile = AgentProfile {
        model: "claude-opus-5".into(),
        system: vec!["You work on code.".into()],
        thinking: Thinking::Default,
        effort: None,
        mode: PermissionMode::BypassPermissions,
    };
    let mut agent = runtime.start(&profile, setup(directory));
    say(&agent.id.to_string())?;
    agent.handle.send(prompt("go")).await?;
    while let Some(event) = agent.events.recv().await {
        if let EventKind::Ended(end) = event.kind {
            match end.outcome {
                Outcome::Failed(fault) => {
                    say(&format!("failed {:?}: {}", fault.class, fault.message))?
                }
                other => say(&format!("{other:?}"))?,
            }
        }
    }
    Ok(())
}

fn setup(directory: &Path) -> Setup {
    let workspace = Workspace {
        cwd: directory.to_owned(),
        roots: vec![directory.to_owned()],
        spill: directory.join("spill"),
        home: None,
        mirror: None,
        notes: None,
    };
    Setup {
        tools: posse_tools::all(posse_tools::ToolsConfig {
            reach: posse_tools::Reach::Public,
            background: true,
            processes: posse_tools::SystemProcesses::default(),
            gate: None,
        }),
        policy: Arc::new(Policy::default()),
        workspace: Arc::new(workspace),
        limits: Limits {
            turns: None,
            budget: Budget::default(),
            max_tokens: 4096,
            compact_at: None,
            repeats: Repeats::default(),
        },
        approver: Approver::Nobody,
        spawning: spawning(),
        joins: false,
        output_schema: None,
    }
}
