//! Concurrent steps of many agents: an engine may write them together, without a visible
//! difference.

use posse_port::store::{Epoch, Step, Store};
use posse_protocol::EntryKind;

use super::charge::charge;
use super::{Open, agent, asked, birth, call, entry, fate, step};

const AGENTS: u64 = 24;

/// The step of an agent in a round: a reply with a call, and its usage.
fn reply(number: u64, round: u64) -> Step {
    let mut reply = step(number, 1);
    reply.at_ms = (100 + round).cast_signed();
    reply.entries = vec![
        entry(2 * round, EntryKind::Reply, &format!("reply {round}")),
        entry(2 * round + 1, EntryKind::Results, "results"),
    ];
    reply.calls = vec![
        call(2 * round, 0, asked("toolu_1")),
        call(2 * round, 1, asked("toolu_2")),
    ];
    reply.charges = vec![charge("m", round + 1, (round != 1).then_some(7))];
    reply
}

/// Everything of an agent, without its name and number.
async fn shown(store: &dyn Store, number: u64) -> String {
    let read = store.read(agent(number)).await.unwrap();
    let session = &read.record;
    let entries: Vec<_> = read
        .entries
        .iter()
        .map(|stored| (stored.at_ms, &stored.entry))
        .collect();
    let shown = (
        entries,
        &read.open_calls,
        &session.charges,
        session.used_ms,
        session.state,
        session.entries,
    );
    format!("{shown:?}")
}

/// Steps that are written together have the same effect as alone; each is refused on its own.
pub async fn steps_that_share_a_batch_are_what_they_are_alone(open: Open<'_>) {
    let store = open();
    for number in 1..=AGENTS {
        store.commit(birth(number)).await.unwrap();
    }
    for round in 0..3 {
        // Awaits each step of one agent; the steps of the others are all called before one is
        // awaited.
        store.commit(reply(1, round)).await.unwrap();
        let commits: Vec<_> = (2..=AGENTS)
            .map(|number| store.commit(reply(number, round)))
            .collect();
        for (number, commit) in (2..).zip(commits) {
            assert_eq!(fate(&commit.await), "ok", "agent {number}");
        }
    }
    let alone = shown(store.as_ref(), 1).await;
    for number in 2..=AGENTS {
        assert_eq!(shown(store.as_ref(), number).await, alone, "agent {number}");
    }
    assert_eq!(store.take(agent(3)).await.unwrap().epoch, Epoch(2));
    let wrong = |number: u64| {
        let mut step = reply(number, 3);
        match number {
            // A missing first entry; a call requested twice; an overflow of the sum of tokens.
            5 => drop(step.entries.remove(0)),
            7 => step.calls[1].key.ordinal = 0,
            9 => step.charges = vec![charge("m", u64::MAX, None)],
            _ => {}
        }
        step
    };
    for again in ["first", "again"] {
        let commits: Vec<_> = (2..=AGENTS)
            .map(|number| store.commit(wrong(number)))
            .collect();
        for (number, commit) in (2..).zip(commits) {
            let wanted = match (number, again) {
                (3, _) => "fenced",
                (5 | 7, _) => "bad step",
                // It is already there, under another id.
                (_, "again") => "bad step",
                _ => "ok",
            };
            assert_eq!(fate(&commit.await), wanted, "agent {number}, {again}");
        }
    }
    for number in [3, 5, 7] {
        assert_eq!(
            store.read(agent(number)).await.unwrap().entries.len(),
            6,
            "agent {number}"
        );
    }
    store.commit(reply(1, 3)).await.unwrap();
    let alone = shown(store.as_ref(), 1).await;
    assert_eq!(shown(store.as_ref(), 24).await, alone);
    let charges = store.read(agent(9)).await.unwrap().record.charges;
    assert_eq!(
        (charges[0].usage.input, charges[0].missed),
        (u64::MAX, u64::MAX)
    );
    let later = store
        .commit(Step {
            entries: Vec::new(),
            calls: Vec::new(),
            ..reply(9, 4)
        })
        .await;
    assert_eq!(fate(&later), "ok");
    assert_eq!(
        store.read(agent(9)).await.unwrap().record.charges[0]
            .usage
            .input,
        u64::MAX
    );
}
