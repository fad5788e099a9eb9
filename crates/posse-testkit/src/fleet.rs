//! The history that hosts of a fleet write of their actions, checked against the database at the
//! end.

use posse_port::store::OpResult;
use posse_protocol::{AgentId, MailId, RealmId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Number of realms the agents live in: events in one wait for nothing in the other.
pub const REALMS: u64 = 2;

/// A realm of the fleet.
pub fn realm(number: u64) -> RealmId {
    Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0000 + u128::from(number % REALMS)).into()
}

/// The agent at a host's place.
pub fn agent(host: u64, place: u64) -> AgentId {
    let number = u128::from(host << 16 | place) << 12;
    let id = Uuid::from_u128(0x0199_0000_0000_7000_9000_0000_0000_0000 + number);
    AgentId::within(realm(place), id)
}

/// A line of a host's history. It is written before the next action, so that kill -9 loses nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Record {
    /// It became the agent's only writer.
    Took {
        /// The agent.
        agent: AgentId,
        /// The epoch.
        epoch: u64,
    },
    /// It is about to act.
    Began(Began),
    /// The action is done.
    Acknowledged {
        /// The step or order.
        id: Uuid,
        /// Results of its operations.
        results: Vec<OpResult>,
    },
    /// The action was refused: nothing of it happens from now on.
    Refused {
        /// The step or order.
        id: Uuid,
    },
    /// The result of the action is unknown.
    Unknown {
        /// The step or order.
        id: Uuid,
        /// The store's error.
        why: String,
    },
    /// It was told that it was declared dead; it continues as another host.
    Fenced,
    /// An unexpected event.
    Trouble(String),
}

/// An action that is about to be performed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Began {
    /// The id of the step or order.
    pub id: Uuid,
    /// Its realm.
    pub realm: RealmId,
    /// The agent and its epoch; `None` for an order.
    pub by: Option<(AgentId, u64)>,
    /// Numbers and checksums of entries.
    pub entries: Vec<(u64, u64)>,
    /// Mail that is shown, with the entry that shows it.
    pub mail: Vec<(u64, u64)>,
    /// A number that identifies a charge.
    pub charge: Option<u64>,
    /// The operations, in order.
    pub deeds: Vec<Deed>,
}

/// An operation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Deed {
    /// A message.
    Send {
        /// Its id.
        id: MailId,
        /// The recipient.
        to: AgentId,
    },
    /// A new task with this subject.
    Create(Uuid),
    /// A claim of the next task.
    Claim,
    /// A task is completed.
    Complete(u64),
    /// A charge by a person, identified by its number.
    Charge {
        /// The agent charged.
        agent: AgentId,
        /// The number.
        number: u64,
    },
}

/// Returns a number below `below`, from a non-zero seed.
pub fn draw(seed: &mut u64, below: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % below.max(1)
}
