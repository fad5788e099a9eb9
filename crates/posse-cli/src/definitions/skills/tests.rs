//! Skills on a disk.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::config::settings::tests::Disk;

fn text(description: &str) -> String {
    format!("---\ndescription: {description}\n---\nDo it.\n")
}

fn load(disk: &Disk) -> DefinitionSet<Skill> {
    SkillSources::new(disk.places.clone()).load()
}

fn counts(loaded: &DefinitionSet<Skill>) -> Vec<(&str, &str)> {
    loaded
        .known
        .iter()
        .map(|known| {
            (
                known.definition.name.as_str(),
                known.definition.description.as_str(),
            )
        })
        .collect()
}

/// Returns what is said, with paths as seen from the disk's root.
fn said(disk: &Disk, loaded: &DefinitionSet<Skill>) -> Vec<String> {
    let root = disk.path("");
    let line = |remark: &Remark| format!("{}: {}", remark.weight.as_str(), remark.in_a_line(&root));
    loaded.remarks.iter().map(line).collect()
}

#[test]
fn of_several_with_one_name_the_nearest_counts() {
    let disk = Disk::new();
    let places = [
        "home/.claude/commands/x.md",
        "posse/commands/x.md",
        "home/.claude/skills/x/SKILL.md",
        "posse/skills/x/SKILL.md",
        "repo/.claude/commands/x.md",
        "repo/.posse/skills/x/SKILL.md",
        "repo/sub/.claude/commands/x.md",
        "repo/sub/.posse/commands/x.md",
        "repo/sub/.claude/skills/x/SKILL.md",
        "repo/sub/.posse/skills/x/SKILL.md",
        "skills/x/SKILL.md",
    ];
    for (below, place) in places.iter().enumerate() {
        disk.write(place, &text(place));
        let loaded = load(&disk);
        assert_eq!(counts(&loaded), [("x", *place)]);
        assert_eq!(
            (loaded.shadowed.len(), said(&disk, &loaded)),
            (below, Vec::new())
        );
    }
    let source = load(&disk).known[0].source;
    assert_eq!(source, DefinitionSource::Managed);
}

#[test]
fn names_are_those_of_their_places() {
    let disk = Disk::new();
    disk.write("repo/.claude/commands/git/deep/tidy.md", "Tidy up.\n");
    disk.write("repo/.claude/commands/README.md", "# Our commands\n");
    disk.write("repo/.claude/commands/two words.md", "No.\n");
    disk.write("repo/.claude/skills/pdf/SKILL.md", &text("reads"));
    disk.write("repo/.claude/skills/pdf/reference/more.md", "no skill\n");
    disk.write("repo/.claude/skills/pdf/deep/SKILL.md", "no skill either\n");
    disk.write("repo/.claude/skills/SKILL.md", &text("is beside"));
    disk.write("repo/.claude/skills/notes.md", "no skill\n");
    let loaded = load(&disk);
    assert_eq!(
        counts(&loaded),
        [("git:deep:tidy", "Tidy up."), ("pdf", "reads")]
    );
    let told = said(&disk, &loaded);
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(
        told.iter()
            .any(|line| line.contains("skills/SKILL.md: a skill is a directory")),
        "{told:#?}"
    );
    assert!(
        told.iter()
            .any(|line| line.contains("two words.md:1: the name `two words`")),
        "{told:#?}"
    );
}

#[test]
fn a_repository_grants_itself_nothing() {
    let disk = Disk::new();
    let file =
        "---\ndescription: x\nallowed-tools: Bash(rm *)\ndisallowed-tools: Write\n---\nDo it.\n";
    disk.write("repo/.claude/skills/theirs/SKILL.md", file);
    disk.write("posse/skills/mine/SKILL.md", file);
    let loaded = load(&disk);
    let rules = |name: &str| {
        let skill = &loaded.find(name).unwrap().definition;
        (skill.allowed.join(" "), skill.disallowed.join(" "))
    };
    assert_eq!(rules("theirs"), (String::new(), "Write".to_owned()));
    assert_eq!(rules("mine"), ("Bash(rm *)".to_owned(), "Write".to_owned()));
    let told = said(&disk, &loaded);
    let start = "warning: repo/.claude/skills/theirs/SKILL.md:3: ignored: `allowed-tools` of a repository's skill";
    assert!(told.len() == 1 && told[0].starts_with(start), "{told:#?}");
    assert_eq!(loaded.trouble().count(), 1);
}

#[test]
fn links_to_skills_are_followed_within_the_repository() {
    let disk = Disk::new();
    disk.write("repo/kept/pdf/SKILL.md", &text("kept elsewhere"));
    disk.write("home/secret/SKILL.md", &text("secret"));
    fs::create_dir_all(disk.path("repo/.claude/skills")).unwrap();
    fs::create_dir_all(disk.path("posse/skills")).unwrap();
    symlink(
        disk.path("repo/kept/pdf"),
        disk.path("repo/.claude/skills/pdf"),
    )
    .unwrap();
    symlink(
        disk.path("home/secret"),
        disk.path("repo/.claude/skills/out"),
    )
    .unwrap();
    symlink(disk.path("home/secret"), disk.path("posse/skills/mine")).unwrap();
    let loaded = load(&disk);
    assert_eq!(
        counts(&loaded),
        [("mine", "secret"), ("pdf", "kept elsewhere")]
    );
    let out = format!(
        "it is a link to a place outside {}",
        disk.path("repo").display()
    );
    assert_eq!(
        said(&disk, &loaded),
        [format!("error: repo/.claude/skills/out: {out}")]
    );
}

#[test]
fn one_can_look_at_some_only() {
    let disk = Disk::new();
    disk.write("repo/drafts/pdf/SKILL.md", &text("a draft"));
    disk.write("repo/drafts/one.md", "Do it.\n");
    disk.write(
        "repo/.claude/commands/a/b.md",
        "---\nallowed-tools: Read\n---\nDo it.\n",
    );
    disk.write(
        "repo/.claude/commands/c.md",
        "---\ncontext: x\n---\nDo it.\n",
    );
    let sources = SkillSources::new(disk.places.clone());
    let look = |names: &[&str]| {
        sources.load_only(&names.iter().map(|name| disk.path(name)).collect::<Vec<_>>())
    };
    for names in [
        &["repo/drafts"][..],
        &["repo/drafts/pdf"],
        &["repo/drafts/pdf/SKILL.md"],
    ] {
        assert_eq!(counts(&look(names)), [("pdf", "a draft")], "{names:?}");
    }
    assert_eq!(counts(&look(&["repo/drafts/one.md"])), [("one", "Do it.")]);
    let loaded = look(&["repo/.claude/commands"]);
    assert_eq!(counts(&loaded), [("a:b", "Do it.")]);
    let told = said(&disk, &loaded);
    assert!(
        told.iter()
            .any(|line| line.contains("c.md:2: `context` must be `fork`, not `x`")),
        "{told:#?}"
    );
    assert!(
        told.iter().any(|line| line.starts_with("warning: ")),
        "it is the repository's: {told:#?}"
    );
    let told = said(&disk, &look(&["repo/nowhere"]));
    assert_eq!(
        told,
        ["error: repo/nowhere: cannot be read: No such file or directory (os error 2)"]
    );
}

#[test]
fn all_skills_together_have_a_longest_length_and_a_repositorys_come_last() {
    let disk = Disk::new();
    disk.write("posse/skills/z/SKILL.md", &text("Mine."));
    disk.write("repo/.posse/skills/a/SKILL.md", &text("Theirs."));
    assert_eq!(counts(&load(&disk)), [("z", "Mine."), ("a", "Theirs.")]);
    let long = "x".repeat(250 * 1024);
    for number in 0..70 {
        disk.write(&format!("repo/.posse/skills/s{number}/SKILL.md"), &long);
    }
    let loaded = load(&disk);
    let end = "not used, nor any that follow: all files together are larger than 16 MiB";
    let ends: Vec<String> = said(&disk, &loaded)
        .into_iter()
        .filter(|line| line.ends_with(end))
        .collect();
    assert!(
        !ends.is_empty() && ends.iter().all(|line| line.starts_with("error: ")),
        "{ends:?}"
    );
    let bytes: usize = loaded
        .known
        .iter()
        .map(|known| known.definition.body.text.len())
        .sum();
    assert!(bytes <= scan::ALL, "{bytes}");
}
