//! Which team, and which list, a call is about.

use std::sync::Arc;

use posse_protocol::{AgentId, ListId, Name, Team};

use crate::port::store::StoreError;
use crate::spawn::house::Resident;
use crate::spawn::tool::{Caller, tell};
use crate::tool::ToolError;

impl Caller {
    /// The caller as it lives here.
    pub(crate) fn here(&self) -> Result<Arc<Resident>, ToolError> {
        self.house.resident(self.agent).ok_or_else(|| tell("the caller has ended"))
    }

    /// The teams that the caller belongs to, with their members.
    pub(crate) async fn teams(&self) -> Result<Vec<Team>, ToolError> {
        Ok(of(self.all_teams().await?, self.agent))
    }

    /// The one of them that a call means.
    pub(super) async fn team(&self, named: Option<&str>) -> Result<Team, ToolError> {
        let team = choose(self.teams().await?, named).map_err(tell)?;
        team.ok_or_else(|| tell("You belong to no team. TeamCreate makes one, if you have it."))
    }

    /// The one that the caller leads and that a call means.
    pub(super) async fn led_team(&self, named: Option<&str>) -> Result<Team, ToolError> {
        let teams = self.teams().await?;
        let (led, others): (Vec<Team>, Vec<Team>) =
            teams.into_iter().partition(|team| team.lead == self.agent);
        if let Some(other) = others.iter().find(|team| Some(team.name.as_str()) == named) {
            return Err(tell(format!("Only the lead of team {} may do that.", other.name)));
        }
        choose(led, named).map_err(tell)?.ok_or_else(|| tell("You lead no team."))
    }

    /// The list that a call means, with the team that it is of: of the one that the caller belongs to, or
    /// whoever is nearest above it and belongs to any; else the session's.
    pub(super) async fn list(&self, named: Option<&str>) -> Result<(ListId, Option<Team>), ToolError> {
        let realm = self.here()?.tree.realm;
        let all = self.all_teams().await?;
        let mut teams = Vec::new();
        if !all.is_empty() {
            let mut at = Some(self.agent);
            while let Some(agent) = at.filter(|_| teams.is_empty()) {
                teams = of(all.clone(), agent);
                at = self.above(agent).await?;
            }
        }
        let team = choose(teams, named).map_err(tell)?;
        Ok((ListId { realm, team: team.as_ref().map(|team| team.name.clone()) }, team))
    }

    async fn all_teams(&self) -> Result<Vec<Team>, ToolError> {
        let realm = self.here()?.tree.realm;
        self.house.teams(realm).await.map_err(failed)
    }

    /// Who has made an agent.
    async fn above(&self, agent: AgentId) -> Result<Option<AgentId>, ToolError> {
        if let Some(resident) = self.house.resident(agent) {
            return Ok(resident.parent);
        }
        let row = self.house.row(agent).await.map_err(failed)?;
        Ok(row.and_then(|row| row.origin).map(|origin| origin.parent))
    }
}

/// Those that an agent belongs to.
fn of(mut teams: Vec<Team>, agent: AgentId) -> Vec<Team> {
    teams.retain(|team| team.members.iter().any(|member| member.agent == agent));
    teams
}

/// Which of some teams is meant: the one that is named, else the only one; none if there is none.
fn choose(mut teams: Vec<Team>, named: Option<&str>) -> Result<Option<Team>, String> {
    let known = || {
        let mut names: Vec<&str> = teams.iter().map(|team| team.name.as_str()).collect();
        names.sort_unstable();
        names.join(", ")
    };
    match named {
        Some(named) => {
            let name: Name = named.parse().map_err(|bad| format!("team_name: {bad}"))?;
            match teams.iter().position(|team| team.name == name) {
                Some(at) => Ok(Some(teams.swap_remove(at))),
                None if teams.is_empty() => {
                    Err(format!("team_name: there is no team {name} of yours; leave it out"))
                }
                None => Err(format!("team_name: there is no team {name} of yours; there is {}", known())),
            }
        }
        None if teams.len() > 1 => {
            Err(format!("There are several teams of yours: say in team_name which: {}", known()))
        }
        None => Ok(teams.pop()),
    }
}

pub(super) fn failed(error: StoreError) -> ToolError {
    tell(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::words::samples;

    #[test]
    fn of_several_teams_one_must_be_named() {
        let team = |name: &str| Team { name: samples::name(name), ..samples::team(&[]) };
        let chosen = |teams: &[&str], named: Option<&str>| {
            let teams = teams.iter().map(|name| team(name)).collect();
            choose(teams, named).map(|team| team.map(|team| team.name.to_string()))
        };
        type Case<'a> = (&'a [&'a str], Option<&'a str>, Result<Option<&'a str>, &'a str>);
        let table: [Case<'_>; 7] = [
            (&[], None, Ok(None)),
            (&["a"], None, Ok(Some("a"))),
            (&["b", "a"], None, Err("There are several teams of yours: say in team_name which: a, b")),
            (&["b", "a"], Some("b"), Ok(Some("b"))),
            (&["a"], Some("c"), Err("team_name: there is no team c of yours; there is a")),
            (&[], Some("c"), Err("team_name: there is no team c of yours; leave it out")),
            (
                &["a"],
                Some("../a"),
                Err("team_name: `../a` is no name: 1 to 64 of a-z, 0-9 and -, not beginning with -"),
            ),
        ];
        for (teams, named, expected) in table {
            let expected = expected.map(|name| name.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(chosen(teams, named), expected, "{teams:?} {named:?}");
        }
    }
}
