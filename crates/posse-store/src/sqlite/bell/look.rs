//! The queries for changes, each of which uses an index.

use std::collections::BTreeSet;

use posse_port::store::Wake;
use posse_protocol::{ListId, Name};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::super::column;
use super::super::feed;
use super::super::host::HostLiveness;
use super::super::host_rows;
use super::super::job::{SqliteJob, WriteRequest};
use super::BellListener;

impl BellListener {
    /// Reports changes to this host, and returns false if it has lost its row. A sweep also
    /// examines hosts whose death should have been noticed.
    pub(super) fn look(&mut self, sweep: bool) -> rusqlite::Result<bool> {
        let hosts = host_rows::hosts(&self.connection)?;
        if !hosts.contains(&self.me) {
            self.shared.waker.wake([Wake::Fenced]);
            return Ok(false);
        }
        let mut changes: Vec<Wake> = self.mail()?;
        changes.extend(self.lists()?);
        changes.extend(
            self.others
                .difference(&hosts)
                .map(|gone| Wake::Died((*gone).into())),
        );
        self.shared.waker.wake(changes);
        if sweep && feed::has_old(&self.connection, self.timing.feed_age)? {
            self.ask_for(WriteRequest::TrimFeed);
        }
        self.meet(hosts, sweep);
        Ok(true)
    }

    /// Returns agents of this host for which mail or an answer waits.
    fn mail(&self) -> rusqlite::Result<Vec<Wake>> {
        let sql = "SELECT agent FROM inbox WHERE host = ?1 AND waiting > 0
                   UNION SELECT question.agent FROM question INDEXED BY question_answered
                       CROSS JOIN agent ON agent.realm = question.realm AND agent.id = question.agent
                       WHERE question.state = 1 AND agent.host = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let waiting = statement.query_map([self.me.as_bytes()], |row| {
            Ok(Wake::Mail(column::id(row, 0)?.into()))
        })?;
        waiting.collect()
    }

    /// Returns lists that changed since the last query, of realms in which this host holds an
    /// agent.
    fn lists(&mut self) -> rusqlite::Result<Vec<Wake>> {
        let sql = "SELECT changed, realm, team, EXISTS (SELECT 1 FROM agent
                       WHERE agent.host = ?2 AND agent.realm = list.realm)
                   FROM list WHERE changed > ?1 ORDER BY changed";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query((self.cursor, self.me.as_bytes()))?;
        let (mut cursor, mut lists) = (self.cursor, Vec::new());
        while let Some(row) = rows.next()? {
            cursor = row.get(0)?;
            if row.get(3)? {
                // Only names were ever written, and the empty string for the session's own list.
                let team: Option<Name> = row.get_ref(2)?.as_str()?.parse().ok();
                lists.push(Wake::Tasks(ListId {
                    realm: column::id(row, 1)?.into(),
                    team,
                }));
            }
        }
        self.cursor = cursor;
        Ok(lists)
    }

    /// Starts watching new hosts, and has dead ones released.
    fn meet(&mut self, hosts: BTreeSet<Uuid>, sweep: bool) {
        self.others = hosts;
        self.others.remove(&self.me);
        self.watched.retain(|host, _| self.others.contains(host));
        let doubtful = self
            .others
            .iter()
            .filter(|host| sweep || !self.watched.contains_key(host));
        for host in doubtful.copied().collect::<Vec<_>>() {
            let life = self.hosts.look(host).ok();
            let dead = match life {
                Some(HostLiveness::Alive { pid } | HostLiveness::Stalled { pid }) => {
                    self.watch(host, pid)
                }
                Some(HostLiveness::Dead) => true,
                None => false,
            };
            if dead {
                self.free(host);
            }
        }
    }

    /// Watches the process of a host. Returns true if it turned out to be dead meanwhile. Hosts
    /// of this process need no watch: they leave in order.
    fn watch(&mut self, host: Uuid, pid: u32) -> bool {
        if self.timing.deaf || pid == std::process::id() || self.watched.contains_key(&host) {
            return false;
        }
        if let Some(process) = process(pid) {
            self.watched.insert(host, process);
        }
        // The pid may belong to another process by now, but not as long as the host still has its
        // lock.
        matches!(self.hosts.look(host), Ok(HostLiveness::Dead))
    }

    /// Has the writer release what a dead host held. If its queue is full, the next sweep tries
    /// again.
    fn free(&self, host: Uuid) {
        self.ask_for(WriteRequest::Free(host));
    }

    /// Asks the writer for something that nobody waits for.
    fn ask_for(&self, work: WriteRequest) {
        if let Some(jobs) = self.jobs.upgrade() {
            let (answer, _) = oneshot::channel();
            let _ = jobs.try_send(SqliteJob { work, answer });
        }
    }
}

/// Returns a handle that becomes readable when a process ends.
fn process(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(pid.cast_signed())?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}
