//! Names of things that last. Ids are version 7 UUIDs: they sort by when they were made.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// The id behind the name.
            pub fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A realm: a tree of agents and all that grew from it. The unit of sharding and deletion.
    RealmId
}

id! {
    /// A question to a person. Its id follows from the call that it is about.
    QuestionId
}

id! {
    /// An agent. The id of a root agent is the id of its session.
    AgentId
}

/// The bits of an id that name its bucket.
const BUCKET: u128 = 0xfff;

fn bucket(id: Uuid) -> u16 {
    (id.as_u128() & BUCKET) as u16
}

impl RealmId {
    /// Returns the realm's bucket, one of 4,096: realms are spread over servers by it.
    pub fn bucket(self) -> u16 {
        bucket(self.0)
    }
}

impl AgentId {
    /// Makes an agent's id from a new one: its last bits are those of its realm, so that whoever
    /// has only the agent's id knows where its realm is.
    pub fn within(realm: RealmId, id: Uuid) -> Self {
        let bits = id.as_u128() & !BUCKET | u128::from(realm.bucket());
        Self(Uuid::from_u128(bits))
    }

    /// Returns the bucket that its id names. Agents that an older posse has made may name another
    /// one than that of their realm.
    pub fn bucket(self) -> u16 {
        bucket(self.0)
    }
}

id! {
    /// A message.
    MailId
}

id! {
    /// A host: one store that a process has open, and that holds agents.
    HostId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_id_ends_like_its_realms() {
        let realm = RealmId::from(Uuid::from_u128(0x1234_5678_9abc));
        let agent = AgentId::within(realm, Uuid::from_u128(u128::MAX));
        assert_eq!((agent.bucket(), realm.bucket()), (0xabc, 0xabc));
        assert_eq!(agent.uuid().as_u128() >> 12, u128::MAX >> 12);
    }
}
