//! Batched claims: by posse's store, and by the same statements alone.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use posse_port::store::{Done, Store};
use posse_protocol::AgentId;
use posse_store::Sqlite;
use posse_testkit::store_contract::realm;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::Failed;
use crate::words::{add_tasks, claim, doing, newborn};

/// Claims with several agents at once, `batches` times each.
pub(crate) async fn posse(database: &Path, agents: u64, batches: u64) -> Result<Value, Failed> {
    let store = Arc::new(Sqlite::open(database)?);
    add_tasks(&*store, None, agents * batches).await?;
    let mut claimers = Vec::new();
    for _ in 0..agents {
        claimers.push(newborn(&*store).await?);
    }
    let start = Instant::now();
    let mut running = JoinSet::new();
    for agent in claimers {
        let store = Arc::clone(&store);
        running.spawn(async move {
            for _ in 0..batches {
                let results = store.commit(doing(agent, claim(None))).await?.results;
                if !matches!(results[..], [Ok(Done::Claimed(_))]) {
                    return Err(Failed::from(format!("{results:?}")));
                }
            }
            Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(json!({"per_s": (agents * batches) as f64 / start.elapsed().as_secs_f64()}))
}

/// Writes the same rows in transactions of the same size.
pub(crate) async fn bare(database: &Path, agents: u64, batches: u64) -> Result<Value, Failed> {
    let store = Sqlite::open(database)?;
    add_tasks(&store, None, agents * batches).await?;
    let mut claimers = Vec::new();
    for _ in 0..agents {
        claimers.push(newborn(&store).await?);
    }
    drop(store);
    let connection = Connection::open(database)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.set_prepared_statement_cache_capacity(64);
    let start = Instant::now();
    for _ in 0..batches {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for agent in &claimers {
            one(&connection, *agent)?;
        }
        connection.prepare_cached("COMMIT")?.execute([])?;
    }
    Ok(json!({"per_s": (agents * batches) as f64 / start.elapsed().as_secs_f64()}))
}

/// The statements of a step that claims.
fn one(connection: &Connection, agent: AgentId) -> Result<(), Failed> {
    let (realm, agent) = (realm().uuid().into_bytes(), agent.uuid().into_bytes());
    let run = |sql| connection.prepare_cached(sql);
    let step = Uuid::now_v7().into_bytes();
    run("UPDATE agent SET used_ms = ?3, step = ?4, result = NULL WHERE realm = ?1 AND id = ?2")?
        .execute(params![realm, agent, 10, step])?;
    let sql =
        "SELECT id FROM task INDEXED BY task_ready WHERE realm = ?1 AND team = '' AND status = 0
                   AND owner IS NULL AND waits = 0 ORDER BY id LIMIT 1";
    let id: i64 = run(sql)?.query_row(params![realm], |row| row.get(0))?;
    let sql = "SELECT id, subject, description, active_form, status, owner, owner_agent, lost_by, created_ms,
                   updated_ms, metadata, version FROM task WHERE realm = ?1 AND team = '' AND id = ?2";
    let task = run(sql)?.query_row(params![realm, id], |row| {
        Ok(json!({"id": row.get::<_, i64>(0)?, "subject": row.get::<_, String>(1)?,
            "description": row.get::<_, String>(2)?, "active_form": row.get::<_, Option<String>>(3)?,
            "status": row.get::<_, i64>(4)?, "owner": row.get::<_, Option<String>>(5)?,
            "lost_by": row.get::<_, Option<String>>(7)?, "created_ms": row.get::<_, i64>(8)?,
            "updated_ms": row.get::<_, i64>(9)?, "metadata": row.get::<_, String>(10)?,
            "version": row.get::<_, i64>(11)?}))
    })?;
    let sql = "SELECT d.task, d.needs, n.status FROM dependency d CROSS JOIN task n
               WHERE d.realm = ?1 AND d.team = '' AND d.task BETWEEN ?2 AND ?2
                   AND n.realm = d.realm AND n.team = d.team AND n.id = d.needs ORDER BY d.task, d.needs";
    run(sql)?.exists(params![realm, id])?;
    let sql = "SELECT needs, task FROM dependency
               WHERE realm = ?1 AND team = '' AND needs BETWEEN ?2 AND ?2 ORDER BY needs, task";
    run(sql)?.exists(params![realm, id])?;
    let sql = "SELECT name FROM member WHERE realm = ?1 AND agent = ?2 AND team = '' ORDER BY nth LIMIT 1";
    run(sql)?.exists(params![realm, agent])?;
    let sql = "SELECT path FROM agent WHERE realm = ?1 AND id = ?2";
    let path: Option<String> = run(sql)?
        .query_row(params![realm, agent], |row| row.get(0))
        .optional()?;
    let sql =
        "UPDATE task SET status = 1, owner = ?3, owner_agent = ?4, lost_by = NULL, version = version + 1,
                   updated_ms = ?5 WHERE realm = ?1 AND team = '' AND id = ?2";
    run(sql)?.execute(params![realm, id, path, agent, 10])?;
    let sql = "UPDATE agent SET result = ?3, state = state WHERE realm = ?1 AND id = ?2";
    run(sql)?.execute(params![
        realm,
        agent,
        json!({"results": [{"Ok": {"Claimed": task}}]}).to_string()
    ])?;
    Ok(())
}
