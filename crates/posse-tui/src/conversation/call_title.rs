//! What a call does, in a line.

use std::path::Path;

use serde_json::Value;

use crate::text::one_line;

/// Inputs that say most about a call, the most telling first.
const TELLING: [&str; 9] = [
    "command",
    "file_path",
    "pattern",
    "description",
    "prompt",
    "url",
    "query",
    "skill",
    "name",
];

/// Returns what a call does, as the runtime names it while it runs. A file below `cwd` is named from
/// there.
pub fn call_title(tool: &str, input: &str, cwd: Option<&Path>) -> String {
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    let word = |key: &str| match input.get(key) {
        Some(Value::String(word)) => Some(word.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let told = match tool {
        "Bash" => word("command").map(|command| format!("$ {command}")),
        "SendMessage" => word("to").map(|to| match word("summary") {
            Some(summary) => format!("write to {to}: {summary}"),
            None => format!("write to {to}"),
        }),
        "TaskCreate" => word("subject").map(|subject| format!("new task: {subject}")),
        "TaskGet" => word("taskId").map(|id| format!("task {id}")),
        "TaskList" => Some("list tasks".to_owned()),
        "TaskUpdate" => word("taskId").map(|id| match (word("status"), word("owner")) {
            (Some(status), _) => format!("task {id}: {status}"),
            (None, Some(owner)) => format!("task {id}: owner {owner}"),
            (None, None) => format!("task {id}"),
        }),
        "TaskOutput" => word("task_id").map(|id| format!("output of {id}")),
        "TaskStop" => word("task_id").map(|id| format!("stop {id}")),
        _ => None,
    };
    let told = told.or_else(|| {
        let words = TELLING.iter().find_map(|key| word(key))?;
        let from_here = cwd.and_then(|cwd| Path::new(&words).strip_prefix(cwd).ok());
        let words = from_here.and_then(Path::to_str).unwrap_or(&words);
        Some(format!("{tool} {words}"))
    });
    let told = told.unwrap_or_else(|| tool.to_owned());
    one_line(told.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_what_it_does() {
        let check = |tool: &str, input: &str, title: &str| {
            assert_eq!(call_title(tool, input, Some(Path::new("/work"))), title);
        };
        check("Read", r#"{"file_path":"/work/src/a.rs"}"#, "Read src/a.rs");
        check(
            "Edit",
            r#"{"file_path":"/elsewhere/a"}"#,
            "Edit /elsewhere/a",
        );
        check("Bash", "{\"command\":\"ls\\n\"}", "$ ls");
        check("Grep", r#"{"pattern":"fn step"}"#, "Grep fn step");
        check(
            "TaskUpdate",
            r#"{"taskId":1,"status":"completed"}"#,
            "task 1: completed",
        );
        check(
            "SendMessage",
            r#"{"to":"dev","message":"long","summary":"short"}"#,
            "write to dev: short",
        );
        check("Wait", "{}", "Wait");
        check("Read", "broken", "Read");
    }
}
