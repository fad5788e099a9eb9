//! Parts of settings files that posse does not use.

use serde_json::Value;

use super::{hooks, servers};

/// Keys that posse reads in every settings file, and the name of the schema.
const COMMON: [&str; 4] = ["$schema", "env", "model", "permissions"];
/// Keys that posse reads in its own files only.
const OWN: [&str; 8] = [
    "store",
    "feedHours",
    "compactAt",
    "account",
    "agents",
    "sandbox",
    "teams",
    "ui",
];

/// What posse does not use of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Foreign {
    /// Keys that posse uses.
    pub(super) used: Vec<String>,
    /// Keys that it does not use.
    pub(super) unused: Vec<String>,
    /// True if commands must not run without a sandbox.
    pub(super) demands_sandbox: bool,
}

/// Returns what posse uses of a file, and what not. Other programs' files have keys of the same
/// name with another meaning.
pub(super) fn read(all: &Value, is_own: bool) -> Foreign {
    let keys = all.as_object().into_iter().flatten();
    let is_used = |key: &str| {
        COMMON.contains(&key)
            || hooks::KEYS.contains(&key)
            || servers::KEYS.contains(&key)
            || (is_own && OWN.contains(&key))
    };
    let mut keys: Vec<String> = keys
        .filter(|(key, value)| key.as_str() != "$schema" && !is_empty(value))
        .map(|(key, _)| key.clone())
        .collect();
    keys.sort_unstable();
    let (used, unused) = keys.into_iter().partition(|key| is_used(key));
    let sandbox = &all["sandbox"];
    Foreign {
        used,
        unused,
        demands_sandbox: sandbox["enabled"] != false && sandbox["failIfUnavailable"] == true,
    }
}

/// Returns true if a value says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(values) => values.values().all(is_empty),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_used_is_named() {
        let file = json!({
            "$schema": "x", "permissions": {"deny": ["Read(x)"]}, "env": {"A": "b"}, "hooks": {}, "teams": {"a": 1},
            "statusLine": {"type": "command"},
        });
        let foreign = read(&file, false);
        assert_eq!(foreign.used, ["env", "permissions"]);
        assert_eq!(foreign.unused, ["statusLine", "teams"]);
        assert_eq!(read(&file, true).unused, ["statusLine"]);
    }
}
