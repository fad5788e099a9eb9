//! What hosts of a fleet write down of what they do, to be held against the database when all is over.

use posse_port::store::OpResult;
use posse_protocol::{AgentId, MailId, RealmId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Agents live in so many realms: what happens in one waits for nothing in the other.
pub const REALMS: u64 = 2;

/// A realm of the fleet.
pub fn realm(number: u64) -> RealmId {
    Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0000 + u128::from(number % REALMS)).into()
}

/// The agent in a host's place.
pub fn agent(host: u64, place: u64) -> AgentId {
    Uuid::from_u128(0x0199_0000_0000_7000_9000_0000_0000_0000 + u128::from(host << 16 | place))
        .into()
}

/// A line of a host's history. It is written before the next thing is done, so that kill -9 takes nothing of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Record {
    /// It became the agent's only writer.
    Took {
        /// The agent.
        agent: AgentId,
        /// The epoch.
        epoch: u64,
    },
    /// It is about to do something.
    Began(Began),
    /// That is done, and what came of it.
    Acknowledged {
        /// The step or order.
        id: Uuid,
        /// What came of its operations.
        results: Vec<OpResult>,
    },
    /// That is refused: none of it is done from now on.
    Refused {
        /// The step or order.
        id: Uuid,
    },
    /// Nobody knows what became of that.
    Unknown {
        /// The step or order.
        id: Uuid,
        /// What the store said.
        why: String,
    },
    /// It was told that it was taken for dead; it goes on as another host.
    Fenced,
    /// Something that must not happen.
    Trouble(String),
}

/// What is about to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Began {
    /// The step; or a name for the order.
    pub id: Uuid,
    /// Where.
    pub realm: RealmId,
    /// Who does it, with its epoch; none of an order.
    pub by: Option<(AgentId, u64)>,
    /// Numbers and checksums of entries.
    pub entries: Vec<(u64, u64)>,
    /// Mail that is shown, and by which entry.
    pub mail: Vec<(u64, u64)>,
    /// A number by which a charge is known again.
    pub charge: Option<u64>,
    /// The operations, in their order.
    pub deeds: Vec<Deed>,
}

/// An operation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Deed {
    /// A message.
    Send {
        /// Its id.
        id: MailId,
        /// Who gets it.
        to: AgentId,
    },
    /// A new task, whose subject this is.
    Create(Uuid),
    /// A claim of whatever is next.
    Claim,
    /// A task is completed.
    Complete(u64),
    /// A charge by a person, known by its number.
    Charge {
        /// Whose.
        agent: AgentId,
        /// The number.
        number: u64,
    },
}

/// A number below `below`, from a seed that is not 0.
pub fn draw(seed: &mut u64, below: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % below.max(1)
}
