//! Promises about the spending of agents.

use posse_port::store::{
    AgentFilter, AgentState, Charge, Done, Op, Order, Page, Refusal, SessionFilter, StateChange,
    Step, Store, SubtreeSpending,
};
use posse_protocol::{Cost, EntryKind, Purpose, ReplyFacts, Usage};
use uuid::Uuid;

use super::Open;
use super::words::{acts, agent, birth, child, entry, fate, realm, step};

/// The charge of a call for the agent's own work.
pub(super) fn charge(model: &str, tokens: u64, pico: Option<u64>) -> Charge {
    let usage = Usage {
        input: tokens,
        output: tokens,
        ..Usage::default()
    };
    let (cost, purpose) = (pico.map(Cost::from_pico_usd), Purpose::Work);
    Charge {
        model: model.into(),
        usage,
        cost,
        purpose,
        missed: tokens,
    }
}

fn of(purpose: Purpose, charge: Charge) -> Charge {
    Charge { purpose, ..charge }
}

/// Charges add up by model and purpose; one without a price makes the total unpriced.
pub async fn charges_add_up(open: Open<'_>) {
    let store = open();
    store.commit(birth(1)).await.unwrap();
    for charges in [
        vec![
            charge("b", 1, Some(10)),
            charge("a", 2, Some(20)),
            charge("b", 3, Some(30)),
        ],
        vec![
            of(Purpose::Memory, charge("b", 1, None)),
            of(Purpose::Compaction, charge("b", 9, Some(90))),
        ],
        vec![charge("b", 4, Some(40)), charge("c", 5, Some(50))],
        vec![
            charge("c", 6, None),
            charge("d", u64::MAX, Some(u64::MAX)),
            charge("d", 1, Some(1)),
        ],
        vec![
            charge("c", 7, Some(70)),
            of(Purpose::Compaction, charge("b", 1, Some(1))),
        ],
    ] {
        store
            .commit(Step {
                charges,
                ..step(1, 1)
            })
            .await
            .unwrap();
    }
    let wanted = [
        charge("a", 2, Some(20)),
        charge("b", 8, Some(80)),
        of(Purpose::Compaction, charge("b", 10, Some(91))),
        of(Purpose::Memory, charge("b", 1, None)),
        charge("c", 18, None),
        charge("d", u64::MAX, Some(u64::MAX)),
    ];
    assert_eq!(store.read(agent(1)).await.unwrap().record.charges, wanted);
    let sessions = store
        .sessions(SessionFilter::default(), Page::first(1))
        .await
        .unwrap();
    assert_eq!(sessions[0].charges, wanted);
}

/// What a session has cost is one sum over its main agent and all below it, whether they work, have
/// ended or have left their team; another session of the same realm is not part of it.
pub async fn a_subtree_has_one_sum(open: Open<'_>) {
    let store = open();
    let born = |step: Step, charges: Vec<Charge>| Step { charges, ..step };
    for step in [
        born(birth(1), vec![charge("b", 1, Some(1))]),
        born(child(2, 1, "ann"), vec![charge("a", 2, Some(2))]),
        born(child(3, 2, ""), vec![charge("b", 4, Some(4))]),
        born(child(4, 3, ""), Vec::new()),
        born(
            child(5, 1, ""),
            vec![
                of(Purpose::Compaction, charge("b", 8, Some(8))),
                charge("c", u64::MAX, Some(u64::MAX)),
            ],
        ),
        born(child(6, 1, ""), vec![charge("c", 1, Some(1))]),
        born(birth(7), vec![charge("a", 32, None)]),
        born(child(8, 7, ""), vec![charge("a", 1, Some(1))]),
    ] {
        store.commit(step).await.unwrap();
    }
    let killed = Some(StateChange::To(AgentState::Killed));
    store
        .commit(Step {
            state: killed,
            ..step(3, 1)
        })
        .await
        .unwrap();
    let subtree = |agents, charges| SubtreeSpending { agents, charges };
    let wanted = [
        subtree(2, vec![charge("a", 33, None)]),
        SubtreeSpending::default(),
        subtree(
            6,
            vec![
                charge("a", 2, Some(2)),
                charge("b", 5, Some(5)),
                of(Purpose::Compaction, charge("b", 8, Some(8))),
                charge("c", u64::MAX, Some(u64::MAX)),
            ],
        ),
        subtree(3, vec![charge("a", 2, Some(2)), charge("b", 4, Some(4))]),
        subtree(1, Vec::new()),
    ];
    let asked = [7, 9, 1, 2, 4].map(agent).to_vec();
    assert_eq!(store.spending(asked).await.unwrap(), wanted);
    assert_eq!(store.spending(Vec::new()).await.unwrap(), []);
}

/// What a step reserves for the model call that it leads to is known until the next entry, while the
/// agent runs: also to others, when its host is gone.
pub async fn a_call_in_flight_is_reserved(open: Open<'_>) {
    let (store, other) = (open(), open());
    let reserved = |pico| Box::new(of(Purpose::InFlight, unmissed(charge("m", 9, pico))));
    let running = Some(StateChange::To(AgentState::Running));
    let with = |seq, kind, reserved| Step {
        entries: vec![entry(seq, kind, "text")],
        reserved,
        ..step(1, 1)
    };
    let known = async || {
        let record = other.read(agent(1)).await.unwrap().record;
        let listed = other
            .agents(AgentFilter::default(), Page::first(9))
            .await
            .unwrap();
        assert_eq!(listed, std::slice::from_ref(&record));
        let spending = other.spending(vec![agent(1)]).await.unwrap();
        let all: Vec<Charge> = record.with_reserved().cloned().collect();
        assert_eq!(spending[0].charges, all);
        record.reserved
    };
    store
        .commit(Step {
            entries: vec![
                entry(0, EntryKind::Prompt, "go"),
                entry(1, EntryKind::Prompt, "now"),
            ],
            reserved: Some(reserved(Some(7))),
            ..birth(1)
        })
        .await
        .unwrap();
    assert_eq!(known().await, None, "it is idle");
    let state = Step {
        state: running,
        ..step(1, 1)
    };
    store.commit(state).await.unwrap();
    assert_eq!(known().await, Some(reserved(Some(7))));
    // Steps without entries leave it as it is.
    let ignored = Step {
        reserved: Some(reserved(Some(1))),
        charges: vec![charge("m", 1, Some(1))],
        ..step(1, 1)
    };
    store.commit(ignored).await.unwrap();
    assert_eq!(known().await, Some(reserved(Some(7))));
    store.commit(with(2, EntryKind::Reply, None)).await.unwrap();
    assert_eq!(known().await, None, "the reply is there");
    store
        .commit(with(3, EntryKind::Results, Some(reserved(None))))
        .await
        .unwrap();
    assert_eq!(known().await, Some(reserved(None)));
    let mut compaction = with(4, EntryKind::Compaction, Some(reserved(Some(3))));
    compaction.entries[0].reply = Some(facts());
    store.commit(compaction).await.unwrap();
    assert_eq!(known().await, Some(reserved(Some(3))));
    let entries = other.read(agent(1)).await.unwrap().entries;
    let replies: Vec<_> = entries.into_iter().map(|it| it.entry.reply).collect();
    assert_eq!(replies, [None, None, None, None, Some(facts())]);
    let taken = store.take(agent(1)).await;
    assert_eq!(fate(&taken), "ok", "its own host may take it");
    assert_eq!(
        taken.unwrap().transcript.record.reserved,
        Some(reserved(Some(3)))
    );
}

fn unmissed(charge: Charge) -> Charge {
    Charge {
        missed: 0,
        ..charge
    }
}

fn facts() -> ReplyFacts {
    ReplyFacts {
        id: "msg_1".into(),
        model: "m".into(),
        stop: None,
        usage: Usage::default(),
        missed: None,
    }
}

/// A call made about an agent is booked with it, even if another host holds it, and changes nothing
/// else of it; an agent cannot book one itself.
pub async fn a_call_about_an_agent_is_booked(open: Open<'_>) {
    let (holder, other) = (open(), open());
    holder.commit(birth(1)).await.unwrap();
    let mut first = step(1, 1);
    first.entries = vec![entry(0, EntryKind::Prompt, "go")];
    first.charges = vec![charge("m", 1, Some(1))];
    holder.commit(first).await.unwrap();
    let before = holder.read(agent(1)).await.unwrap().record;

    let booked = |number: u64, purpose: Purpose| Op::Charge {
        agent: agent(number),
        charge: Box::new(of(purpose, charge("m", 2, Some(3)))),
    };
    let book = async |store: &dyn Store, realm, ops: Vec<Op>| {
        store
            .operate(Order {
                realm,
                ops,
                at_ms: 1_000_000,
            })
            .await
            .unwrap()
    };
    let ops = vec![
        booked(1, Purpose::Question),
        booked(9, Purpose::Question),
        booked(1, Purpose::Work),
    ];
    let nobody = Err(Refusal::NoSuchAgent { agent: agent(9) });
    assert_eq!(
        book(other.as_ref(), realm(), ops).await,
        [Ok(Done::Charged), nobody, Ok(Done::Charged)]
    );
    let elsewhere = book(
        other.as_ref(),
        Uuid::nil().into(),
        vec![booked(1, Purpose::Question)],
    )
    .await;
    assert_eq!(elsewhere, [Err(Refusal::NoSuchAgent { agent: agent(1) })]);

    let after = holder.read(agent(1)).await.unwrap().record;
    let charges = vec![
        charge("m", 3, Some(4)),
        of(Purpose::Question, charge("m", 2, Some(3))),
    ];
    assert_eq!(after.charges, charges);
    assert_eq!(
        posse_port::store::AgentRecord {
            charges: before.charges.clone(),
            ..after
        },
        before
    );
    assert_eq!(
        fate(&holder.commit(step(1, 1)).await),
        "ok",
        "its writer is not disturbed"
    );

    let in_a_step = acts(1, 1, vec![booked(1, Purpose::Question)]);
    assert_eq!(fate(&holder.commit(in_a_step).await), "bad step");
    holder
        .release(agent(1), posse_port::store::Epoch(1))
        .await
        .unwrap();
    let now = book(holder.as_ref(), realm(), vec![booked(1, Purpose::Progress)]).await;
    assert_eq!(now, [Ok(Done::Charged)], "nobody holds it");
    let [found] = &other
        .agents(AgentFilter::default(), Page::first(9))
        .await
        .unwrap()[..]
    else {
        panic!("one")
    };
    let purposes: Vec<_> = found.charges.iter().map(|charge| charge.purpose).collect();
    assert_eq!(
        purposes,
        [Purpose::Work, Purpose::Question, Purpose::Progress]
    );
}
