//! Who can have mail: the members of a team, or the agents of a session.

use posse_protocol::{AgentId, Name, RealmId};
use posse_runtime::port::store::{AgentFilter, Store};

use super::WhereArgs;
use crate::commands::{sessions, team};
use crate::hint::Advised;
use crate::output::tame;

/// The shortest beginning of an id that is taken for one.
const SHORTEST: usize = 8;

/// Somebody who can have mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recipient {
    pub(super) agent: AgentId,
    /// What it is called: its name in the team, else its path.
    pub(super) name: String,
}

/// All who can be meant, and where they are.
pub(super) struct Circle {
    pub(super) realm: RealmId,
    pub(super) team: Option<Name>,
    pub(super) all: Vec<Recipient>,
}

impl Circle {
    pub(super) async fn of(store: &dyn Store, place: &WhereArgs) -> anyhow::Result<Self> {
        if place.team.is_some() {
            let session = team::find::SessionArg { session: place.session.clone() };
            let found = team::find::meant(store, place.team.as_ref(), &session).await?;
            let member =
                |it: &posse_protocol::Member| Recipient { agent: it.agent, name: it.name.to_string() };
            let all = found.members.iter().map(member).collect();
            return Ok(Self { realm: found.realm, team: Some(found.name), all });
        }
        let found = sessions::find::meant(store, place.session.as_deref()).await;
        let realm = found
            .map_err(|error| match place.session {
                Some(_) => error,
                None => error.context(Advised {
                    what: "neither a team nor a session is named".into(),
                    advice: "--team NAME for a team's, --session ID for that of a session's agents".into(),
                }),
            })?
            .realm;
        let agents = store.agents(AgentFilter { realm: Some(realm), held: false }, usize::MAX).await?;
        let all = agents.into_iter().map(|it| Recipient { agent: it.agent, name: it.path }).collect();
        Ok(Self { realm, team: None, all })
    }

    /// The one of this name, or whose id begins so.
    pub(super) fn called(&self, name: &str) -> Result<&Recipient, Advised> {
        let lower = name.to_ascii_lowercase();
        let by_id = |it: &&Recipient| lower.len() >= SHORTEST && it.agent.to_string().starts_with(&lower);
        let named: Vec<&Recipient> = self.all.iter().filter(|it| it.name == name).collect();
        let found = if named.is_empty() { self.all.iter().filter(by_id).collect() } else { named };
        if let [one] = found[..] {
            return Ok(one);
        }
        let listed = self.all.iter().take(20).map(|it| format!("\n  {}  {}", it.agent, tame(&it.name)));
        let who = match &self.team {
            Some(team) => format!("in team {team}"),
            None => "in the session".into(),
        };
        let what = if found.is_empty() { "there is nobody called" } else { "there are several called" };
        Err(Advised {
            what: format!("{what} {} {who}", tame(name)),
            advice: format!("there are:{}", listed.collect::<String>()),
        })
    }
}
