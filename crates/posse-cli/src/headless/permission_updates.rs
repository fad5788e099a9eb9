//! What an approval changes besides the call that was asked about: `updatedPermissions`.

use posse_protocol::{Command, PermissionMode, Suggestion};
use serde_json::{Value, json};

use crate::config::kept_rules::{NewRules, RulePlace};

/// What an answer changes for the rest of the session.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PermissionUpdates {
    /// What the agent is told.
    pub(crate) commands: Vec<Command>,
    /// What holds in later sessions, too.
    pub(crate) kept: Vec<NewRules>,
    /// What cannot be changed, a line each.
    pub(crate) refused: Vec<String>,
}

impl PermissionUpdates {
    /// Parses the updates of an answer that allows the call.
    pub(crate) fn read(response: &Value) -> Self {
        let mut updates = Self::default();
        if response["behavior"] == "allow" {
            let given = response["updatedPermissions"].as_array();
            given.into_iter().flatten().for_each(|it| updates.add(it));
        }
        updates
    }

    /// Takes the mode that it sets, for an approved plan: it holds from the approval on, not before.
    /// A plan's approval cannot choose `bypassPermissions`, which stays an update of its own.
    pub(crate) fn take_mode(&mut self) -> Option<PermissionMode> {
        let sets = |command: &Command| match command {
            Command::SetMode(PermissionMode::BypassPermissions) => None,
            Command::SetMode(mode) => Some(*mode),
            _ => None,
        };
        let mode = self.commands.iter().rev().find_map(sets);
        self.commands.retain(|command| sets(command).is_none());
        mode
    }

    /// Adds one update.
    fn add(&mut self, update: &Value) {
        let kind = update["type"].as_str().unwrap_or_default();
        let command = match kind {
            "addRules" => rules(update),
            "setMode" => mode(update),
            _ => None,
        };
        let Some(command) = command else {
            let line = format!("updatedPermissions: not supported: {update}");
            return self.refused.push(line);
        };
        self.keep(update, &command);
        self.commands.push(command);
    }

    /// Notes where an update shall be kept.
    fn keep(&mut self, update: &Value, command: &Command) {
        let place = match update["destination"].as_str() {
            None | Some("session" | "cliArg") => return,
            Some("userSettings") => Some(RulePlace::User),
            Some("localSettings") => Some(RulePlace::Local),
            Some(_) => None,
        };
        match (place, command) {
            (Some(place), Command::AddRules { allow, ask, deny }) => {
                let lists = [("allow", allow), ("ask", ask), ("deny", deny)];
                let given = lists.into_iter().filter(|(_, rules)| !rules.is_empty());
                self.kept.extend(given.map(|(list, rules)| NewRules {
                    place,
                    list: list.to_owned(),
                    rules: rules.clone(),
                }));
            }
            _ => {
                let (kind, to) = (&update["type"], &update["destination"]);
                self.refused.push(format!(
                    "updatedPermissions: {kind} holds in this session and is not written to {to}; add it \
                     to that file yourself, or keep a rule in localSettings"
                ));
            }
        }
    }
}

/// Returns suggestions as the updates that would accept them. They hold in this session: a program
/// that sends them back unread keeps nothing in a file.
pub(crate) fn suggested(suggestions: &[Suggestion]) -> Vec<Value> {
    let rule = |rule: &String| match rule.strip_suffix(')').and_then(|it| it.split_once('(')) {
        Some((tool, content)) => json!({"toolName": tool, "ruleContent": content}),
        None => json!({"toolName": rule}),
    };
    let update = |suggestion: &Suggestion| {
        let rules: Vec<Value> = suggestion.rules.iter().map(rule).collect();
        json!({"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"})
    };
    suggestions.iter().map(update).collect()
}

/// Returns the rules that an update adds.
fn rules(update: &Value) -> Option<Command> {
    let rule = |rule: &Value| {
        let tool = rule["toolName"].as_str()?;
        Some(match rule["ruleContent"].as_str() {
            Some(content) => format!("{tool}({content})"),
            None => tool.to_owned(),
        })
    };
    let rules: Option<Vec<String>> = update["rules"].as_array()?.iter().map(rule).collect();
    let (mut allow, mut ask, mut deny) = (Vec::new(), Vec::new(), Vec::new());
    match update["behavior"].as_str()? {
        "allow" => allow = rules?,
        "ask" => ask = rules?,
        "deny" => deny = rules?,
        _ => return None,
    }
    Some(Command::AddRules { allow, ask, deny })
}

/// Returns the mode that an update sets.
fn mode(update: &Value) -> Option<Command> {
    let mode = update["mode"].as_str()?.parse::<PermissionMode>().ok()?;
    Some(Command::SetMode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves QU-07 (part: lines of a program)
    #[test]
    fn a_suggestion_is_the_update_that_accepts_it() {
        let rules = ["Bash(git push (x) *)", "mcp__a__b", "Edit(//w/a b)"].map(String::from);
        let suggestion = |rules: &[String]| Suggestion {
            rules: rules.to_vec(),
        };
        let updates = suggested(&[suggestion(&rules[..2]), suggestion(&rules[2..])]);
        assert_eq!(updates[1]["rules"][0]["ruleContent"], "//w/a b");
        let response = json!({"behavior": "allow", "updatedPermissions": updates});
        let read = PermissionUpdates::read(&response);
        let added = |allow: &[String]| Command::AddRules {
            allow: allow.to_vec(),
            ask: Vec::new(),
            deny: Vec::new(),
        };
        assert_eq!(read.commands, [added(&rules[..2]), added(&rules[2..])]);
        assert_eq!((read.kept, read.refused), (Vec::new(), Vec::new()));
    }

    #[test]
    fn rules_and_modes_are_read_and_the_rest_is_told() {
        let updates = json!([
            {"type": "addRules", "behavior": "allow", "destination": "session",
             "rules": [{"toolName": "Bash", "ruleContent": "git push *"}, {"toolName": "Edit"}]},
            {"type": "setMode", "mode": "acceptEdits", "destination": "localSettings"},
            {"type": "addDirectories", "directories": ["/x"]},
            {"type": "addRules", "behavior": "deny", "destination": "localSettings", "rules": [{"toolName": "Bash"}]},
            {"type": "addRules", "behavior": "ask", "destination": "projectSettings", "rules": [{"toolName": "Read"}]},
        ]);
        let read = |behavior: &str| {
            let response = json!({"behavior": behavior, "updatedPermissions": updates});
            PermissionUpdates::read(&response)
        };
        let PermissionUpdates {
            commands,
            kept,
            refused,
        } = read("allow");
        let rules = Command::AddRules {
            allow: vec!["Bash(git push *)".into(), "Edit".into()],
            ask: Vec::new(),
            deny: Vec::new(),
        };
        let mode = Command::SetMode(PermissionMode::AcceptEdits);
        assert_eq!(commands[..2], [rules, mode]);
        assert_eq!(commands.len(), 4, "all hold in this session");
        let denied = NewRules {
            place: RulePlace::Local,
            list: "deny".into(),
            rules: vec!["Bash".into()],
        };
        assert_eq!(kept, [denied]);
        assert!(refused[0].contains(r#"not written to "localSettings""#));
        assert!(refused[1].contains("addDirectories"));
        assert!(refused[2].contains(r#"not written to "projectSettings""#));
        assert_eq!(read("deny"), PermissionUpdates::default());
        let mut approval = read("allow");
        assert_eq!(approval.take_mode(), Some(PermissionMode::AcceptEdits));
        assert_eq!((approval.take_mode(), approval.commands.len()), (None, 3));
    }
}
