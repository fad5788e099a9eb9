//! Finds the team that a person means.

use posse_port::store::{Page, Store};
use posse_protocol::{Name, Team};

use super::sessions;
use super::team_choice::{is_called, is_led, nearest, only, place};

/// Which session's team, where several have one of that name.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SessionArg {
    /// Session it belongs to; a unique prefix of its ID is enough
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

/// Returns the team of this name, if one is given, and of this session, if one is given. Of
/// several, a running one is preferred, then the newest of this directory.
pub(crate) async fn meant(
    store: &dyn Store,
    name: Option<&Name>,
    session: &SessionArg,
) -> anyhow::Result<Team> {
    let all = store.teams(None, Page::all()).await?;
    let teams = match session.session.as_deref() {
        Some(prefix) => of_session(store, all, prefix).await?,
        None => {
            let here = crate::config::environment::working_directory()?;
            let named: Vec<Team> = all
                .iter()
                .filter(|team| is_called(team, name))
                .cloned()
                .collect();
            match nearest(named, &here) {
                Some(team) => return Ok(team),
                None => all,
            }
        }
    };
    Ok(only(teams, name)?)
}

/// Returns the only team of this name and session; of several, the only one of this directory. Never
/// guesses.
pub(crate) async fn certain(
    store: &dyn Store,
    name: &Name,
    session: &SessionArg,
) -> anyhow::Result<Team> {
    let all = store.teams(None, Page::all()).await?;
    let teams = match session.session.as_deref() {
        Some(prefix) => of_session(store, all, prefix).await?,
        None => {
            let here = crate::config::environment::working_directory()?;
            let is_here = |team: &&Team| team.name == *name && place(team) == Some(&here);
            let mut local = all.iter().filter(is_here);
            match (local.next(), local.next()) {
                (Some(team), None) => return Ok(team.clone()),
                _ => all,
            }
        }
    };
    Ok(only(teams, Some(name))?)
}

/// Returns the teams of the session whose id begins with `prefix`. An imported team has no
/// session, only its first lead's id.
async fn of_session(store: &dyn Store, all: Vec<Team>, prefix: &str) -> anyhow::Result<Vec<Team>> {
    let led: Vec<Team> = all
        .iter()
        .filter(|team| is_led(team, prefix))
        .cloned()
        .collect();
    if !led.is_empty() {
        return Ok(led);
    }
    let realm = sessions::by_prefix(store, prefix).await?.realm;
    Ok(all.into_iter().filter(|team| team.realm == realm).collect())
}
