//! Whether an archive makes sense as a whole.

use std::collections::{BTreeMap, BTreeSet};

use posse_protocol::{Name, Task, TaskId};
use posse_runtime::port::store::{Archive, INBOX_BYTES, INBOX_MAILS, MAIL_BYTES, TEXT_BYTES};

use super::{CONFIG, Wrong};

/// Checks an archive as it was found, and derives what follows from the rest: who waits for whom.
pub(in super::super) fn check(archive: &mut Archive) -> Result<(), Wrong> {
    members(archive)?;
    mail(archive)?;
    for note in &archive.notes {
        let file = format!("notes/{}.md", note.name);
        fits(&file, note.text.len(), TEXT_BYTES)?;
    }
    for task in &archive.tasks {
        let metadata = serde_json::to_string(&task.metadata).map_or(0, |text| text.len());
        let form = task.active_form.as_ref().map_or(0, String::len);
        fits(&file(task.id), task.subject.len() + task.description.len() + form + metadata, TEXT_BYTES)?;
    }
    tasks(&mut archive.tasks)
}

fn file(id: TaskId) -> String {
    format!("tasks/{id}.json")
}

fn fits(file: &str, bytes: usize, most: usize) -> Result<(), Wrong> {
    if bytes <= most {
        return Ok(());
    }
    Err(Wrong::new(file, format!("{bytes} bytes are too many: at most {most} are kept")))
}

fn members(archive: &Archive) -> Result<(), Wrong> {
    let mut names = BTreeSet::new();
    for (at, member) in archive.team.members.iter().enumerate() {
        let name = &member.name;
        let fault = if at == 0 && name.as_str() != Name::LEAD {
            format!("the lead is called {name}; a lead is called {}", Name::LEAD)
        } else if at > 0 && name.is_reserved() {
            format!("a member cannot be called {name}")
        } else if !names.insert(name) {
            format!("two members are called {name}")
        } else {
            continue;
        };
        return Err(Wrong::new(CONFIG, fault));
    }
    Ok(())
}

fn mail(archive: &Archive) -> Result<(), Wrong> {
    for (member, inbox) in archive.team.members.iter().zip(&archive.mail) {
        let file = format!("inboxes/{}.json", member.name);
        let (mut waiting, mut bytes) = (0, 0);
        for mail in inbox {
            let size = mail.summary.len() + mail.body.len();
            fits(&file, size, MAIL_BYTES)?;
            if mail.shown_in.is_none() {
                (waiting, bytes) = (waiting + 1, bytes + size as u64);
            }
        }
        if waiting > INBOX_MAILS || bytes > INBOX_BYTES {
            let why = format!("{waiting} messages of {bytes} bytes wait; an inbox has no room for that");
            return Err(Wrong::new(file, why));
        }
    }
    Ok(())
}

/// Follows `blocks` and `blocked_by`, which say the same in two ways, and finds circles.
fn tasks(tasks: &mut [Task]) -> Result<(), Wrong> {
    let mut needs: BTreeMap<TaskId, BTreeSet<TaskId>> =
        tasks.iter().map(|task| (task.id, task.blocked_by.iter().copied().collect())).collect();
    for task in &*tasks {
        for other in &task.blocks {
            match needs.get_mut(other) {
                Some(needs) => drop(needs.insert(task.id)),
                None => {
                    return Err(Wrong::new(file(task.id), format!("it blocks {other}, which is not there")));
                }
            }
        }
    }
    for (id, needs_of) in &needs {
        if let Some(missing) = needs_of.iter().find(|other| !needs.contains_key(other)) {
            return Err(Wrong::new(file(*id), format!("it waits for {missing}, which is not there")));
        }
    }
    let mut blocks: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    for (id, needs_of) in &needs {
        needs_of.iter().for_each(|other| blocks.entry(*other).or_default().push(*id));
    }
    if let Some(id) = circle(&needs, &blocks) {
        return Err(Wrong::new(file(id), "it waits, through others, for itself"));
    }
    let settled: BTreeSet<TaskId> =
        tasks.iter().filter(|task| task.status.is_settled()).map(|task| task.id).collect();
    for task in &mut *tasks {
        task.blocked_by = needs[&task.id].iter().copied().collect();
        task.waits_for = task.blocked_by.iter().copied().filter(|id| !settled.contains(id)).collect();
        task.blocks = blocks.remove(&task.id).unwrap_or_default();
    }
    Ok(())
}

/// A task of a circle, if there is one: what is left when all that waits for nothing is taken away, again
/// and again.
fn circle(
    needs: &BTreeMap<TaskId, BTreeSet<TaskId>>,
    blocks: &BTreeMap<TaskId, Vec<TaskId>>,
) -> Option<TaskId> {
    let mut waits: BTreeMap<TaskId, usize> = needs.iter().map(|(id, needs)| (*id, needs.len())).collect();
    let mut free: Vec<TaskId> = waits.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
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
    waits.keys().next().copied()
}
