//! A place at which one agent after another works.

use std::sync::Arc;
use std::time::Duration;

use posse_port::clock::{Clock as _, SystemClock};
use posse_port::store::{MailFilter, OpResult, Order, Page, Store as _, StoreError, TaskFilter};
use posse_protocol::{AgentId, ListId, RealmId, TaskStatus};
use posse_store::Postgres;
use posse_testkit::fleet::{Began, Record, agent, draw, realm};

use crate::deed::{self, Writer};
use crate::history::History;
use crate::{Ending, Failed, Fleet};

pub(crate) struct Place {
    pub(crate) fleet: Fleet,
    pub(crate) place: u64,
    pub(crate) store: Arc<Postgres>,
    pub(crate) history: Arc<History>,
    pub(crate) ending: Arc<Ending>,
    pub(crate) seed: u64,
}

impl Place {
    fn draw(&mut self, below: u64) -> u64 {
        draw(&mut self.seed, below)
    }

    async fn pause(&mut self, most_ms: u64) {
        let time = Duration::from_millis(self.draw(most_ms));
        SystemClock::default().sleep(time).await;
    }

    /// Takes agents, its own more often than others', and performs some actions with each.
    pub(crate) async fn work(mut self) -> Result<(), Failed> {
        while !self.ending.has_come() {
            let own = self.draw(100) < 80;
            let (host, place) = match own {
                true => (self.fleet.host, self.place),
                false => (self.draw(self.fleet.hosts), self.draw(self.fleet.places)),
            };
            if !self.have(agent(host, place), realm(place), own).await? {
                self.pause(100).await;
            }
        }
        Ok(())
    }

    /// Performs some actions with an agent; returns true if it could be taken.
    async fn have(&mut self, agent: AgentId, realm: RealmId, own: bool) -> Result<bool, Failed> {
        let taken = match self.store.take(agent).await {
            Ok(taken) => taken,
            Err(error) => return self.not_taken(error),
        };
        let epoch = taken.epoch;
        self.history.write(&Record::Took {
            agent,
            epoch: epoch.0,
        })?;
        let filter = TaskFilter {
            owner: Some(agent),
            status: Some(TaskStatus::InProgress),
            ..TaskFilter::default()
        };
        let tasks = self
            .store
            .tasks(ListId { realm, team: None }, filter, Page::first(10))
            .await?;
        let entries = &taken.transcript.entries;
        let mut writer = Writer {
            realm,
            agent,
            epoch,
            next: taken.transcript.record.entries,
            last: entries.last().map_or(0, |stored| stored.entry.checksum),
            tasks: tasks.iter().map(|task| task.id.0).collect(),
        };
        for _ in 0..5 + self.draw(40) {
            if self.ending.has_come() {
                break;
            }
            if !self.act(&mut writer).await? {
                return Ok(true);
            }
            self.pause(20).await;
        }
        if !own || self.draw(3) == 0 {
            // If the release fails, the next host to take the agent finds out.
            let _ = self.store.release(agent, epoch).await;
        }
        Ok(true)
    }

    fn not_taken(&self, error: StoreError) -> Result<bool, Failed> {
        match error {
            // If this host is lost, the store tells it.
            StoreError::Held { .. } | StoreError::Fenced { .. } | StoreError::Engine { .. } => {}
            error => self
                .history
                .write(&Record::Trouble(format!("a take: {error}")))?,
        }
        Ok(false)
    }

    /// Performs one action; returns true if the agent may continue.
    async fn act(&mut self, writer: &mut Writer) -> Result<bool, Failed> {
        let waiting = match self.draw(3) {
            0 => {
                let filter = MailFilter { waiting: true };
                let mail = self
                    .store
                    .mail(writer.realm, writer.agent, filter, Page::first(5))
                    .await?;
                mail.iter().map(|mail| mail.number).collect()
            }
            _ => Vec::new(),
        };
        let peers = self.fleet.agents(writer.realm);
        if self.draw(20) == 0 {
            let (began, order) = deed::order(writer.realm, &peers, &mut self.seed);
            return self.order(began, order).await;
        }
        let (began, step) = deed::step(writer, &waiting, &peers, &mut self.seed);
        self.history.write(&Record::Began(began.clone()))?;
        let committed = self
            .store
            .commit(step)
            .await
            .map(|committed| committed.results);
        let Some(results) = self.came_of(&began, committed)? else {
            return Ok(false);
        };
        writer.did(&began, &results);
        Ok(true)
    }

    async fn order(&self, began: Began, order: Order) -> Result<bool, Failed> {
        self.history.write(&Record::Began(began.clone()))?;
        let operated = self.store.operate(order).await;
        // An order of a person does not depend on the agent's holder.
        self.came_of(&began, operated).map(|_| true)
    }

    /// Records the result of an action; `None` if the agent's writer must stop.
    fn came_of(
        &self,
        began: &Began,
        came: Result<Vec<OpResult>, StoreError>,
    ) -> Result<Option<Vec<OpResult>>, Failed> {
        let id = began.id;
        let record = match &came {
            Ok(results) => Record::Acknowledged {
                id,
                results: results.clone(),
            },
            Err(StoreError::Fenced { .. }) => Record::Refused { id },
            Err(error @ StoreError::Engine { .. }) => Record::Unknown {
                id,
                why: error.to_string(),
            },
            Err(error) => Record::Trouble(format!("{began:?}: {error}")),
        };
        self.history.write(&record)?;
        Ok(came.ok())
    }
}
