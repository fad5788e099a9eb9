//! Refuses a second run of a team where one is at work.

use std::fs::{File, TryLockError};
use std::time::Duration;

use posse_port::clock::{Clock as _, SystemClock};
use posse_port::store::{AgentFilter, Page, Store};
use posse_protocol::{Name, Team};

use crate::assemble::store::look_into_store;
use crate::config::environment::working_directory;
use crate::config::store::StoreArgs;
use crate::config::store_choice::meant_store;
use crate::error::Advised;
use crate::present::sessions::short;
use crate::select::team_choice::runs_in;

/// Time to wait for another posse that starts a team in this directory.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks at its lock.
const MOMENT: Duration = Duration::from_millis(10);

/// Fails as [`must_be_first`] does. Until what it returns is dropped, no other team starts in this
/// directory: two starts at the same moment would both find none.
pub(super) async fn become_first(store: &StoreArgs, name: &Name) -> anyhow::Result<Option<File>> {
    let lock = lock(name).await?;
    must_be_first(store, name).await?;
    Ok(lock)
}

/// Locks the working directory, which needs no file of its own. Returns `None` if its file system
/// has no locks.
async fn lock(name: &Name) -> anyhow::Result<Option<File>> {
    let directory = File::open(working_directory()?)?;
    let clock = SystemClock::default();
    while clock.now() < PATIENCE {
        match directory.try_lock() {
            Ok(()) => return Ok(Some(directory)),
            Err(TryLockError::WouldBlock) => clock.sleep(MOMENT).await,
            Err(TryLockError::Error(_)) => return Ok(None),
        }
    }
    anyhow::bail!(Advised {
        what: "another posse has been starting a team in this directory for 10 s".into(),
        advice: format!(
            "try again; or run a team beside that one: posse team run {name} --another"
        ),
    });
}

/// Fails if a team of this name runs in this directory: both would edit the same files.
pub(super) async fn must_be_first(store: &StoreArgs, name: &Name) -> anyhow::Result<()> {
    if meant_store(store)?
        .place
        .file()
        .is_some_and(|path| !path.exists())
    {
        // The run makes it.
        return Ok(());
    }
    let (store, here) = (look_into_store(store)?, working_directory()?);
    let mut teams = store.teams(None, Page::all()).await?.into_iter();
    let runs = |team: &Team| team.name == *name && runs_in(team, &here);
    let Some(team) = teams.find(runs) else {
        return Ok(());
    };
    let session = team.session();
    let holder = holder(store.as_ref(), &team).await?;
    let by = holder.map_or_else(String::new, |holder| format!(", run by {holder}"));
    anyhow::bail!(Advised {
        what: format!("team {name} already runs in this directory{by}"),
        advice: format!(
            "`posse attach {}` watches it and talks to its lead, `posse team show {name}` shows who \
             does what; with --another a second one starts, which edits the same files",
            short(session)
        ),
    });
}

/// Returns the process that hosts the lead, else that of another member.
async fn holder(store: &dyn Store, team: &Team) -> anyhow::Result<Option<String>> {
    let filter = AgentFilter {
        realm: Some(team.realm),
        ..AgentFilter::default()
    };
    let agents = store.agents(filter, Page::all()).await?;
    let (leads, others): (Vec<_>, Vec<_>) = agents
        .into_iter()
        .partition(|agent| agent.agent == team.lead);
    let mut holders = leads.into_iter().chain(others);
    Ok(holders.find_map(|agent| agent.holder))
}
