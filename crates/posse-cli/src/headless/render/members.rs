//! Changes of team members: lines for people and for programs.

use posse_protocol::{
    AgentId, IdleReason, IdleReport, MemberChange, MemberUpdate, Task, TaskStatus,
};
use serde_json::{Value, json};

use crate::headless::runs::address;
use crate::output::one_line;
use crate::output::paint::painted;
use crate::output::transcript::shortened;
use crate::present;

/// Maximum length of an answer or a reason, in characters.
const LONGEST: usize = 120;

/// Returns the line for people. `None` for starting work, which the tasks show.
pub(crate) fn note(news: &MemberUpdate) -> Option<String> {
    let what = match &news.what {
        MemberChange::Joined {
            agent_type,
            model,
            backend,
        } => {
            let place = if backend == "in-process" {
                String::new()
            } else {
                format!(", in {backend}")
            };
            format!("joined ({agent_type}, {model}{place})")
        }
        MemberChange::Running => return None,
        MemberChange::Idle(report) => idle(report),
        MemberChange::TakenOver => {
            "continues in this process: the one that hosted it is gone".into()
        }
        MemberChange::Left => "has left".into(),
    };
    let who = painted(&format!("● {}", address(news)), &news.color);
    Some(format!("{who} {}", one_line(&what)))
}

fn idle(report: &IdleReport) -> String {
    let words = shortened(
        report.answer.split('\n').next().unwrap_or_default(),
        LONGEST,
    );
    let branch = report
        .branch
        .as_deref()
        .map(|branch| format!(" (branch {branch})"))
        .unwrap_or_default();
    let said = match (report.reason, &report.error) {
        (IdleReason::Failed, error) => {
            format!(
                "failed: {}",
                shortened(error.as_deref().unwrap_or("reason unknown"), LONGEST)
            )
        }
        (IdleReason::Interrupted, _) => "was interrupted".to_owned(),
        (IdleReason::Available, _) if words.trim().is_empty() => "idle".to_owned(),
        (IdleReason::Available, _) => format!("idle: {words}"),
    };
    format!("{said}{branch}")
}

/// Returns the line for programs.
pub(crate) fn line(agent: AgentId, news: &MemberUpdate) -> Value {
    let event = match &news.what {
        MemberChange::Joined { .. } => "joined",
        MemberChange::Running => "running",
        MemberChange::Idle(_) => "idle",
        MemberChange::TakenOver => "taken_over",
        MemberChange::Left => "left",
    };
    let mut line = json!({
        "type": "system", "subtype": "member", "event": event, "team": news.team, "name": news.name,
        "agent_id": agent, "color": news.color,
    });
    match &news.what {
        MemberChange::Joined {
            agent_type,
            model,
            backend,
        } => {
            line["agent_type"] = json!(agent_type);
            line["model"] = json!(model);
            line["backend"] = json!(backend);
        }
        MemberChange::Idle(report) => {
            line["reason"] = json!(report.reason);
            line["error"] = json!(report.error);
            line["answer"] = json!(report.answer);
            line["tasks"] = json!(report.tasks);
            line["branch"] = json!(report.branch);
        }
        MemberChange::Running | MemberChange::TakenOver | MemberChange::Left => {}
    }
    line
}

/// Returns the line for people about a changed task; `None` if it is not worth one.
pub(crate) fn task_note(task: &Task, color: Option<&str>) -> Option<String> {
    let subject = shortened(task.subject.lines().next().unwrap_or_default(), LONGEST);
    let owner = task
        .owner
        .as_ref()
        .map(|owner| painted(&owner.name, color.unwrap_or_default()));
    let what = one_line(&format!("#{} {subject}", task.id));
    match (task.status, owner) {
        (TaskStatus::InProgress, Some(owner)) => Some(format!("→ {what}: {owner}")),
        (TaskStatus::Completed, Some(owner)) => Some(format!("✓ {what} ({owner})")),
        (TaskStatus::Completed, None) => Some(format!("✓ {what}")),
        (TaskStatus::Pending, _) => {
            let lost = task.lost_by.as_ref()?;
            Some(format!(
                "↺ {what} is open again ({} had it)",
                one_line(lost)
            ))
        }
        (TaskStatus::InProgress | TaskStatus::Deleted, _) => None,
    }
}

/// Returns the line for programs about a task that has changed.
pub(crate) fn task_line(team: &str, changed: &Task) -> Value {
    json!({"type": "system", "subtype": "team_task", "team": team, "task": present::tasks::object(changed)})
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use posse_protocol::TaskReport;

    use super::*;
    use crate::headless::fixtures::{member, session};

    fn report(reason: IdleReason) -> IdleReport {
        IdleReport {
            team: "parser".parse().unwrap(),
            reason,
            error: Some("no\x1b key".into()),
            answer: "It is mended.\nAll of it.".into(),
            tasks: vec![TaskReport {
                id: posse_protocol::TaskId(2),
                subject: "mend".into(),
                status: TaskStatus::Completed,
            }],
            branch: None,
        }
    }

    #[test]
    fn members_have_lines_in_their_colour() {
        let idle = |reason| MemberChange::Idle(Box::new(report(reason)));
        let joined = MemberChange::Joined {
            agent_type: "Explore".into(),
            model: "m".into(),
            backend: "tmux".into(),
        };
        for (what, expected) in [
            (joined, Some("● dev@parser joined (Explore, m, in tmux)")),
            (MemberChange::Running, None),
            (
                idle(IdleReason::Available),
                Some("● dev@parser idle: It is mended."),
            ),
            (
                idle(IdleReason::Interrupted),
                Some("● dev@parser was interrupted"),
            ),
            (
                idle(IdleReason::Failed),
                Some("● dev@parser failed: no\\u{1b} key"),
            ),
            (
                MemberChange::TakenOver,
                Some("● dev@parser continues in this process: the one that hosted it is gone"),
            ),
            (MemberChange::Left, Some("● dev@parser has left")),
        ] {
            let note = note(&member(what));
            assert_eq!(
                note.as_deref()
                    .map(|note| strip_str(note).to_string())
                    .as_deref(),
                expected
            );
            assert!(note.is_none_or(|note| note.starts_with("\x1b[32m● dev@parser\x1b[39m")));
        }
    }

    #[test]
    fn programs_get_all_of_it() {
        let line = line(
            session(),
            &member(MemberChange::Idle(Box::new(report(IdleReason::Available)))),
        );
        let expected = json!({
            "type": "system", "subtype": "member", "event": "idle", "team": "parser", "name": "dev",
            "agent_id": session(), "color": "green", "reason": "available", "error": "no\u{1b} key",
            "answer": "It is mended.\nAll of it.", "branch": null,
            "tasks": [{"id": 2, "subject": "mend", "status": "completed"}],
        });
        assert_eq!(line, expected);
        let left = super::line(session(), &member(MemberChange::Left));
        assert_eq!((&left["event"], left.get("reason")), (&json!("left"), None));
    }
}
