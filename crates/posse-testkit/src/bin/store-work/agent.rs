//! A whole agent in its own process, to be stopped while its tool runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use posse_model::RetryPolicy;
use posse_port::clock::SystemClock;
use posse_port::tool::Workspace;
use posse_protocol::{EventKind, Outcome, PermissionMode};
use posse_runtime::live::setup::{AgentProfile, Setup};
use posse_runtime::runtime::Runtime;
use posse_store::Timing;
use posse_testkit::place::Place;
use posse_testkit::rig::{self, prompt};
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
    let model = scripted::anthropic(url, clock, RetryPolicy::default())?;
    let (model, store) = (Arc::new(model), place.open_with(timing)?);
    let runtime = Runtime::new(rig::ports(model, store, directory.join("worktrees"))?);
    let profile = AgentProfile {
        mode: PermissionMode::BypassPermissions,
        ..AgentProfile::new("claude-opus-5", "You work on code.")
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
    let tools = posse_tools::all(posse_tools::ToolsConfig {
        reach: posse_tools::Reach::Public,
        background: true,
        processes: posse_tools::SystemProcesses::default(),
        gate: None,
    });
    rig::setup(
        tools,
        Workspace::new(directory.to_owned(), directory.join("spill")),
    )
}
