//! Promises about waking: each host is told what concerns it, and nothing is lost.

use std::sync::Arc;

use posse_port::store::{
    Address, Done, NewTask, Op, Operation, Order, Page, Store, TaskChange, TaskFilter, Wake,
};
use posse_protocol::{AgentId, ListId, MailKind, Takes, TaskId, TaskStatus};
use uuid::Uuid;

use super::{Open, agent, birth, fate, realm, step};

/// Waits until a host is woken.
pub async fn told(store: &dyn Store, wanted: &Wake) {
    told_some(store, |wake| wake == wanted).await;
}

async fn told_some(store: &dyn Store, wanted: impl Fn(&Wake) -> bool) -> Wake {
    loop {
        if let Some(wake) = store.woken().await.unwrap().into_iter().find(&wanted) {
            return wake;
        }
    }
}

/// Listens briefly, and gives up.
async fn listen_and_give_up(store: &dyn Store) {
    tokio::select! {
        biased;
        woken = store.woken() => panic!("{woken:?}"),
        () = std::future::ready(()) => {}
    }
}

fn order(op: Op) -> Order {
    Order {
        realm: realm(),
        ops: vec![op],
        at_ms: 20,
    }
}

fn send(to: AgentId) -> Op {
    let id = Uuid::now_v7().into();
    Op::Send {
        id,
        to: Address::Agent(to),
        kind: MailKind::Text,
        summary: "word".into(),
        body: "hello".into(),
    }
}

fn create() -> Op {
    let task = NewTask {
        subject: "do it".into(),
        ..NewTask::default()
    };
    Op::CreateTask {
        team: None,
        task: Box::new(task),
    }
}

/// The list of the session.
fn list() -> ListId {
    ListId {
        realm: realm(),
        team: None,
    }
}

/// Two hosts: the first holds agents 1 and 3, the second agent 2.
async fn two(open: Open<'_>) -> (Arc<dyn Store>, Arc<dyn Store>) {
    let (first, second) = (open(), open());
    first.commit(birth(1)).await.unwrap();
    first.commit(birth(3)).await.unwrap();
    second.commit(birth(2)).await.unwrap();
    (first, second)
}

/// Mail wakes the host that holds the recipient, for any sender.
pub async fn mail_wakes_the_host_of_its_recipient(open: Open<'_>) {
    let (first, second) = two(open).await;
    let mut step = step(1, 1);
    step.operations = [2, 3]
        .map(|to| Operation {
            call: None,
            op: send(agent(to)),
        })
        .into();
    let results = first.commit(step).await.unwrap().results;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    told(second.as_ref(), &Wake::Mail(agent(2))).await;
    told(first.as_ref(), &Wake::Mail(agent(3))).await;
    // A host that holds nothing can send too.
    let result = open().operate(order(send(agent(1)))).await.unwrap();
    assert!(matches!(result[..], [Ok(Done::Sent(_))]), "{result:?}");
    told(first.as_ref(), &Wake::Mail(agent(1))).await;
}

/// Mail that waits when an agent is taken wakes the new holder.
pub async fn mail_that_waits_is_told_to_who_takes_the_agent(open: Open<'_>) {
    let (first, second) = two(open).await;
    let taken = first.take(agent(1)).await.unwrap();
    first.release(agent(1), taken.epoch).await.unwrap();
    let result = first.operate(order(send(agent(1)))).await.unwrap();
    assert!(matches!(result[..], [Ok(Done::Sent(_))]), "{result:?}");
    assert_eq!(second.take(agent(1)).await.unwrap().mail, 1);
    told(second.as_ref(), &Wake::Mail(agent(1))).await;
}

/// A task that becomes claimable wakes the hosts of those who may claim it.
pub async fn a_claimable_task_wakes_the_hosts_of_its_members(open: Open<'_>) {
    let (first, second) = two(open).await;
    let result = open().operate(order(create())).await.unwrap();
    assert!(
        matches!(result[..], [Ok(Done::TaskCreated(_))]),
        "{result:?}"
    );
    told(first.as_ref(), &Wake::Tasks(list())).await;
    told(second.as_ref(), &Wake::Tasks(list())).await;
}

/// The tasks of a host that leaves are pending, and the others are woken.
pub async fn the_tasks_of_a_host_that_leaves_are_pending(open: Open<'_>) {
    let (first, second) = two(open).await;
    first.operate(order(create())).await.unwrap();
    told(second.as_ref(), &Wake::Tasks(list())).await;
    told(first.as_ref(), &Wake::Tasks(list())).await;
    let mut claim = step(2, 1);
    claim.operations = vec![Operation {
        call: None,
        op: Op::ClaimNext {
            team: None,
            takes: Takes::Any,
        },
    }];
    let results = second.commit(claim).await.unwrap().results;
    assert!(matches!(results[..], [Ok(Done::Claimed(_))]), "{results:?}");
    drop(second);
    told(first.as_ref(), &Wake::Tasks(list())).await;
    let pending = TaskFilter {
        status: Some(TaskStatus::Pending),
        ..TaskFilter::default()
    };
    let tasks = first.tasks(list(), pending, Page::first(10)).await.unwrap();
    assert_eq!(tasks.len(), 1);
    assert!(tasks[0].owner.is_none(), "{tasks:?}");
}

/// The others are told of a host that leaves, and everything it held is free.
pub async fn a_host_that_leaves_is_told(open: Open<'_>) {
    let (first, second) = two(open).await;
    let before = second.take(agent(2)).await.unwrap().epoch;
    drop(second);
    let died = told_some(first.as_ref(), |wake| matches!(wake, Wake::Died(_))).await;
    assert!(first.read(agent(2)).await.unwrap().record.holder.is_none());
    let after = first.take(agent(2)).await.unwrap().epoch;
    assert!(after > before, "{after:?}");
    assert_eq!(fate(&first.commit(step(2, before.0)).await), "fenced");
    assert_eq!(fate(&first.commit(step(2, after.0)).await), "ok");
    // Another that comes and goes is another host.
    let third = open();
    third.commit(birth(4)).await.unwrap();
    drop(third);
    told_some(first.as_ref(), |wake| {
        matches!(wake, Wake::Died(_)) && *wake != died
    })
    .await;
}

/// Cancelled listening loses nothing, before and after an event.
pub async fn listening_that_is_given_up_loses_nothing(open: Open<'_>) {
    let (first, second) = two(open).await;
    listen_and_give_up(first.as_ref()).await;
    // A call that was never polled.
    drop(first.woken());
    drop(second);
    drop(first.woken());
    told_some(first.as_ref(), |wake| matches!(wake, Wake::Died(_))).await;
}

/// An assigned task wakes its owner's host when it can be begun: at once, or when its blockers are
/// done; so does one that others may take now.
pub async fn a_given_task_wakes_when_it_is_ready(open: Open<'_>) {
    let (first, second) = two(open).await;
    let blocked = NewTask {
        blocked_by: vec![TaskId(1)],
        ..NewTask::default()
    };
    let blocked = Op::CreateTask {
        team: None,
        task: Box::new(blocked),
    };
    let heard = async |op: Op| {
        let result = first.operate(order(op)).await.unwrap();
        assert!(result[0].is_ok(), "{result:?}");
        told(second.as_ref(), &Wake::Tasks(list())).await;
    };
    let change = |id, change| Op::UpdateTask {
        team: None,
        id: TaskId(id),
        expect: None,
        change: Box::new(change),
    };
    heard(create()).await;
    first.operate(order(blocked)).await.unwrap();
    // All have the path `/main`; the youngest is the third.
    let give = TaskChange {
        owner: Some(Some("/main".into())),
        ..TaskChange::default()
    };
    heard(change(1, give.clone())).await;
    first.operate(order(change(2, give))).await.unwrap();
    let role = TaskChange {
        role: Some("dev".into()),
        ..TaskChange::default()
    };
    heard(change(1, role)).await;
    heard(change(
        1,
        TaskChange {
            status: Some(TaskStatus::Completed),
            ..TaskChange::default()
        },
    ))
    .await;
}
