//! Promises about mail.

use posse_port::store::{
    Address, AgentState, CallKey, Committed, EndedRun, INBOX_BYTES, INBOX_MAILS, MAIL_BYTES,
    MailFilter, Op, Page, Receipt, Refusal, StateChange, Step, Store, TakenMail,
};
use posse_protocol::{AgentId, EntryKind, MailId, MailKind, PermissionMode, RunUsage, Sender};
use uuid::Uuid;

use super::Open;
use super::words::{
    act, acts, agent, birth, child, create_team, entry, fate, join, name, order, other_realm,
    realm, receipts, send, step,
};

fn to(number: u64) -> Address {
    Address::Agent(agent(number))
}

async fn bodies(store: &dyn Store, number: u64, filter: MailFilter) -> Vec<String> {
    let mail = store
        .mail(realm(), agent(number), filter, Page::all())
        .await
        .unwrap();
    mail.into_iter().map(|mail| mail.body).collect()
}

const ALL: MailFilter = MailFilter { waiting: false };
const WAITING: MailFilter = MailFilter { waiting: true };

/// Mail of one sender arrives in order, with its sender, and is there when the agent is taken.
pub async fn mail_keeps_its_order(open: Open<'_>) {
    let store = open();
    for number in 1..=3 {
        store.commit(birth(number)).await.unwrap();
    }
    order(store.as_ref(), vec![create_team("web", 1)]).await;
    for round in 0..10 {
        for sender in 1..=2 {
            let step = acts(
                sender,
                1,
                vec![
                    send(to(3), &format!("{sender}.{round}a")),
                    send(to(3), &format!("{sender}.{round}b")),
                ],
            );
            store.commit(step).await.unwrap();
        }
    }
    let id = MailId::from(Uuid::now_v7());
    let (kind, summary, body) = (
        MailKind::Idle,
        "At\u{0}rest\u{f8ff}0".into(),
        "{}\u{0}".into(),
    );
    let sent = order(
        store.as_ref(),
        vec![Op::Send {
            id,
            to: to(3),
            kind,
            summary,
            body,
        }],
    )
    .await
    .remove(0);
    assert_eq!(
        receipts(sent),
        [Receipt {
            to: agent(3),
            name: "/main".into(),
            kind,
            number: 41,
            held: true
        }]
    );

    let mail = store
        .mail(realm(), agent(3), ALL, Page::first(100))
        .await
        .unwrap();
    assert_eq!(
        mail.iter().map(|mail| mail.number).collect::<Vec<_>>(),
        (1..=41).collect::<Vec<_>>()
    );
    for sender in 1..=2 {
        let called = ["team-lead", "/main"][sender as usize - 1];
        let from = Sender::Agent {
            id: agent(sender),
            name: called.into(),
        };
        let of: Vec<_> = mail
            .iter()
            .filter(|mail| mail.from == from)
            .map(|mail| mail.body.as_str())
            .collect();
        let sent: Vec<_> = (0..10)
            .flat_map(|round| ["a", "b"].map(|half| format!("{sender}.{round}{half}")))
            .collect();
        assert_eq!(of, sent);
    }
    let last = &mail[40];
    assert_eq!(
        (last.id, &last.from, last.kind, last.to),
        (id, &Sender::User, kind, agent(3))
    );
    assert_eq!(
        (last.summary.as_str(), last.body.as_str()),
        ("At\u{0}rest\u{f8ff}0", "{}\u{0}")
    );
    assert_eq!((last.sent_ms, last.shown_in), (10, None));
    let some = store
        .mail(realm(), agent(3), WAITING, Page::after(38, 2))
        .await
        .unwrap();
    assert_eq!(some, mail[38..40]);
    let beyond = store.mail(realm(), agent(3), ALL, Page::after(u64::MAX, 9));
    assert_eq!(beyond.await.unwrap(), []);
    assert_eq!(store.take(agent(3)).await.unwrap().mail, 41);
    store
        .release(agent(3), store.take(agent(3)).await.unwrap().epoch)
        .await
        .unwrap();
    assert!(!receipts(act(store.as_ref(), 1, send(to(3), "later")).await)[0].held);
}

/// An unknown address is refused, and no inbox is made for it.
pub async fn nobody_gets_mail_for_nobody(open: Open<'_>) {
    let store = open();
    store.commit(birth(1)).await.unwrap();
    let elsewhere = Step {
        realm: other_realm(),
        ..birth(2)
    };
    store.commit(elsewhere).await.unwrap();
    order(store.as_ref(), vec![create_team("web", 1)]).await;
    let member = |team: &str, called: &str| Address::Member {
        team: name(team),
        name: name(called),
    };
    for (to, wanted) in [
        (
            to(9),
            Refusal::NoSuchRecipient {
                to: agent(9).to_string(),
            },
        ),
        (
            to(2),
            Refusal::NoSuchRecipient {
                to: agent(2).to_string(),
            },
        ),
        (
            member("web", "bob"),
            Refusal::NoSuchRecipient { to: "bob".into() },
        ),
        (
            member("wep", "bob"),
            Refusal::NoSuchTeam { team: name("wep") },
        ),
        (
            Address::Others { team: name("wep") },
            Refusal::NoSuchTeam { team: name("wep") },
        ),
    ] {
        assert_eq!(act(store.as_ref(), 1, send(to, "hello")).await, Err(wanted));
    }
    for number in [2, 9] {
        assert_eq!(bodies(store.as_ref(), number, ALL).await, [""; 0]);
    }
    // A new member has an inbox before it is born.
    order(store.as_ref(), vec![join("web", "bob", 7)]).await;
    let sent = receipts(act(store.as_ref(), 1, send(member("web", "bob"), "hello")).await);
    assert_eq!(
        sent,
        [Receipt {
            to: agent(7),
            name: "bob".into(),
            kind: MailKind::Text,
            number: 1,
            held: false
        }]
    );
    let id = MailId::from(Uuid::now_v7());
    let (summary, body, all) = (
        String::new(),
        String::new(),
        Address::Others { team: name("web") },
    );
    let ask = Op::Send {
        id,
        to: all.clone(),
        kind: MailKind::ShutdownRequest,
        summary,
        body,
    };
    assert_eq!(act(store.as_ref(), 1, ask).await, Err(Refusal::NotForAll));
    store.commit(birth(7)).await.unwrap();
    assert_eq!(store.take(agent(7)).await.unwrap().mail, 1);
    let sent = receipts(act(store.as_ref(), 1, send(all.clone(), "all")).await);
    assert_eq!(
        sent,
        [Receipt {
            to: agent(7),
            name: "bob".into(),
            kind: MailKind::Text,
            number: 2,
            held: true
        }]
    );
    let sent = receipts(
        order(store.as_ref(), vec![send(all, "all")])
            .await
            .remove(0),
    );
    assert_eq!(
        sent.iter()
            .map(|sent| sent.name.as_str())
            .collect::<Vec<_>>(),
        ["bob", "team-lead"]
    );
}

/// A full inbox refuses; then a message to all reaches nobody.
pub async fn an_inbox_has_room_for_so_much(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    for number in 1..=3 {
        store.commit(birth(number)).await.unwrap();
    }
    order(
        store,
        vec![
            create_team("web", 1),
            join("web", "ann", 2),
            join("web", "zoe", 3),
        ],
    )
    .await;
    let full = order(store, (0..=INBOX_MAILS).map(|_| send(to(3), "x")).collect())
        .await
        .pop();
    assert_eq!(
        full,
        Some(Err(Refusal::InboxFull {
            name: "zoe".into(),
            waiting: INBOX_MAILS
        }))
    );
    let refused = act(store, 1, send(Address::Others { team: name("web") }, "x")).await;
    assert_eq!(
        refused,
        Err(Refusal::InboxFull {
            name: "zoe".into(),
            waiting: INBOX_MAILS
        })
    );
    assert_eq!(bodies(store, 2, ALL).await, [""; 0]);
    let mut taking = step(3, 1);
    taking.entries = vec![entry(0, EntryKind::Prompt, "mail")];
    taking.mail = vec![TakenMail {
        number: 5,
        entry: 0,
    }];
    store.commit(taking).await.unwrap();
    assert_eq!(
        act(store, 1, send(Address::Others { team: name("web") }, "x"))
            .await
            .map(drop),
        Ok(())
    );

    let long = "y".repeat(MAIL_BYTES);
    let most = INBOX_BYTES / MAIL_BYTES as u64;
    let mut sent = order(store, (0..most).map(|_| send(to(1), &long)).collect()).await;
    sent.extend(order(store, vec![send(to(1), "")]).await);
    assert!(sent.iter().all(Result::is_ok), "to the last byte");
    let full = Refusal::InboxFull {
        name: "team-lead".into(),
        waiting: most + 1,
    };
    assert_eq!(order(store, vec![send(to(1), "z")]).await, [Err(full)]);
    let (bytes, most) = (MAIL_BYTES + 1, MAIL_BYTES);
    assert_eq!(
        order(store, vec![send(to(2), &format!("{long}z"))]).await,
        [Err(Refusal::TooLong { bytes, most })]
    );

    // The end of a run is reported even to a full inbox, full by count or by bytes.
    let told = |number, body: &str| {
        let (id, summary) = (Uuid::now_v7().into(), String::new());
        Op::Send {
            id,
            to: to(number),
            kind: MailKind::Notification,
            summary,
            body: body.into(),
        }
    };
    for number in [1, 3] {
        let waiting = bodies(store, number, WAITING).await.len() as u64;
        let results = order(store, vec![told(number, &long), send(to(number), "z")]).await;
        assert!(results[0].is_ok(), "{results:?}");
        let full = |waiting| matches!(&results[1], Err(Refusal::InboxFull { waiting: told, .. }) if *told == waiting);
        assert!(full(waiting + 1), "{results:?}");
    }
    let refused = order(store, vec![told(3, &format!("{long}z")), told(9, "x")]).await;
    let nobody = Refusal::NoSuchRecipient {
        to: agent(9).to_string(),
    };
    assert_eq!(
        refused,
        [Err(Refusal::TooLong { bytes, most }), Err(nobody)]
    );
}

/// Mail is taken by an entry of the step that shows it, and never again.
pub async fn mail_is_taken_once(open: Open<'_>) {
    let store = open();
    store.commit(birth(1)).await.unwrap();
    order(
        store.as_ref(),
        ["a", "b", "c"].map(|body| send(to(1), body)).into(),
    )
    .await;
    let taking = |seq, taken: &[(u64, u64)]| {
        let mut taking = step(1, 1);
        taking.entries = vec![entry(seq, EntryKind::Prompt, "mail")];
        taking.mail = taken
            .iter()
            .map(|(number, entry)| TakenMail {
                number: *number,
                entry: *entry,
            })
            .collect();
        taking
    };
    for (wrong, why) in [
        (taking(0, &[(1, 1)]), "no entry of the step"),
        (taking(0, &[(4, 0)]), "no such mail"),
        (taking(0, &[(1, 0), (1, 0)]), "twice"),
        (
            Step {
                entries: vec![],
                ..taking(0, &[(1, 0)])
            },
            "no entry at all",
        ),
    ] {
        assert_eq!(fate(&store.commit(wrong).await), "bad step", "{why}");
    }
    assert_eq!(bodies(store.as_ref(), 1, WAITING).await, ["a", "b", "c"]);
    store.commit(taking(0, &[(3, 0), (1, 0)])).await.unwrap();
    assert_eq!(
        fate(&store.commit(taking(1, &[(1, 1)])).await),
        "bad step",
        "it was taken before"
    );
    assert_eq!(bodies(store.as_ref(), 1, WAITING).await, ["b"]);
    let taken = store.take(agent(1)).await.unwrap();
    assert_eq!((taken.mail, taken.transcript.entries.len()), (1, 1));
    drop(store);
    let mail = open()
        .mail(realm(), agent(1), ALL, Page::first(9))
        .await
        .unwrap();
    assert_eq!(
        mail.iter().map(|mail| mail.shown_in).collect::<Vec<_>>(),
        [Some(0), None, Some(0)]
    );
}

/// An agent that ends unless mail waits does not end while mail waits: its state, the run's result
/// and operations are left out, and the rest is committed.
pub async fn no_end_while_mail_waits(open: Open<'_>) {
    let store = open();
    let running = Some(StateChange::To(AgentState::Running));
    let ended = Box::new(EndedRun {
        text: None,
        mail: 0,
        run: Uuid::from_u128(7),
        error: Some("no money".into()),
        by_person: false,
        usage: RunUsage {
            total_tokens: u64::MAX,
            tool_uses: 2,
            duration_ms: 3,
        },
        value: None,
        worktree: None,
    });
    // Its last messages, to its starter and to itself.
    let ends = |step: Step| {
        let ops = vec![send(to(1), "done"), send(to(2), "to myself")];
        let (state, operations) = (
            StateChange::UnlessMail(AgentState::Completed),
            acts(2, 1, ops).operations,
        );
        Step {
            state: Some(state),
            ended: Some(ended.clone()),
            operations,
            ..step
        }
    };
    let is = async || {
        let session = store.read(agent(2)).await.unwrap().record;
        (session.state, session.ended, session.mode, session.starter)
    };
    store.commit(birth(1)).await.unwrap();
    store
        .commit(Step {
            state: running,
            ..child(2, 1, "")
        })
        .await
        .unwrap();
    order(store.as_ref(), vec![send(to(2), "a"), send(to(2), "b")]).await;
    let mut once = ends(step(2, 1));
    once.entries = vec![
        entry(0, EntryKind::Prompt, "a"),
        entry(1, EntryKind::Reply, "done"),
    ];
    once.mail = vec![TakenMail {
        number: 1,
        entry: 0,
    }];
    (once.mode, once.starter) = (Some(PermissionMode::Plan), Some(agent(1)));
    let call = CallKey { seq: 9, ordinal: 9 };
    once.operations[0].call = Some(call);
    for _ in 0..2 {
        let committed = store.commit(once.clone()).await.unwrap();
        assert_eq!(
            committed,
            Committed {
                results: Vec::new(),
                mail_waits: true
            }
        );
        assert_eq!(
            is().await,
            (
                AgentState::Running,
                None,
                PermissionMode::Plan,
                Some(agent(1))
            )
        );
    }
    assert_eq!(store.read(agent(2)).await.unwrap().entries.len(), 2);
    assert_eq!(bodies(store.as_ref(), 1, ALL).await, [""; 0]);
    assert_eq!(bodies(store.as_ref(), 2, WAITING).await, ["b"]);

    let mut last = ends(step(2, 1));
    last.entries = vec![entry(2, EntryKind::Prompt, "b")];
    last.mail = vec![TakenMail {
        number: 2,
        entry: 2,
    }];
    for _ in 0..2 {
        let committed = store.commit(last.clone()).await.unwrap();
        assert_eq!((committed.mail_waits, committed.results.len()), (false, 2));
    }
    let (plan, starter) = (PermissionMode::Plan, Some(agent(1)));
    assert_eq!(
        is().await,
        (AgentState::Completed, Some(ended.clone()), plan, starter)
    );
    assert_eq!(bodies(store.as_ref(), 1, ALL).await, ["done"]);
    assert_eq!(
        bodies(store.as_ref(), 2, WAITING).await,
        ["to myself"],
        "what it sends is no reason to stay"
    );
    let taken = store.take(agent(2)).await.unwrap();
    let session = taken.transcript.record;
    assert_eq!(
        (session.ended, session.starter),
        (Some(ended.clone()), starter)
    );

    store
        .commit(Step {
            mode: Some(plan),
            ..step(2, taken.epoch.0)
        })
        .await
        .unwrap();
    assert_eq!(is().await.1, Some(ended.clone()), "it goes with the state");
    store
        .commit(Step {
            state: running,
            ..step(2, taken.epoch.0)
        })
        .await
        .unwrap();
    assert_eq!(is().await, (AgentState::Running, None, plan, starter));
    for state in [
        None,
        running,
        Some(StateChange::UnlessMail(AgentState::Waiting)),
    ] {
        let wrong = Step {
            state,
            ended: Some(ended.clone()),
            ..step(2, taken.epoch.0)
        };
        assert_eq!(fate(&store.commit(wrong).await), "bad step", "{state:?}");
    }
    for stranger in [agent(9), elsewhere(store.as_ref()).await] {
        let wrong = Step {
            starter: Some(stranger),
            ..step(2, taken.epoch.0)
        };
        assert_eq!(fate(&store.commit(wrong).await), "bad step", "{stranger}");
    }
}

/// An agent of another realm.
async fn elsewhere(store: &dyn Store) -> AgentId {
    store
        .commit(Step {
            realm: other_realm(),
            ..birth(3)
        })
        .await
        .unwrap();
    agent(3)
}
