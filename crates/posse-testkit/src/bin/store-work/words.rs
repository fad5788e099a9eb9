//! Builders of agents and operations for measuring, all of one realm.

use posse_port::store::{Address, Epoch, NewTask, Op, Operation, Order, Step, Store};
use posse_protocol::{AgentId, MailId, MailKind, Name, Takes};
use posse_testkit::store_contract::{birth, realm};
use uuid::Uuid;

use crate::Failed;

/// A new agent of the realm.
pub(crate) async fn newborn(store: &dyn Store) -> Result<AgentId, Failed> {
    let agent = AgentId::within(realm(), Uuid::now_v7());
    store
        .commit(Step {
            birth: birth(1).birth,
            ..blank(agent)
        })
        .await?;
    Ok(agent)
}

/// A step that does nothing yet.
pub(crate) fn blank(agent: AgentId) -> Step {
    Step::new(realm(), agent, Epoch(1), 10)
}

/// A step with one operation.
pub(crate) fn doing(agent: AgentId, op: Op) -> Step {
    Step {
        operations: vec![Operation { call: None, op }],
        ..blank(agent)
    }
}

/// A message.
pub(crate) fn send(to: AgentId, body: String) -> Op {
    let (id, kind) = (MailId::from(Uuid::now_v7()), MailKind::Text);
    Op::Send {
        id,
        to: Address::Agent(to),
        kind,
        summary: "a word".into(),
        body,
    }
}

/// A claim in a list.
pub(crate) fn claim(list: Option<&Name>) -> Op {
    Op::ClaimNext {
        team: list.cloned(),
        takes: Takes::Any,
    }
}

/// Adds N tasks to a list, a few thousand per transaction.
pub(crate) async fn add_tasks(
    store: &dyn Store,
    list: Option<&Name>,
    count: u64,
) -> Result<(), Failed> {
    let mut left = count;
    while left > 0 {
        let some = left.min(5000);
        let task = || Op::CreateTask {
            team: list.cloned(),
            task: Box::new(NewTask {
                subject: "a task with a subject of the usual length".into(),
                description: "And a description, which is as a rule a little longer than that."
                    .into(),
                ..NewTask::default()
            }),
        };
        let ops = (0..some).map(|_| task()).collect();
        for result in store
            .operate(Order {
                realm: realm(),
                ops,
                at_ms: 5,
            })
            .await?
        {
            result?;
        }
        left -= some;
    }
    Ok(())
}
