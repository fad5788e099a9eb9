//! Skills that a person calls: prepared while nothing else begins, then given to the model or to a
//! sub-agent.

use std::sync::Arc;

use posse_port::confinement::Where;
use posse_port::store::CallKey;
use posse_port::tool::{LiveOutput, NoHosts, Subject, ToolContext, ToolError};
use posse_protocol::{AgentId, ContentBlock, Fault, FaultClass, Outcome, RunStatus, ToolContent};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::actor::server_words::CalledPrompt;
use crate::agent::actor::skill_queue::{ServedWords, SkillDone, failed};
use crate::agent::actor::work::Work;
use crate::agent::actor::{Actor, server_words};
use crate::agent::lifecycle::{Delegation, SkillOutcome};
use crate::agent::skill::{self, Gate, Ready, SHELL, SkillError, Unready};
use crate::agent::step::{Delegated, Input};
use crate::definition::skill::Skill;
use crate::live::setup::reader;
use crate::prompt;

/// Returns the end of a run in which a sub-agent followed a skill.
fn came(outcome: SkillOutcome, stopped: bool) -> Delegated {
    let SkillOutcome {
        status,
        text,
        told,
        error,
    } = outcome;
    let told = match told {
        Ok(output) => output
            .content
            .iter()
            .filter_map(text_of)
            .collect::<Vec<_>>()
            .join("\n"),
        Err(ToolError::Tell(what) | ToolError::Stop(what)) => what,
    };
    let end = match status {
        RunStatus::Completed | RunStatus::Running => Outcome::Completed,
        _ if stopped => Outcome::Interrupted,
        RunStatus::Partial | RunStatus::Failed | RunStatus::Killed | RunStatus::Paused => {
            Outcome::Failed(fault(
                error.unwrap_or_else(|| "the agent that followed it did not finish".into()),
            ))
        }
    };
    Delegated {
        outcome: end,
        text,
        told: prompt::skill::delegation(&told),
    }
}

fn text_of(content: &ToolContent) -> Option<&str> {
    match content {
        ToolContent::Text { text } => Some(text),
        _ => None,
    }
}

fn fault(message: String) -> Fault {
    Fault {
        class: FaultClass::Tool,
        status: None,
        message,
    }
}

/// Starts preparing a skill that a person has called.
pub(super) fn call_skill(
    actor: &mut Actor,
    name: &str,
    arguments: String,
    words: Vec<ContentBlock>,
    work: &mut Work,
) -> Option<Input> {
    let skill = match callable(actor, name) {
        Ok(skill) => skill,
        Err(SkillError::Unknown { .. }) if server_words::is_prompt(actor, name) => {
            let called = CalledPrompt {
                name: name.to_owned(),
                arguments,
            };
            server_words::call_prompt(actor, called, words, work);
            return None;
        }
        Err(why) => return Some(failed(FaultClass::InvalidRequest, why.to_string())),
    };
    work.skills.cancel = CancellationToken::new();
    let gate = gate(actor, work.skills.cancel.clone());
    work.skills.work = Some(Box::pin(async move {
        let ready = Box::new(skill::prepare(&gate, skill, &arguments).await);
        SkillDone::Ready { words, ready }
    }));
    // Otherwise mail could begin a run meanwhile, which would have the skill's rules without the
    // skill.
    actor.machine.set_preparing(true);
    None
}

/// Returns the skill with this name, if a person may call it.
pub(super) fn callable(actor: &Actor, name: &str) -> Result<Arc<Skill>, SkillError> {
    let setup = &actor.session.setup;
    let skills = setup
        .spawning
        .skills
        .as_ref()
        .map(|skills| skills.now())
        .unwrap_or_default();
    let skill = skill::find(&skills, name)?;
    match &skill.name {
        _ if !skill.for_user => Err(SkillError::ForModels(name.to_owned())),
        name if setup.policy.forbids_skill(name) => Err(SkillError::Denied(name.clone())),
        _ => Ok(skill),
    }
}

/// Returns the gate through which the skill's commands run.
pub(super) fn gate(actor: &Actor, cancel: CancellationToken) -> Gate {
    Gate {
        registry: Arc::clone(&actor.registry),
        agent: actor.identity.agent,
        shell: actor.setup.tools.get(SHELL),
        context: without_call(actor, cancel),
    }
}

/// Returns the context of commands that no call runs.
pub(super) fn without_call(actor: &Actor, cancel: CancellationToken) -> ToolContext {
    ToolContext {
        key: next_key(actor),
        call: String::new(),
        // There is no call whose key could mark them, and the marker must be unique.
        marker: format!("{}.{}", actor.identity.agent, Uuid::now_v7()),
        subject: Subject::Nothing,
        workspace: Arc::clone(&actor.setup.workspace),
        seen: actor.known_files.clone(),
        files: actor.machine.rights().policy(),
        hosts: Arc::new(NoHosts),
        place: Where::Outside,
        clock: Arc::clone(&actor.ports.clock),
        first: None,
        output: LiveOutput::default(),
        wants_answer: false,
        cancel,
    }
}

/// Returns the key of the entry that comes next.
fn next_key(actor: &Actor) -> CallKey {
    CallKey {
        seq: actor.prefix.history.next_seq(),
        ordinal: 0,
    }
}

/// Returns the input for a skill that is prepared or has been followed.
pub(super) fn on_done(actor: &mut Actor, followed: SkillDone, work: &mut Work) -> Input {
    let stopped = work.skills.cancel.is_cancelled();
    actor.machine.set_preparing(false);
    match followed {
        SkillDone::Ready { words, ready } => match *ready {
            _ if stopped => Input::NotBegun(Outcome::Interrupted),
            Ok(ready) => begin(actor, words, ready, work),
            Err(Unready::Stopped(_)) => Input::NotBegun(Outcome::Interrupted),
            Err(Unready::Failed(why)) => failed(FaultClass::InvalidRequest, why),
        },
        SkillDone::Served(_) if stopped => Input::NotBegun(Outcome::Interrupted),
        SkillDone::Served(Ok(ServedWords { words, warnings })) => {
            for warning in warnings {
                actor.warn(warning);
            }
            Input::Prompt(words)
        }
        SkillDone::Served(Err(why)) => failed(FaultClass::InvalidRequest, why.to_string()),
        SkillDone::Delegated(outcome) => Input::Delegated(Box::new(match *outcome {
            Ok(outcome) => came(outcome, stopped),
            Err(why) => {
                let told = prompt::skill::delegation(&format!("It could not be started: {why}"));
                let outcome = if stopped {
                    Outcome::Interrupted
                } else {
                    Outcome::Failed(fault(why.to_string()))
                };
                Delegated {
                    outcome,
                    text: String::new(),
                    told,
                }
            }
        })),
    }
}

/// Begins the run of a prepared skill, by the model itself or by a sub-agent.
pub(super) fn begin(
    actor: &mut Actor,
    mut words: Vec<ContentBlock>,
    mut ready: Ready,
    work: &mut Work,
) -> Input {
    match ready.skill.fork.clone() {
        None => {
            if let Some(who) = actor.registry.live_agent(actor.identity.agent) {
                who.skill_hooks.load(&ready.skill.hooks);
                if let Some(rules) = &ready.rules {
                    who.rights.grant(Arc::clone(rules));
                }
            }
            words.push(ContentBlock::text(skill::instructions(&ready)));
            Input::Prompt(words)
        }
        Some(_)
            if words
                .iter()
                .any(|block| !matches!(block, ContentBlock::Text { .. })) =>
        {
            let why = format!(
                "{} runs in a separate agent, which takes only text",
                ready.skill.name
            );
            failed(FaultClass::InvalidRequest, why)
        }
        Some(fork) => {
            // The first block is the call itself; what stands beside it is for the sub-agent.
            for block in words.iter().skip(1) {
                if let ContentBlock::Text { text } = block {
                    ready.text.push_str("\n\n");
                    ready.text.push_str(text);
                }
            }
            words.push(ContentBlock::text(prompt::skill::delegated(&ready.skill)));
            // Started once the entry is stored, because a crash must not leave a sub-agent that no
            // entry mentions.
            work.skills.delegation = Some((ready, fork));
            Input::Delegate(words)
        }
    }
}

/// Starts the sub-agent that follows the skill of the last entry.
pub(super) fn delegate(actor: &mut Actor, key: CallKey, work: &mut Work) {
    let Some((ready, fork)) = work.skills.delegation.take() else {
        return;
    };
    let agent: AgentId = actor.identity.agent;
    let (lifecycle, reader) = (Arc::clone(&actor.lifecycle), reader(&actor.setup.tools));
    work.skills.cancel = CancellationToken::new();
    let cancel = work.skills.cancel.clone();
    let delegation = Delegation {
        key,
        call: String::new(),
        ready,
        fork,
    };
    let followed = lifecycle.follow_skill(agent, reader, delegation, cancel);
    work.skills.work = Some(Box::pin(async move {
        SkillDone::Delegated(Box::new(followed.await))
    }));
}
