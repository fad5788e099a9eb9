//! Idle agents: the connections and the processor time they need.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use posse_store::Postgres;
use serde_json::{Value, json};
use tokio::time::{interval_at, timeout};

use crate::Failed;
use crate::meter::Meter;
use crate::place::Place;
use crate::words::{Realms, raised};

/// Interval for counting connections.
const OFTEN: Duration = Duration::from_secs(5);

pub(crate) async fn run(place: &Place, agents: usize, time: Duration) -> Result<Value, Failed> {
    let store = Arc::new(Postgres::open(&place.url)?);
    let begun = Instant::now();
    let held = raised(&store, agents, Realms::Each).await?.len();
    let births = begun.elapsed();
    let (meter, own) = (Meter::begin(place.server()).await?, cpu()?);
    let mut most = connections(place).await?;
    let mut tick = interval_at(tokio::time::Instant::now() + OFTEN, OFTEN);
    let counting = async {
        loop {
            tick.tick().await;
            most = most.max(connections(place).await?);
        }
    };
    let ended: Result<Result<(), Failed>, _> = timeout(time, counting).await;
    if let Ok(failed) = ended {
        failed?;
    }
    let last = connections(place).await?;
    let minutes = time.as_secs_f64() / 60.0;
    let per_minute = |spent: Duration| (spent.as_secs_f64() * 1e3 / minutes).round();
    Ok(json!({
        "agents": held,
        "births_per_s": (held as f64 / births.as_secs_f64()).round(),
        "seconds": time.as_secs_f64(),
        "connections": last,
        "most": most.max(last),
        "cpu_ms_per_min": per_minute(cpu()?.saturating_sub(own)),
        "server_cpu_ms_per_min": per_minute(meter.server_cpu()?),
    }))
}

/// Returns the number of connections to the measured database.
async fn connections(place: &Place) -> Result<i64, Failed> {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'";
    Ok(place
        .server()
        .query_one(sql, &[&place.name()])
        .await?
        .try_get(0)?)
}

/// Returns the processor time of this process so far.
fn cpu() -> Result<Duration, Failed> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let time = |time: TimeVal| {
        Duration::from_secs(time.tv_sec().unsigned_abs())
            + Duration::from_micros(time.tv_usec().unsigned_abs())
    };
    Ok(time(usage.user_time()) + time(usage.system_time()))
}
