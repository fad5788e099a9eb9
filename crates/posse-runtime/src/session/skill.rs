//! Runs a skill in a sub-agent.

use std::sync::Arc;

use posse_port::model::Effort;
use posse_port::tool::ToolOutput;
use posse_protocol::{AgentId, Notification, RunStatus};
use tokio_util::sync::CancellationToken;

use crate::agent::lifecycle::{Delegation, SkillOutcome};
use crate::definition::skill::Skill;
use crate::definition::spawning::Background;
use crate::definition::terms::Granted;
use crate::prompt::agent_tool::AgentInput;
use crate::prompt::{Reader, Returned, launched, result};
use crate::session::error::SpawnError;
use crate::session::factory::Factory;
use crate::session::spawn::{self, RunGuard, SpawnRequest};

/// Starts the sub-agent that follows a skill.
async fn start(
    factory: &Arc<Factory>,
    by: AgentId,
    delegation: Delegation,
) -> Result<RunGuard, SpawnError> {
    let Delegation {
        key,
        call,
        ready,
        fork,
    } = delegation;
    let parent = factory
        .registry
        .live_agent(by)
        .ok_or(SpawnError::StarterEnded)?;
    let background = match parent.session.setup.spawning.background {
        // With background work switched off, naming it at all is an error of the call.
        Background::Off => None,
        _ => Some(fork.background),
    };
    let input = AgentInput {
        description: format!("/{}", ready.skill.name),
        prompt: ready.text,
        subagent_type: Some(fork.agent_type().to_owned()),
        model: fork.model,
        effort: fork.effort.map(Effort::as_str).map(str::to_owned),
        run_in_background: background,
        ..AgentInput::default()
    };
    let Skill {
        path,
        allowed,
        disallowed,
        ..
    } = &*ready.skill;
    let granted = Granted {
        file: path.display().to_string(),
        allow: allowed.clone(),
        deny: disallowed.clone(),
    };
    spawn::spawn(
        factory,
        SpawnRequest {
            by,
            key,
            call,
            input,
            granted,
            role: None,
        },
    )
    .await
}

/// Runs a skill in a sub-agent, and waits for it unless it runs in the background.
pub(crate) async fn delegate(
    factory: &Arc<Factory>,
    (by, reader): (AgentId, Reader),
    delegation: Delegation,
    cancel: &CancellationToken,
) -> Result<SkillOutcome, SpawnError> {
    let guard = start(factory, by, delegation).await?;
    let (run, one_shot) = (Arc::clone(&guard.run), guard.one_shot);
    let end = spawn::follow(factory, by, guard, cancel).await;
    let told = |end: &Notification| {
        let of = Returned {
            agent_type: &run.facts.agent_type,
            one_shot,
            model: &end.model,
        };
        result(end, of, reader)
    };
    Ok(match end {
        Some(end) => SkillOutcome {
            status: end.status,
            text: end.result.clone(),
            told: told(&end),
            error: end.error.clone(),
        },
        None => SkillOutcome {
            status: RunStatus::Running,
            text: format!(
                "{} continues in the background as {}",
                run.facts.description, run.facts.task
            ),
            told: Ok(ToolOutput::text(launched(&run.facts, "", reader))),
            error: None,
        },
    })
}
