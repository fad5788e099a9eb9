//! Batching of writes: jobs wait in lanes, one per realm.
//!
//! A realm has one batch under way at a time, and a batch takes everything that waits in its
//! lane: one transaction and one sync serve many agents of a session. Different realms are
//! written in parallel over a few connections; when these are busy, a batch takes several realms.
//! A batch has at most one job per agent: if it is sent twice because an answer was lost, each
//! job is recognized by its id. Within a realm, jobs are done in the order they were queued.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use posse_protocol::{AgentId, RealmId};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::host::PgHost;
use super::job::{JobKind, PgJob};

/// Number of jobs that may wait.
pub(super) const QUEUE: usize = 4096;
/// Number of batches under way at once.
const WRITERS: usize = 4;
/// Maximum number of jobs per transaction.
const JOBS: usize = 256;
/// Maximum number of bytes per transaction, unless one job has more.
const BYTES: usize = 4 << 20;

/// Waiting jobs. A lane exists while jobs wait in it or are under way.
#[derive(Default)]
struct Lanes {
    lanes: HashMap<Uuid, Lane>,
    /// Lanes with waiting jobs and none under way, in the order of waiting.
    ready: VecDeque<Uuid>,
    /// Number of waiting jobs in all lanes.
    waiting: usize,
    /// The realms of agents that this host holds, since not every job names one.
    homes: HashMap<AgentId, RealmId>,
}

/// The jobs of one realm.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<PgJob>,
    /// A batch with jobs of this lane is under way.
    busy: bool,
}

impl Lanes {
    /// Queues a job in the lane of its realm.
    fn put(&mut self, job: PgJob) {
        let home = job.realm.or_else(|| self.homes.get(&job.agent?).copied());
        match (job.agent, job.realm, job.kind) {
            (Some(agent), _, JobKind::Releases) => drop(self.homes.remove(&agent)),
            (Some(agent), Some(realm), _) => drop(self.homes.insert(agent, realm)),
            _ => {}
        }
        // An agent of an unknown realm gets a lane of its own; on the server the lock of its
        // realm's row still serializes its writes.
        let key = home
            .map(RealmId::uuid)
            .or(job.agent.map(AgentId::uuid))
            .unwrap_or_default();
        let lane = self.lanes.entry(key).or_default();
        if lane.waiting.is_empty() && !lane.busy {
            self.ready.push_back(key);
        }
        lane.waiting.push_back(job);
        self.waiting += 1;
    }

    /// Returns the next batch: a fair share of the ready lanes, or all of them if no other writer
    /// is free.
    fn batch(&mut self, writers: usize) -> (Vec<Uuid>, Vec<PgJob>) {
        let (mut keys, mut jobs, mut bytes) = (Vec::new(), Vec::new(), 0);
        for _ in 0..self.ready.len().div_ceil(writers.max(1)) {
            if jobs.len() >= JOBS || bytes >= BYTES {
                break;
            }
            let Some(key) = self.ready.pop_front() else {
                break;
            };
            let Some(lane) = self.lanes.get_mut(&key) else {
                continue;
            };
            lane.busy = true;
            keys.push(key);
            let mut agents = HashSet::new();
            // In order, up to the second job of an agent: see the module's documentation.
            while jobs.len() < JOBS && bytes < BYTES {
                let Some(job) = lane.waiting.pop_front() else {
                    break;
                };
                if job.agent.is_some_and(|agent| !agents.insert(agent)) {
                    lane.waiting.push_front(job);
                    break;
                }
                bytes += job
                    .encoded
                    .blobs
                    .iter()
                    .map(|blob| blob.len())
                    .sum::<usize>();
                jobs.push(job);
            }
        }
        self.waiting -= jobs.len();
        (keys, jobs)
    }

    /// Frees the lanes of a finished batch.
    fn done(&mut self, keys: Vec<Uuid>) {
        for key in keys {
            match self.lanes.get_mut(&key) {
                Some(lane) if !lane.waiting.is_empty() => {
                    lane.busy = false;
                    self.ready.push_back(key);
                }
                _ => drop(self.lanes.remove(&key)),
            }
        }
    }
}

/// Writes until all senders are gone and all jobs are done.
pub(super) async fn write(host: Arc<PgHost>, mut queue: mpsc::Receiver<PgJob>) {
    let mut lanes = Lanes::default();
    let mut writing: JoinSet<Vec<Uuid>> = JoinSet::new();
    let mut open = true;
    while open || !writing.is_empty() || lanes.waiting > 0 {
        tokio::select! {
            // Receiving comes first, so that everything queued at this moment goes into the same
            // batch.
            biased;
            job = queue.recv(), if open && lanes.waiting < QUEUE => match job {
                Some(job) => {
                    lanes.put(job);
                    continue;
                }
                None => open = false,
            },
            done = writing.join_next(), if !writing.is_empty() => {
                // A batch that panicked has dropped its senders, which fails its callers. Its
                // lanes stay closed: what it wrote is unknown.
                if let Some(Ok(keys)) = done {
                    lanes.done(keys);
                }
            }
            () = std::future::ready(()), if !lanes.ready.is_empty() && writing.len() < WRITERS => {
                let (keys, jobs) = lanes.batch(WRITERS - writing.len());
                let host = Arc::clone(&host);
                writing.spawn(async move {
                    host.write(jobs).await;
                    keys
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::encode::EncodedStep;

    fn job(realm: u128, agent: u128) -> PgJob {
        PgJob {
            agent: Some(Uuid::from_u128(agent).into()),
            realm: Some(Uuid::from_u128(realm).into()),
            encoded: EncodedStep::default(),
            step: None,
            kind: JobKind::Neither,
            answer: tokio::sync::oneshot::channel().0,
        }
    }

    fn agents(jobs: &[PgJob]) -> Vec<u128> {
        jobs.iter()
            .map(|job| job.agent.unwrap().uuid().as_u128())
            .collect()
    }

    #[test]
    fn an_agent_has_one_job_in_a_batch_and_keeps_its_order() {
        let mut lanes = Lanes::default();
        for agent in [1, 2, 1, 3, 1] {
            lanes.put(job(9, agent));
        }
        let (keys, jobs) = lanes.batch(8);
        assert_eq!(agents(&jobs), [1, 2]);
        assert!(
            lanes.batch(8).1.is_empty(),
            "a realm has one batch at a time"
        );
        lanes.done(keys);
        let (keys, jobs) = lanes.batch(8);
        assert_eq!(agents(&jobs), [1, 3]);
        lanes.done(keys);
        let (keys, jobs) = lanes.batch(8);
        assert_eq!((agents(&jobs), lanes.waiting), (vec![1], 0));
        lanes.done(keys);
        assert!(lanes.lanes.is_empty() && lanes.ready.is_empty());
    }

    #[test]
    fn lanes_are_shared_out_among_those_who_write() {
        let mut lanes = Lanes::default();
        for realm in 0..16 {
            lanes.put(job(realm, realm));
        }
        assert_eq!(lanes.batch(8).0.len(), 2);
        assert_eq!(lanes.batch(1).0.len(), 14);
    }

    #[test]
    fn a_job_without_a_realm_goes_where_its_agent_lives() {
        let mut lanes = Lanes::default();
        lanes.put(job(9, 1));
        lanes.put(PgJob {
            realm: None,
            ..job(9, 1)
        });
        lanes.put(PgJob {
            realm: None,
            kind: JobKind::Releases,
            ..job(9, 1)
        });
        assert_eq!(lanes.lanes.len(), 1);
        assert!(lanes.homes.is_empty());
        lanes.put(PgJob {
            realm: None,
            ..job(9, 1)
        });
        assert_eq!(lanes.lanes.len(), 2);
    }
}
