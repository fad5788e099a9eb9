//! Sub-agents and background commands for people: a line when one starts, moves to the
//! background, uses a tool, or ends.

use std::collections::HashMap;

use posse_protocol::{
    Notification, RunChange, RunFacts, RunKind, RunStatus, RunUpdate, WorktreeEnd,
};
use uuid::Uuid;

use crate::headless::runs::described;
use crate::output::grouped;
use crate::output::transcript::shortened;

/// With more runs than this at once, only starts and ends are shown.
const FEW: usize = 4;
/// Maximum length of a line about a tool use or a failure, in characters.
const LONGEST: usize = 120;

/// Remembers what was shown of each run.
#[derive(Default)]
pub(crate) struct Progress {
    /// Tool uses and the last line, by run.
    told: HashMap<Uuid, (u32, String)>,
}

impl Progress {
    /// Returns the line for a change; `None` if it is not worth one. `live` is the number of
    /// runs.
    pub(crate) fn note(&mut self, news: &RunUpdate, live: usize) -> Option<String> {
        let facts = &news.run;
        let indent = "  ".repeat(facts.depth.saturating_sub(1).min(8) as usize);
        let line = match &news.what {
            RunChange::Started { background, .. } => started(facts, *background),
            RunChange::Detached => format!("⇢ {} continues in the background", described(facts)),
            RunChange::Progress { usage, summary, .. } => {
                let (uses, last) = self.told.entry(facts.task).or_default();
                // A reply asks for calls. What they do is known when they begin.
                let is_reply = usage.tool_uses > std::mem::replace(uses, usage.tool_uses);
                if is_reply || usage.tool_uses == 0 || summary.is_empty() || summary == last {
                    return None;
                }
                last.clone_from(summary);
                if live > FEW {
                    return None;
                }
                format!("· {}: {}", described(facts), shortened(summary, LONGEST))
            }
            RunChange::Ended(end) => {
                self.told.remove(&facts.task);
                ended(facts, end)
            }
        };
        Some(format!("{indent}{line}"))
    }
}

fn started(facts: &RunFacts, background: bool) -> String {
    let what = match facts.kind {
        RunKind::Agent => facts.agent_type.as_str(),
        RunKind::Shell => "shell",
    };
    let name = facts
        .name
        .as_ref()
        .map(|name| format!(" {name}"))
        .unwrap_or_default();
    let aside = if background { " (background)" } else { "" };
    format!("⇢ {what}{name}: {}{aside}", described(facts))
}

/// Returns how a run ended and what it used.
pub(crate) fn ended(facts: &RunFacts, end: &Notification) -> String {
    let usage = &end.usage;
    let mut parts = vec![format!("⇠ {} {}", end.status.as_str(), described(facts))];
    if end.status != RunStatus::Completed || facts.kind == RunKind::Shell {
        let why = end.error.as_deref().unwrap_or(&end.summary);
        parts.extend((!why.is_empty()).then(|| shortened(why, LONGEST)));
    }
    if facts.kind == RunKind::Agent {
        let uses = if usage.tool_uses == 1 {
            "tool use"
        } else {
            "tool uses"
        };
        parts.push(format!("{} {uses}", grouped(usage.tool_uses.into())));
        parts.push(format!("{} tokens", grouped(usage.total_tokens)));
    }
    parts.push(format!("{:.1} s", usage.duration_ms as f64 / 1000.0));
    if let Some(WorktreeEnd {
        kept: Some(kept), ..
    }) = &end.worktree
    {
        parts.push(format!(
            "kept: {} (posse worktrees list)",
            shortened(kept, LONGEST)
        ));
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use posse_protocol::RunUsage;

    use super::*;
    use crate::headless::fixtures::{detached, progress, run, run_ended, started};

    fn doing(tool_uses: u32, what: &str) -> RunUpdate {
        let mut news = progress(run(1), tool_uses);
        if let RunChange::Progress { summary, .. } = &mut news.what {
            *summary = what.into();
        }
        news
    }

    #[test]
    fn a_run_has_a_line_for_its_start_each_tool_and_its_end() {
        let mut shown = Progress::default();
        let mut note = |news: RunUpdate| shown.note(&news, 1);
        let named = RunFacts {
            name: Some("scout".parse().unwrap()),
            depth: 2,
            ..run(2)
        };
        for (news, line) in [
            (
                started(run(1), true),
                Some("⇢ Explore: find callers (background)"),
            ),
            (
                started(named, false),
                Some("  ⇢ Explore scout: find callers"),
            ),
            (progress(run(1), 0), None),
            (doing(1, "I look."), None),
            (
                doing(1, "Grep fn step"),
                Some("· find callers: Grep fn step"),
            ),
            (doing(1, "Grep fn step"), None),
            (doing(3, ""), None),
            (doing(3, "Read a.rs"), Some("· find callers: Read a.rs")),
            (doing(3, "Read b.rs"), Some("· find callers: Read b.rs")),
            (
                detached(run(1)),
                Some("⇢ find callers continues in the background"),
            ),
            (
                run_ended(run(1)),
                Some("⇠ completed find callers · 3 tool uses · 12,345 tokens · 4.2 s"),
            ),
        ] {
            assert_eq!(note(news.clone()).as_deref(), line, "{news:?}");
        }
        assert!(shown.told.is_empty());
    }

    #[test]
    fn many_at_once_are_told_of_by_starts_and_ends() {
        let mut shown = Progress::default();
        for what in ["", "Read a.rs"] {
            assert_eq!(shown.note(&doing(1, what), 5), None);
        }
        assert!(shown.note(&started(run(2), true), 6).is_some());
        assert!(shown.note(&doing(1, "Read b.rs"), 4).is_some());
    }

    #[test]
    fn an_end_that_is_none_says_why() {
        let RunChange::Ended(end) = run_ended(run(1)).what else {
            panic!()
        };
        let failed = Notification {
            status: RunStatus::Failed,
            error: Some("the key was refused".into()),
            ..*end.clone()
        };
        let line =
            "⇠ failed find callers · the key was refused · 3 tool uses · 12,345 tokens · 4.2 s";
        assert_eq!(ended(&run(1), &failed), line);
        let shell = RunFacts {
            kind: RunKind::Shell,
            ..run(1)
        };
        let usage = RunUsage {
            duration_ms: 1000,
            ..RunUsage::default()
        };
        let exit = Notification {
            summary: "exit code 0".into(),
            usage,
            ..*end.clone()
        };
        assert_eq!(
            ended(&shell, &exit),
            "⇠ completed find callers · exit code 0 · 1.0 s"
        );
        let kept = Some("2 commits".to_owned());
        let worktree = WorktreeEnd {
            path: "/t/a".into(),
            branch: "posse/a".into(),
            base: "3f".into(),
            kept,
        };
        let changed = Notification {
            worktree: Some(worktree),
            ..*end
        };
        let line = "⇠ completed find callers · 3 tool uses · 12,345 tokens · 4.2 s · kept: 2 commits (posse worktrees list)";
        assert_eq!(ended(&run(1), &changed), line);
    }
}
