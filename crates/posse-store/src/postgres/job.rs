//! Jobs to be written, and the server's answers to them.

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

/// A write job and the channel for its answer.
pub(super) struct PgJob {
    /// The agent whose step it is; `None` for an order or an import.
    pub(super) agent: Option<AgentId>,
    /// The realm it writes to; `None` if only the server knows it.
    pub(super) realm: Option<RealmId>,
    pub(super) encoded: EncodedStep,
    /// The step itself, to encode it again with everything that the first encoding left out.
    pub(super) step: Option<Arc<Step>>,
    pub(super) kind: JobKind,
    pub(super) answer: oneshot::Sender<WriteOutcome>,
}

/// What a job means for what this host holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobKind {
    /// This host holds the agent afterwards.
    Holds,
    /// This host no longer holds the agent.
    Releases,
    /// Nothing changes.
    Neither,
}

/// The result of the functions `write` and `leave`.
#[derive(Deserialize)]
pub(super) struct WriteResult {
    /// One result per job, in their order.
    #[serde(default)]
    pub(super) done: Vec<Value>,
    /// Changes that hosts should know of.
    pub(super) news: Vec<Novelty>,
    /// True if `leave` has to be called again.
    #[serde(default)]
    pub(super) more: bool,
}

/// A change that hosts should know of.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Novelty {
    /// An agent of this host got mail.
    Mail(Uuid, AgentId),
    /// A list of a realm and team has claimable tasks, which concerns these hosts.
    List(RealmId, String, Vec<Uuid>),
    /// This host was taken for dead, and what it held was released.
    Freed(Uuid),
    /// The feed of a realm that somebody waits for has this last number.
    Feed(RealmId, u64),
}

/// Wakes, by the host that should get them.
pub(super) type WakesByHost = BTreeMap<Uuid, BTreeSet<Wake>>;

/// The last numbers of feeds that somebody waits for.
pub(super) type FeedHeads = BTreeMap<RealmId, u64>;

/// Groups changes by the host they concern, and separates those of feeds.
pub(super) fn sorted(novelties: Vec<Novelty>) -> (WakesByHost, FeedHeads) {
    let (mut news, mut heads) = (WakesByHost::new(), FeedHeads::new());
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
            // Only the lost host is told. The others find the agents at their next query, within
            // a second.
            Novelty::Freed(host) => {
                news.entry(host).or_default().insert(Wake::Fenced);
            }
            Novelty::Feed(realm, head) => drop(heads.insert(realm, head)),
        }
    }
    (news, heads)
}

/// Returns the list of a team. Only names were ever written, and the empty string for the
/// session's own list.
pub(super) fn list(realm: RealmId, team: &str) -> ListId {
    ListId {
        realm,
        team: team.parse::<Name>().ok(),
    }
}

/// Returns the epoch of a take and the last step before it.
pub(super) fn taken(done: &Value) -> Option<(Epoch, StepId)> {
    let epoch = done.get("epoch")?.as_i64()?;
    let step = done.get("step")?.as_str()?.parse().ok()?;
    Some((Epoch(epoch.cast_unsigned()), StepId(step)))
}

/// Returns the outcome of one job.
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

/// Returns the error for a refused job, from the detail that the functions raise.
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

/// Returns a process for people, with its machine if that is another one than `here`.
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
