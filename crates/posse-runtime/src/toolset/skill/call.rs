//! A skill that is called: its instructions made ready, and an agent of its own started if it wants one.

use std::sync::Arc;

use posse_protocol::{AgentId, Notification, RunStatus};
use tokio_util::sync::CancellationToken;

use crate::definition::skill::{Fork, Skill, Values, named};
use crate::definition::spawning::Background;
use crate::definition::terms::Granted;
use crate::live::registry::House;
use crate::live::setup::Setup;
use crate::prompt;
use crate::prompt::agent_tool::AgentInput;
use crate::prompt::{Returned, launched, result};
use crate::session::spawn::{Leash, Wish};
use crate::toolset::skill::gate::{Gate, Held, Stopped};
use crate::toolset::{AGENT, Caller, follow};
use posse_permission::Policy;
use posse_port::closest;
use posse_port::model::Effort;
use posse_port::store::CallKey;
use posse_port::tool::{ToolError, ToolOutput, Toolbox};

/// A skill whose instructions are ready.
pub(crate) struct Ready {
    pub(crate) skill: Arc<Skill>,
    /// All that is to be followed.
    pub(crate) text: String,
    /// What holds besides while it is followed.
    pub(crate) rules: Option<Arc<Policy>>,
}

/// Why a skill is not ready.
pub(crate) enum Unready {
    Failed(String),
    /// A person wants nothing more to be done.
    Stopped(String),
}

/// The skills that a model may load: those that no rule denies.
pub(crate) fn loadable(setup: &Setup) -> Vec<Arc<Skill>> {
    let skills = setup
        .spawning
        .skills
        .as_ref()
        .map(|skills| skills.now())
        .unwrap_or_default();
    let may = |skill: &&Arc<Skill>| skill.for_model && !setup.policy.forbids_skill(&skill.name);
    skills.iter().filter(may).cloned().collect()
}

/// Those of the skills that an agent with these tools can follow: who starts no agents, starts none by a skill.
pub(crate) fn followable(skills: &[Arc<Skill>], tools: &Toolbox) -> Vec<Arc<Skill>> {
    let starts = tools.get(AGENT).is_some();
    skills
        .iter()
        .filter(|skill| starts || skill.fork.is_none())
        .cloned()
        .collect()
}

/// The skill that is meant; else what is said of the name.
pub(crate) fn find(skills: &[Arc<Skill>], name: &str) -> Result<Arc<Skill>, String> {
    let wanted = name.trim().trim_start_matches('/');
    named(skills, wanted)
        .cloned()
        .ok_or_else(|| unknown(skills, wanted))
}

fn unknown(skills: &[Arc<Skill>], name: &str) -> String {
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    let meant = closest(name, &names)
        .map(|meant| format!("; did you mean {meant}?"))
        .unwrap_or_default();
    format!("there is no skill {name}{meant}")
}

/// Makes a skill's instructions ready: its commands are run.
pub(crate) async fn prepare(
    gate: &Gate,
    skill: Arc<Skill>,
    arguments: &str,
) -> Result<Ready, Unready> {
    let failed = |why: &dyn std::fmt::Display| Unready::Failed(why.to_string());
    let who = gate
        .house
        .resident(gate.agent)
        .ok_or_else(|| failed(&"the agent has ended"))?;
    if let Some(fork) = &skill.fork {
        gate.start(&skill, fork).await.map_err(|held| match held {
            Held::Said(why) => Unready::Failed(format!("{} needs an agent: {why}", skill.name)),
            Held::Stopped(why) => Unready::Stopped(why),
        })?;
    }
    let workspace = &gate.context.workspace;
    let rules = skill.rules(workspace).map_err(|error| failed(&error))?;
    let parts = skill.body.expand(&Values {
        arguments: arguments.trim(),
        session: &who.tree.root.to_string(),
        directory: skill.directory(),
        project: &workspace.cwd,
        effort: who.effort,
    });
    let parts =
        parts.map_err(|error| failed(&format!("{} cannot be followed: {error}", skill.name)))?;
    let filled = gate.fill(parts, rules.as_ref()).await;
    let text = filled.map_err(|Stopped(why)| Unready::Stopped(why))?;
    Ok(Ready { skill, text, rules })
}

/// The call that starts an agent to follow a skill.
pub(crate) struct Delegation {
    pub(crate) key: CallKey,
    pub(crate) call: String,
    pub(crate) ready: Ready,
    pub(crate) fork: Fork,
}

/// Starts the agent that follows a skill.
async fn start(house: &Arc<House>, by: AgentId, delegation: Delegation) -> Result<Leash, String> {
    let Delegation {
        key,
        call,
        ready,
        fork,
    } = delegation;
    let parent = house.resident(by).ok_or("whoever starts it has ended")?;
    let background = match parent.tree.setup.spawning.background {
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
    house
        .spawn(Wish {
            by,
            key,
            call,
            input,
            granted,
            role: None,
        })
        .await
}

/// What came of an agent that followed a skill.
pub(crate) struct Outcome {
    /// How it ended; running if it goes on in the background.
    pub(crate) status: RunStatus,
    /// What it said, for people.
    pub(crate) text: String,
    /// The same for whoever called.
    pub(crate) told: Result<ToolOutput, ToolError>,
    /// Why it did not come to an end of its own.
    pub(crate) error: Option<String>,
}

/// Has an agent follow a skill, and waits for it unless nobody is to.
pub(crate) async fn delegate(
    caller: &Caller,
    delegation: Delegation,
    cancel: &CancellationToken,
) -> Result<Outcome, String> {
    let leash = start(&caller.house, caller.agent, delegation).await?;
    let (run, one_shot) = (Arc::clone(&leash.run), leash.one_shot);
    let end = follow(caller, leash, cancel).await;
    let told = |end: &Notification| {
        let of = Returned {
            agent_type: &run.facts.agent_type,
            one_shot,
            model: &end.model,
        };
        result(end, of, caller.reader)
    };
    Ok(match end {
        Some(end) => Outcome {
            status: end.status,
            text: end.result.clone(),
            told: told(&end),
            error: end.error.clone(),
        },
        None => Outcome {
            status: RunStatus::Running,
            text: format!(
                "{} goes on in the background as {}",
                run.facts.description, run.facts.task
            ),
            told: Ok(ToolOutput::text(launched(&run.facts, "", caller.reader))),
            error: None,
        },
    })
}

/// What the instructions of a skill are, for whoever follows them.
pub(crate) fn instructions(ready: &Ready) -> String {
    prompt::skill::instructions(&ready.skill, &ready.text)
}
