//! Tests of the model itself: promises that no other test observes.

use posse_port::store::{
    Address, AgentState, Epoch, NewTask, Op, Operation, Order, Refusal, StateChange, Step,
    TakenMail, Wake,
};
use posse_protocol::{EntryKind, ListId, MailId, MailKind, TaskId, TaskStatus};
use uuid::Uuid;

use super::{Fate, Life, Model};
use crate::store_contract::{agent, birth, entry, realm, step};

fn list() -> ListId {
    ListId {
        realm: realm(),
        team: None,
    }
}

fn order(model: &mut Model, op: Op) {
    let results = model.operate(&Order {
        realm: realm(),
        ops: vec![op],
        at_ms: 1,
    });
    assert!(results[0].is_ok(), "{results:?}");
}

fn doing(number: u64, epoch: u64, op: Op) -> Step {
    Step {
        operations: vec![Operation { call: None, op }],
        ..step(number, epoch)
    }
}

fn letter(to: u64) -> Op {
    let (id, to) = (MailId::from(Uuid::from_u128(1)), Address::Agent(agent(to)));
    Op::Send {
        id,
        to,
        kind: MailKind::Text,
        summary: String::new(),
        body: "hello".into(),
    }
}

fn claim() -> Op {
    Op::Claim {
        team: None,
        id: TaskId(1),
    }
}

/// Two hosts with an agent each, and a task that the first agent does.
fn at_work() -> (Model, [super::HostNumber; 2]) {
    let mut model = Model::default();
    let hosts = [model.open(), model.open()];
    order(
        &mut model,
        Op::CreateTask {
            team: None,
            task: Box::new(NewTask::default()),
        },
    );
    for (host, number) in hosts.into_iter().zip(1..) {
        model.commit(host, &birth(number)).unwrap();
    }
    assert!(
        model
            .commit(hosts[0], &doing(1, 1, claim()))
            .unwrap()
            .results[0]
            .is_ok()
    );
    (model, hosts)
}

#[test]
fn what_a_dead_host_held_is_free_at_once() {
    let (mut model, [first, second]) = at_work();
    model.die(first);
    let task = model.task(&list(), TaskId(1)).unwrap();
    assert_eq!(
        (task.status, task.owner, task.lost_by.as_deref()),
        (TaskStatus::Pending, None, Some("/main"))
    );
    assert_eq!(model.commit(first, &step(1, 1)), Err(Fate::Fenced));
    let told = model.woken(second);
    assert!(
        told.contains(&Wake::Tasks(list()))
            && told.iter().any(|wake| matches!(wake, Wake::Died(_)))
    );
    assert_eq!(model.take(second, agent(1)), Ok(Epoch(3)));
}

#[test]
fn a_stalled_host_loses_what_it_held_when_somebody_wants_it() {
    let (mut model, [first, second]) = at_work();
    model.stall(first);
    model.resume(first);
    assert_eq!(model.take(second, agent(1)), Err(Fate::Held));
    model.stall(first);
    assert!(
        model.commit(first, &step(1, 1)).is_ok(),
        "nobody has missed it"
    );
    assert!(model.commit(second, &doing(2, 1, claim())).unwrap().results[0].is_ok());
    assert_eq!(model.life(first), Life::Fenced);
    assert_eq!(model.commit(first, &step(1, 1)), Err(Fate::Fenced));
    assert_eq!(model.commit(first, &birth(3)), Err(Fate::Fenced));
    assert_eq!(model.take(first, agent(1)), Err(Fate::Fenced));
    assert!(model.woken(first).contains(&Wake::Fenced));
}

#[test]
fn mail_waits_until_an_entry_shows_it() {
    let (mut model, [first, second]) = at_work();
    model.woken(second);
    model.commit(first, &doing(1, 1, letter(2))).unwrap();
    assert_eq!(
        model.woken(second).into_iter().collect::<Vec<_>>(),
        [Wake::Mail(agent(2))]
    );
    let idle = Step {
        state: Some(StateChange::UnlessMail(AgentState::Idle)),
        ..step(2, 1)
    };
    assert!(model.commit(second, &idle).unwrap().mail_waits);
    let taking = |entry| vec![TakenMail { number: 1, entry }];
    let elsewhere = Step {
        mail: taking(7),
        ..step(2, 1)
    };
    assert_eq!(model.commit(second, &elsewhere), Err(Fate::BadStep));
    let entries = vec![entry(0, EntryKind::Prompt, "hello")];
    let shows = Step {
        entries,
        mail: taking(0),
        ..idle
    };
    let shows = Step {
        id: step(2, 1).id,
        ..shows
    };
    let committed = model.commit(second, &shows);
    assert_eq!(
        committed.as_ref().map(|committed| committed.mail_waits),
        Ok(false)
    );
    assert_eq!(
        model.commit(second, &shows),
        committed,
        "the same step is the same answer"
    );
    assert_eq!(model.mail_waiting(realm(), agent(2)), 0);
}

#[test]
fn a_task_is_claimed_once() {
    let (mut model, [first, second]) = at_work();
    let again = model.commit(first, &doing(1, 1, claim())).unwrap();
    assert!(again.results[0].is_ok());
    let refused = model.commit(second, &doing(2, 1, claim())).unwrap();
    assert_eq!(
        refused.results,
        [Err(Refusal::AlreadyClaimed {
            id: TaskId(1),
            by: "/main".into()
        })]
    );
    model.release(agent(1), Epoch(1));
    assert_eq!(
        model.commit(first, &step(1, 1)),
        Err(Fate::Fenced),
        "who gave it up does not write"
    );
    assert!(model.commit(second, &doing(2, 1, claim())).unwrap().results[0].is_ok());
}
