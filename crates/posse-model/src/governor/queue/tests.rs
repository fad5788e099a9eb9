//! Order, starvation and size of the queue.

use std::time::Instant;

use super::*;

fn place(session: &str, team: Option<&str>, subtree: &str, order: u64) -> QueuePlace {
    let lineage = Lineage {
        session: session.to_owned(),
        team: team.map(str::to_owned),
        subtree: subtree.to_owned(),
    };
    QueuePlace::new(&lineage, CallPriority::Usual, false, order, 1000)
}

/// Pushes calls in the given order and returns the order in which they are served.
fn served(places: Vec<QueuePlace>) -> Vec<u64> {
    let mut queue = FairQueue::default();
    for (number, place) in (0..).zip(places) {
        queue.push(Ticket(number), place);
    }
    let mut all = Vec::new();
    while let Some(next) = queue.peek() {
        assert_eq!(queue.pop(), Some(next));
        all.push(next.0);
    }
    assert!(queue.places.is_empty() && queue.usual.members.is_empty());
    all
}

// proves GV-04 (part: subtrees; teams; sessions)
// proves LI-02 (part: served fairly)
#[test]
fn turns_go_round_by_session_then_by_team_and_subtree() {
    let own = |order| place("one", None, "a", order);
    let other = |order| place("two", None, "a", order);
    assert_eq!(
        served(vec![own(0), own(1), own(2), other(3), other(4)]),
        [0, 3, 1, 4, 2]
    );
    let subtree = |name, order| place("one", None, name, order);
    assert_eq!(
        served(vec![
            subtree("a", 0),
            subtree("a", 1),
            subtree("a", 2),
            subtree("b", 3)
        ]),
        [0, 3, 1, 2]
    );
    let member = |name, order| place("one", Some("team"), name, order);
    assert_eq!(
        served(vec![
            member("x", 0),
            member("x", 1),
            member("y", 2),
            subtree("a", 3),
            subtree("a", 4)
        ]),
        [0, 3, 2, 4, 1]
    );
}

// proves GV-04 (part: a person's words)
#[test]
fn a_persons_words_are_first_and_hold_nobody_up_for_ever() {
    let person = |order| QueuePlace {
        priority: CallPriority::Person,
        ..place("one", None, "", order)
    };
    let mut places = vec![place("one", None, "a", 0)];
    places.extend((1..=10).map(person));
    assert_eq!(served(places), [1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 10]);
}

// proves GV-04 (part: cached prefixes)
#[test]
fn cached_prefixes_are_first_in_their_subtree_and_hold_nobody_up_for_ever() {
    let warm = |order| QueuePlace {
        warm: true,
        ..place("one", None, "a", order)
    };
    let cold = |order| place("one", None, "a", order);
    let mut places = vec![cold(0), cold(1)];
    places.extend((2..=8).map(warm));
    assert_eq!(served(places), [2, 3, 4, 0, 5, 6, 7, 1, 8]);
}

#[test]
fn a_pause_saves_up_no_turns_and_a_quick_return_skips_none() {
    let mut queue = FairQueue::default();
    for number in 0..100 {
        queue.push(Ticket(number), place("one", None, "many", number));
    }
    for _ in 0..50 {
        queue.pop();
    }
    // Another one asks again as soon as it is served: it gets every second turn, not each.
    let mut own = 0;
    queue.push(Ticket(1000), place("one", None, "single", 1000));
    for number in 1001..1021 {
        if queue.pop() == Some(Ticket(number - 1 - (number - 1001 - own))) {
            own += 1;
            queue.push(Ticket(1000 + own), place("one", None, "single", 1000 + own));
        }
    }
    assert_eq!(own, 10);
}

#[test]
fn an_endless_stream_of_newcomers_does_not_hold_up_the_others() {
    let mut queue = FairQueue::default();
    queue.push(Ticket(0), place("one", None, "old", 0));
    queue.push(Ticket(1), place("one", None, "old", 1));
    for number in 2..40 {
        queue.push(
            Ticket(number),
            place("one", None, &format!("new {number}"), number),
        );
        if queue.pop() == Some(Ticket(1)) {
            return;
        }
    }
    panic!("the old one starves");
}

// proves GV-07 (part: ten thousand)
#[test]
fn ten_thousand_come_and_go_in_no_time_and_leave_nothing() {
    let began = Instant::now();
    let mut queue = FairQueue::default();
    for round in 0..4 {
        for number in 0..10_000 {
            let subtree = format!("{}", number % 1000);
            let session = format!("{}", number % 7);
            queue.push(Ticket(number), place(&session, None, &subtree, number));
        }
        for number in (0..10_000).step_by(2) {
            assert!(queue.remove(Ticket(number)), "{round}");
        }
        for _ in 0..5_000 {
            queue.pop().unwrap();
        }
    }
    assert!(queue.is_empty() && queue.usual.members.is_empty());
    // A quadratic queue would take minutes.
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}
