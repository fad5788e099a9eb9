//! What is heard, and what is said of it.

use posse_port::tool::Workspace;

use super::*;
use crate::config::search_paths::SearchPaths;
use crate::config::settings::tests::Disk;
use crate::definitions::instructions::InstructionSources;
use crate::definitions::{AgentSources, InlineAgents, Severity};

fn sources(disk: &Disk) -> AgentSources {
    AgentSources::new(disk.places.clone(), InlineAgents::default())
}

fn memory(disk: &Disk) -> InstructionSources {
    let cwd = disk.path("repo");
    let workspace = Workspace {
        cwd: cwd.clone(),
        roots: vec![cwd.clone()],
        spill: disk.path("spill"),
        home: None,
        mirror: None,
        notes: None,
    };
    let places = SearchPaths {
        cwd,
        ..disk.places.clone()
    };
    InstructionSources::new(places, Arc::default(), Arc::new(workspace))
}

fn write(disk: &Disk, name: &str, description: &str) {
    let text = format!("---\nname: {name}\ndescription: {description}\n---\nDo it.\n");
    disk.write(&format!("repo/.posse/agents/{name}.md"), &text);
}

#[test]
fn a_line_says_what_has_changed() {
    let disk = Disk::new();
    let cwd = disk.path("repo");
    for name in ["same", "tester", "old"] {
        write(&disk, name, "x");
    }
    let before = sources(&disk).load();
    assert_eq!(
        difference(("agents", "posse agents check"), &before, &before, &cwd),
        None
    );
    write(&disk, "tester", "y");
    write(&disk, "reviewer", "x");
    std::fs::remove_file(disk.path("repo/.posse/agents/old.md")).unwrap();
    disk.write(
        "repo/.posse/agents/broken.md",
        "---\nname: broken\ndescription:\n---\nx\n",
    );
    let now = sources(&disk).load();
    let line = difference(("agents", "posse agents check"), &before, &now, &cwd).unwrap();
    let start = "agents: + reviewer, ~ tester, - old; .posse/agents/broken.md:3: ";
    assert!(line.starts_with(start), "{line}");
    assert_eq!(
        difference(("agents", "posse agents check"), &now, &now, &cwd),
        None,
        "what was told is not told again"
    );
    let mut many = now.clone();
    many.remarks = (0..7)
        .map(|line| Remark {
            weight: if line == 6 {
                Severity::Note
            } else {
                Severity::Error
            },
            path: "/x.md".into(),
            line: Some(line),
            reason: "\x1b[2J".into(),
        })
        .collect();
    let line = difference(("agents", "posse agents check"), &now, &many, &cwd).unwrap();
    assert!(
        line.contains("; /x.md:4: \\u{1b}[2J; and 1 more: `posse agents check`"),
        "{line}"
    );
}

#[test]
fn what_lies_beside_is_no_change() {
    let disk = Disk::new();
    let around = WatchedPaths::of(sources(&disk).candidates());
    let concerns = |name: &str| around.concerns(&Change::At(disk.path(name)));
    for name in [
        "repo/.posse",
        "repo/.posse/agents",
        "repo/sub/.claude",
        "posse/agents",
        "home/.claude/agents",
    ] {
        assert!(concerns(name), "{name}");
    }
    for name in [
        "repo/.posse/agents/x.md",
        "repo/.posse/agents/deep/x.md",
        "dotfiles/x.md",
    ] {
        assert!(concerns(name), "{name}");
    }
    for name in [
        "repo/src.rs",
        "repo/.posse/settings.json",
        "repo/sub/x.md",
        "posse/posse.db",
        "home/x",
    ] {
        assert!(!concerns(name), "{name}");
    }
    assert!(around.concerns(&Change::Unknown));
}

/// Returns a watcher that watches nothing yet.
fn watching() -> (DirectoryWatcher, Stopper) {
    let (changes, stopper) = Changes::new().unwrap();
    (DirectoryWatcher::new(changes), stopper)
}

/// Waits until a change is heard of.
fn hears(watch: &mut DirectoryWatcher, what: &str) {
    let heard = watch.hears(Some(Duration::from_secs(20)));
    assert_eq!(heard, Some(true), "{what}");
}

/// Forgets what was heard of.
fn forget(watch: &mut DirectoryWatcher) {
    while watch.hears(Some(Duration::ZERO)) == Some(true) {}
}

/// Everything that comes, goes or is another by now is heard of: each time after it was read once.
#[test]
fn whatever_changes_after_it_was_read_is_heard() {
    let disk = Disk::new();
    let sources = sources(&disk);
    let (mut watch, _stopper) = watching();
    let agents = disk.path("repo/.posse/agents");
    let found = |watch: &mut DirectoryWatcher| watch.load(&sources).find("x").is_some();
    assert!(!found(&mut watch));
    let changes: [(&str, &dyn Fn(), bool); 7] = [
        (
            "a directory above comes",
            &|| std::fs::create_dir(disk.path("repo/.posse")).unwrap(),
            false,
        ),
        (
            "the directory comes",
            &|| std::fs::create_dir(&agents).unwrap(),
            false,
        ),
        (
            "a directory beneath comes",
            &|| std::fs::create_dir(agents.join("deep")).unwrap(),
            false,
        ),
        (
            "a file comes",
            &|| {
                disk.write(
                    "repo/.posse/agents/deep/x.md",
                    "---\nname: x\ndescription: x\n---\nx\n",
                )
            },
            true,
        ),
        (
            "all goes",
            &|| std::fs::remove_dir_all(disk.path("repo/.posse")).unwrap(),
            false,
        ),
        ("all comes at once", &|| write(&disk, "x", "x"), true),
        (
            "a file goes",
            &|| std::fs::remove_file(agents.join("x.md")).unwrap(),
            false,
        ),
    ];
    for (what, change, there) in changes {
        forget(&mut watch);
        change();
        hears(&mut watch, what);
        // More may be heard of the same change: one looks until all is there.
        let begun = Instant::now();
        while found(&mut watch) != there {
            assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        }
    }
}

// proves FC-09 (part: changes)
#[test]
fn a_file_that_is_imported_later_is_watched_from_then_on() {
    let disk = Disk::new();
    disk.write("repo/CLAUDE.md", "Use tabs.");
    disk.write("repo/notes.md", "one");
    let sources = memory(&disk);
    let (mut watch, _stopper) = watching();
    let text = |watch: &mut DirectoryWatcher, name: &str| {
        let loaded = watch.load(&sources);
        let mut found = loaded.known.iter();
        let found = found.find(|known| known.definition.path.ends_with(name));
        found.map(|found| found.definition.text.clone())
    };
    assert_eq!(text(&mut watch, "notes.md"), None);
    for (what, file, content, path, expected) in [
        (
            "an import comes",
            "CLAUDE.md",
            "@sub/../notes.md @late.md",
            "notes.md",
            "one",
        ),
        (
            "the imported file changes",
            "notes.md",
            "two",
            "notes.md",
            "two",
        ),
        ("a missing one comes", "late.md", "late", "late.md", "late"),
    ] {
        forget(&mut watch);
        disk.write(&format!("repo/{file}"), content);
        hears(&mut watch, what);
        let begun = Instant::now();
        while text(&mut watch, path).as_deref() != Some(expected) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        }
    }
}
