//! Entries, variables and precedence of declared servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_port::servers::{ServerEntry, ServerSharing, ServerTransport, SignInEntry};
use serde_json::{Value, json};

use super::*;
use crate::hook::PathStep;

fn file(source: ServerSource) -> ServerFile {
    ServerFile {
        source,
        path: PathBuf::from(source.as_str()),
        of_repository: source == ServerSource::Project,
    }
}

/// Returns the only server of an entry that is as it should be.
fn server(entry: Value) -> DeclaredServer {
    let (server, remarks) = read_entry("s", &entry, &file(ServerSource::User));
    assert_eq!(remarks, [], "{entry}");
    server.unwrap()
}

fn resolved(entry: Value, environment: &[(&str, &str)]) -> ResolvedServer {
    server(entry).resolve(&ServerVariables {
        environment: &|name| {
            let mut known = environment.iter();
            known
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        },
        checkout: Path::new("/work/tree"),
    })
}

fn words(entry: &ServerEntry) -> Vec<&str> {
    match &entry.transport {
        ServerTransport::Program { words, .. } => words.iter().map(String::as_str).collect(),
        ServerTransport::Http { .. } => panic!("{entry:?}"),
    }
}

#[test]
fn entries_say_how_a_server_is_reached() {
    let read = server(json!({
        "command": "npx", "args": ["-y", "x"], "env": {"A": "b"}, "timeout": 1500, "alwaysLoad": true,
        "shared": false,
    }));
    assert_eq!(read.call_limit, Some(Duration::from_millis(1500)));
    assert!(read.always_load && !read.is_shared && read.is_admitted());
    assert_eq!((read.title().as_str(), read.kind()), ("npx -y x", "stdio"));
    for kind in ["http", "streamable-http"] {
        let read = server(json!({"type": kind, "url": "https://x/mcp", "headers": {"A": "b"}}));
        assert_eq!(
            (read.title().as_str(), read.kind()),
            ("https://x/mcp", "http")
        );
        assert!(!read.always_load && read.is_shared);
    }
    // It reads what it writes.
    let read = server(json!({"type": "stdio", "command": "a", "timeout": 2000, "shared": false}));
    assert_eq!(server(read.entry()), read);
}

// proves MC-01 (part: broken)
#[test]
fn what_is_wrong_with_an_entry_is_told_and_the_others_count() {
    let key = |key: &str| PathStep::Key(key.to_owned());
    let all = json!({
        "good": {"command": "a"},
        "bad name": {"command": "a"},
        "late": {"url": "https://x/mcp"},
        "old": {"type": "sse", "url": "https://x/sse"},
        "odd": {"type": "pipe"},
        "empty": {},
        "text": "a",
        "number": {"command": 3},
        "args": {"command": "a", "args": "b"},
        "env": {"command": "a", "env": {"A": 1}},
        "ftp": {"type": "http", "url": "ftp://x"},
        "short": {"command": "a", "timeout": 10, "alwaysLoad": "yes", "argz": []},
        "oauth": {"type": "http", "url": "https://x", "oauth": {"clientId": "x", "callbackPort": 0, "scope": "a"}, "command": "b"},
    });
    let read = read(&all, &file(ServerSource::User));
    let names: Vec<&str> = read.servers.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["good", "short", "oauth"]);
    let remarks = read
        .remarks
        .iter()
        .map(|it| (it.path.clone(), it.what.to_string()));
    let remarks: Vec<(Vec<PathStep>, String)> = remarks.collect();
    let expected = [
        (
            &["bad name"][..],
            "`bad name` cannot be the name of a server: use letters, digits, `_` and `-`",
        ),
        (
            &["late", "url"],
            "`url` needs a `type`: add `\"type\": \"http\"`",
        ),
        (
            &["old", "type"],
            "`sse` is not supported; many servers have streamable HTTP as well: try `\"type\": \"http\"` with the address that their documentation gives for it",
        ),
        (
            &["odd", "type"],
            "`pipe` is not a kind of server; there are stdio and http",
        ),
        (&["empty"], "`command` is missing"),
        (&["text", "text"], "`text` must be an object"),
        (
            &["number", "command"],
            "`command` must be a text that is not empty",
        ),
        (&["args", "args"], "`args` must be a list of texts"),
        (&["env", "env"], "`env` must be an object of texts"),
        (
            &["ftp", "url"],
            "`url` must be an address that begins with http:// or https://",
        ),
        (
            &["short", "argz"],
            "`argz` is not known and ignored (did you mean `args`?)",
        ),
        (
            &["short", "timeout"],
            "`timeout` must be a whole number of milliseconds, at least 1000; it is ignored",
        ),
        (
            &["short", "alwaysLoad"],
            "`alwaysLoad` must be true or false; it is ignored",
        ),
        (
            &["oauth", "oauth"],
            "`callbackPort` must be a port, from 1 to 65535; it is ignored",
        ),
        (
            &["oauth", "oauth"],
            "`scope` is not known and ignored (did you mean `scopes`?)",
        ),
        (&["oauth", "command"], "`command` is not known and ignored"),
    ];
    let expected =
        expected.map(|(path, what)| (path.iter().map(|it| key(it)).collect(), what.to_owned()));
    assert_eq!(remarks, expected);
    let notes = read.remarks.iter().filter(|it| it.what.is_note()).count();
    assert_eq!(notes, 6);
}

// proves MC-01 (part: expansion)
#[test]
fn variables_are_replaced_once_and_unset_ones_stay() {
    let entry = json!({
        "command": "${BIN:-npx}", "args": ["${A}", "x${A}y${B:-}z", "${C}", "${}", "$A", "${D:-${A}}", "${1}", "${"],
        "env": {"ROOT": "${CLAUDE_PROJECT_DIR}/x", "TREE": "${POSSE_WORKTREE:-no}"},
    });
    let found = resolved(entry, &[("A", "one"), ("E", "${A}")]);
    // A default ends at the first brace.
    let expected = [
        "npx", "one", "xoneyz", "${C}", "${}", "$A", "${A}", "${1}", "${",
    ];
    assert_eq!(words(&found.entry), expected);
    assert_eq!(found.unset, ["C"]);
    let ServerTransport::Program { variables, .. } = &found.entry.transport else {
        panic!("{found:?}");
    };
    let expected = [("ROOT", "/work/tree/x"), ("TREE", "/work/tree")];
    assert_eq!(
        *variables,
        expected.map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
    let sign_in = json!({
        "clientId": "p", "clientSecret": "${E}", "callbackPort": 4000, "scopes": ["a", "b"],
        "authServerMetadataUrl": "${BASE}/about",
    });
    let entry = json!({
        "type": "http", "url": "${BASE}/mcp", "headers": {"X": "${E}"}, "oauth": sign_in,
    });
    assert_eq!(server(entry.clone()).entry(), entry);
    let found = resolved(entry, &[("BASE", "https://x"), ("E", "${A}")]);
    let expected = ServerTransport::Http {
        url: "https://x/mcp".into(),
        headers: vec![("X".into(), "${A}".into())],
        sign_in: SignInEntry {
            client_id: Some("p".into()),
            client_secret: Some("${A}".into()),
            callback_port: Some(4000),
            scopes: Some(vec!["a".into(), "b".into()]),
            metadata_url: Some("https://x/about".into()),
        },
    };
    // A secret is not printed by accident.
    let printed = format!("{expected:?}");
    assert!(
        printed.contains("about") && printed.matches("${A}").count() == 1,
        "{printed}"
    );
    assert_eq!((found.entry.transport, found.unset), (expected, Vec::new()));
}

#[test]
fn an_entry_tells_who_may_share_its_server() {
    let check = |entry: Value, sharing, names_worktree| {
        let server = server(entry.clone());
        assert_eq!(server.names_worktree(), names_worktree, "{entry}");
        assert_eq!(
            resolved(entry.clone(), &[]).entry.sharing,
            sharing,
            "{entry}"
        );
    };
    let (process, session) = (ServerSharing::Process, ServerSharing::Session);
    check(
        json!({"command": "a", "env": {"PATH": "x"}}),
        process,
        false,
    );
    check(
        json!({"command": "a", "env": {"API_KEY": "x"}}),
        session,
        false,
    );
    check(
        json!({"command": "a", "args": ["--auth=${GH_TOKEN}"]}),
        session,
        false,
    );
    check(
        json!({"command": "a", "args": ["${POSSE_WORKTREE}"]}),
        process,
        true,
    );
    check(json!({"command": "${CLAUDE_PROJECT_DIR}/a"}), process, true);
    check(
        json!({"command": "a", "args": ["CLAUDE_PROJECT_DIR"]}),
        process,
        false,
    );
    let headers = json!({"type": "http", "url": "https://x", "headers": {"Authorization": "x"}});
    check(headers, session, false);
    check(
        json!({"type": "http", "url": "https://u:p@x"}),
        session,
        false,
    );
    let own = json!({"command": "a", "shared": false, "env": {"API_KEY": "x"}});
    check(own, ServerSharing::Agent, false);
}

#[test]
fn what_a_person_accepts_is_what_an_entry_does() {
    let content = |entry: Value| server(entry).content();
    let one = content(json!({"command": "a", "env": {"A": "1", "B": "${X}"}}));
    let same = json!({"env": {"B": "${X}", "A": "1"}, "args": [], "type": "stdio", "command": "a"});
    assert_eq!(one, content(same));
    for other in [
        json!({"command": "b", "env": {"A": "1", "B": "${X}"}}),
        json!({"command": "a", "args": [""], "env": {"A": "1", "B": "${X}"}}),
        json!({"command": "a", "env": {"A": "1", "B": "${Y}"}}),
        json!({"command": "a", "env": {"A": "1", "B": "${X}"}, "alwaysLoad": true}),
        json!({"type": "http", "url": "http://a"}),
    ] {
        assert_ne!(one, content(other));
    }
    let other = read_entry("t", &json!({"command": "a"}), &file(ServerSource::User)).0;
    assert_ne!(other.unwrap().content(), content(json!({"command": "a"})));
}

/// Returns the set of servers that all run a program named after their source.
fn set(declared: &[(ServerSource, &str)], policy: ServerPolicy) -> ServerSet {
    let declared = declared.iter().map(|(source, name)| {
        let entry = json!({"command": source.as_str()});
        read_entry(name, &entry, &file(*source)).0.unwrap()
    });
    ServerSet::new(declared.collect(), policy, BTreeMap::new(), Path::new("/w"))
}

fn titles(set: &ServerSet) -> Vec<(String, String)> {
    let all = set.active();
    all.map(|it| (it.name.clone(), it.title())).collect()
}

// proves MC-01 (part: order)
#[test]
fn the_whole_entry_of_the_highest_source_counts() {
    use ServerSource::{Flag, Local, Managed, Plugin, Project, User};
    let sources = [Managed, Flag, Local, Project, User, Plugin];
    for from in 0..sources.len() {
        // The order in which they are read does not matter.
        let mut declared: Vec<_> = sources[from..].iter().map(|it| (*it, "a")).collect();
        let middle = declared.len() / 2;
        declared.rotate_left(middle);
        let set = set(&declared, ServerPolicy::default());
        let expected = ("a".to_owned(), sources[from].as_str().to_owned());
        assert_eq!(titles(&set), [expected]);
        let overridden = set.overridden().iter().map(|it| it.origin.source);
        assert_eq!(overridden.collect::<Vec<_>>(), sources[from + 1..]);
    }
}

#[test]
fn what_may_not_start_does_not_stand_in_the_way() {
    let mut waiting = read_entry(
        "a",
        &json!({"command": "new"}),
        &file(ServerSource::Project),
    )
    .0
    .unwrap();
    waiting.admission = ServerAdmission::Waits { why: "new".into() };
    let own = read_entry("a", &json!({"command": "own"}), &file(ServerSource::User)).0;
    let declared = vec![waiting.clone(), own.unwrap()];
    let (policy, place) = (ServerPolicy::default(), Path::new("/w"));
    let set = ServerSet::new(declared, policy.clone(), BTreeMap::new(), place);
    assert_eq!(titles(&set), [("a".to_owned(), "own".to_owned())]);
    let set = ServerSet::new(vec![waiting], policy, BTreeMap::new(), place);
    assert_eq!((set.all().count(), set.active().count()), (1, 0));
}

fn patterns(list: Value) -> Vec<ServerPattern> {
    let list = list.as_array().unwrap().iter();
    list.map(|it| ServerPattern::read(it).unwrap()).collect()
}

// proves MC-01 (part: allow and deny)
#[test]
fn settings_allow_and_deny_servers() {
    use ServerSource::{Managed, User};
    let declared = [(Managed, "m"), (User, "a"), (User, "b")];
    let check = |allowed: Option<Value>, denied: Value, expected: &[&str]| {
        let policy = ServerPolicy {
            allowed: allowed.clone().map(patterns),
            denied: patterns(denied.clone()),
        };
        let set = set(&declared, policy);
        let names: Vec<&str> = set.active().map(|it| it.name.as_str()).collect();
        assert_eq!(names, expected, "{allowed:?} {denied}");
    };
    check(None, json!([]), &["a", "b", "m"]);
    // The administrator's own need not be allowed.
    check(Some(json!([])), json!([]), &["m"]);
    check(Some(json!([{"serverName": "a"}])), json!([]), &["a", "m"]);
    check(
        Some(json!([{"serverName": "a"}])),
        json!([{"serverName": "a"}]),
        &["m"],
    );
    check(None, json!([{"serverCommand": ["user"]}]), &["m"]);
    check(
        None,
        json!([{"serverCommand": ["user", "x"]}]),
        &["a", "b", "m"],
    );
    check(None, json!([{"serverName": "m"}]), &["a", "b"]);
    // A name alone is not enough where commands are listed.
    let both = json!([{"serverName": "a"}, {"serverCommand": ["other"]}]);
    check(Some(both), json!([]), &["m"]);
    let both = json!([{"serverName": "a"}, {"serverUrl": "https://x/*"}]);
    check(Some(both), json!([]), &["a", "m"]);
    for wrong in [
        json!("a"),
        json!({}),
        json!({"serverName": 1}),
        json!({"serverCommand": []}),
        json!({"serverCommand": [1]}),
        json!({"serverName": "a", "serverUrl": "b"}),
    ] {
        ServerPattern::read(&wrong).unwrap_err();
    }
}

#[test]
fn a_command_is_denied_by_what_it_comes_to() {
    let policy = ServerPolicy {
        allowed: None,
        denied: patterns(json!([
            {"serverCommand": ["npx", "evil"]}, {"serverUrl": "https://*.evil.org/*"},
        ])),
    };
    let entries = json!({
        "a": {"command": "${RUN:-npx}", "args": ["${WHAT}"]},
        "b": {"type": "http", "url": "https://x.${HOST:-evil.org}/mcp"},
        "c": {"command": "npx", "args": ["good"]},
    });
    let declared = read(&entries, &file(ServerSource::User)).servers;
    let environment = BTreeMap::from([("WHAT".to_owned(), "evil".to_owned())]);
    let set = ServerSet::new(declared, policy, environment, Path::new("/w"));
    let names: Vec<&str> = set.active().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["c"]);
    let why = ServerAdmission::Refused {
        why: "deniedMcpServers of the settings names it".into(),
    };
    assert_eq!(set.find("a").unwrap().admission, why);
}
