//! Finds the teammate that a name means. Pure but for the lookup.

use posse_protocol::{AgentId, Member, Name, Team};

use crate::toolset::{Caller, tell};
use posse_port::tool::ToolError;

impl Caller {
    /// Returns the teammate of the caller that a name, `name@team` or an ID means.
    pub(crate) async fn teammate(&self, given: &str) -> Result<Option<(Team, Member)>, ToolError> {
        let teams = self.teams().await?;
        let found = teammate(&teams, given, self.agent).map_err(tell)?;
        Ok(found.map(|(team, member)| (team.clone(), member.clone())))
    }
}

/// Returns the other member that is meant; none if there is no such member, an error if it is
/// ambiguous.
pub(crate) fn teammate<'a>(
    teams: &'a [Team],
    given: &str,
    me: AgentId,
) -> Result<Option<(&'a Team, &'a Member)>, String> {
    let (name, of) = match given.split_once('@') {
        Some((name, team)) => (name, Some(team)),
        None => (given, None),
    };
    let asked = || {
        teams
            .iter()
            .filter(|team| of.is_none_or(|of| team.name.as_str() == of))
    };
    let is_meant = |team: &Team, member: &Member| match name {
        Name::LEAD => member.agent == team.lead,
        name => member.name.as_str() == name || (of.is_none() && member.agent.to_string() == name),
    };
    let mut meant: Vec<(&Team, &Member)> = asked()
        .flat_map(|team| team.members.iter().map(move |member| (team, member)))
        .filter(|(team, member)| is_meant(team, member))
        .collect();
    let myself = meant.iter().any(|(_, member)| member.agent == me);
    meant.retain(|(_, member)| member.agent != me);
    meant.dedup_by_key(|(_, member)| member.agent);
    match meant.as_slice() {
        [] if myself => Err("that is you".into()),
        // Names are never reused, so a former member's name means nobody else.
        [] => match asked().find(|team| team.former.iter().any(|former| former.as_str() == name)) {
            Some(team) => Err(format!(
                "{name} has left team {}, and no one else has that name",
                team.name
            )),
            None => Ok(None),
        },
        [one] => Ok(Some(*one)),
        several => {
            let mut names: Vec<String> = several
                .iter()
                .map(|(team, _)| format!("{name}@{}", team.name))
                .collect();
            names.sort_unstable();
            Err(format!(
                "several of your teams have a member {name}; write {}",
                names.join(" or ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::team::samples::{member, name, team};

    #[test]
    fn names_mean_those_of_ones_own_teams() {
        let crew = team(&[member("team-lead", 1), member("scout", 2), member("dev", 3)]);
        // The second team was handed over: dev leads it, the main agent is called main.
        let ops = Team {
            name: name("ops"),
            lead: member("dev", 3).agent,
            members: vec![member("main", 1), member("dev", 3), member("scout", 7)],
            former: Vec::new(),
            ..crew.clone()
        };
        let one = [crew.clone()];
        let both = [crew, ops];
        type Case<'a> = (
            &'a [Team],
            u128,
            &'a str,
            Result<Option<(&'a str, &'a str)>, &'a str>,
        );
        let id = member("x", 3).agent.to_string();
        let table: Vec<Case<'_>> = vec![
            (&one, 1, "scout", Ok(Some(("crew", "scout")))),
            (&one, 2, "team-lead", Ok(Some(("crew", "team-lead")))),
            (&one, 2, "dev@crew", Ok(Some(("crew", "dev")))),
            (&one, 2, &id, Ok(Some(("crew", "dev")))),
            (&both, 1, "team-lead", Ok(Some(("ops", "dev")))),
            (&both, 1, "team-lead@crew", Err("that is you")),
            (&both, 2, "team-lead@ops", Ok(Some(("ops", "dev")))),
            (
                &both,
                1,
                "scout",
                Err("several of your teams have a member scout; write scout@crew or scout@ops"),
            ),
            (&both, 1, "scout@ops", Ok(Some(("ops", "scout")))),
            (&both, 1, "dev", Ok(Some(("crew", "dev")))),
            (&one, 2, "scout", Err("that is you")),
            (
                &one,
                1,
                "gone",
                Err("gone has left team crew, and no one else has that name"),
            ),
            (
                &one,
                1,
                "gone@crew",
                Err("gone has left team crew, and no one else has that name"),
            ),
            (&one, 1, "dev@ops", Ok(None)),
            (&one, 1, "nobody", Ok(None)),
            (&[], 1, "scout", Ok(None)),
            (&one, 1, "", Ok(None)),
        ];
        for (teams, me, given, expected) in table {
            let found = teammate(teams, given, member("me", me).agent);
            let found = found.map(|found| {
                found.map(|(team, member)| (team.name.as_str(), member.name.as_str()))
            });
            assert_eq!(found, expected.map_err(str::to_owned), "{me} {given}");
        }
    }
}
