//! An agent in a worktree: its file tools never reach the checkout that the worktree was made from, its git
//! works on the worktree, rules about the checkout hold, and its notes are within reach.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use posse_permission::{Policy, RuleList, Source};
use posse_port::tool::{AgentMemory, ToolContext, ToolError, Workspace};
use posse_protocol::RawJson;
use posse_tools::Reach;
use serde_json::{Value, json};

use crate::race::Swapper;
use crate::world::{World, told, tool};

/// A world whose agent works in `home/.posse/trees/t`, a copy of `w`.
fn world() -> World {
    let mut world = World::in_memory();
    world.write("w/f", "original needle\n");
    world.write("w/d/f", "original needle\n");
    world.write("home/.posse/trees/t/f", "copy\n");
    world.write("home/.posse/trees/t/d/f", "copy\n");
    let there = world
        .context
        .workspace
        .in_worktree(&world.path(TREE), &world.path("w"))
        .unwrap();
    world.context.workspace = Arc::new(there);
    world
}

const TREE: &str = "home/.posse/trees/t";

/// What each file tool would be asked to reach `path`.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("Read", json!({"file_path": path})),
        ("Write", json!({"file_path": path, "content": "changed"})),
        (
            "Edit",
            json!({"file_path": path, "old_string": "original", "new_string": "changed"}),
        ),
        (
            "Grep",
            json!({"pattern": "needle", "path": path, "output_mode": "content"}),
        ),
        ("Glob", json!({"pattern": "*", "path": path})),
    ]
}

fn untouched(world: &World) {
    assert_eq!(world.read("w/f"), "original needle\n");
    assert_eq!(world.read("w/d/f"), "original needle\n");
    let mut names: Vec<_> = fs::read_dir(world.path("w"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["d", "f"]);
}

/// Judges a call, lets `meanwhile` happen, and runs what was judged.
async fn between(
    world: &World,
    (name, input): (&str, Value),
    meanwhile: impl FnOnce(),
) -> Result<String, ToolError> {
    let subject = world.intent(name, &input)?.subject;
    meanwhile();
    let context = ToolContext {
        subject,
        ..world.context.clone()
    };
    let output = tool(name, Reach::Public)
        .run(RawJson::from(&input), context)
        .await?;
    Ok(format!("{:?}", output.content))
}

// proves WT-01 (part: tools inside)
#[tokio::test]
async fn no_path_leads_back_to_the_checkout() {
    let world = world();
    let original = world.path("w");
    world.link(&format!("{TREE}/file-link"), original.join("f"));
    world.link(&format!("{TREE}/tree-link"), &original);
    world.link(&format!("{TREE}/short-link"), "../../../../w/f");
    let paths = [
        original.join("f").display().to_string(),
        original.join("new").display().to_string(),
        "../../../../w/f".into(),
        "d/../../../../../w/d/f".into(),
        "file-link".into(),
        "tree-link/f".into(),
        "tree-link/d/f".into(),
        "tree-link/new".into(),
        "short-link".into(),
        "~/../w/f".into(),
        format!("/proc/self/root{}/f", original.display()),
    ];
    for path in paths {
        for (name, input) in calls(&path) {
            let told = world.told(name, input).await;
            assert!(
                told.contains("is outside the allowed directories"),
                "{name} {path}: {told}"
            );
        }
    }
    // What is found on the way is not followed either.
    let found = world.ok("Grep", json!({"pattern": "needle"})).await;
    assert_eq!(
        found,
        world
            .ok("Grep", json!({"pattern": "that nobody wrote"}))
            .await
    );
    untouched(&world);
    assert!(
        world
            .ok("Read", json!({"file_path": "d/f"}))
            .await
            .contains("copy")
    );
}

#[tokio::test]
async fn a_directory_that_becomes_a_link_is_not_followed() {
    for (name, input) in calls("d/f").into_iter().chain(calls("d")) {
        let world = world();
        world.ok("Read", json!({"file_path": "d/f"})).await;
        let swap = || {
            fs::rename(
                world.path(&format!("{TREE}/d")),
                world.path(&format!("{TREE}/was")),
            )
            .unwrap();
            world.link(&format!("{TREE}/d"), world.path("w/d"));
        };
        let told = told(between(&world, (name, input), swap).await);
        assert!(!told.contains("original"), "{name}: {told}");
        untouched(&world);
    }
}

#[tokio::test]
async fn a_worktree_that_becomes_a_link_is_not_followed() {
    for (name, input) in calls("f").into_iter().chain(calls("new")).chain(calls(".")) {
        let world = world();
        world.ok("Read", json!({"file_path": "f"})).await;
        let swap = || {
            fs::rename(world.path(TREE), world.path("home/was")).unwrap();
            world.link(TREE, world.path("w"));
        };
        let told = told(between(&world, (name, input.clone()), swap).await);
        assert!(!told.contains("original"), "{name}: {told}");
        // Nor by a call that is judged after it.
        let told = world.told(name, input).await;
        assert!(
            told.contains("is outside the allowed directories"),
            "{name}: {told}"
        );
        untouched(&world);
    }
}

#[tokio::test]
async fn a_worktree_that_is_swapped_again_and_again_is_never_the_checkout() {
    let world = world();
    world.link("home/.posse/trees/l", world.path("w"));
    let swapper = Swapper::start(world.path(TREE), world.path("home/.posse/trees/l"));
    let (mut done, mut refused, mut tries) = (0, 0, 0);
    while tries < 3000 || done < 30 || refused < 30 {
        tries += 1;
        let read = world.call("Read", json!({"file_path": "f"})).await;
        let wrote = world
            .call(
                "Write",
                json!({"file_path": format!("n{}", tries % 10), "content": "x"}),
            )
            .await;
        for outcome in [read, wrote] {
            match outcome {
                Ok(output) => {
                    done += 1;
                    assert!(!format!("{:?}", output.content).contains("original"));
                }
                Err(ToolError::Tell(_)) => refused += 1,
                Err(stop) => panic!("{stop}"),
            }
        }
    }
    drop(swapper);
    untouched(&world);
}

#[tokio::test]
async fn rules_about_the_checkout_hold_while_a_search_runs() {
    let mut world = world();
    for path in ["a.txt", "secrets/b.txt", "shy/c.txt"] {
        world.write(&format!("{TREE}/{path}"), "needle\n");
    }
    let (root, home) = (world.path("w"), Some(world.path("home")));
    let source = Source {
        name: "a test".into(),
        cwd: root.clone(),
        root,
        home,
    };
    let mut policy = Policy::default();
    let rules = RuleList {
        deny: vec!["Read(/secrets/**)".into()],
        ask: vec!["Read(/shy/**)".into()],
        ..RuleList::default()
    };
    policy.add(&source, &rules).unwrap();
    world.context.files = Arc::new(policy);
    for (name, input) in [
        ("Grep", json!({"pattern": "needle"})),
        ("Glob", json!({"pattern": "*.txt"})),
    ] {
        let told = world.ok(name, input).await;
        let lines: Vec<_> = told.lines().filter(|line| line.ends_with(".txt")).collect();
        assert_eq!(lines, ["a.txt"], "{name}: {told}");
    }
    let told = world
        .told(
            "Grep",
            json!({"pattern": "needle", "path": "secrets/b.txt"}),
        )
        .await;
    assert!(told.contains("a rule denies it"), "{told}");
}

#[tokio::test]
async fn notes_are_within_reach_and_what_lies_beside_them_is_not() {
    let mut world = world();
    world.write("w/.claude/agent-memory/reviewer/MEMORY.md", "be kind\n");
    world.write("w/.claude/agent-memory/other/MEMORY.md", "private\n");
    let directory = world.path("w/.claude/agent-memory/reviewer");
    let notes = Some(AgentMemory {
        directory: directory.clone(),
        only: true,
    });
    world.context.workspace = Arc::new(Workspace {
        notes,
        ..Workspace::clone(&world.context.workspace)
    });
    let at = |name: &str| directory.join(name).display().to_string();
    assert!(
        world
            .ok("Read", json!({"file_path": at("MEMORY.md")}))
            .await
            .contains("be kind")
    );
    world
        .ok(
            "Write",
            json!({"file_path": at("deep/new.md"), "content": "short names"}),
        )
        .await;
    world
        .ok(
            "Edit",
            json!({"file_path": at("MEMORY.md"), "old_string": "kind", "new_string": "strict"}),
        )
        .await;
    assert_eq!(
        world.read("w/.claude/agent-memory/reviewer/deep/new.md"),
        "short names"
    );
    assert_eq!(
        world.read("w/.claude/agent-memory/reviewer/MEMORY.md"),
        "be strict\n"
    );
    for path in [
        at("../other/MEMORY.md"),
        at("../../settings.json"),
        at("../new.md"),
    ] {
        for (name, input) in calls(&path) {
            let told = world.told(name, input).await;
            assert!(
                told.contains("is outside the allowed directories"),
                "{name} {path}: {told}"
            );
        }
    }
    let below = world.context.workspace.below(world.path(TREE));
    world.context.workspace = Arc::new(below);
    let told = world
        .told("Read", json!({"file_path": at("MEMORY.md")}))
        .await;
    assert!(
        told.contains("is outside the allowed directories"),
        "{told}"
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "git makes what the test is about"
)]
fn git(directory: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(arguments);
    for name in OF_A_REPOSITORY {
        git.env_remove(name);
    }
    let output = git.current_dir(directory).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// What a hook is told of its repository.
const OF_A_REPOSITORY: [&str; 8] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
];

/// Where the process that is posse started from a hook finds its checkout.
const CHECKOUT: &str = "POSSE_TEST_CHECKOUT";

#[test]
#[expect(clippy::disallowed_methods, reason = "git starts posse from a hook")]
fn git_works_on_the_worktree_also_if_a_hook_has_started_posse() {
    let world = World::new();
    let checkout = world.path("w");
    git(&checkout, &["init", "-q"]);
    world.write("w/f", "x");
    git(&checkout, &["add", "f"]);
    git(&checkout, &["commit", "-qm", "first"]);
    git(&checkout, &["worktree", "add", "-q", "../out/t"]);
    let this = std::env::current_exe().unwrap();
    let mut posse = Command::new(this);
    posse.args([
        "--exact",
        "isolated::as_started_by_a_hook",
        "--ignored",
        "--nocapture",
    ]);
    posse
        .env(CHECKOUT, &checkout)
        .env("GIT_DIR", checkout.join(".git"))
        .env("GIT_WORK_TREE", &checkout);
    posse
        .env("GIT_INDEX_FILE", checkout.join(".git/index"))
        .env("GIT_PREFIX", "");
    posse
        .env("GIT_COMMON_DIR", checkout.join(".git"))
        .env("GIT_NAMESPACE", "n");
    posse
        .env("GIT_OBJECT_DIRECTORY", world.path("out"))
        .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", "/");
    let output = posse.output().unwrap();
    let told =
        [output.stdout, output.stderr].map(|told| String::from_utf8_lossy(&told).into_owned());
    assert!(output.status.success(), "{}", told.concat());
    assert!(told.concat().contains("1 passed"), "{}", told.concat());
}

#[tokio::test]
#[ignore = "started by another test, with the environment of a hook"]
#[expect(clippy::disallowed_methods, reason = "it is told so where it is")]
async fn as_started_by_a_hook() {
    let checkout = std::path::PathBuf::from(std::env::var(CHECKOUT).unwrap());
    let there = checkout.parent().unwrap().join("out/t");
    let mut world = World::new();
    let names = OF_A_REPOSITORY.join("|");
    let seen = format!("git rev-parse --show-toplevel; env | grep -E '^({names})=' | wc -l");
    let seen = json!({"command": seen});
    let own = Workspace {
        cwd: checkout.clone(),
        roots: vec![checkout.clone()],
        ..(*world.context.workspace).clone()
    };
    // Who works in the checkout has what the hook was given.
    world.context.workspace = Arc::new(own);
    let given = world.ok("Bash", seen.clone()).await;
    assert_eq!(
        given.lines().collect::<Vec<_>>(),
        [checkout.to_str().unwrap(), "8"]
    );
    let worktree = world
        .context
        .workspace
        .in_worktree(&there, &checkout)
        .unwrap();
    world.context.workspace = Arc::new(worktree);
    let given = world.ok("Bash", seen).await;
    assert_eq!(
        given.lines().collect::<Vec<_>>(),
        [there.to_str().unwrap(), "0"]
    );
    let commit = "git -c user.name=t -c user.email=t@example.com commit -q --allow-empty -m second && git log \
                  --format=%s";
    let given = world.ok("Bash", json!({"command": commit})).await;
    assert_eq!(given.lines().collect::<Vec<_>>(), ["second", "first"]);
    let given = world
        .ok(
            "Bash",
            json!({"command": format!("git -C {} log --format=%s", checkout.display())}),
        )
        .await;
    assert_eq!(
        given.trim_end(),
        "first",
        "the checkout's own branch stays where it was"
    );
}
