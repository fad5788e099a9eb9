//! Finds recipients of mail: members of a team, or agents of a session.

use std::collections::BTreeMap;

use posse_port::store::{AgentFilter, Page, Store};
use posse_protocol::{AgentId, Name, RealmId};

use super::{members, sessions, team_choice, teams};
use crate::error::Advised;
use crate::output::tame;
use crate::present::agents::shown_name;

/// Among whom names are looked for.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RecipientArgs {
    /// Look among the members of this team
    #[arg(long, global = true, value_name = "NAME", help_heading = "Recipients")]
    pub(crate) team: Option<Name>,
    /// Session to look in; a unique prefix of its ID is enough [default: the last one used in this
    /// directory]
    #[arg(long, global = true, value_name = "ID", help_heading = "Recipients")]
    pub(crate) session: Option<String>,
}

/// Minimum length of a prefix of an id.
const SHORTEST: usize = 8;

/// Stands for all members of a team.
pub(crate) const ALL: &str = "*";

/// Splits `name@team`.
pub(crate) fn address(to: &str) -> Result<(String, Option<Name>), Advised> {
    let to = to.trim();
    match to.split_once('@') {
        None => Ok((to.to_owned(), None)),
        Some((name, team)) => {
            let team = team.parse().map_err(|error| Advised {
                what: format!("{error}"),
                advice: "an address is a name, name@team, or an agent's id".into(),
            })?;
            Ok((name.to_owned(), Some(team)))
        }
    }
}

/// A possible recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MailRecipient {
    pub(crate) agent: AgentId,
    /// Its name in the team or session, else its path.
    pub(crate) name: String,
    /// Its path; `None` for members.
    pub(crate) path: Option<String>,
}

/// All possible recipients.
pub(crate) struct Recipients {
    pub(crate) realm: RealmId,
    pub(crate) team: Option<Name>,
    pub(crate) all: Vec<MailRecipient>,
}

impl Recipients {
    pub(crate) async fn of(store: &dyn Store, place: &RecipientArgs) -> anyhow::Result<Self> {
        let named = match (&place.team, &place.session) {
            (Some(name), session) => {
                let session = teams::SessionArg {
                    session: session.clone(),
                };
                Some(teams::meant(store, Some(name), &session).await?)
            }
            (None, Some(session)) => team_choice::imported(store, session).await?,
            (None, None) => None,
        };
        if let Some(found) = named {
            let member = |it: &posse_protocol::Member| MailRecipient {
                agent: it.agent,
                name: it.name.to_string(),
                path: None,
            };
            let all = found.members.iter().map(member).collect();
            return Ok(Self {
                realm: found.realm,
                team: Some(found.name),
                all,
            });
        }
        let found = sessions::meant(store, place.session.as_deref()).await;
        let realm = found
            .map_err(|error| match place.session {
                Some(_) => error,
                None => error.context(Advised {
                    what: "no team or session given".into(),
                    advice: "use --team NAME for a team's mail, --session ID for that of a \
                             session's agents"
                        .into(),
                }),
            })?
            .realm;
        let agents = store
            .agents(
                AgentFilter {
                    realm: Some(realm),
                    ..AgentFilter::default()
                },
                Page::all(),
            )
            .await?;
        let all = agents.into_iter().map(|it| {
            let name = it
                .origin
                .and_then(|origin| origin.name)
                .map(|name| name.to_string());
            MailRecipient {
                agent: it.agent,
                name: name.unwrap_or_else(|| it.path.clone()),
                path: Some(it.path),
            }
        });
        let all = all.collect();
        Ok(Self {
            realm,
            team: None,
            all,
        })
    }

    /// Adds the members that have left the team: nobody can write to them, but their mail can be
    /// read.
    pub(crate) async fn with_former(mut self, store: &dyn Store) -> anyhow::Result<Self> {
        let teams = store.teams(Some(self.realm), Page::all()).await?;
        let mut teams = teams.iter();
        if let Some(team) = teams.find(|team| Some(&team.name) == self.team.as_ref()) {
            let former = members::former(store, team).await?;
            let former: BTreeMap<_, _> = former.into_iter().collect();
            let former = former.into_iter().map(|(name, agent)| MailRecipient {
                agent: agent.agent,
                name: name.to_string(),
                path: None,
            });
            self.all.extend(former);
        }
        Ok(self)
    }

    /// Returns the recipients that are meant: one, or with `*` all of a team.
    pub(crate) fn meant(&self, name: &str) -> Result<Vec<MailRecipient>, Advised> {
        match (name, &self.team) {
            (ALL, Some(_)) => Ok(self.all.clone()),
            (ALL, None) => Err(Advised {
                what: "`*` means all of a team".into(),
                advice: "choose one: --team NAME, or '*@NAME'".into(),
            }),
            (name, _) => self.called(name).cloned().map(|one| vec![one]),
        }
    }

    /// Returns the recipient with this name or prefix of its id.
    pub(crate) fn called(&self, name: &str) -> Result<&MailRecipient, Advised> {
        let lower = name.to_ascii_lowercase();
        let by_id = |it: &&MailRecipient| {
            lower.len() >= SHORTEST && it.agent.to_string().starts_with(&lower)
        };
        let is_called = |it: &&MailRecipient| it.name == name || it.path.as_deref() == Some(name);
        let is_shown_as = |it: &&MailRecipient| shown_name(&it.name) == name;
        // The exact name first, then the one that lists show, then an ID.
        let mut found: Vec<&MailRecipient> = self.all.iter().filter(is_called).collect();
        if found.is_empty() {
            found = self.all.iter().filter(is_shown_as).collect();
        }
        if found.is_empty() {
            found = self.all.iter().filter(by_id).collect();
        }
        if let [one] = found[..] {
            return Ok(one);
        }
        let listed = self
            .all
            .iter()
            .take(20)
            .map(|it| format!("\n  {}  {}", it.agent, tame(&it.name)));
        let who = match &self.team {
            Some(team) => format!("in team {team}"),
            None => "in the session".into(),
        };
        let what = if found.is_empty() {
            "there is no agent named"
        } else {
            "there are several agents named"
        };
        Err(Advised {
            what: format!("{what} {} {who}", tame(name)),
            advice: format!("there are:{}", listed.collect::<String>()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_name_its_team() {
        assert_eq!(address("alice").unwrap(), ("alice".into(), None));
        assert_eq!(
            address("alice@parser").unwrap(),
            ("alice".into(), Some("parser".parse().unwrap()))
        );
        assert!(address("alice@../x").is_err());
    }
}
