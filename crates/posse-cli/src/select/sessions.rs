//! Finds the session that a person means.

use std::path::Path;

use posse_port::store::{AgentFilter, AgentRecord, AgentState, Page, SessionFilter, Store};

use posse_protocol::AgentId;

use super::team_choice;
use crate::error::Advised;
use crate::output::tame;
use crate::output::transcript::shortened;
use crate::present::agents;
use crate::present::history::first_line;

/// Number of candidates that are listed.
const NAMED: usize = 8;

/// Returns the session of this directory that was used last.
pub(crate) async fn newest(store: &dyn Store, cwd: &Path) -> anyhow::Result<AgentRecord> {
    let filter = SessionFilter {
        cwd: Some(cwd.to_owned()),
        id_prefix: None,
    };
    let found = store
        .sessions(filter, Page::first(1))
        .await?
        .into_iter()
        .next();
    Ok(found.ok_or_else(|| Advised {
        what: format!("there is no session of {}", cwd.display()),
        advice: "`posse sessions list --all` shows those of other directories".into(),
    })?)
}

/// Number of sessions that are read before all are.
const LOOKED_AT: usize = 32;

/// Returns the last used session of this directory that can be continued.
pub(crate) async fn newest_to_continue(
    store: &dyn Store,
    cwd: &Path,
) -> anyhow::Result<AgentRecord> {
    // Usually one of the newest can; all are read only if none of them can.
    for limit in [LOOKED_AT, usize::MAX] {
        let filter = SessionFilter {
            cwd: Some(cwd.to_owned()),
            id_prefix: None,
        };
        let found = store.sessions(filter, Page::first(limit)).await?;
        if found.is_empty() {
            break;
        }
        if let Some(session) = found.into_iter().find(|session| !came_to_nothing(session)) {
            return Ok(session);
        }
    }
    let newest = newest(store, cwd).await?;
    anyhow::bail!(Advised {
        what: format!("no session of {} has a reply yet", cwd.display()),
        advice: format!(
            "start a new one, or continue the last one anyway: --resume {}",
            newest.agent
        ),
    })
}

/// Returns true if it failed before any reply, for example with a mistyped model.
fn came_to_nothing(session: &AgentRecord) -> bool {
    // A skill that a sub-agent has carried out costs the session itself nothing.
    let only_asked = session.charges.is_empty() && session.entries <= 1;
    session.state == AgentState::Idle && session.holder.is_none() && only_asked
}

/// Returns the session whose id begins with `id`; without an id, the last used one of this
/// directory.
pub(crate) async fn meant(store: &dyn Store, id: Option<&str>) -> anyhow::Result<AgentRecord> {
    match id {
        Some(prefix) => by_prefix(store, prefix).await,
        None => newest(store, &crate::config::environment::working_directory()?).await,
    }
}

/// Returns the session and every agent of its realm, read at one moment: if they were read one
/// after another, their sum would be inconsistent.
pub(crate) async fn meant_with_agents(
    store: &dyn Store,
    id: Option<&str>,
) -> anyhow::Result<(AgentRecord, Vec<AgentRecord>)> {
    let root = meant(store, id).await?;
    let filter = AgentFilter {
        realm: Some(root.realm),
        ..AgentFilter::default()
    };
    let agents = store.agents(filter, Page::all()).await?;
    Ok((root, agents))
}

/// Returns the only session whose id begins with `prefix`.
pub(crate) async fn by_prefix(store: &dyn Store, prefix: &str) -> anyhow::Result<AgentRecord> {
    let prefix = prefix.trim().to_ascii_lowercase();
    let filter = SessionFilter {
        cwd: None,
        id_prefix: Some(prefix.clone()),
    };
    let found = store.sessions(filter, Page::first(NAMED + 1)).await?;
    if found.is_empty()
        && let Some(team) = team_choice::imported(store, &prefix).await?
    {
        anyhow::bail!(Advised {
            what: format!(
                "that session has only the team {}, which was imported",
                team.name
            ),
            advice: format!(
                "use --team {0}, for example with `posse task`; `posse team show {0}` shows it",
                team.name
            ),
        });
    }
    Ok(only(&prefix, found)?)
}

/// Returns the only agent whose id begins with `prefix`: a session's main agent if there is one,
/// else a sub-agent.
pub(crate) async fn agent_by_prefix(
    store: &dyn Store,
    prefix: &str,
) -> anyhow::Result<AgentRecord> {
    let begins = prefix.trim().to_ascii_lowercase();
    let filter = SessionFilter {
        cwd: None,
        id_prefix: Some(begins.clone()),
    };
    if store.sessions(filter, Page::first(1)).await?.is_empty() {
        let filter = AgentFilter {
            id_prefix: Some(begins.clone()),
            ..AgentFilter::default()
        };
        let found = store.agents(filter, Page::first(NAMED + 1)).await?;
        if !found.is_empty() {
            return Ok(only(&begins, found)?);
        }
    }
    by_prefix(store, prefix).await
}

/// Returns the agent whose id begins with `id`, or that has this name in the last used session of
/// this directory; without an id, that session's main agent.
pub(crate) async fn any_agent(store: &dyn Store, id: Option<&str>) -> anyhow::Result<AgentRecord> {
    let Some(id) = id else {
        return meant(store, None).await;
    };
    match agent_by_prefix(store, id).await {
        Ok(agent) => Ok(agent),
        Err(error) => match named(store, id).await? {
            Some(agent) => Ok(agent),
            None => Err(error),
        },
    }
}

/// Returns the agent with this name in the last used session of this directory. If several had it,
/// the newest.
async fn named(store: &dyn Store, name: &str) -> anyhow::Result<Option<AgentRecord>> {
    let Ok((_, mut agents)) = meant_with_agents(store, None).await else {
        return Ok(None);
    };
    agents.retain(|agent| agent.origin.is_some() && agents::name(agent) == name.trim());
    Ok(agents.into_iter().max_by_key(|agent| agent.created_ms))
}

/// Returns the main agent of the session that an agent belongs to.
pub(crate) async fn root_of(store: &dyn Store, agent: &AgentRecord) -> anyhow::Result<AgentId> {
    let mut above = (agent.agent, parent(agent));
    while let (_, Some(id)) = above {
        let filter = AgentFilter {
            id: Some(id),
            ..AgentFilter::default()
        };
        let found = store.agents(filter, Page::first(1)).await?;
        above = (id, found.first().and_then(parent));
    }
    Ok(above.0)
}

fn parent(agent: &AgentRecord) -> Option<AgentId> {
    agent.origin.as_ref().map(|origin| origin.parent)
}

fn only(prefix: &str, mut found: Vec<AgentRecord>) -> Result<AgentRecord, Advised> {
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Advised {
            what: format!("there is no session {}", tame(prefix)),
            advice: "`posse sessions list --all` shows all sessions".into(),
        }),
        count => {
            let candidates = found.iter().take(NAMED).map(|session| {
                let words = session
                    .first_prompt
                    .as_deref()
                    .and_then(first_line)
                    .unwrap_or_default();
                format!("\n  {}  {}", session.agent, tame(&shortened(&words, 40)))
            });
            let more = if count > NAMED { "\n  and more" } else { "" };
            Err(Advised {
                what: format!("several session ids begin with `{}`", tame(prefix)),
                advice: format!(
                    "give more of the id:{}{more}",
                    candidates.collect::<String>()
                ),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::fixtures::{ID, session};

    #[test]
    fn what_came_to_nothing_is_told_from_what_can_go_on() {
        let failed = AgentRecord {
            charges: Vec::new(),
            entries: 1,
            ..session()
        };
        assert!(came_to_nothing(&failed));
        assert!(
            !came_to_nothing(&AgentRecord {
                entries: 1,
                ..session()
            }),
            "it has a reply"
        );
        assert!(
            !came_to_nothing(&AgentRecord {
                entries: 2,
                ..failed.clone()
            }),
            "more was said"
        );
        assert!(!came_to_nothing(&AgentRecord {
            holder: Some("pid 1".into()),
            ..failed.clone()
        }));
        for state in [AgentState::Paused, AgentState::Running] {
            assert!(!came_to_nothing(&AgentRecord {
                state,
                ..failed.clone()
            }));
        }
    }

    #[test]
    fn one_is_found_and_several_are_named() {
        assert_eq!(only("0197", vec![session()]).unwrap(), session());
        assert!(
            only("0197", vec![])
                .unwrap_err()
                .advice
                .contains("sessions list")
        );
        let several = only("0197", vec![session(), session()]).unwrap_err();
        assert!(
            several.advice.contains(ID) && several.advice.contains("fix \\u{1b}[2Jit"),
            "{}",
            several.advice
        );
        assert!(
            only("0197", vec![session(); NAMED + 1])
                .unwrap_err()
                .advice
                .ends_with("and more")
        );
    }
}
