//! The corpus of known tricks, `corpus.jsonl`, against the rules it was written for: a workspace `/w`, a
//! home `/h`, mode `default`.

use std::path::{Path, PathBuf};

use posse_protocol::PermissionMode;
use serde::Deserialize;

use super::{Policy, RuleList, Source, Verdict, decide};
use posse_port::tool::{Intent, Subject, Workspace};

#[derive(Deserialize)]
struct Entry {
    id: String,
    tool: String,
    input: String,
    verdict: String,
}

/// Held by another room, by a test that names the entry: whoever opens the file, resolves the name,
/// starts the agent or reads the settings.
const OTHER_ROOMS: &[(&str, &str)] = &[
    ("C110", "posse-tools/tests/it/bypasses.rs"),
    ("C140", "posse-tools/tests/it/files.rs"),
    ("C145", "posse-tools/tests/it/files.rs"),
    ("C154", "posse-tools/tests/it/race.rs"),
    ("C155", "posse-tools/tests/it/files.rs"),
    ("C160", "posse-tools/tests/it/web.rs"),
    ("C162", "posse-permission/src/rights/tests.rs"),
    ("C163", "posse-protocol/src/name.rs"),
    ("C164", "posse-cli/tests/it/mcp/served.rs"),
    ("C165", "posse-cli/tests/it/mcp/served.rs"),
    ("C166", "posse-cli/src/config/settings/tests.rs"),
    ("C167", "posse-tools/tests/it/files.rs"),
];

/// Not built yet: the HTTP API.
const OPEN: &[&str] = &["C168"];

/// The rules that the corpus was written for.
pub(super) fn policy() -> Policy {
    let source = Source {
        name: "corpus".into(),
        root: "/w".into(),
        cwd: "/w".into(),
        home: Some("/h".into()),
    };
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
    let host = |host: &str| Subject::Fetches {
        host: host.to_owned(),
    };
    match entry.id.as_str() {
        _ if entry.tool == "Bash" => vec![Subject::runs(entry.input.clone())],
        "C141" => reads(&["/h/.ssh/id_rsa"]),
        "C142" => reads(&["/w/link-to-env", "/w/.env"]),
        "C143" => reads(&["/w/.ENV"]),
        "C144" => reads(&["/proc/self/environ"]),
        "C146" => edits(&["/w/.git/hooks/post-checkout"]),
        "C147" => edits(&["/w/.git"]),
        "C148" => edits(&["/w/sub/.git/config"]),
        "C149" | "C151" => edits(&["/w/.agent/settings.json"]),
        "C150" => edits(&["/w/.Agent/settings.json"]),
        "C152" => [
            ".mcp.json",
            ".vscode/settings.json",
            ".envrc",
            ".npmrc",
            ".gitmodules",
        ]
        .iter()
        .map(|name| Subject::Edits(vec![PathBuf::from("/w").join(name)]))
        .collect(),
        "C153" => edits(&["/w/linkdir/x", "/out/x"]),
        "C156" => edits(&["/w/x\0/../.git/config"]),
        "C157" => edits(&["/tmp/fixed-name.md"]),
        "C158" => vec![host("docs.python.org.evil.invalid")],
        "C159" => vec![host("evil.invalid\0.allowed.com")],
        "C161" => vec![host("denied.com")],
        other => panic!("{other} has no subject"),
    }
}

fn workspace() -> Workspace {
    Workspace {
        cwd: "/w".into(),
        roots: vec!["/w".into()],
        spill: "/spill".into(),
        home: Some("/h".into()),
        mirror: None,
        notes: None,
    }
}

/// All shell commands of the corpus.
pub(super) fn commands() -> Vec<String> {
    let entries = include_str!("corpus.jsonl").lines();
    let entries = entries.map(|line| serde_json::from_str::<Entry>(line).unwrap());
    let commands = entries.filter(|entry| entry.tool == "Bash");
    commands.map(|entry| entry.input).collect()
}

fn entries() -> impl Iterator<Item = Entry> {
    let entries = include_str!("corpus.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    entries.filter(|entry: &Entry| {
        let is_it = |(id, _): &(&str, &str)| *id == entry.id;
        !OTHER_ROOMS.iter().any(is_it) && !OPEN.contains(&&*entry.id)
    })
}

fn verdict(entry: &Entry, subject: Subject, workspace: &Workspace) -> (&'static str, String) {
    let read_only = matches!(subject, Subject::Reads(_) | Subject::Fetches { .. });
    let intent = Intent {
        read_only,
        beside_others: false,
        subject,
        waits: false,
        title: String::new(),
    };
    match decide(
        &policy(),
        PermissionMode::Default,
        workspace,
        &entry.tool,
        &intent,
    ) {
        Verdict::Allow => ("allow", String::new()),
        Verdict::Ask(why) => ("ask", why),
        Verdict::Deny(why) => ("deny", why),
    }
}

#[test]
fn the_corpus_is_answered() {
    let mut told = Vec::new();
    let mut count = OTHER_ROOMS.len();
    for entry in entries() {
        count += 1;
        for subject in subjects(&entry) {
            let (given, why) = verdict(&entry, subject, &workspace());
            let input: String = entry.input.chars().take(80).collect();
            assert!(
                given != "allow" || entry.verdict == "allow",
                "{} is allowed: {input}",
                entry.id
            );
            if given != entry.verdict {
                told.push(format!(
                    "{} {given} not {}: {input} ({why})",
                    entry.id, entry.verdict
                ));
            }
        }
    }
    assert!(told.is_empty(), "of {count}:\n{}", told.join("\n"));
    assert_eq!((count, OPEN.len()), (167, 1));
}

#[test]
fn what_other_rooms_hold_is_tested_there() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (id, file) in OTHER_ROOMS {
        let text = std::fs::read_to_string(crates.join(file)).unwrap();
        let mut lines = text.lines().map(str::trim);
        let is_named = |line: &str| line.starts_with("// corpus") && line.contains(id);
        assert!(lines.any(is_named), "{id} is not in {file}");
        let test = lines.find(|line| !line.starts_with("//"));
        assert!(
            test.is_some_and(|line| line.contains("test")),
            "{id}: {test:?}"
        );
    }
}

/// The worktree of an agent, and one that an agent in it was given.
const WORKTREES: [&str; 2] = ["/h/.posse/worktrees/w-1/a", "/h/.posse/worktrees/w-1/b"];

/// The same in the worktree: files of `/w` are those of the worktree. None if a command names `/w` itself.
fn moved(subject: &Subject, top: &Path) -> Option<Subject> {
    let all = |paths: &[PathBuf]| {
        let one = |path: &PathBuf| {
            path.strip_prefix("/w")
                .map_or(path.clone(), |inside| top.join(inside))
        };
        paths.iter().map(one).collect()
    };
    match subject {
        Subject::Runs { command, .. } => (!command.contains("/w")).then(|| subject.clone()),
        Subject::Reads(paths) => Some(Subject::Reads(all(paths))),
        Subject::Edits(paths) => Some(Subject::Edits(all(paths))),
        other => Some(other.clone()),
    }
}

#[test]
fn the_corpus_is_answered_alike_in_a_worktree() {
    let [first, second] = WORKTREES.map(Path::new);
    let worktree = workspace().in_worktree(first, Path::new("/w")).unwrap();
    let nested = worktree.in_worktree(second, first).unwrap();
    for (top, there) in [(first, &worktree), (second, &nested)] {
        let mut count = 0;
        for entry in entries() {
            for subject in subjects(&entry) {
                let Some(moved) = moved(&subject, top) else {
                    continue;
                };
                count += 1;
                let leaves =
                    matches!(&moved, Subject::Runs { command, .. } if command.contains(".."));
                let (given, why) = verdict(&entry, moved, there);
                let (expected, _) = verdict(&entry, subject, &workspace());
                // What lies around a worktree is protected.
                let stricter = leaves && (expected, given) == ("ask", "deny");
                assert!(
                    given == expected || stricter,
                    "{}: {} ({why})",
                    entry.id,
                    entry.input
                );
            }
        }
        assert!(count > 140, "{count} were compared");
    }
}
