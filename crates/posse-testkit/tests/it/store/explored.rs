//! Everything that agents, and hosts that fail, can do to the model of a store: explored to the end.
//!
//! What is explored is the specification that the property test holds real stores against, together
//! with what each process believes: agents on hosts of their own, tasks of which the third waits for the
//! first, hosts of which one is killed, or is taken for dead and goes on.
//!
//! What is bounded, so that there is an end: each agent sends one message, to the next in a ring, at any
//! time or as the last it does before it sleeps, and is shown one message at a time; who has a task does nothing with it but complete it; one host is killed
//! and one stalls, at any moment, and no new host comes. What is left out: that a task has become
//! claimable is heard at once (mail is not), and nobody asks for a task that was acknowledged as done.
//! What is taken for the same is said in [`sketch`], and shown by a test.

mod property;
mod sketch;
mod words;
mod world;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Instant;

use posse_testkit::model::Flaw;
use stateright::{Checker as _, Model as _};

use sketch::Sketch;
use world::{State, World};

/// Three agents on hosts of their own.
fn three() -> World {
    World {
        agents: 3,
        hosts: 3,
        tasks: 3,
        ..World::default()
    }
}

/// Explores a world to its end, and says how large it is.
#[expect(
    clippy::print_stdout,
    reason = "how much was explored is what a reader of the log wants to know"
)]
fn explore(name: &str, world: World) {
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let checker = world.checker().threads(threads).spawn_bfs().join();
    println!(
        "{name}: {} states, {} transitions, depth {}, {:.1} s",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        begun.elapsed().as_secs_f64(),
    );
    checker.assert_properties();
    assert!(checker.is_done(), "there was more to explore");
}

#[test]
fn nothing_is_lost_or_doubled_by_a_host_that_is_killed() {
    explore(
        "two agents, two tasks, a crash",
        World {
            stalls: 0,
            ..World::default()
        },
    );
}

#[test]
fn nothing_is_lost_or_doubled_by_a_host_that_goes_on() {
    explore(
        "two agents, two tasks, a stall",
        World {
            crashes: 0,
            ..World::default()
        },
    );
}

#[test]
fn nothing_is_lost_or_doubled_by_both() {
    explore(
        "two agents, two tasks, a crash and a stall",
        World::default(),
    );
}

#[test]
fn nothing_is_lost_or_doubled_when_two_want_what_is_lost() {
    explore(
        "three agents, a task, a crash",
        World {
            tasks: 1,
            stalls: 0,
            ..three()
        },
    );
}

#[test]
#[ignore = "long: cargo xtask faults"]
fn nothing_is_lost_or_doubled_among_three_by_a_crash() {
    explore(
        "three agents, three tasks, a crash",
        World {
            stalls: 0,
            ..three()
        },
    );
}

#[test]
#[ignore = "long: cargo xtask faults"]
fn nothing_is_lost_or_doubled_among_three_by_a_stall() {
    explore(
        "three agents, three tasks, a stall",
        World {
            crashes: 0,
            ..three()
        },
    );
}

#[test]
fn states_that_look_the_same_go_on_the_same() {
    go_on_the_same(
        "two agents, a task, a crash and a stall",
        World {
            tasks: 1,
            ..World::default()
        },
    );
}

#[test]
#[ignore = "long: cargo xtask faults"]
fn states_of_three_that_look_the_same_go_on_the_same() {
    go_on_the_same(
        "three agents, a task, a crash",
        World {
            tasks: 1,
            stalls: 0,
            ..three()
        },
    );
}

/// What a sketch leaves out makes no difference: whatever can follow one state can follow all that look
/// the same.
#[expect(clippy::print_stdout, reason = "how much was compared")]
fn go_on_the_same(name: &str, world: World) {
    let begun = Instant::now();
    let whole = |state: &State| {
        let mut hasher = DefaultHasher::new();
        (
            &state.model,
            state.views,
            state.sent,
            state.done,
            state.crashes,
            state.stalls,
        )
            .hash(&mut hasher);
        hasher.finish()
    };
    let mut ahead = VecDeque::from(world.init_states());
    let mut seen: HashSet<u64> = ahead.iter().map(whole).collect();
    let mut following: BTreeMap<Sketch, BTreeSet<Sketch>> = BTreeMap::new();
    while let Some(state) = ahead.pop_front() {
        let next = world.next_states(&state);
        let sketches: BTreeSet<Sketch> = next.iter().map(|next| next.sketch).collect();
        let before = following
            .entry(state.sketch)
            .or_insert_with(|| sketches.clone());
        assert_eq!(*before, sketches, "{state:?}");
        ahead.extend(next.into_iter().filter(|next| seen.insert(whole(next))));
    }
    let (states, different, seconds) = (seen.len(), following.len(), begun.elapsed().as_secs_f64());
    println!("{name}: {states} states, {different} of them different, {seconds:.1} s");
}

#[test]
fn what_is_done_wrong_is_found() {
    for (flaw, property) in [
        (
            Flaw::IdleWithMail,
            "whom mail waits for is awake or will be woken",
        ),
        (Flaw::BlindClaim, "a task has one doer"),
        (Flaw::SameEpoch, "a task has one doer"),
        (Flaw::TwiceShown, "each message is shown once or waits"),
        (Flaw::ToldAnyway, "each message is shown once or waits"),
    ] {
        let world = World {
            flaw: Some(flaw),
            ..World::default()
        };
        let checker = world
            .checker()
            .finish_when(stateright::HasDiscoveries::AnyFailures)
            .spawn_bfs()
            .join();
        let path = checker.assert_any_discovery(property);
        println!(
            "{flaw:?} is found after {} steps: {:?}",
            path.clone().into_actions().len(),
            path.into_actions()
        );
    }
}
