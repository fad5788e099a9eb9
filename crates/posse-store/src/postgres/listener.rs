//! Hearing and being heard: one connection of its own for each host.
//!
//! By it the host renews its lease and looks what is new, every second; between looks it is told by notifications what
//! to look at, and tells others. These go outside of the writers' transactions, since a notification inside one would
//! hold up all commits of the server; and they are only hints: what is lost is found by the next look.

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
use tokio_postgres::{AsyncMessage, Client};
use uuid::Uuid;

use super::connection::DriverConnection;
use super::error::{PgCause, PgFailure, Remedy};
use super::host::{PgHost, channel, heard, pause};
use super::job;
use crate::host_status::HostStatus;

/// Notifications that may wait to be read; what comes beyond them is looked for.
const UNREAD: usize = 1024;
/// How long a connection is kept that nobody needs.
const SPARE: Duration = Duration::from_secs(60);
/// How many looks there are from one tidying to the next.
const TIDY: u32 = 60;

/// What a look finds.
#[derive(Deserialize)]
struct LookResult {
    #[serde(default)]
    fenced: bool,
    #[serde(default)]
    cursor: i64,
    #[serde(default)]
    mail: Vec<AgentId>,
    #[serde(default)]
    lists: Vec<(RealmId, String, i64)>,
    #[serde(default)]
    gone: Vec<Uuid>,
}

/// What this host has seen so far.
#[derive(Default)]
struct SeenChanges {
    /// Where the next look begins.
    cursor: i64,
    /// Changes from there on that were told already.
    lists: BTreeMap<ListId, i64>,
    /// Hosts whose end was told already.
    gone: BTreeSet<Uuid>,
    looks: u32,
}

/// Listens and tells until it is dropped. Whoever only looks needs it not: it begins with the first thing to do.
pub(super) async fn listen(host: Arc<PgHost>) {
    host.stir.notified().await;
    let mut seen = SeenChanges::default();
    loop {
        // Whatever broke it: a server that is away, or another one now.
        let _ = converse(&host, &mut seen).await;
        pause(host.link.timing.sweep.min(Duration::from_millis(200))).await;
    }
}

/// Tells others what they should know.
pub(super) async fn tell(host: &PgHost, client: &Client) -> Result<(), PgFailure> {
    let (channels, notices): (Vec<_>, Vec<_>) = host.notices().into_iter().unzip();
    if !channels.is_empty() {
        let sql = "SELECT pg_notify(channel, notice) FROM unnest($1::text[], $2::text[]) AS told(channel, notice)";
        client.query(sql, &[&channels, &notices]).await?;
    }
    Ok(())
}

async fn converse(host: &PgHost, seen: &mut SeenChanges) -> Result<(), PgFailure> {
    let (client, line) = host.link.line().await?;
    let (said, mut hear) = mpsc::channel(UNREAD);
    let mut carried = JoinSet::new();
    carried.spawn(carry(line, said));
    // Who is cut off finds out before its lease has run out.
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
    // What is written here is lost without harm: the next look renews the lease again.
    let listen = format!("SET synchronous_commit = off; LISTEN {}", channel(host.id));
    in_time(&mut Box::pin(async {
        Ok(client.batch_execute(&listen).await?)
    }))
    .await?;
    let mut tick = interval(host.link.timing.sweep);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = carried.join_next() => return Ok(()),
            () = host.stir.notified() => in_time(&mut Box::pin(tell(host, &client))).await?,
            notice = hear.recv() => match notice.and_then(|notice| heard(&notice)) {
                // That this host is lost is believed only if it is seen: anybody can say so.
                Some(wakes) if !wakes.contains(&Wake::Fenced) => {
                    if !host.link.timing.deaf {
                        host.waker.wake(wakes);
                    }
                }
                _ => in_time(&mut Box::pin(look(host, &client, seen))).await?,
            },
            _ = tick.tick() => {
                in_time(&mut Box::pin(tell(host, &client))).await?;
                in_time(&mut Box::pin(look(host, &client, seen))).await?;
            }
        }
    }
}

/// Keeps a line going, and passes on what is said on it. What finds no place is an empty notice, by which all is
/// looked for.
async fn carry(mut line: DriverConnection, said: mpsc::Sender<String>) {
    while let Some(Ok(message)) = poll_fn(|context| line.poll_message(context)).await {
        if let AsyncMessage::Notification(notification) = message {
            let _ = said.try_send(notification.payload().to_owned());
        }
    }
}

/// Renews the lease, and finds what is new.
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
        client.query("SELECT tidy_up()", &[]).await?;
    }
    Ok(())
}
