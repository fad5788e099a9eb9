//! What front ends are told when a run ends.

use posse_protocol::{AgentMisses, EventKind, Misses, RunEnd, Usage};

use crate::agent::actor::work::Work;
use crate::agent::actor::{Actor, millis};
use crate::agent::step::{Ended, Run};

/// Returns the event for the end of a run.
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
        value: run.value,
        stop: run.stop,
        turns: run.turns,
        spent: run.spent,
        below,
        misses,
        live: live_runs_and_mail(actor) + busy,
        duration_ms: millis(actor.ports.clock.now().saturating_sub(work.time.began)),
        api_ms: millis(work.time.api),
        denials: run.denials,
    }))
}

/// Returns what the agent missed in the cache in a run.
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

/// Returns the number of runs that will begin another run of this agent when they end.
pub(super) fn live_runs_and_mail(actor: &Actor) -> usize {
    // Mail that came with the end of its run begins another run.
    actor.registry.live(actor.identity.agent) + usize::from(actor.inbox.waits)
}
