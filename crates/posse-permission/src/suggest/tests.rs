//! What is offered, and that it allows no more than its text says.

mod generated;
mod never_wider;

use std::sync::Arc;

use posse_protocol::PermissionMode;

use super::*;
use crate::{Rights, Verdict};

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

fn rights(deny: &[&str], ask: &[&str], allow: &[&str]) -> Rights {
    let source = Source {
        name: "test".into(),
        root: "/w".into(),
        cwd: "/w".into(),
        home: Some("/h".into()),
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let rules = RuleList {
        deny: texts(deny),
        ask: texts(ask),
        allow: texts(allow),
    };
    let mut policy = Policy::default();
    policy.add(&source, &rules).unwrap();
    Rights::root(
        PermissionMode::Default,
        Arc::new(policy),
        workspace().into(),
    )
}

fn intent(subject: Subject) -> Intent {
    Intent {
        read_only: matches!(subject, Subject::Reads(_) | Subject::Fetches { .. }),
        beside_others: false,
        subject,
        waits: false,
        title: String::new(),
    }
}

fn suggested(rights: &Rights, tool: &str, subject: Subject) -> Vec<String> {
    let suggestions = rights.suggestions(tool, &intent(subject));
    suggestions
        .iter()
        .map(|one| one.rules.join(" + "))
        .collect()
}

// proves QU-04 (part: a command; its kind; what no rule covers)
#[test]
fn what_is_offered_for_a_command() {
    let rights = rights(&["Bash(curl *)"], &["Bash(git push *)"], &["Bash(ls *)"]);
    let table: &[(&str, &[&str])] = &[
        ("make", &["Bash(make)"]),
        ("rm 'a b' c", &["Bash(rm 'a b' c)"]),
        ("rm \"a$\" c", &["Bash(rm 'a$' c)"]),
        ("cargo test", &["Bash(cargo test)", "Bash(cargo test *)"]),
        (
            "cargo test a_b -q",
            &["Bash(cargo test a_b -q)", "Bash(cargo test *)"],
        ),
        (
            "cargo test --target-dir x",
            &["Bash(cargo test --target-dir x)"],
        ),
        (
            "timeout 9 cargo check",
            &["Bash(timeout 9 cargo check)", "Bash(cargo check *)"],
        ),
        (
            "npm run build -- -v",
            &["Bash(npm run build -- -v)", "Bash(npm run build *)"],
        ),
        ("git add src", &["Bash(git add src)", "Bash(git add *)"]),
        ("git reset --hard", &["Bash(git reset --hard)"]),
        ("find . -delete", &["Bash(find . -delete)"]),
        ("cat /etc/hosts", &["Bash(cat /etc/hosts)"]),
        // Nobody is asked.
        ("cat src/*.rs", &[]),
        ("rm *.o", &[]),
        ("python3 run.py", &["Bash(python3 run.py)"]),
        // A line: a rule for each command that is not allowed yet.
        ("ls src && make", &["Bash(make)"]),
        (
            "cargo test 2>&1 | tail -5",
            &["Bash(cargo test)", "Bash(cargo test *)"],
        ),
        ("a; b; c; d", &[]),
        // What is denied or asked about by a rule stays so.
        ("git push origin main", &[]),
        ("make && git push origin main", &[]),
        ("curl x", &[]),
        // What no rule covers soundly.
        ("posse requests answer", &[]),
        ("timeout 5 posse x", &[]),
        ("make > out", &[]),
        ("make < in", &[]),
        ("FOO=1 make", &[]),
        ("LANG=C make", &[]),
        ("make $(pwd)", &[]),
        ("make $X", &[]),
        ("cd sub && make", &[]),
        ("python3", &[]),
        ("python3 - x", &[]),
        ("make | bash", &[]),
        ("bash run.sh", &[]),
        ("make | xargs rm", &[]),
        ("sudo make", &[]),
        ("source env.sh", &[]),
        ("patch <<E\nx\nE", &[]),
        ("'A=b' c", &[]),
        ("m\u{200b}ake", &[]),
    ];
    for (command, expected) in table {
        let given = suggested(&rights, "Bash", Subject::runs(*command));
        assert_eq!(given, *expected, "{command}");
    }
}

// proves QU-04 (part: files, hosts and tools)
#[test]
fn what_is_offered_for_files_hosts_and_tools() {
    let rights = rights(&["Read(.env)"], &["Edit(/src/asked/**)"], &[]);
    let edits = |paths: &[&str]| Subject::Edits(paths.iter().map(PathBuf::from).collect());
    let reads = |path: &str| Subject::Reads(vec![path.into()]);
    let host = |host: &str| Subject::Fetches { host: host.into() };
    let connects = |host: &str, port| Subject::Connects {
        host: host.into(),
        port,
    };
    let table: &[(&str, Subject, &[&str])] = &[
        (
            "Edit",
            edits(&["/w/src/a.rs"]),
            &["Edit(//w/src/a.rs)", "Edit(//w/src/**)"],
        ),
        ("Write", edits(&["/w/a.rs"]), &["Edit(//w/a.rs)"]),
        ("Edit", edits(&["/w/.x/a"]), &["Edit(//w/.x/a)"]),
        (
            "Edit",
            edits(&["/w/l", "/o/p/x"]),
            &["Edit(//w/l) + Edit(//o/p/x)"],
        ),
        (
            "Edit",
            edits(&["/w/s/l", "/w/s/x"]),
            &["Edit(//w/s/l) + Edit(//w/s/x)", "Edit(//w/s/**)"],
        ),
        ("Edit", edits(&["/w/src/asked/a"]), &[]),
        ("Edit", edits(&["/w/src/[a].rs"]), &["Edit(//w/src/**)"]),
        ("Edit", edits(&["/w/src/a.rs "]), &["Edit(//w/src/**)"]),
        ("Edit", edits(&["/w/.git/config"]), &[]),
        (
            "Read",
            reads("/usr/lib/x/a"),
            &["Read(//usr/lib/x/a)", "Read(//usr/lib/x/**)"],
        ),
        ("Read", reads("/etc/hosts"), &["Read(//etc/hosts)"]),
        ("Read", reads("/h/a"), &["Read(//h/a)"]),
        ("Read", reads("/h/.ssh/config"), &["Read(//h/.ssh/config)"]),
        ("Read", reads("/w/.env"), &[]),
        ("Read", reads("/w/a"), &[]),
        ("WebFetch", host("docs.rs"), &["WebFetch(domain:docs.rs)"]),
        ("WebFetch", host("*.rs"), &[]),
        (
            "Connect",
            connects("index.crates.io", 443),
            &["Connect(index.crates.io)", "Connect(@crates)"],
        ),
        ("Connect", connects("docs.rs", 22), &["Connect(docs.rs:22)"]),
        ("mcp__srv__get", Subject::Nothing, &["mcp__srv__get"]),
        ("mcp__srv", Subject::Nothing, &[]),
        ("mcp__srv__g*", Subject::Nothing, &[]),
        (
            "Agent",
            Subject::Starts {
                agent: "scout".into(),
            },
            &[],
        ),
    ];
    for (tool, subject, expected) in table {
        let given = suggested(&rights, tool, subject.clone());
        assert_eq!(given, *expected, "{tool} {subject:?}");
    }
}

// proves QU-04 (part: files, hosts and tools)
#[test]
fn a_rule_for_a_worktree_names_the_checkout() {
    let top = Path::new("/h/.posse/worktrees/w-1/a");
    let worktree = workspace().in_worktree(top, Path::new("/w")).unwrap();
    let rights = rights(&[], &[], &[]).child(None, worktree).unwrap();
    let given = suggested(&rights, "Edit", Subject::Edits(vec![top.join("src/a.rs")]));
    assert_eq!(given, ["Edit(//w/src/a.rs)", "Edit(//w/src/**)"]);
}

/// An agent below one that is asked about everything is offered what settles both questions.
// proves QU-04 (part: whoever is above)
#[test]
fn a_suggestion_settles_the_whole_chain() {
    let root = rights(&[], &[], &[]);
    let child = root
        .child(Some(PermissionMode::AcceptEdits), workspace())
        .unwrap();
    let edit = intent(Subject::Edits(vec!["/w/src/a.rs".into()]));
    assert!(matches!(child.verdict("Edit", &edit), Verdict::Ask(_)));
    let suggestion = child.suggestions("Edit", &edit).remove(0);
    let rules = added(&Policy::default(), &workspace(), &suggestion).unwrap();
    child.add_for_session(Arc::new(rules));
    assert_eq!(child.verdict("Edit", &edit), Verdict::Allow);
    assert!(
        child.suggestions("Edit", &edit).is_empty(),
        "nothing is asked"
    );
    root.set_mode(PermissionMode::DontAsk);
    let other = intent(Subject::runs("make"));
    assert!(
        child.suggestions("Bash", &other).is_empty(),
        "no one is asked"
    );
}
