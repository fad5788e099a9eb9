//! Glob and Grep.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use posse_permission::{Policy, RuleList, Source};
use serde_json::json;

use crate::world::{World, text};

fn age(world: &World, path: &str, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 - seconds);
    File::options()
        .write(true)
        .open(world.path(path))
        .unwrap()
        .set_modified(time)
        .unwrap();
}

#[tokio::test]
async fn glob_tells_the_newest_first_and_leaves_out_what_git_ignores() {
    let world = World::new();
    for (seconds, path) in ["w/a.rs", "w/src/b.rs", "w/src/deep/c.rs", "w/.hidden/d.rs"]
        .iter()
        .enumerate()
    {
        world.write(path, "");
        age(&world, path, seconds as u64);
    }
    world.write("w/target/e.rs", "");
    world.write("w/.git/f.rs", "");
    world.write("w/.gitignore", "target/\n");
    world.write("out/g.rs", "");
    world.link("w/linked", world.path("out"));
    world.link("w/link.rs", world.path("out/g.rs"));
    let glob = async |pattern: &str| world.ok("Glob", json!({"pattern": pattern})).await;
    assert_eq!(
        glob("**/*.rs").await,
        "a.rs\nsrc/b.rs\nsrc/deep/c.rs\n.hidden/d.rs"
    );
    assert_eq!(
        glob("*.rs").await,
        "a.rs\nsrc/b.rs\nsrc/deep/c.rs\n.hidden/d.rs"
    );
    assert_eq!(glob("src/*.rs").await, "src/b.rs");
    assert_eq!(glob("src/**/{b,c}.rs").await, "src/b.rs\nsrc/deep/c.rs");
    assert_eq!(glob("*.py").await, "no file matches");
    let absolute = world.path("w/src/*.rs");
    assert_eq!(glob(absolute.to_str().unwrap()).await, "src/b.rs");
    let within = world
        .ok("Glob", json!({"pattern": "*.rs", "path": "src/deep"}))
        .await;
    assert_eq!(within, "src/deep/c.rs");
    for (pattern, path) in [
        ("/etc/*", "."),
        ("../out/*", "."),
        ("[", "."),
        ("*", "a.rs"),
        ("*", "absent"),
    ] {
        world
            .told("Glob", json!({"pattern": pattern, "path": path}))
            .await;
    }
}

#[tokio::test]
async fn glob_tells_a_hundred() {
    let world = World::new();
    for n in 0..120 {
        world.write(&format!("w/{n}"), "");
    }
    let told = world.ok("Glob", json!({"pattern": "*"})).await;
    assert_eq!(told.lines().count(), 101);
    assert!(
        told.ends_with("(100 of 120; a narrower pattern or path shows the rest)"),
        "{told}"
    );
}

#[tokio::test]
async fn grep_tells_files_lines_and_counts() {
    let world = World::new();
    world.write("w/a.rs", "one\ntwo\nthree\nfour\nTWO\n");
    world.write("w/b.py", "two two\n");
    world.write("w/binary", b"two\0");
    world.write("w/ignored", "two\n");
    world.write("w/.gitignore", "ignored\n");
    world.write("out/c", "two\n");
    world.link("w/link", world.path("out/c"));
    world.link("w/linked", world.path("out"));
    let grep = async |input| world.ok("Grep", input).await;
    let content = "content";
    assert_eq!(grep(json!({"pattern": "two"})).await, "a.rs\nb.py");
    assert_eq!(
        grep(json!({"pattern": "two", "-i": true, "output_mode": "count"})).await,
        "a.rs:2\nb.py:1"
    );
    assert_eq!(
        grep(json!({"pattern": "tw.$", "output_mode": content})).await,
        "a.rs:2:two\nb.py:1:two two"
    );
    let around =
        json!({"pattern": "two", "-i": true, "-A": 1, "output_mode": content, "type": "rust"});
    assert_eq!(
        grep(around).await,
        "a.rs:2:two\na.rs-3-three\n--\na.rs:5:TWO"
    );
    let around =
        json!({"pattern": "three", "-C": 1, "-n": false, "output_mode": content, "path": "a.rs"});
    assert_eq!(grep(around).await, "a.rs-two\na.rs:three\na.rs-four");
    assert_eq!(
        grep(json!({"pattern": "two", "glob": "*.py"})).await,
        "b.py"
    );
    assert_eq!(
        grep(json!({"pattern": "two", "glob": "!*.py"})).await,
        "a.rs"
    );
    let multiline = json!({"pattern": "one.*three", "multiline": true, "output_mode": content});
    assert_eq!(
        grep(multiline).await,
        "a.rs:1:one\na.rs:2:two\na.rs:3:three"
    );
    assert_eq!(grep(json!({"pattern": "absent"})).await, "no match");
    let limited =
        grep(json!({"pattern": "o", "glob": "*.rs", "output_mode": content, "head_limit": 2}))
            .await;
    assert_eq!(
        limited,
        "a.rs:1:one\na.rs:2:two\n(there is more; narrow the search, or raise head_limit)"
    );
    assert!(
        world
            .told("Grep", json!({"pattern": "("}))
            .await
            .contains("invalid regular expression")
    );
    assert!(
        world
            .told("Grep", json!({"pattern": "a\\nb"}))
            .await
            .contains("set multiline")
    );
    assert!(
        world
            .told("Grep", json!({"pattern": "a", "type": "elvish"}))
            .await
            .contains("unknown file type")
    );
}

#[tokio::test]
async fn what_rules_deny_is_neither_searched_nor_named() {
    let mut world = World::new();
    for path in [
        "w/a.txt",
        "w/secrets/b.txt",
        "w/secrets/deep/c.txt",
        "w/sub/.env",
        "w/sub/secrets/d.txt",
    ] {
        world.write(path, "needle\n");
    }
    let source = Source {
        name: "a test".into(),
        root: world.path("w"),
        cwd: world.path("w"),
        home: Some(world.path("home")),
    };
    let deny = vec!["Read(./secrets/**)".to_owned(), "Read(.env)".to_owned()];
    let mut policy = Policy::default();
    policy
        .add(
            &source,
            &RuleList {
                deny,
                ..RuleList::default()
            },
        )
        .unwrap();
    world.context.files = Arc::new(policy);
    let seen = ["a.txt", "sub/secrets/d.txt"];
    for pattern in ["**/*", "*", "secrets/**", "**/{b,c}.txt", "*.txt", ".env"] {
        let told = world.ok("Glob", json!({"pattern": pattern})).await;
        assert!(
            told.lines()
                .all(|line| seen.contains(&line) || line == "no file matches"),
            "{pattern}: {told}"
        );
    }
    let mut all: Vec<_> = world
        .ok("Glob", json!({"pattern": "*"}))
        .await
        .lines()
        .map(str::to_owned)
        .collect();
    all.sort();
    assert_eq!(all, seen);
    for (mode, expected) in [
        ("files_with_matches", "a.txt\nsub/secrets/d.txt"),
        ("content", "a.txt:1:needle\nsub/secrets/d.txt:1:needle"),
        ("count", "a.txt:1\nsub/secrets/d.txt:1"),
    ] {
        assert_eq!(
            world
                .ok("Grep", json!({"pattern": "needle", "output_mode": mode}))
                .await,
            expected
        );
    }
    let globbed = world
        .ok("Grep", json!({"pattern": "needle", "glob": "secrets/**"}))
        .await;
    assert!(
        !globbed.contains("b.txt") && !globbed.contains("c.txt"),
        "{globbed}"
    );
    // Where the search begins is judged before the call; the tools do not rely on that.
    for path in ["secrets", "secrets/deep", "secrets/b.txt"] {
        for tool in ["Glob", "Grep"] {
            let told = match world
                .call(tool, json!({"pattern": "[a-z]*", "path": path}))
                .await
            {
                Ok(output) => text(output),
                Err(error) => error.to_string(),
            };
            let name = told.replace(world.path("w").join(path).to_str().unwrap(), "");
            assert!(
                !name.contains("txt") && !name.contains("needle"),
                "{tool} {path}: {told}"
            );
        }
    }
}

#[tokio::test]
async fn what_rules_ask_about_is_left_out_and_that_is_said() {
    let mut world = World::new();
    world.write("w/a.txt", "needle\n");
    world.write("w/secrets/b.txt", "needle\n");
    let (root, cwd) = (world.path("w"), world.path("w"));
    let source = Source {
        name: "a test".into(),
        root,
        cwd,
        home: None,
    };
    let ask = vec!["Read(./secrets/**)".to_owned()];
    let mut policy = Policy::default();
    policy
        .add(
            &source,
            &RuleList {
                ask,
                ..RuleList::default()
            },
        )
        .unwrap();
    world.context.files = Arc::new(policy);
    let left_out = "\n(1 skipped: a rule requires approval before reading; use Read)";
    assert_eq!(
        world.ok("Grep", json!({"pattern": "needle"})).await,
        format!("a.txt{left_out}")
    );
    assert_eq!(
        world.ok("Glob", json!({"pattern": "*.txt"})).await,
        format!("a.txt{left_out}")
    );
    let within = world
        .ok("Grep", json!({"pattern": "needle", "path": "secrets"}))
        .await;
    assert_eq!(within, format!("no match{left_out}"));
}

#[tokio::test]
async fn searches_stop_when_they_are_cancelled() {
    let world = World::new();
    world.write("w/a", "a");
    world.context.cancel.cancel();
    for tool in ["Glob", "Grep"] {
        assert!(
            world
                .told(tool, json!({"pattern": "a"}))
                .await
                .contains("interrupted")
        );
    }
}
