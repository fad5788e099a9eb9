//! The cost of operations on much data, compared with little data.

use std::path::Path;
use std::time::{Duration, Instant};

use posse_port::store::{
    Done, Joining, MailFilter, Op, Operation, Order, Page, Step, Store, TakenMail,
};
use posse_protocol::{AgentId, EntryKind, Name, Takes};
use posse_store::Sqlite;
use posse_testkit::store_contract::{entry, realm};
use serde_json::{Value, json};

use crate::Failed;
use crate::words::{add_tasks, blank, claim, doing, newborn, send};

/// Number of samples of each operation.
const TIMES: u64 = 400;

/// Sends, reads and takes a message where few wait, alternating with an inbox of nearly ten
/// thousand.
pub(crate) async fn inbox(database: &Path) -> Result<Value, Failed> {
    let store = Sqlite::open(database)?;
    let sender = newborn(&store).await?;
    let (few, many) = (newborn(&store).await?, newborn(&store).await?);
    fill(&store, sender, few, 10).await?;
    fill(&store, sender, many, 9_900).await?;
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..TIMES {
        for (hearer, times) in [few, many].into_iter().zip(&mut times) {
            times.push(cycle(&store, sender, hearer, number).await?);
        }
    }
    let [few, many] = times.map(median);
    Ok(
        json!({"few_us": micros(few), "many_us": micros(many), "growth": many.as_secs_f64() / few.as_secs_f64()}),
    )
}

async fn fill(store: &Sqlite, sender: AgentId, to: AgentId, count: u64) -> Result<(), Failed> {
    let message = |_| Operation {
        call: None,
        op: send(to, "How is it going?".into()),
    };
    let operations = (0..count).map(message).collect();
    for result in store
        .commit(Step {
            operations,
            ..blank(sender)
        })
        .await?
        .results
    {
        result?;
    }
    Ok(())
}

/// Adds one message and takes one.
async fn cycle(
    store: &Sqlite,
    sender: AgentId,
    hearer: AgentId,
    seq: u64,
) -> Result<Duration, Failed> {
    let begun = Instant::now();
    store
        .commit(doing(sender, send(hearer, "How is it going?".into())))
        .await?;
    let filter = MailFilter { waiting: true };
    let mail = store.mail(realm(), hearer, filter, Page::first(1)).await?;
    let number = mail.first().ok_or("no mail waits")?.number;
    let entries = vec![entry(seq, EntryKind::Prompt, "a message")];
    let mail = vec![TakenMail { number, entry: seq }];
    store
        .commit(Step {
            entries,
            mail,
            ..blank(hearer)
        })
        .await?;
    Ok(begun.elapsed())
}

/// Claims in lists of a hundred tasks, alternating with a list of `large`.
pub(crate) async fn claims(database: &Path, large: u64) -> Result<Value, Failed> {
    let store = Sqlite::open(database)?;
    let agent = newborn(&store).await?;
    let big: Name = "big".parse()?;
    let small: Vec<Name> = (0..4)
        .map(|number| format!("small-{number}").parse())
        .collect::<Result<_, _>>()?;
    for team in small.iter().chain([&big]) {
        let lead = Joining {
            agent,
            agent_type: "general-purpose".into(),
            model: "a-model".into(),
            prompt: String::new(),
            color: None,
            backend: "in-process".into(),
            cwd: "/work".into(),
            role: None,
            takes: Takes::Any,
        };
        let (description, settings) = (String::new(), serde_json::Map::new());
        let op = Op::CreateTeam {
            team: team.clone(),
            description,
            settings,
            lead: Box::new(lead),
        };
        for result in store
            .operate(Order {
                realm: realm(),
                ops: vec![op],
                at_ms: 5,
            })
            .await?
        {
            result?;
        }
        add_tasks(&store, Some(team), if *team == big { large } else { 100 }).await?;
    }
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for number in 0..TIMES as usize {
        for (list, times) in [(&small[number % 4], &mut few), (&big, &mut many)] {
            let begun = Instant::now();
            let results = store.commit(doing(agent, claim(Some(list)))).await?.results;
            times.push(begun.elapsed());
            if !matches!(results[..], [Ok(Done::Claimed(_))]) {
                return Err(format!("{results:?}").into());
            }
        }
    }
    let (few, many) = (median(few), median(many));
    Ok(
        json!({"few_us": micros(few), "many_us": micros(many), "ratio": many.as_secs_f64() / few.as_secs_f64()}),
    )
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
