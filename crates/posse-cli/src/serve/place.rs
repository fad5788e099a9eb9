//! Which session a call is about: one of the directory that the server is for.

use std::path::Path;

use posse_port::store::{AgentFilter, AgentRecord, Page, SessionFilter, Store};
use posse_protocol::{PermissionMode, RealmId, Team};

use super::tools::PlaceRequest;
use crate::error::Advised;
use crate::output::tame;
use crate::select::recipients::RecipientArgs;
use crate::select::{sessions, team_choice};

/// Returns the session with an ID that begins with `id`; without one, the last one used.
pub(super) async fn session(
    store: &dyn Store,
    cwd: &Path,
    id: Option<&str>,
) -> anyhow::Result<AgentRecord> {
    let Some(id) = id else {
        return sessions::newest(store, cwd).await;
    };
    let found = sessions::by_prefix(store, id).await?;
    if found.cwd != cwd {
        anyhow::bail!(Advised {
            what: format!("session {} is of another directory", found.agent),
            advice: format!("this server is for {}", tame(&cwd.to_string_lossy())),
        });
    }
    Ok(found)
}

/// What a call is about.
pub(super) struct Place {
    pub(super) session: AgentRecord,
    pub(super) team: Option<Team>,
}

impl Place {
    /// Finds the session and the team. A team without a session is the newest of its name.
    pub(super) async fn of(
        store: &dyn Store,
        cwd: &Path,
        asked: &PlaceRequest,
    ) -> anyhow::Result<Self> {
        let Some(name) = &asked.team else {
            let session = session(store, cwd, asked.session.as_deref()).await?;
            return Ok(Self {
                session,
                team: None,
            });
        };
        let candidates = match &asked.session {
            Some(id) => vec![session(store, cwd, Some(id)).await?],
            None => {
                let filter = SessionFilter {
                    cwd: Some(cwd.to_owned()),
                    id_prefix: None,
                };
                store.sessions(filter, Page::all()).await?
            }
        };
        for session in candidates {
            let teams = store.teams(Some(session.realm), Page::all()).await?;
            let called = |team: &Team| team_choice::is_called(team, Some(name));
            if let Some(team) = teams.into_iter().find(called) {
                let team = Some(team);
                return Ok(Self { session, team });
            }
        }
        anyhow::bail!(Advised {
            what: format!("there is no team {name} here"),
            advice: "`sessions` and `session` show which teams there are".into(),
        })
    }

    pub(super) fn realm(&self) -> RealmId {
        self.session.realm
    }

    /// Returns the flags that mean this place.
    pub(super) fn recipients(&self) -> RecipientArgs {
        RecipientArgs {
            team: self.team.as_ref().map(|team| team.name.clone()),
            session: Some(self.session.agent.to_string()),
        }
    }

    /// Refuses to tell agents what to do if one of them may do more than `mode` allows: what the
    /// server may not do itself, it may not have done.
    pub(super) async fn must_be_within(
        &self,
        store: &dyn Store,
        mode: PermissionMode,
    ) -> anyhow::Result<()> {
        let filter = AgentFilter {
            realm: Some(self.realm()),
            ..AgentFilter::default()
        };
        let agents = store.agents(filter, Page::all()).await?;
        let wider = |agent: &&AgentRecord| agent.mode.strictness() > mode.strictness();
        if let Some(wider) = agents.iter().find(wider) {
            anyhow::bail!(Advised {
                what: format!(
                    "{} works in {}, and this server in {mode}",
                    tame(&wider.path),
                    wider.mode
                ),
                advice: format!("start the server with --permission-mode {}", wider.mode),
            });
        }
        Ok(())
    }
}
