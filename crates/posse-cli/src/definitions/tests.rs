//! Definitions on a disk.

use std::fs;
use std::os::unix::fs::symlink;

use posse_runtime::definition::agent_type::MemoryScope;

use super::*;
use crate::config::settings::tests::Disk;
use crate::config::trust::Trust;

fn text(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\nDo it.\n")
}

fn load(disk: &Disk) -> DefinitionSet {
    AgentSources::new(disk.places.clone(), InlineAgents::default()).load()
}

/// Returns what counts: name and description of all that are not posse's own.
fn counts(loaded: &DefinitionSet) -> Vec<(&str, &str)> {
    let own = |known: &&DefinitionEntry| known.source != DefinitionSource::BuiltIn;
    loaded
        .known
        .iter()
        .filter(own)
        .map(|known| {
            (
                known.definition.name.as_str(),
                known.definition.description.as_str(),
            )
        })
        .collect()
}

/// Returns what is said, with paths as seen from the disk's root.
fn said(disk: &Disk, loaded: &DefinitionSet) -> Vec<String> {
    let root = disk.path("");
    let line = |remark: &Remark| format!("{}: {}", remark.weight.as_str(), remark.in_a_line(&root));
    loaded.remarks.iter().map(line).collect()
}

// proves AD-02 (part: managed settings; --agents; project; user; built-in)
#[test]
fn of_several_with_one_name_the_highest_counts() {
    let disk = Disk::new();
    let places = [
        "agents",
        "repo/sub/.posse/agents",
        "repo/sub/.claude/agents",
        "repo/.posse/agents",
        "repo/.claude/agents",
        "posse/agents",
        "home/.claude/agents",
    ];
    for place in places {
        // Case does not tell two apart.
        let name = if place == "agents" {
            "Explore"
        } else {
            "explore"
        };
        disk.write(&format!("{place}/deep/er/x.md"), &text(name, place));
    }
    let given =
        InlineAgents::read(r#"{"EXPLORE": {"description": "--agents", "prompt": "Do it."}}"#)
            .unwrap();
    let sources = AgentSources::new(disk.places.clone(), given);
    let mut order = vec!["agents", "--agents"];
    order.extend(&places[1..]);
    for (at, highest) in order.iter().enumerate() {
        let loaded = sources.load();
        // The flag cannot be taken away, so it is left out with what is above it.
        let loaded = if at > 1 { load(&disk) } else { loaded };
        assert_eq!(
            loaded.find("explore").unwrap().definition.description,
            *highest
        );
        let below: Vec<&str> = loaded
            .shadowed
            .iter()
            .filter(|known| known.source != DefinitionSource::BuiltIn)
            .map(|known| known.definition.description.as_str())
            .collect();
        assert_eq!(below[..order.len() - at - 1], order[at + 1..], "{highest}");
        let _ = fs::remove_dir_all(disk.path(highest));
    }
    assert_eq!(
        load(&disk).find("eXplore").unwrap().source,
        DefinitionSource::BuiltIn
    );
}

// proves AD-02 (part: project)
// proves FC-01 (part: definitions)
#[test]
fn a_repository_replaces_what_the_user_or_posse_defines_only_if_it_is_trusted() {
    let mut disk = Disk::new();
    disk.write("posse/agents/mine.md", &text("mine", "the user's"));
    for place in ["repo/sub/.posse/agents", "repo/.claude/agents"] {
        disk.write(&format!("{place}/x.md"), &text("explore", place));
        disk.write(&format!("{place}/m.md"), &text("Mine", place));
        disk.write(&format!("{place}/t.md"), &text("theirs", place));
    }
    let source = |loaded: &DefinitionSet, name: &str| loaded.find(name).map(|it| it.source);
    let names = ["Explore", "mine", "theirs"];
    let trusted = load(&disk);
    for name in names {
        assert_eq!(source(&trusted, name), Some(DefinitionSource::Project));
        let near = "repo/sub/.posse/agents";
        assert_eq!(trusted.find(name).unwrap().definition.description, near);
    }
    disk.places.trust = Trust::nothing(&disk.places.cwd);
    let untrusted = load(&disk);
    let sources = names.map(|name| source(&untrusted, name));
    let own = [DefinitionSource::BuiltIn, DefinitionSource::User].map(Some);
    assert_eq!(sources, [own[0], own[1], None]);
    assert_eq!(said(&disk, &untrusted), Vec::<String>::new());
    assert_eq!(disk.places.trust.waiting().len(), 6);
}

// proves TS-03 (part: definitions)
#[test]
fn what_has_changed_since_it_was_trusted_waits_and_is_told() {
    let mut disk = Disk::new();
    disk.write("repo/.posse/agents/same.md", &text("same", "as it was"));
    disk.write(
        "repo/.posse/agents/explore.md",
        &text("explore", "as it was"),
    );
    let before = Trust::everything(&disk.places.cwd);
    disk.places.trust = before.clone();
    assert_eq!(counts(&load(&disk)).len(), 2);
    let files = before.looked().into_iter();
    let files = files.map(|it| {
        (
            it.path.to_str().unwrap().to_owned(),
            it.fingerprint.unwrap(),
        )
    });
    disk.places.trust = Trust::seen(&disk.places.cwd, files.collect());
    assert_eq!(counts(&load(&disk)).len(), 2);
    disk.write(
        "repo/.posse/agents/explore.md",
        &text("explore", "otherwise"),
    );
    disk.write("repo/.posse/agents/new.md", &text("new", "x"));
    let loaded = load(&disk);
    assert_eq!(counts(&loaded), [("same", "as it was")]);
    let waits = "not used: it is new or has changed since this workspace was trusted; `posse trust` \
                 shows it";
    let expected =
        ["explore", "new"].map(|it| format!("warning: repo/.posse/agents/{it}.md: {waits}"));
    assert_eq!(said(&disk, &loaded), expected);
}

// proves AD-02 (part: project)
#[test]
fn a_project_ends_at_its_root_and_is_never_the_users_home() {
    let disk = Disk::new();
    for place in ["", "repo/", "repo/sub/", "repo/sub/deep/"] {
        disk.write(
            &format!("{place}.claude/agents/{}.md", place.len()),
            &text(&format!("a{}", place.len()), "x"),
        );
    }
    assert_eq!(counts(&load(&disk)), [("a5", "x"), ("a9", "x")]);
    // Without a repository it is the working directory alone.
    fs::remove_dir_all(disk.path("repo/.git")).unwrap();
    assert_eq!(counts(&load(&disk)), [("a9", "x")]);
    // A home that is a repository, with a project beneath.
    let mut places = disk.places.clone();
    fs::create_dir_all(disk.path("home/.git")).unwrap();
    fs::create_dir_all(disk.path("home/project")).unwrap();
    symlink(disk.path("home"), disk.path("link")).unwrap();
    disk.write("home/.claude/agents/mine.md", &text("mine", "x"));
    disk.write(
        "home/project/.claude/agents/theirs.md",
        &text("theirs", "x"),
    );
    (places.cwd, places.home) = (disk.path("home/project"), Some(disk.path("link")));
    let loaded = AgentSources::new(places, InlineAgents::default()).load();
    let source = |name: &str| loaded.find(name).unwrap().source;
    assert_eq!(
        (source("mine"), source("theirs")),
        (DefinitionSource::User, DefinitionSource::Project)
    );
}

// proves AD-05
#[test]
fn what_is_broken_is_told_and_the_others_load() {
    let disk = Disk::new();
    disk.write("repo/.claude/agents/a.md", &text("first", "a"));
    disk.write(
        "repo/.claude/agents/b.md",
        &format!("\n{}", text("FIRST", "b")),
    );
    disk.write(
        "repo/.claude/agents/c.md",
        "---\nname: c\ndescription: c\nmaxTurns: many\n---\nDo it.\n",
    );
    disk.write("repo/.claude/agents/d.md", "---\nname: d\n");
    disk.write("repo/.claude/agents/README.md", "# Our agents\n");
    disk.write("repo/.claude/agents/.hidden.md", "---\nname: ?\n---\n");
    disk.write("repo/.claude/agents/notes.txt", "---\nname: ?\n---\n");
    disk.write("repo/.claude/agents/z/last.md", &text("last", "z"));
    fs::write(
        disk.path("repo/.claude/agents/e.md"),
        b"---\nname: e\ndescription: \xff\n---\nx\n",
    )
    .unwrap();
    let loaded = load(&disk);
    assert_eq!(counts(&loaded), [("first", "a"), ("last", "z")]);
    let said = said(&disk, &loaded);
    let expected = [
        ("b.md:3", "a.md already defines a FIRST"),
        ("c.md:4", "`maxTurns` must be a whole number"),
        ("d.md:", ""),
        ("e.md:3", "it is not all UTF-8"),
    ];
    // Files that cannot be read at all are found first.
    for (place, reason) in expected {
        let start = format!("error: repo/.claude/agents/{place}");
        assert!(
            said.iter()
                .any(|line| line.starts_with(&start) && line.contains(reason)),
            "{said:#?}"
        );
    }
    assert_eq!(said.len(), expected.len(), "{said:#?}");
}

#[test]
fn links_lead_nowhere_else() {
    let disk = Disk::new();
    disk.write("home/secret.md", &text("secret", "x"));
    disk.write("repo/shared/agents/shared.md", &text("shared", "x"));
    disk.write("repo/.claude/agents/own.md", &text("own", "x"));
    symlink(
        disk.path("home/secret.md"),
        disk.path("repo/.claude/agents/secret.md"),
    )
    .unwrap();
    symlink(disk.path("home"), disk.path("repo/.claude/agents/home")).unwrap();
    symlink(
        disk.path("repo/.claude/agents"),
        disk.path("repo/.claude/agents/round"),
    )
    .unwrap();
    symlink(
        disk.path("repo/.claude/agents/own.md"),
        disk.path("repo/.claude/agents/same.md"),
    )
    .unwrap();
    symlink("nowhere", disk.path("repo/.claude/agents/gone.md")).unwrap();
    fs::create_dir_all(disk.path("repo/.posse")).unwrap();
    symlink(
        disk.path("repo/shared/agents"),
        disk.path("repo/.posse/agents"),
    )
    .unwrap();
    fs::create_dir_all(disk.path("repo/sub/.posse")).unwrap();
    symlink(disk.path("home"), disk.path("repo/sub/.posse/agents")).unwrap();
    // Often one directory serves two programs.
    fs::create_dir_all(disk.path("repo/sub/.claude")).unwrap();
    symlink(
        disk.path("repo/.claude/agents"),
        disk.path("repo/sub/.claude/agents"),
    )
    .unwrap();
    // What is the user's may lead anywhere.
    fs::create_dir_all(disk.path("posse/agents")).unwrap();
    disk.write("dotfiles/mine.md", &text("mine", "x"));
    symlink(
        disk.path("dotfiles/mine.md"),
        disk.path("posse/agents/mine.md"),
    )
    .unwrap();
    disk.write("home/.claude/agents/one.md", &text("one", "x"));
    disk.write("home/.claude/agents/two.md", &text("two", "x"));
    symlink(
        disk.path("home/.claude/agents/one.md"),
        disk.path("posse/agents/one.md"),
    )
    .unwrap();
    let loaded = load(&disk);
    let expected = ["mine", "one", "own", "shared", "two"].map(|name| (name, "x"));
    assert_eq!(counts(&loaded), expected);
    assert_eq!(
        loaded.shadowed.len(),
        1,
        "the link stands before what it leads to"
    );
    let out = format!(
        "it is a link to a place outside {}",
        disk.path("repo").display()
    );
    let mut told = said(&disk, &loaded);
    told.sort();
    let in_sub = "repo/sub/.claude/agents";
    assert_eq!(
        told,
        [
            format!(
                "error: {in_sub}/gone.md: cannot be read: No such file or directory (os error 2)"
            ),
            format!("error: {in_sub}/secret.md: {out}"),
            format!("error: repo/sub/.posse/agents: {out}"),
            format!("warning: {in_sub}/home: links to directories are not followed"),
            format!("warning: {in_sub}/round: links to directories are not followed"),
        ]
    );
    assert!(
        loaded.directories.contains(&disk.path("dotfiles")),
        "what a link leads to is watched as well"
    );
}

#[test]
fn there_are_bounds() {
    let disk = Disk::new();
    let deep = "repo/.posse/agents".to_owned() + &"/d".repeat(9);
    disk.write(
        &format!("{}/in.md", &deep[..deep.len() - 2]),
        &text("in", "x"),
    );
    disk.write(&format!("{deep}/out.md"), &text("out", "x"));
    disk.write(
        "repo/.posse/agents/long.md",
        &format!("{}{}", text("long", "x"), "x".repeat(256 * 1024)),
    );
    let (pipe, mode) = (
        disk.path("repo/.posse/agents/pipe.md"),
        rustix::fs::Mode::RWXU,
    );
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let loaded = load(&disk);
    assert_eq!(counts(&loaded), [("in", "x")]);
    let agents = "error: repo/.posse/agents";
    assert_eq!(
        said(&disk, &loaded),
        [
            format!("error: {deep}: not read: it is deeper than 8 directories"),
            format!("{agents}/long.md: it is longer than 256 KiB"),
            format!("{agents}/pipe.md: it is not a file"),
        ]
    );
    fs::remove_dir_all(disk.path("repo/.posse")).unwrap();
    for number in 0..1_100 {
        disk.write(
            &format!("repo/.posse/agents/{number:04}.md"),
            &text(&format!("a{number}"), "x"),
        );
    }
    let loaded = load(&disk);
    assert_eq!(counts(&loaded).len(), 1_000);
    let more = "not read, nor any that follow: there are more than 1000 files";
    assert_eq!(said(&disk, &loaded), [format!("{agents}/1000.md: {more}")]);
}

// proves AD-07 (part: directory)
#[test]
fn notes_have_their_places_and_a_repository_gets_none_of_the_users() {
    let disk = Disk::new();
    let expected = [
        ("agents", "user", "posse/agent-memory", MemoryScope::User),
        (
            "agents",
            "project",
            "repo/.posse/agent-memory",
            MemoryScope::Project,
        ),
        (
            "repo/sub/.posse/agents",
            "project",
            "repo/sub/.posse/agent-memory",
            MemoryScope::Project,
        ),
        (
            "repo/.claude/agents",
            "project",
            "repo/.claude/agent-memory",
            MemoryScope::Project,
        ),
        (
            "repo/.claude/agents",
            "local",
            "repo/.claude/agent-memory-local",
            MemoryScope::Local,
        ),
        (
            "repo/.posse/agents",
            "local",
            "repo/.posse/agent-memory-local",
            MemoryScope::Local,
        ),
        (
            "repo/.claude/agents",
            "user",
            "repo/.claude/agent-memory-local",
            MemoryScope::Local,
        ),
        (
            "posse/agents",
            "user",
            "posse/agent-memory",
            MemoryScope::User,
        ),
        (
            "posse/agents",
            "local",
            "repo/.posse/agent-memory-local",
            MemoryScope::Local,
        ),
        (
            "home/.claude/agents",
            "user",
            "home/.claude/agent-memory",
            MemoryScope::User,
        ),
        (
            "home/.claude/agents",
            "project",
            "repo/.claude/agent-memory",
            MemoryScope::Project,
        ),
    ];
    for (place, wanted, directory, scope) in expected {
        let file = format!("{place}/x.md");
        disk.write(
            &file,
            &format!("---\nname: x\ndescription: x\nmemory: {wanted}\n---\nDo it.\n"),
        );
        let loaded = load(&disk);
        let memory = loaded.find("x").unwrap().definition.memory.clone().unwrap();
        assert_eq!(
            (memory.directory, memory.scope),
            (disk.path(directory).join("x"), scope),
            "{place} {wanted}"
        );
        let repository = place.starts_with("repo") && wanted == "user";
        let said = said(&disk, &loaded);
        assert_eq!(said.len(), usize::from(repository), "{said:?}");
        assert!(
            said.iter()
                .all(|line| line.starts_with(&format!("warning: {file}:4: "))),
            "{said:?}"
        );
        fs::remove_file(disk.path(&file)).unwrap();
    }
    disk.write(
        "repo/.claude/agents/x.md",
        "---\nname: x\ndescription: x\nmemory: local\n---\nDo it.\n",
    );
    symlink(
        disk.path("home"),
        disk.path("repo/.claude/agent-memory-local"),
    )
    .unwrap();
    let loaded = load(&disk);
    assert_eq!(loaded.find("x").unwrap().definition.memory, None);
    assert!(said(&disk, &loaded)[0].contains("x.md:4: a link takes its notes directory out"));
    let given =
        InlineAgents::read(r#"{"x": {"description": "x", "prompt": "x", "memory": "user"}}"#)
            .unwrap();
    let loaded = AgentSources::new(disk.places.clone(), given).load();
    let memory = loaded.find("x").unwrap().definition.memory.clone().unwrap();
    assert_eq!(memory.directory, disk.path("posse/agent-memory/x"));
}

#[test]
fn a_broken_flag_says_which_entry_and_why() {
    let good = r#"{"description": "x", "prompt": "x"}"#;
    for (value, why) in [
        ("{".to_owned(), "--agents is not JSON: EOF"),
        ("[]".to_owned(), "--agents must be an object: {"),
        (
            r#"{"a": 1}"#.to_owned(),
            "--agents: `a`: a definition must be an object",
        ),
        (
            format!(r#"{{"a": {good}, "b": {{"prompt": "x"}}}}"#),
            "--agents: `b`: `description` is missing",
        ),
        (
            format!(r#"{{"a b": {good}}}"#),
            "--agents: `a b`: the name `a b` contains white space",
        ),
        (
            format!(r#"{{"a": {good}, "A": {good}}}"#),
            "--agents: `A`: `a` is given twice",
        ),
        (
            "@nowhere.json".to_owned(),
            "--agents: nowhere.json: cannot be read: No such file",
        ),
    ] {
        let told = InlineAgents::read(&value).unwrap_err().to_string();
        assert!(told.starts_with(why), "{told}");
    }
    assert!(
        InlineAgents::read("{}")
            .unwrap()
            .resolved(&Disk::new().places)
            .is_empty()
    );
}

#[test]
fn one_can_look_at_some_only() {
    let disk = Disk::new();
    disk.write(
        "repo/.claude/agents/a.md",
        "---\nname: a\ndescription: a\nmemory: user\n---\nDo it.\n",
    );
    disk.write(
        "repo/drafts/b.md",
        "---\nname: b\ndescription: b\nmemory: user\n---\nDo it.\n",
    );
    disk.write("repo/drafts/README.md", "# Drafts\n");
    let sources = AgentSources::new(disk.places.clone(), InlineAgents::default());
    let look = |names: &[&str]| {
        sources.load_only(&names.iter().map(|name| disk.path(name)).collect::<Vec<_>>())
    };
    let loaded = look(&["repo/.claude/agents/a.md", "repo/drafts"]);
    assert_eq!(counts(&loaded), [("a", "a"), ("b", "b")]);
    assert_eq!(
        said(&disk, &loaded).len(),
        1,
        "a draft is not yet the repository's"
    );
    let loaded = look(&["repo/drafts/README.md", "repo/nowhere"]);
    assert_eq!(
        said(&disk, &loaded),
        [
            "error: repo/drafts/README.md:1: it is not a definition: one begins with a line `---` \
             and fields",
            "error: repo/nowhere: cannot be read: No such file or directory (os error 2)",
        ]
    );
}
