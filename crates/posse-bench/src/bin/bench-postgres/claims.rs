//! Claims of the next task of a list until none is left, through posse and by plain statements.

use std::sync::Arc;

use posse_port::store::{Done, Joining, NewTask, Op, Operation, Order, Refusal, Step, Store};
use posse_protocol::{Name, RealmId, Takes};
use posse_store::Postgres;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use crate::line::{Asking, Line, pipelined};
use crate::meter::Meter;
use crate::place::Place;
use crate::words::{Agent, MODEL, Realms, at, raised};
use crate::{Failed, Side};

/// Maximum number of connections; claimers share them.
const LINES: usize = 16;
/// The team whose list is used.
const TEAM: &str = "crew";

pub(crate) async fn run(
    place: &Place,
    side: Side,
    agents: usize,
    tasks: u64,
    realms: Realms,
) -> Result<Value, Failed> {
    // It stays open on both sides, so that the rows are the same.
    let store = Arc::new(Postgres::open(&place.url)?);
    let agents = raised(&store, agents, realms).await?;
    let each = match realms {
        Realms::One => {
            prepare(&store, &agents, tasks).await?;
            tasks
        }
        Realms::Each => {
            let each = tasks / agents.len() as u64;
            for agent in &agents {
                prepare(&store, std::slice::from_ref(agent), each).await?;
            }
            each * agents.len() as u64
        }
    };
    // Both sides start with up-to-date planner statistics.
    let line = Line::many(&place.url, 1).await?.remove(0);
    line.client().batch_execute("ANALYZE").await?;
    let claimed = match side {
        Side::Posse => posse(place, &store, agents).await?,
        Side::Bare => bare(place, agents).await?,
    };
    let (found, count) = claimed;
    if count == each {
        Ok(found)
    } else {
        Err(format!("{count} claims of {each} tasks").into())
    }
}

/// Creates a team of all the agents, and tasks for it.
async fn prepare(store: &Postgres, agents: &[Agent], tasks: u64) -> Result<(), Failed> {
    let team: Name = TEAM.parse()?;
    let mut ops = Vec::new();
    for (number, agent) in agents.iter().enumerate() {
        let member = Box::new(joining(agent));
        ops.push(match number {
            0 => Op::CreateTeam {
                team: team.clone(),
                description: "It is measured.".into(),
                settings: serde_json::Map::new(),
                lead: member,
            },
            _ => {
                let name = format!("m{number}").parse()?;
                Op::Join {
                    team: team.clone(),
                    name,
                    member,
                    greeting: None,
                }
            }
        });
    }
    let realm = agents.first().ok_or("nobody is there")?.realm;
    order(store, realm, ops).await?;
    let mut left = tasks;
    while left > 0 {
        let some = left.min(1000);
        let task = || NewTask {
            subject: "a task with a subject of the usual length".into(),
            description: "And a description, which is as a rule a little longer than that.".into(),
            ..NewTask::default()
        };
        let make = |_| Op::CreateTask {
            team: Some(team.clone()),
            task: Box::new(task()),
        };
        order(store, realm, (0..some).map(make).collect()).await?;
        left -= some;
    }
    Ok(())
}

async fn order(store: &Postgres, realm: RealmId, ops: Vec<Op>) -> Result<(), Failed> {
    for result in store
        .operate(Order {
            realm,
            ops,
            at_ms: at(0),
        })
        .await?
    {
        result?;
    }
    Ok(())
}

fn joining(agent: &Agent) -> Joining {
    Joining {
        agent: agent.id,
        agent_type: "general-purpose".into(),
        model: MODEL.into(),
        prompt: "Do what is to be done.".into(),
        color: None,
        backend: "in-process".into(),
        cwd: "/work".into(),
        role: None,
        takes: Takes::Any,
    }
}

async fn posse(
    place: &Place,
    store: &Arc<Postgres>,
    agents: Vec<Agent>,
) -> Result<(Value, u64), Failed> {
    let team: Name = TEAM.parse()?;
    let meter = Meter::begin(place.server()).await?;
    let mut running = JoinSet::new();
    for agent in agents {
        let (store, team) = (Arc::clone(store), team.clone());
        running.spawn(async move {
            for claimed in 0.. {
                let op = Op::ClaimNext {
                    team: Some(team.clone()),
                    takes: Takes::Any,
                };
                let operations = vec![Operation { call: None, op }];
                match store
                    .commit(Step {
                        operations,
                        ..agent.blank()
                    })
                    .await?
                    .results
                    .pop()
                {
                    Some(Ok(Done::Claimed(_))) => {}
                    Some(Err(Refusal::NothingToClaim)) => return Ok(claimed),
                    other => return Err(Failed::from(format!("{other:?}"))),
                }
            }
            Ok(0)
        });
    }
    finish(meter, running).await
}

async fn finish(
    meter: Meter<'_>,
    mut running: JoinSet<Result<u64, Failed>>,
) -> Result<(Value, u64), Failed> {
    let mut claimed = 0;
    while let Some(done) = running.join_next().await {
        claimed += done??;
    }
    Ok((meter.end(claimed).await?, claimed))
}

/// A claim, with the result for the claimer, which is stored with its step.
const CLAIM: &str = "
    WITH claimed AS (
        UPDATE task SET status = 1, owner = $6, owner_agent = $2, lost_by = NULL, version = version + 1,
            updated_ms = $3
        WHERE realm = $1 AND team = $5 AND id = (
            SELECT id FROM task WHERE realm = $1 AND team = $5 AND status = 0 AND owner IS NULL AND waits = 0
            ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
        RETURNING *),
    answer AS (
        SELECT json_build_object('results', json_build_array(json_build_object('Ok', json_build_object('Claimed',
            json_build_object('id', id, 'subject', subject, 'description', description, 'active_form', active_form,
            'status', 'in_progress', 'owner', json_build_object('agent', owner_agent, 'name', owner),
            'lost_by', lost_by,
            'blocked_by', ARRAY(SELECT needs FROM dependency d WHERE d.realm = $1 AND d.team = $5 AND d.task = id
                ORDER BY needs),
            'waits_for', ARRAY[]::bigint[],
            'blocks', ARRAY(SELECT task FROM dependency d WHERE d.realm = $1 AND d.team = $5 AND d.needs = id
                ORDER BY task),
            'created_ms', created_ms, 'updated_ms', updated_ms, 'role', role, 'check', check_command,
            'metadata', metadata::json, 'version', version)))), 'mail_waits', false)::text AS result
        FROM claimed),
    stepped AS (
        UPDATE pulse SET used_ms = $3, step = $4, result = answer.result FROM answer
        WHERE realm = $1 AND agent = $2 AND epoch = 1),
    used AS (UPDATE root SET used_ms = $3 FROM answer WHERE realm = $1 AND agent = $2)
    SELECT result FROM answer";

/// One who claims.
struct Claimer {
    realm: Uuid,
    agent: Uuid,
    name: String,
    at: i64,
    step: Uuid,
}

impl Claimer {
    /// Claims the next task; returns true if there was one.
    async fn claim(
        &self,
        line: &Client,
        statement: &Statement,
    ) -> Result<bool, tokio_postgres::Error> {
        let values: [&(dyn ToSql + Sync); 6] = [
            &self.realm,
            &self.agent,
            &self.at,
            &self.step,
            &TEAM,
            &self.name,
        ];
        let Some(row) = line.query_opt(statement, &values).await? else {
            return Ok(false);
        };
        Ok(!row.try_get::<_, String>(0)?.is_empty())
    }
}

async fn bare(place: &Place, agents: Vec<Agent>) -> Result<(Value, u64), Failed> {
    let lines = Line::many(&place.url, LINES.min(agents.len())).await?;
    let mut ready = Vec::new();
    let count = lines.len();
    for (at, line) in lines.into_iter().enumerate() {
        let statement = line.client().prepare(CLAIM).await?;
        let share: Vec<Claimer> = agents
            .iter()
            .enumerate()
            .skip(at)
            .step_by(count)
            .map(claimer)
            .collect();
        ready.push((line, statement, share));
    }
    let meter = Meter::begin(place.server()).await?;
    let mut running = JoinSet::new();
    for (line, statement, mut share) in ready {
        running.spawn(async move {
            let mut claimed = 0;
            while !share.is_empty() {
                for claimer in &mut share {
                    claimer.step = Uuid::now_v7();
                }
                let had = together(line.client(), &statement, &share).await?;
                claimed += had.iter().filter(|had| **had).count() as u64;
                let mut had = had.into_iter();
                share.retain(|_| had.next() == Some(true));
            }
            Ok::<_, Failed>(claimed)
        });
    }
    finish(meter, running).await
}

fn claimer((number, agent): (usize, &Agent)) -> Claimer {
    let name = if number == 0 {
        "team-lead".into()
    } else {
        format!("m{number}")
    };
    Claimer {
        realm: agent.realm.uuid(),
        agent: agent.id.uuid(),
        name,
        at: at(1),
        step: Uuid::nil(),
    }
}

/// Performs the claims of all who share a connection, in one transaction.
async fn together(
    line: &Client,
    statement: &Statement,
    share: &[Claimer],
) -> Result<Vec<bool>, Failed> {
    if let [one] = share {
        return Ok(vec![one.claim(line, statement).await?]);
    }
    let control = async |word: &'static str| line.batch_execute(word).await.map(|()| true);
    let mut asking: Vec<Asking<'_, bool>> = vec![Box::pin(control("BEGIN"))];
    for claimer in share {
        asking.push(Box::pin(claimer.claim(line, statement)));
    }
    asking.push(Box::pin(control("COMMIT")));
    let mut had = pipelined(asking).await?;
    had.pop();
    had.remove(0);
    Ok(had)
}
