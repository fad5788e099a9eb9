//! `posse team export`.

use std::path::PathBuf;
use std::process::ExitCode;

use posse_port::store::{Archive, MailFilter, Page, Refusal, Store};
use posse_protocol::{Name, Team};
use serde_json::{Value, json};

use super::archive::FormerInboxes;
use super::{archive, directory};
use crate::output::{count, json_line, print, say, say_to_person, tame};
use crate::select::{members, teams};

/// Write a team as files that can be read, compared and imported again.
///
/// config.json lists the members, tasks/N.json has the tasks, inboxes/NAME.json the mail of each
/// member, also of those that have left, notes/NAME.md the notes. Two exports of the same state are identical byte for byte. An
/// earlier export in the directory, even an incomplete one, is updated; other files in it are left
/// alone. Only you can read the inboxes (mode 0600).
#[derive(clap::Args)]
pub(super) struct ExportTeam {
    /// Directory to write to; created if missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Team to export [default: the only one]
    #[arg(long, value_name = "NAME")]
    team: Option<Name>,
    #[command(flatten)]
    session: teams::SessionArg,
    /// Print one JSON object: what was written
    #[arg(long)]
    json: bool,
}

impl ExportTeam {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let team = teams::meant(store, self.team.as_ref(), &self.session).await?;
        let exported = store.export(team.realm, team.name.clone()).await?;
        let archive = exported.ok_or(Refusal::NoSuchTeam { team: team.name })?;
        let former = former_inboxes(store, &archive.team).await?;
        let files = archive::files(&archive, &former);
        say_to_person(&format!("writing {}", count(files.len(), "file")));
        let done = directory::write(&self.directory, archive.team.name.as_str(), &files)?;
        for large in &done.too_large {
            say(&format!(
                "warning: {large} is too large to be imported again"
            ));
        }
        for strange in &done.strange {
            say(&format!(
                "warning: {} does not belong to this team; an import would read it",
                tame(strange)
            ));
        }
        let place = self.directory.to_string_lossy();
        let line = match self.json {
            true => {
                let mut object = counts(&archive);
                object["messages_of_former_members"] = json!(total(&former));
                object["directory"] = json!(place);
                object["files_written"] = json!(done.written);
                object["files_removed"] = json!(done.removed);
                json_line(&object)
            }
            false => {
                let what = match (done.written, done.removed) {
                    (0, 0) => "all files were up to date".to_owned(),
                    (written, 0) => format!("{} written", count(written, "file")),
                    (written, removed) => {
                        format!("{} written, {removed} removed", count(written, "file"))
                    }
                };
                let mut exported = in_words(&archive);
                if total(&former) > 0 {
                    let messages = count(total(&former), "message");
                    exported.push_str(&format!(", {messages} of members that have left"));
                }
                format!("exported {exported} to {}; {what}\n", tame(&place))
            }
        };
        print(line.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the mail of members that have left, as far as their transcripts are here.
async fn former_inboxes(store: &dyn Store, team: &Team) -> anyhow::Result<FormerInboxes> {
    let mut inboxes = FormerInboxes::new();
    for (name, agent) in members::former(store, team).await? {
        let (realm, everything) = (team.realm, MailFilter::default());
        let mail = store.mail(realm, agent.agent, everything, Page::all());
        inboxes.insert(name, mail.await?);
    }
    Ok(inboxes)
}

/// Returns the number of messages.
fn total(inboxes: &FormerInboxes) -> usize {
    inboxes.values().map(Vec::len).sum()
}

/// Returns how much there is of a team, for programs.
pub(super) fn counts(archive: &Archive) -> Value {
    json!({
        "team": archive.team.name, "session_id": archive.team.session(),
        "members": archive.team.members.len(), "tasks": archive.tasks.len(),
        "messages": archive.mail.iter().map(Vec::len).sum::<usize>(), "notes": archive.notes.len(),
    })
}

/// Returns the same for people.
pub(super) fn in_words(archive: &Archive) -> String {
    format!(
        "team {}: {}, {}, {}, {}",
        archive.team.name,
        count(archive.team.members.len(), "member"),
        count(archive.tasks.len(), "task"),
        count(archive.mail.iter().map(Vec::len).sum(), "message"),
        count(archive.notes.len(), "note"),
    )
}
