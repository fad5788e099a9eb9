//! What posse leaves behind, and how it is removed.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::binary::Project;
use crate::cost::session;
use crate::team::{lines, refused, succeed};
use crate::terminal::Terminal;
use crate::worktrees::{IDS, commit, expected, git, repository, states, three};

/// A branch whose commits main has, and one with a commit of its own.
const MERGED: &str = "posse/0197f0aa-0004-7000-8000-000000000004";
const UNMERGED: &str = "posse/0197f0aa-0005-7000-8000-000000000005";

fn branches(project: &Project) {
    let at = project.file(".");
    git(&at, &["branch", MERGED]);
    git(&at, &["checkout", "-q", "-b", UNMERGED]);
    std::fs::write(project.file("b.txt"), "two\n").unwrap();
    commit(&at);
    git(&at, &["checkout", "-q", "main"]);
}

/// What is told of each thing: kind, id or last part of the path, and what becomes of it.
fn outcomes(told: &[Value]) -> Vec<(String, String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = |told: &Value| match told["id"].as_str() {
        Some(id) => id.to_owned(),
        None => word(&told["path"]).rsplit('/').next().unwrap().to_owned(),
    };
    let told = told.iter();
    told.map(|told| (word(&told["kind"]), name(told), word(&told["outcome"])))
        .collect()
}

// proves FC-14
#[test]
fn what_nobody_needs_is_listed_and_goes_only_with_a_yes() {
    let project = repository("clean-all");
    // First, since a start sweeps what the dead have left.
    let used = session(&project, &["hello"]);
    let (_host, [kept, left, _live]) = three(&project);
    branches(&project);
    // Output of that session, of one that is gone, and a file that was being written.
    let home = project.file("../home");
    let gone = "0197f0aa-0009-7000-8000-000000000009";
    for name in [used.as_str(), gone] {
        let spill = home.join("spill").join(name);
        std::fs::create_dir_all(&spill).unwrap();
        std::fs::write(spill.join("run.output"), "x".repeat(1000)).unwrap();
        for path in [spill.join("run.output"), spill] {
            let file = std::fs::File::open(path).unwrap();
            let old = SystemTime::now() - Duration::from_secs(2 * 24 * 3600);
            file.set_modified(old).unwrap();
        }
    }
    std::fs::write(home.join("settings.json.999999999.new"), "{").unwrap();
    let at_first = states(&project);
    let exists = |name: &str| home.join("spill").join(name).exists();

    // Nothing is old: only what holds nothing goes, of this directory.
    let told = lines(&project, &["clean", "--json"]);
    let here = |outcomes: [&str; 3]| {
        let [left, merged, unmerged] = outcomes.map(str::to_owned);
        let branch = |name: &str| name.strip_prefix("posse/").unwrap().to_owned();
        vec![
            ("worktree".to_owned(), IDS[0].to_owned(), "kept".to_owned()),
            ("worktree".to_owned(), IDS[1].to_owned(), left),
            ("worktree".to_owned(), IDS[2].to_owned(), "kept".to_owned()),
            ("branch".to_owned(), branch(MERGED), merged),
            ("branch".to_owned(), branch(UNMERGED), unmerged),
        ]
    };
    assert_eq!(outcomes(&told), here(["goes", "goes", "kept"]));
    let why = |at: usize| told[at]["why"].as_str().unwrap();
    assert_eq!(
        [why(0), why(2), why(4)],
        [
            "1 uncommitted file (new.txt)",
            "its agent runs",
            "1 commit that no other branch has"
        ]
    );
    assert_eq!(told[1]["path"], json!(left.path));
    assert!(told[1]["bytes"].as_u64().unwrap() > 0);
    let shown = succeed(&project, &["clean"]);
    for words in [
        "2 things in all: ",
        "kept: 1 session: open, or used since",
        "\nkept\n",
        "1 uncommitted file (new.txt): ",
        "its agent runs: ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("{\"kind\""), "{shown}");
    assert_eq!(states(&project), at_first, "nothing was removed");

    // Everything of all directories, also the session.
    let all = ["clean", "--all", "--older-than", "0s", "--json"];
    let would = outcomes(&lines(&project, &all));
    let done = lines(&project, &[&all[..], &["--yes"]].concat());
    let mut expected_now = here(["removed", "removed", "kept"]);
    let removed = |kind: &str, name: &str| (kind.to_owned(), name.to_owned(), "removed".to_owned());
    expected_now.push(removed("session", &used));
    expected_now.push(removed("output", gone));
    expected_now.push(removed("output", &used));
    expected_now.push(removed("file", "settings.json.999999999.new"));
    let mut told = outcomes(&done);
    told[6..8].sort();
    assert_eq!(told, expected_now);
    let names = |told: &[(String, String, String)]| {
        let mut names: Vec<String> = told.iter().map(|told| told.1.clone()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&would), names(&told), "the dry run has told of all");
    assert_eq!(states(&project), expected(&[(0, "kept"), (2, "live")]));
    let left = git(
        &project.file("."),
        &["branch", "--list", "posse/*", "--format=%(refname:short)"],
    );
    assert!(!left.contains(MERGED) && left.contains(UNMERGED), "{left}");
    assert!(kept.path.join("new.txt").exists());
    assert!(!exists(&used) && !exists(gone));
    assert_eq!(succeed(&project, &["sessions", "list", "--json"]), "");
    let again = succeed(&project, &["clean", "--all", "--older-than", "0s", "--yes"]);
    assert!(again.starts_with("there is nothing to remove\n"), "{again}");
}

// proves FC-14
#[test]
fn on_a_terminal_a_person_is_asked() {
    let project = repository("clean-asks");
    branches(&project);
    let count = || {
        git(&project.file("."), &["branch", "--list", "posse/*"])
            .lines()
            .count()
    };
    let terminal = Terminal::start(&project, "clean");
    terminal.sees("Remove these for good? [y/N]");
    assert_eq!(count(), 2);
    terminal.types(&["y", "Enter"]);
    let screen = terminal.sees("code 0");
    assert!(screen.contains("removed 1 thing"), "{screen}");
    assert_eq!(count(), 1, "the other has a commit of its own");
}

// proves FC-15
#[test]
fn the_commands_that_remove_posse_are_printed_and_not_run() {
    let project = repository("clean-uninstall");
    let (_host, [kept, ..]) = three(&project);
    refused(&project, &["uninstall"], 1, &["--print"]);
    let page = project.file("../home/.zfunc/_posse");
    std::fs::create_dir_all(page.parent().unwrap()).unwrap();
    std::fs::write(&page, "#compdef posse\n").unwrap();
    let printed = succeed(&project, &["uninstall", "--print"]);
    let home = project.file("../home").canonicalize().unwrap();
    let top = project.file("").canonicalize().unwrap();
    let branch = format!("posse/{}", IDS[0]);
    for command in [
        format!(
            "git -C {} worktree remove -f -f {}\n",
            top.display(),
            kept.path.display()
        ),
        format!("git -C {} branch -D {branch}\n", top.display()),
        "# this one holds work: 1 uncommitted file (new.txt)\n".to_owned(),
        format!("rm -rf -- {}\n", home.display()),
        format!("rm -rf -- {}\n", home.join(".zfunc/_posse").display()),
        format!("rm -rf -- {}\n", env!("CARGO_BIN_EXE_posse")),
    ] {
        assert!(printed.contains(&command), "{command}: {printed}");
    }
    assert!(kept.path.join("new.txt").exists() && page.exists() && home.join("worktrees").exists());
}
