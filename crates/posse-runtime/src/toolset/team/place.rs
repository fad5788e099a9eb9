//! Finds the team and the task list that a call is about.

use std::sync::Arc;

use crate::live::lookup;
use crate::live::roster;
use posse_protocol::{AgentId, ListId, Name, Team};

use crate::live::registry::LiveAgent;
use crate::toolset::{Caller, tell};
use posse_port::store::{Membership, StoreError};
use posse_port::tool::ToolError;

impl Caller {
    /// Returns the calling agent.
    pub(crate) fn here(&self) -> Result<Arc<LiveAgent>, ToolError> {
        self.factory
            .registry
            .live_agent(self.agent)
            .ok_or_else(|| tell("the caller has ended"))
    }

    /// Returns the caller's memberships, one for each team.
    pub(crate) async fn memberships(&self) -> Result<Vec<Membership>, ToolError> {
        self.memberships_of(self.agent).await
    }

    /// Returns an agent's memberships, one for each team.
    async fn memberships_of(&self, agent: AgentId) -> Result<Vec<Membership>, ToolError> {
        let realm = self.here()?.session.realm;
        let mut found = self
            .factory
            .ports
            .store
            .membership(realm, agent)
            .await
            .map_err(failed)?;
        found.dedup_by(|a, b| a.team == b.team);
        Ok(found)
    }

    /// Returns the caller's teams, with all of their members.
    pub(crate) async fn teams(&self) -> Result<Vec<Team>, ToolError> {
        let mine = self.memberships().await?;
        if mine.is_empty() {
            return Ok(Vec::new());
        }
        let mut teams = roster::teams(&*self.factory.ports.store, self.here()?.session.realm)
            .await
            .map_err(failed)?;
        teams.retain(|team| mine.iter().any(|membership| membership.team == team.name));
        Ok(teams)
    }

    /// Returns a team of the session, with all of its members.
    pub(super) async fn roster(&self, name: &Name) -> Result<Option<Team>, ToolError> {
        let teams = roster::teams(&*self.factory.ports.store, self.here()?.session.realm)
            .await
            .map_err(failed)?;
        Ok(teams.into_iter().find(|team| team.name == *name))
    }

    /// Returns the team of the caller that a call means.
    pub(super) async fn team(&self, named: Option<&str>) -> Result<Name, ToolError> {
        let chosen = choose(self.memberships().await?, named).map_err(tell)?;
        let none = || tell("You are not in a team. TeamCreate makes one, if you have it.");
        chosen.map(|membership| membership.team).ok_or_else(none)
    }

    /// Returns the team led by the caller that a call means.
    pub(super) async fn led_team(&self, named: Option<&str>) -> Result<Name, ToolError> {
        let (led, others): (Vec<Membership>, Vec<Membership>) = self
            .memberships()
            .await?
            .into_iter()
            .partition(|membership| membership.lead == self.agent);
        if let Some(other) = others
            .iter()
            .find(|other| Some(other.team.as_str()) == named)
        {
            return Err(tell(format!(
                "Only the lead of team {} may do that.",
                other.team
            )));
        }
        let chosen = choose(led, named).map_err(tell)?;
        chosen
            .map(|membership| membership.team)
            .ok_or_else(|| tell("You do not lead a team."))
    }

    /// Returns the task list that a call means: that of the caller's team, or of the nearest agent
    /// above it that is in one; otherwise the session's.
    pub(super) async fn list(&self, named: Option<&str>) -> Result<ListId, ToolError> {
        let realm = self.here()?.session.realm;
        let (mut teams, mut at) = (Vec::new(), Some(self.agent));
        while let Some(agent) = at.filter(|_| teams.is_empty()) {
            teams = self.memberships_of(agent).await?;
            at = self.above(agent).await?;
        }
        let team = choose(teams, named)
            .map_err(tell)?
            .map(|membership| membership.team);
        Ok(ListId { realm, team })
    }

    /// Returns the parent of an agent.
    async fn above(&self, agent: AgentId) -> Result<Option<AgentId>, ToolError> {
        if let Some(live_agent) = self.factory.registry.live_agent(agent) {
            return Ok(live_agent.parent);
        }
        let row = lookup::row(&*self.factory.ports.store, agent)
            .await
            .map_err(failed)?;
        Ok(row.and_then(|row| row.origin).map(|origin| origin.parent))
    }
}

/// Returns the named team, or the only one; none if there is none.
fn choose(mut teams: Vec<Membership>, named: Option<&str>) -> Result<Option<Membership>, String> {
    let known = || {
        let mut names: Vec<&str> = teams.iter().map(|it| it.team.as_str()).collect();
        names.sort_unstable();
        names.join(", ")
    };
    match named {
        Some(named) => {
            let name: Name = named.parse().map_err(|bad| format!("team_name: {bad}"))?;
            match teams.iter().position(|it| it.team == name) {
                Some(at) => Ok(Some(teams.swap_remove(at))),
                None if teams.is_empty() => {
                    Err(format!("team_name: you have no team {name}; omit it"))
                }
                None => Err(format!(
                    "team_name: you have no team {name}; you have {}",
                    known()
                )),
            }
        }
        None if teams.len() > 1 => Err(format!(
            "You have several teams; choose one with team_name: {}",
            known()
        )),
        None => Ok(teams.pop()),
    }
}

/// Turns a store error into an error for the model.
pub(super) fn failed(error: StoreError) -> ToolError {
    tell(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::team::samples;

    #[test]
    fn of_several_teams_one_must_be_named() {
        let team = |name: &str| {
            let member = samples::member("a", 1);
            Membership {
                team: samples::name(name),
                lead: member.agent,
                member,
            }
        };
        let chosen = |teams: &[&str], named: Option<&str>| {
            let teams = teams.iter().map(|name| team(name)).collect();
            choose(teams, named).map(|chosen| chosen.map(|chosen| chosen.team.to_string()))
        };
        type Case<'a> = (
            &'a [&'a str],
            Option<&'a str>,
            Result<Option<&'a str>, &'a str>,
        );
        let table: [Case<'_>; 7] = [
            (&[], None, Ok(None)),
            (&["a"], None, Ok(Some("a"))),
            (
                &["b", "a"],
                None,
                Err("You have several teams; choose one with team_name: a, b"),
            ),
            (&["b", "a"], Some("b"), Ok(Some("b"))),
            (
                &["a"],
                Some("c"),
                Err("team_name: you have no team c; you have a"),
            ),
            (
                &[],
                Some("c"),
                Err("team_name: you have no team c; omit it"),
            ),
            (
                &["a"],
                Some("../a"),
                Err(
                    "team_name: `../a` is not a valid name: use 1 to 64 of a-z, 0-9 and -, not \
                     beginning with -",
                ),
            ),
        ];
        for (teams, named, expected) in table {
            let expected = expected
                .map(|name| name.map(str::to_owned))
                .map_err(str::to_owned);
            assert_eq!(chosen(teams, named), expected, "{teams:?} {named:?}");
        }
    }
}
