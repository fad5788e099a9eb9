//! What rules say in a worktree, and what an agent may do with its notes.

use super::*;
use posse_port::tool::AgentMemory;

use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};

const HERE: &str = "/h/.posse/worktrees/w-1/a";
const DEEPER: &str = "/h/.posse/worktrees/w-1/b";

fn worktree() -> Workspace {
    workspace()
        .in_worktree(Path::new(HERE), Path::new("/w"))
        .unwrap()
}

/// A worktree that was made in the worktree.
fn nested() -> Workspace {
    worktree()
        .in_worktree(Path::new(DEEPER), Path::new(HERE))
        .unwrap()
}

fn verdict_in(workspace: &Workspace, policy: &Policy, mode: PermissionMode, text: &str) -> Verdict {
    let (tool, intent) = call(text);
    decide(policy, mode, workspace, &tool, &intent)
}

fn rules() -> Policy {
    policy(
        &[
            "Read(/secrets/**)",
            "Read(.env)",
            "Edit(/fixed)",
            "Read(*.pem)",
            "Edit(/gen/*.rs)",
        ],
        &["Edit(/ask/**)", "Read(/shy)"],
        &[
            "Edit(/src/**)",
            "Edit(//w/log)",
            "Bash(cat *)",
            "Bash(cp *)",
            "Bash(ls *)",
            "Bash(cd *)",
            "Bash(rm *)",
        ],
    )
}

#[test]
fn what_holds_in_the_checkout_holds_in_the_worktree() {
    // `@` is the top directory.
    let table = [
        ("Read @/a", "allow"),
        ("Read @/secrets/key", "deny"),
        ("Read @/SECRETS/key", "deny"),
        ("Edit @/secrets/key", "deny"),
        ("Read @/deep/.env", "deny"),
        ("Read @/shy", "ask"),
        ("Edit @/src/a.rs", "allow"),
        ("Edit @/SRC/a.rs", "ask"),
        ("Edit @/a", "ask"),
        ("Edit @/ask/a", "ask"),
        ("Edit @/fixed", "deny"),
        ("Edit @/.git/config", "deny"),
        ("Edit @/.posse/settings.json", "deny"),
        ("Bash cat secrets/key", "deny"),
        ("Bash cat @/secrets/key", "deny"),
        ("Bash cat < @/secrets/key", "deny"),
        ("Bash cat @/s*/key", "deny"),
        ("Bash cat s[e]crets/key", "deny"),
        ("Bash cat @/key.p*", "ask"),
        ("Bash cat a --file=@/.env", "deny"),
        ("Bash cd sub && cat ../secrets/key", "deny"),
        ("Bash cat @/a", "allow"),
        ("Bash ls > log", "allow"),
        ("Bash ls > @/log", "allow"),
        ("Bash ls > other", "ask"),
        ("Bash ls > fixed", "deny"),
        ("Bash ls > gen/*.rs", "deny"),
        ("Bash cp a gen/b.rs", "ask"),
        ("Bash cp a fixed", "ask"),
        ("Bash cp a b", "allow"),
        ("Bash cp a .git/x", "ask"),
        ("Bash rm -rf @", "deny"),
        ("Bash cat ../../etc/passwd", "ask"),
    ];
    let rules = rules();
    for (text, expected) in table {
        let original = text.replace('@', "/w");
        assert_eq!(
            word(&verdict(&rules, Default, &original)),
            expected,
            "{original}"
        );
        for (top, workspace) in [(HERE, worktree()), (DEEPER, nested())] {
            let text = text.replace('@', top);
            for mode in PermissionMode::ALL {
                let given = verdict_in(&workspace, &rules, mode, &text);
                let expected = verdict(&rules, mode, &original);
                assert_eq!(
                    word(&given),
                    word(&expected),
                    "{text} in {mode:?}: {given:?}"
                );
            }
        }
    }
}

#[test]
fn the_original_lies_outside() {
    let allowing = policy(
        &["Read(/secrets/**)"],
        &[],
        &[
            "Read(//w/**)",
            "Edit(//w/**)",
            "Edit(//w/log)",
            "Bash(cat *)",
            "Bash(cp *)",
            "Bash(cd *)",
        ],
    );
    let table = [
        ("Read /w/a", "ask"),
        ("Edit /w/a", "ask"),
        ("Write /w/log", "ask"),
        ("Read /w/secrets/key", "deny"),
        ("Bash cat /w/a", "ask"),
        ("Bash cat < /w/a", "ask"),
        ("Bash cat a > /w/log", "ask"),
        ("Bash cat a > log", "allow"),
        ("Bash cp a /w/b", "ask"),
        ("Bash cd /w && cat a", "ask"),
        ("Bash cat ../../../../../w/a", "ask"),
        ("Bash cat /w/secrets/key", "deny"),
        // A path of the first worktree, which the second was made from.
        ("Bash cat /h/.posse/worktrees/w-1/a/secrets/key", "deny"),
        // What could be the worktree.
        ("Bash cat /h/.posse/worktrees/w-?/*/secrets/key", "deny"),
        ("Bash cat /H/.Posse/worktrees/w-1/A/secrets/key", "deny"),
        ("Bash cat /h/.posse/worktrees/other-1/x/secrets/key", "ask"),
        ("Bash rm -rf /w", "deny"),
    ];
    for (text, expected) in table {
        for workspace in [worktree(), nested()] {
            let given = verdict_in(&workspace, &allowing, Default, text);
            assert_eq!(word(&given), expected, "{text}: {given:?}");
            let free = verdict_in(&workspace, &allowing, AcceptEdits, text);
            assert_eq!(word(&free), expected, "{text}: {free:?}");
        }
    }
    // Neither does a rule about the whole tool lead back there, nor one about all commands remove it.
    let all = policy(&[], &[], &["Edit", "Bash"]);
    assert_eq!(
        word(&verdict_in(&worktree(), &all, Default, "Edit /w/a")),
        "ask"
    );
    assert_eq!(
        word(&verdict_in(
            &worktree(),
            &all,
            Default,
            &format!("Edit {HERE}/a")
        )),
        "allow"
    );
    assert_eq!(
        word(&verdict_in(&worktree(), &all, Default, "Bash rm -rf /w")),
        "deny"
    );
}

#[test]
fn people_are_told_the_rule_that_lasts() {
    let none = Policy::default();
    let told = |text: &str| verdict_in(&nested(), &none, Default, text);
    let expected =
        "no rule allows Edit(//w/a); allow it with --allowedTools 'Edit(//w/a)'".to_owned();
    assert_eq!(told(&format!("Edit {DEEPER}/a")), Verdict::Ask(expected));
    let outside = "/w/a is outside the workspace, in the checkout that this worktree was made \
                   from; work in the worktree";
    assert_eq!(told("Edit /w/a"), Verdict::Ask(outside.into()));
}

#[test]
fn a_part_of_the_checkout_is_no_more_in_the_worktree() {
    let part = Workspace {
        cwd: "/w/sub".into(),
        roots: vec!["/w/sub".into()],
        ..workspace()
    };
    let there = part.in_worktree(Path::new(HERE), Path::new("/w")).unwrap();
    for (path, expected) in [
        ("sub/a", "allow"),
        ("a", "ask"),
        ("sub/.git/x", "deny"),
        (".git/x", "deny"),
    ] {
        let text = format!("Edit {HERE}/{path}");
        assert_eq!(
            word(&verdict_in(&there, &Policy::default(), AcceptEdits, &text)),
            expected,
            "{path}"
        );
    }
}

fn with_notes(only: bool) -> Workspace {
    let notes = AgentMemory {
        directory: "/w/.claude/agent-memory/reviewer".into(),
        only,
    };
    Workspace {
        notes: Some(notes),
        ..workspace()
    }
}

// proves AD-07 (part: written)
#[test]
fn notes_are_written_without_asking() {
    let modes = [Plan, Default, AcceptEdits, DontAsk, BypassPermissions];
    let notes = "/w/.claude/agent-memory/reviewer";
    let free = ["deny", "allow", "allow", "allow", "allow"];
    let table = [
        ("Edit @/MEMORY.md", free, free),
        ("Write @/deep/a.md", free, free),
        ("Read @/MEMORY.md", ["allow"; 5], ["allow"; 5]),
        (
            "Edit @/.git/x",
            ["deny", "deny", "deny", "deny", "allow"],
            ["deny", "deny", "deny", "deny", "allow"],
        ),
        ("Edit @/fixed.md", ["deny"; 5], ["deny"; 5]),
        (
            "Edit @/ask.md",
            ["deny", "ask", "ask", "deny", "allow"],
            ["deny", "ask", "ask", "deny", "allow"],
        ),
        (
            "Edit @-evil/a",
            ["deny", "deny", "deny", "deny", "allow"],
            ["deny"; 5],
        ),
        (
            "Edit /w/.claude/settings.json",
            ["deny", "deny", "deny", "deny", "allow"],
            ["deny"; 5],
        ),
        (
            "Edit /w/a",
            ["deny", "ask", "allow", "deny", "allow"],
            ["deny"; 5],
        ),
        (
            "Edit /w/src/a",
            ["deny", "allow", "allow", "allow", "allow"],
            ["deny"; 5],
        ),
        ("Bash cat @/MEMORY.md", ["allow"; 5], ["allow"; 5]),
        (
            "Bash make",
            ["deny", "ask", "ask", "deny", "allow"],
            ["deny", "ask", "ask", "deny", "allow"],
        ),
    ];
    let rules = policy(
        &["Edit(fixed.md)"],
        &["Edit(ask.md)"],
        &["Edit(/src/**)", "Bash(cat *)"],
    );
    for (text, expected, only) in table {
        let text = text.replace('@', notes);
        for (workspace, expected) in [(with_notes(false), expected), (with_notes(true), only)] {
            let given = modes.map(|mode| word(&verdict_in(&workspace, &rules, mode, &text)));
            assert_eq!(given, expected, "{text}");
        }
    }
    let Verdict::Deny(why) = verdict_in(&with_notes(true), &rules, AcceptEdits, "Edit /w/a") else {
        panic!("it may edit only its notes")
    };
    assert!(
        why.starts_with("an agent of this type may edit only its notes"),
        "{why}"
    );
}

#[test]
fn notes_in_the_original_are_written_from_a_worktree() {
    let own = Workspace {
        notes: with_notes(false).notes,
        ..worktree()
    };
    let given = |text: &str| word(&verdict_in(&own, &Policy::default(), DontAsk, text));
    assert_eq!(given("Edit /w/.claude/agent-memory/reviewer/a.md"), "allow");
    assert_eq!(given("Edit /w/.claude/agent-memory/other/a.md"), "deny");
    assert_eq!(given("Read /w/a"), "deny");
}

#[test]
fn a_link_out_of_the_notes_is_not_free() {
    let paths = ["/w/.claude/agent-memory/reviewer/link", "/out/a"].map(PathBuf::from);
    let intent = Intent {
        subject: Subject::Edits(paths.to_vec()),
        ..call("Edit").1
    };
    let given = |only| {
        decide(
            &Policy::default(),
            Default,
            &with_notes(only),
            "Edit",
            &intent,
        )
    };
    assert_eq!([word(&given(false)), word(&given(true))], ["ask", "deny"]);
}

#[test]
fn judging_does_not_take_long() {
    let rules = policy(&["Read(.env)"], &[], &["Bash(ls *)"]);
    let commands = [
        format!("{}ls{}", "cd a;".repeat(15), " a".repeat(3000)),
        format!("{}ls{}", "cd a;".repeat(15), " a".repeat(1000)),
        format!("ls{}", " *".repeat(4000)),
        format!("ls{}", " /h/*/*/*/*/x".repeat(700)),
        format!("ls {}", "*a".repeat(4000)),
    ];
    for command in commands {
        let begun = cpu_time();
        verdict_in(&nested(), &rules, Default, &format!("Bash {command}"));
        let start: String = command.chars().take(40).collect();
        assert!(
            cpu_time() - begun < Duration::from_secs(2),
            "{start}: {:?}",
            cpu_time() - begun
        );
    }
}
