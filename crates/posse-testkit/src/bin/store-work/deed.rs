//! The work of a process that is killed, or whose disk fails: one action five times, each
//! acknowledged on a line of its own once the store has reported it durable.

use std::io::{self, Write};

use posse_port::store::{
    Address, Done, Epoch, Joining, MailFilter, NewEntry, NewTask, Op, Operation, Order, Page, Step,
    Store, StoreError, TakenMail, TaskChange, checksum,
};
use posse_protocol::{EntryKind, MailId, MailKind, Name, Takes, TaskId, TaskStatus};
use posse_testkit::deed::{Deed, LEAD, MEMBER, STRAYS, TIMES, crew};
use posse_testkit::place::Place;
use posse_testkit::store_contract::{agent, birth, entry, realm, step};
use uuid::Uuid;

use crate::{Failed, say};

/// Creates the state that `deed` starts from.
pub(crate) async fn prepare(place: &Place, deed: Deed) -> Result<(), Failed> {
    let store = place.open()?;
    store.commit(birth(LEAD)).await?;
    store.commit(birth(MEMBER)).await?;
    let joining = |number| {
        Box::new(Joining {
            agent: agent(number),
            agent_type: "general-purpose".into(),
            model: "a-model".into(),
            prompt: String::new(),
            color: None,
            backend: "in-process".into(),
            cwd: "/work".into(),
            role: None,
            takes: Takes::Any,
        })
    };
    let mut ops = vec![
        Op::CreateTeam {
            team: crew(),
            description: "for tests".into(),
            settings: serde_json::Map::new(),
            lead: joining(LEAD),
        },
        Op::Join {
            team: crew(),
            name: "bob".parse()?,
            member: joining(MEMBER),
            greeting: None,
        },
    ];
    if deed != Deed::Create {
        ops.extend((1..=TIMES).map(|number| create(&format!("task {number}"), &[])));
        // A task that waits for all of them shows if each completion counted once.
        let all: Vec<TaskId> = (1..=TIMES).map(TaskId).collect();
        ops.push(create("the last", &all));
    }
    if deed == Deed::Take {
        ops.extend((0..TIMES).map(|number| send(Address::Agent(agent(MEMBER)), number)));
    }
    for result in store
        .operate(Order {
            realm: realm(),
            ops,
            at_ms: 5,
        })
        .await?
    {
        result.map_err(|refusal| refusal.to_string())?;
    }
    store.release(agent(LEAD), Epoch(1)).await?;
    store.release(agent(MEMBER), Epoch(1)).await?;
    if deed == Deed::TakeOver {
        for number in STRAYS {
            store.commit(birth(number)).await?;
        }
        // Its agents are found without their host.
        std::process::abort();
    }
    Ok(())
}

/// Performs `deed`, and prints each acknowledgement.
pub(crate) async fn perform(place: &Place, deed: Deed) -> Result<(), Failed> {
    let store = again(async || Ok(place.open()?)).await?;
    if deed == Deed::TakeOver {
        for number in STRAYS {
            let taken = again(async || Ok(store.take(agent(number)).await?)).await?;
            acknowledge(&format!("{number} {}", taken.epoch.0))?;
        }
        return Ok(());
    }
    let actor = if deed == Deed::Take { MEMBER } else { LEAD };
    let epoch = again(async || Ok(store.take(agent(actor)).await?))
        .await?
        .epoch;
    for number in 0..TIMES {
        let step = word(
            deed,
            Step {
                epoch,
                ..step(actor, 0)
            },
            number,
            &*store,
        )
        .await?;
        // Retry of the same step: if the first attempt was durable after all, it must not count
        // twice.
        let committed = again(async || Ok(store.commit(step.clone()).await?)).await?;
        let done = committed.results.into_iter().next().transpose()?;
        acknowledge(&match done {
            Some(Done::TaskCreated(id)) => id.to_string(),
            Some(Done::Claimed(task)) => task.id.to_string(),
            _ => number.to_string(),
        })?;
    }
    Ok(())
}

/// The `number`-th step of a deed.
async fn word(deed: Deed, mut step: Step, number: u64, store: &dyn Store) -> Result<Step, Failed> {
    let update = |change| Op::UpdateTask {
        team: Some(crew()),
        id: TaskId(number + 1),
        expect: None,
        change: Box::new(change),
    };
    let op = match deed {
        Deed::Send => send(
            Address::Member {
                team: crew(),
                name: "bob".parse()?,
            },
            number,
        ),
        Deed::Create => create(&format!("task {}", number + 1), &[]),
        Deed::Claim => Op::ClaimNext {
            team: Some(crew()),
            takes: Takes::Any,
        },
        Deed::Update => update(TaskChange {
            subject: Some(format!("changed {number}")),
            ..TaskChange::default()
        }),
        Deed::Complete => update(TaskChange {
            status: Some(TaskStatus::Completed),
            ..TaskChange::default()
        }),
        Deed::Append => {
            step.entries = vec![chained(number, |number| format!("entry {number}"))];
            return Ok(step);
        }
        Deed::Take => {
            let filter = MailFilter { waiting: true };
            let waiting = again(async || {
                Ok(store
                    .mail(realm(), step.agent, filter, Page::first(1))
                    .await?)
            })
            .await?;
            let mail = waiting.first().ok_or("no mail waits")?;
            if mail.body != message(number) {
                return Err(format!("{} came out of turn", mail.body).into());
            }
            step.entries = vec![chained(number, message)];
            step.mail = vec![TakenMail {
                number: mail.number,
                entry: number,
            }];
            return Ok(step);
        }
        Deed::TakeOver => return Err("a take-over has no steps".into()),
    };
    step.operations = vec![Operation { call: None, op }];
    Ok(step)
}

fn message(number: u64) -> String {
    format!("message {number}")
}

/// The `number`-th entry of a transcript with these texts.
fn chained(number: u64, text: impl Fn(u64) -> String) -> NewEntry {
    let mut last = 0;
    for seq in 0..=number {
        let encoded = entry(seq, EntryKind::Prompt, &text(seq)).encoded;
        last = checksum(last, seq, EntryKind::Prompt, None, &encoded);
    }
    NewEntry {
        checksum: last,
        ..entry(number, EntryKind::Prompt, &text(number))
    }
}

fn send(to: Address, number: u64) -> Op {
    Op::Send {
        id: MailId::from(Uuid::now_v7()),
        to,
        kind: MailKind::Text,
        summary: "a word".into(),
        body: message(number),
    }
}

fn create(subject: &str, blocked_by: &[TaskId]) -> Op {
    let task = NewTask {
        subject: subject.into(),
        blocked_by: blocked_by.to_vec(),
        ..NewTask::default()
    };
    Op::CreateTask {
        team: Some(Name::clone(&crew())),
        task: Box::new(task),
    }
}

/// Retries once if the disk failed. Any other failure is an error.
async fn again<T>(mut attempt: impl AsyncFnMut() -> Result<T, Failed>) -> Result<T, Failed> {
    match attempt().await {
        Err(error) if is_of_the_disk(&*error) => {
            writeln!(io::stdout(), "failed {error}")?;
            attempt().await
        }
        done => done,
    }
}

fn is_of_the_disk(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(
        error.downcast_ref(),
        Some(StoreError::Full { .. } | StoreError::Engine { .. })
    )
}

fn acknowledge(what: &str) -> io::Result<()> {
    say(&format!("ack {what}"))
}
