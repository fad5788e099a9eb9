//! Reads the state of a team from the store while it works.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use posse_port::store::{AgentFilter, OpenRequest, Store, StoreError, TaskFilter};
use posse_protocol::{AgentId, Name, RealmId, RequestKind, Sender, Task, TaskId, TaskStatus, Team};

use super::team_snapshot::TeamSnapshot;
use crate::present::sessions;
use crate::select::tasks;

/// Interval of checks.
pub(crate) const SOON: Duration = Duration::from_secs(1);
/// Number of checks after which the store is read even without an event: members may be in other
/// processes.
const QUIET: u32 = 5;

/// Watches a team.
pub(crate) struct TeamWatch {
    store: Arc<dyn Store>,
    main: AgentId,
    team: Name,
    /// Known once the session is in the store.
    realm: Option<RealmId>,
    /// The tasks as of the last snapshot.
    known: BTreeMap<TaskId, (TaskStatus, Option<String>)>,
    /// Tasks in the first snapshot are reported as changes.
    is_news: bool,
    /// Something has happened since the last snapshot.
    dirty: bool,
    skipped: u32,
    last: Option<TeamSnapshot>,
}

/// When to read the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refresh {
    /// If something has happened.
    IfChanged,
    /// In any case.
    Always,
}

impl TeamWatch {
    /// Watches the team that `main` leads. For a team that was just created, its first tasks are
    /// news.
    pub(crate) fn new(store: Arc<dyn Store>, main: AgentId, team: Name, is_new: bool) -> Self {
        let (known, realm, last) = (BTreeMap::new(), None, None);
        Self {
            store,
            main,
            team,
            realm,
            known,
            is_news: is_new,
            dirty: true,
            skipped: 0,
            last,
        }
    }

    /// Notes that something has happened.
    pub(crate) fn touch(&mut self) {
        self.dirty = true;
    }

    /// Returns the state of the team, or the last one if nothing has happened. Errors are
    /// ignored: showing progress must never fail a run.
    pub(crate) async fn look(&mut self, refresh: Refresh) -> Option<&TeamSnapshot> {
        self.skipped += 1;
        if refresh == Refresh::Always || self.dirty || self.skipped >= QUIET {
            (self.dirty, self.skipped) = (false, 0);
            if let Ok(Some(seen)) = self.seen().await {
                return Some(self.last.insert(seen));
            }
        }
        let last = self.last.as_mut()?;
        last.changed.clear();
        Some(last)
    }

    /// Reads the state from the store.
    async fn seen(&mut self) -> Result<Option<TeamSnapshot>, StoreError> {
        let realm = match self.realm {
            Some(realm) => realm,
            None => {
                let filter = AgentFilter {
                    id: Some(self.main),
                    ..AgentFilter::default()
                };
                let Some(session) = self.store.agents(filter, 1).await?.pop() else {
                    return Ok(None);
                };
                *self.realm.insert(session.realm)
            }
        };
        let teams = self.store.teams(Some(realm), usize::MAX).await?;
        let Some(team) = teams.into_iter().find(|team| team.name == self.team) else {
            return Ok(None);
        };
        let tasks = self
            .store
            .tasks(tasks::list_of(&team), TaskFilter::default(), usize::MAX)
            .await?;
        let agents = AgentFilter {
            realm: Some(realm),
            ..AgentFilter::default()
        };
        let cost = self
            .store
            .agents(agents, usize::MAX)
            .await?
            .iter()
            .map(sessions::cost)
            .sum();
        let requests = self.store.requests(realm, None).await?;
        let requests = requests
            .iter()
            .filter(|request| is_plan_of(request, &team))
            .count();
        let changed = self.changed(&tasks);
        Ok(Some(TeamSnapshot {
            team,
            tasks,
            changed,
            requests,
            cost,
        }))
    }

    /// Returns the tasks whose status or owner has changed.
    fn changed(&mut self, tasks: &[Task]) -> Vec<Task> {
        let is_news = std::mem::replace(&mut self.is_news, true);
        let mut changed = Vec::new();
        for task in tasks {
            let now = (
                task.status,
                task.owner.as_ref().map(|owner| owner.name.clone()),
            );
            if self.known.insert(task.id, now.clone()) != Some(now) && is_news {
                changed.push(task.clone());
            }
        }
        changed
    }
}

/// Returns true if a member of this team requests approval of a plan.
fn is_plan_of(request: &OpenRequest, team: &Team) -> bool {
    let is_of = |id| team.members.iter().any(|member| member.agent == id);
    request.kind == RequestKind::Plan
        && matches!(&request.from, Sender::Agent { id, .. } if is_of(*id))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(number: u128) -> AgentId {
        uuid::Uuid::from_u128(number).into()
    }

    fn team() -> Team {
        let member = json!({
            "agent": id(1), "name": "dev", "agent_type": "x", "model": "m", "prompt": "", "color": "blue",
            "backend": "in-process", "cwd": "/", "joined_ms": 0,
        });
        Team {
            realm: uuid::Uuid::from_u128(9).into(),
            name: "parser".parse().unwrap(),
            description: String::new(),
            lead: id(1),
            created_ms: 0,
            settings: serde_json::Map::new(),
            members: vec![serde_json::from_value(member).unwrap()],
            former: Vec::new(),
        }
    }

    #[test]
    fn plans_of_this_team_wait_for_a_yes() {
        let request = |from: u128, kind| OpenRequest {
            id: uuid::Uuid::from_u128(7).into(),
            kind,
            from: Sender::Agent {
                id: id(from),
                name: "x".into(),
            },
            to: id(1),
            text: String::new(),
            asked_ms: 0,
        };
        let waits = |from, kind| is_plan_of(&request(from, kind), &team());
        assert!(waits(1, RequestKind::Plan));
        assert!(!waits(2, RequestKind::Plan), "of another team");
        assert!(!waits(1, RequestKind::Shutdown), "it answers that itself");
    }

    #[test]
    fn a_task_that_was_deleted_is_not_done() {
        let task = |number: u64, status: &str| -> Task {
            serde_json::from_value(json!({
                "id": number, "subject": "s", "description": "", "status": status, "created_ms": 0,
                "updated_ms": 0, "version": 1, "blocked_by": [], "waits_for": [], "blocks": [], "metadata": {},
            }))
            .unwrap()
        };
        let tasks = vec![task(1, "completed"), task(2, "deleted"), task(3, "pending")];
        let seen = TeamSnapshot {
            team: team(),
            tasks,
            changed: Vec::new(),
            requests: 0,
            cost: None,
        };
        let panel = seen.panel(Duration::ZERO);
        assert_eq!((panel.done, panel.tasks), (1, 2));
    }
}
