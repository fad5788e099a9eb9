//! Texts for agents that start teammates.

use posse_protocol::{AgentId, Name, Team};

use crate::prompt::reminder;
use posse_port::text::line;

/// A teammate that was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spawned<'a> {
    /// The agent.
    pub agent: AgentId,
    /// Its type.
    pub agent_type: &'a str,
    /// Requested name.
    pub wished: &'a Name,
    /// Name that it got.
    pub name: &'a Name,
    /// Its team.
    pub team: &'a Name,
    /// Colour in front ends.
    pub color: &'a str,
    /// True if it submits a plan first.
    pub plan: bool,
}

/// Returns that a teammate was started.
pub(crate) fn spawned(teammate: &Spawned<'_>) -> String {
    let Spawned {
        agent,
        agent_type,
        wished,
        name,
        team,
        color,
        plan,
    } = *teammate;
    let mut told = format!("Teammate started: {name}@{team} ({}).\n", line(agent_type));
    if wished != name {
        told.push_str(&format!(
            "It is named {name}, because {wished} is or was another agent's name.\n"
        ));
    }
    told.push_str(&format!(
        "agent id: {agent}\n\
         name: {name}\n\
         team: {team}\n\
         colour: {}\n\
         It has its prompt, and works by itself until it is shut down. You receive its mail and a \
         notice whenever it is idle, which is normal. Write to it by name with SendMessage.",
        line(color)
    ));
    if plan {
        told.push_str(" It changes nothing until you have approved its plan, which comes as mail.");
    }
    told
}

/// A declared team that was created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raised<'a> {
    /// The team with its members.
    pub team: &'a Team,
    /// Number of its first tasks.
    pub tasks: usize,
    /// Members that could not be started, with the reason.
    pub missing: &'a [(Name, String)],
}

/// Returns the text for the lead of a declared team.
pub(crate) fn raised(raised: &Raised<'_>) -> String {
    let Raised {
        team,
        tasks,
        missing,
    } = raised;
    let mut text = format!(
        "You lead the team {}, started as declared: {}\n",
        team.name,
        line(&team.description)
    );
    text.push_str("Teammates:\n");
    for member in team
        .members
        .iter()
        .filter(|member| member.agent != team.lead)
    {
        let role = member
            .role
            .as_ref()
            .filter(|role| role.as_str() != member.name.as_str());
        let role = role.map_or_else(String::new, |role| format!(", role {}", line(role)));
        text.push_str(&format!(
            "- {} ({}{role})\n",
            member.name,
            line(&member.agent_type)
        ));
    }
    for (name, why) in *missing {
        text.push_str(&format!("- {name} could not be started: {}\n", line(why)));
    }
    text.push_str(&format!(
        "Its list has {tasks} tasks to begin with. Teammates claim the open tasks that their roles \
         allow: add work to the list with TaskCreate, and write to them with SendMessage. Do not \
         do their work. End your turn while they work: their mail and idle notices wake you. When \
         all is done, report the outcome.",
    ));
    reminder(&text)
}

#[cfg(test)]
mod tests {
    use posse_protocol::Member;
    use uuid::Uuid;

    use super::*;
    use crate::prompt::team::samples::{member, name, team};

    // proves AG-09 (part: teammate_spawned)
    // proves TE-17 (part: told)
    #[test]
    fn who_starts_a_teammate_is_told_the_name_it_got() {
        let (scout, second, crew) = (name("scout"), name("scout-2"), name("crew"));
        let teammate = Spawned {
            agent: Uuid::from_u128(5).into(),
            agent_type: "Explore",
            wished: &scout,
            name: &second,
            team: &crew,
            color: "green",
            plan: true,
        };
        let told = spawned(&teammate);
        assert!(
            told.starts_with(
                "Teammate started: scout-2@crew (Explore).\n\
                 It is named scout-2, because scout is or was another agent's name.\n\
                 agent id: 00000000-0000-0000-0000-000000000005\n\
                 name: scout-2\n\
                 team: crew\n\
                 colour: green\n"
            ),
            "{told}"
        );
        assert!(told.contains("approved its plan"), "{told}");
        let told = spawned(&Spawned {
            name: &scout,
            plan: false,
            ..teammate
        });
        assert!(
            !told.contains("another agent") && !told.contains("plan"),
            "{told}"
        );
    }

    #[test]
    fn the_lead_is_told_its_declared_team() {
        let dev = Member {
            role: Some("dev".into()),
            ..member("dev-1", 2)
        };
        let team = team(&[member("team-lead", 1), dev]);
        let told = raised(&Raised {
            team: &team,
            tasks: 3,
            missing: &[(name("dev-2"), "no\nroom".into())],
        });
        assert!(
            told.contains(
                "- dev-1 (general-purpose, role dev)\n- dev-2 could not be started: no room\n"
            ),
            "{told}"
        );
        assert!(
            told.contains("has 3 tasks") && !told.contains("- team-lead"),
            "{told}"
        );
        assert_eq!(told.matches("</system-reminder>").count(), 1, "{told}");
    }
}
