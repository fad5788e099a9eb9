//! What entries say about signing in: the key `oauth`.

use posse_port::closest;
use posse_port::servers::SignInEntry;
use serde_json::{Map, Value, json};

use crate::definition::server::problem::ServerProblem;

/// The keys.
const KEYS: [&str; 5] = [
    "clientId",
    "clientSecret",
    "callbackPort",
    "scopes",
    "authServerMetadataUrl",
];

/// Reads the value of `oauth`. What is wrong with it is reported; the rest counts.
pub(super) fn read(value: Option<&Value>) -> (SignInEntry, Vec<ServerProblem>) {
    let mut problems = Vec::new();
    let mut entry = SignInEntry::default();
    let keys = match value {
        None | Some(Value::Null) => return (entry, problems),
        Some(Value::Object(keys)) => keys,
        Some(_) => {
            let (key, expected) = ("oauth", "an object");
            problems.push(ServerProblem::Ignored { key, expected });
            return (entry, problems);
        }
    };
    let mut ignored = |key, expected| problems.push(ServerProblem::Ignored { key, expected });
    let mut text = |key: &'static str| match keys.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if !text.trim().is_empty() => Some(text.clone()),
        Some(_) => {
            ignored(key, "a text that is not empty");
            None
        }
    };
    entry.client_id = text("clientId");
    entry.client_secret = text("clientSecret");
    entry.metadata_url = text("authServerMetadataUrl");
    if let Some(value) = keys.get("callbackPort").filter(|value| !value.is_null()) {
        let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
        entry.callback_port = port.filter(|port| *port > 0);
        if entry.callback_port.is_none() {
            ignored("callbackPort", "a port, from 1 to 65535");
        }
    }
    if let Some(value) = keys.get("scopes").filter(|value| !value.is_null()) {
        entry.scopes = scopes(value);
        if entry.scopes.is_none() {
            ignored("scopes", "a list of texts, or a text with spaces between");
        }
    }
    let unknown = keys.keys().filter(|key| !KEYS.contains(&key.as_str()));
    problems.extend(unknown.map(|key| ServerProblem::UnknownKey {
        key: key.clone(),
        closest: closest(key, &KEYS).map(str::to_owned),
    }));
    (entry, problems)
}

fn scopes(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(text.split_whitespace().map(str::to_owned).collect()),
        Value::Array(list) => {
            let texts = list.iter().map(|it| it.as_str().map(str::to_owned));
            texts.collect()
        }
        _ => None,
    }
}

/// Returns the value of `oauth` as it would be written; none if nothing is said.
pub(super) fn as_written(entry: &SignInEntry) -> Option<Value> {
    let all = [
        ("clientId", json!(entry.client_id)),
        ("clientSecret", json!(entry.client_secret)),
        ("callbackPort", json!(entry.callback_port)),
        ("scopes", json!(entry.scopes)),
        ("authServerMetadataUrl", json!(entry.metadata_url)),
    ];
    let said = all.into_iter().filter(|(_, value)| !value.is_null());
    let said: Map<String, Value> = said.map(|(key, value)| (key.to_owned(), value)).collect();
    (!said.is_empty()).then_some(Value::Object(said))
}
