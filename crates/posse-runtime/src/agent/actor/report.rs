//! What front ends are told of a run that has ended.

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

pub(super) fn run_ended(actor: &Actor, ended: Ended, work: &Work, busy: usize) -> EventKind {
    let Ended { outcome, run } = ended;
    let is_root = actor.role.is_main();
    let (below, mut misses) = if is_root {
        actor.spending.account.take_below()
    } else {
        Default::default()
    };
    misses.append(own_misses(actor, &run));
    EventKind::Ended(Box::new(RunEnd {
        outcome,
        text: run.text,
        stop: run.stop,
        turns: run.turns,
        spent: run.spent,
        below,
        misses,
        live: going_on(actor) + busy,
        duration_ms: millis(actor.ports.clock.now().saturating_sub(work.began)),
        api_ms: millis(work.api),
        denials: run.denials,
    }))
}

/// What it missed in the cache in a run.
pub(super) fn own_misses(actor: &Actor, run: &Run) -> Misses {
    let missed = run.missed.clone();
    let usage = run
        .spent
        .iter()
        .fold(Usage::default(), |sum, spent| sum + spent.usage);
    let (agent, path) = (actor.identity.agent, actor.prefix.attribution.path.clone());
    let line = AgentMisses {
        agent,
        path,
        usage,
        missed: missed.clone(),
    };
    Misses {
        agents: if missed.is_empty() {
            Vec::new()
        } else {
            vec![line]
        },
        missed,
        others: 0,
    }
}

/// How many runs go on that begin another of this agent when they end.
pub(super) fn going_on(actor: &Actor) -> usize {
    // Mail that came with its last breath begins another run.
    actor.registry.live(actor.identity.agent) + usize::from(actor.inbox.waits)
}
