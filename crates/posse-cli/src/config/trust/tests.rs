//! Keys, the record and fingerprints, on a disk.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::config::settings::tests::Disk;

fn key(disk: &Disk, name: &str) -> WorkspaceKey {
    WorkspaceKey::around(&disk.path(name)).unwrap()
}

fn keep(disk: &Disk, name: &str, files: &[(&str, &str)]) {
    let files = files.iter().map(|(path, text)| {
        let print = Fingerprint::of(FileKind::Memory, text);
        ((*path).to_owned(), print)
    });
    let (posse, home) = (disk.path("posse"), disk.path("home"));
    TrustFile::keep(&posse, Some(&home), &key(disk, name), files.collect()).unwrap();
}

fn trust(disk: &Disk, name: &str) -> Trust {
    let (posse, home) = (disk.path("posse"), disk.path("home"));
    Trust::of(&disk.path(name), Some(&posse), Some(&home))
}

fn admits(trust: &Trust, path: &str, text: &str) -> bool {
    let print = Some(Fingerprint::of(FileKind::Memory, text));
    let path = trust.root().join(path);
    trust.admits(FileKind::Memory, (&path, trust.root()), print)
}

#[test]
fn a_workspace_is_the_nearest_directory_with_a_git_entry() {
    let disk = Disk::new();
    disk.write("repo/sub/nested/.git", "gitdir: ../../.git\n");
    disk.write("plain/a/file", "");
    symlink("/nowhere", disk.path("repo/sub/deep/.git")).unwrap();
    for (from, expected) in [
        ("repo", "repo"),
        ("repo/sub", "repo"),
        ("repo/sub/nested", "repo/sub/nested"),
        ("repo/sub/deep", "repo/sub/deep"),
        ("plain/a", "plain/a"),
    ] {
        assert_eq!(key(&disk, from).path, disk.path(expected), "{from}");
    }
    assert_eq!(WorkspaceKey::around(&disk.path("missing")), None);
}

// proves TS-03 (part: record)
#[test]
fn what_was_seen_counts_and_what_changed_waits() {
    let disk = Disk::new();
    assert!(!trust(&disk, "repo").is_trusted());
    assert!(!admits(&trust(&disk, "repo"), "AGENTS.md", "a"));
    keep(&disk, "repo/sub", &[("AGENTS.md", "a"), ("b.md", "b")]);
    let trust = trust(&disk, "repo/sub/deep");
    assert!(trust.is_trusted());
    assert!(admits(&trust, "AGENTS.md", "a"));
    assert!(!admits(&trust, "b.md", "other"));
    assert!(!admits(&trust, "c.md", "c"));
    let waiting: Vec<_> = trust.waiting();
    let waiting: Vec<_> = waiting
        .iter()
        .map(|it| (it.path.to_str().unwrap(), it.state))
        .collect();
    assert_eq!(
        waiting,
        [("b.md", FileState::Changed), ("c.md", FileState::New)]
    );
    assert_eq!(counted(&trust.waiting()), "2 memory files");
    // The same text is something else as an agent type.
    let print = Fingerprint::of(FileKind::Agent, "a");
    let path = disk.path("repo/AGENTS.md");
    assert!(!trust.admits(FileKind::Agent, (&path, trust.root()), Some(print)));
}

// proves TS-02 (part: inherited)
#[test]
fn trust_is_not_inherited() {
    let disk = Disk::new();
    keep(&disk, "repo", &[("AGENTS.md", "a")]);
    // By the git directory of the trusted repository: a link to it, a file that names it, and a
    // shared directory that it names.
    disk.write(
        "evil/file/.git",
        &format!("gitdir: {}\n", disk.path("repo/.git").display()),
    );
    fs::create_dir_all(disk.path("evil/link")).unwrap();
    symlink(disk.path("repo/.git"), disk.path("evil/link/.git")).unwrap();
    disk.write(
        "evil/common/.git/commondir",
        &disk.path("repo/.git").display().to_string(),
    );
    // By its place: inside, moved, and put in its stead.
    disk.write("repo/sub/nested/.git/HEAD", "");
    for name in ["evil/file", "evil/link", "evil/common", "repo/sub/nested"] {
        assert!(!trust(&disk, name).is_trusted(), "{name}");
    }
    assert!(trust(&disk, "repo").is_trusted());
    fs::rename(disk.path("repo"), disk.path("moved")).unwrap();
    assert!(!trust(&disk, "moved").is_trusted());
    disk.write("repo/.git/HEAD", "");
    assert!(!trust(&disk, "repo").is_trusted());
    let file = TrustFile::read(&disk.path("posse"), None).unwrap();
    assert!(file.was_replaced(&key(&disk, "repo")));
}

#[test]
fn trust_in_a_home_or_above_is_never_kept() {
    let disk = Disk::new();
    disk.write("home/me/.git/HEAD", "");
    disk.write("home/me/app/.git/HEAD", "");
    let (posse, home) = (disk.path("posse"), disk.path("home/me"));
    for path in ["/", "/tmp"]
        .map(PathBuf::from)
        .into_iter()
        .chain([disk.path("home/me"), disk.path("home")])
    {
        let is_above = path.parent().is_none() || home.starts_with(&path);
        assert_eq!(
            workspace::can_be_kept(&path, Some(&home)),
            !is_above,
            "{path:?}"
        );
    }
    let kept = TrustFile::keep(
        &posse,
        Some(&home),
        &key(&disk, "home/me"),
        SeenFiles::new(),
    );
    assert!(matches!(kept, Err(record::RecordError::NeverKept(_))));
    let below = key(&disk, "home/me/app");
    TrustFile::keep(&posse, Some(&home), &below, SeenFiles::new()).unwrap();
    assert!(TrustFile::forget(&posse, Some(&home), &below.path).unwrap());
    assert!(!TrustFile::forget(&posse, Some(&home), &below.path).unwrap());
}

#[test]
fn a_record_that_others_could_have_written_is_refused() {
    let disk = Disk::new();
    keep(&disk, "repo", &[("AGENTS.md", "a")]);
    let file = disk.path("posse/trust.toml");
    let good = fs::read_to_string(&file).unwrap();
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let refused = trust(&disk, "repo");
    assert!(!refused.is_trusted() && refused.problem().unwrap().contains("others can write it"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let home = disk.path("home").display().to_string();
    let repo = disk.path("repo").display().to_string();
    for (what, text) in [
        ("not TOML", "[[[".to_owned()),
        ("version", good.replace("version = 1", "version = 2")),
        (
            "unknown",
            good.replace("version = 1", "version = 1\nall = true"),
        ),
        ("relative", good.replace(&repo, "repo")),
        ("upwards", good.replace(&repo, &format!("{repo}/../repo"))),
        ("root", good.replace(&repo, "/")),
        ("home", good.replace(&repo, &home)),
        ("inode", good.replace("inode = \"", "inode = \"-")),
        (
            "print",
            good.replace("\"AGENTS.md\" = \"", "\"AGENTS.md\" = \"x"),
        ),
    ] {
        assert_ne!(text, good, "{what}");
        fs::write(&file, text).unwrap();
        let refused = trust(&disk, "repo");
        assert!(
            !refused.is_trusted() && refused.problem().is_some(),
            "{what}"
        );
    }
    fs::write(&file, &good).unwrap();
    assert!(trust(&disk, "repo").is_trusted());
    fs::rename(&file, disk.path("elsewhere")).unwrap();
    symlink(disk.path("elsewhere"), &file).unwrap();
    assert!(!trust(&disk, "repo").is_trusted(), "a link");
}

#[test]
fn a_worktree_of_posse_has_the_trust_of_its_repository() {
    let disk = Disk::new();
    let agent = "0197f0aa-0000-7000-8000-000000000001";
    let here = format!("posse/worktrees/repo-1/{agent}");
    disk.write(&format!("{here}/.git"), "gitdir: /somewhere\n");
    keep(&disk, "repo", &[("AGENTS.md", "a")]);
    assert!(!trust(&disk, &here).is_trusted(), "posse has noted nothing");
    let git = disk.path("repo/.git").display().to_string();
    disk.write("posse/worktrees/repo-1/.repository", &git);
    let inherited = trust(&disk, &here);
    assert!(inherited.is_trusted() && admits(&inherited, "AGENTS.md", "a"));
    assert!(!admits(&inherited, "AGENTS.md", "b"));
    let other = format!("evil/worktrees/repo-1/{agent}");
    disk.write(&format!("{other}/.git"), "");
    disk.write("evil/worktrees/repo-1/.repository", &git);
    assert!(!trust(&disk, &other).is_trusted(), "not in posse's home");
}

#[test]
fn a_skill_is_accepted_with_the_files_beside_it() {
    let disk = Disk::new();
    disk.write("skill/SKILL.md", "run it");
    disk.write("skill/bin/run.sh", "echo");
    let print = || Fingerprint::of_skill("run it", &disk.path("skill"));
    let before = print();
    assert!(before.is_some() && before == print());
    disk.write("skill/bin/run.sh", "rm");
    let changed = print();
    assert_ne!(before, changed);
    symlink("/etc/passwd", disk.path("skill/link")).unwrap();
    assert_ne!(print(), changed);
    disk.write("skill/big", &"x".repeat(17 << 20));
    assert_eq!(print(), None);
}
