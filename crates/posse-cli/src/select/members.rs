//! Finds the member that a person means.

use std::collections::HashMap;

use posse_port::closest;
use posse_port::store::{Address, AgentFilter, AgentRecord, Page, Store};
use posse_protocol::{Member, Name, Team};

use super::teams;
use crate::error::Advised;
use crate::output::tame;
use crate::present::agents;

/// A member, as people name one.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MemberArgs {
    /// Member, as name or name@team
    #[arg(value_name = "MEMBER")]
    pub(crate) member: String,
    #[command(flatten)]
    pub(crate) place: TeamArgs,
}

/// A team, if there is more than one.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TeamArgs {
    /// Team it belongs to [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) team: Option<Name>,
    #[command(flatten)]
    pub(crate) session: teams::SessionArg,
}

/// A member of a team.
#[derive(Clone, Debug)]
pub(crate) struct ChosenMember {
    pub(crate) team: Team,
    pub(crate) member: Member,
}

impl MemberArgs {
    pub(crate) async fn meant(&self, store: &dyn Store) -> anyhow::Result<ChosenMember> {
        let (name, team) = match self.member.trim().split_once('@') {
            Some((name, team)) => (name, Some(team.parse().map_err(unnamed)?)),
            None => (self.member.trim(), None),
        };
        let team = team.or_else(|| self.place.team.clone());
        let team = teams::meant(store, team.as_ref(), &self.place.session).await?;
        let left = match team.former.iter().find(|former| former.as_str() == name) {
            Some(name) => former(store, &team).await?.remove(name),
            None => None,
        };
        called(team, name).map_err(|refused| match left {
            Some(left) => {
                let advice = format!("`posse sessions show {}` shows what it did", left.agent);
                Advised { advice, ..refused }.into()
            }
            None => refused.into(),
        })
    }
}

/// Returns former members of a team by name, as far as their transcripts are here.
pub(crate) async fn former(
    store: &dyn Store,
    team: &Team,
) -> anyhow::Result<HashMap<Name, AgentRecord>> {
    let filter = AgentFilter {
        realm: Some(team.realm),
        ..AgentFilter::default()
    };
    let agents = store.agents(filter, Page::all()).await?.into_iter();
    let gone = agents.filter(|agent| {
        team.members
            .iter()
            .all(|member| member.agent != agent.agent)
    });
    let named = gone.filter_map(|agent| {
        let mut former = team.former.iter();
        let name = former.find(|name| name.as_str() == agents::name(&agent))?;
        Some((name.clone(), agent))
    });
    Ok(named.collect())
}

impl ChosenMember {
    /// Returns its mail address.
    pub(crate) fn address(&self) -> Address {
        Address::Member {
            team: self.team.name.clone(),
            name: self.member.name.clone(),
        }
    }

    /// Returns `name@team`.
    pub(crate) fn shown(&self) -> String {
        format!("{}@{}", self.member.name, self.team.name)
    }
}

fn unnamed(error: posse_protocol::BadName) -> Advised {
    Advised {
        what: format!("{error}"),
        advice: "a member is a name, or name@team".into(),
    }
}

/// Returns the member of this name. `team-lead` is the current lead.
pub(crate) fn called(team: Team, name: &str) -> Result<ChosenMember, Advised> {
    let is_meant = |member: &&Member| {
        member.name.as_str() == name || (name == Name::LEAD && member.agent == team.lead)
    };
    if let Some(member) = team.members.iter().find(is_meant).cloned() {
        return Ok(ChosenMember { team, member });
    }
    let names: Vec<&str> = team
        .members
        .iter()
        .map(|member| member.name.as_str())
        .collect();
    let has_left = team.former.iter().any(|former| former.as_str() == name);
    let what = match has_left {
        true => format!("{} has left team {}", tame(name), team.name),
        false => format!("there is no member {} in team {}", tame(name), team.name),
    };
    let near = closest(name, &names).filter(|_| !has_left);
    let advice = match near {
        Some(near) => format!("did you mean {near}? there are: {}", names.join(", ")),
        None => format!("there are: {}", names.join(", ")),
    };
    Err(Advised { what, advice })
}
