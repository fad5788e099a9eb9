//! Measures throughput and the cost to the server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::Failed;

/// A measured time span on a server.
pub(crate) struct Meter<'a> {
    client: &'a Client,
    postmaster: u32,
    begun: Instant,
    cpu: Duration,
    wal: f64,
}

impl<'a> Meter<'a> {
    pub(crate) async fn begin(client: &'a Client) -> Result<Self, Failed> {
        let backend: i32 = client
            .query_one("SELECT pg_backend_pid()", &[])
            .await?
            .try_get(0)?;
        let postmaster = Stat::of(backend.unsigned_abs())?.parent;
        let (cpu, wal) = (cpu(postmaster)?, wal(client).await?);
        Ok(Self {
            client,
            postmaster,
            begun: Instant::now(),
            cpu,
            wal,
        })
    }

    /// Ends the measurement after `count` operations.
    pub(crate) async fn end(self, count: u64) -> Result<Value, Failed> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let (cpu, wal) = (self.server_cpu()?, wal(self.client).await? - self.wal);
        let count = count as f64;
        Ok(json!({
            "per_s": (count / seconds * 10.0).round() / 10.0,
            "server_us_each": (cpu.as_secs_f64() * 1e6 / count).round(),
            "wal_bytes_each": (wal / count).round(),
        }))
    }

    /// Returns the processor time of the server since the start.
    pub(crate) fn server_cpu(&self) -> Result<Duration, Failed> {
        Ok(cpu(self.postmaster)?.saturating_sub(self.cpu))
    }
}

async fn wal(client: &Client) -> Result<f64, Failed> {
    let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8";
    Ok(client.query_one(sql, &[]).await?.try_get(0)?)
}

/// Returns the processor time of a server's processes, including those that have ended.
fn cpu(postmaster: u32) -> Result<Duration, Failed> {
    let mut cpu = Stat::of(postmaster)?.ended;
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // It may just have ended.
        if pid == postmaster || Stat::of(pid).is_ok_and(|stat| stat.parent == postmaster) {
            cpu += ran(pid).unwrap_or_default();
        }
    }
    Ok(cpu)
}

/// Returns the processor time of one single-threaded process.
fn ran(pid: u32) -> Result<Duration, Failed> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    Ok(Duration::from_nanos(
        text.split(' ')
            .next()
            .ok_or("an empty schedstat")?
            .parse()?,
    ))
}

/// Fields of /proc/PID/stat.
struct Stat {
    parent: u32,
    /// Processor time of its ended children.
    ended: Duration,
}

impl Stat {
    fn of(pid: u32) -> Result<Self, Failed> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name is in brackets, and may itself contain brackets.
        let rest = text.rsplit_once(") ").ok_or("a stat without a name")?.1;
        let fields: Vec<&str> = rest.split(' ').collect();
        let field = |at: usize| -> Result<u64, Failed> {
            Ok(fields.get(at).ok_or("a short stat")?.parse()?)
        };
        let ticks = field(13)? + field(14)?;
        Ok(Self {
            parent: u32::try_from(field(1)?)?,
            ended: Duration::from_millis(ticks * 10),
        })
    }
}
