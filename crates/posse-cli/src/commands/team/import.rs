//! `posse team import`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use posse_protocol::{AgentId, Sender};
use posse_runtime::port::store::{AgentFilter, Archive, Store, StoreError};
use uuid::Uuid;

use super::archive::{self, Found, Wrong};
use super::directory;
use super::export::{counts, in_words};
use crate::hint::Advised;
use crate::moment::now_ms;
use crate::output::{json_line, print, say, tame};

/// Bring in a team from files: an export of posse, or a team's directory with its config.json, inboxes and
/// tasks.
///
/// All of it is checked before anything is written. Tasks that were being done are pending. Members have no
/// transcripts, and do not run.
#[derive(clap::Args)]
pub(super) struct Import {
    /// The directory with config.json
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// One JSON object: what was imported
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let files = directory::read(&self.directory)?;
        let wrong = |wrong: Wrong| wrong_file(&self.directory, &wrong);
        let Found { mut archive, left_out } = archive::parse(&files, now_ms()).map_err(wrong)?;
        archive::check(&mut archive).map_err(wrong)?;
        if !is_free(store, &archive).await? {
            renew(&mut archive);
        }
        for file in &left_out {
            say(&format!("warning: {} is left out: it belongs to no member or task", tame(file)));
        }
        store.import(archive.clone()).await.map_err(|error| match error {
            StoreError::BadStep(why) => anyhow::Error::new(Advised {
                what: format!("{} cannot be imported: {why}", self.directory.display()),
                advice: "nothing was imported; mend the files".into(),
            }),
            other => other.into(),
        })?;
        let line = match self.json {
            true => json_line(&counts(&archive)),
            false => {
                format!(
                    "imported {}\nlook at it: posse team show {}\n",
                    in_words(&archive),
                    archive.team.name
                )
            }
        };
        print(line.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn wrong_file(directory: &Path, wrong: &Wrong) -> Advised {
    Advised {
        what: format!("{}: {}", directory.join(&wrong.file).display(), wrong.why),
        advice: "nothing was imported; mend the file and try again".into(),
    }
}

/// All agents that an archive speaks of.
fn agents(archive: &mut Archive) -> Vec<&mut AgentId> {
    let team = &mut archive.team;
    let members = team.members.iter_mut().map(|member| &mut member.agent);
    let mut all: Vec<&mut AgentId> = members.chain([&mut team.lead]).collect();
    for mail in archive.mail.iter_mut().flatten() {
        all.push(&mut mail.to);
        if let Sender::Agent { id, .. } = &mut mail.from {
            all.push(id);
        }
    }
    let owners = archive.tasks.iter_mut().filter_map(|task| task.owner.as_mut()?.agent.as_mut());
    all.extend(owners);
    all
}

/// Whether the store knows nothing of the realm and the agents that an archive names. Else it could speak
/// for sessions that are here.
async fn is_free(store: &dyn Store, archive: &Archive) -> anyhow::Result<bool> {
    let realm = Some(archive.team.realm);
    if !store.agents(AgentFilter { realm, held: false }, 1).await?.is_empty()
        || !store.teams(realm, 1).await?.is_empty()
    {
        return Ok(false);
    }
    let named: HashSet<AgentId> = agents(&mut archive.clone()).into_iter().map(|id| *id).collect();
    for team in store.teams(None, usize::MAX).await? {
        if team.members.iter().any(|member| named.contains(&member.agent)) {
            return Ok(false);
        }
    }
    for agent in named {
        match store.read(agent).await {
            Err(StoreError::NotFound { .. }) => {}
            Err(StoreError::Damaged { .. }) | Ok(_) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Gives the realm and every agent a new id, the same everywhere.
fn renew(archive: &mut Archive) {
    archive.team.realm = Uuid::now_v7().into();
    let mut new: HashMap<AgentId, AgentId> = HashMap::new();
    for agent in agents(archive) {
        *agent = *new.entry(*agent).or_insert_with(|| Uuid::now_v7().into());
    }
}
