//! Promises about tasks.

use posse_port::store::{
    Done, METADATA_DEPTH, NewTask, Op, OpResult, Page, Refusal, Store, TEXT_BYTES, TaskChange,
    TaskFilter,
};
use posse_protocol::{Task, TaskId, TaskStatus};
use serde_json::json;

use super::Open;
use super::words::{act, birth, claim, create, create_team, join, list, name, order, update};

fn ids(ids: &[u64]) -> Vec<TaskId> {
    ids.iter().copied().map(TaskId).collect()
}

fn to(status: TaskStatus) -> TaskChange {
    TaskChange {
        status: Some(status),
        ..TaskChange::default()
    }
}

fn updated(version: u64, freed: &[u64]) -> OpResult {
    Ok(Done::TaskUpdated {
        version,
        freed: ids(freed),
    })
}

async fn one(store: &dyn Store, team: &str, id: u64) -> Task {
    store.task(list(team), TaskId(id)).await.unwrap().unwrap()
}

/// A task keeps everything it was made with, a number of its list, and a version that counts its
/// changes.
pub async fn tasks_come_back_as_they_went_in(open: Open<'_>) {
    let store = open();
    let metadata = json!({"a": [1, null], "b": "x"})
        .as_object()
        .unwrap()
        .clone();
    let task = NewTask {
        subject: "Fix it".into(),
        description: "All of it.".into(),
        active_form: Some("Fixing it".into()),
        blocked_by: ids(&[2, 1, 2]),
        role: Some("lexer".into()),
        check: Some("make lex".into()),
        metadata: metadata.clone(),
    };
    let made = order(
        store.as_ref(),
        vec![
            create("", "a", &[]),
            create("", "b", &[]),
            Op::CreateTask {
                team: None,
                task: Box::new(task),
            },
            create("", "c", &[9]),
            create("web", "d", &[]),
            create("", "e", &[]),
        ],
    )
    .await;
    let wanted = [
        Ok(Done::TaskCreated(TaskId(1))),
        Ok(Done::TaskCreated(TaskId(2))),
        Ok(Done::TaskCreated(TaskId(3))),
        Err(Refusal::NoSuchTask { id: TaskId(9) }),
        Err(Refusal::NoSuchTeam { team: name("web") }),
        Ok(Done::TaskCreated(TaskId(4))),
    ];
    assert_eq!(made, wanted);
    let third = one(store.as_ref(), "", 3).await;
    let wanted = Task {
        id: TaskId(3),
        subject: "Fix it".into(),
        description: "All of it.".into(),
        active_form: Some("Fixing it".into()),
        status: TaskStatus::Pending,
        owner: None,
        lost_by: None,
        blocked_by: ids(&[1, 2]),
        waits_for: ids(&[1, 2]),
        blocks: vec![],
        created_ms: 10,
        updated_ms: 10,
        role: Some("lexer".into()),
        check: Some("make lex".into()),
        metadata,
        version: 1,
    };
    assert_eq!(third, wanted);
    let change = TaskChange {
        subject: Some("Fix this".into()),
        active_form: Some(String::new()),
        role: Some("printer".into()),
        check: Some(String::new()),
        metadata: json!({"a": null, "c": 1}).as_object().unwrap().clone(),
        ..TaskChange::default()
    };
    let expect = |expect| Op::UpdateTask {
        team: None,
        id: TaskId(3),
        expect,
        change: Box::new(change.clone()),
    };
    let done = order(
        store.as_ref(),
        vec![
            expect(Some(2)),
            expect(Some(1)),
            expect(Some(1)),
            expect(None),
        ],
    )
    .await;
    let changed = |version| Err(Refusal::Changed { version });
    assert_eq!(
        done,
        [changed(1), updated(2, &[]), changed(2), updated(2, &[])],
        "the last one changes nothing"
    );
    let third = one(store.as_ref(), "", 3).await;
    assert_eq!(
        (third.subject.as_str(), third.active_form, third.version),
        ("Fix this", None, 2)
    );
    assert_eq!(
        (third.role.as_deref(), third.check),
        (Some("printer"), None)
    );
    assert_eq!(
        third.metadata,
        *json!({"b": "x", "c": 1}).as_object().unwrap()
    );

    let bytes = TEXT_BYTES + 1;
    let long = TaskChange {
        description: Some("x".repeat(bytes - 4)),
        ..TaskChange::default()
    };
    let refused = order(
        store.as_ref(),
        vec![
            create("", &"x".repeat(bytes), &[]),
            update(
                "",
                4,
                TaskChange {
                    metadata: json!({"k": "x".repeat(TEXT_BYTES)})
                        .as_object()
                        .unwrap()
                        .clone(),
                    ..TaskChange::default()
                },
            ),
            update("", 4, long),
        ],
    )
    .await;
    let long = |bytes| {
        Err(Refusal::TooLong {
            bytes,
            most: TEXT_BYTES,
        })
    };
    assert_eq!(
        refused,
        [long(bytes), long(TEXT_BYTES + 9), updated(2, &[])]
    );
    let second = store
        .tasks(list(""), TaskFilter::default(), Page::after(TaskId(1), 2))
        .await
        .unwrap();
    assert_eq!(
        second,
        [
            one(store.as_ref(), "", 2).await,
            one(store.as_ref(), "", 3).await
        ]
    );
    assert_eq!(store.task(list(""), TaskId(5)).await.unwrap(), None);
}

/// Metadata may nest up to the limit and no deeper.
pub async fn metadata_are_not_too_deep(open: Open<'_>) {
    let store = open();
    order(store.as_ref(), vec![create("", "a", &[])]).await;
    let deep = |levels| (1..levels).fold(json!(1), |inner, _| json!([inner]));
    let with = |levels| TaskChange {
        metadata: json!({"k": deep(levels)}).as_object().unwrap().clone(),
        ..TaskChange::default()
    };
    let refused = order(
        store.as_ref(),
        vec![
            update("", 1, with(METADATA_DEPTH + 1)),
            update("", 1, with(METADATA_DEPTH)),
        ],
    );
    let (most, version) = (METADATA_DEPTH, one(store.as_ref(), "", 1).await.version);
    assert_eq!(
        refused.await,
        [Err(Refusal::TooDeep { most }), updated(version + 1, &[])]
    );
}

/// A task is unblocked when everything it waits for is done, and blocked again when that is
/// reopened.
pub async fn what_waits_is_freed(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    let made = ["a", "b"]
        .map(|subject| create("", subject, &[]))
        .into_iter();
    order(
        store,
        made.chain([create("", "c", &[1, 2]), create("", "d", &[1])])
            .collect(),
    )
    .await;
    let before = one(store, "", 1).await;
    assert_eq!(before.blocks, ids(&[3, 4]));
    assert_eq!(
        order(store, vec![update("", 1, to(TaskStatus::Completed))]).await,
        [updated(2, &[4])]
    );
    let third = one(store, "", 3).await;
    assert_eq!(
        (&third.blocked_by, &third.waits_for, third.version),
        (&ids(&[1, 2]), &ids(&[2]), 1)
    );
    assert_eq!(
        order(store, vec![update("", 2, to(TaskStatus::Completed))]).await,
        [updated(2, &[3])]
    );
    assert_eq!(
        order(store, vec![update("", 1, to(TaskStatus::Pending))]).await,
        [updated(3, &[1])]
    );
    assert_eq!(one(store, "", 3).await.waits_for, ids(&[1]));
    let unblock = |id| TaskChange {
        unblock_from: ids(&[id]),
        ..TaskChange::default()
    };
    let block = |id| TaskChange {
        block_on: ids(&[id]),
        ..TaskChange::default()
    };
    let done = order(
        store,
        vec![
            update("", 3, unblock(1)),
            update("", 3, unblock(1)),
            update("", 4, block(3)),
        ],
    )
    .await;
    assert_eq!(done, [updated(2, &[3]), updated(2, &[]), updated(2, &[])]);
    assert_eq!(
        one(store, "", 1).await.blocks,
        ids(&[4]),
        "what blocks is derived"
    );
    assert_eq!(
        one(store, "", 1).await.version,
        3,
        "one change touches one record"
    );
    let all = store
        .tasks(list(""), TaskFilter::default(), Page::first(9))
        .await
        .unwrap();
    for task in &all {
        assert_eq!(*task, one(store, "", task.id.0).await);
    }
    assert_eq!(
        all.iter()
            .map(|task| task.waits_for.clone())
            .collect::<Vec<_>>(),
        [vec![], vec![], vec![], ids(&[1, 3])]
    );
}

/// Tasks cannot wait for each other in a cycle.
pub async fn circles_are_refused(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    order(
        store,
        vec![
            create("", "a", &[]),
            create("", "b", &[1]),
            create("", "c", &[2]),
            create("", "d", &[]),
        ],
    )
    .await;
    let block = |on: &[u64]| TaskChange {
        block_on: ids(on),
        ..TaskChange::default()
    };
    let circle = |through: &[u64]| {
        Err(Refusal::Cycle {
            through: ids(through),
        })
    };
    let done = order(
        store,
        vec![
            update("", 1, block(&[1])),
            update("", 1, block(&[4, 3])),
            update("", 1, block(&[9])),
            update("", 2, block(&[3])),
            update("", 1, block(&[4])),
            update("", 4, block(&[3])),
        ],
    )
    .await;
    let missing = Err(Refusal::NoSuchTask { id: TaskId(9) });
    let wanted = [
        circle(&[1]),
        circle(&[1, 3, 2]),
        missing,
        circle(&[2, 3]),
        updated(2, &[]),
        circle(&[4, 3, 2, 1]),
    ];
    assert_eq!(done, wanted);
    assert_eq!(
        one(store, "", 1).await.blocked_by,
        ids(&[4]),
        "what is refused has changed nothing"
    );
    order(store, vec![update("", 4, to(TaskStatus::Completed))]).await;
    let done = order(store, vec![update("", 4, block(&[3]))]).await;
    assert_eq!(
        done,
        [circle(&[4, 3, 2, 1])],
        "also through what is done: it can be opened again"
    );
}

/// A deleted task keeps its number, is not listed, counts as done, and cannot be changed.
pub async fn deleted_tasks_count_as_done(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    order(store, vec![create("", "a", &[]), create("", "b", &[1])]).await;
    let gone = || Err(Refusal::NoSuchTask { id: TaskId(1) });
    let done = order(
        store,
        vec![
            update("", 1, to(TaskStatus::Deleted)),
            update("", 1, to(TaskStatus::Pending)),
            claim("", 1),
            create("", "c", &[1]),
        ],
    )
    .await;
    assert_eq!(
        done,
        [
            updated(2, &[2]),
            gone(),
            gone(),
            Ok(Done::TaskCreated(TaskId(3)))
        ]
    );
    let (second, third) = (one(store, "", 2).await, one(store, "", 3).await);
    assert_eq!((second.blocked_by, second.waits_for), (ids(&[1]), vec![]));
    assert_eq!((third.blocked_by, third.waits_for), (ids(&[1]), vec![]));
    assert_eq!(one(store, "", 1).await.status, TaskStatus::Deleted);
    order(store, vec![update("", 3, to(TaskStatus::Deleted))]).await;
    assert_eq!(
        order(store, vec![create("", "d", &[])]).await,
        [Ok(Done::TaskCreated(TaskId(4)))]
    );
    let listed = store
        .tasks(list(""), TaskFilter::default(), Page::first(9))
        .await
        .unwrap();
    assert_eq!(
        listed.iter().map(|task| task.id.0).collect::<Vec<_>>(),
        [2, 4]
    );
    let deleted = TaskFilter {
        status: Some(TaskStatus::Deleted),
        ..TaskFilter::default()
    };
    assert_eq!(
        store
            .tasks(list(""), deleted, Page::first(9))
            .await
            .unwrap(),
        []
    );
}

/// A task in progress is changed by its owner, the lead and the person; an owner belongs to the
/// team.
pub async fn tasks_are_changed_by_who_may(open: Open<'_>) {
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
            join("web", "bob", 3),
            create("web", "a", &[]),
        ],
    )
    .await;
    let owned_by = |owner: Option<&str>| TaskChange {
        owner: Some(owner.map(Into::into)),
        ..TaskChange::default()
    };
    let owner = async || {
        one(store, "web", 1)
            .await
            .owner
            .map(|owner| (owner.name, owner.agent))
    };
    // In progress without an owner: the caller becomes the owner.
    assert_eq!(
        act(store, 2, update("web", 1, to(TaskStatus::InProgress))).await,
        updated(2, &[])
    );
    assert_eq!(owner().await, Some(("ann".into(), Some(super::agent(2)))));
    let hers = || {
        Err(Refusal::AlreadyClaimed {
            id: TaskId(1),
            by: "ann".into(),
        })
    };
    for change in [
        to(TaskStatus::Completed),
        to(TaskStatus::Deleted),
        owned_by(None),
        owned_by(Some("bob")),
    ] {
        assert_eq!(act(store, 3, update("web", 1, change)).await, hers());
    }
    let words = TaskChange {
        subject: Some("b".into()),
        ..to(TaskStatus::InProgress)
    };
    assert_eq!(
        act(store, 3, update("web", 1, words)).await,
        updated(3, &[]),
        "the status stays"
    );
    // Unowned and pending again.
    assert_eq!(
        act(store, 1, update("web", 1, owned_by(None))).await,
        updated(4, &[1])
    );
    assert_eq!(one(store, "web", 1).await.status, TaskStatus::Pending);
    let nobody = Err(Refusal::NoSuchRecipient { to: "eve".into() });
    assert_eq!(
        act(store, 1, update("web", 1, owned_by(Some("eve")))).await,
        nobody
    );
    assert_eq!(
        act(store, 1, update("web", 1, owned_by(Some("bob")))).await,
        updated(5, &[])
    );
    assert_eq!(owner().await, Some(("bob".into(), Some(super::agent(3)))));
    assert_eq!(
        one(store, "web", 1).await.status,
        TaskStatus::Pending,
        "it is to do it"
    );
    assert_eq!(
        act(store, 3, update("web", 1, to(TaskStatus::InProgress))).await,
        updated(6, &[])
    );
    assert_eq!(
        order(store, vec![update("web", 1, to(TaskStatus::Completed))]).await,
        [updated(7, &[])]
    );
    // In the session's list the owner is known by its path.
    order(store, vec![create("", "a", &[])]).await;
    assert_eq!(
        act(store, 2, update("", 1, to(TaskStatus::InProgress))).await,
        updated(2, &[])
    );
    assert_eq!(one(store, "", 1).await.owner.unwrap().name, "/main");
}
