//! Notifications between hosts, over one dedicated connection per host.
//!
//! Over it the host renews its lease and queries for changes every second. Between queries,
//! notifications tell it what changed, and it notifies others. They are sent outside of the
//! writers' transactions, because a notification inside one would serialize all commits of the
//! server. They are only hints: what is lost is found by the next query.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use posse_port::store::Wake;
use posse_protocol::{AgentId, ListId, RealmId};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::{AsyncMessage, Client, Notification};
use uuid::Uuid;

use super::connection::DriverConnection;
use super::error::{PgCause, PgFailure, Remedy};
use super::host::{PgHost, channel, heard, pause};
use super::job;
use crate::host_status::HostStatus;

/// Number of notifications that may wait to be read; an overflow is made up for by a query.
const UNREAD: usize = 1024;
/// Time after which an unused pooled connection is closed.
const SPARE: Duration = Duration::from_secs(60);
/// Number of queries between two clean-ups.
const TIDY: u32 = 60;

/// The result of a query for changes.
#[derive(Deserialize)]
struct LookResult {
    /// This host was taken for dead.
    #[serde(default)]
    fenced: bool,
    /// Where the next query begins.
    #[serde(default)]
    cursor: i64,
    /// Agents of this host with waiting mail.
    #[serde(default)]
    mail: Vec<AgentId>,
    /// Lists with changes since the cursor, each with its last change.
    #[serde(default)]
    lists: Vec<(RealmId, String, i64)>,
    /// Hosts whose lease has expired.
    #[serde(default)]
    gone: Vec<Uuid>,
}

/// What this host has seen so far.
#[derive(Default)]
struct SeenChanges {
    /// Where the next query begins.
    cursor: i64,
    /// Changes from there on that were already reported. Queries overlap, since a transaction
    /// that was open at the last one may commit later.
    lists: BTreeMap<ListId, i64>,
    /// Hosts whose end was already reported.
    gone: BTreeSet<Uuid>,
    looks: u32,
}

/// Listens and notifies until it is dropped. It starts with the first thing to do: a process that
/// only reads needs no such connection.
pub(super) async fn listen(host: Arc<PgHost>) {
    host.stir.notified().await;
    let mut seen = SeenChanges::default();
    loop {
        // The server may be away, or another one now: any error is answered by connecting again.
        let _ = converse(&host, &mut seen).await;
        pause(host.link.timing.sweep.min(Duration::from_millis(200))).await;
    }
}

/// Sends queued notifications to other hosts.
pub(super) async fn tell(host: &PgHost, client: &Client) -> Result<(), PgFailure> {
    let (channels, notices): (Vec<_>, Vec<_>) = host.notices().into_iter().unzip();
    if !channels.is_empty() {
        let sql = "SELECT pg_notify(channel, notice) FROM unnest($1::text[], $2::text[]) AS told(channel, notice)";
        client.query(sql, &[&channels, &notices]).await?;
    }
    Ok(())
}

/// Serves one connection until it breaks.
async fn converse(host: &PgHost, seen: &mut SeenChanges) -> Result<(), PgFailure> {
    let (client, line) = host.link.line().await?;
    let (said, mut hear) = mpsc::channel(UNREAD);
    let mut carried = JoinSet::new();
    carried.spawn(carry(line, said));
    // Half the lease, so that a host that is cut off reconnects before its lease expires.
    let most = host.link.timing.lease.max(Duration::from_secs(1)) / 2;
    let in_time = async |work: &mut (dyn Future<Output = Result<(), PgFailure>> + Send + Unpin)| {
        let late = |_| {
            PgFailure::Broken(PgCause::new(
                "the server does not answer",
                Remedy::Reconnect,
            ))
        };
        timeout(most, work).await.map_err(late)?
    };
    // Without waiting for the disk: what is lost in a crash is only the lease, and the next query
    // renews it.
    let listen = format!("SET synchronous_commit = off; LISTEN {}", channel(host.id));
    in_time(&mut Box::pin(async {
        Ok(client.batch_execute(&listen).await?)
    }))
    .await?;
    let mut tick = interval(host.link.timing.sweep);
    // After a stall one query is enough; the missed ones would find nothing new.
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // A broken connection first: the other branches would only fail on it, one timeout
            // after the other.
            biased;
            _ = carried.join_next() => return Ok(()),
            // Then the lease: however much there is to tell and to hear, it is renewed in time.
            _ = tick.tick() => {
                in_time(&mut Box::pin(tell(host, &client))).await?;
                in_time(&mut Box::pin(look(host, &client, seen))).await?;
            }
            () = host.stir.notified() => in_time(&mut Box::pin(tell(host, &client))).await?,
            notice = hear.recv() => match notice.and_then(|notice| heard(notice.payload())) {
                // Anyone can send a notification, so that a claim that this host is lost is
                // verified by a query.
                Some(wakes) if !wakes.contains(&Wake::Fenced) => {
                    if !host.link.timing.deaf {
                        host.waker.wake(wakes);
                    }
                }
                _ => in_time(&mut Box::pin(look(host, &client, seen))).await?,
            },
        }
    }
}

/// Drives the connection and forwards its notifications. If the queue is full a notification is
/// dropped; the next query finds what it was about.
pub(super) async fn carry(mut line: DriverConnection, said: mpsc::Sender<Notification>) {
    while let Some(Ok(message)) = poll_fn(|context| line.poll_message(context)).await {
        if let AsyncMessage::Notification(notification) = message {
            let _ = said.try_send(notification);
        }
    }
}

/// Renews the lease and queries for changes.
async fn look(host: &PgHost, client: &Client, seen: &mut SeenChanges) -> Result<(), PgFailure> {
    if host.standing() != HostStatus::Settled {
        return Ok(());
    }
    let row = client
        .query_one("SELECT look($1, $2)::text", &[&host.id, &seen.cursor])
        .await?;
    let found: LookResult = serde_json::from_str(row.try_get(0)?).map_err(PgFailure::senseless)?;
    if found.fenced {
        host.lose();
        return Ok(());
    }
    let mut wakes: Vec<Wake> = found.mail.into_iter().map(Wake::Mail).collect();
    let lists: BTreeMap<ListId, i64> = found
        .lists
        .into_iter()
        .map(|(realm, team, changed)| (job::list(realm, &team), changed))
        .collect();
    wakes.extend(
        lists
            .iter()
            .filter(|(list, changed)| seen.lists.get(list) != Some(changed))
            .map(|(list, _)| Wake::Tasks(list.clone())),
    );
    let gone: BTreeSet<Uuid> = found.gone.into_iter().collect();
    wakes.extend(
        gone.difference(&seen.gone)
            .map(|host| Wake::Died((*host).into())),
    );
    (seen.cursor, seen.lists, seen.gone) = (found.cursor, lists, gone);
    host.waker.wake(wakes);
    seen.looks += 1;
    if seen.looks.is_multiple_of(TIDY) {
        host.link.let_go(SPARE);
        let age = format!("{} seconds", host.link.timing.feed_age.as_secs());
        let sql = "SELECT tidy_up($1::text::interval)";
        client.query(sql, &[&age]).await?;
    }
    Ok(())
}
