//! From files to an archive: posse's own, and what other programs wrote.

use std::collections::HashMap;

use posse_protocol::{
    AgentId, Mail, MailId, MailKind, Member, Name, Note, Owner, RealmId, Sender, Task, TaskId, TaskStatus,
    Team,
};
use posse_runtime::port::store::Archive;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{CONFIG, Files, Wrong};

/// What was found in files.
#[derive(Debug)]
pub(in super::super) struct Found {
    pub(in super::super) archive: Archive,
    /// Files that mean nothing here.
    pub(in super::super) left_out: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    name: Name,
    description: Option<String>,
    created_at: Option<When>,
    lead_agent_id: Option<String>,
    members: Vec<MemberFile>,
    settings: Option<Map<String, Value>>,
    #[serde(default)]
    posse: OwnConfig,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OwnConfig {
    realm: Option<RealmId>,
    last_task: u64,
    notes: Vec<OwnNote>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnNote {
    name: Name,
    version: u64,
    author: String,
    written_at: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MemberFile {
    name: Name,
    agent_id: Option<String>,
    agent_type: Option<String>,
    model: Option<String>,
    prompt: Option<String>,
    color: Option<String>,
    joined_at: Option<When>,
    backend_type: Option<String>,
    cwd: Option<String>,
    #[serde(default)]
    posse: OwnMember,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OwnMember {
    agent: Option<AgentId>,
    cwd_bytes: Option<Vec<u8>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskFile {
    id: Option<Number>,
    subject: String,
    description: Option<String>,
    active_form: Option<String>,
    status: Option<TaskStatus>,
    owner: Option<String>,
    #[serde(default)]
    blocked_by: Vec<Number>,
    #[serde(default)]
    blocks: Vec<Number>,
    created_at: Option<When>,
    updated_at: Option<When>,
    metadata: Option<Map<String, Value>>,
    version: Option<u64>,
    #[serde(default)]
    posse: OwnTask,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OwnTask {
    owner_agent: Option<AgentId>,
    lost_by: Option<String>,
}

#[derive(Deserialize)]
struct MailFile {
    from: String,
    text: String,
    summary: Option<String>,
    timestamp: Option<When>,
    #[serde(default)]
    read: bool,
    kind: Option<MailKind>,
    #[serde(default)]
    posse: OwnMail,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OwnMail {
    id: Option<MailId>,
    agent: Option<AgentId>,
    sent_at: Option<i64>,
    shown_in: Option<u64>,
}

/// A moment: milliseconds of Unix time, or as people write it.
struct When(i64);

impl<'de> Deserialize<'de> for When {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let number = value.as_i64().or_else(|| value.as_f64().map(|ms| ms as i64));
        let text = || value.as_str()?.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
        number.or_else(text).map(Self).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{value} is no time: milliseconds, or a text like \"2026-11-15T08:30:00Z\""
            ))
        })
    }
}

/// A task's number, as a number or a text.
struct Number(TaskId);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let text = || value.as_str().and_then(|text| text.parse().ok());
        let number = value.as_u64().or_else(text);
        // No larger than any program that reads JSON can keep.
        let number = number.filter(|number| (1..1 << 53).contains(number));
        number
            .map(|number| Self(TaskId(number)))
            .ok_or_else(|| serde::de::Error::custom(format!("{value} is no task: tasks are numbered from 1")))
    }
}

/// The archive that the files describe. What they do not say is new, as of `now_ms`.
pub(in super::super) fn parse(files: &Files, now_ms: i64) -> Result<Found, Wrong> {
    let text = files.get(CONFIG).ok_or_else(|| Wrong::new(CONFIG, "it is not there"))?;
    let mut config: Config = read(CONFIG, text)?;
    let known: HashMap<Name, OwnNote> =
        config.posse.notes.drain(..).map(|note| (note.name.clone(), note)).collect();
    let last_task = config.posse.last_task;
    let team = team(config, now_ms)?;
    let mut people = People::of(&team);
    let mail = vec![Vec::new(); team.members.len()];
    let mut archive = Archive { notes: Vec::new(), tasks: Vec::new(), last_task, mail, team };
    let mut left_out = Vec::new();
    for (file, text) in files {
        let Some((directory, name)) = file.split_once('/') else { continue };
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        match directory {
            "tasks" => match stem.parse().ok().filter(|number: &u64| number.to_string() == stem) {
                Some(number) => archive.tasks.push(task(file, text, TaskId(number), &people, now_ms)?),
                None => left_out.push(file.clone()),
            },
            "inboxes" => match archive.team.members.iter().position(|it| it.name.as_str() == stem) {
                Some(at) => {
                    let to = archive.team.members[at].agent;
                    archive.mail[at] = inbox(file, text, to, &mut people, now_ms)?;
                }
                None => left_out.push(file.clone()),
            },
            _ => match stem.parse::<Name>() {
                Ok(name) => archive.notes.push(note(name, text, &known, now_ms)),
                Err(_) => left_out.push(file.clone()),
            },
        }
    }
    archive.tasks.sort_by_key(|task| task.id);
    let highest = archive.tasks.last().map_or(0, |task| task.id.0);
    archive.last_task = last_task.max(highest);
    Ok(Found { archive, left_out })
}

fn read<'a, T: Deserialize<'a>>(file: &str, text: &'a str) -> Result<T, Wrong> {
    // Some editors begin a file with a mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| Wrong::new(file, error.to_string()))
}

fn team(config: Config, now_ms: i64) -> Result<Team, Wrong> {
    let when = |at: &Option<When>| at.as_ref().map_or(now_ms, |at| at.0);
    let mut members: Vec<Member> = Vec::new();
    let mut lead = None;
    for it in config.members {
        let leads = it.agent_id.is_some() && it.agent_id == config.lead_agent_id;
        if leads || it.name.as_str() == Name::LEAD {
            lead.get_or_insert(members.len());
        }
        members.push(Member {
            agent: it.posse.agent.unwrap_or_else(|| Uuid::now_v7().into()),
            agent_type: it.agent_type.unwrap_or_default(),
            model: it.model.unwrap_or_default(),
            prompt: it.prompt.unwrap_or_default(),
            color: it.color.unwrap_or_default(),
            joined_ms: when(&it.joined_at),
            backend: it.backend_type.unwrap_or_else(|| "in-process".into()),
            cwd: match it.posse.cwd_bytes {
                Some(bytes) => std::os::unix::ffi::OsStringExt::from_vec(bytes),
                None => std::ffi::OsString::from(it.cwd.unwrap_or_default()),
            }
            .into(),
            name: it.name,
        });
    }
    let lead = lead.ok_or_else(|| Wrong::new(CONFIG, "no member is called team-lead"))?;
    // The lead stands first; the others keep their order.
    members[..=lead].rotate_right(1);
    Ok(Team {
        realm: config.posse.realm.unwrap_or_else(|| Uuid::now_v7().into()),
        name: config.name,
        description: config.description.unwrap_or_default(),
        lead: members[0].agent,
        created_ms: when(&config.created_at),
        settings: config.settings.unwrap_or_default(),
        members,
    })
}

/// Whose name is whose: members', and those of others who sent something, each with one id.
struct People(HashMap<String, AgentId>);

impl People {
    fn of(team: &Team) -> Self {
        Self(team.members.iter().map(|member| (member.name.to_string(), member.agent)).collect())
    }

    fn owner(&self, name: String, agent: Option<AgentId>) -> Owner {
        Owner { agent: agent.or_else(|| self.0.get(plain(&name)).copied()), name }
    }

    fn sender(&mut self, name: String, agent: Option<AgentId>) -> Sender {
        match agent {
            None if name == "user" => Sender::User,
            Some(id) => Sender::Agent { id, name },
            None => {
                let known = self.0.entry(plain(&name).to_owned());
                Sender::Agent { id: *known.or_insert_with(|| Uuid::now_v7().into()), name }
            }
        }
    }
}

/// A name without its team.
fn plain(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}

fn task(file: &str, text: &str, id: TaskId, people: &People, now_ms: i64) -> Result<Task, Wrong> {
    let it: TaskFile = read(file, text)?;
    if let Some(Number(own)) = it.id.filter(|Number(own)| *own != id) {
        return Err(Wrong::new(file, format!("the task in it is {own}")));
    }
    let numbers = |list: Vec<Number>| list.into_iter().map(|Number(id)| id).collect();
    let created_ms = it.created_at.map_or(now_ms, |at| at.0);
    Ok(Task {
        id,
        subject: it.subject,
        description: it.description.unwrap_or_default(),
        active_form: it.active_form.filter(|form| !form.is_empty()),
        status: it.status.unwrap_or(TaskStatus::Pending),
        owner: it
            .owner
            .filter(|owner| !owner.is_empty())
            .map(|name| people.owner(name, it.posse.owner_agent)),
        lost_by: it.posse.lost_by,
        blocked_by: numbers(it.blocked_by),
        waits_for: Vec::new(),
        blocks: numbers(it.blocks),
        created_ms,
        updated_ms: it.updated_at.map_or(created_ms, |at| at.0),
        metadata: it.metadata.unwrap_or_default(),
        version: it.version.unwrap_or(1).max(1),
    })
}

fn inbox(file: &str, text: &str, to: AgentId, people: &mut People, now_ms: i64) -> Result<Vec<Mail>, Wrong> {
    let messages: Vec<MailFile> = read(file, text)?;
    let mut inbox: Vec<Mail> = Vec::with_capacity(messages.len());
    for it in messages {
        let first_line = || it.text.lines().next().unwrap_or_default().chars().take(80).collect();
        inbox.push(Mail {
            id: it.posse.id.unwrap_or_else(|| Uuid::now_v7().into()),
            number: inbox.len() as u64 + 1,
            to,
            from: people.sender(it.from, it.posse.agent),
            kind: it.kind.unwrap_or(MailKind::Text),
            summary: it.summary.unwrap_or_else(first_line),
            body: it.text,
            sent_ms: it.posse.sent_at.or(it.timestamp.map(|at| at.0)).unwrap_or(now_ms),
            // Where it was shown is not known: its transcript is elsewhere.
            shown_in: it.read.then(|| it.posse.shown_in.unwrap_or(0)),
        });
    }
    Ok(inbox)
}

fn note(name: Name, text: &str, known: &HashMap<Name, OwnNote>, now_ms: i64) -> Note {
    let (version, author, written_ms) = match known.get(&name) {
        Some(note) => (note.version.max(1), note.author.clone(), note.written_at),
        None => (1, "user".to_owned(), now_ms),
    };
    Note { name, version, author, text: text.to_owned(), written_ms }
}
