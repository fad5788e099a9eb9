//! Encodes what is to be written as the functions of the schema read it: JSON, with large bytes
//! beside it.
//!
//! Unsigned 64-bit numbers are sent as the signed number with the same bits, paths as hexadecimal
//! bytes, enums as SQLite's columns have them. Absent values are left out, or null where the
//! functions ask for them by name.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::Bytes;
use posse_port::confinement::Tier;
use posse_port::model::Encoded;
use posse_port::store::{
    Address, Archive, Birth, CallChange, CallChangeKind, CallKey, Charge, Epoch, Greeting, Joining,
    METADATA_DEPTH, NewEntry, NewTask, Op, Order, QuestionChange, QuestionChangeKind, RunChange,
    RunChangeKind, StateChange, Step, StoreError, TaskChange, depth,
};
use posse_protocol::{
    AgentId, EntryKind, Mail, Name, Request, Response, Sender, Takes, Task, Usage,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::compress;
use crate::{archive, columns};

/// A job as JSON, with the bytes that it refers to by position, from 1.
#[derive(Debug, Default)]
pub(super) struct EncodedStep {
    pub(super) json: Value,
    pub(super) blobs: Vec<Bytes>,
    /// True if the step may be written together with others in one statement per table.
    pub(super) plain: bool,
}

impl EncodedStep {
    /// Adds bytes and returns their position and whether they are compressed.
    fn blob(&mut self, bytes: &Bytes) -> (usize, bool) {
        let (bytes, packed) = compress::pack(bytes);
        self.blobs.push(bytes);
        (self.blobs.len(), packed)
    }

    /// Encodes content that is stored by its hash. If it is `known` to be on the server, only the
    /// hash is sent.
    fn shared(&mut self, encoded: &Encoded, known: bool) -> Value {
        let hash = Uuid::from_bytes(columns::content_name(&encoded.bytes, encoded.mark_at));
        match known {
            true => json!({"hash": hash}),
            false => {
                let (blob, packed) = self.blob(&encoded.bytes);
                json!({"hash": hash, "mark": encoded.mark_at, "blob": blob, "packed": packed})
            }
        }
    }
}

/// Encodes the take-over of an agent.
pub(super) fn take(agent: AgentId) -> EncodedStep {
    // The id identifies the job: if its answer is lost and it is sent again, it is not done twice.
    EncodedStep {
        json: json!({"do": "take", "agent": agent, "id": Uuid::now_v7()}),
        ..EncodedStep::default()
    }
}

/// Encodes the release of an agent. It needs no id: a second try finds a newer epoch and does
/// nothing.
pub(super) fn release(agent: AgentId, epoch: Epoch) -> EncodedStep {
    EncodedStep {
        json: json!({"do": "release", "agent": agent, "epoch": epoch.0.cast_signed()}),
        ..EncodedStep::default()
    }
}

/// Encodes a person's operations.
pub(super) fn order(order: &Order) -> Result<EncodedStep, StoreError> {
    let ops = order.ops.iter().map(op).collect::<Result<Vec<_>, _>>()?;
    let json = json!({"do": "operate", "realm": order.realm, "id": Uuid::now_v7(), "at": order.at_ms, "ops": ops,
        "what": order.topics().bits()});
    Ok(EncodedStep {
        json,
        ..EncodedStep::default()
    })
}

/// Encodes an archive. Refuses one that contradicts itself.
pub(super) fn import(archive: &Archive) -> Result<EncodedStep, StoreError> {
    archive::check(archive).map_err(|error| StoreError::BadStep(error.to_string()))?;
    let team = &archive.team;
    let members = team.members.iter().zip(&archive.mail).map(|(it, inbox)| {
        Ok(json!({
            "name": it.name, "agent": it.agent, "agent_type": it.agent_type, "model": it.model,
            "prompt": it.prompt, "color": it.color, "backend": it.backend, "cwd": path(&it.cwd),
            "joined_ms": it.joined_ms, "role": it.role, "takes": takes(&it.takes)?,
            "mail": inbox.iter().map(mail).collect::<Value>(),
        }))
    });
    let notes = archive.notes.iter().map(|it| {
        json!({
            "name": it.name, "version": it.version.cast_signed(), "author": it.author,
            "written_ms": it.written_ms, "text": it.text,
        })
    });
    let tasks = archive::tasks(archive).map(|(it, waits)| task(&it, waits));
    let json = json!({
        "name": team.name, "lead": team.lead, "created_ms": team.created_ms, "description": team.description,
        "settings": text(&team.settings)?, "last_task": archive.last_task, "former": team.former,
        "members": members.collect::<Result<Value, StoreError>>()?, "notes": notes.collect::<Value>(),
        "tasks": tasks.collect::<Result<Value, _>>()?,
    });
    let json = json!({"do": "import", "realm": team.realm, "id": Uuid::now_v7(), "archive": json,
        "what": Archive::TOPICS.bits()});
    Ok(EncodedStep {
        json,
        ..EncodedStep::default()
    })
}

fn mail(mail: &Mail) -> Value {
    let sender = match &mail.from {
        Sender::User => None,
        Sender::Agent { id, .. } => Some(id),
    };
    json!({
        "id": mail.id, "sender": sender, "sender_name": mail.from.name(), "kind": mail.kind.as_str(),
        "sent_ms": mail.sent_ms, "entry": mail.shown_in.map(u64::cast_signed), "summary": mail.summary,
        "body": mail.body, "size": mail.summary.len() + mail.body.len(),
    })
}

/// Encodes a task with its columns and dependencies.
fn task(task: &Task, waits: usize) -> Result<Value, StoreError> {
    let owner = task.owner.as_ref();
    Ok(json!({
        "id": task.id, "status": columns::status(task.status), "waits": waits,
        "owner": owner.map(|owner| &owner.name), "owner_agent": owner.and_then(|owner| owner.agent),
        "lost_by": task.lost_by, "version": task.version, "created_ms": task.created_ms,
        "updated_ms": task.updated_ms, "subject": task.subject, "active_form": task.active_form,
        "metadata": inner(&task.metadata)?, "description": task.description, "role": task.role,
        "check_command": task.check, "blocked_by": task.blocked_by,
    }))
}

/// Encodes a step. `known` returns true for content that the server already has.
pub(super) fn step(
    step: &Step,
    known: impl Fn(&Encoded) -> bool,
) -> Result<EncodedStep, StoreError> {
    if let Some(why) = step.misplaced() {
        return Err(StoreError::BadStep(why));
    }
    let mut encoded = EncodedStep::default();
    let mut json = Map::new();
    let mut put = |key: &str, value: Value| drop(json.insert(key.to_owned(), value));
    put("do", json!("commit"));
    put("realm", json!(step.realm));
    put("agent", json!(step.agent));
    put("id", json!(step.id.0));
    put("epoch", json!(step.epoch.0.cast_signed()));
    put("at", json!(step.at_ms));
    put("what", json!(step.topics().bits()));
    if let Some(it) = &step.birth {
        put("birth", birth(it, &mut encoded, &known));
    }
    if !step.entries.is_empty() {
        let last = step.entries.len() - 1;
        let entries = step.entries.iter().enumerate().map(|(at, it)| {
            let reserved = step.reserved.as_deref().filter(|_| at == last);
            entry(it, reserved, &mut encoded, &known)
        });
        put("entries", entries.collect::<Result<_, _>>()?);
    }
    if !step.calls.is_empty() {
        let calls = step.calls.iter().map(|it| call(it, &mut encoded));
        put("calls", calls.collect::<Result<_, _>>()?);
    }
    if !step.charges.is_empty() {
        put("charges", step.charges.iter().map(charge).collect());
    }
    if !step.seen.is_empty() {
        let seen = step
            .seen
            .iter()
            .map(|file| json!([path(&file.path), file.version.cast_signed()]));
        put("seen", seen.collect());
    }
    if !step.mail.is_empty() {
        put(
            "mail",
            step.mail
                .iter()
                .map(|taken| json!([taken.number, taken.entry]))
                .collect(),
        );
    }
    if !step.operations.is_empty() {
        let ops = step.operations.iter().map(|it| {
            let call = it.call.map(place);
            Ok(json!({"call": call, "op": op(&it.op)?}))
        });
        put("ops", ops.collect::<Result<_, StoreError>>()?);
    }
    if !step.runs.is_empty() {
        put("runs", step.runs.iter().map(run).collect());
    }
    if !step.questions.is_empty() {
        let questions = step.questions.iter().map(question);
        put("questions", questions.collect::<Result<_, _>>()?);
    }
    if let Some(StateChange::To(state) | StateChange::UnlessMail(state)) = step.state {
        put("state", json!(columns::state(state)));
        put("open", json!(state.is_open()));
        put(
            "shut",
            json!(state.of_member() == posse_protocol::MemberState::ShutDown),
        );
        put(
            "unless",
            json!(matches!(step.state, Some(StateChange::UnlessMail(_)))),
        );
    }
    if let Some(ended) = &step.ended {
        put("ended", json!(text(ended)?));
    }
    if let Some(starter) = step.starter {
        put("starter", json!(starter));
    }
    if let Some(mode) = step.mode {
        put("mode", json!(mode.as_str()));
    }
    if let Some(types) = step.types {
        put("types", json!(types.cast_signed()));
    }
    encoded.json = Value::Object(json);
    encoded.plain = is_plain(step);
    Ok(encoded)
}

/// Returns true if a step only adds replies, results, requested calls and a charge that cannot
/// overflow its total.
fn is_plain(step: &Step) -> bool {
    let adds = |entry: &NewEntry| {
        let is_bare = entry.head.is_none() && entry.loaded.is_none();
        is_bare && matches!(entry.kind, EntryKind::Reply | EntryKind::Results)
    };
    let asks = |call: &CallChange| matches!(call.change, CallChangeKind::Asked { .. });
    // Totals are added up in SQL for plain steps, where an overflow would fail the whole batch.
    let small = |charge: &Charge| {
        let Usage {
            input,
            cache_read,
            cache_write_5m,
            cache_write_1h,
            output,
            thinking,
        } = charge.usage;
        let cost = charge.cost.map_or(0, |cost| cost.pico_usd());
        [
            input,
            cache_read,
            cache_write_5m,
            cache_write_1h,
            output,
            thinking,
            cost,
            charge.missed,
        ]
        .into_iter()
        .all(|number| number < 1 << 62)
    };
    let nothing_else = step.birth.is_none()
        && step.seen.is_empty()
        && step.mail.is_empty()
        && step.operations.is_empty()
        && step.runs.is_empty()
        && step.questions.is_empty()
        && step.state.is_none()
        && step.ended.is_none()
        && step.starter.is_none()
        && step.mode.is_none()
        && step.types.is_none();
    nothing_else
        && step.entries.iter().all(adds)
        && step.calls.iter().all(asks)
        && step.charges.len() <= 1
        && step.charges.iter().all(small)
}

fn birth(birth: &Birth, encoded: &mut EncodedStep, known: &impl Fn(&Encoded) -> bool) -> Value {
    let origin = birth.origin.as_deref().map(|it| {
        json!({
            "parent": it.parent, "call_seq": it.call.seq.cast_signed(), "call_ordinal": it.call.ordinal.cast_signed(), "call_id": it.call_id,
            "agent_type": it.agent_type, "name": it.name, "description": it.description, "terms": it.terms,
        })
    });
    let segments: Value = birth
        .segments
        .iter()
        .map(|it| json!([it.agent, it.from, it.to]))
        .collect();
    json!({
        "path": birth.path, "model": birth.model, "dialect": birth.dialect, "mode": birth.mode.as_str(),
        "cwd": path(&birth.cwd), "preamble": encoded.shared(&birth.preamble, known(&birth.preamble)),
        "segments": segments, "origin": origin,
    })
}

fn entry(
    entry: &NewEntry,
    reserved: Option<&Charge>,
    encoded: &mut EncodedStep,
    known: &impl Fn(&Encoded) -> bool,
) -> Result<Value, StoreError> {
    let (blob, packed) = encoded.blob(&entry.encoded.bytes);
    let mut json = json!({
        "seq": entry.seq, "kind": columns::kind(entry.kind), "checksum": entry.checksum.cast_signed(),
        "mark": entry.encoded.mark_at, "blob": blob, "packed": packed,
    });
    let facts = columns::facts(entry.reply.as_ref(), reserved)
        .map_err(|error| StoreError::BadStep(error.to_string()))?;
    if let Some(facts) = facts {
        json["reply"] = json!(facts);
    }
    if let Some(head) = &entry.head {
        json["head"] = encoded.shared(head, known(head));
    }
    if let Some(loaded) = &entry.loaded {
        json["loaded"] = encoded.shared(loaded, known(loaded));
    }
    Ok(json)
}

/// Returns the position of a call: its entry, and its ordinal there.
fn place(key: CallKey) -> (i64, i32) {
    (key.seq.cast_signed(), key.ordinal.cast_signed())
}

fn call(
    CallChange { key, change }: &CallChange,
    encoded: &mut EncodedStep,
) -> Result<Value, StoreError> {
    let (seq, ordinal) = place(*key);
    Ok(match change {
        CallChangeKind::Asked { id, tool, tier } => {
            json!({"seq": seq, "ordinal": ordinal, "asked": [id, tool], "tier": tier.map(Tier::as_str)})
        }
        CallChangeKind::Begun { tier } => {
            json!({"seq": seq, "ordinal": ordinal, "tier": tier.map(Tier::as_str)})
        }
        CallChangeKind::Done(outcome) => {
            let (done, packed) = encoded.blob(&Bytes::from(text(&outcome.content)?));
            json!({"seq": seq, "ordinal": ordinal, "done": done, "packed": packed, "is_error": outcome.is_error})
        }
    })
}

/// Encodes a charge with the columns of its total.
fn charge(charge: &Charge) -> Value {
    let usage = &charge.usage;
    json!({
        "model": charge.model, "purpose": columns::purpose(charge.purpose),
        "input": usage.input.cast_signed(), "cache_read": usage.cache_read.cast_signed(),
        "cache_write_5m": usage.cache_write_5m.cast_signed(),
        "cache_write_1h": usage.cache_write_1h.cast_signed(),
        "output": usage.output.cast_signed(), "thinking": usage.thinking.cast_signed(),
        "cost": charge.cost.map(|cost| cost.pico_usd().cast_signed()), "missed": charge.missed.cast_signed(),
    })
}

fn run(RunChange { id, change }: &RunChange) -> Value {
    match change {
        RunChangeKind::Began {
            call,
            kind,
            description,
            output,
        } => json!({"id": id, "began": {
            "seq": call.seq.cast_signed(), "ordinal": call.ordinal.cast_signed(), "kind": kind.as_str(), "description": description,
            "output": path(output),
        }}),
        RunChangeKind::Ended(status) => json!({"id": id, "ended": columns::run(*status)}),
    }
}

fn question(QuestionChange { id, change }: &QuestionChange) -> Result<Value, StoreError> {
    Ok(match change {
        QuestionChangeKind::Asked(new) => {
            let (seq, ordinal) = place(new.call);
            json!({"id": id, "seq": seq, "ordinal": ordinal, "asked": text(&new.question)?})
        }
        QuestionChangeKind::Done => json!({"id": id, "done": true}),
        QuestionChangeKind::Withdrawn => json!({"id": id, "done": false}),
    })
}

fn op(op: &Op) -> Result<Value, StoreError> {
    Ok(match op {
        Op::Send {
            id,
            to,
            kind,
            summary,
            body,
        } => json!({
            "op": "send", "id": id, "to": address(to), "kind": kind.as_str(), "summary": summary, "body": body,
            "bytes": summary.len() + body.len(),
        }),
        Op::Charge { agent, charge: it } => {
            json!({"op": "charge", "agent": agent, "charge": charge(it)})
        }
        Op::Answer { question, answer } => {
            json!({"op": "answer", "question": question, "answer": text(answer)?})
        }
        Op::CreateTeam {
            team,
            description,
            settings,
            lead,
        } => json!({
            "op": "create_team", "team": team, "description": description, "settings": text(settings)?,
            "lead": joining(lead)?,
        }),
        Op::DeleteTeam { team } => json!({"op": "delete_team", "team": team}),
        Op::Join {
            team,
            name,
            member,
            greeting,
        } => json!({
            "op": "join", "team": team, "name": name, "member": joining(member)?,
            "greeting": greeting.as_ref().map(|it| self::greeting(it, &member.prompt)),
        }),
        Op::HandOver { team, to } => json!({"op": "hand_over", "team": team, "to": to}),
        Op::Request {
            id,
            to,
            kind,
            text: why,
        } => {
            let body = text(&Request {
                request_id: *id,
                text: why.clone(),
            })?;
            let summary = kind.asked();
            json!({
                "op": "request", "id": id, "to": address(to), "kind": kind.as_str(), "text": why,
                "mail": kind.asking().as_str(), "summary": summary, "body": body,
                "bytes": summary.len() + body.len(),
            })
        }
        Op::Respond {
            id,
            request,
            kind,
            approve,
            text: why,
        } => {
            let body = text(&Response {
                request_id: *request,
                approve: *approve,
                text: why.clone(),
            })?;
            let summary = kind.answered(*approve);
            json!({
                "op": "respond", "id": id, "request": request, "kind": kind.as_str(), "approve": approve,
                "mail": kind.answering().as_str(), "summary": summary, "body": body,
                "bytes": summary.len() + body.len(),
            })
        }
        Op::Leave { team, name } => json!({"op": "leave", "team": team, "name": name}),
        Op::WriteNote {
            team,
            name,
            text,
            expect,
        } => json!({
            "op": "write_note", "team": list(team.as_ref()), "name": name, "text": text, "bytes": text.len(),
            "expect": expect.map(u64::cast_signed),
        }),
        Op::CreateTask { team, task } => {
            json!({"op": "create_task", "team": list(team.as_ref()), "task": new_task(task)?})
        }
        Op::UpdateTask {
            team,
            id,
            expect,
            change,
        } => json!({
            "op": "update_task", "team": list(team.as_ref()), "id": id, "expect": expect.map(u64::cast_signed),
            "change": task_change(change)?,
        }),
        Op::Claim { team, id } => json!({"op": "claim", "team": list(team.as_ref()), "id": id}),
        Op::ClaimNext { team, takes } => {
            let takes = match takes {
                Takes::Any => Value::Null,
                Takes::Only { unmarked, roles } => json!({"unmarked": unmarked, "roles": roles}),
            };
            json!({"op": "claim_next", "team": list(team.as_ref()), "takes": takes})
        }
    })
}

fn address(to: &Address) -> Value {
    match to {
        Address::Agent(agent) => json!({"agent": agent}),
        Address::Member { team, name } => json!({"team": team, "name": name}),
        Address::Others { team } => json!({"others": team}),
    }
}

/// Returns the team's part of a list's key; empty for the session's own list.
fn list(team: Option<&Name>) -> &str {
    team.map_or("", Name::as_str)
}

fn joining(it: &Joining) -> Result<Value, StoreError> {
    Ok(json!({
        "agent": it.agent, "agent_type": it.agent_type, "model": it.model, "prompt": it.prompt, "color": it.color,
        "backend": it.backend, "cwd": path(&it.cwd), "role": it.role, "takes": takes(&it.takes)?,
    }))
}

/// Encodes which tasks a member takes; `None` means all.
fn takes(takes: &Takes) -> Result<Option<String>, StoreError> {
    if *takes == Takes::Any {
        Ok(None)
    } else {
        text(takes).map(Some)
    }
}

/// Encodes the first message to a new member. Its text is not repeated: it is the prompt.
fn greeting(greeting: &Greeting, prompt: &str) -> Value {
    let Greeting { id, summary } = greeting;
    json!({"id": id, "bytes": summary.len() + prompt.len(), "summary": summary})
}

fn new_task(task: &NewTask) -> Result<Value, StoreError> {
    Ok(json!({
        "subject": task.subject, "description": task.description, "active_form": task.active_form,
        "blocked_by": task.blocked_by, "role": task.role, "check": task.check, "metadata": inner(&task.metadata)?,
        "deep": is_deep(&task.metadata),
    }))
}

fn task_change(change: &TaskChange) -> Result<Value, StoreError> {
    let mut json = json!({
        "subject": change.subject, "description": change.description, "active_form": change.active_form,
        "status": change.status.map(columns::status), "block_on": change.block_on,
        "unblock_from": change.unblock_from, "role": change.role, "check": change.check, "passed": change.passed,
        "metadata": inner(&change.metadata)?, "deep": is_deep(&change.metadata),
    });
    // Present and null means that the task shall have no owner; absent means no change.
    if let Some(owner) = &change.owner {
        json["owner"] = json!(owner);
    }
    Ok(json)
}

/// Returns true if metadata are nested deeper than allowed.
fn is_deep(metadata: &Map<String, Value>) -> bool {
    metadata.values().any(|value| depth(value) > METADATA_DEPTH)
}

/// Serializes JSON that is stored as text.
fn text(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::BadStep(error.to_string()))
}

/// Serializes JSON that is stored as text and parsed by the functions, which cannot read NUL.
fn inner(value: &impl Serialize) -> Result<String, StoreError> {
    Ok(super::nul::hide(&text(value)?).into_owned())
}

/// Encodes a path as hexadecimal: JSON has no bytes, and a path need not be UTF-8.
fn path(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
