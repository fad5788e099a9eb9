//! Whether one more agent may be started: every limit of every kind of spawn, in one place.

use posse_protocol::Cost;

use crate::definition::spawning::Spawning;
use crate::govern::Budgets;

/// How many live agents there may be for each one that may work at once. As many wait for a place; more
/// would only pile up.
const LIVE_FOR_EACH_PLACE: usize = 16;

/// How things stand when an agent is to be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    /// Whether whoever starts it is being stopped: nothing new may escape.
    pub frozen: bool,
    /// How deep the new agent would be; 1 for what the main agent starts.
    pub depth: u32,
    /// What is used up of the budgets that would pay for it.
    pub exhausted: Option<String>,
    /// How much memory the machine has left, in bytes; none if nobody knows.
    pub memory: Option<u64>,
    /// How many agents of the session are live, the main one included.
    pub live: usize,
}

/// Whether an agent may be started now; else what the model is told.
pub fn check(now: &Situation, spawning: &Spawning) -> Result<(), String> {
    let most = spawning.running.saturating_mul(LIVE_FOR_EACH_PLACE);
    if now.frozen {
        return Err(
            "No agent was started: this agent is being stopped and may not start anything.".into(),
        );
    }
    if now.depth > spawning.depth {
        return Err(format!(
            "No agent was started: it would be at depth {}, and the limit is {}. Do the work \
             yourself, or hand it back to the agent that started you.",
            now.depth, spawning.depth
        ));
    }
    if let Some(what) = &now.exhausted {
        return Err(format!(
            "No agent was started: {what}. It could not make a single model call; finish with what \
             you have."
        ));
    }
    if let Some(left) = now.memory.filter(|left| *left < spawning.least_memory) {
        return Err(format!(
            "No agent was started: the machine has {} MiB of free memory, and {} MiB must stay \
             free. Wait for agents to end, or stop some, and try again.",
            left >> 20,
            spawning.least_memory >> 20
        ));
    }
    if now.live >= most {
        return Err(format!(
            "No agent was started: {} agents of this session are live, and the limit is {most}. \
             Wait for some to end, or stop some, and try again.",
            now.live
        ));
    }
    Ok(())
}

/// What an agent may use that is started so.
pub(crate) fn budgets(spawning: &Spawning, declared: Option<Cost>) -> Budgets {
    let mut budgets = spawning.budgets;
    if let Some(cost) = declared {
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
                (Err(told), Some(part)) => {
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
                .contains("is being stopped")
        );
    }
}
