//! Reads the state of a team from the store while it works.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use posse_port::store::{OpenRequest, Page, Store, StoreError, TaskFilter};
use posse_protocol::{
    AgentId, Fault, Name, RealmId, RequestKind, Sender, Task, TaskId, TaskStatus, Team,
};

use super::team_snapshot::TeamSnapshot;
use crate::present::costs::Tally;
use crate::select::tasks;

/// Interval of checks.
pub(crate) const SOON: Duration = Duration::from_secs(1);
/// Time that the store has to answer before it counts as silent.
const PROMPT: Duration = Duration::from_secs(1);

/// Watches a team.
pub(crate) struct TeamWatch {
    store: Arc<dyn Store>,
    main: AgentId,
    /// The team; `None` until one is made.
    team: Option<Name>,
    realm: RealmId,
    /// The tasks as of the last snapshot.
    known: BTreeMap<TaskId, (TaskStatus, Option<String>)>,
    /// Tasks in the first snapshot are reported as changes.
    is_news: bool,
    /// The last number of the session's feed before the last snapshot: whatever a process does, it
    /// grows.
    number: Option<u64>,
    last: Option<TeamSnapshot>,
    /// Why the store does not answer, as of the last check.
    silence: Option<String>,
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
    /// Watches the team that `main` leads; `None` if it may still make one. For a team that was just
    /// created, its first tasks are news.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        main: AgentId,
        team: Option<Name>,
        is_new: bool,
    ) -> Self {
        Self {
            store,
            main,
            team,
            realm: main.uuid().into(),
            known: BTreeMap::new(),
            is_news: is_new,
            number: None,
            last: None,
            silence: None,
        }
    }

    /// Notes a team that was made, unless another is watched.
    pub(crate) fn made(&mut self, team: &Name) {
        self.team.get_or_insert_with(|| team.clone());
    }

    /// Returns why the store does not answer, if it does not.
    pub(crate) fn silence(&self) -> Option<&str> {
        self.silence.as_deref()
    }

    /// Returns the state of the team, or the last one if nothing has happened or the store does
    /// not answer.
    pub(crate) async fn look(&mut self, refresh: Refresh) -> Option<&TeamSnapshot> {
        self.team.as_ref()?;
        let looked = tokio::time::timeout(PROMPT, self.seen(refresh)).await;
        let seen = match looked {
            Ok(Ok(seen)) => {
                self.silence = None;
                seen
            }
            Ok(Err(error)) => {
                self.silence = Some(Fault::from(&error).message);
                None
            }
            Err(_) => {
                self.silence = Some("no answer within a second".into());
                None
            }
        };
        if let Some(seen) = seen {
            return Some(self.last.insert(seen));
        }
        let last = self.last.as_mut()?;
        last.changed.clear();
        Some(last)
    }

    /// Reads the state from the store; none if nothing has happened, or if there is no team yet.
    async fn seen(&mut self, refresh: Refresh) -> Result<Option<TeamSnapshot>, StoreError> {
        let realm = self.realm;
        // Before the state is read, so that nothing is missed.
        let feed = self.store.feed(realm, self.number.unwrap_or(0), 1).await?;
        if refresh == Refresh::IfChanged && self.number == Some(feed.head) {
            return Ok(None);
        }
        let teams = self.store.teams(Some(realm), Page::all()).await?;
        let Some(team) = teams
            .into_iter()
            .find(|team| Some(&team.name) == self.team.as_ref())
        else {
            self.number = Some(feed.head);
            return Ok(None);
        };
        let tasks = self
            .store
            .tasks(tasks::list_of(&team), TaskFilter::default(), Page::all())
            .await?;
        let spending = self.store.spending(vec![self.main]).await?;
        let charges = spending.iter().flat_map(|spending| &spending.charges);
        let cost = Tally::of(charges).cost;
        let requests = self.store.requests(realm, None, Page::all()).await?;
        let requests = requests
            .iter()
            .filter(|request| is_plan_of(request, &team))
            .count();
        let changed = self.changed(&tasks);
        self.number = Some(feed.head);
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
    use super::*;
    use crate::headless::fixtures::{task, team};

    fn id(number: u128) -> AgentId {
        uuid::Uuid::from_u128(number).into()
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
