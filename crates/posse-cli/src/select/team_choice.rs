//! Chooses among teams: the most likely one, or an error that lists them.

use std::path::Path;

use posse_port::closest;
use posse_port::store::{Page, SessionFilter, Store};
use posse_protocol::{Name, Team};

use crate::error::Advised;
use crate::output::tame;
use crate::output::time::{age, now_ms};

/// Number of candidates that are listed.
const NAMED: usize = 8;

pub(crate) fn is_called(team: &Team, name: Option<&Name>) -> bool {
    name.is_none_or(|name| team.name == *name)
}

/// Returns true if a process hosts a member.
pub(crate) fn is_held(team: &Team) -> bool {
    team.members.iter().any(|member| member.held)
}

/// Returns where its session works.
pub(crate) fn place(team: &Team) -> Option<&Path> {
    team.members.first().map(|first| first.cwd.as_path())
}

/// Returns true if it runs in a directory.
pub(crate) fn runs_in(team: &Team, directory: &Path) -> bool {
    is_held(team) && place(team) == Some(directory)
}

/// Returns the most likely team of several, sorted newest first; `None` if it is unclear.
pub(crate) fn nearest(mut teams: Vec<Team>, here: &Path) -> Option<Team> {
    if teams.iter().any(is_held) {
        teams.retain(is_held);
    }
    let at = match teams.len() {
        1 => Some(0),
        _ if teams.iter().filter(|team| is_held(team)).nth(1).is_some() => {
            // Two teams are running: only the directory can distinguish them.
            let mut local = (0..teams.len()).filter(|at| place(&teams[*at]) == Some(here));
            local.next().filter(|_| local.next().is_none())
        }
        _ => teams.iter().position(|team| place(team) == Some(here)),
    };
    at.map(|at| teams.swap_remove(at))
}

/// Returns true if the id of the team's first lead begins with `prefix`.
pub(crate) fn is_led(team: &Team, prefix: &str) -> bool {
    team.session()
        .to_string()
        .starts_with(&prefix.trim().to_ascii_lowercase())
}

/// Returns the team of an imported session, which has no agents here and is known by its first
/// lead's id.
pub(crate) async fn imported(store: &dyn Store, prefix: &str) -> anyhow::Result<Option<Team>> {
    let filter = SessionFilter {
        cwd: None,
        id_prefix: Some(prefix.trim().to_ascii_lowercase()),
    };
    if !store.sessions(filter, Page::first(1)).await?.is_empty() {
        return Ok(None);
    }
    let teams = store.teams(None, Page::all()).await?;
    let led: Vec<Team> = teams
        .into_iter()
        .filter(|team| is_led(team, prefix))
        .collect();
    if led.is_empty() {
        Ok(None)
    } else {
        Ok(Some(only(led, None)?))
    }
}

pub(crate) fn only(teams: Vec<Team>, name: Option<&Name>) -> Result<Team, Advised> {
    let names: Vec<String> = teams.iter().map(|team| team.name.to_string()).collect();
    let mut found: Vec<Team> = teams
        .into_iter()
        .filter(|team| is_called(team, name))
        .collect();
    match (found.len(), name) {
        (1, _) => Ok(found.remove(0)),
        (0, Some(name)) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let advice = match closest(name.as_str(), &names) {
                Some(near) => {
                    format!("did you mean {near}? `posse team list --all` shows all teams")
                }
                None => "`posse team list --all` shows all teams".into(),
            };
            Err(Advised {
                what: format!("there is no team {name}"),
                advice,
            })
        }
        (0, None) => Err(Advised {
            what: "there is no team".into(),
            advice:
                "`posse team run NAME` starts a declared team, `posse team import DIR` imports one"
                    .into(),
        }),
        (count, name) => {
            let now = now_ms();
            let rows = found.iter().take(NAMED).map(|team| {
                let place = place(team)
                    .map(|place| place.display().to_string())
                    .unwrap_or_default();
                let state = if is_held(team) {
                    "running"
                } else {
                    "not running"
                };
                format!(
                    "\n  {}  {}  {}  {state}  {}  {}",
                    team.session(),
                    team.name,
                    age(now.saturating_sub(team.created_ms)),
                    tame(&place),
                    tame(&first_words(&team.description))
                )
            });
            let more = if count > NAMED { "\n  and more" } else { "" };
            let (what, how) = match name {
                Some(name) => (
                    format!("several sessions have a team {name}"),
                    "choose with --session",
                ),
                None => (
                    "there are several teams".into(),
                    "name one, and its session if \
                                                            necessary",
                ),
            };
            Err(Advised {
                what,
                advice: format!("{how}:{}{more}", rows.collect::<String>()),
            })
        }
    }
}

fn first_words(text: &str) -> String {
    crate::output::transcript::shortened(text.lines().next().unwrap_or_default(), 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn team(name: &str, lead: u128) -> Team {
        Team {
            realm: uuid::Uuid::from_u128(lead).into(),
            name: name.parse().unwrap(),
            description: "what\x1b[2J\nfor".into(),
            lead: uuid::Uuid::from_u128(lead).into(),
            created_ms: 0,
            settings: serde_json::Map::new(),
            members: Vec::new(),
            former: Vec::new(),
        }
    }

    #[test]
    fn one_is_found_and_several_are_named() {
        let name: Name = "parser".parse().unwrap();
        let teams = || vec![team("parser", 1), team("printer", 2)];
        assert_eq!(only(teams(), Some(&name)).unwrap(), team("parser", 1));
        assert_eq!(
            only(vec![team("parser", 1)], None).unwrap(),
            team("parser", 1)
        );
        let near = only(teams(), Some(&"prser".parse().unwrap())).unwrap_err();
        assert!(
            near.advice.contains("did you mean parser?"),
            "{}",
            near.advice
        );
        let several = only(vec![team("parser", 1), team("parser", 2)], Some(&name)).unwrap_err();
        assert!(several.what.contains("several sessions") && several.advice.contains("--session"));
        let row = several.advice.lines().last().unwrap();
        assert!(
            row.contains("-000000000002  parser  ") && row.contains("what\\u{1b}[2J"),
            "{row}"
        );
        assert!(row.contains("  not running  "), "{row}");
        assert!(only(vec![], None).unwrap_err().advice.contains("import"));
        assert!(
            only(teams(), None)
                .unwrap_err()
                .what
                .contains("several teams")
        );
    }

    #[test]
    fn who_is_at_work_is_meant_before_who_is_near() {
        let at = |lead: u128, cwd: &str, held: bool| {
            let member = serde_json::json!({
                "agent": uuid::Uuid::from_u128(lead), "name": "team-lead", "agent_type": "lead", "model": "m",
                "prompt": "", "color": "blue", "backend": "in-process", "cwd": cwd, "joined_ms": 0, "held": held,
            });
            Team {
                members: vec![serde_json::from_value(member).unwrap()],
                ..team("parser", lead)
            }
        };
        let found = |teams: &[Team]| {
            nearest(teams.to_vec(), Path::new("/here")).map(|team| team.lead.uuid().as_u128())
        };
        let (new, old, far) = (
            at(1, "/here", false),
            at(2, "/here", false),
            at(3, "/far", false),
        );
        assert_eq!(
            found(&[far.clone(), new.clone(), old.clone()]),
            Some(1),
            "the newest of this directory"
        );
        assert_eq!(found(&[far.clone(), far.clone()]), None);
        assert_eq!(found(&[new.clone(), at(4, "/far", true), old]), Some(4));
        let (busy, near) = (at(5, "/far", true), at(6, "/here", true));
        assert_eq!(found(&[busy.clone(), near.clone(), new]), Some(6));
        assert_eq!(
            found(&[near.clone(), near, busy]),
            None,
            "two are at work here"
        );
        assert_eq!(found(&[far]), Some(3));
    }
}
