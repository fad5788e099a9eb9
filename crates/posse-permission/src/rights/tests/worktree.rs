//! The chain of rights when an agent works in a worktree, or has notes.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use posse_port::tool::AgentMemory;

const FIRST: &str = "/h/.posse/worktrees/w-1/a";
const SECOND: &str = "/h/.posse/worktrees/w-1/b";

fn worktree_of(rights: &Rights, top: &str, origin: &str) -> Workspace {
    rights
        .workspace()
        .in_worktree(Path::new(top), Path::new(origin))
        .unwrap()
}

fn root(mode: PermissionMode, policy: Arc<Policy>, roots: &[&str]) -> Rights {
    Rights::root(mode, policy, workspace(roots[0], roots).into())
}

#[test]
fn those_above_are_judged_as_if_they_worked_there() {
    let rules = policy(&["Read(/secrets/**)"], &[], &["Bash(ls *)"]);
    let root = root(AcceptEdits, rules, &["/w", "/extra"]);
    let first = root.child(None, worktree_of(&root, FIRST, "/w")).unwrap();
    let second = first
        .child(None, worktree_of(&first, SECOND, FIRST))
        .unwrap();
    // One below that works in the same worktree.
    let beside = second
        .child(
            None,
            second.workspace().below(Path::new(SECOND).join("sub")),
        )
        .unwrap();
    for (agent, top) in [(&first, FIRST), (&second, SECOND), (&beside, SECOND)] {
        let at = |path: &str| edit(&format!("{top}/{path}"));
        assert_eq!(agent.workspace().roots, [PathBuf::from(top)]);
        assert_eq!(word(agent, &at("a")), "allow");
        assert_eq!(word(agent, &at("secrets/a")), "deny");
        assert_eq!(word(agent, &at(".git/x")), "deny");
        assert_eq!(word(agent, &edit("/w/a")), "ask");
        assert_eq!(word(agent, &edit("/extra/a")), "ask");
        assert_eq!(word(agent, &runs("ls")), "allow");
        assert_eq!(word(agent, &runs("ls /w")), "ask");
    }
    assert_eq!(
        word(&second, &edit(&format!("{FIRST}/a"))),
        "deny",
        "beneath .posse, and not its own"
    );
    root.set_mode(Plan);
    assert_eq!(word(&beside, &edit(&format!("{SECOND}/a"))), "deny");
}

#[test]
fn a_part_above_is_a_part_there() {
    let root = root(AcceptEdits, policy(&[], &[], &[]), &["/w"]);
    let part = root.child(None, workspace("/w/sub", &["/w/sub"])).unwrap();
    let there = part.child(None, worktree_of(&part, FIRST, "/w")).unwrap();
    assert_eq!(there.workspace().roots, [Path::new(FIRST).join("sub")]);
    assert_eq!(there.workspace().cwd, Path::new(FIRST).join("sub"));
    assert_eq!(word(&there, &edit(&format!("{FIRST}/sub/a"))), "allow");
    assert_eq!(word(&there, &edit(&format!("{FIRST}/a"))), "ask");
    // Whoever makes up roots does not get them.
    let wide = Workspace {
        roots: vec![FIRST.into(), "/w".into()],
        ..worktree_of(&part, FIRST, "/w")
    };
    let wrong = part.child(None, wide).unwrap_err();
    assert_eq!(wrong.roots, [Path::new(FIRST).join("sub")]);
}

#[test]
fn one_above_that_is_asked_more_is_asked_there_too() {
    let root = root(Default, policy(&[], &[], &["Edit(/src/**)"]), &["/w"]);
    let there = root
        .child(Some(BypassPermissions), worktree_of(&root, FIRST, "/w"))
        .unwrap();
    assert_eq!(word(&there, &edit(&format!("{FIRST}/src/a"))), "allow");
    assert_eq!(word(&there, &edit(&format!("{FIRST}/a"))), "ask");
    assert_eq!(word(&there, &edit("/w/src/a")), "ask");
}

#[test]
fn notes_need_no_root_above_but_no_rule_and_no_plan_against_them() {
    let rules = policy(&["Edit(//h/.posse/agent-memory/x/fixed)"], &[], &[]);
    let root = root(Default, rules, &["/w"]);
    let notes = |only| {
        Some(AgentMemory {
            directory: "/h/.posse/agent-memory/x".into(),
            only,
        })
    };
    let own = Workspace {
        notes: notes(false),
        ..worktree_of(&root, FIRST, "/w")
    };
    let agent = root.child(Some(DontAsk), own).unwrap();
    let note = edit("/h/.posse/agent-memory/x/a.md");
    assert_eq!(word(&agent, &note), "allow");
    assert_eq!(
        word(&agent, &edit("/h/.posse/agent-memory/x/fixed")),
        "deny"
    );
    assert_eq!(word(&agent, &edit("/h/.posse/agent-memory/y/a.md")), "deny");
    // They are its own: neither those above nor those below it have them.
    let below = agent
        .child(None, agent.workspace().below(FIRST.into()))
        .unwrap();
    let deeper = agent
        .child(None, worktree_of(&agent, SECOND, FIRST))
        .unwrap();
    assert_eq!(
        [&root, &below, &deeper].map(|agent| word(agent, &note)),
        ["deny"; 3]
    );
    root.set_mode(Plan);
    assert_eq!(word(&agent, &note), "deny");

    root.set_mode(BypassPermissions);
    let only = root
        .child(
            None,
            Workspace {
                notes: notes(true),
                ..workspace("/w", &["/w"])
            },
        )
        .unwrap();
    assert_eq!(
        [word(&only, &note), word(&only, &edit("/w/a"))],
        ["allow", "deny"]
    );
    // What it may not edit itself, an agent of another type may that it starts.
    let other = only
        .child(None, only.workspace().below("/w".into()))
        .unwrap();
    assert_eq!(word(&other, &edit("/w/a")), "allow");
}

/// Paths in and around the worktrees.
fn paths() -> impl Strategy<Value = PathBuf> {
    let starts = [
        "/",
        "/w",
        "/w-evil",
        "/h",
        "/extra",
        "/h/.posse/worktrees/w-1",
        FIRST,
        SECOND,
        "/notes",
    ];
    let names = [
        "w", "src", "log", "sub", "a", "b", "A", ".git", ".env", "extra", "secrets",
    ];
    let inside = proptest::collection::vec(proptest::sample::select(names.to_vec()), 0..4);
    (proptest::sample::select(starts.to_vec()), inside).prop_map(|(start, inside)| {
        inside
            .iter()
            .fold(PathBuf::from(start), |path, name| path.join(name))
    })
}

fn rules() -> impl Strategy<Value = Vec<&'static str>> {
    let all = [
        "Read(//w/**)",
        "Edit(//w/**)",
        "Edit(/src/**)",
        "Edit(log)",
        "Edit(/log)",
        "Edit(./sub)",
        "Bash(echo *)",
        "Bash(cp *)",
    ];
    proptest::sample::subsequence(all.to_vec(), 0..=all.len())
}

fn modes() -> impl Strategy<Value = PermissionMode> {
    proptest::sample::select(PermissionMode::ALL.to_vec())
}

proptest! {
    #[test]
    fn nothing_outside_is_free_to_edit(
        path in paths(),
        allow in rules(),
        top in modes(),
        own in proptest::option::of(modes()),
        nests in any::<bool>(),
    ) {
        prop_assume!(top != BypassPermissions);
        let session = root(top, policy(&[], &[], &allow), &["/w", "/extra"]);
        let first = session.child(own, worktree_of(&session, FIRST, "/w")).unwrap();
        let (here, mut own_place) = match nests {
            true => (SECOND, worktree_of(&first, SECOND, FIRST)),
            false => (FIRST, Workspace::clone(first.workspace())),
        };
        own_place.notes = Some(AgentMemory { directory: "/notes".into(), only: false });
        let agent = first.child(own, own_place).unwrap();
        let inside = path.starts_with(here) || path.starts_with("/notes");
        let path = path.display();
        for call in [edit(&path.to_string()), runs(&format!("echo > {path}")), runs(&format!("cp x {path}"))] {
            prop_assert!(inside || word(&agent, &call) != "allow", "{:?}", call);
        }
    }
}
