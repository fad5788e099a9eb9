//! Promises about sub-agents: their origin, their names, and how they are found.

use posse_port::store::{
    Address, AgentFilter, AgentRecord, AgentState, CallKey, MailFilter, Origin, Page, StateChange,
    Step, Store, StoreError, TakenMail,
};
use posse_protocol::{AgentId, EntryKind, Sender};
use uuid::Uuid;

use super::Open;
use super::words::{
    act, agent, birth, child, create_team, entry, fate, join, name, order, origin, other_realm,
    realm, receipts, send, step,
};

/// The first bytes of the agents that a filter finds.
async fn found(store: &dyn Store, filter: AgentFilter, limit: usize) -> Vec<u8> {
    let first = |session: &AgentRecord| session.agent.uuid().as_bytes()[0];
    store
        .agents(filter, Page::first(limit))
        .await
        .unwrap()
        .iter()
        .map(first)
        .collect()
}

fn to(number: u64) -> Address {
    Address::Agent(agent(number))
}

/// A name belongs to one agent of a realm for ever; a second birth under it leaves nothing behind.
pub async fn a_name_is_given_once(open: Open<'_>) {
    let store = open();
    let elsewhere = |step: Step| Step {
        realm: other_realm(),
        ..step
    };
    store.commit(birth(1)).await.unwrap();
    let ann = child(2, 1, "ann");
    let first = store.commit(ann.clone()).await.unwrap();
    assert_eq!(
        store.commit(ann).await.unwrap(),
        first,
        "the same birth is no second one"
    );
    let killed = Some(StateChange::To(AgentState::Killed));
    store
        .commit(Step {
            state: killed,
            ..step(2, 1)
        })
        .await
        .unwrap();
    // All are called before the first is awaited, so that they share a batch.
    let (again, beside) = (
        store.commit(child(3, 1, "ann")),
        store.commit(child(4, 1, "bob")),
    );
    let (again, beside) = (again.await, beside.await);
    assert!(
        matches!(&again, Err(StoreError::NameTaken { name, by }) if name.as_str() == "ann" && *by == Some(agent(2))),
        "{again:?}"
    );
    assert_eq!(
        (fate(&beside), fate(&store.read(agent(3)).await)),
        ("ok", "not found")
    );
    assert_eq!(
        fate(&store.commit(child(3, 1, "")).await),
        "ok",
        "nothing of it was there"
    );
    assert_eq!(
        fate(&store.commit(child(5, 1, "")).await),
        "ok",
        "many have none"
    );
    store.commit(elsewhere(birth(6))).await.unwrap();
    assert_eq!(
        fate(&store.commit(elsewhere(child(7, 6, "ann"))).await),
        "ok",
        "another realm"
    );
    for parent in [6, 9] {
        let wrong = store.commit(child(8, parent, "zoe")).await;
        assert_eq!(fate(&wrong), "bad step", "no parent here: {parent}");
    }

    let named = |realm, called: &str| AgentFilter {
        realm,
        name: Some(name(called)),
        ..AgentFilter::default()
    };
    for (filter, wanted) in [
        (named(Some(realm()), "ann"), vec![2]),
        (named(Some(realm()), "bob"), vec![4]),
        (named(Some(realm()), "zoe"), vec![]),
        (named(Some(other_realm()), "ann"), vec![7]),
        (named(None, "ann"), vec![2, 7]),
        (
            AgentFilter {
                unfinished: true,
                ..named(Some(realm()), "ann")
            },
            vec![],
        ),
    ] {
        assert_eq!(
            found(store.as_ref(), filter.clone(), 9).await,
            wanted,
            "{filter:?}"
        );
    }
    let sent = receipts(act(store.as_ref(), 4, send(to(2), "x")).await);
    let [mail] = &store
        .mail(realm(), agent(2), MailFilter::default(), Page::first(9))
        .await
        .unwrap()[..]
    else {
        panic!()
    };
    let bob = Sender::Agent {
        id: agent(4),
        name: "bob".into(),
    };
    assert_eq!((sent[0].name.as_str(), &mail.from), ("ann", &bob));
    order(
        store.as_ref(),
        vec![create_team("web", 1), join("web", "smith", 2)],
    )
    .await;
    let sent = receipts(act(store.as_ref(), 3, send(to(2), "x")).await);
    assert_eq!(sent[0].name, "smith", "a team's name comes first");
}

/// A root with children in all states, one with mail, and a grandchild; and another realm with a
/// child.
async fn family(store: &dyn Store) {
    let states = [
        (2, AgentState::Created),
        (3, AgentState::Waiting),
        (4, AgentState::Running),
        (5, AgentState::Completed),
        (6, AgentState::Completed),
        (7, AgentState::Paused),
        (8, AgentState::Failed),
        (9, AgentState::Partial),
        (10, AgentState::Killed),
        (11, AgentState::Idle),
    ];
    let running = Some(StateChange::To(AgentState::Running));
    store
        .commit(Step {
            state: running,
            ..birth(1)
        })
        .await
        .unwrap();
    // The youngest is made first: children are found by their ids.
    for (number, state) in states.into_iter().rev() {
        let born = child(number, 1, "");
        store
            .commit(Step {
                state: Some(StateChange::To(state)),
                ..with_call(born, number)
            })
            .await
            .unwrap();
    }
    store
        .commit(Step {
            state: running,
            ..child(12, 2, "")
        })
        .await
        .unwrap();
    for step in [
        birth(20),
        Step {
            state: running,
            ..child(21, 20, "")
        },
    ] {
        store
            .commit(Step {
                realm: other_realm(),
                ..step
            })
            .await
            .unwrap();
    }
    let sent = order(store, vec![send(to(1), "x"), send(to(6), "x")]).await;
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
}

/// A birth by a call that names its parent.
fn with_call(mut born: Step, number: u64) -> Step {
    if let Some(birth) = &mut born.birth {
        birth.origin = Some(called(number));
    }
    born
}

fn called(number: u64) -> Box<Origin> {
    let call = CallKey {
        seq: u64::MAX - 1,
        ordinal: number as u32,
    };
    Box::new(Origin {
        call,
        call_id: format!("toolu_{number}"),
        ..*origin(1)
    })
}

/// Only sub-agents with an open run or waiting mail are found.
pub async fn the_unfinished_are_found(open: Open<'_>) {
    let store = open();
    family(store.as_ref()).await;
    let here = AgentFilter {
        realm: Some(realm()),
        unfinished: true,
        ..AgentFilter::default()
    };
    assert_eq!(
        found(store.as_ref(), here.clone(), 9).await,
        [12, 2, 3, 4, 6],
        "by path"
    );
    assert_eq!(found(store.as_ref(), here.clone(), 2).await, [12, 2]);
    let all = AgentFilter {
        realm: None,
        ..here.clone()
    };
    assert_eq!(found(store.as_ref(), all, 9).await, [12, 2, 3, 4, 6, 21]);
    let of = |parent| AgentFilter {
        parent: Some(agent(parent)),
        ..here.clone()
    };
    assert_eq!(found(store.as_ref(), of(2), 9).await, [12]);
    assert_eq!(
        found(store.as_ref(), of(20), 9).await,
        [0; 0],
        "of another realm"
    );

    let done = Some(StateChange::UnlessMail(AgentState::Completed));
    store
        .commit(Step {
            state: done,
            ..step(4, 1)
        })
        .await
        .unwrap();
    let mut shows = step(6, 1);
    shows.entries = vec![entry(0, EntryKind::Prompt, "x")];
    shows.mail = vec![TakenMail {
        number: 1,
        entry: 0,
    }];
    store.commit(shows).await.unwrap();
    assert_eq!(found(store.as_ref(), here.clone(), 9).await, [12, 2, 3]);
    drop(store);
    let store = open();
    assert_eq!(
        found(store.as_ref(), here.clone(), 9).await,
        [12, 2, 3],
        "for whoever comes next"
    );
    let held = AgentFilter { held: true, ..here };
    assert_eq!(found(store.as_ref(), held.clone(), 9).await, [0; 0]);
    store.take(agent(3)).await.unwrap();
    assert_eq!(found(store.as_ref(), held, 9).await, [3]);
}

/// The children of an agent are found by age, each with the call that made it.
pub async fn children_are_found_with_their_calls(open: Open<'_>) {
    let store = open();
    family(store.as_ref()).await;
    let of = |realm, parent| AgentFilter {
        realm,
        parent: Some(parent),
        ..AgentFilter::default()
    };
    for home in [None, Some(realm())] {
        let all: Vec<u8> = (2..=11).collect();
        assert_eq!(found(store.as_ref(), of(home, agent(1)), 99).await, all);
        assert_eq!(found(store.as_ref(), of(home, agent(1)), 2).await, [2, 3]);
        assert_eq!(found(store.as_ref(), of(home, agent(2)), 9).await, [12]);
        for nobody in [agent(3), agent(99), AgentId::from(Uuid::nil())] {
            assert_eq!(found(store.as_ref(), of(home, nobody), 9).await, [0; 0]);
        }
    }
    assert_eq!(
        found(store.as_ref(), of(Some(other_realm()), agent(1)), 9).await,
        [0; 0]
    );
    let children = store
        .agents(of(None, agent(1)), Page::first(99))
        .await
        .unwrap();
    for (number, session) in (2..).zip(&children) {
        assert_eq!(session.origin, Some(called(number)));
        assert_eq!(store.read(session.agent).await.unwrap().record, *session);
    }
    assert!(
        store
            .sessions(Default::default(), Page::first(99))
            .await
            .unwrap()
            .iter()
            .all(|root| root.origin.is_none())
    );
}

/// An agent's id ends like that of its realm; a birth under another one is refused, and a repeated
/// one is not.
pub async fn an_id_names_its_realms_bucket(open: Open<'_>) {
    let store = open();
    let mut stray = birth(1);
    stray.agent = AgentId::from(Uuid::from_u128(stray.agent.uuid().as_u128() + 1));
    assert_ne!(stray.agent.bucket(), realm().bucket());
    let agent = stray.agent;
    assert_eq!(fate(&store.commit(stray).await), "bad step");
    let missing = store.read(agent).await;
    assert!(
        matches!(missing, Err(StoreError::NotFound { .. })),
        "{missing:?}"
    );
    let born = birth(1);
    store.commit(born.clone()).await.unwrap();
    store.commit(born).await.unwrap();
}
