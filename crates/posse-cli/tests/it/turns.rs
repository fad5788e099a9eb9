//! A script for the model that is made of calls: one reply after another, then an answer.

use serde_json::{Value, json};

/// Returns a script in which each reply makes these calls, and the last one says what the last call
/// gave.
pub(crate) fn script(replies: impl IntoIterator<Item = Vec<(String, Value)>>) -> String {
    let mut script = String::new();
    for (turn, calls) in (1..).zip(replies) {
        let calls = calls.into_iter().map(|(tool, input)| {
            let input = Value::String(input.to_string());
            format!("{{ tool = \"{tool}\", json = {input} }}")
        });
        let calls = calls.collect::<Vec<_>>().join(", ");
        script += &format!("[[rule]]\nwhen.turn = {turn}\nreply = [{calls}]\n");
    }
    script + "[[rule]]\nreply = [{ text = \"{{tool}}\" }]\n"
}

/// Returns a script that runs commands, one after another.
pub(crate) fn commands(commands: &[&str]) -> String {
    let call = |command: &&str| vec![("Bash".to_owned(), json!({ "command": command }))];
    script(commands.iter().map(call))
}
