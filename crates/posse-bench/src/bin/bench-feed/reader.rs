//! Readers that follow a feed and report when they have each row: posse's, and bare loops around a
//! `SELECT` with the same wake.

use std::fmt;
use std::fs::OpenOptions;
use std::future::poll_fn;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use posse_port::store::Store;
use posse_testkit::place::Place;
use posse_testkit::store_contract::realm;
use rusqlite::{Connection, params};
use rustix::fs::inotify;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, NoTls};
use uuid::Uuid;

use crate::{Failed, now, say};

/// Rows of one page.
const PAGE: usize = 500;

/// The reader that is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Posse,
    Bare,
}

impl FromStr for Side {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "posse" => Ok(Self::Posse),
            "bare" => Ok(Self::Bare),
            _ => Err(format!("`{word}` is no side")),
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Posse => "posse",
            Self::Bare => "bare",
        })
    }
}

/// A report of a reader, one line between processes.
#[derive(Clone, Copy)]
pub(crate) enum Report {
    /// It follows: what is committed from now on is measured.
    Ready,
    /// It has the row of the entry `seq`.
    Row { seq: u64, at: Duration },
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Row { seq, at } => write!(f, "{seq} {}", at.as_nanos()),
        }
    }
}

impl FromStr for Report {
    type Err = Failed;

    fn from_str(line: &str) -> Result<Self, Failed> {
        let Some((seq, at)) = line.split_once(' ') else {
            return Ok(Self::Ready);
        };
        Ok(Self::Row {
            seq: seq.parse()?,
            at: Duration::from_nanos(at.parse()?),
        })
    }
}

/// Takes the reports of a reader.
pub(crate) type Listener<'a> = &'a mut (dyn FnMut(Report) -> Result<(), Failed> + Send);

/// Reads in a process of its own, and prints its reports.
pub(crate) async fn run(place: &Place, side: Side, rows: usize) -> Result<(), Failed> {
    let mut print = |report: Report| -> Result<(), Failed> { Ok(say(&report.to_string())?) };
    match (side, place) {
        (Side::Posse, _) => through_posse(&*place.open()?, rows, &mut print).await,
        (Side::Bare, Place::File(path)) => {
            let bell = Bell::watch(path)?;
            bare_sqlite(path, rows, || bell.wait(), &mut print)
        }
        (Side::Bare, Place::Server(url)) => bare_postgres(url, rows, &mut print).await,
    }
}

/// Reads `rows` rows through posse.
pub(crate) async fn through_posse(
    store: &dyn Store,
    rows: usize,
    listener: Listener<'_>,
) -> Result<(), Failed> {
    let mut after = store.feed(realm(), 0, 0).await?.head;
    listener(Report::Ready)?;
    let last = after + rows as u64;
    while after < last {
        let page = store.follow_feed(realm(), after, PAGE).await?;
        let at = now();
        for row in page.rows {
            after = row.number;
            listener(Report::Row { seq: row.seq, at })?;
        }
    }
    Ok(())
}

/// Reads `rows` rows with a connection of its own, each time that `wait` returns.
pub(crate) fn bare_sqlite(
    path: &Path,
    rows: usize,
    mut wait: impl FnMut() -> Result<(), Failed>,
    listener: Listener<'_>,
) -> Result<(), Failed> {
    let connection = Connection::open(path)?;
    let realm = realm().uuid();
    let head = "SELECT coalesce(max(number), 0) FROM feed WHERE realm = ?1";
    let mut after: i64 = connection.query_row(head, [realm.as_bytes()], |row| row.get(0))?;
    let mut statement = connection.prepare(
        "SELECT number, agent, at_ms, what, seq, count FROM feed
         WHERE realm = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
    )?;
    listener(Report::Ready)?;
    let last = after + rows as i64;
    while after < last {
        wait()?;
        let found = statement
            .query_map(params![realm.as_bytes(), after, PAGE as i64], |row| {
                let _: (Option<Vec<u8>>, i64, u32, i64) =
                    (row.get(1)?, row.get(2)?, row.get(3)?, row.get(5)?);
                Ok((row.get(0)?, row.get::<_, i64>(4)?))
            })?
            .collect::<Result<Vec<_>, _>>()?;
        let at = now();
        for (number, seq) in found {
            after = number;
            let seq = seq.cast_unsigned();
            listener(Report::Row { seq, at })?;
        }
    }
    Ok(())
}

/// The file that writers touch after a commit.
struct Bell(std::os::fd::OwnedFd);

impl Bell {
    fn watch(database: &Path) -> Result<Self, Failed> {
        let path = database.with_file_name("hosts").join("feed.bell");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        drop(options.open(&path)?);
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC)?;
        inotify::add_watch(&watch, &path, inotify::WatchFlags::MODIFY)?;
        Ok(Self(watch))
    }

    fn wait(&self) -> Result<(), Failed> {
        rustix::io::read(&self.0, &mut [0; 4096])?;
        Ok(())
    }
}

/// Reads `rows` rows with a connection of its own, after each notification.
async fn bare_postgres(url: &str, rows: usize, listener: Listener<'_>) -> Result<(), Failed> {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await?;
    let (told, mut notices) = mpsc::channel(1024);
    let mut carried = JoinSet::new();
    carried.spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message
                && told.send(()).await.is_err()
            {
                return;
            }
        }
    });
    let realm: Uuid = realm().uuid();
    // Writers notify only of realms that somebody watches.
    let listen = format!(
        "SET search_path = posse; SET jit = off; LISTEN posse_feed_{}; SELECT watch_feeds(ARRAY['{realm}'::uuid])",
        realm.simple()
    );
    client.batch_execute(&listen).await?;
    let head = client
        .query_one("SELECT head FROM realm WHERE id = $1", &[&realm])
        .await?;
    let statement = client
        .prepare(
            "SELECT number, agent, at_ms, what, seq, count FROM feed
             WHERE realm = $1 AND number > $2 ORDER BY number LIMIT $3",
        )
        .await?;
    let mut after: i64 = head.try_get(0)?;
    listener(Report::Ready)?;
    let last = after + rows as i64;
    while after < last {
        notices.recv().await.ok_or("the connection is closed")?;
        let found = client
            .query(&statement, &[&realm, &after, &(PAGE as i64)])
            .await?;
        let at = now();
        for row in found {
            after = row.try_get(0)?;
            let seq = row.try_get::<_, i64>(4)?.cast_unsigned();
            listener(Report::Row { seq, at })?;
        }
    }
    Ok(())
}
