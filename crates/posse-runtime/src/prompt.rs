//! Texts for models about agents, runs and mail. Everything that someone else wrote is in a frame
//! that it cannot close, and no frame can be imitated.

pub(crate) mod advertised;
pub(crate) mod agent_tool;
mod answer;
mod attached;
mod compacted;
mod fork;
mod frame;
pub(crate) mod hook;
pub mod instructions;
mod loaded;
mod place;
pub(crate) mod plan;
pub(crate) mod question;
mod repeated;
pub(crate) mod sandbox;
pub(crate) mod served;
pub(crate) mod side_query;
pub(crate) mod skill;
pub(crate) mod team;

pub(crate) use answer::{
    Delivery, Reader, Returned, Tail, Waited, launched, nobody, not_running, output, result, sent,
    stopped, stopped_by_user, unknown_run, without_transcript,
};
pub use attached::attached;
pub(crate) use compacted::{List, Restated, compacted, verbatim};
pub(crate) use fork::FORK_TAG;
pub(crate) use fork::{directive, fork_rules, moved};
pub(crate) use frame::arrivals;
pub(crate) use loaded::tools_already_loaded;
pub(crate) use place::reminder;
pub(crate) use place::{elsewhere, remade, run_by_person, types, worktree};
pub(crate) use repeated::{repeated, talking};

use posse_protocol::{RunKind, RunUsage};

/// Maximum length of a result, in characters.
const MOST_CHARACTERS: usize = 30_000;
/// Minimum share of each of several results, and maximum length of an error, in characters.
const LEAST_CHARACTERS: usize = 2_000;

/// Returns the text, or a note that there is none: silence could be taken for an omission.
fn or_nothing(text: &str) -> &str {
    if text.trim().is_empty() {
        "(no output)"
    } else {
        text
    }
}

/// Returns what a run used, as text.
fn usage(kind: RunKind, usage: RunUsage) -> String {
    let RunUsage {
        total_tokens,
        tool_uses,
        duration_ms,
    } = usage;
    let time = format!("{}.{} s", duration_ms / 1000, duration_ms % 1000 / 100);
    match kind {
        RunKind::Agent => {
            let uses = if tool_uses == 1 { "use" } else { "uses" };
            format!("{total_tokens} tokens, {tool_uses} tool {uses}, {time}")
        }
        RunKind::Shell => time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_in_words() {
        let used = RunUsage {
            total_tokens: 1200,
            tool_uses: 1,
            duration_ms: 12_345,
        };
        assert_eq!(
            usage(RunKind::Agent, used),
            "1200 tokens, 1 tool use, 12.3 s"
        );
        assert_eq!(usage(RunKind::Shell, used), "12.3 s");
    }
}
