//! Command lines that once ran unasked with an effect that their rules did not mean, each in a real
//! directory: options, wildcards, links, and what git can do. None is allowed any more.

use std::process::Command;

use posse_permission::{Policy, RuleList, Source, Verdict, decide};
use posse_protocol::PermissionMode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::world::World;

#[derive(Deserialize)]
struct Bypass {
    id: String,
    /// What kind of weakness it used.
    class: String,
    mode: PermissionMode,
    allow: Vec<String>,
    deny: Vec<String>,
    /// A script that makes its directory.
    setup: String,
    /// Commands; in some, calls of other tools before them.
    calls: Vec<Value>,
}

impl Bypass {
    /// Makes the directory.
    #[expect(clippy::disallowed_methods, reason = "what an attacker has left there")]
    fn prepare(&self, world: &World) {
        let made = Command::new("bash")
            .args(["-c", &self.setup])
            .current_dir(world.path("w"))
            .env("HOME", world.path("home"))
            .env("OUT", world.path("out"))
            .status();
        assert!(made.is_ok(), "{}", self.id);
    }

    /// Returns its rules; none if one of them is refused.
    fn policy(&self, world: &World) -> Option<Policy> {
        let source = Source {
            name: "bypass".into(),
            root: world.path("w"),
            cwd: world.path("w"),
            home: Some(world.path("home")),
        };
        let rules = RuleList {
            deny: self.deny.clone(),
            ask: Vec::new(),
            allow: self.allow.clone(),
        };
        let mut policy = Policy::default();
        policy.add(&source, &rules).ok().map(|_| policy)
    }

    /// Returns the verdicts on its commands.
    fn verdicts(&self, world: &World, policy: &Policy) -> Vec<Verdict> {
        let lab = world.path("").display().to_string();
        let verdict = |call: &Value| {
            let command = call.as_str().unwrap().replace("$LAB/", &lab);
            let intent = world.intent("Bash", &json!({ "command": command }));
            let workspace = &world.context.workspace;
            decide(policy, self.mode, workspace, "Bash", &intent.unwrap())
        };
        self.calls.iter().map(verdict).collect()
    }
}

// proves PE-06 (part: options; links)
// corpus C110
#[test]
fn what_once_ran_unasked_is_asked_or_denied() {
    let bypasses = include_str!("bypasses.jsonl").lines();
    // What the others do is not in their words: the sandbox holds them.
    let bypasses: Vec<Bypass> = bypasses
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|it: &Bypass| matches!(it.class.as_str(), "engine" | "links"))
        .collect();
    assert_eq!(bypasses.len(), 52);
    let mut wrong = Vec::new();
    for bypass in &bypasses {
        let world = World::in_memory();
        bypass.prepare(&world);
        let Some(policy) = bypass.policy(&world) else {
            assert_eq!(bypass.id, "any-version");
            continue;
        };
        let verdicts = bypass.verdicts(&world, &policy);
        let is_held = |verdict: &Verdict| match bypass.mode {
            // Nobody is asked.
            PermissionMode::BypassPermissions => matches!(verdict, Verdict::Deny(_)),
            _ => *verdict != Verdict::Allow,
        };
        if !verdicts.iter().any(is_held) {
            wrong.push(format!("{}: {:?} → {verdicts:?}", bypass.id, bypass.calls));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
