//! The attacks of payloads.jsonl. Each must have no effect inside, and outside the effect that is
//! written down with it: else it would prove nothing.

use std::sync::Mutex;

use serde::Deserialize;

use super::scene::{Scene, User};

/// One attack.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Payload {
    pub(super) id: String,
    pub(super) command: String,
    /// A shell command that succeeds if there was an effect; or `out:` and a pattern of the output,
    /// `missing:` and a word that it must have, `GS` for what `git status` runs afterwards, or
    /// `LISTEN` for a server that can be reached from outside.
    pub(super) check: String,
    root_only: bool,
    outside_root: Outside,
    outside_user: Outside,
}

/// What an attack does outside.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Outside {
    Effect,
    None,
    /// It would harm this machine.
    #[serde(rename = "not run")]
    NotRun,
}

/// Whether attacks are run in the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundary {
    /// By the launcher alone.
    Sandbox,
    /// By an agent that may run every command and edit unasked.
    Posse(Attacker),
    None,
}

/// Whose command an attack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attacker {
    Main,
    SubAgent,
    /// The main agent's, which goes on meanwhile.
    Background,
    /// That of a sub-agent with a worktree of its own.
    Worktree,
    /// That of a teammate in a pane of tmux.
    Pane,
}

/// Attackers other than the main agent.
const OTHERS: [Attacker; 4] = [
    Attacker::SubAgent,
    Attacker::Background,
    Attacker::Worktree,
    Attacker::Pane,
];

fn payloads(user: User) -> Vec<Payload> {
    let all = include_str!("payloads.jsonl").lines();
    let all = all.map(|line| serde_json::from_str(line).unwrap());
    all.filter(|payload: &Payload| user == User::Root || !payload.root_only)
        .collect()
}

/// Runs attacks, some at once, and returns those whose effect is not the expected one.
fn wrong(
    payloads: Vec<Payload>,
    user: User,
    boundary: Boundary,
    expected: impl Fn(&Payload) -> bool + Sync,
) -> Vec<String> {
    let waiting = Mutex::new(payloads);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(payload) = waiting.lock().unwrap().pop() else {
                        return;
                    };
                    let outcome = Scene::new(&payload, user, boundary).attack();
                    if outcome.effect != expected(&payload) {
                        let line =
                            format!("{}: {} → {}", payload.id, payload.command, outcome.told);
                        wrong.lock().unwrap().push(line);
                    }
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    wrong
}

fn inside(user: User, boundary: Boundary, count: usize) {
    let Some(user) = user.possible() else { return };
    let payloads = payloads(user);
    assert_eq!(payloads.len(), count);
    let wrong = wrong(payloads, user, boundary, |_| false);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn outside(user: User) {
    let Some(user) = user.possible() else { return };
    let recorded = |payload: &Payload| match user {
        User::Root => payload.outside_root,
        User::Nobody => payload.outside_user,
    };
    let mut payloads = payloads(user);
    payloads.retain(|payload| recorded(payload) != Outside::NotRun);
    let wrong = wrong(payloads, user, Boundary::None, |payload| {
        recorded(payload) == Outside::Effect
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_attack_by_root_has_an_effect() {
    inside(User::Root, Boundary::Sandbox, 80);
}

#[test]
fn no_attack_by_an_ordinary_user_has_an_effect() {
    inside(User::Nobody, Boundary::Sandbox, 73);
}

#[test]
fn attacks_by_root_have_their_effects_outside() {
    outside(User::Root);
}

#[test]
fn attacks_by_an_ordinary_user_have_their_effects_outside() {
    outside(User::Nobody);
}

// proves PE-09 (part: attacks)
// proves PE-11 (part: attacks)
#[test]
fn no_attack_by_an_agent_of_root_has_an_effect() {
    inside(User::Root, Boundary::Posse(Attacker::Main), 80);
}

// proves PE-09 (part: attacks)
// proves PE-11 (part: attacks)
#[test]
fn no_attack_by_an_agent_of_an_ordinary_user_has_an_effect() {
    inside(User::Nobody, Boundary::Posse(Attacker::Main), 73);
}

/// Returns the attacks that say something of an attacker. In a worktree of its own it is right that
/// no commit can be made in the user's.
fn of_attacker(user: User, attacker: Attacker) -> impl Iterator<Item = Payload> {
    let all = payloads(user).into_iter();
    all.filter(move |payload| attacker != Attacker::Worktree || payload.id != "S031")
}

/// Runs attacks by others than the main agent, each by one of them.
fn by_others(user: User) {
    let Some(user) = user.possible() else { return };
    for (at, attacker) in OTHERS.into_iter().enumerate() {
        let all = of_attacker(user, attacker);
        let some: Vec<Payload> = all.skip(at).step_by(OTHERS.len()).collect();
        let wrong = wrong(some, user, Boundary::Posse(attacker), |_| false);
        assert!(wrong.is_empty(), "{attacker:?}: {}", wrong.join("\n"));
    }
}

// proves PE-09 (part: attacks)
#[test]
fn no_attack_by_others_than_the_main_agent_of_root_has_an_effect() {
    by_others(User::Root);
}

// proves PE-09 (part: attacks)
#[test]
fn no_attack_by_others_than_the_main_agent_of_an_ordinary_user_has_an_effect() {
    by_others(User::Nobody);
}

#[test]
#[ignore = "the long form: `cargo xtask faults guard`"]
fn no_attack_by_anybody_has_an_effect() {
    for attacker in OTHERS {
        for user in [User::Root, User::Nobody] {
            let Some(user) = user.possible() else {
                continue;
            };
            let all = of_attacker(user, attacker).collect();
            let wrong = wrong(all, user, Boundary::Posse(attacker), |_| false);
            assert!(wrong.is_empty(), "{attacker:?}: {}", wrong.join("\n"));
        }
    }
}
