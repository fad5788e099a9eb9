//! The corpus of known tricks, `corpus.jsonl`, against the rules it was written for: a workspace `/w`, a
//! home `/h`, mode `default`.

use std::path::PathBuf;

use posse_protocol::PermissionMode;
use serde::Deserialize;

use super::{Policy, RuleList, Source, Verdict, decide};
use crate::tool::{Intent, Subject, Workspace};

#[derive(Deserialize)]
struct Entry {
    id: String,
    tool: String,
    input: String,
    verdict: String,
}

/// Not of this room: starting agents, servers, settings, working directories, HTTP.
const OTHER_ROOMS: &[&str] = &["C162", "C163", "C164", "C165", "C166", "C167", "C168"];

/// Only whoever opens the file can tell: links, pipes, hard links, races.
const NEED_THE_DISK: &[&str] = &["C110", "C145", "C154", "C155"];

/// Asked about where the corpus wants a denial: the file and network tools refuse these themselves. An
/// entry that becomes exact must leave this list.
const INEXACT: &[&str] = &["C140", "C158", "C160"];

fn policy() -> Policy {
    let source =
        Source { name: "corpus".into(), root: "/w".into(), cwd: "/w".into(), home: Some("/h".into()) };
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let rules = RuleList {
        deny: texts(&[
            "Bash(curl *)",
            "Bash(wget *)",
            "Read(.env)",
            "Read(secrets/**)",
            "Read(~/.ssh/**)",
            "WebFetch(domain:denied.com)",
        ]),
        ask: texts(&["Bash(git push *)"]),
        allow: texts(&[
            "Bash(ls *)",
            "Bash(cat *)",
            "Bash(grep *)",
            "Bash(rg *)",
            "Bash(find *)",
            "Bash(echo *)",
            "Bash(sed -n *)",
            "Bash(git status *)",
            "Bash(git diff *)",
            "Bash(git log *)",
            "Bash(git commit *)",
            "Bash(npm test *)",
            "Bash(cargo test *)",
            "Read(//w/**)",
            "Edit(//w/**)",
            "WebFetch(domain:docs.python.org)",
            "WebFetch(domain:allowed.com)",
        ]),
    };
    let mut policy = Policy::default();
    policy.add(&source, &rules).unwrap();
    policy
}

/// What the tool would make of an entry's input, which is prose for all but Bash.
fn subjects(entry: &Entry) -> Vec<Subject> {
    let paths = |all: &[&str]| -> Vec<PathBuf> { all.iter().map(PathBuf::from).collect() };
    let reads = |all: &[&str]| vec![Subject::Reads(paths(all))];
    let edits = |all: &[&str]| vec![Subject::Edits(paths(all))];
    let host = |host: &str| Subject::Fetches { host: host.to_owned() };
    match entry.id.as_str() {
        _ if entry.tool == "Bash" => vec![Subject::Runs(entry.input.clone())],
        "C140" => reads(&["/w-evil/x"]),
        "C141" => reads(&["/h/.ssh/id_rsa"]),
        "C142" => reads(&["/w/link-to-env", "/w/.env"]),
        "C143" => reads(&["/w/.ENV"]),
        "C144" => reads(&["/proc/self/environ"]),
        "C146" => edits(&["/w/.git/hooks/post-checkout"]),
        "C147" => edits(&["/w/.git"]),
        "C148" => edits(&["/w/sub/.git/config"]),
        "C149" | "C151" => edits(&["/w/.agent/settings.json"]),
        "C150" => edits(&["/w/.Agent/settings.json"]),
        "C152" => [".mcp.json", ".vscode/settings.json", ".envrc", ".npmrc", ".gitmodules"]
            .iter()
            .map(|name| Subject::Edits(vec![PathBuf::from("/w").join(name)]))
            .collect(),
        "C153" => edits(&["/w/linkdir/x", "/out/x"]),
        "C156" => edits(&["/w/x\0/../.git/config"]),
        "C157" => edits(&["/tmp/fixed-name.md"]),
        "C158" => vec![host("docs.python.org.evil.invalid")],
        "C159" => vec![host("evil.invalid\0.allowed.com")],
        "C160" => vec![host("127.0.0.1"), host("[::ffff:127.0.0.1]"), host("169.254.169.254")],
        "C161" => vec![host("denied.com")],
        other => panic!("{other} has no subject"),
    }
}

fn verdict(entry: &Entry, subject: Subject) -> (&'static str, String) {
    let workspace = Workspace {
        cwd: "/w".into(),
        roots: vec!["/w".into()],
        spill: "/spill".into(),
        home: Some("/h".into()),
        mirror: None,
        notes: None,
    };
    let read_only = matches!(subject, Subject::Reads(_) | Subject::Fetches { .. });
    let intent = Intent { read_only, beside_others: false, subject, waits: false, title: String::new() };
    match decide(&policy(), PermissionMode::Default, &workspace, &entry.tool, &intent) {
        Verdict::Allow => ("allow", String::new()),
        Verdict::Ask(why) => ("ask", why),
        Verdict::Deny(why) => ("deny", why),
    }
}

#[test]
fn the_corpus_is_answered() {
    let mut inexact = Vec::new();
    let mut told = Vec::new();
    let mut count = 0;
    for line in include_str!("corpus.jsonl").lines() {
        let entry: Entry = serde_json::from_str(line).unwrap();
        if OTHER_ROOMS.contains(&&*entry.id) || NEED_THE_DISK.contains(&&*entry.id) {
            continue;
        }
        count += 1;
        let mut exact = true;
        for subject in subjects(&entry) {
            let (given, why) = verdict(&entry, subject);
            let input: String = entry.input.chars().take(80).collect();
            assert!(given != "allow" || entry.verdict == "allow", "{} is allowed: {input}", entry.id);
            if given != entry.verdict {
                exact = false;
                told.push(format!("{} {given} not {}: {input} ({why})", entry.id, entry.verdict));
            }
        }
        if !exact {
            inexact.push(entry.id);
        }
    }
    assert_eq!(inexact, INEXACT, "of {count}:\n{}", told.join("\n"));
}
