//! That nobody may do what one above may not.

mod worktree;

use super::*;
use crate::{RuleList, Source, decide};
use posse_port::tool::Subject;
use posse_protocol::QuestionKind;

use PermissionMode::{AcceptEdits, BypassPermissions, Default, DontAsk, Plan};

fn workspace(cwd: &str, roots: &[&str]) -> Workspace {
    Workspace {
        cwd: cwd.into(),
        roots: roots.iter().map(PathBuf::from).collect(),
        spill: "/spill".into(),
        home: Some("/h".into()),
        mirror: None,
        notes: None,
    }
}

fn policy(deny: &[&str], ask: &[&str], allow: &[&str]) -> Arc<Policy> {
    let source = Source {
        name: "test".into(),
        root: "/w".into(),
        cwd: "/w".into(),
        home: Some("/h".into()),
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let mut policy = Policy::default();
    policy
        .add(
            &source,
            &RuleList {
                deny: texts(deny),
                ask: texts(ask),
                allow: texts(allow),
            },
        )
        .unwrap();
    Arc::new(policy)
}

fn intent(read_only: bool, subject: Subject) -> Intent {
    Intent {
        read_only,
        beside_others: false,
        subject,
        waits: false,
        title: String::new(),
    }
}

fn edit(path: &str) -> (&'static str, Intent) {
    ("Edit", intent(false, Subject::Edits(vec![path.into()])))
}

fn runs(command: &str) -> (&'static str, Intent) {
    ("Bash", intent(false, Subject::runs(command)))
}

fn word(rights: &Rights, (tool, intent): &(&str, Intent)) -> &'static str {
    match rights.verdict(tool, intent) {
        Verdict::Allow => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}

#[test]
fn rules_that_are_added_hold_at_once_for_all() {
    let limited = {
        let mut policy = Policy::clone(&policy(&[], &[], &[]));
        policy.limit_to_tools(vec!["Bash".into()]);
        Arc::new(policy)
    };
    let root = Rights::root(Default, limited, workspace("/w", &["/w"]).into());
    let child = root.child(None, workspace("/w", &["/w"])).unwrap();
    let calls = [runs("make"), runs("rm x"), edit("/w/a")];
    let words = |agent: &Rights| calls.each_ref().map(|call| word(agent, call));
    assert_eq!(
        words(&child),
        ["ask", "ask", "deny"],
        "Edit is not a tool here"
    );
    child.add_for_session(policy(&["Bash(rm *)"], &[], &["Bash(make)", "Edit"]));
    for agent in [&root, &child] {
        assert_eq!(words(agent), ["allow", "deny", "deny"]);
    }
    root.withdraw();
    assert_eq!(word(&child, &calls[0]), "allow", "it is not a skill's");
}

// proves AD-10
#[test]
fn without_a_mode_a_child_has_its_parents() {
    let root = Rights::root(
        Default,
        policy(&[], &[], &[]),
        workspace("/w", &["/w"]).into(),
    );
    let child = root.child(None, workspace("/w", &["/w"])).unwrap();
    let grandchild = child.child(None, workspace("/w", &["/w"])).unwrap();
    let own = root
        .child(Some(AcceptEdits), workspace("/w", &["/w"]))
        .unwrap();
    let below = own.child(None, workspace("/w", &["/w"])).unwrap();
    let table = [
        (Plan, "deny", "deny"),
        (Default, "ask", "ask"),
        (AcceptEdits, "allow", "allow"),
        (DontAsk, "deny", "deny"),
        (BypassPermissions, "allow", "allow"),
    ];
    for (mode, expected, kept) in table {
        root.set_mode(mode);
        let call = edit("/w/a");
        assert_eq!(
            [&root, &child, &grandchild].map(|agent| word(agent, &call)),
            [expected; 3],
            "{mode:?}"
        );
        assert_eq!([&root, &child, &grandchild].map(Rights::mode), [mode; 3]);
        // One with a mode of its own keeps it, and hands it down.
        assert_eq!(
            [&own, &below].map(|agent| word(agent, &call)),
            [kept; 2],
            "{mode:?}"
        );
        assert_eq!(own.own_mode(), AcceptEdits);
        assert_eq!(below.own_mode(), AcceptEdits);
    }
    // What only bypassPermissions allows tells the two apart.
    assert_eq!(
        [&grandchild, &below].map(|agent| word(agent, &edit("/w/.git/x"))),
        ["allow", "deny"]
    );
    child.set_mode(Plan);
    assert_eq!(
        [&root, &child, &grandchild].map(Rights::mode),
        [BypassPermissions, Plan, Plan]
    );
}

#[test]
fn a_change_above_holds_at_once() {
    let root = Rights::root(
        AcceptEdits,
        policy(&[], &[], &[]),
        workspace("/w", &["/w"]).into(),
    );
    let same = root.child(None, workspace("/w", &["/w"])).unwrap();
    let free = same
        .child(Some(BypassPermissions), workspace("/w", &["/w"]))
        .unwrap();
    let call = edit("/w/a");
    assert_eq!(
        [&root, &same, &free].map(|rights| word(rights, &call)),
        ["allow"; 3]
    );
    root.set_mode(Plan);
    assert_eq!(
        [&root, &same, &free].map(|rights| word(rights, &call)),
        ["deny"; 3]
    );
    assert_eq!([&root, &same, &free].map(Rights::mode), [Plan; 3]);
    root.set_mode(BypassPermissions);
    assert_eq!(
        [&root, &same, &free].map(|rights| word(rights, &edit("/w/.git/x"))),
        ["allow"; 3]
    );
    same.set_mode(Default);
    assert_eq!(
        [&root, &same, &free].map(|rights| word(rights, &call)),
        ["allow", "ask", "ask"]
    );
    assert_eq!(
        [&root, &same, &free].map(Rights::mode),
        [BypassPermissions, Default, Default]
    );
}

#[test]
fn no_mode_is_stricter_in_everything_so_all_are_asked() {
    // Plan asks about what lies outside, dontAsk lets commands run that a rule allows.
    let root = Rights::root(
        DontAsk,
        policy(&[], &[], &["Bash(make *)"]),
        workspace("/w", &["/w"]).into(),
    );
    let child = root.child(Some(Plan), workspace("/w", &["/w"])).unwrap();
    let outside = (
        "Read",
        intent(true, Subject::Reads(vec!["/etc/passwd".into()])),
    );
    assert_eq!(
        [word(&root, &outside), word(&child, &outside)],
        ["deny", "deny"]
    );
    assert_eq!(
        [word(&root, &runs("make")), word(&child, &runs("make"))],
        ["allow", "deny"]
    );
}

#[test]
fn what_a_skill_grants_holds_until_it_is_taken_back_and_for_those_started_meanwhile() {
    let rules = policy(&["Bash(git push *)"], &["Bash(git commit *)"], &[]);
    let root = Rights::root(Default, rules, workspace("/w", &["/w"]).into());
    let agent = root.child(None, workspace("/w", &["/w"])).unwrap();
    let elder = agent.child(None, workspace("/w", &["/w"])).unwrap();
    let skill = || policy(&["Bash(git gc *)"], &[], &["Bash(git *)", "Bash(make *)"]);
    agent.grant(skill());
    agent.grant(skill());
    assert_eq!(
        agent.granted_rules().len(),
        1,
        "what says the same is not taken twice"
    );
    let below = agent.child(None, workspace("/w", &["/w"])).unwrap();
    assert_eq!(
        [
            word(&elder, &runs("make all")),
            word(&elder, &runs("git gc now"))
        ],
        ["ask"; 2]
    );
    let table = [
        ("git log -1", ["ask", "allow", "allow"]),
        ("make all", ["ask", "allow", "allow"]),
        // The user's own rules stay above it.
        ("git push now", ["deny", "deny", "deny"]),
        ("git commit now", ["ask", "ask", "ask"]),
        ("git gc now", ["ask", "deny", "deny"]),
    ];
    for (command, expected) in table {
        assert_eq!(
            [&root, &agent, &below].map(|who| word(who, &runs(command))),
            expected,
            "{command}"
        );
    }
    root.set_mode(Plan);
    assert_eq!(word(&agent, &runs("make all")), "deny");
    root.set_mode(Default);
    agent.withdraw();
    below.withdraw();
    assert_eq!(
        [&root, &agent, &below].map(|who| word(who, &runs("make all"))),
        ["ask", "ask", "allow"]
    );
    assert_eq!(
        [&root, &agent, &below].map(|who| word(who, &runs("git gc now"))),
        ["ask", "ask", "deny"]
    );
}

#[test]
fn roots_lie_in_those_above() {
    let root = Rights::root(
        AcceptEdits,
        policy(&[], &[], &[]),
        workspace("/w/a", &["/w"]).into(),
    );
    let child = root
        .child(None, workspace("/w/a", &["/w/a", "/w-evil", "/etc"]))
        .unwrap();
    assert_eq!(child.workspace().roots, [PathBuf::from("/w/a")]);
    assert_eq!(
        [word(&root, &edit("/w/b")), word(&child, &edit("/w/b"))],
        ["allow", "ask"]
    );
    let wrong = child.child(None, workspace("/w", &["/w"])).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "/w is outside the allowed directories: /w/a"
    );
    assert!(
        root.child(None, workspace("/etc", &["/w", "/etc"]))
            .is_err()
    );
}

#[test]
fn a_command_means_the_same_paths_to_all() {
    // Above, the same words would mean another file.
    let rules = policy(
        &["Edit(//w/sub/fixed)"],
        &[],
        &["Bash(echo *)", "Edit(//w/log)"],
    );
    let root = Rights::root(BypassPermissions, rules, workspace("/w", &["/w"]).into());
    let child = root
        .child(Some(AcceptEdits), workspace("/w/sub", &["/w"]))
        .unwrap();
    assert_eq!(
        [
            word(&root, &runs("echo > fixed")),
            word(&child, &runs("echo > fixed"))
        ],
        ["allow", "deny"]
    );
    assert_eq!(
        [
            word(&root, &runs("echo > ../log")),
            word(&child, &runs("echo > ../log"))
        ],
        ["allow", "allow"]
    );
}

#[test]
fn an_agent_reads_its_own_output() {
    let root = Rights::root(
        Default,
        policy(&[], &[], &[]),
        workspace("/w", &["/w"]).into(),
    );
    let own = Workspace {
        spill: "/spill-of-child".into(),
        ..workspace("/w", &["/w"])
    };
    let child = root.child(Some(Plan), own).unwrap();
    let read = |path: &str| ("Read", intent(true, Subject::Reads(vec![path.into()])));
    assert_eq!(word(&child, &read("/spill-of-child/a")), "allow");
    assert_eq!(word(&child, &read("/spill/a")), "ask");
}

#[test]
fn the_words_are_the_agents_own_if_it_may_not_itself() {
    let rules = policy(&[], &["Bash(git push *)"], &[]);
    let root = Rights::root(Plan, rules, workspace("/w", &["/w"]).into());
    let child = root.child(Some(Default), workspace("/w", &["/w"])).unwrap();
    let (tool, push) = runs("git push");
    let Verdict::Deny(why) = child.verdict(tool, &push) else {
        panic!("plan mode above denies it")
    };
    assert!(
        why.starts_with("plan mode is on") && why.ends_with("an agent above this one)"),
        "{why}"
    );
    root.set_mode(AcceptEdits);
    let own = "the rule `Bash(git push *)` (test) requires a person's approval";
    assert_eq!(child.verdict(tool, &push), Verdict::Ask(own.into()));
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % most as u64).unwrap()
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    fn some<'a>(&mut self, of: &[&'a str]) -> Vec<&'a str> {
        of.iter().filter(|_| self.below(4) == 0).copied().collect()
    }
}

const RULES: &[&str] = &[
    "Bash",
    "Bash(ls *)",
    "Bash(curl *)",
    "Read",
    "Read(/sub/**)",
    "Read(.env)",
    "Edit",
    "Edit(//w/sub/**)",
    "Edit(//out/**)",
    "WebFetch(domain:docs.rs)",
    "Agent(Explore)",
    "mcp__srv",
];

const ROOTS: &[&str] = &["/w", "/w/sub", "/w/sub/deep", "/w/other", "/out", "/x"];

fn calls() -> Vec<(&'static str, Intent)> {
    let paths = |path: &str| vec![PathBuf::from(path)];
    let mut calls = vec![
        (
            "WebFetch",
            intent(
                true,
                Subject::Fetches {
                    host: "docs.rs".into(),
                },
            ),
        ),
        (
            "WebFetch",
            intent(
                true,
                Subject::Fetches {
                    host: "example.com".into(),
                },
            ),
        ),
        (
            "Agent",
            intent(
                false,
                Subject::Starts {
                    agent: "Explore".into(),
                },
            ),
        ),
        ("mcp__srv__get", intent(true, Subject::Nothing)),
        (
            "AskUserQuestion",
            intent(true, Subject::Asks(QuestionKind::Choice)),
        ),
    ];
    for path in [
        "/w/a",
        "/w/sub/a",
        "/w/sub/deep/.env",
        "/w/other/a",
        "/out/a",
        "/spill/a",
        "/etc/passwd",
    ] {
        calls.push(("Read", intent(true, Subject::Reads(paths(path)))));
        calls.push(("Edit", intent(false, Subject::Edits(paths(path)))));
    }
    calls.push((
        "Edit",
        intent(false, Subject::Edits(paths("/w/sub/.git/config"))),
    ));
    calls
}

/// A tree of up to five agents in a chain of up to four below the root, with whom each was started by.
fn tree(dice: &mut Dice, policies: &[Arc<Policy>]) -> (Vec<Rights>, Vec<Option<usize>>) {
    let policy = Arc::clone(dice.one(policies));
    let root = Rights::root(
        *dice.one(&PermissionMode::ALL),
        policy,
        workspace("/w/sub/deep", &["/w", "/out"]).into(),
    );
    let (mut agents, mut above) = (vec![root], vec![None]);
    for _ in 0..1 + dice.below(4) {
        let parent = dice.below(agents.len());
        let mut roots: Vec<_> = ROOTS
            .iter()
            .filter(|_| dice.below(2) == 0)
            .copied()
            .collect();
        roots.push("/w/sub/deep");
        let mode = (dice.below(3) > 0).then(|| *dice.one(&PermissionMode::ALL));
        agents.push(
            agents[parent]
                .child(mode, workspace("/w/sub/deep", &roots))
                .unwrap(),
        );
        above.push(Some(parent));
    }
    (agents, above)
}

/// That no agent of the tree may do what one above it may not, nor the youngest what it may not itself;
/// says whether that one is held back by those above.
fn check(agents: &[Rights], above: &[Option<usize>], call: &(&str, Intent)) -> bool {
    let verdicts: Vec<u8> = agents
        .iter()
        .map(|agent| weight(&agent.verdict(call.0, &call.1)))
        .collect();
    for ((agent, verdict), parent) in agents.iter().zip(&verdicts).zip(above) {
        // The parent's verdict is checked by those above it in turn.
        let least = parent.map_or(0, |parent| verdicts[parent]);
        assert!(*verdict >= least, "{agent:#?}\n{call:?}");
    }
    let (Some(youngest), Some(verdict)) = (agents.last(), verdicts.last()) else {
        return false;
    };
    let RightsLink {
        policy, workspace, ..
    } = &*youngest.0;
    let own = weight(&decide(
        policy,
        youngest.own_mode(),
        workspace,
        call.0,
        &call.1,
    ));
    assert!(*verdict >= own, "{youngest:#?}\n{call:?}");
    *verdict > own
}

// proves PE-04 (part: mode; rules; roots; network; later changes)
// corpus C162
#[test]
fn a_child_never_has_a_right_its_parent_lacks() {
    let mut dice = Dice(4);
    let policies: Vec<_> = (0..64)
        .map(|_| {
            let (deny, ask, allow) = (dice.some(RULES), dice.some(RULES), dice.some(RULES));
            policy(&deny, &ask, &allow)
        })
        .collect();
    let calls = calls();
    let commands = ["ls", "ls; curl x", "echo > a", "cat /w/sub/deep/.env"].map(runs);
    let mut held = 0;
    for number in 0..100_000 {
        let (agents, above) = tree(&mut dice, &policies);
        for _ in 0..1 + number % 2 {
            let mode = *dice.one(&PermissionMode::ALL);
            dice.one(&agents).set_mode(mode);
            // Parsing commands takes longest.
            let call = if number % 1000 == 0 {
                dice.one(&commands)
            } else {
                dice.one(&calls)
            };
            held += usize::from(check(&agents, &above, call));
        }
    }
    assert!(
        held > 10_000,
        "the chain made a difference {held} times only"
    );
}

// proves HK-07 (part: deny rules)
#[test]
fn what_a_hook_agrees_to_is_asked_about_only_if_a_rule_says_so() {
    let rules = policy(&["Bash(rm *)"], &["Bash(git push *)"], &[]);
    let check = |command: &str, mode: PermissionMode, expected: &str| {
        let place = workspace("/w", &["/w"]).into();
        let rights = Rights::root(mode, Arc::clone(&rules), place);
        let (tool, intent) = runs(command);
        let found = match rights.verdict_agreed(tool, &intent) {
            Verdict::Allow => "allow",
            Verdict::Ask(_) => "ask",
            Verdict::Deny(_) => "deny",
        };
        assert_eq!(found, expected, "{command} {mode}");
    };
    check("make all", Default, "allow");
    check("make all", DontAsk, "allow");
    check("git push x", Default, "ask");
    check("git push x", DontAsk, "deny");
    for mode in [Default, AcceptEdits, BypassPermissions] {
        check("rm -r x", mode, "deny");
    }
    check("make all", Plan, "deny");
}
