//! Tasks: lists, ownership and dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use posse_port::store::{
    Done, METADATA_DEPTH, NewTask, OpResult, Refusal, TEXT_BYTES, TaskChange, TaskFilter, depth,
};
use posse_protocol::{AgentId, ListId, Name, Owner, RealmId, Takes, Task, TaskId, TaskStatus};
use serde_json::{Map, Value};

use super::operation::Doer;
use super::{Flaw, Model};

/// A list of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct List {
    pub(super) tasks: BTreeMap<TaskId, Arc<Known>>,
    /// The highest number ever given; it outlives the tasks.
    pub(super) last: u64,
}

/// A task; its blockers and the tasks it blocks are derived.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Known {
    subject: String,
    description: String,
    active_form: Option<String>,
    status: TaskStatus,
    owner: Option<Owner>,
    lost_by: Option<String>,
    blocked_by: BTreeSet<TaskId>,
    role: Option<String>,
    check: Option<String>,
    metadata: Map<String, Value>,
    created_ms: i64,
    updated_ms: i64,
    version: u64,
}

impl Known {
    fn bytes(&self) -> usize {
        let metadata = match self.metadata.is_empty() {
            true => 0,
            false => Value::from(self.metadata.clone()).to_string().len(),
        };
        let texts = [&self.active_form, &self.role, &self.check]
            .into_iter()
            .flatten();
        self.subject.len()
            + self.description.len()
            + texts.map(String::len).sum::<usize>()
            + metadata
    }

    fn fits(&self) -> Result<(), Refusal> {
        let (bytes, most) = (self.bytes(), TEXT_BYTES);
        if bytes > most {
            return Err(Refusal::TooLong { bytes, most });
        }
        let deep = self
            .metadata
            .values()
            .any(|value| depth(value) > METADATA_DEPTH);
        if deep {
            Err(Refusal::TooDeep {
                most: METADATA_DEPTH,
            })
        } else {
            Ok(())
        }
    }
}

impl List {
    fn waits_for(&self, task: &Known) -> Vec<TaskId> {
        let open = |id: &&TaskId| {
            self.tasks
                .get(id)
                .is_some_and(|needed| !needed.status.is_settled())
        };
        task.blocked_by.iter().filter(open).copied().collect()
    }

    /// All tasks by number, including deleted ones.
    pub(super) fn all(&self) -> impl Iterator<Item = Task> {
        self.tasks.keys().filter_map(|id| self.shown(*id))
    }

    /// Adds a task unchanged, except that one in progress becomes pending.
    pub(super) fn put(&mut self, task: &Task) {
        let lost = task.status == TaskStatus::InProgress;
        let name = || task.owner.as_ref().map(|owner| owner.name.clone());
        let known = Known {
            subject: task.subject.clone(),
            description: task.description.clone(),
            active_form: task.active_form.clone(),
            status: if lost {
                TaskStatus::Pending
            } else {
                task.status
            },
            owner: task.owner.clone().filter(|_| !lost),
            lost_by: if lost { name() } else { task.lost_by.clone() },
            blocked_by: task.blocked_by.iter().copied().collect(),
            role: task.role.clone(),
            check: task.check.clone(),
            metadata: task.metadata.clone(),
            created_ms: task.created_ms,
            updated_ms: task.updated_ms,
            version: task.version + u64::from(lost),
        };
        self.tasks.insert(task.id, Arc::new(known));
    }

    /// Tasks that are pending, unowned and not blocked.
    pub(super) fn claimable(&self) -> BTreeSet<TaskId> {
        let free = |task: &Known| {
            task.status == TaskStatus::Pending
                && task.owner.is_none()
                && self.waits_for(task).is_empty()
        };
        self.tasks
            .iter()
            .filter(|(_, task)| free(task))
            .map(|(id, _)| *id)
            .collect()
    }

    /// Tasks that are pending and not blocked, each with its owner and its role.
    fn ready(&self) -> BTreeMap<TaskId, (Option<&Owner>, Option<&str>)> {
        let ready =
            |task: &Known| task.status == TaskStatus::Pending && self.waits_for(task).is_empty();
        let tasks = self.tasks.iter().filter(|(_, task)| ready(task));
        tasks
            .map(|(id, task)| (*id, (task.owner.as_ref(), task.role.as_deref())))
            .collect()
    }

    /// Tasks claimable now: own ones, and unowned ones accepted by `takes`.
    fn ready_for(&self, is_own: impl Fn(&Owner) -> bool, takes: &Takes) -> BTreeSet<TaskId> {
        let mine = |(owner, role): &(Option<&Owner>, Option<&str>)| match (owner, takes, role) {
            (Some(owner), ..) => is_own(owner),
            (None, Takes::Any, _) => true,
            (None, Takes::Only { unmarked, .. }, None) => *unmarked,
            (None, Takes::Only { roles, .. }, Some(role)) => {
                roles.iter().any(|taken| taken == role)
            }
        };
        self.ready()
            .into_iter()
            .filter(|(_, whose)| mine(whose))
            .map(|(id, _)| id)
            .collect()
    }

    fn shown(&self, id: TaskId) -> Option<Task> {
        let task = self.tasks.get(&id)?;
        let blocks = self
            .tasks
            .iter()
            .filter(|(_, other)| other.blocked_by.contains(&id));
        Some(Task {
            id,
            subject: task.subject.clone(),
            description: task.description.clone(),
            active_form: task.active_form.clone(),
            status: task.status,
            owner: task.owner.clone(),
            lost_by: task.lost_by.clone(),
            blocked_by: task.blocked_by.iter().copied().collect(),
            waits_for: self.waits_for(task),
            blocks: blocks.map(|(id, _)| *id).collect(),
            created_ms: task.created_ms,
            updated_ms: task.updated_ms,
            role: task.role.clone(),
            check: task.check.clone(),
            metadata: task.metadata.clone(),
            version: task.version,
        })
    }

    /// Returns a path from one task to another along their dependencies, both included.
    fn way(&self, from: TaskId, to: TaskId) -> Option<Vec<TaskId>> {
        if from == to {
            return Some(vec![to]);
        }
        let needs = &self.tasks.get(&from)?.blocked_by;
        let mut way = needs.iter().find_map(|next| self.way(*next, to))?;
        way.insert(0, from);
        Some(way)
    }

    /// Returns a task that was not deleted.
    fn existing(&self, id: TaskId) -> Result<&Known, Refusal> {
        let task = self
            .tasks
            .get(&id)
            .map(Arc::as_ref)
            .filter(|task| task.status != TaskStatus::Deleted);
        task.ok_or(Refusal::NoSuchTask { id })
    }

    /// Checks that all these tasks were ever created; a deleted task counts as done.
    fn all_made(&self, ids: &[TaskId]) -> Result<(), Refusal> {
        match ids.iter().find(|id| !self.tasks.contains_key(id)) {
            Some(id) => Err(Refusal::NoSuchTask { id: *id }),
            None => Ok(()),
        }
    }
}

impl Model {
    /// Returns a task, even a deleted one.
    pub fn task(&self, list: &ListId, id: TaskId) -> Option<Task> {
        self.lists.get(list)?.shown(id)
    }

    /// Tasks by number, without deleted ones.
    pub fn tasks(&self, list: &ListId, filter: &TaskFilter) -> Vec<Task> {
        let Some(list) = self.lists.get(list) else {
            return Vec::new();
        };
        let ready = filter.ready.as_ref().map(|ready| {
            let is_own = |owner: &Owner| ready.agent.is_some() && owner.agent == ready.agent;
            list.ready_for(is_own, &ready.takes)
        });
        let owner = |task: &Task| task.owner.as_ref().and_then(|owner| owner.agent);
        list.all()
            .filter(|task| task.status != TaskStatus::Deleted)
            .filter(|task| filter.status.is_none_or(|status| status == task.status))
            .filter(|task| filter.owner.is_none() || owner(task) == filter.owner)
            .filter(|task| ready.as_ref().is_none_or(|ready| ready.contains(&task.id)))
            .filter(|task| {
                !filter.assigned || owner(task).is_some() && list.ready().contains_key(&task.id)
            })
            .filter(|task| {
                let lost = task.status == TaskStatus::Pending && task.lost_by == filter.lost_by;
                filter.lost_by.is_none() || lost
            })
            .collect()
    }

    /// Status and owner of all tasks of a list, by number.
    pub fn rights<'a>(
        &'a self,
        list: &ListId,
    ) -> impl Iterator<Item = (TaskStatus, Option<&'a Owner>)> + use<'a> {
        let tasks = self
            .lists
            .get(list)
            .into_iter()
            .flat_map(|list| list.tasks.values());
        tasks.map(|task| (task.status, task.owner.as_ref()))
    }

    /// The list of an existing team, or of the session.
    fn list(&mut self, list: &ListId) -> Result<&mut List, Refusal> {
        if let Some(team) = &list.team {
            self.team(list.realm, team)?;
        }
        Ok(self.lists.entry(list.clone()).or_default())
    }

    pub(super) fn create_task(&mut self, list: &ListId, task: &NewTask, at_ms: i64) -> OpResult {
        let known = Known {
            subject: task.subject.clone(),
            description: task.description.clone(),
            active_form: task.active_form.clone(),
            status: TaskStatus::Pending,
            owner: None,
            lost_by: None,
            blocked_by: task.blocked_by.iter().copied().collect(),
            role: task.role.clone().filter(|role| !role.is_empty()),
            check: task.check.clone().filter(|check| !check.is_empty()),
            metadata: task.metadata.clone(),
            created_ms: at_ms,
            updated_ms: at_ms,
            version: 1,
        };
        let into = self.list(list)?;
        known.fits()?;
        into.all_made(&sorted(&task.blocked_by))?;
        into.last += 1;
        let id = TaskId(into.last);
        into.tasks.insert(id, Arc::new(known));
        if into.claimable().contains(&id) {
            self.tell_claimable(list);
        }
        Ok(Done::TaskCreated(id))
    }

    pub(super) fn update_task(
        &mut self,
        doer: Doer,
        list: &ListId,
        id: TaskId,
        expect: Option<u64>,
        change: &TaskChange,
        at_ms: i64,
    ) -> OpResult {
        let mut after = self.list(list)?.clone();
        let before = after.existing(id)?.clone();
        let version = before.version;
        if expect.is_some_and(|expected| expected != version) {
            return Err(Refusal::Changed { version });
        }
        self.may_change(doer, list, id, &before, change)?;
        let mut task = before.clone();
        if let Some(owner) = &change.owner {
            task.owner = owner
                .as_ref()
                .map(|name| self.owner_called(list, name))
                .transpose()?;
            if task.owner.is_none() && task.status == TaskStatus::InProgress {
                task.status = TaskStatus::Pending;
            }
            task.lost_by = task
                .lost_by
                .filter(|_| task.owner.is_none() || task.owner == before.owner);
        }
        task.status = change.status.unwrap_or(task.status);
        if task.status == TaskStatus::InProgress {
            task.owner = task.owner.or_else(|| Some(self.owner(doer, list)));
        }
        if before.status == TaskStatus::Pending && task.status != TaskStatus::Pending {
            task.lost_by = None;
        }
        after.all_made(&change.block_on)?;
        for needed in &change.block_on {
            if let Some(mut through) = after.way(*needed, id) {
                through.pop();
                through.insert(0, id);
                return Err(Refusal::Cycle { through });
            }
        }
        task.blocked_by.extend(&change.block_on);
        task.blocked_by
            .retain(|needed| !change.unblock_from.contains(needed));
        let begun = before.status != TaskStatus::InProgress || task.owner != before.owner;
        if begun && task.status == TaskStatus::InProgress {
            self.may_begin(doer, list.realm, id, (&after, &task))?;
        }
        task.describe(change);
        if task.status == TaskStatus::Completed
            && before.status != task.status
            && doer != Doer::User
        {
            let checks = [&before.check, &task.check].into_iter().flatten();
            if let Some(check) = checks
                .into_iter()
                .find(|check| change.passed.as_ref() != Some(check))
            {
                return Err(Refusal::Unchecked {
                    id,
                    check: check.clone(),
                });
            }
        }
        task.fits()?;
        if task == before {
            return Ok(Done::TaskUpdated {
                version,
                freed: Vec::new(),
            });
        }
        task.updated_ms = at_ms;
        task.version += 1;
        let version = task.version;
        let earlier = after.clone();
        after.tasks.insert(id, Arc::new(task));
        let freed: Vec<TaskId> = after
            .claimable()
            .difference(&earlier.claimable())
            .copied()
            .collect();
        // True if a task can be begun by someone who could not begin it before.
        let before = earlier.ready();
        let told = after
            .ready()
            .iter()
            .any(|(id, whose)| before.get(id) != Some(whose));
        self.lists.insert(list.clone(), after);
        if told {
            self.tell_claimable(list);
        }
        Ok(Done::TaskUpdated { version, freed })
    }

    /// Checks that the caller may make a change: status and owner of a task in progress are changed
    /// by its owner, the lead or a person. Anyone may add a check to a pending task; it is changed
    /// by the lead, in the session's list by an agent without a maker, or by a person.
    fn may_change(
        &self,
        doer: Doer,
        list: &ListId,
        id: TaskId,
        before: &Known,
        change: &TaskChange,
    ) -> Result<(), Refusal> {
        let Doer::Agent(agent) = doer else {
            return Ok(());
        };
        let team = list
            .team
            .as_ref()
            .and_then(|team| self.team(list.realm, team).ok());
        let leads = team.is_some_and(|team| team.lead == agent);
        let touched = before.status == TaskStatus::InProgress
            && (change.owner.is_some()
                || change.status.is_some_and(|status| status != before.status));
        if let Some(owner) = before
            .owner
            .as_ref()
            .filter(|owner| touched && owner.agent != Some(agent) && !leads)
        {
            return Err(Refusal::AlreadyClaimed {
                id,
                by: owner.name.clone(),
            });
        }
        let rechecked = change
            .check
            .as_ref()
            .is_some_and(|check| *check != before.check.clone().unwrap_or_default());
        let is_first = || {
            self.agent(agent)
                .is_some_and(|agent| agent.origin.0.is_none())
        };
        let decides = leads || list.team.is_none() && is_first();
        let added = before.check.is_none() && before.status == TaskStatus::Pending;
        if rechecked && !decides && !added {
            Err(Refusal::CheckStands { id })
        } else {
            Ok(())
        }
    }

    /// Checks that a task can be done now: it is not blocked, and its owner is at work.
    fn may_begin(
        &self,
        doer: Doer,
        realm: RealmId,
        id: TaskId,
        (list, task): (&List, &Known),
    ) -> Result<(), Refusal> {
        let by = list.waits_for(task);
        if !by.is_empty() {
            return Err(Refusal::Blocked { id, by });
        }
        let Some(Owner {
            agent: Some(agent),
            name,
        }) = &task.owner
        else {
            return Ok(());
        };
        match self
            .holder(realm, *agent)
            .filter(|host| !self.is_gone(doer, *host))
        {
            Some(_) => Ok(()),
            None => Err(Refusal::NotRunning { name: name.clone() }),
        }
    }

    /// Returns an owner by name: the person, a member of the team, or the youngest agent with that
    /// path.
    fn owner_called(&self, list: &ListId, name: &str) -> Result<Owner, Refusal> {
        if name == "user" {
            return Ok(Owner {
                agent: None,
                name: name.to_owned(),
            });
        }
        let agent = match &list.team {
            Some(team) => {
                let known = self.team(list.realm, team)?;
                let agent = name.parse().ok().and_then(|name| known.called(&name));
                if let Some(agent) = agent.filter(|_| name == Name::LEAD) {
                    // The lead has a name of its own as well.
                    let name = self
                        .name_in(list.realm, agent, team)
                        .unwrap_or_else(|| name.to_owned());
                    return Ok(Owner {
                        agent: Some(agent),
                        name,
                    });
                }
                agent
            }
            None => {
                let called = |(_, agent): &(AgentId, &super::Agent)| {
                    agent.realm == list.realm && agent.path == name
                };
                self.agents().filter(called).map(|(id, _)| id).max()
            }
        };
        let agent = agent.ok_or_else(|| Refusal::NoSuchRecipient {
            to: name.to_owned(),
        })?;
        Ok(Owner {
            agent: Some(agent),
            name: name.to_owned(),
        })
    }

    pub(super) fn claim(&mut self, doer: Doer, list: &ListId, id: TaskId, at_ms: i64) -> OpResult {
        let me = self.owner(doer, list);
        let before = self.list(list)?.existing(id)?.clone();
        if before.status == TaskStatus::Completed {
            return Err(Refusal::AlreadyCompleted { id });
        }
        let doing = before
            .owner
            .filter(|_| before.status == TaskStatus::InProgress);
        let host = doing.and_then(|owner| self.holder(list.realm, owner.agent?));
        if let Some(host) = host.filter(|host| self.is_gone(doer, *host)) {
            self.take_for_dead(host);
        }
        let flaw = self.flaw;
        let from = self.list(list)?;
        let by = from.waits_for(from.existing(id)?);
        let task = from.tasks.get_mut(&id).ok_or(Refusal::NoSuchTask { id })?;
        let mine = task.owner.as_ref().is_none_or(|owner| same(owner, &me))
            || flaw == Some(Flaw::BlindClaim);
        match (task.status, &task.owner) {
            (_, Some(owner)) if !mine => {
                return Err(Refusal::AlreadyClaimed {
                    id,
                    by: owner.name.clone(),
                });
            }
            (TaskStatus::InProgress, Some(owner)) if same(owner, &me) => {}
            _ if !by.is_empty() => return Err(Refusal::Blocked { id, by }),
            _ => {
                let task = Arc::make_mut(task);
                (task.status, task.owner, task.lost_by) = (TaskStatus::InProgress, Some(me), None);
                (task.updated_ms, task.version) = (at_ms, task.version + 1);
            }
        }
        let claimed = from.shown(id).ok_or(Refusal::NoSuchTask { id })?;
        Ok(Done::Claimed(Box::new(claimed)))
    }

    pub(super) fn claim_next(
        &mut self,
        doer: Doer,
        list: &ListId,
        takes: &Takes,
        at_ms: i64,
    ) -> OpResult {
        let me = self.owner(doer, list);
        let is_own = |owner: &Owner| same(owner, &me);
        if self.list(list)?.ready_for(is_own, takes).is_empty() {
            self.free_stalled(doer, list);
        }
        let next = self
            .list(list)?
            .ready_for(is_own, takes)
            .first()
            .copied()
            .ok_or(Refusal::NothingToClaim)?;
        self.claim(doer, list, next, at_ms)
    }

    /// Frees everything held by stalled hosts whose agents do tasks of a list, except the caller's
    /// own host.
    fn free_stalled(&mut self, doer: Doer, list: &ListId) {
        let begun = TaskFilter {
            status: Some(TaskStatus::InProgress),
            ..TaskFilter::default()
        };
        let owners = self
            .tasks(list, &begun)
            .into_iter()
            .filter_map(|task| task.owner?.agent);
        let hosts = owners.filter_map(|agent| self.holder(list.realm, agent));
        let hosts: BTreeSet<_> = hosts.filter(|host| self.is_gone(doer, *host)).collect();
        hosts.into_iter().for_each(|host| self.take_for_dead(host));
    }

    /// Makes the tasks that an agent was doing pending, in one list or in all.
    pub(super) fn free_tasks(&mut self, realm: RealmId, agent: AgentId, team: Option<&Name>) {
        let mut woken = BTreeSet::new();
        let lists = self
            .lists
            .iter_mut()
            .filter(|(list, _)| list.realm == realm);
        for (id, list) in lists.filter(|(list, _)| team.is_none() || list.team.as_ref() == team) {
            let before = list.claimable();
            for task in list
                .tasks
                .values_mut()
                .filter(|task| task.status == TaskStatus::InProgress)
            {
                let task = Arc::make_mut(task);
                if task
                    .owner
                    .as_ref()
                    .is_some_and(|owner| owner.agent == Some(agent))
                {
                    task.status = TaskStatus::Pending;
                    task.lost_by = task.owner.take().map(|owner| owner.name);
                    task.version += 1;
                }
            }
            if list.claimable() != before {
                woken.insert(id.clone());
            }
        }
        woken
            .into_iter()
            .for_each(|list| self.tell_claimable(&list));
    }

    /// Makes tasks assigned to an agent unowned, in one list or in all.
    pub(super) fn unassign(&mut self, realm: RealmId, agent: AgentId, team: Option<&Name>) {
        let mut woken = BTreeSet::new();
        let lists = self
            .lists
            .iter_mut()
            .filter(|(list, _)| list.realm == realm);
        for (id, list) in lists.filter(|(list, _)| team.is_none() || list.team.as_ref() == team) {
            let before = list.claimable();
            for task in list
                .tasks
                .values_mut()
                .filter(|task| task.status == TaskStatus::Pending)
            {
                if task
                    .owner
                    .as_ref()
                    .is_some_and(|owner| owner.agent == Some(agent))
                {
                    let task = Arc::make_mut(task);
                    (task.owner, task.version) = (None, task.version + 1);
                }
            }
            if list.claimable() != before {
                woken.insert(id.clone());
            }
        }
        woken
            .into_iter()
            .for_each(|list| self.tell_claimable(&list));
    }

    /// Renames the owner of a former lead's tasks to its new name.
    pub(super) fn rename_owner(
        &mut self,
        realm: RealmId,
        team: &Name,
        agent: AgentId,
        name: &Name,
    ) {
        let list = self.lists.get_mut(&ListId {
            realm,
            team: Some(team.clone()),
        });
        for task in list.into_iter().flat_map(|list| list.tasks.values_mut()) {
            let old = Owner {
                agent: Some(agent),
                name: Name::LEAD.to_owned(),
            };
            if task.owner.as_ref() == Some(&old) {
                Arc::make_mut(task).owner = Some(Owner {
                    name: name.to_string(),
                    ..old
                });
            }
        }
    }
}

/// Returns true if the owners are the same: an agent by its id, a person by its name.
fn same(a: &Owner, b: &Owner) -> bool {
    a.agent == b.agent && (a.agent.is_some() || a.name == b.name)
}

fn sorted(ids: &[TaskId]) -> Vec<TaskId> {
    ids.iter()
        .copied()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

impl Known {
    /// Changes the texts.
    fn describe(&mut self, change: &TaskChange) {
        self.subject = change
            .subject
            .clone()
            .unwrap_or_else(|| self.subject.clone());
        self.description = change
            .description
            .clone()
            .unwrap_or_else(|| self.description.clone());
        if let Some(form) = &change.active_form {
            self.active_form = Some(form.clone()).filter(|form| !form.is_empty());
        }
        if let Some(role) = &change.role {
            self.role = Some(role.clone()).filter(|role| !role.is_empty());
        }
        if let Some(check) = &change.check {
            self.check = Some(check.clone()).filter(|check| !check.is_empty());
        }
        for (key, value) in &change.metadata {
            match value {
                Value::Null => self.metadata.shift_remove(key),
                value => self.metadata.insert(key.clone(), value.clone()),
            };
        }
    }
}
