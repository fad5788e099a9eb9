//! Uncommitted work that goes along.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use posse_port::worktree::{Dirty, Made, Wanted, Worktrees as _};

use super::{Ground, git, write};

async fn carried(ground: &Ground) -> Made {
    let wanted = Wanted {
        dirty: Dirty::Carry,
        ..ground.wanted("r/src")
    };
    ground.trees.make(wanted).await.unwrap()
}

/// Work of every kind in the parent.
fn every_kind() -> Ground {
    let ground = Ground::new();
    ground.write("r/deleted.txt", "");
    ground.write("r/turned", "a file");
    ground.write("r/link", "a file");
    ground.commit("r", "More");
    ground.write("r/a.txt", "changed\n");
    ground.write("r/staged.txt", "staged\n");
    ground.git("r", &["add", "staged.txt"]);
    ground.write("r/staged.txt", "staged, and changed again\n");
    ground.write("r/forced.log", "ignored, and yet added\n");
    ground.git("r", &["add", "-f", "forced.log"]);
    fs::remove_file(ground.path("r/deleted.txt")).unwrap();
    fs::set_permissions(ground.path("r/src/b.rs"), fs::Permissions::from_mode(0o755)).unwrap();
    ground.write("r/docs/new file\n.md", "new");
    ground.write("r/binary", [0, 255, 10, 13, 0]);
    fs::remove_file(ground.path("r/link")).unwrap();
    symlink("a.txt", ground.path("r/link")).unwrap();
    fs::remove_file(ground.path("r/turned")).unwrap();
    ground.write("r/turned/inside", "now a directory");
    ground
}

// proves WT-02 (part: carried)
#[tokio::test]
async fn all_of_it_is_there_and_nothing_is_committed() {
    let ground = every_kind();
    ground.write("r/skipped.log", "ignored");
    let made = carried(&ground).await;
    let path = &made.worktree.path;
    let read = |name: &str| fs::read_to_string(path.join(name)).unwrap();
    assert_eq!(read("a.txt"), "changed\n");
    assert_eq!(read("staged.txt"), "staged, and changed again\n");
    assert_eq!(read("forced.log"), "ignored, and yet added\n");
    assert!(!path.join("deleted.txt").exists() && !path.join("skipped.log").exists());
    assert_eq!(
        fs::metadata(path.join("src/b.rs")).unwrap().mode() & 0o100,
        0o100
    );
    assert_eq!(read("docs/new file\n.md"), "new");
    assert_eq!(fs::read(path.join("binary")).unwrap(), [0, 255, 10, 13, 0]);
    assert_eq!(
        fs::read_link(path.join("link")).unwrap().to_str(),
        Some("a.txt")
    );
    assert_eq!(read("turned/inside"), "now a directory");
    assert_eq!(
        git(path, &["diff", "--cached", "--name-only"]),
        "",
        "nothing is staged"
    );
    assert_eq!(
        git(path, &["rev-parse", "HEAD"]),
        ground.git("r", &["rev-parse", "HEAD"])
    );
    assert_eq!(made.missing, None);
    let told = made.carried.unwrap();
    assert!(
        told.contains("changed files: ") && told.contains("a.txt") && !told.contains('\n'),
        "{told}"
    );
    // The parent's own work and index are as they were.
    assert!(
        ground
            .git("r", &["status", "--porcelain"])
            .contains("AM staged.txt")
    );
}

// proves WT-03 (part: any change)
#[tokio::test]
async fn as_it_was_given_it_goes_and_changed_it_stays() {
    let ground = every_kind();
    let made = carried(&ground).await;
    assert_eq!(ground.trees.changes(&made.worktree).await, None);
    assert_eq!(ground.trees.release(&made.worktree).await, None);
    ground.is_as_before();
    // Made again, it is again as it was given.
    assert_eq!(ground.trees.reclaim(&made.worktree).await, Ok(true));
    assert_eq!(
        fs::read_to_string(made.worktree.path.join("a.txt")).unwrap(),
        "changed\n"
    );
    assert_eq!(ground.trees.changes(&made.worktree).await, None);
    write(&made.worktree.path.join("a.txt"), "more\n");
    let told = ground.trees.release(&made.worktree).await;
    assert_eq!(told.as_deref(), Some("1 uncommitted file (a.txt)"));
    // Back at the commit, it is not what was given.
    let made = carried(&ground).await;
    git(&made.worktree.path, &["checkout", "-q", "a.txt"]);
    let told = ground.trees.release(&made.worktree).await;
    assert_eq!(told.as_deref(), Some("1 uncommitted file (a.txt)"));
    let made = carried(&ground).await;
    git(&made.worktree.path, &["add", "a.txt"]);
    assert!(ground.trees.release(&made.worktree).await.is_some());
    let made = carried(&ground).await;
    write(&made.worktree.path.join("forced.log"), "changed");
    assert_eq!(
        ground.trees.release(&made.worktree).await.as_deref(),
        Some("1 uncommitted file (forced.log)")
    );
}

#[tokio::test]
async fn repositories_inside_are_named_as_missing() {
    let ground = Ground::new();
    ground.git("", &["clone", "-q", "r", "sub"]);
    let add = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        "../sub",
        "sub",
    ];
    ground.git("r", &add);
    ground.commit("r", "With a submodule");
    ground.write("r/sub/a.txt", "changed in there\n");
    ground.git("r", &["init", "-q", "deep/inner"]);
    ground.git("", &["clone", "-q", "r", "r/other"]);
    ground.write("r/deep/new.txt", "new");
    let made = carried(&ground).await;
    assert_eq!(
        made.missing.as_deref(),
        Some("1 changed file: sub; 2 new files: deep/inner/, other/")
    );
    assert_eq!(made.carried.as_deref(), Some("1 new file: deep/new.txt"));
    assert_eq!(
        fs::read_to_string(made.worktree.path.join("deep/new.txt")).unwrap(),
        "new"
    );
    assert!(!made.worktree.path.join("other").exists());
    assert_eq!(ground.trees.release(&made.worktree).await, None);
    // Where there is nothing to carry, nothing is.
    let clean = Ground::new();
    let made = carried(&clean).await;
    assert_eq!(
        (made.worktree.carried, made.carried, made.missing),
        (None, None, None)
    );
}
