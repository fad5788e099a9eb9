//! Message latency from a lead to a teammate, and back.

use std::path::Path;

use posse_testkit::test_runtime::{AgentRecord, TestRuntime};
use serde_json::{Value, json};

use super::crewed;
use crate::Failed;
use crate::record::{self, Request, millis};
use crate::soon::{Told, find, spread};

/// Number of teammates that are written to in turn.
pub(super) const MEMBERS: usize = 4;

pub(super) async fn run(
    url: &str,
    directory: &Path,
    rounds: u32,
    count: usize,
) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::new(url, directory, 64)?;
    let (mut waits, mut next) = (Waits::default(), 0);
    for _ in 0..rounds {
        let mut session = crewed(&test_runtime).await?;
        exchange(&mut session, count).await?;
        waits.take(&record::since(url, &session.id(), &mut next).await?, count)?;
    }
    Ok(waits.told())
}

/// The lead writes to its teammates, one after another, and each writes back.
pub(super) async fn exchange(session: &mut AgentRecord, count: usize) -> Result<(), Failed> {
    let mut told = Told::default();
    for number in 0..count {
        session
            .say(&format!("write {number}. to m{}", number % MEMBERS))
            .await?;
        // Its last message arrives when it is idle again.
        while told.count() <= number || !told.idle {
            let event = session.event().await?;
            told.hear(&event, "heard ")?;
        }
    }
    Ok(())
}

/// Times from the end of the reply that calls SendMessage to the request of the idle recipient.
#[derive(Default)]
pub(super) struct Waits {
    down: Vec<f64>,
    up: Vec<f64>,
    busy: u32,
}

impl Waits {
    pub(super) fn take(&mut self, requests: &[Request], count: usize) -> Result<(), Failed> {
        for number in 0..count {
            let lead = find(requests, true, &format!("write {number}. to"))?;
            let peer = find(requests, false, &format!("word {number}."))?;
            let told = find(requests, true, &format!("answer {number}."))?;
            self.down.push(millis(lead.ended()?, peer.at_us));
            let ended = peer.ended()?;
            let works = |it: &&Request| {
                it.is_main() && it.at_us < ended && it.ended_us.is_none_or(|at| at > ended)
            };
            match requests.iter().find(works) {
                Some(_) => self.busy += 1,
                None => self.up.push(millis(ended, told.at_us)),
            }
        }
        Ok(())
    }

    pub(super) fn told(self) -> Value {
        json!({"lead_to_mate": spread(self.down, 0), "mate_to_lead": spread(self.up, self.busy)})
    }
}
