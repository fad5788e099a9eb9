//! Parses files into an archive: posse's own, and those of other programs.

use std::collections::{BTreeSet, HashMap};

use posse_port::store::Archive;
use posse_protocol::{
    AgentId, Mail, MailId, MailKind, Member, MemberState, Name, Note, Owner, RealmId, Sender,
    Takes, Task, TaskId, TaskStatus, Team,
};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::files::{inbox_file, note_file, task_file};
use super::numbers::Numbers;
use super::{ArchiveError, ArchiveFiles, CONFIG, NAMED};

/// What the user is called.
const USER: &str = "user";

/// The result of parsing.
#[derive(Debug)]
pub(in super::super) struct ParsedArchive {
    pub(in super::super) archive: Archive,
    /// What was left out or changed.
    pub(in super::super) warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TeamFile {
    name: Name,
    description: Option<String>,
    created_at: Option<ArchiveTime>,
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
    former_names: Vec<Name>,
    /// The numbers of the tasks that were written.
    tasks: Option<String>,
    notes: Vec<OwnNote>,
    /// The export is incomplete.
    unfinished: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnNote {
    name: Name,
    version: u64,
    author: String,
    written_at: ArchiveTime,
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
    joined_at: Option<ArchiveTime>,
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
    role: Option<String>,
    takes: Takes,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskFile {
    id: Option<ArchiveTaskId>,
    subject: String,
    description: Option<String>,
    active_form: Option<String>,
    status: Option<TaskStatus>,
    owner: Option<String>,
    #[serde(default)]
    blocked_by: Vec<ArchiveTaskId>,
    #[serde(default)]
    blocks: Vec<ArchiveTaskId>,
    created_at: Option<ArchiveTime>,
    updated_at: Option<ArchiveTime>,
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
    role: Option<String>,
    check: Option<String>,
}

#[derive(Deserialize)]
struct MailFile {
    from: String,
    text: String,
    summary: Option<String>,
    timestamp: Option<ArchiveTime>,
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
    sent_at: Option<ArchiveTime>,
    shown_in: Option<u64>,
}

/// Valid times: from 1970 to the end of 9999.
const POSSIBLE: std::ops::Range<i64> = 0..253_402_300_800_000;

/// A time: milliseconds of Unix time, or a text.
struct ArchiveTime(i64);

impl<'de> Deserialize<'de> for ArchiveTime {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let number = value
            .as_i64()
            .or_else(|| value.as_f64().map(|ms| ms as i64));
        let text = || {
            value
                .as_str()?
                .parse::<jiff::Timestamp>()
                .ok()
                .map(jiff::Timestamp::as_millisecond)
        };
        let time = number.or_else(text).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{value} is not a time: use milliseconds, or a text like \"2026-11-15T08:30:00Z\""
            ))
        })?;
        if !POSSIBLE.contains(&time) {
            let why = format!("{value} is not a valid time: it is before 1970 or after 9999");
            return Err(serde::de::Error::custom(why));
        }
        Ok(Self(time))
    }
}

/// A task's number, as a number or a text.
struct ArchiveTaskId(TaskId);

impl<'de> Deserialize<'de> for ArchiveTaskId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let text = || value.as_str().and_then(|text| text.parse().ok());
        let number = value.as_u64().or_else(text);
        // No larger than any JSON reader can represent.
        let number = number.filter(|number| (1..1 << 53).contains(number));
        number.map(|number| Self(TaskId(number))).ok_or_else(|| {
            serde::de::Error::custom(format!("{value} is not a task: tasks are numbered from 1"))
        })
    }
}

/// Returns the archive that the files describe. What they do not say is new, as of `now_ms`.
pub(in super::super) fn parse(
    files: &ArchiveFiles,
    now_ms: i64,
) -> Result<ParsedArchive, Vec<ArchiveError>> {
    let text = files
        .get(CONFIG)
        .ok_or_else(|| vec![ArchiveError::new(CONFIG, "it does not exist")])?;
    let mut config: TeamFile = read(CONFIG, text).map_err(|wrong| vec![wrong])?;
    if config.posse.unfinished {
        let why = "the export is incomplete; export the team again";
        return Err(vec![ArchiveError::new(CONFIG, why)]);
    }
    let mut wrong = missing(&config, files);
    let known: HashMap<Name, OwnNote> = config
        .posse
        .notes
        .drain(..)
        .map(|note| (note.name.clone(), note))
        .collect();
    let last_task = config.posse.last_task;
    let team = match team(config, now_ms) {
        Ok(team) => team,
        Err(fault) => {
            wrong.insert(0, fault);
            return Err(wrong);
        }
    };
    let mail = vec![Vec::new(); team.members.len()];
    let people = SenderIds::of(&team);
    let archive = Archive {
        notes: Vec::new(),
        tasks: Vec::new(),
        last_task,
        mail,
        team,
    };
    let mut reading = ArchiveReader {
        archive,
        people,
        known,
        now_ms,
        warnings: Vec::new(),
    };
    for (file, text) in files {
        if let Err(fault) = reading.file(file, text) {
            wrong.push(fault);
        }
    }
    let ArchiveReader {
        mut archive,
        warnings,
        ..
    } = reading;
    archive.tasks.sort_by_key(|task| task.id);
    let highest = archive.tasks.last().map_or(0, |task| task.id.0);
    archive.last_task = last_task.max(highest);
    if wrong.is_empty() {
        Ok(ParsedArchive { archive, warnings })
    } else {
        Err(wrong)
    }
}

/// Returns errors for files that posse's own description lists and that do not exist.
fn missing(config: &TeamFile, files: &ArchiveFiles) -> Vec<ArchiveError> {
    let own = &config.posse;
    let mut listed: Vec<String> = own
        .notes
        .iter()
        .map(|note| note_file(note.name.as_str()))
        .collect();
    if own.realm.is_some() {
        listed.extend(
            config
                .members
                .iter()
                .map(|member| inbox_file(member.name.as_str())),
        );
    }
    listed.retain(|file| !files.contains_key(file));
    match own.tasks.as_deref().unwrap_or_default().parse::<Numbers>() {
        Err(why) => return vec![ArchiveError::new(CONFIG, why)],
        Ok(numbers) => {
            let present: BTreeSet<u64> = files.keys().filter_map(|file| number(file)).collect();
            listed.extend(
                numbers
                    .missing_from(&present, NAMED + 1)
                    .into_iter()
                    .map(task_file),
            );
        }
    }
    listed
        .into_iter()
        .map(|file| ArchiveError::new(file, "it does not exist, but config.json lists it"))
        .collect()
}

/// Returns the number of the task that a file of this name describes.
fn number(file: &str) -> Option<u64> {
    let number = file
        .strip_prefix("tasks/")?
        .strip_suffix(".json")?
        .parse()
        .ok()?;
    (task_file(number) == file && number > 0).then_some(number)
}

/// What has been parsed so far.
struct ArchiveReader {
    archive: Archive,
    people: SenderIds,
    known: HashMap<Name, OwnNote>,
    now_ms: i64,
    warnings: Vec<String>,
}

impl ArchiveReader {
    fn file(&mut self, file: &str, text: &str) -> Result<(), ArchiveError> {
        let Some((directory, name)) = file.split_once('/') else {
            return Ok(());
        };
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let why = match directory {
            "tasks" => match number(file) {
                Some(number) => return self.task(file, text, TaskId(number)),
                None => "tasks are named 1.json, 2.json and so on",
            },
            "inboxes" => match self
                .archive
                .team
                .members
                .iter()
                .position(|it| it.name.as_str() == stem)
            {
                Some(at) => {
                    let to = self.archive.team.members[at].agent;
                    self.archive.mail[at] = inbox(file, text, to, &mut self.people, self.now_ms)?;
                    return Ok(());
                }
                None => "no member has this name",
            },
            _ => match stem.parse::<Name>() {
                Ok(name) => {
                    self.archive
                        .notes
                        .push(note(name, text, &self.known, self.now_ms));
                    return Ok(());
                }
                Err(_) => "a note cannot have this name",
            },
        };
        self.warnings.push(format!("{file} is left out: {why}"));
        Ok(())
    }

    fn task(&mut self, file: &str, text: &str, id: TaskId) -> Result<(), ArchiveError> {
        let (task, stranger) = task(file, text, id, &self.people, self.now_ms)?;
        let warning =
            |name| format!("{file}: its owner was removed: {name} is not a member of the team");
        self.warnings.extend(stranger.map(warning));
        self.archive.tasks.push(task);
        Ok(())
    }
}

fn read<'a, T: Deserialize<'a>>(file: &str, text: &'a str) -> Result<T, ArchiveError> {
    // Some editors write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| ArchiveError::new(file, error.to_string()))
}

fn team(config: TeamFile, now_ms: i64) -> Result<Team, ArchiveError> {
    let when = |at: &Option<ArchiveTime>| at.as_ref().map_or(now_ms, |at| at.0);
    let mut members: Vec<Member> = Vec::new();
    let (mut lead, mut called_so) = (None, None);
    let realm = config.posse.realm;
    let realm = realm.unwrap_or_else(|| Uuid::now_v7().into());
    for it in config.members {
        let leads = it.agent_id.is_some() && it.agent_id == config.lead_agent_id;
        if leads {
            lead.get_or_insert(members.len());
        } else if it.name.as_str() == Name::LEAD {
            called_so.get_or_insert(members.len());
        }
        members.push(Member {
            agent: it
                .posse
                .agent
                .unwrap_or_else(|| AgentId::within(realm, Uuid::now_v7())),
            agent_type: it.agent_type.unwrap_or_default(),
            model: it.model.unwrap_or_default(),
            prompt: it.prompt.unwrap_or_default(),
            color: it.color.unwrap_or_default(),
            joined_ms: when(&it.joined_at),
            backend: it.backend_type.unwrap_or_else(|| "in-process".into()),
            role: it.posse.role,
            takes: it.posse.takes,
            state: MemberState::default(),
            waiting: 0,
            held: false,
            cwd: match it.posse.cwd_bytes {
                Some(bytes) => std::os::unix::ffi::OsStringExt::from_vec(bytes),
                None => std::ffi::OsString::from(it.cwd.unwrap_or_default()),
            }
            .into(),
            name: it.name,
        });
    }
    let lead = lead
        .or(called_so)
        .ok_or_else(|| ArchiveError::new(CONFIG, "no member is named team-lead"))?;
    let agent = members[lead].agent;
    if members[lead].name.as_str() == Name::LEAD {
        // A lead that still has its first name was the first member; the others keep their order.
        members[..=lead].rotate_right(1);
    }
    Ok(Team {
        realm,
        name: config.name,
        description: config.description.unwrap_or_default(),
        lead: agent,
        created_ms: when(&config.created_at),
        settings: config.settings.unwrap_or_default(),
        members,
        former: config.posse.former_names,
    })
}

/// Ids of members, and of others who have sent mail.
struct SenderIds {
    team: String,
    ids: HashMap<String, AgentId>,
}

impl SenderIds {
    fn of(team: &Team) -> Self {
        let ids = team
            .members
            .iter()
            .map(|member| (member.name.to_string(), member.agent))
            .collect();
        Self {
            team: team.name.to_string(),
            ids,
        }
    }

    /// Returns a name without its team, if that is this one.
    fn plain<'a>(&self, name: &'a str) -> &'a str {
        name.split_once('@')
            .filter(|(_, team)| *team == self.team)
            .map_or(name, |(name, _)| name)
    }

    /// Returns the owner of a task, if it is a member or the user.
    fn owner(&self, name: &str, agent: Option<AgentId>) -> Option<Owner> {
        let name = self.plain(name);
        let known = self.ids.get(name).copied();
        (known.is_some() || name == USER).then(|| Owner {
            agent: agent.or(known),
            name: name.to_owned(),
        })
    }

    fn sender(&mut self, name: String, agent: Option<AgentId>) -> Sender {
        match agent {
            None if name == USER => Sender::User,
            Some(id) => Sender::Agent { id, name },
            None => {
                let plain = self.plain(&name).to_owned();
                let known = self.ids.entry(plain);
                Sender::Agent {
                    id: *known.or_insert_with(|| Uuid::now_v7().into()),
                    name,
                }
            }
        }
    }
}

/// Returns the task in a file, and the owner that an open task loses because it is not a member.
fn task(
    file: &str,
    text: &str,
    id: TaskId,
    people: &SenderIds,
    now_ms: i64,
) -> Result<(Task, Option<String>), ArchiveError> {
    let it: TaskFile = read(file, text)?;
    if let Some(ArchiveTaskId(own)) = it.id.filter(|ArchiveTaskId(own)| *own != id) {
        return Err(ArchiveError::new(file, format!("the task in it is {own}")));
    }
    let numbers = |list: Vec<ArchiveTaskId>| list.into_iter().map(|ArchiveTaskId(id)| id).collect();
    let created_ms = it.created_at.map_or(now_ms, |at| at.0);
    let status = it.status.unwrap_or(TaskStatus::Pending);
    let (owner, stranger) = match it.owner.filter(|owner| !owner.is_empty()) {
        None => (None, None),
        Some(name) => match people.owner(&name, it.posse.owner_agent) {
            Some(owner) => (Some(owner), None),
            // The member that has done it may have left.
            None if status.is_settled() => (
                Some(Owner {
                    agent: it.posse.owner_agent,
                    name,
                }),
                None,
            ),
            None => (None, Some(name)),
        },
    };
    let task = Task {
        id,
        subject: it.subject,
        description: it.description.unwrap_or_default(),
        active_form: it.active_form.filter(|form| !form.is_empty()),
        status,
        owner,
        lost_by: it.posse.lost_by,
        blocked_by: numbers(it.blocked_by),
        waits_for: Vec::new(),
        blocks: numbers(it.blocks),
        created_ms,
        updated_ms: it.updated_at.map_or(created_ms, |at| at.0),
        role: it.posse.role,
        check: it.posse.check,
        metadata: it.metadata.unwrap_or_default(),
        version: it.version.unwrap_or(1).max(1),
    };
    Ok((task, stranger))
}

fn inbox(
    file: &str,
    text: &str,
    to: AgentId,
    people: &mut SenderIds,
    now_ms: i64,
) -> Result<Vec<Mail>, ArchiveError> {
    let messages: Vec<MailFile> = read(file, text)?;
    let mut inbox: Vec<Mail> = Vec::with_capacity(messages.len());
    for it in messages {
        let first_line = || {
            it.text
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(80)
                .collect()
        };
        inbox.push(Mail {
            id: it.posse.id.unwrap_or_else(|| Uuid::now_v7().into()),
            number: inbox.len() as u64 + 1,
            to,
            from: people.sender(it.from, it.posse.agent),
            kind: it.kind.unwrap_or(MailKind::Text),
            summary: it.summary.unwrap_or_else(first_line),
            body: it.text,
            sent_ms: it.posse.sent_at.or(it.timestamp).map_or(now_ms, |at| at.0),
            // Where it was shown is unknown, because the transcript is elsewhere.
            shown_in: it.read.then(|| it.posse.shown_in.unwrap_or(0)),
        });
    }
    Ok(inbox)
}

fn note(name: Name, text: &str, known: &HashMap<Name, OwnNote>, now_ms: i64) -> Note {
    let (version, author, written_ms) = match known.get(&name) {
        Some(note) => (note.version.max(1), note.author.clone(), note.written_at.0),
        None => (1, "user".to_owned(), now_ms),
    };
    Note {
        name,
        version,
        author,
        text: text.to_owned(),
        written_ms,
    }
}
