//! Read, Write and Edit: what they do, and what they refuse.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use posse_port::tool::Subject;
use posse_protocol::ToolContent;
use posse_tools::{Reach, SystemProcesses, ToolsConfig};
use rustix::fs::{CWD, FileType, Mode};
use serde_json::json;

use crate::world::{World, told};

fn input(tool: &str, path: &str) -> serde_json::Value {
    match tool {
        "Read" => json!({"file_path": path}),
        "Write" => json!({"file_path": path, "content": "new"}),
        _ => json!({"file_path": path, "old_string": "secret", "new_string": "new"}),
    }
}

// proves TU-03 (part: reads and searches; edits; shell commands)
#[test]
fn tools_say_what_may_run_beside_others() {
    let world = World::new();
    world.write("w/a", "secret");
    let may = [
        ("Read", input("Read", "a")),
        ("Grep", json!({"pattern": "x"})),
        ("Glob", json!({"pattern": "*"})),
        (
            "WebFetch",
            json!({"url": "https://docs.rs/a", "prompt": "p"}),
        ),
        ("Bash", json!({"command": "rg -n x src | head -3"})),
    ];
    let may_not = [
        ("Write", input("Write", "a")),
        ("Edit", input("Edit", "a")),
        ("Bash", json!({"command": "make"})),
        ("Bash", json!({"command": "cat a > b"})),
        ("Bash", json!({"command": "cat $(make)"})),
        (
            "Bash",
            json!({"command": "cat a", "run_in_background": true}),
        ),
    ];
    let beside = |(tool, given): (&str, serde_json::Value)| {
        let intent = world.intent(tool, &given);
        (tool.to_owned(), intent.unwrap().beside_others)
    };
    for (tool, beside) in may.map(beside) {
        assert!(beside, "{tool}");
    }
    for (tool, beside) in may_not.map(beside) {
        assert!(!beside, "{tool}");
    }
}

// proves QU-06 (part: the change; what cannot be shown)
#[test]
fn a_call_shows_its_change_before_it_is_made() {
    let world = World::new();
    world.write("w/src/a", "one\ntwo\n");
    world.write("w/blob", b"\xff\0");
    world.write("w/huge", vec![b'x'; (1 << 20) + 1]);
    world.write("out/secret", "secret");
    let edit = |path: &str, old: &str, new: &str| {
        let input = json!({"file_path": path, "old_string": old, "new_string": new});
        world.preview("Edit", &input)
    };
    let write = |path: &str, content: &str| {
        let input = json!({"file_path": path, "content": content});
        world.preview("Write", &input)
    };
    let diff = "--- src/a\n+++ src/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
    assert_eq!(edit("src/a", "two", "2").unwrap(), diff);
    assert_eq!(write("src/a", "one\n2\n").unwrap(), diff);
    let created = "--- /dev/null\n+++ new\n@@ -0,0 +1 @@\n+x\n";
    assert_eq!(write("new", "x\n").unwrap(), created);
    for (shown, expected) in [
        (
            edit("src/a", "three", "3"),
            "src/a would not change: old_string is not in the file",
        ),
        (
            edit("none", "a", "b"),
            "none would not change: there is no such file",
        ),
        (
            write("blob", "x"),
            "blob is not text; it would have 1 byte instead of 2 bytes",
        ),
        (write("huge", "x"), "huge is too long"),
        (
            write("more", &"x".repeat((1 << 20) + 1)),
            "more would have 1048577 bytes",
        ),
    ] {
        let shown = shown.unwrap();
        assert!(shown.starts_with(expected), "{shown}");
    }
    let secret = world.path("out/secret");
    assert_eq!(write(secret.to_str().unwrap(), "x"), None, "it is outside");
    assert_eq!(world.preview("Bash", &json!({"command": "make"})), None);
    assert_eq!(world.read("w/src/a"), "one\ntwo\n", "nothing is changed");
}

// proves PE-07 (part: the roots; symlinks)
// corpus C140
#[tokio::test]
async fn what_leaves_the_roots_is_refused() {
    let world = World::new();
    world.write("out/secret", "secret");
    world.write("w-evil/secret", "secret");
    world.write("home/secret", "secret");
    world.link("w/file-link", world.path("out/secret"));
    world.link("w/dir-link", world.path("out"));
    world.link("w/relative-link", "../out/secret");
    world.link("w/dangling", world.path("out/absent"));
    world.link("w/dangling-dir", world.path("out/absent-dir"));
    world.link("w/circle", "circle");
    let absolute = world.path("out/secret");
    let evil = world.path("w-evil/secret");
    let paths = [
        "../out/secret",
        "a/../../out/secret",
        "../../../../../../../etc/passwd",
        "/etc/passwd",
        absolute.to_str().unwrap(),
        evil.to_str().unwrap(),
        "../w-evil/secret",
        "file-link",
        "relative-link",
        "dir-link/secret",
        "dir-link/new",
        "dir-link/deep/new",
        "dangling",
        "dangling-dir/new",
        "circle",
        "./file-link",
        "~/secret",
        "~",
        "x\0/../y",
        "\0",
        "",
        "/",
        "..",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
        "/dev/zero",
        "/dev/fd/0",
    ];
    for tool in ["Read", "Write", "Edit"] {
        for path in paths {
            let refused = told(world.intent(tool, &input(tool, path)));
            assert_eq!(
                world.told(tool, input(tool, path)).await,
                refused,
                "{tool} {path}"
            );
            assert!(!refused.contains("secret\n"), "{refused}");
        }
    }
    for search in ["Glob", "Grep"] {
        for path in [
            "..",
            "/",
            "dir-link",
            "../w-evil",
            "file-link",
            "dangling",
            "~",
        ] {
            world
                .told(search, json!({"pattern": "secret", "path": path}))
                .await;
        }
    }
    for kept in ["out", "w-evil", "home"] {
        assert_eq!(fs::read_dir(world.path(kept)).unwrap().count(), 1, "{kept}");
        assert_eq!(world.read(&format!("{kept}/secret")), "secret");
    }
    let roots = world
        .told("Read", json!({"file_path": "/etc/passwd"}))
        .await;
    assert!(
        roots.contains(world.path("w").to_str().unwrap()),
        "says what is allowed: {roots}"
    );
}

#[tokio::test]
async fn links_within_the_roots_work_and_rules_see_both_names() {
    let world = World::new();
    world.write("w/real/file", "one\n");
    world.link("w/link", "real");
    let intent = world
        .intent("Read", &json!({"file_path": "link/file"}))
        .unwrap();
    assert_eq!(
        intent.subject,
        Subject::Reads(vec![world.path("w/link/file"), world.path("w/real/file")])
    );
    assert_eq!(intent.title, "Read link/file");
    assert!(intent.read_only && intent.beside_others);
    assert_eq!(
        world.ok("Read", json!({"file_path": "link/file"})).await,
        "     1\tone\n"
    );
    world
        .ok(
            "Edit",
            json!({"file_path": "real/file", "old_string": "one", "new_string": "two"}),
        )
        .await;
    world
        .ok(
            "Write",
            json!({"file_path": "link/file", "content": "three"}),
        )
        .await;
    assert_eq!(world.read("w/real/file"), "three");
    let intent = world
        .intent("Write", &json!({"file_path": "./a/../b", "content": ""}))
        .unwrap();
    assert_eq!(intent.subject, Subject::Edits(vec![world.path("w/b")]));
    assert!(!intent.read_only && !intent.beside_others);
}

#[tokio::test]
async fn the_spill_directory_is_read_but_not_written() {
    let world = World::new();
    world.write("spill/long.txt", "long\n");
    let path = world.path("spill/long.txt");
    assert_eq!(
        world.ok("Read", json!({"file_path": path})).await,
        "     1\tlong\n"
    );
    world
        .told("Write", json!({"file_path": path, "content": ""}))
        .await;
    world
        .told(
            "Edit",
            json!({"file_path": path, "old_string": "long", "new_string": ""}),
        )
        .await;
    assert_eq!(world.read("spill/long.txt"), "long\n");
}

// proves PE-07 (part: what changed)
#[tokio::test]
async fn what_was_not_read_or_has_changed_is_not_overwritten() {
    let world = World::new();
    world.write("w/f", "one\n");
    let write = || json!({"file_path": "f", "content": "mine"});
    let edit = || json!({"file_path": "f", "old_string": "one", "new_string": "mine"});
    for (tool, input) in [("Write", write()), ("Edit", edit())] {
        let told = world.told(tool, input).await;
        assert!(told.contains("read it first"), "{told}");
    }
    world.ok("Read", json!({"file_path": "f"})).await;
    world.write("w/f", "one, theirs\n");
    for (tool, input) in [("Write", write()), ("Edit", edit())] {
        let told = world.told(tool, input).await;
        assert!(told.contains("changed since it was read"), "{told}");
    }
    assert_eq!(world.read("w/f"), "one, theirs\n");
    world.ok("Read", json!({"file_path": "f"})).await;
    assert_eq!(
        world.ok("Edit", edit()).await,
        "edited f:\n     1\tmine, theirs\n"
    );
    assert_eq!(
        world.ok("Write", write()).await,
        "replaced f: 1 line",
        "an edit's outcome is known"
    );
    assert_eq!(world.read("w/f"), "mine");
}

#[tokio::test]
async fn a_new_file_comes_with_its_directories_and_an_old_one_keeps_its_mode() {
    let world = World::new();
    let told = world
        .ok(
            "Write",
            json!({"file_path": "a/b/c.txt", "content": "x\ny\n"}),
        )
        .await;
    assert_eq!(told, "created a/b/c.txt: 2 lines");
    assert_eq!(world.read("w/a/b/c.txt"), "x\ny\n");
    let path = world.path("w/a/b/c.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    world
        .ok("Write", json!({"file_path": path, "content": "z"}))
        .await;
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o751
    );
    assert_eq!(
        fs::read_dir(world.path("w/a/b")).unwrap().count(),
        1,
        "no draft is left"
    );
    world
        .told(
            "Edit",
            json!({"file_path": "n/f", "old_string": "a", "new_string": "b"}),
        )
        .await;
    assert!(
        !world.path("w/n").exists(),
        "a failed edit makes no directory"
    );
}

#[tokio::test]
async fn edits_keep_line_ends_and_say_what_is_unclear() {
    let world = World::new();
    world.write("w/f", "a\r\nb\r\nb\r\n");
    world.ok("Read", json!({"file_path": "f"})).await;
    let edit =
        |old: &str, new: &str| json!({"file_path": "f", "old_string": old, "new_string": new});
    assert!(
        world
            .told("Edit", edit("c", "d"))
            .await
            .contains("not in the file")
    );
    assert!(world.told("Edit", edit("b", "c")).await.contains("2 times"));
    assert!(
        world
            .told("Edit", edit("a", "a"))
            .await
            .contains("the same")
    );
    world.ok("Edit", edit("a\nb\n", "x\ny\n")).await;
    assert_eq!(world.read("w/f"), "x\r\ny\r\nb\r\n");
    let all =
        json!({"file_path": "f", "old_string": "\r\n", "new_string": "\n", "replace_all": true});
    assert_eq!(
        world.ok("Edit", all).await,
        "edited f: 3 occurrences replaced"
    );
    assert_eq!(world.read("w/f"), "x\ny\nb\n");
}

// corpus C145, C155
#[tokio::test]
async fn what_is_no_plain_file_is_refused() {
    let world = World::new();
    world.write("w/dir/f", "x");
    world.write("w/one", "x");
    fs::hard_link(world.path("w/one"), world.path("w/two")).unwrap();
    rustix::fs::mknodat(
        CWD,
        world.path("w/pipe"),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for path in ["dir", "pipe", "."] {
        for tool in ["Read", "Write", "Edit"] {
            world.told(tool, input(tool, path)).await;
        }
    }
    world.ok("Read", json!({"file_path": "one"})).await;
    let told = world
        .told("Write", json!({"file_path": "one", "content": "y"}))
        .await;
    assert!(told.contains("hard links"), "{told}");
    let large = fs::File::create(world.path("w/large")).unwrap();
    large.set_len(5 << 30).unwrap();
    let told = world.told("Read", json!({"file_path": "large"})).await;
    assert!(told.contains("larger than 64 MiB"), "{told}");
    let told = world
        .told("Write", json!({"file_path": "large", "content": ""}))
        .await;
    assert!(told.contains("larger than 64 MiB"), "{told}");
}

#[tokio::test]
async fn images_are_shown_and_other_bytes_are_not() {
    let world = World::new();
    world.write("w/a.txt", b"\x89PNG\r\n\x1a\n....");
    let output = world
        .call("Read", json!({"file_path": "a.txt"}))
        .await
        .unwrap();
    let image = ToolContent::Image {
        media_type: "image/png".into(),
        data: "iVBORw0KGgouLi4u".into(),
    };
    assert_eq!(output.content, [image]);
    world.write("w/b.png", b"\x7fELF\0\0");
    assert!(
        world
            .told("Read", json!({"file_path": "b.png"}))
            .await
            .contains("neither text nor an image")
    );
    world.write("w/c.gif", [&b"GIF89a"[..], &vec![1; 4 << 20]].concat());
    assert!(
        world
            .told("Read", json!({"file_path": "c.gif"}))
            .await
            .contains("larger")
    );
    world.write("w/a-binary", "x\0");
    let binary = fs::File::options()
        .write(true)
        .open(world.path("w/a-binary"))
        .unwrap();
    binary.set_len(60 << 20).unwrap();
    assert!(
        world
            .told("Read", json!({"file_path": "a-binary"}))
            .await
            .contains("neither text nor an image")
    );
    world.write("w/empty", "");
    assert_eq!(
        world.ok("Read", json!({"file_path": "empty"})).await,
        "(the file is empty)"
    );
    assert!(
        world
            .told("Read", json!({"file_path": "absent"}))
            .await
            .contains("no such file")
    );
}

#[tokio::test]
async fn a_cancelled_call_changes_nothing() {
    let world = World::new();
    world.context.cancel.cancel();
    let told = world
        .told("Write", json!({"file_path": "f", "content": "x"}))
        .await;
    assert!(told.contains("interrupted"), "{told}");
    assert_eq!(fs::read_dir(world.path("w")).unwrap().count(), 0);
}

// corpus C167
#[test]
fn inputs_are_closed_and_descriptions_short() {
    let world = World::new();
    let told = told(world.intent("Read", &json!({"file_path": "f", "lines": 3})));
    assert!(told.contains("unknown field `lines`"), "{told}");
    let tools = posse_tools::all(ToolsConfig {
        reach: Reach::Public,
        background: true,
        processes: SystemProcesses::default(),
        gate: None,
    });
    assert_eq!(
        tools.names(),
        ["Bash", "Edit", "Glob", "Grep", "Read", "WebFetch", "Write"]
    );
    for spec in tools.specs() {
        assert!(
            spec.description.split_whitespace().count() <= 120,
            "{}",
            spec.name
        );
        let schema: serde_json::Value = serde_json::from_str(spec.input_schema.get()).unwrap();
        assert_eq!(schema["additionalProperties"], false, "{}", spec.name);
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{} {name}", spec.name);
        }
    }
}
