//! Which memory files are found, in which order, and what becomes of them.

use std::os::unix::fs::symlink;

use posse_permission::{RuleList, Source};
use posse_protocol::MemoryScope;
use posse_runtime::definition::instructions::{InstructionFinder as _, InstructionKeeper as _};

use super::*;
use crate::config::settings::tests::Disk;

fn sources(disk: &Disk, deny: &[&str]) -> InstructionSources {
    let (cwd, root) = (disk.places.cwd.clone(), disk.path("repo"));
    let mut policy = Policy::default();
    let source = Source {
        name: "a test".into(),
        root,
        cwd: cwd.clone(),
        home: disk.places.home.clone(),
    };
    let deny = deny.iter().map(|rule| (*rule).to_owned()).collect();
    let rules = RuleList {
        deny,
        ..RuleList::default()
    };
    policy.add(&source, &rules).unwrap();
    let workspace = Workspace {
        roots: vec![cwd.clone()],
        cwd,
        spill: disk.path("spill"),
        home: disk.places.home.clone(),
        mirror: None,
        notes: None,
    };
    InstructionSources::new(disk.places.clone(), Arc::new(policy), Arc::new(workspace))
}

/// Returns each file with why it was found and what became of it, in order.
fn told(disk: &Disk, deny: &[&str]) -> Vec<(String, &'static str, Fate)> {
    let root = disk.path("");
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    let told = |file: FoundFile| (name(&file.path), file.reason.as_str(), file.fate);
    sources(disk, deny).survey().into_iter().map(told).collect()
}

fn used(expected: &[(&str, &'static str)]) -> Vec<(String, &'static str, Fate)> {
    let used = |(name, reason): &(&str, &'static str)| ((*name).to_owned(), *reason, Fate::Used);
    expected.iter().map(used).collect()
}

fn refused(fate: &Fate) -> &str {
    match fate {
        Fate::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

// proves FC-09 (part: files)
#[test]
fn from_the_administrator_down_to_where_one_works() {
    let disk = Disk::new();
    let files = [
        ("CLAUDE.md", "managed"),
        ("posse/AGENTS.md", "user"),
        ("home/.claude/CLAUDE.md", "user's other"),
        ("home/.claude/rules/mine.md", "user's rule"),
        ("repo/AGENTS.md", "root"),
        ("repo/CLAUDE.md", "root's other"),
        ("repo/.claude/CLAUDE.md", "root's third"),
        ("repo/.claude/rules/b.md", "rule b"),
        ("repo/.claude/rules/a/deep.md", "rule a"),
        ("repo/CLAUDE.local.md", "root's local"),
        ("repo/sub/CLAUDE.md", "sub"),
        ("repo/sub/CLAUDE.local.md", "sub's local"),
        ("repo/sub/deep/CLAUDE.md", "below"),
    ];
    for (name, text) in files {
        disk.write(name, text);
    }
    let expected = [
        ("CLAUDE.md", "managed"),
        ("posse/AGENTS.md", "user"),
        ("home/.claude/CLAUDE.md", "user"),
        ("home/.claude/rules/mine.md", "rule"),
        ("repo/AGENTS.md", "project"),
        ("repo/CLAUDE.md", "project"),
        ("repo/.claude/CLAUDE.md", "project"),
        ("repo/.claude/rules/a/deep.md", "rule"),
        ("repo/.claude/rules/b.md", "rule"),
        ("repo/sub/CLAUDE.md", "project"),
        ("repo/CLAUDE.local.md", "local"),
        ("repo/sub/CLAUDE.local.md", "local"),
    ];
    assert_eq!(told(&disk, &[]), used(&expected));
    let count = |words: &str| {
        let mut sources = sources(&disk, &[]);
        sources.places = sources.places.limited_to(words.parse().unwrap());
        sources.survey().len()
    };
    let counts = ["", "user", "project", "local"].map(count);
    assert_eq!(
        counts,
        [1, 4, 7, 3],
        "the administrator's files always count"
    );
}

// proves FC-09 (part: once)
#[test]
fn the_same_content_is_used_once() {
    let disk = Disk::new();
    disk.write("repo/AGENTS.md", "Use tabs.");
    disk.write("repo/CLAUDE.md", "Use tabs.\n");
    disk.write("repo/sub/AGENTS.md", "Test first.");
    symlink("AGENTS.md", disk.path("repo/sub/CLAUDE.md")).unwrap();
    disk.write("repo/sub/.claude/CLAUDE.md", "@../AGENTS.md\n");
    let same = Fate::SameAs(disk.path("repo/AGENTS.md"));
    let mut expected = used(&[("repo/AGENTS.md", "project")]);
    expected.push(("repo/CLAUDE.md".into(), "project", same));
    expected.extend(used(&[("repo/sub/AGENTS.md", "project")]));
    let only = Fate::OnlyImports;
    expected.push(("repo/sub/.claude/CLAUDE.md".into(), "project", only));
    assert_eq!(told(&disk, &[]), expected);
}

// proves FC-09 (part: imports)
#[test]
fn imports_are_followed_up_to_five_and_never_in_a_circle() {
    let disk = Disk::new();
    disk.write(
        "repo/CLAUDE.md",
        "Read @docs/1.md and `@docs/code.md`, ask @someone, @gone.md.",
    );
    for number in 1..=6 {
        let (name, next) = (format!("repo/docs/{number}.md"), number + 1);
        disk.write(&name, &format!("{number} @{next}.md @../CLAUDE.md"));
    }
    let told = told(&disk, &[]);
    let mut expected = used(&[
        ("repo/CLAUDE.md", "project"),
        ("repo/docs/1.md", "import"),
        ("repo/docs/2.md", "import"),
        ("repo/docs/3.md", "import"),
        ("repo/docs/4.md", "import"),
        ("repo/docs/5.md", "import"),
    ]);
    let why = "more than 5 imports lead to it".to_owned();
    expected.push(("repo/docs/6.md".into(), "import", Fate::Refused(why)));
    expected.push(("repo/gone.md".into(), "import", Fate::Missing));
    assert_eq!(told, expected);
}

// proves FC-09 (part: outside)
#[test]
fn a_repository_shows_only_what_is_its_own() {
    let disk = Disk::new();
    disk.write("home/secret.md", "secret");
    disk.write("home/style.md", "style @secret.md");
    disk.write("home/.claude/CLAUDE.md", "mine, see @~/style.md");
    disk.write("repo/notes", "notes");
    disk.write("repo/.env", "KEY=1");
    symlink(disk.path("home/secret.md"), disk.path("repo/AGENTS.md")).unwrap();
    symlink(disk.path("repo/notes"), disk.path("repo/sub/AGENTS.md")).unwrap();
    disk.write("repo/CLAUDE.md", "@~/other.md @../home/secret.md @.env");
    disk.write("home/other.md", "other");
    let told = told(&disk, &["Read(/.env)"]);
    let names: Vec<&str> = told
        .iter()
        .filter(|(_, _, fate)| *fate == Fate::Used)
        .map(|(name, ..)| name.as_str())
        .collect();
    let expected = [
        "home/.claude/CLAUDE.md",
        "home/style.md",
        "home/secret.md",
        "repo/sub/AGENTS.md",
    ];
    assert_eq!(
        names, expected,
        "the user's own files import what they want"
    );
    let fate = |name: &str| &told.iter().find(|(it, ..)| it == name).unwrap().2;
    for name in ["repo/AGENTS.md", "home/other.md", "repo/../home/secret.md"] {
        assert!(refused(fate(name)).contains("outside"), "{name}");
    }
    let denied = "a permission rule denies reading it";
    assert_eq!(refused(fate("repo/.env")), denied);
    let set = sources(&disk, &[]).load();
    assert!(
        set.trouble()
            .any(|remark| remark.path.ends_with("other.md"))
    );
}

// proves FC-09 (part: limits)
#[test]
fn too_much_is_cut_and_said() {
    let disk = Disk::new();
    disk.write("repo/AGENTS.md", &"x".repeat(50_000));
    for number in 0..5 {
        let text = number.to_string().repeat(40_000);
        disk.write(&format!("repo/.claude/rules/{number}.md"), &text);
    }
    disk.write("repo/CLAUDE.local.md", "local");
    let fates: Vec<Fate> = told(&disk, &[]).into_iter().map(|it| it.2).collect();
    let rest = 200 * 1024 - 40 * 1024 - 4 * 40_000;
    let mut expected = vec![Fate::Cut(40 * 1024)];
    expected.extend(vec![Fate::Used; 4]);
    expected.extend([Fate::Cut(rest), Fate::LeftOut]);
    assert_eq!(fates, expected);
    let set = sources(&disk, &[]).load();
    assert_eq!(set.trouble().count(), 3);
}

// proves FC-09 (part: limits)
#[test]
fn a_thousand_imports_are_followed_and_the_rest_is_told() {
    let disk = Disk::new();
    for file in ["AGENTS.md", "CLAUDE.md"] {
        let names = (0..700).map(|number| format!("@many/{file}-{number}.md"));
        disk.write(
            &format!("repo/{file}"),
            &names.collect::<Vec<_>>().join(" "),
        );
    }
    for number in 0..700 {
        disk.write(&format!("repo/many/AGENTS.md-{number}.md"), "");
        disk.write(&format!("repo/many/CLAUDE.md-{number}.md"), "x");
    }
    let told = told(&disk, &[]);
    let same = |fate: &Fate| matches!(fate, Fate::Used | Fate::SameAs(_));
    let used = told.iter().filter(|(.., fate)| same(fate)).count();
    assert_eq!(used, 300, "700 empty ones count, too");
    let refused: Vec<&str> = told
        .iter()
        .filter_map(|(.., fate)| match fate {
            Fate::Refused(why) => Some(why.as_str()),
            _ => None,
        })
        .collect();
    let why = "1000 files are imported; this and all others are left out";
    assert_eq!(refused, [why], "told once");
}

// proves FC-09 (part: rules)
#[test]
fn rules_say_which_files_they_are_about() {
    let disk = Disk::new();
    disk.write(
        "repo/.claude/rules/ts.md",
        "---\npaths: src/**/*.ts\n---\nNo any. @more.md",
    );
    disk.write("repo/.claude/rules/more.md", "More.");
    disk.write("repo/.claude/rules/broken.md", "---\npaths: a{b\n---\nx");
    let survey = sources(&disk, &[]).survey();
    let globs = |name: &str| {
        let file = survey
            .iter()
            .find(|file| file.path.ends_with(name))
            .unwrap();
        let used = file.used.as_ref().unwrap();
        used.globs.as_ref().map(|globs| globs.patterns.clone())
    };
    assert_eq!(globs("ts.md"), Some(vec!["src/**/*.ts".to_owned()]));
    assert_eq!(globs("more.md"), None, "it is a rule of its own");
    assert!(refused(&survey[0].fate).starts_with("line 2: "));
}

// proves FC-09 (part: nested)
#[test]
fn what_is_about_a_file_in_a_checkout_and_in_a_worktree_of_it() {
    let disk = Disk::new();
    for top in ["repo", "copy"] {
        disk.write(&format!("{top}/CLAUDE.md"), top);
        disk.write(&format!("{top}/lib/AGENTS.md"), &format!("{top}/lib"));
        let rule = "---\npaths: \"*.ts\"\n---\nin lib";
        disk.write(&format!("{top}/lib/.claude/rules/ts.md"), rule);
        disk.write(&format!("{top}/lib/CLAUDE.local.md"), "mine");
    }
    disk.write(
        "repo/.claude/rules/all.md",
        "---\npaths: lib/**\n---\nabout lib",
    );
    disk.write("CLAUDE.md", "outside");
    let sources = sources(&disk, &[]);
    let here = (*sources.workspace).clone();
    let (top, origin) = (disk.path("copy"), disk.path("repo"));
    let there = here.in_worktree(&top, &origin).unwrap();
    let files = Arc::new(sources.load().definitions().into());
    let finder = ProjectFinder { sources, files };
    let about = |name: &str, workspace: &Workspace| -> Vec<String> {
        let found = finder.about(&disk.path(name), workspace);
        found.into_iter().map(|file| file.text).collect()
    };
    let expected = ["about lib", "repo/lib", "in lib", "mine"];
    assert_eq!(about("repo/lib/a.ts", &here), expected);
    assert_eq!(
        about("repo/lib/deep/a.ts", &here),
        ["about lib", "repo/lib", "mine"]
    );
    assert!(
        about("repo/sub/a.ts", &here).is_empty(),
        "known from the start"
    );
    assert!(about("elsewhere/a.ts", &here).is_empty());
    let expected = ["about lib", "copy", "copy/lib", "in lib", "mine"];
    assert_eq!(about("copy/lib/a.ts", &there), expected);
    assert!(about("repo/lib/a.ts", &there).is_empty());
}

fn keeper(disk: &Disk) -> MemoryKeeper {
    let sources = sources(disk, &[]);
    MemoryKeeper { sources }
}

/// Adds a note. Returns the file and its text, or why there is none.
fn noted(disk: &Disk, line: &str, scope: MemoryScope) -> Result<(String, String), String> {
    let added = keeper(disk).add(line, scope);
    let path = added.map_err(|error| error.to_string())?;
    let name = path.strip_prefix(disk.path("")).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    Ok((name.display().to_string(), text))
}

// proves CV-05 (part: files; whole)
#[test]
fn a_note_is_a_line_of_the_file_that_is_there() {
    use MemoryScope::{Local, Project, User};
    let disk = Disk::new();
    std::fs::create_dir_all(disk.path("repo/.git")).unwrap();
    let ok = |name: &str, text: &str| Ok((name.to_owned(), text.to_owned()));
    let is = |scope, line, expected| assert_eq!(noted(&disk, line, scope), expected);
    is(Project, "one", ok("repo/AGENTS.md", "- one\n"));
    is(Project, "two", ok("repo/AGENTS.md", "- one\n- two\n"));
    disk.write("repo/CLAUDE.md", "Rules");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    std::fs::set_permissions(disk.path("repo/CLAUDE.md"), mode).unwrap();
    is(Project, "three", ok("repo/CLAUDE.md", "Rules\n- three\n"));
    let about = disk.path("repo/CLAUDE.md").metadata().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions());
    assert_eq!(mode & 0o777, 0o640);
    is(Local, "mine", ok("repo/CLAUDE.local.md", "- mine\n"));
    is(User, "all", ok("posse/AGENTS.md", "- all\n"));
    std::fs::remove_file(disk.path("posse/AGENTS.md")).unwrap();
    disk.write("home/.claude/CLAUDE.md", "Old.\n");
    is(User, "all", ok("home/.claude/CLAUDE.md", "Old.\n- all\n"));
    // Of many at once none is lost.
    std::thread::scope(|scope| {
        for number in 0..8 {
            let disk = &disk;
            scope.spawn(move || noted(disk, &format!("at once {number}"), Local).unwrap());
        }
    });
    let text = std::fs::read_to_string(disk.path("repo/CLAUDE.local.md")).unwrap();
    assert_eq!(text.lines().count(), 9, "{text}");
    let left = std::fs::read_dir(disk.path("repo")).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name());
    assert!(
        !names
            .into_iter()
            .any(|name| name.to_string_lossy().ends_with(".new"))
    );
}

// proves CV-05 (part: links)
#[test]
fn no_note_leaves_the_directory_of_its_file() {
    let disk = Disk::new();
    std::fs::create_dir_all(disk.path("repo/.git")).unwrap();
    disk.write("repo/AGENTS.md", "Here.\n");
    disk.write("secret/file.md", "Mine.\n");
    // Within the directory the link stays one.
    symlink("AGENTS.md", disk.path("repo/CLAUDE.md")).unwrap();
    let (name, text) = noted(&disk, "one", MemoryScope::Project).unwrap();
    assert_eq!(
        (name.as_str(), text.as_str()),
        ("repo/AGENTS.md", "Here.\n- one\n")
    );
    assert!(disk.path("repo/CLAUDE.md").is_symlink());
    for target in [
        "../secret/file.md",
        "./../secret/file.md",
        "/etc/hostname",
        "CLAUDE.local.md",
    ] {
        let local = disk.path("repo/CLAUDE.local.md");
        let _ = std::fs::remove_file(&local);
        symlink(target, &local).unwrap();
        let refused = noted(&disk, "two", MemoryScope::Local).unwrap_err();
        assert!(refused.ends_with("leads out of its directory"), "{refused}");
    }
    let secret = std::fs::read_to_string(disk.path("secret/file.md")).unwrap();
    assert_eq!(secret, "Mine.\n");
}
