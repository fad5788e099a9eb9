//! Validation of a team's archive before it is imported, shared by both engines.
//!
//! An archive may have been edited by hand. What passes here can be written without asking again,
//! so that an import is either refused as a whole or leaves a team that obeys every rule of the
//! store.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use posse_port::store::{Archive, METADATA_DEPTH, depth};
use posse_protocol::{AgentId, Member, Name, Task, TaskId, TaskStatus};

/// Highest number that can be imported. Counting can continue from here forever, and JSON readers
/// that use doubles still read it exactly.
const MOST: u64 = 1 << 53;

/// A contradiction in an archive, for the person who wants to import it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveContradiction {
    #[error("the lead of team {team} is no member of it")]
    LeadNotAMember { team: Name },
    #[error("a member is called {name}")]
    ReservedName { name: Name },
    #[error("a member was named {name}")]
    ReservedFormerName { name: Name },
    #[error("{inboxes} inboxes for {members} members")]
    InboxCount { inboxes: usize, members: usize },
    #[error("message {number} of {member} is out of order")]
    MailOrder { number: u64, member: Name },
    #[error("message {number} of {member} is for {to}")]
    MailOfAnother {
        number: u64,
        member: Name,
        to: AgentId,
    },
    #[error("a number of a task or of a version is too high to count on from")]
    TooHigh,
    #[error("the metadata of task {task} nest deeper than {METADATA_DEPTH} levels")]
    TooDeep { task: TaskId },
    #[error("task {task} is out of order")]
    TaskOrder { task: TaskId },
    #[error("task {task} waits for {needs}, which is missing")]
    MissingTask { task: TaskId, needs: TaskId },
    #[error("task {task} waits for itself in a circle")]
    Cycle { task: TaskId },
}

/// Refuses an archive that contradicts itself.
pub(crate) fn check(archive: &Archive) -> Result<(), ArchiveContradiction> {
    let Archive {
        team,
        tasks,
        last_task,
        mail,
        ..
    } = archive;
    if !team.members.iter().any(|member| member.agent == team.lead) {
        return Err(ArchiveContradiction::LeadNotAMember {
            team: team.name.clone(),
        });
    }
    // `team-lead` is reserved, but it is what the lead itself is called.
    let leads = |member: &Member| member.name.as_str() == Name::LEAD && member.agent == team.lead;
    if let Some(member) = team
        .members
        .iter()
        .find(|member| member.name.is_reserved() && !leads(member))
    {
        return Err(ArchiveContradiction::ReservedName {
            name: member.name.clone(),
        });
    }
    if let Some(name) = team.former.iter().find(|name| name.is_reserved()) {
        return Err(ArchiveContradiction::ReservedFormerName { name: name.clone() });
    }
    if mail.len() != team.members.len() {
        return Err(ArchiveContradiction::InboxCount {
            inboxes: mail.len(),
            members: team.members.len(),
        });
    }
    for (member, mail) in team.members.iter().zip(mail) {
        // An inbox numbers its messages from 1 without gaps; a gap means that some are missing.
        if let Some((_, mail)) = (1..)
            .zip(mail)
            .find(|(number, mail)| mail.number != *number)
        {
            return Err(ArchiveContradiction::MailOrder {
                number: mail.number,
                member: member.name.clone(),
            });
        }
        if let Some(mail) = mail.iter().find(|mail| mail.to != member.agent) {
            return Err(ArchiveContradiction::MailOfAnother {
                number: mail.number,
                member: member.name.clone(),
                to: mail.to,
            });
        }
    }
    if *last_task > MOST || tasks.iter().any(|task| task.version > MOST) {
        return Err(ArchiveContradiction::TooHigh);
    }
    let deep = |task: &&Task| {
        task.metadata
            .values()
            .any(|value| depth(value) > METADATA_DEPTH)
    };
    if let Some(task) = tasks.iter().find(deep) {
        return Err(ArchiveContradiction::TooDeep { task: task.id });
    }
    // Task numbers are never reused, so the archive cannot contain one beyond the last number
    // given.
    let mut before = 0;
    for task in tasks {
        if task.id.0 <= before || task.id.0 > *last_task {
            return Err(ArchiveContradiction::TaskOrder { task: task.id });
        }
        before = task.id.0;
    }
    check_dependencies(tasks)
}

/// Refuses tasks that depend on a missing task or on each other.
fn check_dependencies(tasks: &[Task]) -> Result<(), ArchiveContradiction> {
    let mut open: BTreeMap<TaskId, usize> = tasks
        .iter()
        .map(|task| (task.id, task.blocked_by.len()))
        .collect();
    let mut blocks: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    for task in tasks {
        for needs in &task.blocked_by {
            if !open.contains_key(needs) {
                return Err(ArchiveContradiction::MissingTask {
                    task: task.id,
                    needs: *needs,
                });
            }
            blocks.entry(*needs).or_default().push(task.id);
        }
    }
    let mut ready: Vec<TaskId> = open
        .iter()
        .filter(|(_, waits)| **waits == 0)
        .map(|(id, _)| *id)
        .collect();
    // Kahn's algorithm: what cannot be removed after everything it needs is part of a cycle, or
    // behind one.
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
        Some(id) => Err(ArchiveContradiction::Cycle { task: *id }),
        None => Ok(()),
    }
}

/// Returns the tasks as they are imported, each with the number of unsettled tasks it waits for.
/// A task in progress becomes pending, as if the host of its owner had died.
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
                // The version rises as with every change, so that an update that expects the old
                // one is refused.
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
