//! `posse team import`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use posse_port::store::{AgentFilter, Archive, Page, Store, StoreError};
use posse_protocol::{AgentId, RealmId, Sender, TaskStatus, Team};
use uuid::Uuid;

use super::archive::{self, ArchiveError, NAMED, ParsedArchive};
use super::directory;
use super::export::{counts, in_words};
use crate::config::store::StoreArgs;
use crate::error::Advised;
use crate::output::time::now_ms;
use crate::output::{count, json_line, print, say, say_to_person, tame};

/// Import a team from files: an export of posse, or a team's directory with its config.json,
/// inboxes and tasks.
///
/// Everything is checked before anything is written. Tasks in progress become pending. Members have
/// no transcripts and do not run.
#[derive(clap::Args)]
pub(super) struct ImportTeam {
    /// Directory with config.json
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print one JSON object: what was imported
    #[arg(long)]
    json: bool,
}

impl ImportTeam {
    /// Opens the store only after the files were checked, so that a failed import does not create
    /// one.
    pub(super) async fn run(self, store: &StoreArgs) -> anyhow::Result<ExitCode> {
        let files = directory::read(&self.directory)?;
        say_to_person(&format!("checking {}", count(files.len(), "file")));
        let wrong = |wrong: Vec<ArchiveError>| wrong_files(&self.directory, &wrong);
        let ParsedArchive {
            mut archive,
            warnings,
        } = archive::parse(&files, now_ms()).map_err(wrong)?;
        archive::check(&mut archive).map_err(wrong)?;
        let store = crate::assemble::store::open_store(store)?;
        let store = store.as_ref();
        if !is_free(store, &archive).await? {
            renew(&mut archive);
        }
        for warning in &warnings {
            say(&format!("warning: {}", tame(warning)));
        }
        store
            .import(archive.clone())
            .await
            .map_err(|error| match error {
                StoreError::BadStep(why) => anyhow::Error::new(Advised {
                    what: format!("{} cannot be imported: {why}", self.directory.display()),
                    advice: "nothing was imported; fix the files".into(),
                }),
                other => other.into(),
            })?;
        let line = match self.json {
            true => json_line(&counts(&archive)),
            false => readable(&archive, is_only(store, &archive).await?),
        };
        print(line.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns true if no other team has its name.
async fn is_only(store: &dyn Store, archive: &Archive) -> anyhow::Result<bool> {
    let teams = store.teams(None, Page::all()).await?;
    Ok(teams
        .iter()
        .filter(|team| team.name == archive.team.name)
        .count()
        == 1)
}

fn readable(archive: &Archive, only: bool) -> String {
    let (Team { name, .. }, session) = (&archive.team, archive.team.session());
    let mut said = format!("imported {}\n", in_words(archive));
    let begun = archive
        .tasks
        .iter()
        .filter(|task| task.status == TaskStatus::InProgress)
        .count();
    match begun {
        0 => {}
        1 => said.push_str("1 task was in progress and is now pending\n"),
        _ => said.push_str(&format!(
            "{begun} tasks were in progress and are now pending\n"
        )),
    }
    match only {
        true => said.push_str(&format!("look at it: posse team show {name}\n")),
        false => said.push_str(&format!(
            "there is another team {name}; this one belongs to session {session}\n\
             look at it: posse team show {name} --session {session}\n"
        )),
    }
    said
}

fn wrong_files(directory: &Path, wrong: &[ArchiveError]) -> Advised {
    if let [wrong] = wrong {
        return Advised {
            what: format!("{}: {}", directory.join(&wrong.file).display(), wrong.why),
            advice: "nothing was imported; fix the file and try again".into(),
        };
    }
    let lines = wrong
        .iter()
        .take(NAMED)
        .map(|wrong| format!("\n  {}: {}", wrong.file, wrong.why));
    let more = if wrong.len() > NAMED {
        "\n  and more"
    } else {
        ""
    };
    Advised {
        what: format!(
            "{} cannot be imported:{}{more}",
            directory.display(),
            lines.collect::<String>()
        ),
        advice: "nothing was imported; fix the files and try again".into(),
    }
}

/// Returns all agent ids in an archive.
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
    let owners = archive
        .tasks
        .iter_mut()
        .filter_map(|task| task.owner.as_mut()?.agent.as_mut());
    all.extend(owners);
    all
}

/// Returns true if the store knows neither the realm nor the agents of an archive. Otherwise it
/// could impersonate sessions that exist here.
async fn is_free(store: &dyn Store, archive: &Archive) -> anyhow::Result<bool> {
    let realm = Some(archive.team.realm);
    if !store
        .agents(
            AgentFilter {
                realm,
                ..AgentFilter::default()
            },
            Page::first(1),
        )
        .await?
        .is_empty()
        || !store.teams(realm, Page::first(1)).await?.is_empty()
    {
        return Ok(false);
    }
    let named: HashSet<AgentId> = agents(&mut archive.clone())
        .into_iter()
        .map(|id| *id)
        .collect();
    for team in store.teams(None, Page::all()).await? {
        if team
            .members
            .iter()
            .any(|member| named.contains(&member.agent))
        {
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

/// Gives the realm and every agent a new id, consistently.
fn renew(archive: &mut Archive) {
    let realm = RealmId::from(Uuid::now_v7());
    archive.team.realm = realm;
    let mut new: HashMap<AgentId, AgentId> = HashMap::new();
    for agent in agents(archive) {
        *agent = *new
            .entry(*agent)
            .or_insert_with(|| AgentId::within(realm, Uuid::now_v7()));
    }
}
