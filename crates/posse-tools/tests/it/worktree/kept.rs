//! What is kept at the end, and what is not.

use std::fs;
use std::path::Path;

use posse_port::worktree::{Worktree, Worktrees as _};

use super::{Ground, git, registration, write};

/// What is told after `work` in a worktree, which must be kept.
async fn kept(work: impl FnOnce(&Ground, &Path)) -> String {
    let ground = Ground::new();
    let worktree = ground.make().await.worktree;
    work(&ground, &worktree.path);
    is_kept(&ground, &worktree).await
}

async fn is_kept(ground: &Ground, worktree: &Worktree) -> String {
    let told = ground.trees.changes(worktree).await.unwrap();
    assert_eq!(ground.trees.release(worktree).await.as_ref(), Some(&told));
    assert!(worktree.path.is_dir(), "{told}");
    assert!(!registration(worktree).join("locked").exists());
    // Again, and by the sweep of another.
    assert_eq!(ground.trees.release(worktree).await.as_ref(), Some(&told));
    let swept = ground.other().sweep();
    assert_eq!(swept.len(), 1, "{swept:?}");
    assert_eq!(
        (swept[0].removed, swept[0].found.keeps.as_ref()),
        (false, Some(&told))
    );
    assert_eq!(
        (&swept[0].found.path, swept[0].found.live),
        (&worktree.path, false)
    );
    assert!(worktree.path.is_dir(), "{told}");
    told
}

/// After `work` there is nothing to keep.
async fn removed(work: impl FnOnce(&Ground, &Path)) -> Ground {
    let ground = Ground::new();
    let worktree = ground.make().await.worktree;
    work(&ground, &worktree.path);
    assert_eq!(ground.trees.changes(&worktree).await, None);
    assert_eq!(ground.trees.release(&worktree).await, None);
    ground.is_as_before();
    // There is nothing more to it.
    assert_eq!(ground.trees.release(&worktree).await, None);
    assert_eq!(ground.trees.changes(&worktree).await, None);
    ground.is_as_before();
    ground
}

// proves WT-03 (part: no change)
#[tokio::test]
async fn without_a_change_it_goes_with_its_branch() {
    removed(|_, _| {}).await;
    removed(|_, path| {
        write(&path.join("x.rs"), "");
        fs::remove_file(path.join("x.rs")).unwrap();
        fs::create_dir(path.join("empty")).unwrap();
    })
    .await;
}

// proves WT-03 (part: any change)
#[tokio::test]
async fn work_that_is_not_committed_is_kept() {
    let told = kept(|_, path| {
        write(&path.join("a.txt"), "changed\n");
        fs::remove_file(path.join("src/b.rs")).unwrap();
        write(&path.join("docs/new.md"), "");
    });
    assert_eq!(told.await, "3 uncommitted files (a.txt, docs/, src/b.rs)");
    let told = kept(|_, path| {
        write(&path.join("a.txt"), "staged\n");
        git(path, &["add", "a.txt"]);
        write(&path.join("a.txt"), "one\ntwo\n");
    });
    assert_eq!(told.await, "1 uncommitted file (a.txt)");
    let told = kept(|_, path| {
        // The same size, and the time it had.
        let before = fs::metadata(path.join("a.txt"))
            .unwrap()
            .modified()
            .unwrap();
        write(&path.join("a.txt"), "ONE\nTWO\n");
        fs::File::options()
            .write(true)
            .open(path.join("a.txt"))
            .unwrap()
            .set_modified(before)
            .unwrap();
    });
    assert_eq!(told.await, "1 uncommitted file (a.txt)");
}

#[tokio::test]
async fn no_setting_hides_work() {
    let told = kept(|ground, path| {
        for (key, value) in [
            ("status.showUntrackedFiles", "no"),
            ("core.ignoreStat", "true"),
            ("core.trustctime", "false"),
            ("core.checkStat", "minimal"),
            ("core.untrackedCache", "true"),
            ("core.fsmonitor", "true"),
        ] {
            ground.git("r", &["config", key, value]);
        }
        write(&path.join("new.md"), "");
    });
    assert_eq!(told.await, "1 uncommitted file (new.md)");
}

// proves WT-03 (part: any change)
#[tokio::test]
async fn commits_are_kept() {
    let commit = |path: &Path, text: &str| {
        write(&path.join("a.txt"), text);
        git(path, &["commit", "-q", "-a", "-m", text]);
    };
    let told = kept(|_, path| {
        commit(path, "three");
        commit(path, "four");
        write(&path.join("x.rs"), "");
    });
    assert_eq!(told.await, "2 commits, 1 uncommitted file (x.rs)");
    // On no branch, and back again: only HEAD's record leads there.
    let told = kept(|_, path| {
        git(path, &["checkout", "-q", "--detach"]);
        commit(path, "lost");
        git(path, &["checkout", "-q", "-"]);
    });
    assert_eq!(told.await, "1 commit on no branch");
    let told = kept(|_, path| {
        git(path, &["checkout", "-q", "--detach"]);
        commit(path, "here");
    });
    assert_eq!(told.await, "1 commit, it is on no branch");
    let told = kept(|_, path| {
        commit(path, "undone");
        git(path, &["reset", "-q", "--hard", "HEAD~"]);
    });
    assert_eq!(told.await, "1 commit on no branch");
    let told = kept(|_, path| drop(git(path, &["reset", "-q", "--hard", "HEAD~"])));
    assert_eq!(told.await, "its branch was moved back");
    let told = kept(|_, path| drop(git(path, &["switch", "-q", "-c", "other"])));
    assert_eq!(told.await, "it is on branch other");
    // Also where git was told to keep no such record.
    let ground = Ground::new();
    ground.git("r", &["config", "core.logAllRefUpdates", "false"]);
    let worktree = ground.make().await.worktree;
    commit(&worktree.path, "undone");
    git(&worktree.path, &["reset", "-q", "--hard", "HEAD~"]);
    assert_eq!(is_kept(&ground, &worktree).await, "1 commit on no branch");
    // What another branch has is not lost.
    removed(|_, path| {
        git(path, &["checkout", "-q", "--detach"]);
        commit(path, "elsewhere");
        git(path, &["branch", "elsewhere"]);
        git(path, &["checkout", "-q", "-"]);
    })
    .await;
}

// proves WT-03 (part: ignored files)
#[tokio::test]
async fn ignored_files_are_kept_unless_they_can_be_made_again() {
    let told = kept(|_, path| {
        write(&path.join("notes.log"), "precious");
        write(&path.join("target/mine.txt"), "precious");
    });
    assert_eq!(told.await, "2 ignored files (notes.log, target/)");
    removed(|_, path| {
        write(
            &path.join("target/CACHEDIR.TAG"),
            "Signature: 8a477f597d28d172789f06886806bc55\n# made by a tool",
        );
        write(&path.join("target/debug/big.o"), "");
        write(&path.join("web/node_modules/x/index.js"), "");
        git(path, &["check-ignore", "-q", "web/node_modules"]);
    })
    .await;
    // Only what the tag begins with makes it one.
    let told = kept(|_, path| write(&path.join("target/CACHEDIR.TAG"), "keep out"));
    assert_eq!(told.await, "1 ignored file (target/)");
    // A link of that name is no such directory.
    let told = kept(|ground, path| {
        ground.write("r/.git/info/exclude", "node_modules\n");
        std::os::unix::fs::symlink("/", path.join("node_modules")).unwrap();
    });
    assert_eq!(told.await, "1 ignored file (node_modules)");
}

#[tokio::test]
async fn what_git_was_told_not_to_see_is_kept() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let told = kept(|_, path| {
            git(path, &["update-index", flag, "a.txt"]);
            write(&path.join("a.txt"), "unseen\n");
        });
        assert_eq!(
            told.await,
            "1 file hidden from git's status (a.txt)",
            "{flag}"
        );
    }
}

#[tokio::test]
async fn a_stash_outlives_its_worktree() {
    let ground = removed(|_, path| {
        write(&path.join("a.txt"), "stashed\n");
        git(path, &["stash", "-q"]);
    })
    .await;
    assert!(
        ground
            .git("r", &["stash", "show", "-p"])
            .contains("stashed")
    );
}

#[tokio::test]
async fn a_repository_in_it_is_kept() {
    let told = kept(|_, path| drop(git(path, &["init", "-q", "inner"])));
    assert_eq!(told.await, "1 uncommitted file (inner/)");
    let told = kept(|_, path| drop(git(path, &["init", "-q", "target/inner"])));
    assert_eq!(told.await, "1 ignored file (target/)");
    // In the place of the worktree itself: git would be asked about another one.
    let ground = Ground::new();
    let worktree = ground.make().await.worktree;
    fs::remove_file(worktree.path.join(".git")).unwrap();
    git(&worktree.path, &["init", "-q"]);
    let told = ground.trees.release(&worktree).await.unwrap();
    assert_eq!(
        told,
        "could not be checked: its .git file was removed or replaced"
    );
    assert_eq!(
        ground
            .other()
            .sweep()
            .iter()
            .filter(|swept| swept.removed)
            .count(),
        0
    );
    assert!(worktree.path.join("a.txt").exists());
}

#[tokio::test]
async fn submodules_are_kept_once_they_are_there() {
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
    let worktree = ground.make().await.worktree;
    assert_eq!(ground.trees.release(&worktree).await, None);
    ground.is_as_before();
    let worktree = ground.make().await.worktree;
    let update = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "update",
        "--init",
    ];
    git(&worktree.path, &update);
    let told = is_kept(&ground, &worktree).await;
    assert_eq!(told, "repositories of submodules, 1 submodule (sub)");
}

#[tokio::test]
async fn what_is_under_way_is_kept() {
    let told = kept(|ground, path| {
        ground.write("r/a.txt", "theirs\n");
        ground.commit("r", "Theirs");
        git(path, &["merge", "-q", "--no-commit", "--no-ff", "main"]);
        git(path, &["checkout", "-q", "HEAD", "--", "."]);
    });
    assert_eq!(told.await, "a merge under way");
    let told = kept(|_, path| drop(git(path, &["update-ref", "refs/worktree/mine", "HEAD"])));
    assert_eq!(told.await, "references of its own");
    let told = kept(|_, path| drop(git(path, &["bisect", "start"])));
    assert!(told.await.contains("a bisection under way"));
}

#[tokio::test]
async fn without_its_directory_only_commits_count() {
    let ground = Ground::new();
    let worktree = ground.make().await.worktree;
    fs::remove_dir_all(&worktree.path).unwrap();
    assert_eq!(ground.trees.release(&worktree).await, None);
    ground.is_as_before();
    let worktree = ground.make().await.worktree;
    write(&worktree.path.join("a.txt"), "committed\n");
    git(&worktree.path, &["commit", "-q", "-a", "-m", "Mine"]);
    fs::remove_dir_all(&worktree.path).unwrap();
    assert_eq!(
        ground.trees.release(&worktree).await.as_deref(),
        Some("1 commit")
    );
    assert_eq!(
        ground.git("r", &["log", "-1", "--format=%s", &worktree.branch]),
        "Mine"
    );
}

#[tokio::test]
async fn what_cannot_be_looked_at_is_kept() {
    let told = kept(|ground, path| {
        // A file of git's that it cannot read.
        let index = registration_of(ground, path).join("index");
        write(&index, "no index");
    });
    let told = told.await;
    assert!(
        told.starts_with("could not be checked: git said: "),
        "{told}"
    );
}

fn registration_of(ground: &Ground, path: &Path) -> std::path::PathBuf {
    ground
        .path("r/.git/worktrees")
        .join(path.file_name().unwrap())
}

#[tokio::test]
async fn somebody_elses_lock_is_heeded() {
    let ground = Ground::new();
    let worktree = ground.make().await.worktree;
    let path = worktree.path.to_str().unwrap();
    ground.git("r", &["worktree", "unlock", path]);
    ground.git("r", &["worktree", "lock", "--reason", "on a stick", path]);
    let told = ground.trees.release(&worktree).await;
    assert_eq!(told.as_deref(), Some("it is locked: on a stick"));
    let swept = ground.other().sweep();
    assert_eq!(
        swept.iter().map(|swept| swept.removed).collect::<Vec<_>>(),
        [false]
    );
    assert!(
        ground
            .other()
            .discard(&swept[0].found)
            .unwrap_err()
            .to_string()
            .contains("on a stick")
    );
    assert!(worktree.path.exists());
}

/// What a repository's settings would hide from a look is seen all the same.
#[tokio::test]
async fn files_that_differ_in_case_or_mode_are_seen() {
    let ground = Ground::new();
    ground.git("r", &["config", "core.ignoreCase", "true"]);
    ground.git("r", &["config", "core.fileMode", "false"]);
    let worktree = ground
        .trees
        .make(ground.wanted("r"))
        .await
        .unwrap()
        .worktree;
    assert_eq!(ground.trees.changes(&worktree).await, None);
    write(&worktree.path.join("A.TXT"), "");
    assert!(
        ground
            .trees
            .changes(&worktree)
            .await
            .unwrap()
            .contains("A.TXT")
    );
    fs::remove_file(worktree.path.join("A.TXT")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(worktree.path.join("a.txt"), mode).unwrap();
    assert!(
        ground
            .trees
            .changes(&worktree)
            .await
            .unwrap()
            .contains("a.txt")
    );
}

/// Whoever can write in the repository's own directory cannot make posse write, or wait, elsewhere.
#[tokio::test]
async fn what_stands_in_gits_files_is_no_word_for_git() {
    let ground = Ground::new();
    let worktree = ground
        .trees
        .make(ground.wanted("r"))
        .await
        .unwrap()
        .worktree;
    let (record, victim) = (
        registration(&worktree).join("logs/HEAD"),
        ground.path("victim"),
    );
    write(&victim, "dear");
    let log = fs::read_to_string(&record).unwrap();
    write(&record, format!("{log}0 --output={} x\n", victim.display()));
    assert!(
        ground
            .trees
            .changes(&worktree)
            .await
            .unwrap()
            .contains("could not be checked")
    );
    write(&record, format!("{log}0 --max-count=0 x\n"));
    assert!(
        ground
            .trees
            .changes(&worktree)
            .await
            .unwrap()
            .contains("could not be checked")
    );
    write(&record, &log);
    let marker = registration(&worktree).join("posse");
    let marked = fs::read_to_string(&marker).unwrap();
    write(
        &marker,
        marked.replace(&worktree.base, &format!("--output={}", victim.display())),
    );
    assert!(ground.trees.list().unwrap()[0].base.is_none());
    write(&marker, &marked);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "dear");
    // A pipe that nobody writes to.
    let lock = registration(&worktree).join("locked");
    fs::remove_file(&lock).unwrap();
    git(
        &worktree.path,
        &[
            "-c",
            &format!("alias.pipe=!mkfifo {}", lock.display()),
            "pipe",
        ],
    );
    assert!(ground.trees.release(&worktree).await.is_some());
    fs::remove_file(&lock).unwrap();
    assert_eq!(ground.trees.release(&worktree).await, None);
}
