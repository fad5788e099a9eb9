//! Checks an archive as a whole.

use std::collections::{BTreeMap, BTreeSet};

use posse_port::store::{Archive, INBOX_BYTES, INBOX_MAILS, MAIL_BYTES, TEXT_BYTES};
use posse_protocol::{Name, Task, TaskId};

use super::files::{inbox_file, note_file, task_file};
use super::{ArchiveError, CONFIG};

/// Checks an archive, and derives what follows from the rest: which tasks wait for which.
pub(in super::super) fn check(archive: &mut Archive) -> Result<(), Vec<ArchiveError>> {
    let mut wrong: Vec<ArchiveError> = members(archive).err().into_iter().collect();
    mail(archive, &mut wrong);
    for note in &archive.notes {
        wrong.extend(fits(&note_file(note.name.as_str()), note.text.len(), TEXT_BYTES).err());
    }
    for task in &archive.tasks {
        let metadata = serde_json::to_string(&task.metadata).map_or(0, |text| text.len());
        let more = [&task.active_form, &task.role, &task.check]
            .into_iter()
            .flatten();
        let more: usize = more.map(String::len).sum();
        let length = task.subject.len() + task.description.len() + more + metadata;
        wrong.extend(fits(&file(task.id), length, TEXT_BYTES).err());
    }
    tasks(&mut archive.tasks, &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn file(id: TaskId) -> String {
    task_file(id.0)
}

fn fits(file: &str, bytes: usize, most: usize) -> Result<(), ArchiveError> {
    if bytes <= most {
        return Ok(());
    }
    Err(ArchiveError::new(
        file,
        format!("{bytes} bytes are too many: the limit is {most}"),
    ))
}

fn members(archive: &Archive) -> Result<(), ArchiveError> {
    let mut names = BTreeSet::new();
    for member in &archive.team.members {
        let name = &member.name;
        let leads = member.agent == archive.team.lead && name.as_str() == Name::LEAD;
        let fault = if name.is_reserved() && !leads {
            format!("a member cannot be named {name}")
        } else if !names.insert(name) {
            format!("two members are named {name}")
        } else {
            continue;
        };
        return Err(ArchiveError::new(CONFIG, fault));
    }
    match archive.team.former.iter().find(|name| name.is_reserved()) {
        Some(name) => Err(ArchiveError::new(
            CONFIG,
            format!("no member can have been named {name}"),
        )),
        None => Ok(()),
    }
}

fn mail(archive: &Archive, wrong: &mut Vec<ArchiveError>) {
    for (member, inbox) in archive.team.members.iter().zip(&archive.mail) {
        let file = inbox_file(member.name.as_str());
        let (mut waiting, mut bytes) = (0, 0);
        for mail in inbox {
            let size = mail.summary.len() + mail.body.len();
            wrong.extend(fits(&file, size, MAIL_BYTES).err());
            if mail.shown_in.is_none() {
                (waiting, bytes) = (waiting + 1, bytes + size as u64);
            }
        }
        if waiting > INBOX_MAILS || bytes > INBOX_BYTES {
            let why = format!(
                "{waiting} messages of {bytes} bytes are waiting; an inbox cannot hold \
                         that"
            );
            wrong.push(ArchiveError::new(file, why));
        }
    }
}

/// Merges `blocks` and `blocked_by`, which say the same in two ways, and finds cycles.
fn tasks(tasks: &mut [Task], wrong: &mut Vec<ArchiveError>) {
    let mut needs: BTreeMap<TaskId, BTreeSet<TaskId>> = tasks
        .iter()
        .map(|task| (task.id, BTreeSet::new()))
        .collect();
    for task in &*tasks {
        for (before, after, other, how) in task
            .blocked_by
            .iter()
            .map(|other| (*other, task.id, other, "waits for"))
            .chain(
                task.blocks
                    .iter()
                    .map(|other| (task.id, *other, other, "blocks")),
            )
        {
            if !needs.contains_key(other) {
                wrong.push(ArchiveError::new(
                    file(task.id),
                    format!("it {how} {other}, which does not exist"),
                ));
            } else if let Some(needs) = needs.get_mut(&after) {
                needs.insert(before);
            }
        }
    }
    let mut blocks: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    for (id, needs_of) in &needs {
        needs_of
            .iter()
            .for_each(|other| blocks.entry(*other).or_default().push(*id));
    }
    if let Some(circle) = circle(&needs, &blocks)
        && let Some(first) = circle.first()
    {
        let why = match &circle[..] {
            [_] => "it waits for itself".to_owned(),
            _ => {
                let names: Vec<String> = circle.iter().map(TaskId::to_string).collect();
                format!(
                    "these tasks wait for each other in a cycle: {}",
                    names.join(", ")
                )
            }
        };
        wrong.push(ArchiveError::new(file(*first), why));
    }
    let settled: BTreeSet<TaskId> = tasks
        .iter()
        .filter(|task| task.status.is_settled())
        .map(|task| task.id)
        .collect();
    for task in &mut *tasks {
        task.blocked_by = needs[&task.id].iter().copied().collect();
        task.waits_for = task
            .blocked_by
            .iter()
            .copied()
            .filter(|id| !settled.contains(id))
            .collect();
        task.blocks = blocks.remove(&task.id).unwrap_or_default();
    }
}

/// Returns a cycle, if there is one, each task waiting for the next.
fn circle(
    needs: &BTreeMap<TaskId, BTreeSet<TaskId>>,
    blocks: &BTreeMap<TaskId, Vec<TaskId>>,
) -> Option<Vec<TaskId>> {
    let mut waits: BTreeMap<TaskId, usize> =
        needs.iter().map(|(id, needs)| (*id, needs.len())).collect();
    let mut free: Vec<TaskId> = waits
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(id, _)| *id)
        .collect();
    // Tasks that wait for nothing are removed repeatedly; only cycles, and what waits for them,
    // remain.
    while let Some(id) = free.pop() {
        waits.remove(&id);
        for other in blocks.get(&id).into_iter().flatten() {
            if let Some(count) = waits.get_mut(other) {
                *count -= 1;
                if *count == 0 {
                    free.push(*other);
                }
            }
        }
    }
    // Each remaining task waits for another one: following them leads back to one already seen.
    let mut way = vec![*waits.keys().next()?];
    let mut places: BTreeMap<TaskId, usize> = BTreeMap::from([(way[0], 0)]);
    loop {
        let next = needs
            .get(way.last()?)?
            .iter()
            .find(|id| waits.contains_key(id))?;
        if let Some(at) = places.insert(*next, way.len()) {
            return Some(way.split_off(at));
        }
        way.push(*next);
    }
}
