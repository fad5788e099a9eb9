//! Rules that are kept in one session and hold in another.

use std::fs;
use std::os::unix::fs::symlink;

use posse_port::tool::{FileGuard, Workspace};

use super::*;
use crate::config::settings::tests::Disk;
use crate::config::settings::{FlagSettings, Settings};

fn new_rules(place: RulePlace, list: &str, rule: &str) -> NewRules {
    NewRules {
        place,
        list: list.to_owned(),
        rules: vec![rule.to_owned()],
    }
}

fn workspace(cwd: &Path) -> Workspace {
    Workspace {
        cwd: cwd.to_owned(),
        roots: vec![cwd.to_owned()],
        spill: "/spill".into(),
        home: None,
        mirror: None,
        notes: None,
    }
}

// proves FC-12
#[test]
fn a_kept_rule_means_the_same_in_another_directory() {
    use RulePlace::{Local, User};
    let rules = [
        ("Read(/secrets/**)", Local),
        ("Read(/secrets/**)", User),
        ("Read(./secrets/key)", Local),
        ("Read(secrets/key)", Local),
        ("Read(key)", Local),
    ];
    let paths = [
        ("repo/sub/secrets/key", true),
        ("repo/secrets/key", false),
        ("repo/sub/deep/secrets/x", false),
        ("posse/secrets/key", false),
    ];
    for (rule, place) in rules {
        let mut disk = Disk::new();
        keep(&disk.places, &new_rules(place, "deny", rule)).unwrap();
        disk.places.cwd = disk.path("repo/sub/deep");
        let later = Settings::load(&disk.places, FlagSettings::default()).unwrap();
        for (path, expected) in paths {
            let denies = later
                .policy
                .denies_reading(&disk.path(path), &workspace(&disk.places.cwd));
            assert_eq!(denies, expected, "{rule} in {place:?}: {path}");
        }
    }
}

// proves FC-12
#[test]
fn what_is_not_a_rule_is_not_kept() {
    let disk = Disk::new();
    disk.write("posse/settings.json", "{}");
    for (list, rule) in [("allow", "Bsh(ls)"), ("allow", "*"), ("deny", "Read(/)")] {
        let error = keep(&disk.places, &new_rules(RulePlace::User, list, rule)).unwrap_err();
        assert!(matches!(error, KeepError::NoRule(_)), "{error}");
        let words = format!("`{rule}` is not a permission rule: ");
        assert!(error.to_string().starts_with(&words), "{error}");
    }
    let text = fs::read_to_string(disk.path("posse/settings.json")).unwrap();
    assert_eq!(text, "{}");
}

// proves FC-12
#[test]
fn a_settings_file_that_is_a_link_stays_one() {
    let disk = Disk::new();
    disk.write("dotfiles/settings.json", "{ /* mine */ }");
    let link = disk.path("posse/settings.json");
    symlink("middle.json", &link).unwrap();
    symlink("../dotfiles/settings.json", disk.path("posse/middle.json")).unwrap();
    keep(&disk.places, &new_rules(RulePlace::User, "allow", "Glob")).unwrap();
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("middle.json"));
    let text = fs::read_to_string(disk.path("dotfiles/settings.json")).unwrap();
    assert!(
        text.contains("/* mine */") && text.contains("Glob"),
        "{text}"
    );
    // A link to a file that does not exist yet makes it.
    fs::remove_file(disk.path("dotfiles/settings.json")).unwrap();
    keep(&disk.places, &new_rules(RulePlace::User, "allow", "Grep")).unwrap();
    let text = fs::read_to_string(disk.path("dotfiles/settings.json")).unwrap();
    assert!(text.contains("Grep"), "{text}");
}

// proves FC-12
#[test]
fn a_lock_is_waited_for_and_its_holder_is_named() {
    let disk = Disk::new();
    let new = new_rules(RulePlace::User, "allow", "Glob");
    let path = disk.path("posse/rules.lock");
    let held = lock(path.clone(), Duration::ZERO).unwrap();
    let error = keep_within(&disk.places, &new, Duration::ZERO).unwrap_err();
    let holder = format!("process {} may hold it", std::process::id());
    assert!(error.to_string().contains(&holder), "{error}");
    assert!(error.to_string().contains("rules.lock"), "{error}");
    assert!(!disk.path("posse/settings.json").exists());
    drop(held);
    keep_within(&disk.places, &new, Duration::ZERO).unwrap();
}
