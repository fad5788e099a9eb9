//! Decides whether one more agent may be started: every limit of every kind of spawn, in one
//! place.

use posse_protocol::Cost;

use crate::definition::spawning::Spawning;
use crate::govern::Budgets;

/// Number of live agents allowed for each run slot. The others wait for a slot; more than this
/// would only pile up.
const LIVE_FOR_EACH_PLACE: usize = 16;

/// State of the session and the machine when an agent is to be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Situation {
    /// True if its parent is being stopped: nothing new may escape.
    pub frozen: bool,
    /// Depth of the new agent; 1 below the main agent.
    pub depth: u32,
    /// The budget that is exhausted, of those that would pay for it.
    pub exhausted: Option<String>,
    /// Free memory of the machine in bytes; none if it is unknown.
    pub memory: Option<u64>,
    /// Number of live agents in the session, including the main agent.
    pub live: usize,
}

/// Why no agent may be started now; shown to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LimitError {
    #[error("No agent was started: this agent is being stopped and may not start anything.")]
    Frozen,
    #[error(
        "No agent was started: it would be at depth {depth}, and the limit is {most}. Do the work yourself, or hand \
         it back to the agent that started you."
    )]
    Depth { depth: u32, most: u32 },
    #[error(
        "No agent was started: {0}. It could not make a single model call; finish with what you have."
    )]
    Exhausted(String),
    #[error(
        "No agent was started: the machine has {left} MiB of free memory, and {least} MiB must stay free. Wait for \
         agents to end, or stop some, and try again."
    )]
    Memory { left: u64, least: u64 },
    #[error(
        "No agent was started: {live} agents of this session are live, and the limit is {most}. Wait for some to end, \
         or stop some, and try again."
    )]
    Live { live: usize, most: usize },
}

/// Checks whether an agent may be started now. The first limit that is exceeded is reported: those
/// that waiting cannot change come before those that it can.
pub(crate) fn check(now: &Situation, spawning: &Spawning) -> Result<(), LimitError> {
    let most = spawning.running.saturating_mul(LIVE_FOR_EACH_PLACE);
    if now.frozen {
        return Err(LimitError::Frozen);
    }
    if now.depth > spawning.depth {
        return Err(LimitError::Depth {
            depth: now.depth,
            most: spawning.depth,
        });
    }
    if let Some(what) = &now.exhausted {
        return Err(LimitError::Exhausted(what.clone()));
    }
    if let Some(left) = now.memory.filter(|left| *left < spawning.least_memory) {
        return Err(LimitError::Memory {
            left: left >> 20,
            least: spawning.least_memory >> 20,
        });
    }
    if now.live >= most {
        return Err(LimitError::Live {
            live: now.live,
            most,
        });
    }
    Ok(())
}

/// Returns the budgets of a new agent: the usual ones, lowered to a declared cost.
pub(crate) fn budgets(spawning: &Spawning, declared: Option<Cost>) -> Budgets {
    let mut budgets = spawning.budgets;
    if let Some(cost) = declared {
        // A declaration can lower a limit of the session's settings, and never raise it.
        let most = budgets.subtree.cost.map_or(cost, |most| most.min(cost));
        budgets.subtree.cost = Some(most);
    }
    budgets
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::definition::spawning::Background;
    use crate::govern::Budgets;

    fn spawning() -> Spawning {
        Spawning {
            implicit_fork: false,
            context: Arc::new([]),
            hooks: Arc::default(),
            servers: Arc::default(),
            instructions: None,
            types: Arc::default(),
            skills: None,
            forced_model: None,
            usual_model: None,
            base: Default::default(),
            dirty: Default::default(),
            depth: 3,
            running: 4,
            background: Background::Asked,
            auto_background: None,
            budgets: Budgets::default(),
            least_memory: 256 << 20,
            teams: crate::definition::spawning::Teaming::default(),
        }
    }

    #[test]
    fn every_limit() {
        let fine = Situation {
            depth: 1,
            live: 1,
            ..Situation::default()
        };
        let table = [
            (fine.clone(), None),
            (
                Situation {
                    frozen: true,
                    ..fine.clone()
                },
                Some("is being stopped"),
            ),
            (
                Situation {
                    depth: 3,
                    ..fine.clone()
                },
                None,
            ),
            (
                Situation {
                    depth: 4,
                    ..fine.clone()
                },
                Some("at depth 4, and the limit is 3"),
            ),
            (
                Situation {
                    exhausted: Some("the session's 5 $ are used up".into()),
                    ..fine.clone()
                },
                Some("the session's 5 $ are used up."),
            ),
            (
                Situation {
                    memory: Some(256 << 20),
                    ..fine.clone()
                },
                None,
            ),
            (
                Situation {
                    memory: Some((256 << 20) - 1),
                    ..fine.clone()
                },
                Some("255 MiB of free memory, and 256 MiB must stay free"),
            ),
            (
                Situation {
                    live: 63,
                    ..fine.clone()
                },
                None,
            ),
            (
                Situation {
                    live: 64,
                    ..fine.clone()
                },
                Some("64 agents of this session are live, and the limit is 64"),
            ),
        ];
        for (now, expected) in table {
            match (check(&now, &spawning()), expected) {
                (Ok(()), None) => {}
                (Err(error), Some(part)) => {
                    let told = error.to_string();
                    assert!(
                        told.starts_with("No agent was started: ") && told.contains(part),
                        "{told}"
                    );
                }
                (given, expected) => panic!("{now:?}: {given:?}, and not {expected:?}"),
            }
        }
    }

    #[test]
    fn being_stopped_is_told_before_anything_else() {
        let worst = Situation {
            frozen: true,
            depth: 9,
            exhausted: Some("all".into()),
            memory: Some(0),
            live: usize::MAX,
        };
        assert!(
            check(&worst, &spawning())
                .unwrap_err()
                .to_string()
                .contains("is being stopped")
        );
    }
}
