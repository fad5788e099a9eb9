//! Short ways to say what is explored. Names are made once: millions of steps use them.

use std::sync::LazyLock;

use posse_port::store::{Address, AgentState, Epoch, Op, StateChange, Step, StepId, TaskChange};
use posse_protocol::{AgentId, ListId, MailId, MailKind, RealmId, TaskId, TaskStatus};
use posse_testkit::store_contract;
use uuid::Uuid;

use super::sketch::AGENTS;

static REALM: LazyLock<RealmId> = LazyLock::new(store_contract::realm);
static IDS: LazyLock<[AgentId; AGENTS]> =
    LazyLock::new(|| std::array::from_fn(|at| store_contract::agent(at as u64 + 1)));

pub(super) fn realm() -> RealmId {
    *REALM
}

pub(super) fn list() -> ListId {
    ListId {
        realm: realm(),
        team: None,
    }
}

/// An agent by its number, from 0.
pub(super) fn agent(number: usize) -> AgentId {
    IDS[number]
}

/// The number of an agent.
pub(super) fn number(agent: AgentId) -> usize {
    IDS.iter().position(|id| *id == agent).unwrap()
}

/// What an agent writes.
pub(super) fn words(sender: usize) -> &'static str {
    ["from a;", "from b;", "from c;"][sender]
}

/// A step that does nothing yet. Its id is that of all others: what was last is forgotten.
pub(super) fn step(number: usize, epoch: u64) -> Step {
    Step {
        id: StepId(Uuid::nil()),
        ..Step::new(realm(), agent(number), Epoch(epoch), 0)
    }
}

pub(super) fn idle(step: Step) -> Step {
    Step {
        state: Some(StateChange::UnlessMail(AgentState::Idle)),
        ..step
    }
}

/// Changes the status of a task.
pub(super) fn operation(id: TaskId, status: TaskStatus) -> Op {
    let change = Box::new(TaskChange {
        status: Some(status),
        ..TaskChange::default()
    });
    Op::UpdateTask {
        team: None,
        id,
        expect: None,
        change,
    }
}

pub(super) fn letter(from: usize, to: usize) -> Op {
    Op::Send {
        id: MailId::from(Uuid::from_u128(from as u128)),
        to: Address::Agent(agent(to)),
        kind: MailKind::Text,
        summary: String::new(),
        body: words(from).to_owned(),
    }
}
