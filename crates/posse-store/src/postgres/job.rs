//! What is to be written, and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use posse_port::store::{Committed, Epoch, Step, StepId, StoreError, Wake};
use posse_protocol::{AgentId, ListId, Name, RealmId};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::encode::EncodedStep;
use super::nul;
use crate::write_outcome::{WriteAnswer, WriteOutcome};

/// Work, and who waits for it.
pub(super) struct PgJob {
    /// The agent whose step it is; none of an order or an import.
    pub(super) agent: Option<AgentId>,
    /// Where it is done; none if only the server knows.
    pub(super) realm: Option<RealmId>,
    pub(super) encoded: EncodedStep,
    /// For a step that has to be told anew, with all it leaves out when it is told first.
    pub(super) step: Option<Arc<Step>>,
    pub(super) kind: JobKind,
    pub(super) answer: oneshot::Sender<WriteOutcome>,
}

/// What a job means for this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobKind {
    /// It holds the agent from then on.
    Holds,
    /// It gives the agent up.
    Releases,
    Neither,
}

/// What `write` and `leave` give.
#[derive(Deserialize)]
pub(super) struct WriteResult {
    #[serde(default)]
    pub(super) done: Vec<Value>,
    pub(super) news: Vec<Novelty>,
    #[serde(default)]
    pub(super) more: bool,
}

/// Something that hosts should know.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Novelty {
    Mail(Uuid, AgentId),
    List(RealmId, String, Vec<Uuid>),
    Freed(Uuid),
}

/// What hosts should know, by host.
pub(super) type WakesByHost = BTreeMap<Uuid, BTreeSet<Wake>>;

/// Sorts news by whom they concern.
pub(super) fn sorted(novelties: Vec<Novelty>) -> WakesByHost {
    let mut news = WakesByHost::new();
    for novelty in novelties {
        match novelty {
            Novelty::Mail(host, agent) => {
                news.entry(host).or_default().insert(Wake::Mail(agent));
            }
            Novelty::List(realm, team, hosts) => {
                let wake = Wake::Tasks(list(realm, &team));
                for host in hosts {
                    news.entry(host).or_default().insert(wake.clone());
                }
            }
            // Others find it at their next look.
            Novelty::Freed(host) => {
                news.entry(host).or_default().insert(Wake::Fenced);
            }
        }
    }
    news
}

/// Only what is a name, or empty for the session's list, was ever written.
pub(super) fn list(realm: RealmId, team: &str) -> ListId {
    ListId {
        realm,
        team: team.parse::<Name>().ok(),
    }
}

/// Of a take: the epoch, and the last step before it.
pub(super) fn taken(done: &Value) -> Option<(Epoch, StepId)> {
    let epoch = done.get("epoch")?.as_i64()?;
    let step = done.get("step")?.as_str()?.parse().ok()?;
    Some((Epoch(epoch.cast_unsigned()), StepId(step)))
}

/// Returns what came of one job.
pub(super) fn answer(done: Value) -> WriteOutcome {
    if let Some(epoch) = done.get("epoch").and_then(Value::as_i64) {
        return Ok(WriteAnswer {
            epoch: Epoch(epoch.cast_unsigned()),
            ..WriteAnswer::default()
        });
    }
    if done.is_null() {
        return Ok(WriteAnswer::default());
    }
    let committed: Committed = serde_json::from_value(done).map_err(senseless)?;
    Ok(WriteAnswer {
        committed,
        ..WriteAnswer::default()
    })
}

fn senseless(error: serde_json::Error) -> StoreError {
    StoreError::Engine {
        place: "what the server answered".into(),
        source: Box::new(error),
    }
}

/// Returns the error that a refused job has, as the functions tell it.
pub(super) fn refusal(detail: &str, node: &str) -> Option<StoreError> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Told {
        BadStep {
            bad_step: String,
        },
        NotFound {
            not_found: AgentId,
        },
        Fenced {
            fenced: AgentId,
        },
        Held {
            held: AgentId,
            pid: i32,
            node: String,
        },
        NameTaken {
            name_taken: Name,
            by: Option<AgentId>,
        },
    }
    Some(match serde_json::from_str(&nul::show(detail)).ok()? {
        Told::BadStep { bad_step } => StoreError::BadStep(bad_step),
        Told::NotFound { not_found: agent } => StoreError::NotFound { agent },
        Told::Fenced { fenced: agent } => StoreError::Fenced { agent },
        Told::Held {
            held: agent,
            pid,
            node: other,
        } => StoreError::Held {
            agent,
            holder: holder(pid, &other, node),
        },
        Told::NameTaken {
            name_taken: name,
            by,
        } => StoreError::NameTaken { name, by },
    })
}

/// Returns a process for people: its machine is told if it is another one than `here`.
pub(super) fn holder(pid: i32, node: &str, here: &str) -> String {
    if node == here {
        format!("pid {pid}")
    } else {
        format!("pid {pid} on {node}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_read() {
        let agent = Uuid::from_u128(7);
        let told = |detail: &str| refusal(detail, "here").unwrap().to_string();
        assert!(told(r#"{"bad_step":"a\ud83d\ude00"}"#).ends_with("a😀"));
        assert!(told(&format!(r#"{{"not_found":"{agent}"}}"#)).starts_with("there is no session"));
        let held = |node: &str| told(&format!(r#"{{"held":"{agent}","pid":7,"node":"{node}"}}"#));
        assert!(held("here").ends_with("(pid 7)") && held("there").ends_with("(pid 7 on there)"));
        let taken = |by: &str| told(&format!(r#"{{"by":{by},"name_taken":"bob"}}"#));
        assert!(taken("null").contains("bob is taken;"));
        assert!(taken(&format!("\"{agent}\"")).contains("by agent"));
        assert!(refusal("nonsense", "here").is_none());
    }
}
