//! What an archive must be like before a team is made of it, whatever the engine.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use posse_port::store::{Archive, METADATA_DEPTH, depth};
use posse_protocol::{Member, Name, Task, TaskId, TaskStatus};

/// From here one can count on for ever, and every program can read it.
const MOST: u64 = 1 << 53;

/// Says what contradicts itself in an archive.
pub(crate) fn check(archive: &Archive) -> Result<(), String> {
    let Archive {
        team,
        tasks,
        last_task,
        mail,
        ..
    } = archive;
    if !team.members.iter().any(|member| member.agent == team.lead) {
        return Err(format!("the lead of team {} is no member of it", team.name));
    }
    let leads = |member: &Member| member.name.as_str() == Name::LEAD && member.agent == team.lead;
    if let Some(member) = team
        .members
        .iter()
        .find(|member| member.name.is_reserved() && !leads(member))
    {
        return Err(format!("a member is called {}", member.name));
    }
    if let Some(name) = team.former.iter().find(|name| name.is_reserved()) {
        return Err(format!("a member was called {name}"));
    }
    if mail.len() != team.members.len() {
        return Err(format!(
            "{} inboxes for {} members",
            mail.len(),
            team.members.len()
        ));
    }
    for (member, mail) in team.members.iter().zip(mail) {
        if let Some((_, mail)) = (1..)
            .zip(mail)
            .find(|(number, mail)| mail.number != *number)
        {
            return Err(format!(
                "message {} of {} is out of order",
                mail.number, member.name
            ));
        }
        if let Some(mail) = mail.iter().find(|mail| mail.to != member.agent) {
            return Err(format!(
                "message {} of {} is for {}",
                mail.number, member.name, mail.to
            ));
        }
    }
    if *last_task > MOST || tasks.iter().any(|task| task.version > MOST) {
        return Err("a number of a task or of a version is too high to count on from".into());
    }
    let deep = |task: &&Task| {
        task.metadata
            .values()
            .any(|value| depth(value) > METADATA_DEPTH)
    };
    if let Some(task) = tasks.iter().find(deep) {
        return Err(format!(
            "the metadata of task {} nest deeper than {METADATA_DEPTH} levels",
            task.id
        ));
    }
    let mut before = 0;
    for task in tasks {
        if task.id.0 <= before || task.id.0 > *last_task {
            return Err(format!("task {} is out of order", task.id));
        }
        before = task.id.0;
    }
    check_dependencies(tasks)
}

/// Says which tasks wait for what is not there, or for each other.
fn check_dependencies(tasks: &[Task]) -> Result<(), String> {
    let mut open: BTreeMap<TaskId, usize> = tasks
        .iter()
        .map(|task| (task.id, task.blocked_by.len()))
        .collect();
    let mut blocks: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    for task in tasks {
        for needs in &task.blocked_by {
            if !open.contains_key(needs) {
                return Err(format!(
                    "task {} waits for {needs}, which is missing",
                    task.id
                ));
            }
            blocks.entry(*needs).or_default().push(task.id);
        }
    }
    let mut ready: Vec<TaskId> = open
        .iter()
        .filter(|(_, waits)| **waits == 0)
        .map(|(id, _)| *id)
        .collect();
    while let Some(done) = ready.pop() {
        open.remove(&done);
        for id in blocks.remove(&done).unwrap_or_default() {
            if let Some(waits) = open.get_mut(&id) {
                *waits -= 1;
                if *waits == 0 {
                    ready.push(id);
                }
            }
        }
    }
    match open.keys().next() {
        Some(id) => Err(format!("task {id} waits for itself in a circle")),
        None => Ok(()),
    }
}

/// Its tasks as they come in, and for how many others each waits. One that was being done is pending, as if its
/// doer's host had died.
pub(crate) fn tasks(archive: &Archive) -> impl Iterator<Item = (Cow<'_, Task>, usize)> {
    let settled: BTreeSet<TaskId> = archive
        .tasks
        .iter()
        .filter(|task| task.status.is_settled())
        .map(|task| task.id)
        .collect();
    archive.tasks.iter().map(move |task| {
        let waits = task
            .blocked_by
            .iter()
            .filter(|id| !settled.contains(id))
            .count();
        let task = match task.status {
            TaskStatus::InProgress => {
                let lost_by = task.owner.as_ref().map(|owner| owner.name.clone());
                let (owner, status, version) = (None, TaskStatus::Pending, task.version + 1);
                Cow::Owned(Task {
                    owner,
                    status,
                    version,
                    lost_by,
                    ..task.clone()
                })
            }
            _ => Cow::Borrowed(task),
        };
        (task, waits)
    })
}
