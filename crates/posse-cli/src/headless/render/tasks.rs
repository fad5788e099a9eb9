//! Sub-agents and background commands as JSON lines, where they are called tasks.

use posse_protocol::{
    AgentId, Notification, RunChange, RunFacts, RunKind, RunStatus, RunUpdate, RunUsage,
    WorktreeEnd,
};
use serde_json::{Value, json};

/// Returns the lines for a change of a run.
pub(crate) fn lines(news: &RunUpdate, session: AgentId) -> Vec<Value> {
    let facts = &news.run;
    let line = |subtype: &str| json!({"type": "system", "subtype": subtype, "task_id": facts.task, "tool_use_id": call(&facts.call)});
    let updated = |patch: Value| {
        let mut line = line("task_updated");
        line["patch"] = patch;
        line
    };
    match &news.what {
        RunChange::Started { prompt, background } => {
            let mut line = line("task_started");
            let parent = (facts.starter != session).then_some(facts.starter);
            let agent_type = (facts.kind == RunKind::Agent).then_some(&facts.agent_type);
            line["description"] = json!(facts.description);
            line["task_type"] = json!(facts.kind);
            line["subagent_type"] = json!(agent_type);
            line["agent_name"] = json!(facts.name);
            line["is_backgrounded"] = json!(background);
            line["spawn_depth"] = json!(facts.depth);
            line["parent_task_id"] = json!(parent);
            line["output_file"] = json!(facts.output_file.to_string_lossy());
            line["prompt"] = json!(prompt);
            vec![line]
        }
        RunChange::Progress {
            usage,
            last_tool,
            summary,
        } => {
            let mut line = line("task_progress");
            line["description"] = json!(facts.description);
            line["usage"] = usage_of(usage);
            line["last_tool_name"] = json!(last_tool);
            line["summary"] = json!(summary);
            vec![line]
        }
        RunChange::Detached => vec![updated(json!({"is_backgrounded": true}))],
        RunChange::Ended(end) => {
            let mut told = line("task_notification");
            ended(&mut told, end);
            vec![updated(json!({"status": end.status})), told]
        }
    }
}

/// Returns runs as a list.
pub(crate) fn list(runs: &[RunFacts]) -> Value {
    let tasks = runs.iter().map(|facts| {
        let agent_type = (facts.kind == RunKind::Agent).then_some(&facts.agent_type);
        json!({
            "task_id": facts.task, "task_type": facts.kind, "subagent_type": agent_type,
            "agent_name": facts.name, "description": facts.description,
        })
    });
    Value::from(tasks.collect::<Vec<_>>())
}

fn ended(line: &mut Value, end: &Notification) {
    line["run_id"] = json!(end.run);
    line["status"] = json!(match end.status {
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Partial | RunStatus::Killed | RunStatus::Paused | RunStatus::Running =>
            "stopped",
    });
    line["description"] = json!(end.description);
    line["output_file"] = json!(end.output_file.to_string_lossy());
    line["summary"] = json!(end.summary);
    line["usage"] = usage_of(&end.usage);
    if let Some(error) = &end.error {
        line["error"] = json!(error);
    }
    if let Some(value) = &end.value {
        line["structured_output"] = json!(value);
    }
    if let Some(WorktreeEnd {
        path,
        branch,
        base,
        kept,
    }) = &end.worktree
    {
        let path = path.to_string_lossy();
        line["worktree"] = json!({"path": path, "branch": branch, "base": base, "kept": kept});
    }
}

/// Returns the call that started a run; `None` if a message did.
fn call(id: &str) -> Option<&str> {
    Some(id).filter(|id| !id.is_empty())
}

fn usage_of(usage: &RunUsage) -> Value {
    let RunUsage {
        total_tokens,
        tool_uses,
        duration_ms,
    } = usage;
    json!({"total_tokens": total_tokens, "tool_uses": tool_uses, "duration_ms": duration_ms})
}

#[cfg(test)]
mod tests {
    use posse_protocol::RawJson;
    use uuid::Uuid;

    use super::*;
    use crate::headless::fixtures::{detached, progress, run, run_ended, session, started};

    #[test]
    fn runs_are_lines_from_their_start_to_their_end() {
        let told = |news: RunUpdate| lines(&news, session());
        let id = json!(run(1).task);
        let start = json!({
            "type": "system", "subtype": "task_started", "task_id": id, "tool_use_id": "t1",
            "description": "find callers", "task_type": "agent", "subagent_type": "Explore", "agent_name": null,
            "is_backgrounded": true, "spawn_depth": 1, "parent_task_id": null,
            "output_file": "/spill/run.output", "prompt": "Who calls step?",
        });
        assert_eq!(told(started(run(1), true)), [start]);
        let nested = RunFacts {
            starter: run(1).task.into(),
            depth: 2,
            call: String::new(),
            ..run(2)
        };
        let start = &told(started(nested, false))[0];
        assert_eq!(
            (&start["parent_task_id"], &start["spawn_depth"]),
            (&id, &json!(2))
        );
        assert_eq!(
            (&start["tool_use_id"], &start["is_backgrounded"]),
            (&Value::Null, &json!(false))
        );
        let goes_on = &told(progress(run(1), 2))[0];
        let usage = json!({"total_tokens": 100, "tool_uses": 2, "duration_ms": 50});
        assert_eq!(
            (&goes_on["subtype"], &goes_on["usage"]),
            (&json!("task_progress"), &usage)
        );
        assert_eq!(goes_on["last_tool_name"], "Grep");
        let moved = &told(detached(run(1)))[0];
        assert_eq!(
            (&moved["subtype"], &moved["patch"]),
            (&json!("task_updated"), &json!({"is_backgrounded": true}))
        );
        let ended = told(run_ended(run(1)));
        assert_eq!(ended[0]["patch"], json!({"status": "completed"}));
        let end = json!({
            "type": "system", "subtype": "task_notification", "task_id": id, "run_id": Uuid::from_u128(77),
            "tool_use_id": "t1", "status": "completed", "description": "find callers",
            "output_file": "/spill/run.output", "summary": "it found two",
            "usage": {"total_tokens": 12345, "tool_uses": 3, "duration_ms": 4210},
        });
        assert_eq!(ended[1..], [end]);
    }

    #[test]
    fn a_value_and_a_worktree_are_for_programs_too() {
        let mut news = run_ended(run(1));
        if let RunChange::Ended(end) = &mut news.what {
            end.value = Some(RawJson::from(&json!({"line": 7})));
            end.worktree = Some(WorktreeEnd {
                path: "/t/a".into(),
                branch: "posse/a".into(),
                base: "3f".into(),
                kept: Some("1 commit".into()),
            });
        }
        let told = &lines(&news, session())[1];
        assert_eq!(told["structured_output"], json!({"line": 7}));
        let worktree =
            json!({"path": "/t/a", "branch": "posse/a", "base": "3f", "kept": "1 commit"});
        assert_eq!(told["worktree"], worktree);
    }

    #[test]
    fn what_a_limit_stopped_is_not_completed() {
        for (status, word, told) in [
            (RunStatus::Partial, "partial", "stopped"),
            (RunStatus::Killed, "killed", "stopped"),
            (RunStatus::Paused, "paused", "stopped"),
            (RunStatus::Failed, "failed", "failed"),
        ] {
            let mut news = run_ended(run(1));
            if let RunChange::Ended(end) = &mut news.what {
                (end.status, end.error) = (status, Some("why".into()));
            }
            let ended = lines(&news, session());
            assert_eq!(
                (&ended[0]["patch"]["status"], &ended[1]["status"]),
                (&json!(word), &json!(told))
            );
            assert_eq!(ended[1]["error"], "why");
        }
    }
}
