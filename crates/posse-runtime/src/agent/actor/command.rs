//! Commands from front ends and from other agents, as inputs.

use crate::agent::actor::lead;
use crate::agent::actor::skills;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use posse_protocol::{
    AgentId, AgentMisses, Answer, Command, EventKind, Fault, FaultClass, Misses, Name, Outcome,
    RawJson, RealmId, RunEnd, TaskId, Usage,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use crate::agent::actor::call::{Admission, Called};
use crate::agent::actor::compact::Squeezed;
use crate::agent::actor::skills::{Followed, Following};
use crate::agent::ending;
use crate::agent::events::Outlet;
use crate::agent::lifecycle::Lifecycle;
use crate::agent::step::{Answered, Consequence, Decision, Ended, Input, Machine, Run, Squeeze};
use crate::definition::terms::Terms;
use crate::govern::{Account, Entry, Place, Warmth};
use crate::history::History;
use crate::history::cache_ttl::Reuse;
use crate::history::fork_point::Branch;
use crate::history::request_size::Paid;
use crate::live::registry::{By, Registry, Stop};
use crate::live::session::Tree;
use crate::live::setup::Setup;
use crate::live::stop;
use crate::live::wakeup::{About, Nudge, Nudged};
use crate::supervise::{Calls, Living, Supervisor};
use posse_port::BoxFuture;
use posse_port::Ports;
use posse_port::clock::Clock;
use posse_port::model::{Attribution, Piece};
use posse_port::store::{AgentState, Birth, CallKey, Epoch, MailFilter, Segment, StoreError};
use posse_port::tool::{Intent, NewRun, RunReport, Seen, Then, ToolError, ToolOutput};
use crate::agent::actor::*;

pub(super) fn on_command(actor: &mut Actor, command: Command, work: &mut Work) -> Option<Input> {
    match command {
        Command::Prompt(blocks) => Some(Input::Prompt(blocks)),
        Command::Skill {
            name,
            arguments,
            words,
        } => skills::call_skill(actor, &name, arguments, words, work),
        Command::Continue => Some(Input::Continue),
        Command::Interrupt => {
            work.following.stop();
            Some(Input::Interrupt)
        }
        Command::SetMode(mode) => Some(Input::SetMode(mode)),
        Command::Answer {
            agent,
            call,
            answer,
        } if agent == actor.identity.agent => {
            let answer = actor.registry.questions.answer(agent, &call, answer)?;
            let intent = match &answer {
                Answer::Allow { input: Some(input) } => actor
                    .machine
                    .open_calls()
                    .and_then(|calls| calls.asked_tool(&call))
                    .map(|tool| actor.intent(tool, input)),
                _ => None,
            };
            Some(Input::Answer {
                call,
                answer,
                intent,
            })
        }
        Command::Answer {
            agent,
            call,
            answer,
        } => {
            let passed = actor.registry.pass_on(
                agent,
                Command::Answer {
                    agent,
                    call: call.clone(),
                    answer,
                },
            );
            // Who is not here cannot have asked: here nobody has either, and it is reported so.
            let unheard = |_| Input::Answer {
                call,
                answer: Answer::Allow { input: None },
                intent: None,
            };
            passed.err().map(unheard)
        }
        Command::Compact { keep } => Some(Input::Compact { keep }),
        Command::StopRun(task) => {
            let (registry, outlet) = (Arc::clone(&actor.registry), actor.outlet.clone());
            actor.supervisor.start_errand(async move {
                if stop::stop(&registry, task, By::Person).await.is_none() {
                    let what = format!("{task} cannot be stopped: nothing runs under that id");
                    outlet.emit(EventKind::Unheard(what)).await;
                }
            });
            None
        }
        Command::StopRuns => {
            // Who stops everything wants nothing to begin by it.
            actor.machine.fall_asleep();
            let (registry, root) = (Arc::clone(&actor.registry), actor.tree.root);
            actor.supervisor
                .start_errand(async move { stop::stop_all(&registry, root, By::Person).await });
            None
        }
        Command::Detach => {
            actor.registry.detach_all(actor.tree.root);
            None
        }
        Command::Team { name, plan, words } => Some(lead::make_team(actor, name, &plan, words)),
        Command::To { agent, command } => {
            let passed = actor.registry.pass_on(agent, *command);
            if passed.is_err() {
                let what = format!("{agent} is not here to be told anything");
                let outlet = actor.outlet.clone();
                actor.supervisor
                    .start_errand(async move { outlet.emit(EventKind::Unheard(what)).await });
            }
            None
        }
    }
}

/// What waits behind a skill, if its turn has come.
pub(super) fn next_held(actor: &mut Actor, work: &mut Work) -> Option<Input> {
    if !actor.machine.is_idle() {
        return None;
    }
    match work.following.take()? {
        Command::Skill {
            name,
            arguments,
            words,
        } => skills::call_skill(actor, &name, arguments, words, work),
        command => on_command(actor, command, work),
    }
}
