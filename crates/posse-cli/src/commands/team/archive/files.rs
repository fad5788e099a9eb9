//! Writes an archive as files.

use std::collections::BTreeSet;

use posse_port::store::Archive;
use posse_protocol::{Mail, Member, Name, Sender, Takes, Task, TaskId};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::numbers::Numbers;
use super::{ArchiveFiles, CONFIG, FormerInboxes};
use crate::output::time::moment;

/// The key that marks an export as incomplete.
const UNFINISHED: &str = "unfinished";

/// What an earlier export wrote, by its own description. Nothing else is ever removed.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct PreviousExport {
    pub(in super::super) team: String,
    others: BTreeSet<String>,
    tasks: Numbers,
}

impl PreviousExport {
    /// Returns true if it wrote the file.
    pub(in super::super) fn wrote(&self, file: &str) -> bool {
        let task = file
            .strip_prefix("tasks/")
            .and_then(|name| name.strip_suffix(".json")?.parse().ok());
        self.others.contains(file)
            || task.is_some_and(|id| self.tasks.contains(id) && task_file(id) == file)
    }
}

/// Returns the files of a team, with the inboxes of members that have left.
pub(in super::super) fn files(archive: &Archive, former: &FormerInboxes) -> ArchiveFiles {
    let mut files = ArchiveFiles::new();
    let mut config = config(archive);
    if !former.is_empty() {
        config["posse"]["formerInboxes"] = former.keys().map(Name::as_str).collect();
    }
    files.insert(CONFIG.to_owned(), pretty(&config));
    let members = archive.team.members.iter().map(|member| &member.name);
    for (name, mail) in former.iter().chain(members.zip(&archive.mail)) {
        let inbox: Value = mail.iter().map(message).collect();
        files.insert(inbox_file(name.as_str()), pretty(&inbox));
    }
    for task in &archive.tasks {
        files.insert(task_file(task.id.0), pretty(&described(task)));
    }
    for note in &archive.notes {
        files.insert(note_file(note.name.as_str()), note.text.clone());
    }
    files
}

pub(super) fn inbox_file(name: &str) -> String {
    format!("inboxes/{name}.json")
}

pub(super) fn task_file(id: u64) -> String {
    format!("tasks/{id}.json")
}

pub(super) fn note_file(name: &str) -> String {
    format!("notes/{name}.md")
}

fn config(archive: &Archive) -> Value {
    let team = &archive.team;
    let lead = team.members.iter().find(|member| member.agent == team.lead);
    let notes = archive.notes.iter().map(|note| {
        json!({
            "name": note.name, "version": note.version, "author": note.author,
            "writtenAt": note.written_ms,
        })
    });
    json!({
        "name": team.name,
        "description": team.description,
        "createdAt": team.created_ms,
        "leadAgentId": format!("{}@{}", lead.map_or(Name::LEAD, |lead| lead.name.as_str()), team.name),
        "leadSessionId": team.session(),
        "members": team.members.iter().map(|it| member(it, team.name.as_str())).collect::<Value>(),
        "settings": sorted(&team.settings),
        "posse": {
            "realm": team.realm,
            "lastTask": archive.last_task,
            "formerNames": team.former,
            "tasks": archive.tasks.iter().map(|task| task.id.0).collect::<Numbers>().to_string(),
            "notes": notes.collect::<Value>(),
        },
    })
}

fn member(member: &Member, team: &str) -> Value {
    let mut own = json!({"agent": member.agent});
    if member.cwd.to_str().is_none() {
        use std::os::unix::ffi::OsStrExt;
        own["cwdBytes"] = json!(member.cwd.as_os_str().as_bytes());
    }
    if let Some(role) = &member.role {
        own["role"] = json!(role);
    }
    if member.takes != Takes::Any {
        own["takes"] = json!(member.takes);
    }
    json!({
        "agentId": format!("{}@{team}", member.name),
        "name": member.name,
        "agentType": member.agent_type,
        "model": member.model,
        "prompt": member.prompt,
        "color": member.color,
        "joinedAt": member.joined_ms,
        "backendType": member.backend,
        "cwd": member.cwd.to_string_lossy(),
        "posse": own,
    })
}

fn message(mail: &Mail) -> Value {
    let agent = match &mail.from {
        Sender::User => None,
        Sender::Agent { id, .. } => Some(id),
    };
    json!({
        "from": mail.from.name(),
        "text": mail.body,
        "summary": mail.summary,
        "timestamp": moment(mail.sent_ms),
        "read": mail.shown_in.is_some(),
        "kind": mail.kind,
        "posse": {
            "id": mail.id, "agent": agent, "sentAt": mail.sent_ms,
            "shownIn": mail.shown_in,
        },
    })
}

fn described(task: &Task) -> Value {
    let numbers = |tasks: &[TaskId]| tasks.iter().map(TaskId::to_string).collect::<Value>();
    let mut object = json!({
        "id": task.id.to_string(), "subject": task.subject, "description": task.description,
    });
    if let Some(form) = &task.active_form {
        object["activeForm"] = json!(form);
    }
    object["status"] = json!(task.status);
    if let Some(owner) = &task.owner {
        object["owner"] = json!(owner.name);
    }
    object["blockedBy"] = numbers(&task.blocked_by);
    object["blocks"] = numbers(&task.blocks);
    object["createdAt"] = json!(task.created_ms);
    object["updatedAt"] = json!(task.updated_ms);
    object["metadata"] = sorted(&task.metadata);
    object["version"] = json!(task.version);
    let agent = task.owner.as_ref().and_then(|owner| owner.agent);
    if agent.is_some() || task.lost_by.is_some() {
        object["posse"] = json!({"ownerAgent": agent, "lostBy": task.lost_by});
    }
    for (key, text) in [("role", &task.role), ("check", &task.check)] {
        if let Some(text) = text {
            object["posse"][key] = json!(text);
        }
    }
    object
}

/// Returns what an earlier export wrote; `None` if the text is not a description of an export.
pub(in super::super) fn previous(config: &str) -> Option<PreviousExport> {
    #[derive(Deserialize)]
    struct WrittenTeam {
        name: String,
        members: Vec<WrittenName>,
        posse: WrittenOwn,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct WrittenOwn {
        tasks: String,
        notes: Vec<WrittenName>,
        #[serde(default)]
        former_inboxes: Vec<Name>,
    }
    #[derive(Deserialize)]
    struct WrittenName {
        name: Name,
    }
    let config: WrittenTeam = serde_json::from_str(config).ok()?;
    let members = config.members.iter().map(|member| &member.name);
    let inboxes = members
        .chain(&config.posse.former_inboxes)
        .map(|name| inbox_file(name.as_str()));
    let notes = config
        .posse
        .notes
        .iter()
        .map(|note| note_file(note.name.as_str()));
    let (others, tasks) = (
        inboxes.chain(notes).collect(),
        config.posse.tasks.parse().ok()?,
    );
    Some(PreviousExport {
        team: config.name,
        others,
        tasks,
    })
}

/// Returns a description that is marked as incomplete.
pub(in super::super) fn unfinished(config: &str) -> String {
    let mut value: Value = serde_json::from_str(config).unwrap_or_default();
    value["posse"][UNFINISHED] = json!(true);
    pretty(&value)
}

/// Returns a map with its keys sorted at every depth.
fn sorted(map: &Map<String, Value>) -> Value {
    let mut value = Value::Object(map.clone());
    value.sort_all_objects();
    value
}

fn pretty(value: &Value) -> String {
    // Writing fails only for keys that are not strings, and a `Value` has none.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
