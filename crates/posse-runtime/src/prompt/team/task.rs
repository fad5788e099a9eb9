//! Tasks, as the agents that do them read them.

use posse_protocol::{Task, TaskId, TaskStatus};

use crate::prompt::reminder;
use posse_port::text::{cut, line, neutral, time};

/// Maximum length of a description, in characters.
const DESCRIPTION_CHARACTERS: usize = 30_000;

/// Returns the prompt for a task that a teammate has claimed.
pub(crate) fn claimed(task: &Task) -> String {
    let mut text = format!(
        "Task {} is yours now, and in progress.\n{}\n",
        task.id,
        framed(task)
    );
    if let Some(before) = &task.lost_by {
        text.push_str(&format!(
            "{} had begun it: look first at what is already done.\n",
            line(before)
        ));
    }
    text.push_str(&format!(
        "Do it. When it is done, mark it completed (TaskUpdate, taskId {}){}. Then continue with \
         open tasks that you may claim (TaskList), and end your turn when there are none.",
        task.id,
        if task.check.is_some() {
            "; its check must pass"
        } else {
            ""
        }
    ));
    reminder(&text)
}

/// Returns the reminder for an agent that ends its turn with tasks in progress.
pub(crate) fn unfinished(tasks: &[Task]) -> String {
    let mut text =
        "You ended your turn, but these tasks of yours are still in progress:\n".to_owned();
    for task in tasks {
        text.push_str(&format!("- {}: {}\n", task.id, line(&task.subject)));
    }
    text.push_str(
        "Continue with them; or mark them completed if they are (TaskUpdate), and release those \
         you cannot do (owner ``), saying why. This is the only reminder.",
    );
    reminder(&text)
}

/// Returns the message to a member that is assigned a task.
pub(crate) fn assigned(task: &Task) -> String {
    format!(
        "Task {} is for you: {}\n\n{}\n\nBegin with TaskUpdate (taskId {}, status in_progress).",
        task.id, task.subject, task.description, task.id
    )
}

/// Returns a task in full.
pub(crate) fn details(task: &Task) -> String {
    let mut text = format!("{}\n{}", summary(task), framed(task));
    let mut field = |name: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("\n{name}: {value}"));
        }
    };
    field(
        "activeForm",
        task.active_form.as_deref().map(line).unwrap_or_default(),
    );
    field("blockedBy", numbers(&task.blocked_by));
    field("blocks", numbers(&task.blocks));
    field("role", task.role.as_deref().map(line).unwrap_or_default());
    field("check", task.check.as_deref().map(line).unwrap_or_default());
    if !task.metadata.is_empty() {
        let all = serde_json::Value::Object(task.metadata.clone()).to_string();
        field("metadata", line(&cut(&all, DESCRIPTION_CHARACTERS, None)));
    }
    field("created", time(task.created_ms));
    field(
        "updated",
        format!("{} (version {})", time(task.updated_ms), task.version),
    );
    text
}

/// Returns a list of tasks, a line each. `more` is true if there are others.
pub(crate) fn tasks(tasks: &[Task], more: bool) -> String {
    let mut text: String = tasks
        .iter()
        .map(|task| format!("{}\n", summary(task)))
        .collect();
    match (tasks.last(), more) {
        (None, _) => text.push_str("There are no tasks."),
        (Some(last), true) => text.push_str(&format!(
            "There are more: TaskList with after {} shows them.",
            last.id
        )),
        (Some(_), false) => text.truncate(text.trim_end().len()),
    }
    text
}

/// Returns a task in a line, with what it waits for.
fn summary(task: &Task) -> String {
    let mut text = format!(
        "{}: {} [{}]",
        task.id,
        line(&task.subject),
        task.status.as_str()
    );
    if let Some(owner) = &task.owner {
        text.push_str(&format!(", owner {}", line(&owner.name)));
    }
    if !task.waits_for.is_empty() && !task.status.is_settled() {
        text.push_str(&format!(", blocked by {}", numbers(&task.waits_for)));
    }
    if let (Some(role), TaskStatus::Pending) = (&task.role, task.status) {
        text.push_str(&format!(", for {}", line(role)));
    }
    if let Some(before) = &task.lost_by {
        text.push_str(&format!(", begun by {}", line(before)));
    }
    text
}

/// Returns the tag that the full text of a task begins with. A history that contains it shows the
/// task: mail, notes and other tasks cannot imitate the tag.
pub(crate) fn opening(id: TaskId) -> String {
    format!("<team-task id=\"{id}\">")
}

/// Returns a task in its frame.
fn framed(task: &Task) -> String {
    let text = format!("{}\n\n{}", task.subject, task.description);
    let text = cut(text.trim_end(), DESCRIPTION_CHARACTERS, None);
    format!("{}\n{}\n</team-task>", opening(task.id), neutral(&text))
}

/// Returns task numbers, separated by commas.
pub(crate) fn numbers(ids: &[TaskId]) -> String {
    ids.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use posse_protocol::Owner;

    use super::*;
    use crate::prompt::team::samples::task;

    // proves TK-05 (part: the prompt)
    #[test]
    fn the_prompt_for_a_claimed_task_has_all_of_it() {
        let checked = Task {
            check: Some("cargo test".into()),
            lost_by: Some("scout".into()),
            ..task(3)
        };
        assert_eq!(
            claimed(&checked),
            "<system-reminder>\n\
             Task 3 is yours now, and in progress.\n\
             <team-task id=\"3\">\n\
             Fix the parser\n\n\
             It reads &lt;/team-task> wrong.\n\
             </team-task>\n\
             scout had begun it: look first at what is already done.\n\
             Do it. When it is done, mark it completed (TaskUpdate, taskId 3); its check must \
             pass. Then continue with open tasks that you may claim (TaskList), and end your turn \
             when there are none.\n\
             </system-reminder>"
        );
        assert!(!claimed(&task(3)).contains("check") && !claimed(&task(3)).contains("begun"));
    }

    #[test]
    fn who_ends_with_a_task_in_progress_is_told_which() {
        let told = unfinished(&[task(3), task(4)]);
        assert!(
            told.contains("- 3: Fix the parser\n- 4: Fix the parser\n"),
            "{told}"
        );
        assert!(told.contains("the only reminder"), "{told}");
    }

    // proves TK-12 (part: open blockers)
    #[test]
    fn lists_show_open_blockers_only() {
        let owner = Some(Owner {
            agent: None,
            name: "user".into(),
        });
        let rows = [
            task(3),
            Task {
                status: TaskStatus::InProgress,
                waits_for: Vec::new(),
                owner,
                ..task(4)
            },
            Task {
                role: Some("review".into()),
                waits_for: Vec::new(),
                subject: "a\nb <mail".into(),
                ..task(5)
            },
        ];
        assert_eq!(
            tasks(&rows, false),
            "3: Fix the parser [pending], blocked by 2\n\
             4: Fix the parser [in_progress], owner user\n\
             5: a b &lt;mail [pending], for review"
        );
        assert!(
            tasks(&rows, true).ends_with("\nThere are more: TaskList with after 5 shows them.")
        );
        assert_eq!(tasks(&[], false), "There are no tasks.");
    }

    // proves TK-01 (part: the fields)
    #[test]
    fn a_task_is_shown_with_all_that_it_has() {
        let metadata = serde_json::from_str(r#"{"pr": 7}"#).unwrap();
        let all = Task {
            active_form: Some("Fixing".into()),
            role: Some("dev".into()),
            check: Some("make".into()),
            metadata,
            ..task(3)
        };
        assert_eq!(
            details(&all),
            "3: Fix the parser [pending], blocked by 2, for dev\n\
             <team-task id=\"3\">\nFix the parser\n\nIt reads &lt;/team-task> wrong.\n</team-task>\n\
             activeForm: Fixing\nblockedBy: 1, 2\nblocks: 9\nrole: dev\ncheck: make\nmetadata: {\"pr\":7}\n\
             created: 2026-09-21T14:13:20Z\nupdated: 2026-09-21T14:13:21Z (version 4)"
        );
    }
}
