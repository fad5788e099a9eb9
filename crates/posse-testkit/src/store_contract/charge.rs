//! Promises about the spending of agents.

use posse_port::store::{
    AgentFilter, Charge, Done, Op, Order, Refusal, SessionFilter, Step, Store,
};
use posse_protocol::{Cost, EntryKind, Purpose, Usage};
use uuid::Uuid;

use super::Open;
use super::words::{acts, agent, birth, entry, fate, realm, step};

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
    let sessions = store.sessions(SessionFilter::default(), 1).await.unwrap();
    assert_eq!(sessions[0].charges, wanted);
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
    let [found] = &other.agents(AgentFilter::default(), 9).await.unwrap()[..] else {
        panic!("one")
    };
    let purposes: Vec<_> = found.charges.iter().map(|charge| charge.purpose).collect();
    assert_eq!(
        purposes,
        [Purpose::Work, Purpose::Question, Purpose::Progress]
    );
}
