//! Agents in lists and for programs.

use posse_port::store::{AgentRecord, AgentState};

/// Returns an agent's state in one word.
pub(crate) fn state(agent: &AgentRecord) -> &'static str {
    match (agent.holder.is_some(), agent.state) {
        (true, AgentState::Running) => "working",
        // Its process has died during a run.
        (false, state) if state.is_open() => "broken",
        (_, state) => state.as_str(),
    }
}

/// Returns an agent's name: the one it was given, else the last part of its path without where it
/// was started.
pub(crate) fn name(agent: &AgentRecord) -> &str {
    let given = agent
        .origin
        .as_ref()
        .and_then(|origin| origin.name.as_ref());
    given.map_or_else(|| shown_name(&agent.path), |given| given.as_str())
}

/// Returns the name in an agent's path; of anything else, which is a name already, itself.
pub(crate) fn shown_name(path: &str) -> &str {
    let Some((_, last)) = path.rsplit_once('/') else {
        return path;
    };
    last.rsplit_once('-').map_or(last, |(name, _)| name)
}

/// Parses a process id as stores report it: `pid 4711`.
pub(crate) fn pid(holder: &str) -> Option<u32> {
    holder.strip_prefix("pid ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::session;
    use super::*;

    #[test]
    fn a_name_is_the_last_part_of_a_path() {
        for (path, name) in [
            ("/main", "main"),
            ("/main/dev-1-0.2", "dev-1"),
            ("/main/Explore-2/scout-0", "scout"),
            ("dev-1", "dev-1"),
            ("team-lead", "team-lead"),
        ] {
            assert_eq!(shown_name(path), name);
        }
    }

    #[test]
    fn what_was_open_when_its_process_died_is_broken() {
        let words = |holder: Option<&str>| {
            let holder = holder.map(str::to_owned);
            AgentState::ALL.map(|it| {
                state(&AgentRecord {
                    state: it,
                    holder: holder.clone(),
                    ..session()
                })
            })
        };
        let ended = ["completed", "partial", "failed", "killed"];
        assert_eq!(
            words(Some("pid 7"))[..5],
            ["idle", "working", "paused", "created", "waiting"]
        );
        assert_eq!(
            words(None)[..5],
            ["idle", "broken", "paused", "broken", "broken"]
        );
        assert_eq!(
            (&words(Some("pid 7"))[5..], &words(None)[5..]),
            (&ended[..], &ended[..])
        );
    }
}
