//! Prepares the instructions of a skill that is called.

mod gate;

use std::sync::Arc;

use crate::definition::skill::{Skill, Values, meant, named};
use crate::prompt;
use posse_permission::Policy;

pub(crate) use gate::{Gate, Held, SHELL, Stopped, texts};

/// A skill with prepared instructions.
pub(crate) struct Ready {
    pub(crate) skill: Arc<Skill>,
    /// The instructions, with the output of their commands.
    pub(crate) text: String,
    /// Rules that apply while the skill is followed.
    pub(crate) rules: Option<Arc<Policy>>,
}

/// Why a skill could not be prepared.
pub(crate) enum Unready {
    /// It could not be prepared; the reason is for the caller.
    Failed(String),
    /// A person stopped it.
    Stopped(String),
}

/// Why a skill cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SkillError {
    /// `meant` is empty, or asks for the closest name.
    #[error("there is no skill {name}{meant}")]
    Unknown { name: String, meant: String },
    #[error("only models can load the skill {0}")]
    ForModels(String),
    #[error("a rule denies the skill {0}")]
    Denied(String),
}

/// Returns the skill with this name, with or without the slash.
pub(crate) fn find(skills: &[Arc<Skill>], name: &str) -> Result<Arc<Skill>, SkillError> {
    let wanted = name.trim().trim_start_matches('/');
    named(skills, wanted)
        .cloned()
        .ok_or_else(|| unknown(skills, wanted))
}

/// Returns the error for an unknown name, with a suggestion.
fn unknown(skills: &[Arc<Skill>], name: &str) -> SkillError {
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    let meant = meant(name, &names)
        .map(|meant| format!("; did you mean {meant}?"))
        .unwrap_or_default();
    SkillError::Unknown {
        name: name.to_owned(),
        meant,
    }
}

/// Prepares a skill's instructions by running their commands.
pub(crate) async fn prepare(
    gate: &Gate,
    skill: Arc<Skill>,
    arguments: &str,
) -> Result<Ready, Unready> {
    let failed = |why: &dyn std::fmt::Display| Unready::Failed(why.to_string());
    let who = gate
        .registry
        .live_agent(gate.agent)
        .ok_or_else(|| failed(&"the agent has ended"))?;
    // Before any command runs: if its agent may not be started, nothing must have happened.
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
        session: &who.session.root.to_string(),
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

/// Returns the instructions for the model that follows them.
pub(crate) fn instructions(ready: &Ready) -> String {
    prompt::skill::instructions(&ready.skill, &ready.text)
}
