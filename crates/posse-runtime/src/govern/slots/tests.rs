//! Who gets a place when: against a plain model, and with many threads at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use proptest::prelude::*;
use proptest::sample::Index;
use uuid::Uuid;

use super::*;

fn agent(number: u128) -> AgentId {
    AgentId::from(Uuid::from_u128(number))
}

fn poll(waiting: &mut SlotWaiters) -> Option<RunPermit> {
    match Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(place) => Some(place),
        Poll::Pending => None,
    }
}

/// What happened in which order: gives one place up after the other, and says who got each.
fn order(place: RunPermit, mut waiting: Vec<(&'static str, SlotWaiters)>) -> Vec<&'static str> {
    let mut order = Vec::new();
    let mut held = Some(place);
    while held.take().is_some() {
        let given = waiting
            .iter_mut()
            .find_map(|(name, waiting)| Some((*name, poll(waiting)?)));
        if let Some((name, place)) = given {
            order.push(name);
            held = Some(place);
        }
    }
    order
}

// proves LI-03 (part: a fair queue)
#[test]
fn those_who_wait_are_served_in_turns_and_those_who_come_back_first() {
    let slots = RunSlots::new(1);
    let place = slots.try_take().unwrap();
    assert!(slots.try_take().is_none());
    let of = |name: &'static str, whose: u128, coming| (name, slots.take(agent(whose), coming));
    let waiting = vec![
        of("a1", 1, Priority::New),
        of("a2", 1, Priority::New),
        of("a3", 1, Priority::New),
        of("b1", 2, Priority::New),
        of("c1", 3, Priority::New),
        of("b2", 2, Priority::New),
        of("back 1", 9, Priority::Resuming),
        of("back 2", 1, Priority::Resuming),
    ];
    let served = ["back 1", "back 2", "a1", "b1", "c1", "a2", "b2", "a3"];
    assert_eq!(order(place, waiting), served);
    assert!(
        slots.try_take().is_some(),
        "the place is free when all are done"
    );
}

#[test]
fn whoever_leaves_loses_no_place() {
    let slots = RunSlots::new(1);
    let place = slots.try_take().unwrap();
    let (first, second) = (
        slots.take(agent(1), Priority::New),
        slots.take(agent(1), Priority::Resuming),
    );
    let mut third = slots.take(agent(2), Priority::New);
    drop(first);
    drop(place);
    assert!(
        poll(&mut third).is_none(),
        "the second has it, and does not know yet"
    );
    drop(second);
    let place = poll(&mut third).unwrap();
    assert!(slots.try_take().is_none());
    drop((place, third));
    drop(slots.take(agent(1), Priority::New));
    assert!(slots.try_take().is_some());
    assert!(slots.room().anew.is_empty());
}

/// What can happen to places.
#[derive(Clone, Debug)]
enum Deed {
    Take { whose: u128, coming: Priority },
    TryTake,
    Poll { waiting: Index },
    Leave { waiting: Index },
    GiveBack { place: Index },
}

fn deed() -> impl Strategy<Value = Deed> {
    let index = any::<Index>;
    let coming = prop_oneof![3 => Just(Priority::New), 1 => Just(Priority::Resuming)];
    prop_oneof![
        5 => (0..4_u128, coming).prop_map(|(whose, coming)| Deed::Take { whose, coming }),
        1 => Just(Deed::TryTake),
        3 => index().prop_map(|waiting| Deed::Poll { waiting }),
        2 => index().prop_map(|waiting| Deed::Leave { waiting }),
        4 => index().prop_map(|place| Deed::GiveBack { place }),
    ]
}

/// The plain model: everybody who waits in one list, and the order of turns in another.
#[derive(Default)]
struct Plain {
    free: usize,
    /// Who waits, in the order of arrival: a number, whose child, how it came.
    waiting: Vec<(usize, u128, Priority)>,
    /// Who was given a place and has not heard of it yet.
    given: Vec<usize>,
    turns: Vec<u128>,
}

impl Plain {
    fn take(&mut self, number: usize, whose: u128, coming: Priority) {
        if self.free > 0 {
            self.free -= 1;
            self.given.push(number);
            return;
        }
        self.waiting.push((number, whose, coming));
        self.tidy();
    }

    fn give(&mut self) {
        let first = |wanted: &dyn Fn(&(usize, u128, Priority)) -> bool| {
            self.waiting.iter().position(wanted)
        };
        let back = first(&|(_, _, coming)| *coming == Priority::Resuming);
        let turn = self.turns.first().copied();
        let anew = || first(&|(_, whose, coming)| *coming == Priority::New && Some(*whose) == turn);
        let Some(at) = back.or_else(anew) else {
            self.free += 1;
            return;
        };
        if back.is_none() {
            self.turns.rotate_left(1);
        }
        self.given.push(self.waiting.remove(at).0);
        self.tidy();
    }

    fn leave(&mut self, number: usize) {
        self.waiting.retain(|(waiting, ..)| *waiting != number);
        self.tidy();
        if self.given.contains(&number) {
            self.given.retain(|given| *given != number);
            self.give();
        }
    }

    /// There is a turn for each of whom children wait, and for nobody else.
    fn tidy(&mut self) {
        let anew = self
            .waiting
            .iter()
            .filter(|(_, _, coming)| *coming == Priority::New);
        let whose: Vec<_> = anew.map(|(_, whose, _)| *whose).collect();
        self.turns.retain(|turn| whose.contains(turn));
        for whose in whose {
            if !self.turns.contains(&whose) {
                self.turns.push(whose);
            }
        }
    }
}

/// The same deeds done to both, who must agree after each.
fn agree(limit: usize, deeds: Vec<Deed>) {
    let slots = RunSlots::new(limit);
    let mut plain = Plain {
        free: limit,
        ..Plain::default()
    };
    let mut waiting: Vec<(usize, SlotWaiters)> = Vec::new();
    let mut held: Vec<RunPermit> = Vec::new();
    for (number, deed) in deeds.into_iter().enumerate() {
        match deed {
            Deed::Take { whose, coming } => {
                plain.take(number, whose, coming);
                waiting.push((number, slots.take(agent(whose), coming)));
            }
            Deed::TryTake => {
                let place = slots.try_take();
                assert_eq!(place.is_some(), plain.free > 0);
                plain.free -= usize::from(place.is_some());
                held.extend(place);
            }
            Deed::Poll { waiting: index } if !waiting.is_empty() => {
                let at = index.index(waiting.len());
                let number = waiting[at].0;
                let place = poll(&mut waiting[at].1);
                assert_eq!(place.is_some(), plain.given.contains(&number));
                if place.is_some() {
                    plain.given.retain(|given| *given != number);
                    drop(waiting.remove(at));
                }
                held.extend(place);
            }
            Deed::Leave { waiting: index } if !waiting.is_empty() => {
                let (number, left) = waiting.remove(index.index(waiting.len()));
                plain.leave(number);
                drop(left);
            }
            Deed::GiveBack { place } if !held.is_empty() => {
                plain.give();
                drop(held.remove(place.index(held.len())));
            }
            Deed::Poll { .. } | Deed::Leave { .. } | Deed::GiveBack { .. } => {}
        }
        assert_eq!(slots.room().free, plain.free);
        assert_eq!(
            held.len() + plain.given.len() + plain.free,
            limit,
            "no place is lost or made"
        );
    }
    drop((waiting, held));
    let room = slots.room();
    assert_eq!(
        (room.free, room.back.len(), room.anew.len()),
        (limit, 0, 0),
        "nobody leaves a trace"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn places_do_what_a_plain_queue_does(limit in 1..5_usize, deeds in prop::collection::vec(deed(), 1..80)) {
        agree(limit, deeds);
    }
}

#[test]
fn many_threads_never_have_more_places_than_there_are() {
    const LIMIT: usize = 3;
    let slots = RunSlots::new(LIMIT);
    let (working, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = |thread: usize| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        for round in 0..2_000 {
            let coming = if round % 5 == 0 {
                Priority::Resuming
            } else {
                Priority::New
            };
            let mut waiting = slots.take(agent(thread as u128 % 3), coming);
            // Some look and go away, maybe just as they are given one.
            if round % 3 == thread % 3 && poll(&mut waiting).is_none() {
                continue;
            }
            let place = match waiting.state {
                SlotState::Over => continue,
                _ => runtime.block_on(waiting),
            };
            most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            working.fetch_sub(1, Ordering::SeqCst);
            drop(place);
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || work(thread));
        }
    });
    assert_eq!(slots.room().free, LIMIT);
    assert!(slots.room().anew.is_empty() && slots.room().back.is_empty());
    assert!((1..=LIMIT).contains(&most.into_inner()));
}
