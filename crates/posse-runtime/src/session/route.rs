//! Decides which agent a call of the Agent tool starts, and how. Pure.

mod error;

use std::sync::Arc;

use posse_port::model::Effort;
use posse_protocol::Name;

use crate::definition::agent_type::{Definition, FORK, GENERAL_PURPOSE, Isolation, MAIN};
use crate::definition::output_schema::OutputSchema;
use crate::definition::spawning::Background;
use crate::prompt::agent_tool::{AgentInput, Forking};
pub(crate) use crate::session::route::error::RouteError;

/// The agent that a call starts.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// Its type.
    pub definition: Arc<Definition>,
    /// True if it continues from where its parent is.
    pub fork: bool,
    /// Isolation: the call's, otherwise its type's.
    pub isolation: Option<Isolation>,
    /// Schema of its answer: the call's, otherwise its type's.
    pub output_schema: Option<OutputSchema>,
    /// Reasoning effort: the call's, otherwise its type's; none for its parent's.
    pub effort: Option<Effort>,
    /// True if the call does not wait for it.
    pub background: bool,
    /// The team that it joins, if it is a teammate.
    pub team: Option<Teamwork>,
}

/// How a teammate joins a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Teamwork {
    /// The team.
    pub team: Name,
    /// Requested name.
    pub name: Name,
    /// True if it submits a plan first.
    pub plan: bool,
}

/// Teams of the calling agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Teams {
    /// Teams that it belongs to.
    pub of: Vec<Name>,
    /// True if it is a teammate itself.
    pub teammate: bool,
}

/// Returns the name of the type that a call asks for.
pub(crate) fn wanted(input: &AgentInput, forking: Forking) -> &str {
    match input.subagent_type.as_deref() {
        Some(wanted) if wanted.eq_ignore_ascii_case(FORK) => FORK,
        Some(wanted) => wanted,
        None if forking == Forking::Implicit => FORK,
        None => GENERAL_PURPOSE,
    }
}

/// Returns the type with this name, ignoring case.
pub(crate) fn named<'a>(types: &'a [Arc<Definition>], name: &str) -> Option<&'a Arc<Definition>> {
    let name = name.to_lowercase();
    types.iter().find(|kind| kind.name.to_lowercase() == name)
}

/// Returns the agent that a call asks for, or an error for the model.
pub(crate) fn route(
    input: &AgentInput,
    types: &[Arc<Definition>],
    background: Background,
    forking: Forking,
    teams: &Teams,
) -> Result<Route, RouteError> {
    refuse(input, background)?;
    let team = teamwork(input, teams)?;
    let wanted = wanted(input, forking);
    if wanted == FORK {
        if input.team_name.is_some() || input.mode.is_some() {
            return Err(RouteError::ForkAsTeammate);
        }
        return fork(input, background, forking);
    }
    let definition = named(types, wanted)
        .cloned()
        .ok_or_else(|| unknown(wanted, types))?;
    let isolation = isolation(input)?.or(definition.isolation);
    if input.cwd.is_some() && isolation.is_some() {
        return Err(RouteError::CwdOfIsolated(definition.name.clone()));
    }
    // A teammate answers by messages, so a schema of its type does not apply.
    let schema = input
        .output_schema
        .as_ref()
        .or(definition.output_schema.as_deref())
        .filter(|_| team.is_none());
    let output_schema = schema.map(OutputSchema::new).transpose()?;
    let effort = input
        .effort
        .as_deref()
        .map(effort)
        .transpose()?
        .or(definition.effort);
    let background = in_background(background, &definition, input.run_in_background);
    Ok(Route {
        definition,
        fork: false,
        isolation,
        output_schema,
        effort,
        background,
        team,
    })
}

/// Returns the route of a fork. It has everything its parent has, so there is little to choose.
fn fork(input: &AgentInput, background: Background, forking: Forking) -> Result<Route, RouteError> {
    if forking == Forking::Denied {
        return Err(RouteError::ForksDenied);
    }
    let chosen = [
        // Each of these would change the bytes before the fork's directive, and so lose the cache.
        ("model", input.model.is_some()),
        ("effort", input.effort.is_some()),
        ("cwd", input.cwd.is_some()),
    ];
    if let Some((what, _)) = chosen.iter().find(|(_, given)| *given) {
        return Err(RouteError::ChosenForFork(what));
    }
    let schema = input.output_schema.as_ref();
    let output_schema = schema.map(OutputSchema::new).transpose()?;
    let definition = Arc::new(Definition {
        name: FORK.to_owned(),
        ..Definition::default()
    });
    let background = in_background(background, &definition, input.run_in_background);
    let isolation = isolation(input)?;
    Ok(Route {
        definition,
        fork: true,
        isolation,
        output_schema,
        effort: None,
        background,
        team: None,
    })
}

/// Refuses calls that are wrong whatever type they ask for.
fn refuse(input: &AgentInput, background: Background) -> Result<(), RouteError> {
    if input.description.trim().is_empty() {
        return Err(RouteError::NoDescription);
    }
    if input.prompt.trim().is_empty() {
        return Err(RouteError::NoPrompt);
    }
    if let Some(name) = input
        .name
        .as_ref()
        .filter(|name| name.is_reserved() || name.as_str() == MAIN)
    {
        return Err(RouteError::ReservedName(name.clone()));
    }
    if input.run_in_background.is_some() && background == Background::Off {
        return Err(RouteError::NoBackground);
    }
    if input.cwd.is_some() && input.isolation.is_some() {
        return Err(RouteError::CwdAndIsolation);
    }
    Ok(())
}

/// Returns the team that the agent joins; none for a plain sub-agent.
fn teamwork(input: &AgentInput, teams: &Teams) -> Result<Option<Teamwork>, RouteError> {
    let fork = input
        .subagent_type
        .as_deref()
        .is_some_and(|kind| kind.eq_ignore_ascii_case(FORK));
    let known = || match teams.of.as_slice() {
        [] => "you are not in a team; create one with TeamCreate".to_owned(),
        of => format!(
            "you are in {}",
            of.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
        ),
    };
    let team = match (&input.team_name, &input.name) {
        (Some(_), _) if teams.teammate => {
            return Err(RouteError::TeammateOfTeammate);
        }
        (Some(_), None) => return Err(RouteError::NamelessTeammate),
        (Some(wanted), Some(_)) => match teams
            .of
            .iter()
            .find(|team| team.as_str() == wanted.as_str())
        {
            Some(team) => Some(team),
            None => {
                return Err(RouteError::OtherTeam {
                    wanted: wanted.clone(),
                    known: known(),
                });
            }
        },
        (None, Some(_)) if !teams.teammate && !fork => match teams.of.as_slice() {
            // Without a team, a name alone makes a named sub-agent.
            [] => None,
            [team] => Some(team),
            _ => return Err(RouteError::SeveralTeams(known())),
        },
        (None, _) => None,
    };
    let plan = match (input.mode.as_deref(), team) {
        (None, _) => false,
        (Some(_), None) => {
            return Err(RouteError::ModeOfSubAgent);
        }
        (Some("plan"), Some(_)) => true,
        (Some(mode), Some(_)) => {
            return Err(RouteError::UnknownMode(mode.to_owned()));
        }
    };
    let Some((team, name)) = team.zip(input.name.as_ref()) else {
        return Ok(None);
    };
    if input.output_schema.is_some() {
        return Err(RouteError::SchemaOfTeammate);
    }
    if input.run_in_background.is_some() {
        return Err(RouteError::BackgroundOfTeammate);
    }
    Ok(Some(Teamwork {
        team: team.clone(),
        name: name.clone(),
        plan,
    }))
}

/// Parses the isolation that a call asks for.
fn isolation(input: &AgentInput) -> Result<Option<Isolation>, RouteError> {
    match input.isolation.as_deref() {
        None => Ok(None),
        Some("worktree") => Ok(Some(Isolation::Worktree)),
        Some("remote") => Err(RouteError::RemoteIsolation),
        Some(what) => Err(RouteError::UnknownIsolation(what.to_owned())),
    }
}

/// Returns the error for a type that does not exist, with the names of those that do.
fn unknown(wanted: &str, types: &[Arc<Definition>]) -> RouteError {
    let wanted = wanted.to_owned();
    let known: Vec<_> = types.iter().map(|kind| kind.name.as_str()).collect();
    match known.as_slice() {
        [] => RouteError::NoTypes(wanted),
        known => RouteError::UnknownType {
            wanted,
            known: known.join(", "),
        },
    }
}

/// Parses the effort that a call asks for.
fn effort(word: &str) -> Result<Effort, RouteError> {
    let found = Effort::ALL
        .into_iter()
        .find(|effort| effort.as_str() == word);
    found.ok_or_else(|| RouteError::UnknownEffort {
        word: word.to_owned(),
        known: Effort::ALL.map(Effort::as_str).join(", "),
    })
}

/// Returns true if the call does not wait for the run.
fn in_background(background: Background, definition: &Definition, call: Option<bool>) -> bool {
    match background {
        Background::Off => false,
        // The author of a type knows that nobody should wait for it.
        Background::Asked | Background::Default if definition.background => true,
        Background::Asked => call.unwrap_or(false),
        Background::Default => call.unwrap_or(true),
        Background::Always => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::prompt::agent_tool::spec;
    use serde_json::Value;
    use serde_json::json;

    use super::*;
    use crate::definition::agent_type::built_in;

    fn types() -> Vec<Arc<Definition>> {
        built_in().into_iter().map(Arc::new).collect()
    }

    fn input(more: Value) -> Result<AgentInput, String> {
        let mut whole = json!({"description": "Find the bug", "prompt": "Find it."});
        let (Value::Object(whole_map), Value::Object(more)) = (&mut whole, more) else {
            panic!("objects")
        };
        whole_map.extend(more);
        serde_json::from_value(whole).map_err(|error| error.to_string())
    }

    fn routed(more: Value, background: Background) -> Result<Route, String> {
        route(
            &input(more)?,
            &types(),
            background,
            Forking::Asked,
            &Teams::default(),
        )
        .map_err(|error| error.to_string())
    }

    #[test]
    fn types_are_found_without_case() {
        for (given, expected) in [
            (json!({}), "general-purpose"),
            (json!({"subagent_type": "explore"}), "Explore"),
            (json!({"subagent_type": "BASH"}), "Bash"),
            (json!({"subagent_type": "plan"}), "Plan"),
        ] {
            assert_eq!(
                routed(given, Background::Asked).unwrap().definition.name,
                expected
            );
        }
    }

    // proves AG-01 (part: unknown types)
    #[test]
    fn all_inputs_are_read_and_unknown_types_are_told_the_known_ones() {
        let all = json!({"subagent_type": "plan", "model": "m", "effort": "xhigh", "run_in_background": true,
            "name": "scout-1", "cwd": "/w"});
        let read = input(all.clone()).unwrap();
        assert_eq!(
            (read.model.as_deref(), read.name.unwrap().as_str()),
            (Some("m"), "scout-1")
        );
        assert_eq!(read.cwd, Some("/w".into()));
        let route = routed(all, Background::Asked).unwrap();
        let told = (
            route.definition.name.as_str(),
            route.effort,
            route.background,
        );
        assert_eq!(told, ("Plan", Some(Effort::XHigh), true));
        assert_eq!(
            routed(json!({"subagent_type": "scout"}), Background::Asked).unwrap_err(),
            "subagent_type: there is no scout; there are general-purpose, Explore, Plan, Bash"
        );
        assert!(
            input(json!({"type": "plan"}))
                .unwrap_err()
                .starts_with("unknown field `type`")
        );
    }

    fn refused(more: Value) -> String {
        routed(more, Background::Asked).unwrap_err()
    }

    // proves AD-03 (part: fork)
    // proves FK-14 (part: a model)
    #[test]
    fn a_fork_is_never_listed_and_chooses_nothing() {
        for wanted in ["fork", "Fork", "FORK"] {
            let route = routed(json!({ "subagent_type": wanted }), Background::Asked).unwrap();
            assert_eq!(
                (route.definition.name.as_str(), route.fork, route.background),
                (FORK, true, false)
            );
        }
        for (what, given) in [
            ("model", json!("m")),
            ("effort", json!("low")),
            ("cwd", json!("/w")),
        ] {
            let told = refused(json!({"subagent_type": "fork", what: given}));
            assert!(
                told.starts_with(&format!("{what}: a fork has yours")),
                "{told}"
            );
        }
        let denied = input(json!({"subagent_type": "fork"})).unwrap();
        let told = route(
            &denied,
            &types(),
            Background::Asked,
            Forking::Denied,
            &Teams::default(),
        )
        .unwrap_err();
        assert_eq!(
            told.to_string(),
            "subagent_type: forks are denied by a permission rule"
        );
        assert!(
            built_in()
                .iter()
                .all(|kind| !kind.name.eq_ignore_ascii_case(FORK))
        );
        let told = spec(Background::Asked, Forking::Denied, &types()).description;
        assert!(!told.contains("fork"), "{told}");
    }

    // proves FK-15
    // proves AG-02 (part: implicit fork; type; general-purpose)
    #[test]
    fn without_a_type_a_call_forks_only_if_that_is_switched_on() {
        let given = |more: Value, forking, background| {
            let route = route(
                &input(more).unwrap(),
                &types(),
                background,
                forking,
                &Teams::default(),
            )
            .unwrap();
            (route.definition.name.clone(), route.background)
        };
        let general = |background| ("general-purpose".to_owned(), background);
        assert_eq!(
            given(json!({}), Forking::Asked, Background::Asked),
            general(false)
        );
        assert_eq!(
            given(json!({}), Forking::Denied, Background::Asked),
            general(false)
        );
        assert_eq!(
            given(json!({}), Forking::Implicit, Background::Asked),
            (FORK.to_owned(), false)
        );
        let named = json!({"subagent_type": "Explore"});
        assert_eq!(
            given(named, Forking::Implicit, Background::Asked),
            ("Explore".to_owned(), false)
        );
        assert_eq!(
            given(json!({}), Forking::Implicit, Background::Default),
            (FORK.to_owned(), true)
        );
        let schema = |forking| {
            spec(Background::Asked, forking, &types())
                .input_schema
                .get()
                .to_owned()
        };
        assert!(schema(Forking::Implicit).contains("a fork of yours if absent"));
        assert!(schema(Forking::Asked).contains("general-purpose if absent"));
    }

    fn teams(of: &[&str], teammate: bool) -> Teams {
        Teams {
            of: of.iter().map(|name| name.parse().unwrap()).collect(),
            teammate,
        }
    }

    fn joined(more: Value, teams: &Teams) -> Result<Option<String>, String> {
        let route = route(
            &input(more)?,
            &types(),
            Background::Asked,
            Forking::Asked,
            teams,
        )
        .map_err(|error| error.to_string())?;
        Ok(route.team.map(|team| {
            let plan = if team.plan { " by plan" } else { "" };
            format!(
                "{}@{} ({}){plan}",
                team.name, team.team, route.definition.name
            )
        }))
    }

    // proves AG-17 (part: elsewhere)
    #[test]
    fn a_mode_is_refused_and_not_ignored() {
        for mode in ["plan", "default"] {
            assert!(
                refused(json!({ "mode": mode })).starts_with("mode is for teammates only"),
                "{mode}"
            );
        }
        let with =
            |mode: &str| joined(json!({"name": "a", "mode": mode}), &teams(&["crew"], false));
        assert_eq!(
            with("plan"),
            Ok(Some("a@crew (general-purpose) by plan".into()))
        );
        assert_eq!(
            with("default"),
            Err("mode: default is not available for teammates; use plan".into())
        );
    }

    // proves AG-02 (part: teammate; several teams)
    // proves AG-18 (part: no teammates)
    #[test]
    fn who_becomes_a_teammate() {
        let (none, one, two) = (
            teams(&[], false),
            teams(&["crew"], false),
            teams(&["crew", "ops"], false),
        );
        let teammate = teams(&["crew"], true);
        type Case<'a> = (Value, &'a Teams, Result<Option<&'a str>, &'a str>);
        let table: [Case<'_>; 17] = [
            (
                json!({"name": "a", "team_name": "crew"}),
                &one,
                Ok(Some("a@crew (general-purpose)")),
            ),
            (
                json!({"name": "a"}),
                &one,
                Ok(Some("a@crew (general-purpose)")),
            ),
            (
                json!({"name": "a", "subagent_type": "explore"}),
                &one,
                Ok(Some("a@crew (Explore)")),
            ),
            (
                json!({"name": "a", "isolation": "worktree", "model": "m", "effort": "low"}),
                &one,
                Ok(Some("a@crew (general-purpose)")),
            ),
            (json!({}), &one, Ok(None)),
            (json!({"name": "a"}), &none, Ok(None)),
            (json!({"name": "a"}), &teammate, Ok(None)),
            (
                json!({"name": "a", "subagent_type": "fork"}),
                &one,
                Ok(None),
            ),
            (
                json!({"name": "a"}),
                &two,
                Err("team_name: say which team it joins; you are in crew, ops"),
            ),
            (
                json!({"name": "a", "team_name": "ops"}),
                &two,
                Ok(Some("a@ops (general-purpose)")),
            ),
            (
                json!({"name": "a", "team_name": "crew"}),
                &teammate,
                Err("team_name: a teammate cannot start teammates;"),
            ),
            (
                json!({"name": "a", "team_name": "x"}),
                &one,
                Err("team_name: you are not in a team x; you are in crew"),
            ),
            (
                json!({"name": "a", "team_name": "x"}),
                &none,
                Err("team_name: you are not in a team x; you are not in a team"),
            ),
            (
                json!({"team_name": "crew"}),
                &one,
                Err("name: a teammate needs one"),
            ),
            (
                json!({"name": "a", "team_name": "crew", "subagent_type": "fork"}),
                &one,
                Err("team_name, mode: a fork is not a teammate"),
            ),
            (
                json!({"name": "a", "run_in_background": true}),
                &one,
                Err("run_in_background: a teammate"),
            ),
            (
                json!({"name": "a", "output_schema": {}}),
                &one,
                Err("output_schema: a teammate"),
            ),
        ];
        for (given, teams, expected) in table {
            match (joined(given.clone(), teams), expected) {
                (Ok(team), Ok(expected)) => assert_eq!(team.as_deref(), expected, "{given}"),
                (Err(told), Err(expected)) => {
                    assert!(told.starts_with(expected), "{given}: {told}")
                }
                (got, expected) => panic!("{given}: {got:?}, not {expected:?}"),
            }
        }
    }

    // proves AG-07
    #[test]
    fn cwd_and_isolation_exclude_each_other() {
        let both = json!({"cwd": "/w", "isolation": "worktree"});
        assert!(refused(both).starts_with("cwd and isolation cannot be combined"));
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        let table = [
            (
                json!({"isolation": "remote"}),
                "isolation: remote agents are not supported yet",
            ),
            (
                json!({"isolation": "moon"}),
                "isolation: moon does not exist; use worktree",
            ),
            (
                json!({"output_schema": {"type": "thing"}}),
                "output_schema: ",
            ),
            (json!({"team_name": "a"}), "name: a teammate needs one"),
            (
                json!({"team_name": "a", "name": "b"}),
                "team_name: you are not in a team a; you are not in a team; create one",
            ),
            (json!({"description": " "}), "description is empty"),
            (json!({"prompt": "\n"}), "prompt is empty"),
            (json!({"name": "main"}), "name: main is reserved"),
            (json!({"name": "team-lead"}), "name: team-lead is reserved"),
            (json!({"name": "No Name"}), "`No Name` is not a valid name"),
            (
                json!({"effort": "most"}),
                "effort: there is no most; there are low, medium, high, xhigh, max",
            ),
        ];
        for (given, expected) in table {
            let told = refused(given.clone());
            assert!(told.starts_with(expected), "{given}: {told}");
        }
    }

    // proves AG-08 (part: the call; the definition; by default; false in the call)
    #[test]
    fn who_goes_to_the_background() {
        use crate::definition::spawning::Background::{Always, Asked, Default, Off};
        let calls = [None, Some(true), Some(false)];
        let table = [
            (Off, false, [false, false, false]),
            (Off, true, [false, false, false]),
            (Asked, false, [false, true, false]),
            (Asked, true, [true, true, true]),
            (Default, false, [true, true, false]),
            (Default, true, [true, true, true]),
            (Always, false, [true, true, true]),
            (Always, true, [true, true, true]),
        ];
        for (background, defined, expected) in table {
            let definition = Definition {
                background: defined,
                ..built_in().remove(0)
            };
            let given = calls.map(|call| in_background(background, &definition, call));
            assert_eq!(given, expected, "{background:?}, {defined}");
        }
    }

    // proves AG-22 (part: schema)
    #[test]
    fn without_background_work_nobody_can_ask_for_it() {
        let properties = |background| {
            let spec = spec(background, Forking::Asked, &types());
            let schema: Value = serde_json::from_str(spec.input_schema.get()).unwrap();
            let Value::Object(properties) = &schema["properties"] else {
                panic!("an object")
            };
            (
                properties.keys().cloned().collect::<Vec<_>>(),
                spec.description.contains("background"),
            )
        };
        let with = [
            "description",
            "prompt",
            "subagent_type",
            "model",
            "effort",
            "run_in_background",
            "name",
            "cwd",
            "team_name",
            "mode",
            "isolation",
            "output_schema",
        ];
        let without = with.iter().filter(|name| **name != "run_in_background");
        let without: Vec<String> = without.map(|name| (*name).to_owned()).collect();
        assert_eq!(properties(Background::Off), (without, false));
        for background in [Background::Asked, Background::Default, Background::Always] {
            assert_eq!(
                properties(background),
                (with.map(str::to_owned).to_vec(), true)
            );
        }
        for given in [true, false] {
            let told = routed(json!({"run_in_background": given}), Background::Off).unwrap_err();
            assert!(
                told.starts_with("run_in_background: background work is switched off"),
                "{told}"
            );
        }
        assert!(!routed(json!({}), Background::Off).unwrap().background);
    }

    #[test]
    fn the_model_is_told_each_type() {
        let spec = spec(Background::Asked, Forking::Asked, &types());
        for kind in built_in() {
            assert!(
                spec.description
                    .contains(&format!("\n- {}: {}", kind.name, kind.description))
            );
        }
        let schema: Value = serde_json::from_str(spec.input_schema.get()).unwrap();
        assert_eq!(schema["required"], json!(["description", "prompt"]));
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["properties"]["effort"]["enum"][3], json!("xhigh"));
    }
}
