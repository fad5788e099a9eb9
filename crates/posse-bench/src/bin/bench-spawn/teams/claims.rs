//! Latency until an idle teammate begins a task that another's work has unblocked.

use std::path::Path;

use posse_port::store::{NewTask, Op, Order, Page, TaskFilter};
use posse_protocol::{ListId, TaskId, TaskStatus};
use posse_testkit::test_runtime::TestRuntime;
use serde_json::Value;

use super::{TEAM, crewed, realm, rest};
use crate::Failed;
use crate::record::{self, millis};
use crate::soon::{find, spread};

/// Each task waits for the previous one. Measures from the end of the reply that completes one to
/// the request that begins the next, if that is another teammate's.
pub(super) async fn run(
    url: &str,
    directory: &Path,
    rounds: u32,
    count: u64,
) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::new(url, directory, 64)?;
    let (mut samples, mut own, mut next) = (Vec::new(), 0, 0);
    for _ in 0..rounds {
        let mut session = crewed(&test_runtime).await?;
        let team = Some(TEAM.parse()?);
        let task = |number: u64| {
            let blocked_by = number
                .checked_sub(1)
                .filter(|before| *before > 0)
                .map(TaskId);
            let blocked_by = blocked_by.into_iter().collect();
            let task = NewTask {
                subject: format!("part {number}"),
                blocked_by,
                ..NewTask::default()
            };
            Op::CreateTask {
                team: team.clone(),
                task: Box::new(task),
            }
        };
        let ops = (1..=count).map(task).collect();
        for result in test_runtime
            .store
            .operate(Order {
                realm: realm(&session),
                ops,
                at_ms: 5,
            })
            .await?
        {
            result?;
        }
        let list = ListId {
            realm: realm(&session),
            team: team.clone(),
        };
        let done = TaskFilter {
            status: Some(TaskStatus::Completed),
            ..TaskFilter::default()
        };
        while (test_runtime
            .store
            .tasks(list.clone(), done.clone(), Page::all())
            .await?
            .len() as u64)
            < count
        {
            rest(&mut session).await?;
        }
        let requests = record::since(url, &session.id(), &mut next).await?;
        let begun = |number: u64| find(&requests, false, &format!("Task {number} is yours now"));
        for number in 1..count {
            let (done, taken) = (begun(number)?, begun(number + 1)?);
            match done.agent() == taken.agent() {
                true => own += 1,
                false => samples.push(millis(done.ended()?, taken.at_us)),
            }
        }
    }
    Ok(spread(samples, own))
}
