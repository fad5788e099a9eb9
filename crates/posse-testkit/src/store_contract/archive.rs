//! Promises about export and import of teams.

use posse_port::store::{Address, Archive, Done, Op, Store, TakenMail, TaskChange};
use posse_protocol::{EntryKind, Takes, TaskId, TaskStatus};
use uuid::Uuid;

use super::Open;
use super::words::{
    act, agent, birth, claim, create, create_team, entry, fate, join, name, order, realm, send,
    step, update,
};

/// A team with everything that a team can have.
async fn furnished(store: &dyn Store) -> Archive {
    for number in 1..=2 {
        store.commit(birth(number)).await.unwrap();
    }
    let to = |status| TaskChange {
        status: Some(status),
        ..TaskChange::default()
    };
    let note = Op::WriteNote {
        team: Some(name("web")),
        name: name("plan"),
        text: "a".into(),
        expect: None,
    };
    let made = [
        create_team("web", 1),
        join("web", "ann", 2),
        join("web", "bob", 7),
        note,
        create("web", "a", &[]),
        create("web", "b", &[1]),
        create("web", "c", &[1, 2]),
        create("web", "d", &[]),
        create("web", "e", &[]),
        update("web", 5, to(TaskStatus::Deleted)),
        update("web", 1, to(TaskStatus::Completed)),
    ];
    for result in order(store, made.into()).await {
        result.unwrap();
    }
    for body in ["x", "y"] {
        act(store, 1, send(Address::Others { team: name("web") }, body))
            .await
            .unwrap();
    }
    act(store, 2, claim("web", 2)).await.unwrap();
    let mut taking = step(2, 1);
    taking.entries = vec![entry(0, EntryKind::Prompt, "mail")];
    taking.mail = vec![TakenMail {
        number: 1,
        entry: 0,
    }];
    store.commit(taking).await.unwrap();
    store.export(realm(), name("web")).await.unwrap().unwrap()
}

/// An exported team can be imported elsewhere and is the same there, except that no member is at
/// work.
pub async fn a_team_goes_out_and_comes_in(open: Open<'_>) {
    let store = open();
    let mut archive = furnished(store.as_ref()).await;
    assert_eq!(
        archive
            .tasks
            .iter()
            .map(|task| task.id.0)
            .collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    assert_eq!((archive.last_task, archive.notes.len()), (5, 1));
    assert_eq!(
        archive.mail.iter().map(Vec::len).collect::<Vec<_>>(),
        [0, 2, 2]
    );
    assert_eq!(archive.mail[1][0].shown_in, Some(0));
    assert_eq!(store.export(realm(), name("wep")).await.unwrap(), None);
    assert_eq!(
        fate(&store.import(archive.clone()).await),
        "bad step",
        "there is such a team"
    );

    let elsewhere = Uuid::now_v7().into();
    (archive.team.realm, archive.last_task) = (elsewhere, 8);
    store.import(archive.clone()).await.unwrap();
    let begun = &mut archive.tasks[1];
    (begun.status, begun.version) = (TaskStatus::Pending, begun.version + 1);
    begun.lost_by = begun.owner.take().map(|owner| owner.name);
    assert_eq!(
        store.export(elsewhere, name("web")).await.unwrap(),
        Some(archive)
    );
    let ops = vec![
        Op::ClaimNext {
            team: Some(name("web")),
            takes: Takes::Any,
        },
        create("web", "new", &[3]),
        send(
            Address::Member {
                team: name("web"),
                name: name("ann"),
            },
            "z",
        ),
    ];
    let order = posse_port::store::Order {
        realm: elsewhere,
        ops,
        at_ms: 10,
    };
    let done = store.operate(order).await.unwrap();
    assert!(
        matches!(&done[0], Ok(Done::Claimed(task)) if task.id == TaskId(2)),
        "{done:?}"
    );
    assert_eq!(done[1], Ok(Done::TaskCreated(TaskId(9))));
    assert!(
        matches!(&done[2], Ok(Done::Sent(sent)) if sent[0].number == 3),
        "{done:?}"
    );
    // In its own realm, existing inboxes are not filled twice.
    let archive = store.export(realm(), name("web")).await.unwrap().unwrap();
    for number in 1..=2 {
        let epoch = store.take(agent(number)).await.unwrap().epoch;
        store.release(agent(number), epoch).await.unwrap();
    }
    super::order(
        store.as_ref(),
        vec![
            send(Address::Agent(agent(1)), "stays"),
            Op::DeleteTeam { team: name("web") },
        ],
    )
    .await;
    store.import(archive.clone()).await.unwrap();
    let back = store.export(realm(), name("web")).await.unwrap().unwrap();
    assert_eq!(
        (back.mail[1..].to_vec(), back.mail[0].len()),
        (archive.mail[1..].to_vec(), 1)
    );
    store
        .import(Archive {
            team: posse_protocol::Team {
                name: name("two"),
                ..back.team.clone()
            },
            ..back.clone()
        })
        .await
        .unwrap();
    assert_eq!(
        store
            .export(realm(), name("two"))
            .await
            .unwrap()
            .unwrap()
            .mail,
        back.mail
    );
}

/// Makes an archive contradict itself.
type Fault = fn(&mut Archive);

/// An inconsistent archive is refused, and nothing of it is imported.
pub async fn an_archive_that_contradicts_itself_is_refused(open: Open<'_>) {
    let store = open();
    let mut archive = furnished(store.as_ref()).await;
    archive.team.realm = Uuid::now_v7().into();
    let faults: [(&str, Fault); 11] = [
        ("no lead", |it| it.team.members.clear()),
        ("another lead", |it| it.team.lead = agent(9)),
        ("a reserved name", |it| {
            it.team.members[1].name = name("user")
        }),
        ("a name twice", |it| it.team.members[1].name = name("bob")),
        ("an inbox too few", |it| drop(it.mail.pop())),
        ("mail is missing", |it| drop(it.mail[1].remove(0))),
        ("mail for another", |it| it.mail[1][0].to = agent(1)),
        ("a number too high", |it| it.last_task = 4),
        ("a number twice", |it| it.tasks[1].id = TaskId(1)),
        ("a task is missing", |it| {
            it.tasks[3].blocked_by = vec![TaskId(6)]
        }),
        ("a circle", |it| it.tasks[0].blocked_by = vec![TaskId(3)]),
    ];
    for (why, fault) in faults {
        let mut wrong = archive.clone();
        fault(&mut wrong);
        assert_eq!(fate(&store.import(wrong).await), "bad step", "{why}");
    }
    let mut twice = archive.clone();
    twice.notes.push(twice.notes[0].clone());
    assert_eq!(fate(&store.import(twice).await), "bad step", "a note twice");
    assert_eq!(
        store.export(archive.team.realm, name("web")).await.unwrap(),
        None
    );
    store.import(archive).await.unwrap();
}
