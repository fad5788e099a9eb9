//! Promises about team members: names, colours, states, and the lead.

use std::collections::BTreeSet;

use posse_port::store::{
    Address, AgentState, Done, Epoch, Greeting, MAIL_BYTES, MailFilter, Op, OpResult, Page,
    Receipt, Refusal, StateChange, Step, Store, StoreError, TaskChange, TaskFilter,
};
use posse_protocol::{
    Mail, MailKind, Member, MemberState, Name, Request, Sender, TaskId, TaskStatus, Team,
};
use uuid::Uuid;

use super::Open;
use super::words::{
    act, acts, agent, ask, birth, child, claim, create, create_team, join, joining, list, name,
    order, realm, receipts, send, step, update,
};

const ALL: MailFilter = MailFilter { waiting: false };

fn leave(called: &str) -> Op {
    Op::Leave {
        team: name("web"),
        name: name(called),
    }
}

fn hand_over(to: &str) -> Op {
    Op::HandOver {
        team: name("web"),
        to: name(to),
    }
}

fn member(called: &str) -> Address {
    Address::Member {
        team: name("web"),
        name: name(called),
    }
}

fn joined(result: OpResult) -> (String, String) {
    match result {
        Ok(Done::Joined { name, color }) => (name.to_string(), color),
        other => panic!("not joined: {other:?}"),
    }
}

async fn team(store: &dyn Store) -> Team {
    let mut teams = store.teams(Some(realm()), Page::first(9)).await.unwrap();
    teams.retain(|team| team.name == name("web"));
    teams.remove(0)
}

async fn names(store: &dyn Store) -> Vec<String> {
    team(store)
        .await
        .members
        .iter()
        .map(|member| member.name.to_string())
        .collect()
}

async fn mail_of(store: &dyn Store, number: u64) -> Vec<Mail> {
    store
        .mail(realm(), agent(number), ALL, Page::all())
        .await
        .unwrap()
}

/// A name that is or was taken, or addresses someone, gets the lowest number that makes it free.
pub async fn a_taken_name_gets_a_number(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    let long = "x".repeat(64);
    let wished = [
        "dev",
        "dev",
        "dev-2",
        "dev",
        "user",
        "team-lead",
        "task-list",
        &long,
        &long,
    ];
    let ops = wished.iter().map(|wished| join("web", wished, 2));
    let done = order(
        store,
        [create_team("web", 1)].into_iter().chain(ops).collect(),
    )
    .await;
    let got: Vec<String> = done.into_iter().skip(1).map(|it| joined(it).0).collect();
    let short = format!("{}-2", "x".repeat(62));
    let numbered = [
        "dev",
        "dev-2",
        "dev-2-2",
        "dev-3",
        "user-2",
        "team-lead-2",
        "task-list-2",
        &long,
        &short,
    ];
    assert_eq!(got, numbered);

    // A member that has left still reserves its name.
    assert_eq!(
        order(store, vec![leave("dev-2"), leave("dev")]).await,
        [Ok(Done::Left), Ok(Done::Left)]
    );
    let again = order(store, vec![join("web", "dev", 3), join("web", "dev-2", 3)]).await;
    let again: Vec<String> = again.into_iter().map(|it| joined(it).0).collect();
    assert_eq!(again, ["dev-4", "dev-2-3"]);
    assert_eq!(team(store).await.former, [name("dev"), name("dev-2")]);
    // A new team of that name starts afresh once this one is deleted.
    assert_eq!(
        order(store, vec![Op::DeleteTeam { team: name("web") }]).await,
        [Ok(Done::TeamDeleted)]
    );
    let anew = order(store, vec![create_team("web", 1), join("web", "dev", 2)])
        .await
        .remove(1);
    assert_eq!(joined(anew).0, "dev");
}

/// Any number of agents that join at once under one name each get their own name and colour.
pub async fn many_join_at_once(open: Open<'_>) {
    let stores: Vec<_> = (0..4).map(|_| open()).collect();
    let store = stores[0].as_ref();
    store.commit(birth(1)).await.unwrap();
    order(store, vec![create_team("web", 1)]).await;
    // All are called before the first is awaited, on separate hosts, each with the birth of its
    // agent.
    let births: Vec<_> = (2..=100)
        .zip(stores.iter().cycle())
        .map(|(number, store)| {
            let operations = acts(number, 1, vec![join("web", "dev", number)]).operations;
            store.commit(Step {
                operations,
                ..child(number, 1, "")
            })
        })
        .collect();
    let (mut names, mut colors) = (BTreeSet::new(), BTreeSet::from(["blue".to_owned()]));
    for born in births {
        let (name, color) = joined(born.await.unwrap().results.remove(0));
        assert!(names.insert(name.clone()), "{name} was given twice");
        assert!(
            colors.insert(color.clone()),
            "{name} has the colour {color} of another"
        );
    }
    let wanted = (2..=99)
        .map(|number| format!("dev-{number}"))
        .chain(["dev".to_owned()]);
    assert_eq!(names, wanted.collect());
    let team = team(stores[3].as_ref()).await;
    let shown = team
        .members
        .iter()
        .map(|member| member.color.clone())
        .collect::<BTreeSet<_>>();
    assert_eq!((team.members.len(), shown), (100, colors));
}

/// The preferred colour is given if it is free, and is free again when its member has left.
pub async fn a_wished_colour_is_given_if_it_is_free(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    let wishing = |called: &str, color: Option<&str>| {
        let mut member = joining(2);
        member.color = color.map(Into::into);
        Op::Join {
            team: name("web"),
            name: name(called),
            member,
            greeting: None,
        }
    };
    let ops = vec![
        create_team("web", 1),
        wishing("a", Some("green")),
        wishing("b", Some("#010203")),
        wishing("c", Some("blue")),
        wishing("d", None),
        leave("a"),
        wishing("e", None),
    ];
    let done = order(store, ops).await;
    let colors: Vec<String> = done
        .into_iter()
        .filter(|it| matches!(it, Ok(Done::Joined { .. })))
        .map(|it| joined(it).1)
        .collect();
    assert_eq!(colors, ["green", "#010203", "yellow", "purple", "green"]);
}

/// A member is created, joins and is greeted in one step without an entry; then another host can
/// take it.
pub async fn a_mate_is_born_into_its_team(open: Open<'_>) {
    let (first, second) = (open(), open());
    let store = first.as_ref();
    store.commit(birth(1)).await.unwrap();
    order(store, vec![create_team("web", 1)]).await;
    let id = Uuid::from_u128(5).into();
    let greeting = || {
        Some(Greeting {
            id,
            summary: "You are 2.".into(),
        })
    };
    let member = || joining(2);
    let hello = Op::Join {
        team: name("web"),
        name: name("dev"),
        member: member(),
        greeting: greeting(),
    };
    let state = Some(StateChange::To(AgentState::Idle));
    let born = Step {
        state,
        operations: acts(2, 1, vec![hello]).operations,
        ..child(2, 1, "")
    };
    for _ in 0..2 {
        let results = store.commit(born.clone()).await.unwrap().results;
        assert_eq!(
            results,
            [Ok(Done::Joined {
                name: name("dev"),
                color: "green".into()
            })]
        );
    }
    super::wake::told(store, &posse_port::store::Wake::Mail(agent(2))).await;
    let [mail] = &mail_of(store, 2).await[..] else {
        panic!("one mail")
    };
    let lead = Sender::Agent {
        id: agent(1),
        name: Name::LEAD.into(),
    };
    assert_eq!(
        (mail.id, mail.kind, &mail.from),
        (id, MailKind::Text, &lead)
    );
    assert_eq!(
        (mail.body.as_str(), mail.summary.as_str()),
        ("You are 2.", "You are 2.")
    );

    store.release(agent(2), Epoch(1)).await.unwrap();
    let shown = |team: &Team| {
        team.members
            .iter()
            .map(|it| (it.waiting, it.held))
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(&team(store).await), [(0, true), (1, false)]);
    let taken = second.take(agent(2)).await.unwrap();
    assert_eq!((taken.mail, taken.transcript.entries.len()), (1, 0));
    assert_eq!(shown(&team(store).await), [(0, true), (1, true)]);

    // A greeting that cannot be delivered refuses the whole operation.
    let mut long = member();
    long.prompt = "x".repeat(MAIL_BYTES + 1);
    let hello = Op::Join {
        team: name("web"),
        name: name("dev"),
        member: long,
        greeting: greeting(),
    };
    let refused = order(store, vec![hello]).await.remove(0);
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
    assert_eq!(names(store).await, ["team-lead", "dev"]);
}

/// A member is listed with everything it joined with, and with its agent's state.
pub async fn members_are_shown_as_they_stand(open: Open<'_>) {
    let (first, second) = (open(), open());
    let store = first.as_ref();
    store.commit(birth(1)).await.unwrap();
    second.commit(child(2, 1, "")).await.unwrap();
    order(
        store,
        vec![
            create_team("web", 1),
            join("web", "dev", 2),
            join("web", "doc", 7),
        ],
    )
    .await;
    order(
        store,
        vec![
            send(member("dev"), "a"),
            send(member("dev"), "b"),
            send(member("doc"), "c"),
        ],
    )
    .await;
    let rights = async || {
        let [_, dev, doc] = &team(store).await.members[..] else {
            panic!("three")
        };
        let of = |member: &Member| (member.state, member.waiting, member.held);
        (of(dev), of(doc))
    };
    let unborn = (MemberState::Idle, 1, false);
    for (state, wanted) in [
        (AgentState::Created, MemberState::Created),
        (AgentState::Running, MemberState::Running),
        (AgentState::Waiting, MemberState::Waiting),
        (AgentState::Paused, MemberState::Paused),
        (AgentState::Idle, MemberState::Idle),
        (AgentState::Completed, MemberState::ShutDown),
        (AgentState::Partial, MemberState::ShutDown),
        (AgentState::Failed, MemberState::ShutDown),
        (AgentState::Killed, MemberState::ShutDown),
    ] {
        second
            .commit(Step {
                state: Some(StateChange::To(state)),
                ..step(2, 1)
            })
            .await
            .unwrap();
        assert_eq!(rights().await, ((wanted, 2, true), unborn), "{state:?}");
    }
    // An ended member does not prevent deletion of the team, even if a host still holds it.
    assert_eq!(
        act(store, 1, Op::DeleteTeam { team: name("web") }).await,
        Ok(Done::TeamDeleted)
    );
    assert!(second.commit(step(2, 1)).await.is_ok(), "its host goes on");
    drop(second);
    order(store, vec![create_team("web", 1), join("web", "dev", 2)]).await;
    let dev = team(store).await.members.remove(1);
    let wanted = joining(2);
    assert_eq!(
        (dev.agent, dev.agent_type, dev.model),
        (wanted.agent, wanted.agent_type, wanted.model)
    );
    assert_eq!(
        (dev.prompt, dev.backend, dev.cwd),
        (wanted.prompt, wanted.backend, wanted.cwd)
    );
    assert_eq!(
        (dev.role, dev.takes, dev.held),
        (wanted.role, wanted.takes, false)
    );
}

/// The memberships of an agent are found without looking at other agents.
pub async fn ones_own_teams_are_found(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    store.commit(birth(1)).await.unwrap();
    store.commit(child(2, 1, "")).await.unwrap();
    let ops = vec![
        create_team("web", 1),
        join("web", "dev", 2),
        join("web", "doc", 7),
        create_team("ops", 2),
        join("ops", "dev", 2),
        send(member("dev"), "hello"),
    ];
    order(store, ops).await;
    let teams = store.teams(Some(realm()), Page::first(9)).await.unwrap();
    for (number, count) in [(1, 1), (2, 3), (7, 1), (8, 0)] {
        let mut wanted: Vec<_> = teams
            .iter()
            .flat_map(|team| {
                team.members
                    .iter()
                    .map(move |member| (&team.name, team.lead, member))
            })
            .filter(|(_, _, member)| member.agent == agent(number))
            .collect();
        wanted.sort_by_key(|(team, ..)| *team);
        let found = store.membership(realm(), agent(number)).await.unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|it| (&it.team, it.lead, &it.member))
            .collect();
        assert_eq!((found.len(), found), (count, wanted), "{number}");
    }
    assert_eq!(
        store
            .membership(Uuid::now_v7().into(), agent(2))
            .await
            .unwrap(),
        []
    );
}

/// Leadership is handed over: the address stays, the names change, and plans go to the new lead.
pub async fn leadership_is_handed_over(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    for number in 1..=3 {
        store.commit(birth(number)).await.unwrap();
    }
    let made = vec![
        create_team("web", 1),
        join("web", "ann", 2),
        join("web", "bob", 3),
        join("web", "main", 7),
    ];
    order(store, made).await;
    order(store, vec![create("web", "a", &[])]).await;
    act(store, 1, claim("web", 1)).await.unwrap();
    let not_lead = || Err(Refusal::NotLead { team: name("web") });
    assert_eq!(act(store, 2, hand_over("ann")).await, not_lead());
    let nobody = Err(Refusal::NoSuchRecipient { to: "eve".into() });
    assert_eq!(act(store, 1, hand_over("eve")).await, nobody);
    let plan = Uuid::from_u128(8).into();
    // With characters that engines encode differently.
    let text = "the \"plan\"\n\u{1}\u{0}\u{f8ff}0\\";
    act(store, 3, ask(plan, member("team-lead"), text, true))
        .await
        .unwrap();
    order(
        store,
        vec![ask(
            Uuid::from_u128(9).into(),
            member("ann"),
            "enough",
            false,
        )],
    )
    .await
    .remove(0)
    .unwrap();

    assert_eq!(act(store, 1, hand_over("ann")).await, Ok(Done::HandedOver));
    assert_eq!(names(store).await, ["main-2", "ann", "bob", "main"]);
    assert_eq!(team(store).await.lead, agent(2));
    let owner = store
        .task(list("web"), TaskId(1))
        .await
        .unwrap()
        .unwrap()
        .owner
        .unwrap();
    assert_eq!(
        (owner.name.as_str(), owner.agent),
        ("main-2", Some(agent(1)))
    );
    // The plan now waits for the new lead, and was sent again as mail; her shutdown request is
    // dropped.
    let [open] = &store.requests(realm(), None, Page::all()).await.unwrap()[..] else {
        panic!("one request")
    };
    assert_eq!(
        (open.id, open.to, open.text.as_str()),
        (plan, agent(2), text)
    );
    let mail = mail_of(store, 2).await;
    let wanted = Sender::Agent {
        id: agent(3),
        name: "bob".into(),
    };
    let last = mail.last().unwrap();
    assert_eq!(
        (last.id, last.kind, &last.from),
        (plan, MailKind::PlanApprovalRequest, &wanted)
    );
    let body = serde_json::to_string(&Request {
        request_id: plan,
        text: text.into(),
    })
    .unwrap();
    assert_eq!(last.body, body);
    let answer = |number: u64| super::words::answer(plan, number, true);
    assert_eq!(
        act(store, 1, answer(5)).await,
        Err(Refusal::NotOpen { request: plan })
    );
    let done = act(store, 2, answer(6)).await;
    assert!(
        matches!(&done, Ok(Done::Responded(Receipt { to, .. })) if *to == agent(3)),
        "{done:?}"
    );
    assert_eq!(
        mail_of(store, 3).await.pop().unwrap().from.name(),
        "team-lead"
    );

    // The lead has the address, the rights and the name.
    let sent = receipts(act(store, 1, send(member("team-lead"), "hello")).await);
    assert_eq!((sent[0].to, sent[0].name.as_str()), (agent(2), "team-lead"));
    assert_eq!(mail_of(store, 2).await.pop().unwrap().from.name(), "main-2");
    act(store, 2, send(member("main-2"), "hello"))
        .await
        .unwrap();
    assert_eq!(
        mail_of(store, 1).await.pop().unwrap().from.name(),
        "team-lead"
    );
    assert_eq!(act(store, 1, hand_over("bob")).await, not_lead());
    assert_eq!(
        act(store, 2, hand_over("ann")).await,
        Err(Refusal::IsLead { name: name("ann") })
    );
    assert_eq!(
        act(store, 2, hand_over("team-lead")).await,
        Err(Refusal::IsLead {
            name: name("team-lead")
        })
    );
    let ended = Some(StateChange::To(AgentState::Completed));
    store
        .commit(Step {
            state: ended,
            ..step(3, 1)
        })
        .await
        .unwrap();
    assert_eq!(
        act(store, 2, hand_over("bob")).await,
        Err(Refusal::NotRunning { name: "bob".into() })
    );
    let give = TaskChange {
        owner: Some(Some(Name::LEAD.into())),
        ..TaskChange::default()
    };
    act(store, 2, update("web", 1, give)).await.unwrap();
    let task = store.task(list("web"), TaskId(1)).await.unwrap().unwrap();
    assert_eq!(
        (task.owner.unwrap().name.as_str(), task.status),
        ("ann", TaskStatus::InProgress)
    );
    // The first member succeeds a lead that leaves.
    act(
        store,
        3,
        ask(plan, member("team-lead"), "another plan", true),
    )
    .await
    .unwrap();
    assert_eq!(act(store, 2, leave("team-lead")).await, Ok(Done::Left));
    let [open] = &store.requests(realm(), None, Page::all()).await.unwrap()[..] else {
        panic!("one request")
    };
    assert_eq!(
        (open.id, open.to, mail_of(store, 1).await.pop().unwrap().id),
        (plan, agent(1), plan)
    );
    for lead in ["team-lead", "main-2"] {
        assert_eq!(
            order(store, vec![leave(lead)]).await,
            [Err(Refusal::IsLead { name: name(lead) })]
        );
    }
    assert_eq!(
        (names(store).await, team(store).await.lead),
        (["main-2", "bob", "main"].map(Into::into).to_vec(), agent(1))
    );
}

/// Tasks that a leaving member was doing, or was assigned, become unowned.
pub async fn who_leaves_gives_its_tasks_back(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    for number in 1..=2 {
        store.commit(birth(number)).await.unwrap();
    }
    let made = ["a", "b"].map(|subject| create("web", subject, &[]));
    order(
        store,
        [create_team("web", 1), join("web", "ann", 2)]
            .into_iter()
            .chain(made)
            .collect(),
    )
    .await;
    act(store, 2, claim("web", 1)).await.unwrap();
    let give = TaskChange {
        owner: Some(Some("ann".into())),
        ..TaskChange::default()
    };
    act(store, 1, update("web", 2, give)).await.unwrap();
    assert_eq!(order(store, vec![leave("ann")]).await, [Ok(Done::Left)]);
    for (id, lost_by) in [(1, Some("ann")), (2, None)] {
        let task = store.task(list("web"), TaskId(id)).await.unwrap().unwrap();
        assert_eq!(
            (task.status, task.owner, task.lost_by.as_deref()),
            (TaskStatus::Pending, None, lost_by)
        );
    }
}

/// A step that ends an agent gives back the tasks assigned to it, and the teams that it led.
pub async fn who_ends_leads_no_more(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    for number in 1..=2 {
        store.commit(birth(number)).await.unwrap();
    }
    let ops = vec![
        create_team("web", 1),
        join("web", "ann", 2),
        create_team("own", 2),
        hand_over("ann"),
        create("web", "a", &[]),
        create("web", "b", &[1]),
        create("", "c", &[]),
    ];
    assert!(order(store, ops).await.iter().all(Result::is_ok));
    let give = |called: &str| TaskChange {
        owner: Some(Some(called.into())),
        ..TaskChange::default()
    };
    order(
        store,
        vec![
            update("web", 1, give("ann")),
            update("web", 2, give("ann")),
            update("", 1, give("/main")),
        ],
    )
    .await;
    let owners = async || {
        let mut owners = Vec::new();
        for (team, id) in [("web", 1), ("web", 2), ("", 1)] {
            let task = store.task(list(team), TaskId(id)).await.unwrap().unwrap();
            owners.push(task.owner.and_then(|owner| owner.agent));
        }
        owners
    };
    store
        .commit(Step {
            state: Some(StateChange::To(AgentState::Paused)),
            ..step(2, 1)
        })
        .await
        .unwrap();
    assert_eq!(
        (owners().await, team(store).await.lead),
        (vec![Some(agent(2)); 3], agent(2)),
        "only for now"
    );
    for state in [AgentState::Failed, AgentState::Completed] {
        store
            .commit(Step {
                state: Some(StateChange::To(state)),
                ..step(2, 1)
            })
            .await
            .unwrap();
        assert_eq!(owners().await, [None; 3]);
        let mut teams = store.teams(Some(realm()), Page::first(9)).await.unwrap();
        teams.sort_by(|a, b| a.name.cmp(&b.name));
        let leads: Vec<_> = teams
            .iter()
            .map(|team| (team.name.as_str(), team.lead))
            .collect();
        assert_eq!(
            leads,
            [("own", agent(2)), ("web", agent(1))],
            "nobody else could lead its own"
        );
    }
    assert_eq!(names(store).await, ["main", "ann"], "it is still there");
    super::wake::told(store, &posse_port::store::Wake::Tasks(list("web"))).await;
}

/// A member is removed by itself, its lead, its maker or a person.
pub async fn who_may_remove_a_member(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    for born in [
        birth(1),
        birth(2),
        birth(3),
        child(4, 2, ""),
        child(5, 3, ""),
        child(6, 3, ""),
    ] {
        store.commit(born).await.unwrap();
    }
    let joins = [("ann", 2), ("bob", 3), ("dev", 4), ("doc", 5), ("eve", 6)];
    let joins = joins
        .iter()
        .map(|(called, number)| join("web", called, *number));
    order(
        store,
        [create_team("web", 1), create_team("ops", 3)]
            .into_iter()
            .chain(joins)
            .collect(),
    )
    .await;
    for (number, called) in [
        (2, "bob"),
        (3, "dev"),
        (5, "dev"),
        (5, "bob"),
        (2, "team-lead"),
    ] {
        let refused = Err(Refusal::NotYours {
            name: called.into(),
        });
        assert_eq!(
            act(store, number, leave(called)).await,
            refused,
            "{number} {called}"
        );
    }
    // Itself, its maker, the lead, a person.
    for (number, called) in [(4, "dev"), (3, "doc"), (1, "ann")] {
        assert_eq!(
            act(store, number, leave(called)).await,
            Ok(Done::Left),
            "{number} {called}"
        );
    }
    assert_eq!(order(store, vec![leave("eve")]).await, [Ok(Done::Left)]);
    assert_eq!(names(store).await, ["team-lead", "bob"]);
}

/// A name belongs to one agent or member for ever.
pub async fn names_are_nobodys_twice(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    store.commit(birth(1)).await.unwrap();
    for (number, called) in [(2, "dev"), (3, "dev-3"), (4, "main")] {
        store.commit(child(number, 1, called)).await.unwrap();
    }
    let wished = ["dev", "dev", "doc", "dev-07", "dev-9999999999", "dev"];
    let joins = wished.iter().map(|wished| join("web", wished, 7));
    let done = order(
        store,
        [create_team("web", 1)].into_iter().chain(joins).collect(),
    )
    .await;
    let got: Vec<String> = done.into_iter().skip(1).map(|it| joined(it).0).collect();
    assert_eq!(
        got,
        ["dev-2", "dev-4", "doc", "dev-07", "dev-9999999999", "dev-5"]
    );
    // Numbers continue after the highest, even if lower ones are free.
    let more = order(
        store,
        vec![
            join("web", "dev-40", 7),
            join("web", "dev", 7),
            join("web", "dev-6", 7),
        ],
    )
    .await;
    let got: Vec<String> = more.into_iter().map(|it| joined(it).0).collect();
    assert_eq!(got, ["dev-40", "dev-41", "dev-6"]);
    order(store, vec![leave("dev-4")]).await.remove(0).unwrap();
    for (called, by) in [
        ("doc", Some(agent(7))),
        ("dev-4", None),
        ("dev", Some(agent(2))),
    ] {
        let refused = store.commit(child(8, 1, called)).await.unwrap_err();
        let StoreError::NameTaken {
            name: taken,
            by: whose,
        } = refused
        else {
            panic!("{refused:?}")
        };
        assert_eq!((taken, whose), (name(called), by));
    }
    store.commit(child(8, 1, "dev-5-2")).await.unwrap();
    // A former lead has a name that nobody else has.
    order(store, vec![hand_over("doc")])
        .await
        .remove(0)
        .unwrap();
    assert_eq!(names(store).await[0], "main-2");
}

/// Lost tasks are found by the former owner's name.
pub async fn what_was_lost_is_found(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    for number in 1..=3 {
        store.commit(birth(number)).await.unwrap();
    }
    let tasks = (1..=5).map(|_| create("web", "a", &[]));
    let made = vec![
        create_team("web", 1),
        join("web", "ann", 2),
        join("web", "bob", 3),
    ];
    order(store, made.into_iter().chain(tasks).collect()).await;
    for (number, id) in [(2, 1), (3, 2), (2, 3), (2, 4), (2, 5)] {
        act(store, number, claim("web", id)).await.unwrap();
    }
    for number in 2..=3 {
        store.release(agent(number), Epoch(1)).await.unwrap();
    }
    // A task that someone else has taken since is no longer lost.
    act(store, 1, claim("web", 3)).await.unwrap();
    let lost = async |called: &str, after, limit| {
        let filter = TaskFilter {
            lost_by: Some(called.into()),
            ..TaskFilter::default()
        };
        let page = Page::after(TaskId(after), limit);
        let found = store.tasks(list("web"), filter, page).await.unwrap();
        found.iter().map(|task| task.id.0).collect::<Vec<_>>()
    };
    assert_eq!(lost("ann", 0, 9).await, [1, 4, 5]);
    assert_eq!(
        (lost("ann", 1, 1).await, lost("bob", 0, 9).await),
        (vec![4], vec![2])
    );
    assert_eq!(lost("eve", 0, 9).await, [0; 0]);
    let ready = Some(posse_port::store::Ready {
        agent: None,
        takes: posse_protocol::Takes::Any,
    });
    let both = TaskFilter {
        lost_by: Some("ann".into()),
        ready,
        ..TaskFilter::default()
    };
    assert_eq!(
        store
            .tasks(list("web"), both, Page::after(TaskId(1), 1))
            .await
            .unwrap()[0]
            .id,
        TaskId(4)
    );
}
