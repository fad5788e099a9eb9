//! Where commands run, by mode, rules and who agreed.

use std::path::Path;

use posse_port::confinement::{FileAccess, Tier};

use super::*;
use crate::{RuleList, Source};

fn workspace(cwd: &str) -> Workspace {
    Workspace {
        cwd: cwd.into(),
        roots: vec![cwd.into()],
        spill: "/spill".into(),
        home: Some("/h".into()),
        mirror: None,
        notes: None,
    }
}

fn policy(allow: &[&str]) -> Arc<Policy> {
    let source = Source {
        name: "a test".into(),
        root: "/w".into(),
        cwd: "/w".into(),
        home: Some("/h".into()),
    };
    let mut policy = Policy::default();
    let rules = RuleList {
        allow: allow.iter().map(|rule| (*rule).to_owned()).collect(),
        ..RuleList::default()
    };
    policy.add(&source, &rules).unwrap();
    Arc::new(policy)
}

fn rights(mode: PermissionMode, allow: &[&str]) -> Rights {
    Rights::root(mode, policy(allow), Arc::new(workspace("/w")))
}

fn bounds_of(place: Where) -> Confinement {
    match place {
        Where::Within { bounds, .. } => Confinement::clone(&bounds),
        Where::Outside => panic!("outside"),
    }
}

fn can_write(rights: &Rights, consent: &Consent, path: &str) -> bool {
    let place = rights.place(&Subject::runs("make"), consent);
    bounds_of(place).access(Path::new(path)) == FileAccess::Write
}

// proves PE-10
#[test]
fn a_mode_and_who_agreed_decide_what_is_writable() {
    use PermissionMode as Mode;
    for (mode, allow, consent, inside, beside) in [
        (Mode::Plan, &[][..], Consent::Rules, false, false),
        (Mode::Plan, &["Bash"], Consent::Person, false, false),
        (Mode::Default, &[], Consent::Rules, false, false),
        (Mode::Default, &["Bash(ls *)"], Consent::Rules, false, false),
        (Mode::Default, &["Bash(make)"], Consent::Rules, true, false),
        (Mode::Default, &[], Consent::Person, true, false),
        (Mode::DontAsk, &[], Consent::Rules, false, false),
        (Mode::DontAsk, &["Bash(make)"], Consent::Rules, true, false),
        (Mode::AcceptEdits, &[], Consent::Rules, true, false),
        (Mode::BypassPermissions, &[], Consent::Rules, true, true),
        (
            Mode::Default,
            &["Edit(//else/**)"],
            Consent::Rules,
            false,
            true,
        ),
        (
            Mode::Plan,
            &["Edit(//else/**)"],
            Consent::Rules,
            false,
            false,
        ),
    ] {
        let rights = rights(mode, allow);
        let what = format!("{mode} {allow:?} {consent:?}");
        assert_eq!(can_write(&rights, &consent, "/w/a"), inside, "{what}");
        assert_eq!(can_write(&rights, &consent, "/else/a"), beside, "{what}");
    }
}

// proves PE-12 (part: once)
#[test]
fn what_a_person_lifts_is_lifted_for_one_run_and_not_in_plan_mode() {
    let refusal = SandboxRefusal {
        write: vec!["/else".into()],
        read: vec!["/h/.netrc".into()],
        network: true,
    };
    let again = Consent::Again(refusal);
    let rights_ = rights(PermissionMode::Default, &[]);
    let place = rights_.place(&Subject::runs("make"), &again);
    let Where::Within {
        bounds,
        unasked,
        opened,
    } = place
    else {
        panic!("outside")
    };
    assert_eq!(bounds.access(Path::new("/else/a")), FileAccess::Write);
    assert_eq!(bounds.network, NetworkAccess::All);
    assert_eq!(opened, [PathBuf::from("/else"), "/h/.netrc".into()]);
    assert!(unasked, "what rules ask about stays closed");
    assert!(!can_write(&rights_, &Consent::Person, "/else/a"));
    let plan = rights(PermissionMode::Plan, &[]);
    let bounds = bounds_of(plan.place(&Subject::runs("make"), &again));
    let nothing = Confinement {
        network: NetworkAccess::Hosts,
        ..Confinement::default()
    };
    assert_eq!(bounds, nothing);
}

// proves PE-15
#[test]
fn a_rule_about_a_host_holds_whatever_mode_and_person_say() {
    let rights_ = rights(PermissionMode::BypassPermissions, &[]);
    let of = |consent: &Consent| bounds_of(rights_.place(&Subject::runs("make"), consent)).network;
    let refusal = SandboxRefusal {
        network: true,
        ..SandboxRefusal::default()
    };
    assert_eq!(rights_.liftable(refusal.clone()), Some(refusal.clone()));
    assert_eq!(of(&Consent::Rules), NetworkAccess::All);
    let source = Source {
        name: "a test".into(),
        root: "/w".into(),
        cwd: "/w".into(),
        home: None,
    };
    let mut policy = Policy::default();
    let deny = vec!["Connect(evil.test)".to_owned()];
    let rules = RuleList {
        deny,
        ..RuleList::default()
    };
    policy.add(&source, &rules).unwrap();
    rights_.add_for_session(Arc::new(policy));
    assert_eq!(of(&Consent::Rules), NetworkAccess::Hosts);
    assert_eq!(of(&Consent::Again(refusal.clone())), NetworkAccess::Hosts);
    assert_eq!(rights_.liftable(refusal), None);
}

// proves PE-15
#[test]
fn a_child_is_held_to_its_parents_bounds_also_when_they_narrow_later() {
    let lead = rights(PermissionMode::AcceptEdits, &[]);
    let child = lead
        .child(Some(PermissionMode::BypassPermissions), workspace("/w/sub"))
        .unwrap();
    let of = |rights: &Rights| bounds_of(rights.place(&Subject::runs("make"), &Consent::Rules));
    assert!(can_write(&child, &Consent::Rules, "/w/sub/a"));
    assert!(!can_write(&child, &Consent::Rules, "/else/a"));
    assert!(of(&child).is_within(&of(&lead)));
    for mode in [PermissionMode::Default, PermissionMode::Plan] {
        lead.set_mode(mode);
        assert!(!can_write(&child, &Consent::Rules, "/w/sub/a"), "{mode}");
        assert!(of(&child).is_within(&of(&lead)), "{mode}");
    }
    // A person's yes does not lift the plan mode of an agent above.
    assert!(!can_write(&child, &Consent::Person, "/w/sub/a"));
}

// proves PE-15
#[test]
fn children_are_within_their_parents_in_random_trees() {
    let mut seed = 0x5eed_u64;
    let mut number = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let subject = Subject::runs("make");
    for _ in 0..20_000 {
        let mut chain = vec![rights(PermissionMode::ALL[number(5)], &[])];
        for depth in 0..number(4) {
            let mode = [None, Some(PermissionMode::ALL[number(5)])][number(2)];
            let cwd = ["/w", "/w/a", "/w/a/b", "/w/b"][number(4)];
            let child = chain[depth].child(mode, workspace(cwd));
            let Ok(child) = child else { break };
            chain.push(child);
        }
        let narrowed = number(chain.len());
        chain[narrowed].set_mode(PermissionMode::ALL[number(5)]);
        let bounds = chain
            .iter()
            .map(|rights| bounds_of(rights.place(&subject, &Consent::Rules)))
            .collect::<Vec<_>>();
        for pair in bounds.windows(2) {
            assert!(pair[1].is_within(&pair[0]), "{bounds:?}");
        }
    }
}

#[test]
fn a_command_is_outside_only_by_a_rule_or_a_person() {
    let wants = Subject::Runs {
        command: "docker build .".into(),
        disk: posse_port::tool::CommandDisk::default(),
        tier: Tier::B,
        is_held: false,
        outside: true,
    };
    let plain = Subject::runs("docker build .");
    let rule = &["Outside(docker *)"][..];
    for (mode, allow, subject, consent, outside) in [
        (
            PermissionMode::Default,
            &[][..],
            &wants,
            Consent::Rules,
            false,
        ),
        (PermissionMode::Default, &[], &wants, Consent::Person, true),
        (
            PermissionMode::Default,
            &["Bash"],
            &wants,
            Consent::Rules,
            false,
        ),
        (PermissionMode::Default, rule, &plain, Consent::Rules, true),
        (
            PermissionMode::BypassPermissions,
            &[],
            &wants,
            Consent::Rules,
            false,
        ),
        (PermissionMode::Plan, rule, &wants, Consent::Person, false),
        (
            PermissionMode::Default,
            rule,
            &Subject::runs("ls"),
            Consent::Rules,
            false,
        ),
        (
            PermissionMode::Default,
            rule,
            &Subject::runs("docker ps; rm x"),
            Consent::Rules,
            false,
        ),
    ] {
        let place = rights(mode, allow).place(subject, &consent);
        assert_eq!(
            place == Where::Outside,
            outside,
            "{mode} {allow:?} {subject:?} {consent:?}"
        );
    }
}

#[test]
fn what_would_lift_a_refusal_is_suggested() {
    let suggested = |refusal: SandboxRefusal| {
        let intent = Intent {
            read_only: false,
            beside_others: false,
            subject: Subject::runs("cargo build"),
            waits: false,
            title: String::new(),
        };
        let rights = rights(PermissionMode::Default, &[]);
        let found = rights.wider_suggestions("Bash", &intent, &refusal);
        found
            .into_iter()
            .map(|it| it.rules.join(" "))
            .collect::<Vec<_>>()
    };
    let write = |path: &str| SandboxRefusal {
        write: vec![path.into()],
        ..SandboxRefusal::default()
    };
    let inside = suggested(write("/w/target"));
    assert_eq!(inside.first().unwrap(), "Bash(cargo build)");
    assert_eq!(inside.last().unwrap(), "Outside(cargo build)");
    assert_eq!(
        suggested(write("/c/registry")),
        ["Edit(//c/registry/**)", "Outside(cargo build)"]
    );
    let network = SandboxRefusal {
        network: true,
        ..SandboxRefusal::default()
    };
    assert_eq!(suggested(network), ["Outside(cargo build)"]);
}

#[test]
fn rules_about_all_edits_hold_for_commands() {
    let rights_with = |deny: &[&str], ask: &[&str]| {
        let source = Source {
            name: "a test".into(),
            root: "/w".into(),
            cwd: "/w".into(),
            home: None,
        };
        let list = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
        let rules = RuleList {
            deny: list(deny),
            ask: list(ask),
            allow: Vec::new(),
        };
        let mut policy = Policy::default();
        policy.add(&source, &rules).unwrap();
        let workspace = Arc::new(workspace("/w"));
        Rights::root(PermissionMode::AcceptEdits, Arc::new(policy), workspace)
    };
    let denied = rights_with(&["Edit"], &[]);
    assert!(!can_write(&denied, &Consent::Person, "/w/a"));
    let asked = rights_with(&[], &["Write"]);
    assert!(!can_write(&asked, &Consent::Rules, "/w/a"));
    assert!(can_write(&asked, &Consent::Person, "/w/a"));
}

#[test]
fn nothing_is_outside_where_all_is_kept_inside() {
    let mut policy = Policy::clone(&policy(&["Outside(docker *)"]));
    policy.keep_inside();
    let workspace = Arc::new(workspace("/w"));
    let rights = Rights::root(PermissionMode::Default, Arc::new(policy), workspace);
    for consent in [Consent::Rules, Consent::Person] {
        let wants = Subject::Runs {
            command: "docker build .".into(),
            disk: posse_port::tool::CommandDisk::default(),
            tier: Tier::B,
            is_held: false,
            outside: true,
        };
        assert_ne!(rights.place(&wants, &consent), Where::Outside);
    }
}

// proves PE-13 (part: stored)
#[test]
fn the_tier_of_a_command_is_what_holds_it_where_it_runs() {
    let runs = |tier, outside| Subject::Runs {
        command: "docker build .".into(),
        disk: posse_port::tool::CommandDisk::default(),
        tier,
        is_held: false,
        outside,
    };
    let network = || {
        Consent::Again(SandboxRefusal {
            network: true,
            ..SandboxRefusal::default()
        })
    };
    let rights = rights(PermissionMode::Default, &[]);
    for (subject, consent, held) in [
        (runs(Tier::A, false), Consent::Rules, Some(Tier::A)),
        (runs(Tier::A, true), Consent::Rules, Some(Tier::A)),
        (runs(Tier::A, true), Consent::Person, Some(Tier::C)),
        (runs(Tier::A, false), network(), Some(Tier::A)),
        (runs(Tier::B, false), Consent::Person, Some(Tier::B)),
        // It cannot open the network and keep sockets of other programs closed.
        (runs(Tier::B, false), network(), Some(Tier::C)),
        (Subject::Nothing, Consent::Rules, None),
    ] {
        assert_eq!(
            rights.tier(&subject, &consent),
            held,
            "{subject:?} {consent:?}"
        );
    }
}
