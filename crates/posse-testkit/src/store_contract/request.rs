//! Promises about requests, and about signals with restricted senders.

use posse_port::store::{
    Address, AgentState, Done, INBOX_MAILS, MAIL_BYTES, MailFilter, Op, OpResult, OpenRequest,
    Page, Receipt, Refusal, StateChange, Step, Store, Wake,
};
use posse_protocol::{Mail, MailId, MailKind, Request, RequestKind, Response, Sender};
use uuid::Uuid;

use super::Open;
use super::words::{
    act, agent, answer, ask, birth, child, create_team, join, name, order, realm, send, step,
};

fn id(number: u64) -> MailId {
    Uuid::from_u128(u128::from(number)).into()
}

fn member(called: &str) -> Address {
    Address::Member {
        team: name("web"),
        name: name(called),
    }
}

fn shutdown(number: u64, to: Address) -> Op {
    ask(id(number), to, "enough", false)
}

fn plan(number: u64, to: Address) -> Op {
    ask(id(number), to, "first this, then that", true)
}

fn signal(kind: MailKind, to: Address) -> Op {
    Op::Send {
        id: Uuid::now_v7().into(),
        to,
        kind,
        summary: String::new(),
        body: "now".into(),
    }
}

fn not_yours(name: &str) -> OpResult {
    Err(Refusal::NotYours { name: name.into() })
}

fn not_open(number: u64) -> OpResult {
    Err(Refusal::NotOpen {
        request: id(number),
    })
}

async fn mail_of(store: &dyn Store, number: u64) -> Vec<Mail> {
    let all = MailFilter { waiting: false };
    store
        .mail(realm(), agent(number), all, Page::all())
        .await
        .unwrap()
}

async fn open_ids(store: &dyn Store, of: Option<u64>) -> Vec<MailId> {
    let open = store
        .requests(realm(), of.map(agent), Page::all())
        .await
        .unwrap();
    open.into_iter().map(|open| open.id).collect()
}

/// A lead, `ann` that it made, and `bob` that it did not; all of one host.
async fn crew(store: &dyn Store) {
    store.commit(birth(1)).await.unwrap();
    store.commit(child(2, 1, "")).await.unwrap();
    store.commit(birth(3)).await.unwrap();
    let done = order(
        store,
        vec![
            create_team("web", 1),
            join("web", "ann", 2),
            join("web", "bob", 3),
        ],
    )
    .await;
    assert!(done.iter().all(Result::is_ok), "{done:?}");
}

/// A request is open until the agent that was asked answers it, once; both go by mail.
pub async fn a_request_is_answered_once(open: Open<'_>) {
    let (store, second) = (open(), open());
    let store = store.as_ref();
    crew(store).await;
    let receipt = |kind, to: u64, called: &str, number| Receipt {
        to: agent(to),
        name: called.into(),
        kind,
        number,
        held: true,
    };
    let ended = MailKind::ShutdownResponse;
    let asked = Ok(Done::Requested {
        request: id(1),
        receipt: receipt(MailKind::ShutdownRequest, 2, "ann", 1),
    });
    assert_eq!(act(store, 1, shutdown(1, member("ann"))).await, asked);
    super::wake::told(store, &Wake::Mail(agent(2))).await;
    let [mail] = &mail_of(store, 2).await[..] else {
        panic!("one mail")
    };
    assert_eq!(
        (mail.id, mail.kind, mail.from.name()),
        (id(1), MailKind::ShutdownRequest, "team-lead")
    );
    let body: Request = serde_json::from_str(&mail.body).unwrap();
    assert_eq!(
        body,
        Request {
            request_id: id(1),
            text: "enough".into()
        }
    );
    let wanted = OpenRequest {
        id: id(1),
        kind: RequestKind::Shutdown,
        from: Sender::Agent {
            id: agent(1),
            name: "team-lead".into(),
        },
        to: agent(2),
        text: "enough".into(),
        asked_ms: 10,
    };
    for of in [Some(agent(1)), Some(agent(2)), None] {
        assert_eq!(
            second.requests(realm(), of, Page::all()).await.unwrap(),
            std::slice::from_ref(&wanted)
        );
    }
    assert_eq!(open_ids(store, Some(3)).await, []);
    assert_eq!(
        second
            .requests(Uuid::now_v7().into(), None, Page::all())
            .await
            .unwrap(),
        []
    );

    // A repeated request, even by another requester, is the same one without a second mail.
    assert_eq!(act(store, 1, shutdown(2, member("ann"))).await, asked);
    assert_eq!(
        order(store, vec![shutdown(3, Address::Agent(agent(2)))]).await,
        [asked]
    );
    assert_eq!(mail_of(store, 2).await.len(), 1);

    let no = |request, number| super::words::answer(id(request), number, false);
    for (number, op) in [
        (3, no(1, 7)),
        (1, no(1, 7)),
        (2, no(9, 7)),
        (2, answer(id(1), 7, true)),
    ] {
        let Op::Respond { request, .. } = op else {
            panic!("no answer")
        };
        assert_eq!(
            act(store, number, op).await,
            Err(Refusal::NotOpen { request }),
            "{number}"
        );
    }
    let op = Op::Respond {
        id: id(7),
        request: id(1),
        kind: RequestKind::Shutdown,
        approve: false,
        text: "not done yet".into(),
    };
    assert_eq!(
        act(store, 2, op.clone()).await,
        Ok(Done::Responded(receipt(ended, 1, "team-lead", 1)))
    );
    super::wake::told(store, &Wake::Mail(agent(1))).await;
    assert_eq!(act(store, 2, op).await, not_open(1), "once");
    let [mail] = &mail_of(store, 1).await[..] else {
        panic!("one mail")
    };
    assert_eq!(
        (mail.id, mail.kind, mail.from.name()),
        (id(7), MailKind::ShutdownResponse, "ann")
    );
    let body: Response = serde_json::from_str(&mail.body).unwrap();
    assert_eq!(
        body,
        Response {
            request_id: id(1),
            approve: false,
            text: "not done yet".into()
        }
    );
    assert_eq!(open_ids(store, None).await, []);

    // A person answers in place of the lead.
    act(store, 3, plan(5, member("team-lead"))).await.unwrap();
    assert_eq!(
        order(store, vec![answer(id(5), 9, true)]).await,
        [Ok(Done::Responded(receipt(
            MailKind::PlanApprovalResponse,
            3,
            "bob",
            1
        )))]
    );
    let last = mail_of(store, 3).await.pop().unwrap();
    assert_eq!(
        (last.kind, last.from),
        (MailKind::PlanApprovalResponse, Sender::User)
    );
    // The answer to a person's request goes to the lead; but only the member itself can agree to
    // end.
    order(store, vec![shutdown(4, member("bob"))])
        .await
        .remove(0)
        .unwrap();
    assert_eq!(mail_of(store, 3).await[1].from, Sender::User);
    let yes = Op::Respond {
        id: id(8),
        request: id(4),
        kind: RequestKind::Shutdown,
        approve: true,
        text: String::new(),
    };
    assert_eq!(order(store, vec![yes.clone()]).await, [not_open(4)]);
    assert_eq!(
        act(store, 3, yes).await,
        Ok(Done::Responded(receipt(ended, 1, "team-lead", 3)))
    );
    // A member that agrees has left the team.
    let team = store
        .teams(Some(realm()), Page::first(9))
        .await
        .unwrap()
        .remove(0);
    let names: Vec<&str> = team
        .members
        .iter()
        .map(|member| member.name.as_str())
        .collect();
    assert_eq!(
        (names, team.former),
        (vec!["team-lead", "ann"], vec![name("bob")])
    );
}

/// Only an agent above another may ask it to end, and plans are for the lead.
pub async fn requests_are_made_by_who_may(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    crew(store).await;
    let all = || Address::Others { team: name("web") };
    let lead = || member("team-lead");
    let is_lead = Err(Refusal::IsLead {
        name: name("team-lead"),
    });
    for (number, op, wanted) in [
        (2, shutdown(1, member("bob")), not_yours("bob")),
        (3, shutdown(1, Address::Agent(agent(2))), not_yours("ann")),
        (1, shutdown(1, lead()), is_lead),
        (1, shutdown(1, all()), Err(Refusal::NotForAll)),
        (
            1,
            shutdown(1, member("eve")),
            Err(Refusal::NoSuchRecipient { to: "eve".into() }),
        ),
        (1, plan(1, all()), Err(Refusal::NotForAll)),
        (
            2,
            plan(1, member("bob")),
            Err(Refusal::NotLead { team: name("web") }),
        ),
        (2, plan(1, Address::Agent(agent(3))), not_yours("bob")),
    ] {
        assert_eq!(act(store, number, op.clone()).await, wanted, "{op:?}");
    }
    assert_eq!(
        order(store, vec![plan(1, lead())]).await,
        [not_yours("team-lead")],
        "a person has no plans"
    );
    let long = |approve| {
        let text = "x".repeat(MAIL_BYTES);
        match approve {
            None => Op::Request {
                id: id(1),
                to: lead(),
                kind: RequestKind::Plan,
                text,
            },
            Some(approve) => Op::Respond {
                id: id(2),
                request: id(3),
                kind: RequestKind::Plan,
                approve,
                text,
            },
        }
    };
    act(store, 2, plan(3, Address::Agent(agent(1))))
        .await
        .unwrap();
    for (number, op) in [(2, long(None)), (1, long(Some(true)))] {
        let refused = act(store, number, op).await;
        assert!(
            matches!(
                refused,
                Err(Refusal::TooLong {
                    most: MAIL_BYTES,
                    ..
                })
            ),
            "{refused:?}"
        );
    }
    // An answer without room leaves the request open.
    order(
        store,
        (0..INBOX_MAILS)
            .map(|_| send(Address::Agent(agent(2)), "x"))
            .collect(),
    )
    .await;
    let full = Err(Refusal::InboxFull {
        name: "ann".into(),
        waiting: INBOX_MAILS,
    });
    assert_eq!(act(store, 1, answer(id(3), 4, true)).await, full);
    assert_eq!(open_ids(store, None).await, [id(3)]);
    // Only agents above may send signals; a dismissal has room in any inbox.
    use MailKind::{Dismissal, Interruption};
    for kind in [Interruption, Dismissal] {
        assert_eq!(
            act(store, 2, signal(kind, member("bob"))).await,
            not_yours("bob")
        );
        assert_eq!(
            act(store, 3, signal(kind, Address::Agent(agent(1)))).await,
            not_yours("team-lead")
        );
        assert_eq!(
            act(store, 1, signal(kind, all())).await,
            Err(Refusal::NotForAll)
        );
        act(store, 1, signal(kind, member("bob"))).await.unwrap();
        order(store, vec![signal(kind, Address::Agent(agent(1)))])
            .await
            .remove(0)
            .unwrap();
    }
    for kind in [Interruption, Dismissal] {
        act(store, 1, signal(kind, member("ann"))).await.unwrap();
        let long = Op::Send {
            id: id(1),
            to: member("ann"),
            kind,
            summary: String::new(),
            body: "x".repeat(MAIL_BYTES + 1),
        };
        let refused = act(store, 1, long).await;
        assert!(
            matches!(
                refused,
                Err(Refusal::TooLong {
                    most: MAIL_BYTES,
                    ..
                })
            ),
            "{refused:?}"
        );
    }
    act(store, 3, signal(MailKind::Idle, member("ann")))
        .await
        .unwrap();
    assert_eq!(
        act(store, 1, send(member("ann"), "x")).await,
        Err(Refusal::InboxFull {
            name: "ann".into(),
            waiting: INBOX_MAILS + 3
        })
    );
    let typed = [
        MailKind::ShutdownRequest,
        MailKind::ShutdownResponse,
        MailKind::PlanApprovalRequest,
        MailKind::PlanApprovalResponse,
    ];
    for kind in typed {
        assert_eq!(
            act(store, 1, signal(kind, member("bob"))).await,
            not_yours("bob"),
            "{kind:?}"
        );
        assert_eq!(
            order(store, vec![signal(kind, member("bob"))]).await,
            [not_yours("bob")],
            "{kind:?}"
        );
    }
    // The maker of an agent is above it, even without a team.
    order(
        store,
        vec![Op::Leave {
            team: name("web"),
            name: name("ann"),
        }],
    )
    .await
    .remove(0)
    .unwrap();
    act(store, 1, signal(Dismissal, Address::Agent(agent(2))))
        .await
        .unwrap();
    assert_eq!(
        act(store, 1, shutdown(6, Address::Agent(agent(2)))).await,
        not_yours("/main/2")
    );
}

/// No agent asks itself: the lead's plan goes to the first member.
pub async fn nobody_asks_itself(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    crew(store).await;
    let lead = || member("team-lead");
    assert_eq!(
        act(store, 1, plan(1, lead())).await,
        not_yours("team-lead"),
        "nobody else has led"
    );
    order(
        store,
        vec![Op::HandOver {
            team: name("web"),
            to: name("ann"),
        }],
    )
    .await
    .remove(0)
    .unwrap();
    for (number, to) in [(2, lead()), (3, Address::Agent(agent(2)))] {
        let asked = act(store, 2, plan(number, to)).await;
        let Ok(Done::Requested { receipt, .. }) = asked else {
            panic!("{asked:?}")
        };
        assert_eq!((receipt.to, receipt.name.as_str()), (agent(1), "main"));
    }
    assert_eq!(mail_of(store, 1).await.len(), 2);
    assert_eq!(mail_of(store, 2).await, []);
    assert_eq!(
        act(store, 2, answer(id(2), 7, true)).await,
        not_open(2),
        "nobody answers itself"
    );
    act(store, 1, answer(id(2), 7, true)).await.unwrap();
    assert_eq!(
        mail_of(store, 2).await.pop().unwrap().kind,
        MailKind::PlanApprovalResponse
    );
    // Leading one of its teams does not put an agent above itself.
    order(store, vec![create_team("ops", 3)])
        .await
        .remove(0)
        .unwrap();
    assert_eq!(
        act(store, 3, shutdown(4, member("bob"))).await,
        not_yours("bob")
    );
}

/// Requests end with the agent they are about, and with the team.
pub async fn requests_end_with_who_they_are_about(open: Open<'_>) {
    let (first, second) = (open(), open());
    let store = first.as_ref();
    crew(store).await;
    let ask_all = async || {
        act(store, 1, shutdown(1, member("ann"))).await.unwrap();
        act(store, 2, plan(2, member("team-lead"))).await.unwrap();
        act(store, 1, shutdown(3, member("bob"))).await.unwrap();
        act(store, 3, plan(4, member("team-lead"))).await.unwrap();
        assert_eq!(open_ids(store, None).await, [1, 2, 3, 4].map(id));
    };
    ask_all().await;
    let to = |state| Step {
        state: Some(StateChange::To(state)),
        ..step(2, 1)
    };
    store.commit(to(AgentState::Idle)).await.unwrap();
    assert_eq!(
        open_ids(store, None).await.len(),
        4,
        "who is idle can still answer"
    );
    store.commit(to(AgentState::Completed)).await.unwrap();
    assert_eq!(open_ids(store, None).await, [3, 4].map(id));
    // A lead that has ended can be revived: what it was asked waits for it.
    store
        .commit(Step {
            agent: agent(1),
            ..to(AgentState::Failed)
        })
        .await
        .unwrap();
    assert_eq!(open_ids(store, None).await, [3, 4].map(id));
    order(
        store,
        vec![Op::Leave {
            team: name("web"),
            name: name("bob"),
        }],
    )
    .await
    .remove(0)
    .unwrap();
    assert_eq!(open_ids(store, None).await, []);
    assert_eq!(act(store, 3, answer(id(3), 9, true)).await, not_open(3));

    order(store, vec![join("web", "bob", 3)]).await;
    store.commit(to(AgentState::Running)).await.unwrap();
    let bob = Address::Agent(agent(3));
    act(store, 1, shutdown(5, bob)).await.unwrap();
    act(store, 2, plan(6, member("team-lead"))).await.unwrap();
    for number in 2..=3 {
        store
            .commit(Step {
                agent: agent(number),
                ..to(AgentState::Killed)
            })
            .await
            .unwrap();
    }
    store.commit(to(AgentState::Idle)).await.unwrap();
    act(store, 2, plan(7, member("team-lead"))).await.unwrap();
    assert_eq!(open_ids(store, None).await, [id(7)]);
    // They outlive the hosts.
    drop(first);
    assert_eq!(open_ids(second.as_ref(), None).await, [id(7)]);
    order(second.as_ref(), vec![Op::DeleteTeam { team: name("web") }])
        .await
        .remove(0)
        .unwrap();
    assert_eq!(open_ids(second.as_ref(), None).await, []);
}
