//! What the next process finds, and how an agent comes back to its worktree.

use std::fs;

use posse_port::worktree::Worktrees as _;
use posse_tools::GitWorktrees;

use super::{Ground, git, registration, write};

// proves WT-04 (part: locked; sweep)
#[tokio::test]
async fn the_dead_are_swept_and_the_living_are_not() {
    let ground = Ground::new();
    let (dead, living) = (ground.other(), ground.other());
    let clean = dead.make(ground.wanted("r")).await.unwrap().worktree;
    let worked = dead.make(ground.wanted("r")).await.unwrap().worktree;
    write(&worked.path.join("x.rs"), "");
    let alive = living.make(ground.wanted("r")).await.unwrap().worktree;
    // A person's own.
    ground.git("r", &["worktree", "add", "-q", "../own"]);
    assert_eq!(ground.trees.sweep(), []);
    assert!(ground.trees.list().unwrap().iter().all(|found| found.live));
    drop(dead);
    let swept = ground.trees.sweep();
    let mut told: Vec<_> = swept
        .iter()
        .map(|swept| (&swept.found.path, swept.removed))
        .collect();
    told.sort();
    assert_eq!(told, [(&clean.path, true), (&worked.path, false)]);
    assert!(!clean.path.exists() && worked.path.join("x.rs").exists() && alive.path.exists());
    assert!(!registration(&worked).join("locked").exists());
    assert!(registration(&alive).join("locked").exists());
    let list = ground.trees.list().unwrap();
    let told: Vec<_> = list
        .iter()
        .map(|found| (&found.path, found.live, found.keeps.as_deref()))
        .collect();
    let expected = [
        (&worked.path, false, Some("1 uncommitted file (x.rs)")),
        (&alive.path, true, None),
    ];
    assert_eq!(told, expected);
    let found = &list[0];
    assert_eq!(found.origin.as_ref(), Some(&ground.path("r")));
    assert_eq!(
        (found.branch.as_ref(), found.base.as_ref()),
        (Some(&worked.branch), Some(&worked.base))
    );
    // The hosts that are dead have no file any more.
    assert_eq!(
        fs::read_dir(ground.path("home/worktrees/.hosts"))
            .unwrap()
            .count(),
        1
    );
    // Only what a person says is discarded, and not beneath an agent.
    assert!(
        ground
            .trees
            .discard(&list[1])
            .unwrap_err()
            .to_string()
            .contains("an agent works in it")
    );
    ground.trees.discard(found).unwrap();
    assert_eq!(living.release(&alive).await, None);
    assert!(ground.path("own").exists());
    ground.git("r", &["worktree", "remove", "../own"]);
    ground.is_as_before();
}

#[tokio::test]
async fn without_a_home_there_is_nothing_to_sweep() {
    let ground = Ground::empty();
    assert_eq!(ground.trees.sweep(), []);
    assert_eq!(ground.trees.list().unwrap(), []);
    assert!(!ground.path("home").exists());
}

#[tokio::test]
async fn what_lost_its_other_half_is_swept() {
    let ground = Ground::new();
    let dead = ground.other();
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(dead.make(ground.wanted("r")).await.unwrap().worktree);
    }
    drop(dead);
    // A registration without its directory; an empty directory, and a full one, without a registration.
    fs::remove_dir_all(&made[0].path).unwrap();
    fs::remove_dir_all(registration(&made[1])).unwrap();
    fs::remove_dir_all(&made[1].path).unwrap();
    fs::create_dir_all(made[1].path.join("src")).unwrap();
    fs::remove_dir_all(registration(&made[2])).unwrap();
    let swept = ground.trees.sweep();
    let told: Vec<_> = swept
        .iter()
        .map(|swept| (&swept.found.path, swept.removed))
        .collect();
    assert_eq!(
        told,
        [
            (&made[0].path, true),
            (&made[1].path, true),
            (&made[2].path, false)
        ]
    );
    assert_eq!(
        swept[2].found.keeps.as_deref(),
        Some("could not be checked: git no longer knows it")
    );
    ground.trees.discard(&swept[2].found).unwrap();
    assert_eq!(ground.left(), Vec::<String>::new());
    // With its repository gone, it is kept.
    let other = Ground::new();
    let worktree = other.make().await.worktree;
    fs::remove_dir_all(other.path("r")).unwrap();
    let told = other.trees.release(&worktree).await.unwrap();
    assert_eq!(told, "could not be checked: its repository is gone");
    assert!(worktree.path.exists());
    let found = GitWorktrees::new(other.path("home/worktrees"))
        .list()
        .unwrap();
    other.trees.discard(&found[0]).unwrap();
    assert_eq!(other.left(), Vec::<String>::new());
}

#[tokio::test]
async fn an_agent_that_goes_on_has_its_worktree_again() {
    let ground = Ground::new();
    let worktree = ground.make().await.worktree;
    let locked = registration(&worktree).join("locked");
    write(&worktree.path.join("x.rs"), "");
    assert!(ground.trees.release(&worktree).await.is_some());
    assert!(!locked.exists());
    assert_eq!(ground.trees.reclaim(&worktree).await, Ok(false));
    assert!(locked.exists());
    // While somebody has it, nobody else gets it.
    let other = ground.other();
    let why = other.reclaim(&worktree).await.unwrap_err();
    assert!(why.contains("another posse works in the worktree"), "{why}");
    assert_eq!(
        other.release(&worktree).await.as_deref(),
        Some("another posse process is using it")
    );
    assert!(locked.exists());
    fs::remove_file(worktree.path.join("x.rs")).unwrap();
    assert_eq!(ground.trees.release(&worktree).await, None);
    // Removed meanwhile: made again, as it was.
    assert_eq!(other.reclaim(&worktree).await, Ok(true));
    assert_eq!(
        git(&worktree.path, &["branch", "--show-current"]),
        worktree.branch
    );
    assert_eq!(git(&worktree.path, &["rev-parse", "HEAD"]), worktree.base);
    assert!(locked.exists());
    assert_eq!(other.release(&worktree).await, None);
    ground.is_as_before();
}

#[tokio::test]
async fn what_a_person_has_removed_is_made_again() {
    let ground = Ground::new();
    let worktree = ground.make().await.worktree;
    write(&worktree.path.join("a.txt"), "committed\n");
    git(&worktree.path, &["commit", "-q", "-a", "-m", "Mine"]);
    assert_eq!(
        ground.trees.release(&worktree).await.as_deref(),
        Some("1 commit")
    );
    // The directory alone: its commits are there again.
    fs::remove_dir_all(&worktree.path).unwrap();
    assert_eq!(ground.trees.reclaim(&worktree).await, Ok(true));
    assert_eq!(
        fs::read_to_string(worktree.path.join("a.txt")).unwrap(),
        "committed\n"
    );
    assert_eq!(
        ground.trees.release(&worktree).await.as_deref(),
        Some("1 commit")
    );
    // The branch too: it begins where it began.
    ground.git(
        "r",
        &["worktree", "remove", worktree.path.to_str().unwrap()],
    );
    ground.git("r", &["branch", "-q", "-D", &worktree.branch]);
    assert_eq!(ground.trees.reclaim(&worktree).await, Ok(true));
    assert_eq!(git(&worktree.path, &["rev-parse", "HEAD"]), worktree.base);
    assert_eq!(ground.trees.release(&worktree).await, None);
    // All of it.
    fs::remove_dir_all(worktree.path.parent().unwrap()).unwrap();
    assert_eq!(ground.trees.reclaim(&worktree).await, Ok(true));
    assert_eq!(git(&worktree.path, &["status", "--porcelain"]), "");
    // What lies in its place is not touched.
    assert_eq!(ground.trees.release(&worktree).await, None);
    write(&worktree.path.join("mine"), "");
    let why = ground.trees.reclaim(&worktree).await.unwrap_err();
    assert!(why.contains("there are files in it"), "{why}");
    assert!(worktree.path.join("mine").exists());
    // One of another home is none of ours.
    let elsewhere = GitWorktrees::new(ground.path("elsewhere"));
    assert!(
        elsewhere
            .reclaim(&worktree)
            .await
            .unwrap_err()
            .contains("is not a worktree of this posse")
    );
    assert!(elsewhere.release(&worktree).await.is_some());
}

/// A process that died while it made a worktree again has left half of one: nobody is given that, and it is
/// not taken from whoever goes on.
#[tokio::test]
async fn what_was_only_half_made_again_is_made_anew_for_the_next() {
    let ground = Ground::new();
    let dead = ground.other();
    let worktree = dead.make(ground.wanted("r")).await.unwrap().worktree;
    // As if it had been killed between noting it and handing it out.
    let agent = worktree
        .path
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let host = fs::read_dir(ground.path("home/worktrees/.hosts"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let note = format!(".making-{agent}.{}", host.file_name().to_str().unwrap());
    let text = serde_json::json!({"worktree": worktree, "branch": false}).to_string();
    write(&worktree.path.with_file_name(note), &text);
    fs::remove_file(registration(&worktree).join("posse")).unwrap();
    fs::remove_file(worktree.path.join("a.txt")).unwrap();
    drop(dead);
    let next = ground.other();
    assert_eq!(
        next.reclaim(&worktree).await,
        Ok(true),
        "half of one is none"
    );
    assert!(worktree.path.join("a.txt").exists());
    write(&worktree.path.join("work.rs"), "");
    assert_eq!(ground.trees.sweep(), [], "its agent lives");
    assert!(worktree.path.join("work.rs").exists());
    assert!(next.release(&worktree).await.unwrap().contains("work.rs"));
}

#[tokio::test]
async fn commits_that_git_alone_remembers_are_not_forgotten_with_the_directory() {
    let ground = Ground::new();
    let worktree = ground
        .trees
        .make(ground.wanted("r"))
        .await
        .unwrap()
        .worktree;
    git(&worktree.path, &["checkout", "-q", "--detach"]);
    write(&worktree.path.join("x.rs"), "");
    git(&worktree.path, &["add", "-A"]);
    git(&worktree.path, &["commit", "-q", "-m", "on no branch"]);
    let known = registration(&worktree);
    fs::remove_dir_all(&worktree.path).unwrap();
    let refused = ground.other().reclaim(&worktree).await;
    assert!(refused.is_err(), "another has it");
    let refused = ground.trees.reclaim(&worktree).await.unwrap_err();
    assert!(refused.contains("1 commit on no branch"), "{refused}");
    assert!(
        ground
            .trees
            .release(&worktree)
            .await
            .unwrap()
            .contains("1 commit on no branch")
    );
    assert!(known.join("logs/HEAD").exists());
}

#[tokio::test]
async fn one_that_was_moved_keeps_its_branch() {
    let ground = Ground::new();
    let worktree = ground
        .trees
        .make(ground.wanted("r"))
        .await
        .unwrap()
        .worktree;
    let there = ground.path("elsewhere");
    let (from, to) = (worktree.path.to_str().unwrap(), there.to_str().unwrap());
    ground.git("r", &["worktree", "move", "-f", "-f", from, to]);
    let _ = ground.trees.release(&worktree).await;
    assert!(there.join("a.txt").exists());
    assert_eq!(
        ground.git(
            "r",
            &["branch", "--list", "--format=%(refname:short)", "posse/*"]
        ),
        worktree.branch
    );
}
