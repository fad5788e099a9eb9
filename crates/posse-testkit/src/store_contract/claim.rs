//! Promises about claims.

use posse_port::store::{
    Done, NewTask, Op, OpResult, Page, Ready, Refusal, TaskChange, TaskFilter,
};
use posse_protocol::{Owner, Takes, Task, TaskId, TaskStatus};

use super::Open;
use super::words::{
    act, acts, agent, birth, child, claim, create, create_team, join, list, name, order, update,
};

fn claimed(result: OpResult) -> Task {
    match result {
        Ok(Done::Claimed(task)) => *task,
        other => panic!("not claimed: {other:?}"),
    }
}

fn next(team: &str) -> Op {
    Op::ClaimNext {
        team: team.parse().ok(),
        takes: Takes::Any,
    }
}

fn taking(team: &str, unmarked: bool, roles: &[&str]) -> Op {
    let roles = roles.iter().copied().map(Into::into).collect();
    Op::ClaimNext {
        team: team.parse().ok(),
        takes: Takes::Only { unmarked, roles },
    }
}

fn to(status: TaskStatus) -> TaskChange {
    TaskChange {
        status: Some(status),
        ..TaskChange::default()
    }
}

/// Exactly one of any number of claimers gets a task; the others are told why not.
pub async fn a_claim_is_granted_to_one(open: Open<'_>) {
    let stores: Vec<_> = (0..4).map(|_| open()).collect();
    for (number, store) in (1..).zip(&stores) {
        store.commit(birth(number)).await.unwrap();
    }
    let store = stores[0].as_ref();
    let made = (0..50)
        .map(|number| create("web", &number.to_string(), &[]))
        .chain([create("web", "last", &[1])]);
    order(
        store,
        [create_team("web", 1), join("web", "ann", 2)]
            .into_iter()
            .chain(made)
            .collect(),
    )
    .await;
    // All are called before the first is awaited, on separate hosts.
    let mut claims = Vec::new();
    for id in 1..=50 {
        for (number, store) in (1..).zip(&stores) {
            claims.push((
                id,
                number,
                store.commit(acts(number, 1, vec![claim("web", id)])),
            ));
        }
    }
    let mut winners = [0; 51];
    for (id, number, commit) in claims {
        match commit.await.unwrap().results.remove(0) {
            Ok(Done::Claimed(task)) => {
                assert_eq!(
                    (task.owner.unwrap().agent, winners[id as usize]),
                    (Some(agent(number)), 0)
                );
                winners[id as usize] = number;
            }
            Err(Refusal::AlreadyClaimed { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(winners[1..].iter().all(|winner| *winner > 0));

    order(
        store,
        vec![
            update("web", 1, to(TaskStatus::Pending)),
            update("web", 2, to(TaskStatus::Pending)),
        ],
    )
    .await;
    let free = TaskChange {
        owner: Some(None),
        ..TaskChange::default()
    };
    order(
        store,
        vec![update("web", 1, free.clone()), update("web", 2, free)],
    )
    .await;
    let first = claimed(act(stores[1].as_ref(), 2, claim("web", 1)).await);
    assert_eq!(
        first.owner,
        Some(Owner {
            agent: Some(agent(2)),
            name: "ann".into()
        })
    );
    assert_eq!(
        (first.status, first.blocks.as_slice()),
        (TaskStatus::InProgress, [TaskId(51)].as_slice())
    );
    assert_eq!(
        store.task(list("web"), TaskId(1)).await.unwrap(),
        Some(first.clone())
    );
    assert_eq!(
        claimed(act(stores[1].as_ref(), 2, claim("web", 1)).await),
        first,
        "what one has is granted"
    );
    let refused = order(
        store,
        vec![
            claim("web", 1),
            claim("web", 51),
            claim("web", 99),
            claim("wep", 1),
        ],
    )
    .await;
    let wanted = [
        Err(Refusal::AlreadyClaimed {
            id: TaskId(1),
            by: "ann".into(),
        }),
        Err(Refusal::Blocked {
            id: TaskId(51),
            by: vec![TaskId(1)],
        }),
        Err(Refusal::NoSuchTask { id: TaskId(99) }),
        Err(Refusal::NoSuchTeam { team: name("wep") }),
    ];
    assert_eq!(refused, wanted);
    act(
        stores[1].as_ref(),
        2,
        update("web", 1, to(TaskStatus::Completed)),
    )
    .await
    .unwrap();
    assert_eq!(
        act(store, 1, claim("web", 1)).await,
        Err(Refusal::AlreadyCompleted { id: TaskId(1) })
    );
    let users = claimed(order(store, vec![claim("web", 2)]).await.remove(0));
    assert_eq!(
        users.owner,
        Some(Owner {
            agent: None,
            name: "user".into()
        })
    );
    assert_eq!(
        claimed(order(store, vec![claim("web", 2)]).await.remove(0)),
        users
    );
}

/// The next task is the one with the lowest number that is pending, unowned, and not blocked.
pub async fn the_lowest_claimable_number_is_next(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    store.commit(birth(1)).await.unwrap();
    order(
        store,
        vec![
            create("", "done", &[]),
            create("", "assigned", &[]),
            create("", "waits", &[]),
            create("", "first", &[]),
            create("", "second", &[]),
            update("", 1, to(TaskStatus::Completed)),
            update(
                "",
                3,
                TaskChange {
                    block_on: vec![TaskId(4)],
                    ..TaskChange::default()
                },
            ),
            update(
                "",
                2,
                TaskChange {
                    owner: Some(Some("user".into())),
                    ..TaskChange::default()
                },
            ),
        ],
    )
    .await;
    assert_eq!(claimed(act(store, 1, next("")).await).id, TaskId(4));
    act(store, 1, update("", 4, to(TaskStatus::Completed)))
        .await
        .unwrap();
    let ids: Vec<_> = [act(store, 1, next("")).await, act(store, 1, next("")).await]
        .map(claimed)
        .map(|it| it.id.0)
        .into();
    assert_eq!(ids, [3, 5]);
    assert_eq!(act(store, 1, next("")).await, Err(Refusal::NothingToClaim));
    assert_eq!(
        act(store, 1, next("web")).await,
        Err(Refusal::NoSuchTeam { team: name("web") })
    );
}

/// Tasks that an agent was doing are pending again when its host has left or has released it, with
/// a note of their former owner.
pub async fn a_task_of_a_host_that_left_is_free(open: Open<'_>) {
    let (first, second) = (open(), open());
    for number in 1..=2 {
        first.commit(birth(number)).await.unwrap();
    }
    second.commit(birth(3)).await.unwrap();
    order(
        first.as_ref(),
        vec![
            create_team("web", 1),
            join("web", "ann", 2),
            join("web", "bob", 3),
        ],
    )
    .await;
    order(
        first.as_ref(),
        (0..4).map(|_| create("web", "a", &[])).collect(),
    )
    .await;
    for id in [1, 2, 4] {
        claimed(act(first.as_ref(), 2, claim("web", id)).await);
    }
    claimed(act(first.as_ref(), 1, claim("web", 3)).await);
    act(
        first.as_ref(),
        2,
        update("web", 4, to(TaskStatus::Completed)),
    )
    .await
    .unwrap();
    first
        .release(agent(1), posse_port::store::Epoch(1))
        .await
        .unwrap();
    let third = second.task(list("web"), TaskId(3)).await.unwrap().unwrap();
    assert_eq!(
        (third.status, third.owner, third.lost_by),
        (TaskStatus::Pending, None, Some("team-lead".into()))
    );
    let taken = act(second.as_ref(), 3, claim("web", 1)).await;
    assert_eq!(
        taken,
        Err(Refusal::AlreadyClaimed {
            id: TaskId(1),
            by: "ann".into()
        })
    );
    drop(first);
    let task = claimed(act(second.as_ref(), 3, claim("web", 1)).await);
    assert_eq!(
        (task.owner.unwrap().name.as_str(), task.lost_by),
        ("bob", None)
    );
    let tasks = second
        .tasks(list("web"), TaskFilter::default(), Page::first(9))
        .await
        .unwrap();
    assert_eq!(
        (tasks[1].status, tasks[1].lost_by.as_deref()),
        (TaskStatus::Pending, Some("ann"))
    );
    assert_eq!(
        (tasks[3].status, &tasks[3].lost_by),
        (TaskStatus::Completed, &None)
    );
    assert_eq!(
        [2, 3].map(TaskId),
        [
            act(second.as_ref(), 3, next("web")).await,
            act(second.as_ref(), 3, next("web")).await
        ]
        .map(claimed)
        .map(|it| it.id)
    );
}

/// The next task of an agent is the lowest that is its own or that its role takes.
pub async fn roles_say_who_takes_what(open: Open<'_>) {
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
        ],
    )
    .await;
    let marks = ["doc", "", "dev", "dev", "", "doc", "dev", "test"];
    for role in marks {
        let task = NewTask {
            role: Some(role.into()),
            ..NewTask::default()
        };
        order(
            store,
            vec![Op::CreateTask {
                team: Some(name("web")),
                task: Box::new(task),
            }],
        )
        .await;
    }
    let give = |called: &str| TaskChange {
        owner: Some(Some(called.into())),
        ..TaskChange::default()
    };
    order(
        store,
        vec![update("web", 6, give("ann")), update("web", 8, give("bob"))],
    )
    .await;
    let ready = async |number: Option<u64>, takes: &Takes, after| {
        let ready = Some(Ready {
            agent: number.map(agent),
            takes: takes.clone(),
        });
        let filter = TaskFilter {
            ready,
            ..TaskFilter::default()
        };
        let page = Page::after(TaskId(after), 4);
        let found = store.tasks(list("web"), filter, page).await.unwrap();
        found.iter().map(|task| task.id.0).collect::<Vec<_>>()
    };
    let only = |unmarked, roles: &[&str]| Takes::Only {
        unmarked,
        roles: roles.iter().copied().map(Into::into).collect(),
    };
    assert_eq!(ready(Some(2), &Takes::Any, 0).await, [1, 2, 3, 4]);
    assert_eq!(ready(Some(2), &Takes::Any, 4).await, [5, 6, 7]);
    assert_eq!(ready(Some(2), &only(false, &[]), 0).await, [6], "her own");
    assert_eq!(
        ready(Some(2), &only(true, &["test"]), 0).await,
        [2, 5, 6],
        "the test is his"
    );
    assert_eq!(
        ready(Some(3), &only(false, &["dev", "doc"]), 1).await,
        [3, 4, 7, 8]
    );
    assert_eq!(
        ready(None, &only(false, &["doc"]), 0).await,
        [1],
        "nobody's own"
    );
    assert_eq!(ready(None, &Takes::Any, 4).await, [5, 7]);
    let found = async |filter: TaskFilter, limit| {
        let page = Page::first(limit);
        let found = store.tasks(list("web"), filter, page).await.unwrap();
        found.iter().map(|task| task.id.0).collect::<Vec<_>>()
    };
    let assigned = || TaskFilter {
        assigned: true,
        ..TaskFilter::default()
    };
    assert_eq!(found(assigned(), 9).await, [6, 8], "what somebody is to do");
    assert_eq!(found(assigned(), 1).await, [6]);
    assert_eq!(
        found(
            TaskFilter {
                owner: Some(agent(3)),
                ..assigned()
            },
            1
        )
        .await,
        [8]
    );
    assert_eq!(
        found(
            TaskFilter {
                status: Some(TaskStatus::InProgress),
                ..assigned()
            },
            9
        )
        .await,
        [0; 0]
    );

    let got = async |number, op| {
        act(store, number, op)
            .await
            .map(|done| claimed(Ok(done)).id.0)
    };
    let nothing = || Err(Refusal::NothingToClaim);
    assert_eq!(got(3, taking("web", false, &["dev"])).await, Ok(3));
    assert_eq!(got(2, taking("web", true, &["dev"])).await, Ok(2));
    assert_eq!(got(2, taking("web", false, &["dev", "doc"])).await, Ok(1));
    assert_eq!(
        got(2, taking("web", false, &[])).await,
        Ok(6),
        "what she was given, whatever her role"
    );
    assert_eq!(got(2, taking("web", false, &[])).await, nothing());
    assert_eq!(
        got(2, taking("web", false, &["test"])).await,
        nothing(),
        "it was given to another"
    );
    assert_eq!(got(3, next("web")).await, Ok(4));
    // An explicit claim can take any task.
    assert_eq!(got(2, claim("web", 7)).await, Ok(7));
    assert_eq!(got(3, taking("web", false, &["dev", "doc"])).await, Ok(8));
    assert_eq!(
        got(3, taking("web", false, &["dev", "doc"])).await,
        nothing()
    );
    assert_eq!(got(3, taking("web", true, &[])).await, Ok(5));
    let own = TaskFilter {
        owner: Some(agent(2)),
        ..TaskFilter::default()
    };
    let own = store.tasks(list("web"), own, Page::first(9)).await.unwrap();
    assert_eq!(
        own.iter().map(|task| task.id.0).collect::<Vec<_>>(),
        [1, 2, 6, 7]
    );
}

/// An agent completes a task with a check only by declaring that this check has passed; a person
/// may always.
pub async fn an_unchecked_task_is_not_completed(open: Open<'_>) {
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
        ],
    )
    .await;
    let make = || {
        let task = NewTask {
            check: Some("make test".into()),
            ..NewTask::default()
        };
        Op::CreateTask {
            team: Some(name("web")),
            task: Box::new(task),
        }
    };
    order(store, vec![make(), make(), make()]).await;
    act(store, 2, claim("web", 1)).await.unwrap();
    let done = |passed: Option<&str>| TaskChange {
        passed: passed.map(Into::into),
        ..to(TaskStatus::Completed)
    };
    let unchecked = |check: &str| {
        Err(Refusal::Unchecked {
            id: TaskId(1),
            check: check.into(),
        })
    };
    assert_eq!(
        act(store, 2, update("web", 1, done(None))).await,
        unchecked("make test")
    );
    assert_eq!(
        act(store, 2, update("web", 1, done(Some("make")))).await,
        unchecked("make test")
    );
    assert_eq!(
        act(store, 1, update("web", 1, done(None))).await,
        unchecked("make test"),
        "nor the lead"
    );
    // The change that needs a check cannot remove it.
    let aside = |check: &str, passed| TaskChange {
        check: Some(check.into()),
        ..done(passed)
    };
    assert_eq!(
        act(store, 1, update("web", 1, aside("", None))).await,
        unchecked("make test")
    );
    assert_eq!(
        act(store, 1, update("web", 1, aside("true", Some("true")))).await,
        unchecked("make test")
    );
    assert_eq!(
        act(store, 1, update("web", 1, aside("true", Some("make test")))).await,
        unchecked("true")
    );
    // Only the lead changes it, whether or not the task has an owner.
    let other = || TaskChange {
        check: Some("true".into()),
        ..TaskChange::default()
    };
    let none = || TaskChange {
        check: Some(String::new()),
        ..TaskChange::default()
    };
    for (number, id, change) in [
        (2, 1, other()),
        (2, 1, none()),
        (3, 1, other()),
        (3, 2, none()),
    ] {
        let stands = Err(Refusal::CheckStands { id: TaskId(id) });
        assert_eq!(
            act(store, number, update("web", id, change)).await,
            stands,
            "{number} {id}"
        );
    }
    let same = TaskChange {
        check: Some("make test".into()),
        ..TaskChange::default()
    };
    act(store, 3, update("web", 1, same)).await.unwrap();
    act(store, 1, update("web", 1, other())).await.unwrap();
    act(store, 2, update("web", 1, done(Some("true"))))
        .await
        .unwrap();
    // Anyone adds a check to a task that is pending.
    order(store, vec![create("web", "d", &[])]).await;
    act(store, 3, update("web", 4, other())).await.unwrap();
    assert_eq!(
        act(store, 3, update("web", 4, none())).await,
        Err(Refusal::CheckStands { id: TaskId(4) })
    );
    act(store, 1, update("web", 4, none())).await.unwrap();
    act(store, 3, claim("web", 4)).await.unwrap();
    assert_eq!(
        act(store, 3, update("web", 4, other())).await,
        Err(Refusal::CheckStands { id: TaskId(4) })
    );
    // In the session's list the main agent has the rights of a lead.
    store.commit(child(4, 1, "")).await.unwrap();
    order(store, vec![create("", "a", &[])]).await;
    act(store, 4, update("", 1, other())).await.unwrap();
    assert_eq!(
        act(store, 4, update("", 1, none())).await,
        Err(Refusal::CheckStands { id: TaskId(1) })
    );
    act(store, 1, update("", 1, none())).await.unwrap();
    assert!(
        order(
            store,
            vec![update("web", 2, other()), update("web", 2, none())]
        )
        .await[1]
            .is_ok()
    );
    assert!(
        order(store, vec![update("web", 3, done(None))]).await[0].is_ok(),
        "a person decides"
    );
    let completed = TaskFilter {
        status: Some(TaskStatus::Completed),
        ..TaskFilter::default()
    };
    assert_eq!(
        store
            .tasks(list("web"), completed, Page::first(9))
            .await
            .unwrap()
            .len(),
        2
    );
}
