//! The listener for feeds that readers of this process wait for. It has a connection of its own,
//! while somebody waits and for a moment after that: who follows a feed waits again and again.
//!
//! Like the listener of a host it takes notifications for hints: what is lost is found by the next
//! query.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use posse_protocol::RealmId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_postgres::Client;
use uuid::Uuid;

use super::column;
use super::error::PgFailure;
use super::host::{PgHost, feed_channel, pause};
use super::listener::carry;

/// Number of notifications that may wait to be read.
const UNREAD: usize = 1024;
/// How often writers are reminded that somebody waits; they forget it after a minute.
const REMINDER: Duration = Duration::from_secs(20);

/// How long a realm is listened to after somebody has waited for it.
const LINGER: Duration = Duration::from_secs(20);

/// Listens until it is dropped.
pub(super) async fn listen(host: Arc<PgHost>) {
    loop {
        host.feed_wanted.notified().await;
        while !host.feed.wanted().is_empty() {
            // Any error is answered by connecting again.
            let _ = converse(&host).await;
            pause(host.link.timing.sweep.min(Duration::from_millis(200))).await;
        }
    }
}

/// Serves one connection until it breaks, or until nobody has waited for some time.
async fn converse(host: &PgHost) -> Result<(), PgFailure> {
    let (client, line) = host.link.line().await?;
    let (said, mut hear) = mpsc::channel(UNREAD);
    let mut carried = JoinSet::new();
    carried.spawn(carry(line, said));
    let mut channels: BTreeMap<String, RealmId> = BTreeMap::new();
    // When somebody was last seen waiting for each realm.
    let mut realms: BTreeMap<RealmId, Instant> = BTreeMap::new();
    let mut reminded = Instant::now();
    let mut tick = interval(host.link.timing.sweep);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = Instant::now();
        let wanted = host.feed.wanted().into_iter();
        realms.extend(wanted.map(|(realm, _)| (realm, now)));
        realms.retain(|_, wanted| now.duration_since(*wanted) < LINGER);
        if realms.is_empty() {
            return Ok(());
        }
        if realms.keys().ne(channels.values()) || reminded.elapsed() > REMINDER {
            channels = listen_to(&client, realms.keys().copied().collect()).await?;
            remind(host, &client, &channels).await?;
            reminded = Instant::now();
        }
        tokio::select! {
            biased;
            _ = carried.join_next() => return Ok(()),
            _ = tick.tick() => look(host, &client, &channels).await?,
            () = host.feed_wanted.notified() => {}
            notice = hear.recv() => {
                if let Some(notice) = notice
                    && let Some(realm) = channels.get(notice.channel())
                    && let Ok(head) = notice.payload().parse()
                    && !host.link.timing.deaf
                {
                    host.feed.publish(*realm, head);
                }
            }
        }
    }
}

/// Listens to these realms, and to no others.
async fn listen_to(
    client: &Client,
    realms: Vec<RealmId>,
) -> Result<BTreeMap<String, RealmId>, PgFailure> {
    let channels: BTreeMap<String, RealmId> = realms
        .into_iter()
        .map(|realm| (feed_channel(realm), realm))
        .collect();
    let listen: String = channels
        .keys()
        .map(|channel| format!("LISTEN {channel};"))
        .collect();
    client
        .batch_execute(&format!("UNLISTEN *;{listen}"))
        .await?;
    Ok(channels)
}

/// Has writers tell of these realms, and publishes what they have written so far.
async fn remind(
    host: &PgHost,
    client: &Client,
    channels: &BTreeMap<String, RealmId>,
) -> Result<(), PgFailure> {
    query(host, client, "SELECT * FROM watch_feeds($1)", channels).await
}

/// Publishes the last numbers of these realms.
async fn look(
    host: &PgHost,
    client: &Client,
    channels: &BTreeMap<String, RealmId>,
) -> Result<(), PgFailure> {
    let sql = "SELECT id, head FROM realm WHERE id = ANY ($1)";
    query(host, client, sql, channels).await
}

async fn query(
    host: &PgHost,
    client: &Client,
    sql: &str,
    channels: &BTreeMap<String, RealmId>,
) -> Result<(), PgFailure> {
    let realms: Vec<Uuid> = channels.values().map(|realm| realm.uuid()).collect();
    for row in client.query(sql, &[&realms]).await? {
        let realm: Uuid = column::get(&row, 0)?;
        host.feed.publish(realm.into(), column::bits(&row, 1)?);
    }
    Ok(())
}
