//! What a new worktree is, and why there can be none.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use posse_port::worktree::{Base, Made, Wanted, Worktree, Worktrees as _};

use super::{Ground, git, registration};

// proves WT-01 (part: a branch of its own)
#[tokio::test]
async fn it_is_a_checkout_of_its_own_on_a_branch_of_its_own() {
    let ground = Ground::new();
    ground.write("r/a.txt", "three\n");
    ground.write("r/new.rs", "");
    let wanted = ground.wanted("r");
    let made = ground.trees.make(wanted.clone()).await.unwrap();
    let head = ground.git("r", &["rev-parse", "HEAD"]);
    let path = made.worktree.path.clone();
    let expected = Made {
        worktree: Worktree {
            path: path.clone(),
            origin: ground.path("r"),
            branch: format!("posse/{}", wanted.agent),
            base: head.clone(),
            carried: None,
            by_hook: false,
        },
        base: format!("main, {} \"Add two\"", &head[..7]),
        missing: Some("1 changed file: a.txt; 1 new file: new.rs".into()),
        carried: None,
    };
    assert_eq!(made, expected);
    assert_eq!(
        path.file_name().unwrap().to_str().unwrap(),
        wanted.agent.to_string()
    );
    assert!(
        path.parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("r-")
    );
    assert_eq!(
        fs::read_to_string(path.join("a.txt")).unwrap(),
        "one\ntwo\n"
    );
    assert_eq!(
        git(&path, &["branch", "--show-current"]),
        made.worktree.branch
    );
    assert_eq!(
        fs::metadata(ground.path("home/worktrees")).unwrap().mode() & 0o777,
        0o700
    );
    let reason = fs::read_to_string(registration(&made.worktree).join("locked")).unwrap();
    assert!(
        reason.starts_with(&format!("posse: agent {}, host ", wanted.agent)),
        "{reason}"
    );
    assert_eq!(ground.left(), [wanted.agent.to_string()]);
    assert_eq!(ground.trees.changes(&made.worktree).await, None);
}

#[tokio::test]
async fn it_can_be_made_from_beneath_from_another_worktree_and_through_a_link() {
    let ground = Ground::new();
    let beneath = ground.trees.make(ground.wanted("r/src")).await.unwrap();
    assert_eq!(beneath.worktree.origin, ground.path("r"));
    symlink(ground.path("r"), ground.path("link")).unwrap();
    let linked = ground.trees.make(ground.wanted("link")).await.unwrap();
    assert_eq!(linked.worktree.origin, ground.path("r"));
    // Another agent's worktree is a checkout like any other.
    let path = &beneath.worktree.path;
    super::write(&path.join("a.txt"), "deeper\n");
    git(path, &["commit", "-q", "-a", "-m", "Deeper"]);
    let nested = Wanted {
        from: path.join("src"),
        ..ground.wanted("r")
    };
    let nested = ground.trees.make(nested).await.unwrap();
    assert_eq!(nested.worktree.origin, *path);
    assert_eq!(nested.worktree.path.parent(), path.parent());
    assert_eq!(
        fs::read_to_string(nested.worktree.path.join("a.txt")).unwrap(),
        "deeper\n"
    );
    assert!(
        nested.base.starts_with(&beneath.worktree.branch),
        "{}",
        nested.base
    );
}

#[tokio::test]
async fn where_there_is_nothing_to_make_it_from_that_is_said_with_what_to_do() {
    let ground = Ground::empty();
    let refused = async |from: &str, told: &[&str]| {
        let why = ground.trees.make(ground.wanted(from)).await.unwrap_err();
        assert!(told.iter().all(|told| why.contains(told)), "{from}: {why}");
        assert_eq!(ground.left(), Vec::<String>::new());
    };
    fs::create_dir(ground.path("plain")).unwrap();
    refused(
        "plain",
        &["not in a git repository", "git init", "Omit isolation"],
    )
    .await;
    refused("nowhere", &["does not exist"]).await;
    ground.git("", &["init", "-q", "--bare", "bare.git"]);
    refused("bare.git", &["bare repository", "omit isolation"]).await;
    // Also where a repository contains one, whose settings could run programs.
    ground.git("", &["init", "-q", "--bare", "r/pkg"]);
    refused("r/pkg", &["bare repository", "omit isolation"]).await;
    ground.git("", &["init", "-q", "-b", "main", "unborn"]);
    refused("unborn", &["no commit yet", "omit isolation"]).await;
    refused("unborn/.git", &["inside a git directory"]).await;
}

// proves WT-02 (part: fresh)
#[tokio::test]
async fn fresh_is_the_remotes_default_branch() {
    let ground = Ground::new();
    let fresh = |from: &str| Wanted {
        base: Base::Fresh,
        ..ground.wanted(from)
    };
    let why = ground.trees.make(fresh("r")).await.unwrap_err();
    assert!(
        why.contains("set-head") && why.contains("begin with the parent's HEAD"),
        "{why}"
    );
    ground.git("", &["clone", "-q", "r", "clone"]);
    ground.write("clone/a.txt", "ahead\n");
    ground.commit("clone", "Ahead");
    ground.write("clone/b.txt", "");
    let made = ground.trees.make(fresh("clone")).await.unwrap();
    assert_eq!(made.worktree.base, ground.git("r", &["rev-parse", "main"]));
    assert_eq!(
        made.base,
        format!("origin/main, {} \"Add two\"", &made.worktree.base[..7])
    );
    assert_eq!(made.missing.as_deref(), Some("1 new file: b.txt"));
    assert_eq!(
        fs::read_to_string(made.worktree.path.join("a.txt")).unwrap(),
        "one\ntwo\n"
    );
    assert_eq!(ground.trees.release(&made.worktree).await, None);
}

#[tokio::test]
async fn what_lies_in_its_place_is_left_alone() {
    let ground = Ground::new();
    let plot = ground
        .make()
        .await
        .worktree
        .path
        .parent()
        .unwrap()
        .to_owned();
    let wanted = ground.wanted("r");
    fs::create_dir(ground.path("out")).unwrap();
    symlink(ground.path("out"), plot.join(wanted.agent.to_string())).unwrap();
    let why = ground.trees.make(wanted.clone()).await.unwrap_err();
    assert!(
        why.contains("already exists, where the worktree would be"),
        "{why}"
    );
    assert_eq!(fs::read_dir(ground.path("out")).unwrap().count(), 0);
    assert!(plot.join(wanted.agent.to_string()).is_symlink());
    assert_eq!(
        ground.git(
            "r",
            &["branch", "--list", &format!("posse/{}", wanted.agent)]
        ),
        ""
    );
    // A plot that is a link is not followed either.
    let other = Ground::new();
    let home = other.path("home/worktrees");
    let name = other
        .make()
        .await
        .worktree
        .path
        .parent()
        .unwrap()
        .file_name()
        .unwrap()
        .to_owned();
    fs::remove_dir_all(home.join(&name)).unwrap();
    symlink(ground.path("out"), home.join(&name)).unwrap();
    assert!(other.trees.make(other.wanted("r")).await.is_err());
    assert_eq!(fs::read_dir(ground.path("out")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_cannot_be_made_leaves_nothing() {
    let ground = Ground::new();
    // A file that cannot be checked out: its filter fails.
    ground.write("r/.gitattributes", "a.txt filter=broken\n");
    ground.commit("r", "Break");
    ground.git("r", &["config", "filter.broken.smudge", "false"]);
    ground.git("r", &["config", "filter.broken.required", "true"]);
    let why = ground.trees.make(ground.wanted("r")).await.unwrap_err();
    assert!(
        why.contains("smudge filter broken failed") && why.contains("omit isolation"),
        "{why}"
    );
    ground.is_as_before();
}

#[tokio::test]
async fn no_hook_is_run() {
    let ground = Ground::new();
    let mark = ground.path("ran");
    for hook in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ] {
        let file = ground.path("r/.git/hooks").join(hook);
        super::write(&file, format!("#!/bin/sh\ntouch {}\n", mark.display()));
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let made = ground.make().await;
    assert_eq!(ground.trees.release(&made.worktree).await, None);
    assert!(!mark.exists());
}

// proves WT-01 (part: a branch of its own)
#[tokio::test]
async fn sixteen_at_once_are_all_fine_and_apart() {
    let ground = Ground::new();
    ground.write("r/new.rs", "");
    let mut tasks: tokio::task::JoinSet<_> = (0..16)
        .map(|_| ground.trees.make(ground.wanted("r")))
        .collect();
    let mut made = Vec::new();
    while let Some(done) = tasks.join_next().await {
        made.push(done.unwrap().unwrap());
    }
    let branches: HashSet<&str> = made
        .iter()
        .map(|made| made.worktree.branch.as_str())
        .collect();
    assert_eq!(branches.len(), 16);
    for made in &made {
        assert_eq!(git(&made.worktree.path, &["status", "--porcelain"]), "");
        assert_eq!(made.missing.as_deref(), Some("1 new file: new.rs"));
    }
    for made in &made {
        assert_eq!(ground.trees.release(&made.worktree).await, None);
    }
    ground.is_as_before();
}

#[tokio::test]
async fn one_that_nobody_waits_for_any_more_is_not_left() {
    let ground = Ground::new();
    let trees = ground.other();
    let first = trees.make(ground.wanted("r")).await.unwrap().worktree;
    let mut hosts = fs::read_dir(ground.path("home/worktrees/.hosts")).unwrap();
    let host = fs::File::open(hosts.next().unwrap().unwrap().path()).unwrap();
    // The first poll starts it.
    let mut making = trees.make(ground.wanted("r"));
    let waker = std::task::Waker::noop();
    assert!(
        making
            .as_mut()
            .poll(&mut std::task::Context::from_waker(waker))
            .is_pending()
    );
    drop((making, trees));
    // Whoever still works for that host has it locked.
    host.lock().unwrap();
    assert_eq!(
        ground.left(),
        [first.path.file_name().unwrap().to_str().unwrap()]
    );
    assert_eq!(
        ground
            .git("r", &["branch", "--list", "posse/*"])
            .lines()
            .count(),
        1
    );
    assert_eq!(ground.trees.sweep().len(), 1);
    ground.is_as_before();
}
