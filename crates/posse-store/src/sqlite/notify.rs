//! Notifies hosts of a durable batch: this one and those in memory directly, those of other
//! processes by their bells, so that they query.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use posse_port::store::Wake;
use rusqlite::Connection;
use uuid::Uuid;

use super::changes::Changes;
use super::column;
use super::host::{Hosts, NO_LINK};
use super::host_rows;
use crate::wake::Waker;

/// Number of open bells. They include those of hosts that are gone, until the limit is reached.
const BELLS: usize = 64;

/// Notifies other hosts.
pub(super) struct Notifier {
    hosts: Hosts,
    bells: BTreeMap<Uuid, File>,
    /// The bell of all who read feeds, if there is one.
    readers: Option<File>,
}

impl Notifier {
    pub(super) fn new(hosts: Hosts) -> Self {
        Self {
            hosts,
            bells: BTreeMap::new(),
            readers: None,
        }
    }

    /// Notifies everyone concerned. Failures are ignored, since the sweep finds what was missed.
    pub(super) fn notify(
        &mut self,
        connection: &Connection,
        me: Option<(Uuid, &Waker)>,
        changes: Changes,
    ) {
        if changes.is_empty() {
            return;
        }
        let freed = changes.freed.clone();
        for (host, wakes) in concerned(connection, changes) {
            match me {
                Some((me, waker)) if me == host => waker.wake(wakes),
                _ => self.ring(host, wakes),
            }
        }
        for host in freed {
            self.bells.remove(&host);
        }
    }

    /// Makes the readers of feeds in other processes query. They have made their bell; where there
    /// is none, nobody reads.
    pub(super) fn ring_for_readers(&mut self) {
        if self.readers.is_none() {
            let bell = self.hosts.readers_bell();
            self.readers = bell.and_then(|path| open_bell(&path).ok());
        }
        if let Some(bell) = &self.readers {
            let _ = bell.write_at(b"\n", 0);
        }
    }

    /// Makes a host query. One in memory is told what for.
    pub(super) fn ring(&mut self, host: Uuid, wakes: BTreeSet<Wake>) {
        if let Hosts::Memory(hosts) = &self.hosts {
            return hosts.wake(host, wakes);
        }
        if !self.bells.contains_key(&host) {
            let bell = self.hosts.bell(host).map(|path| open_bell(&path));
            // A host without a bell is gone.
            let Some(Ok(bell)) = bell else { return };
            if self.bells.len() >= BELLS {
                self.bells.clear();
            }
            self.bells.insert(host, bell);
        }
        if let Some(bell) = self.bells.get(&host) {
            let _ = bell.write_at(b"\n", 0);
        }
    }
}

/// Returns which hosts should know what.
fn concerned(connection: &Connection, changes: Changes) -> BTreeMap<Uuid, BTreeSet<Wake>> {
    let mut concerned: BTreeMap<Uuid, BTreeSet<Wake>> = BTreeMap::new();
    for (host, agents) in changes.mail {
        concerned
            .entry(host)
            .or_default()
            .extend(agents.into_iter().map(Wake::Mail));
    }
    for list in changes.lists {
        for host in hosts_in(connection, list.realm.uuid()).unwrap_or_default() {
            concerned
                .entry(host)
                .or_default()
                .insert(Wake::Tasks(list.clone()));
        }
    }
    if !changes.freed.is_empty() {
        for host in host_rows::hosts(connection).unwrap_or_default() {
            let died = changes
                .freed
                .iter()
                .map(|freed| Wake::Died((*freed).into()));
            concerned.entry(host).or_default().extend(died);
        }
        // A host that was only stalled learns it when it continues.
        for host in changes.freed {
            concerned.entry(host).or_default().insert(Wake::Fenced);
        }
    }
    concerned
}

fn open_bell(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .custom_flags(NO_LINK)
        .open(path)
}

/// Returns hosts that hold an agent of a realm. All of them are told of a list: the runtime knows
/// which agents are members, and there are never many hosts.
fn hosts_in(connection: &Connection, realm: Uuid) -> rusqlite::Result<Vec<Uuid>> {
    let sql = "SELECT id FROM host
               WHERE EXISTS (SELECT 1 FROM agent WHERE agent.host = host.id AND agent.realm = ?1)";
    let mut statement = connection.prepare_cached(sql)?;
    statement
        .query_map([realm.as_bytes()], |row| column::id(row, 0))?
        .collect()
}
