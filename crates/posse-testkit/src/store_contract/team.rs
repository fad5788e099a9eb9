//! Promises about teams, their notes, and agents.

use posse_port::store::{
    Address, AgentFilter, Done, Epoch, Joining, MailFilter, Op, Page, Refusal, TEXT_BYTES,
    TaskFilter,
};
use posse_protocol::{Member, MemberState, Name, Note, TaskId, TaskStatus, Team};
use uuid::Uuid;

use super::Open;
use super::words::{
    act, agent, birth, claim, create, create_team, join, joining, list, name, order, other_realm,
    realm, send,
};

fn leave(team: &str, called: &str) -> Op {
    Op::Leave {
        team: name(team),
        name: name(called),
    }
}

fn delete(team: &str) -> Op {
    Op::DeleteTeam { team: name(team) }
}

fn write(team: &str, called: &str, text: &str, expect: Option<u64>) -> Op {
    Op::WriteNote {
        team: Some(name(team)),
        name: name(called),
        text: text.into(),
        expect,
    }
}

fn member(number: u64, called: Name) -> Member {
    let Joining {
        agent,
        agent_type,
        model,
        prompt,
        backend,
        cwd,
        role,
        takes,
        ..
    } = *joining(number);
    Member {
        name: called,
        agent,
        agent_type,
        model,
        prompt,
        color: posse_protocol::team::color(number as usize - 1),
        backend,
        cwd,
        joined_ms: 10,
        role,
        takes,
        state: MemberState::Idle,
        waiting: 0,
        held: number < 3,
    }
}

/// A team has a lead, and members with unique names; a member that leaves gives its tasks back.
pub async fn teams_have_members(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    store.commit(birth(1)).await.unwrap();
    store.commit(birth(2)).await.unwrap();
    let done = order(
        store,
        vec![
            create_team("web", 1),
            create_team("web", 2),
            join("web", "zoe", 2),
            join("wep", "ann", 3),
            join("web", "ann", 3),
            leave("web", "team-lead"),
            leave("web", "eve"),
        ],
    )
    .await;
    let joined = |called: &str, color: &str| {
        Ok(Done::Joined {
            name: name(called),
            color: color.into(),
        })
    };
    let wanted = [
        Ok(Done::TeamCreated),
        Err(Refusal::TeamExists { team: name("web") }),
        joined("zoe", "green"),
        Err(Refusal::NoSuchTeam { team: name("wep") }),
        joined("ann", "yellow"),
        Err(Refusal::IsLead { name: Name::lead() }),
        Err(Refusal::NoSuchRecipient { to: "eve".into() }),
    ];
    assert_eq!(done, wanted);
    let teams = store.teams(Some(realm()), Page::first(9)).await.unwrap();
    let wanted = Team {
        realm: realm(),
        name: name("web"),
        description: "It works.".into(),
        lead: agent(1),
        created_ms: 10,
        settings: serde_json::from_str("{\"a\":[1]}").unwrap(),
        members: vec![
            member(1, Name::lead()),
            member(2, name("zoe")),
            member(3, name("ann")),
        ],
        former: vec![],
    };
    assert_eq!(teams, [wanted]);
    assert_eq!(
        store
            .teams(Some(Uuid::now_v7().into()), Page::first(9))
            .await
            .unwrap(),
        []
    );
    let later = posse_port::store::Order {
        realm: realm(),
        ops: vec![create_team("app", 2)],
        at_ms: 11,
    };
    store.operate(later).await.unwrap();
    let names = async |limit| {
        store
            .teams(None, limit)
            .await
            .unwrap()
            .into_iter()
            .map(|team| team.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names(Page::first(9)).await, names(Page::first(1)).await),
        (vec!["app".into(), "web".into()], vec!["app".into()])
    );

    order(
        store,
        vec![create("web", "a", &[]), create("app", "b", &[])],
    )
    .await;
    for team in ["web", "app"] {
        act(store, 2, claim(team, 1)).await.unwrap();
    }
    assert_eq!(
        order(store, vec![leave("web", "zoe")]).await,
        [Ok(Done::Left)]
    );
    let task = async |team| store.task(list(team), TaskId(1)).await.unwrap().unwrap();
    let (left, kept) = (task("web").await, task("app").await);
    assert_eq!(
        (left.status, left.owner, left.lost_by.as_deref()),
        (TaskStatus::Pending, None, Some("zoe"))
    );
    assert_eq!(kept.status, TaskStatus::InProgress);
    assert!(order(store, vec![send(Address::Agent(agent(2)), "still there")]).await[0].is_ok());
}

/// A note has a version and an author; a writer that expects another version is refused.
pub async fn notes_have_versions(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    store.commit(birth(1)).await.unwrap();
    order(store, vec![create_team("web", 1)]).await;
    let done = order(
        store,
        vec![
            write("web", "plan", "a", Some(1)),
            write("web", "plan", "a", Some(0)),
            write("web", "plan", "b", Some(0)),
            write("web", "plan", "b", Some(1)),
            write("wep", "plan", "b", None),
            write("web", "plan", &"x".repeat(TEXT_BYTES + 1), None),
            write("web", "plan", &"x".repeat(TEXT_BYTES + 1), Some(1)),
            write("wep", "plan", &"x".repeat(TEXT_BYTES + 1), Some(1)),
        ],
    )
    .await;
    let changed = |version| Err(Refusal::Changed { version });
    let noted = |version| Ok(Done::Noted { version });
    let missing = Err(Refusal::NoSuchTeam { team: name("wep") });
    let long = Err(Refusal::TooLong {
        bytes: TEXT_BYTES + 1,
        most: TEXT_BYTES,
    });
    let wanted = [
        changed(0),
        noted(1),
        changed(1),
        noted(2),
        missing.clone(),
        long,
        changed(2),
        missing,
    ];
    assert_eq!(done, wanted);
    assert_eq!(
        act(store, 1, write("web", "a-list", "c", None)).await,
        noted(1)
    );
    let note = |called: &str, version, author: &str, text: &str| Note {
        name: name(called),
        version,
        author: author.into(),
        text: text.into(),
        written_ms: 10,
    };
    let notes = store.notes(list("web"), Page::all()).await.unwrap();
    assert_eq!(
        notes,
        [
            note("a-list", 1, "team-lead", "c"),
            note("plan", 2, "user", "b")
        ]
    );
    let of_session = |text: &str| Op::WriteNote {
        team: None,
        name: name("plan"),
        text: text.into(),
        expect: None,
    };
    assert_eq!(act(store, 1, of_session("d")).await, noted(1));
    assert_eq!(act(store, 1, of_session("e")).await, noted(2));
    let notes = store.notes(list(""), Page::all()).await.unwrap();
    assert_eq!(notes, [note("plan", 2, "/main", "e")]);
}

/// A team is deleted with everything it has when no member is held; its task numbers are not
/// reused.
pub async fn teams_are_deleted_when_nobody_is_there(open: Open<'_>) {
    let (first, second) = (open(), open());
    let store = first.as_ref();
    store.commit(birth(1)).await.unwrap();
    store.commit(birth(2)).await.unwrap();
    second.commit(birth(3)).await.unwrap();
    let everybody = || {
        vec![
            create_team("web", 1),
            join("web", "zoe", 2),
            join("web", "ann", 3),
        ]
    };
    order(store, everybody()).await;
    order(
        store,
        vec![
            create("web", "a", &[]),
            create("web", "b", &[1]),
            write("web", "plan", "a", None),
        ],
    )
    .await;
    order(
        store,
        vec![send(Address::Others { team: name("web") }, "hello")],
    )
    .await;
    let live = Err(Refusal::MembersLive {
        names: vec!["zoe".into(), "ann".into()],
    });
    assert_eq!(act(store, 1, delete("web")).await, live);
    store.release(agent(2), Epoch(1)).await.unwrap();
    let live = Err(Refusal::MembersLive {
        names: vec!["ann".into()],
    });
    assert_eq!(act(store, 1, delete("web")).await, live);
    drop(second);
    assert_eq!(act(store, 1, delete("web")).await, Ok(Done::TeamDeleted));
    assert_eq!(
        act(store, 1, delete("web")).await,
        Err(Refusal::NoSuchTeam { team: name("web") })
    );
    assert_eq!(store.teams(None, Page::first(9)).await.unwrap(), []);
    let mut mails = Vec::new();
    for number in 1..=3 {
        mails.push(
            store
                .mail(
                    realm(),
                    agent(number),
                    MailFilter::default(),
                    Page::first(9),
                )
                .await
                .unwrap()
                .len(),
        );
    }
    assert_eq!(mails, [1, 0, 0], "the lead's inbox stays");
    order(store, everybody()).await;
    assert_eq!(
        store
            .tasks(list("web"), TaskFilter::default(), Page::first(9))
            .await
            .unwrap(),
        []
    );
    assert_eq!(store.notes(list("web"), Page::all()).await.unwrap(), []);
    assert_eq!(
        order(store, vec![create("web", "c", &[])]).await,
        [Ok(Done::TaskCreated(TaskId(3)))]
    );
}

/// Agents are listed by path and age; the filter for held ones follows the life of their host.
pub async fn agents_are_found(open: Open<'_>) {
    let (first, second) = (open(), open());
    for (number, path, at_ms, realm) in [
        (1, "/main", 3, realm()),
        (2, "/b", 1, realm()),
        (3, "/b", 2, realm()),
        (4, "/a", 1, other_realm()),
    ] {
        let mut born = birth(number);
        born.birth.as_mut().unwrap().path = path.into();
        (born.at_ms, born.realm) = (at_ms, realm);
        let store = if number == 3 { &second } else { &first };
        store.commit(born).await.unwrap();
    }
    let found = async |realm, held, limit| {
        let agents = first
            .agents(
                AgentFilter {
                    realm,
                    held,
                    ..AgentFilter::default()
                },
                limit,
            )
            .await
            .unwrap();
        agents
            .iter()
            .map(|session| session.agent.uuid().as_bytes()[0])
            .collect::<Vec<_>>()
    };
    assert_eq!(found(None, false, Page::first(9)).await, [2, 3, 1, 4]);
    assert_eq!(found(Some(realm()), false, Page::first(2)).await, [2, 3]);
    assert_eq!(found(Some(realm()), true, Page::first(9)).await, [2, 3, 1]);
    first.release(agent(1), Epoch(1)).await.unwrap();
    drop(second);
    assert_eq!(
        found(Some(realm()), true, Page::first(1)).await,
        [2],
        "those that are gone do not count"
    );
    assert_eq!(found(None, true, Page::first(9)).await, [2, 4]);
    let agents = first
        .agents(AgentFilter::default(), Page::first(9))
        .await
        .unwrap();
    assert_eq!(agents[0], first.read(agent(2)).await.unwrap().record);
}
