//! What differs in a worktree, for the person who reviews it.

use posse_port::worktree::{Dirty, Worktree, Worktrees as _};
use posse_tools::{WorktreeDiff, WorktreeError, WorktreeSummary};

use super::{Ground, git, write};

/// A worktree with a commit, a change that is not committed, and files that git does not know.
async fn worked_in(ground: &Ground) -> Worktree {
    let worktree = ground.make().await.worktree;
    let path = &worktree.path;
    write(&path.join("a.txt"), "one\n2\n");
    git(path, &["commit", "-q", "-a", "-m", "Change two"]);
    write(&path.join("src/b.rs"), "fn b() {}\nfn c() {}\n");
    write(&path.join("src/new \"file\".rs"), "fn d() {}");
    write(&path.join("picture"), b"\0\x01");
    write(&path.join("ignored.log"), "nothing\n");
    worktree
}

fn told(diff: &WorktreeDiff) -> Vec<String> {
    let files = diff.files.iter();
    files
        .map(|file| {
            let note = file.note.as_deref().unwrap_or("-");
            format!("{note}: {}", file.change)
        })
        .collect()
}

#[tokio::test]
async fn all_that_differs_is_told_and_nothing_is_changed() {
    let ground = Ground::new();
    let worktree = worked_in(&ground).await;
    let index = || git(&worktree.path, &["ls-files", "--stage"]);
    let status = || git(&worktree.path, &["status", "--porcelain"]);
    let before = (index(), status());
    let expected = [
        "-: --- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
        "not text, or too long to compare: --- /dev/null\n+++ picture\n",
        "-: --- src/b.rs\n+++ src/b.rs\n@@ -1 +1,2 @@\n fn b() {}\n+fn c() {}\n",
        "-: --- /dev/null\n+++ src/new \"file\".rs\n@@ -0,0 +1 @@\n+fn d() {}\n\
         \\ No newline at end of file\n",
    ];
    let summary = WorktreeSummary {
        commits: 1,
        files: 4,
        added: 3,
        removed: 1,
    };
    // Settings of a person or a repository change nothing.
    for setting in ["", "noprefix", "mnemonicPrefix", "suppressBlankEmpty"] {
        if !setting.is_empty() {
            ground.git("r", &["config", &format!("diff.{setting}"), "true"]);
        }
        assert_eq!(told(&ground.trees.diff(&worktree).unwrap()), expected);
        assert_eq!(ground.trees.summary(&worktree).unwrap(), summary);
    }
    for (name, value) in [
        ("diff.external", "false"),
        ("color.ui", "always"),
        ("diff.context", "0"),
        ("diff.renames", "copies"),
    ] {
        ground.git("r", &["config", name, value]);
    }
    assert_eq!(told(&ground.trees.diff(&worktree).unwrap()), expected);
    assert_eq!((index(), status()), before);
    let directory = ground.path("r/.git/worktrees");
    let directory = directory.join(worktree.path.file_name().unwrap());
    let left = std::fs::read_dir(directory).unwrap().flatten();
    let mut left = left.map(|entry| entry.file_name().into_string().unwrap());
    assert!(!left.any(|name| name.contains("posse-index")));
}

#[tokio::test]
async fn files_that_are_too_many_are_counted() {
    let ground = Ground::new();
    let worktree = ground.make().await.worktree;
    for number in 0..2_003 {
        write(&worktree.path.join(format!("new/{number}")), "a line\n");
    }
    let diff = ground.trees.diff(&worktree).unwrap();
    assert_eq!((diff.files.len(), diff.left_out), (1_000, 1_003));
    assert_eq!(ground.trees.summary(&worktree).unwrap().files, 2_003);
}

#[tokio::test]
async fn work_of_the_parent_is_not_the_agents() {
    let ground = Ground::new();
    ground.write("r/a.txt", "one\ntwo\nthree\n");
    ground.write("r/untracked.txt", "new\n");
    let mut wanted = ground.wanted("r");
    wanted.dirty = Dirty::Carry;
    let worktree = ground.trees.make(wanted).await.unwrap().worktree;
    let nothing = WorktreeSummary::default();
    assert_eq!(ground.trees.summary(&worktree).unwrap(), nothing);
    write(&worktree.path.join("untracked.txt"), "newer\n");
    let expected = ["-: --- untracked.txt\n+++ untracked.txt\n@@ -1 +1 @@\n-new\n+newer\n"];
    assert_eq!(told(&ground.trees.diff(&worktree).unwrap()), expected);
}

#[tokio::test]
async fn places_are_known_without_git_and_those_that_are_gone_are_not() {
    let ground = Ground::new();
    assert_eq!(ground.trees.places_of(|_| true).unwrap(), []);
    let (kept, other) = (worked_in(&ground).await, ground.make().await.worktree);
    let listed = |meant: &Worktree| {
        let name = meant.path.file_name().unwrap().to_str().unwrap().to_owned();
        let places = ground.trees.places_of(|agent| agent.to_string() == name);
        let places = places.unwrap().into_iter();
        places.map(|it| (it.worktree, it.live)).collect::<Vec<_>>()
    };
    assert_eq!(listed(&kept), [(kept.clone(), true)]);
    assert_eq!(ground.trees.places_of(|_| true).unwrap().len(), 2);
    assert!(ground.trees.release(&kept).await.is_some());
    assert_eq!(listed(&kept), [(kept.clone(), false)]);
    assert_eq!(ground.trees.release(&other).await, None);
    assert_eq!(listed(&other), []);
    let gone = ground.trees.diff(&other).unwrap_err();
    assert!(matches!(gone, WorktreeError::NotThere { .. }), "{gone}");
    let elsewhere = Worktree {
        path: ground.path("r"),
        ..kept
    };
    assert!(ground.trees.diff(&elsewhere).is_err());
}
