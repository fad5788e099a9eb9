//! What tools answer to hooks.

use posse_port::tool::ToolOutput;
use serde_json::{Value, json};

use crate::world::World;

/// Returns the answer of a call for hooks. Without them there is none.
async fn answer(world: &mut World, tool: &str, input: Value) -> Value {
    world.context.wants_answer = true;
    let wanted = world.call(tool, input).await.unwrap().answer.unwrap();
    world.context.wants_answer = false;
    wanted
}

#[tokio::test]
async fn nothing_is_answered_that_no_hook_reads() {
    let world = World::new();
    world.write("w/f", "a\n");
    for (tool, input) in [
        ("Bash", json!({"command": "true"})),
        ("Read", json!({"file_path": "f"})),
        ("Glob", json!({"pattern": "*"})),
        ("Grep", json!({"pattern": "a"})),
        ("Write", json!({"file_path": "g", "content": "b"})),
    ] {
        let ToolOutput { answer, .. } = world.call(tool, input).await.unwrap();
        assert_eq!(answer, None, "{tool}");
    }
}

#[tokio::test]
async fn commands_answer_with_what_they_printed() {
    let mut world = World::new();
    let silent = json!({"stdout": "", "stderr": "", "interrupted": false, "isImage": false});
    let command = json!({"command": "true"});
    assert_eq!(answer(&mut world, "Bash", command).await, silent);
    let told = answer(&mut world, "Bash", json!({"command": "echo a; echo b >&2"})).await;
    assert_eq!(told["stdout"], "a\nb");
}

#[tokio::test]
async fn files_answer_with_their_lines() {
    let mut world = World::new();
    world.write("w/f", "a\nb\nc\n");
    let part = json!({"file_path": "f", "offset": 2, "limit": 1});
    let path = world.path("w/f");
    let file = json!({
        "filePath": path, "content": "b", "numLines": 1, "startLine": 2, "totalLines": 3,
    });
    let expected = json!({"type": "text", "file": file});
    assert_eq!(answer(&mut world, "Read", part).await, expected);
    world.write("w/i", b"GIF89a..");
    let image = answer(&mut world, "Read", json!({"file_path": "i"})).await;
    let expected = json!({"type": "image", "file": {"type": "image/gif"}});
    assert_eq!(image, expected);
}

#[tokio::test]
async fn changes_answer_with_what_was_there() {
    let mut world = World::new();
    let path = world.path("w/f");
    let write = |content: &str| json!({"file_path": "f", "content": content});
    let written = |kind: &str, content: &str, original: Value| {
        json!({
            "type": kind, "filePath": path, "content": content, "structuredPatch": [],
            "originalFile": original,
        })
    };
    let created = answer(&mut world, "Write", write("a b")).await;
    assert_eq!(created, written("create", "a b", Value::Null));
    let updated = answer(&mut world, "Write", write("a c")).await;
    assert_eq!(updated, written("update", "a c", "a b".into()));
    let edit = json!({"file_path": "f", "old_string": "c", "new_string": "d"});
    let edited = json!({
        "filePath": path, "oldString": "c", "newString": "d", "originalFile": "a c",
        "structuredPatch": [], "userModified": false, "replaceAll": false,
    });
    assert_eq!(answer(&mut world, "Edit", edit).await, edited);
}

#[tokio::test]
async fn searches_answer_with_files() {
    let mut world = World::new();
    world.write("w/f", "a\nb\n");
    let mut found = answer(&mut world, "Glob", json!({"pattern": "*"})).await;
    assert!(found["durationMs"].take().is_u64());
    let expected = json!({
        "filenames": [world.path("w/f")], "numFiles": 1, "truncated": false, "durationMs": null,
    });
    assert_eq!(found, expected);
    for (mode, content) in [
        ("files_with_matches", ""),
        ("content", "f:2:b"),
        ("count", "f:1"),
    ] {
        let input = json!({"pattern": "b", "output_mode": mode});
        let expected = json!({
            "mode": mode, "filenames": ["f"], "numFiles": 1, "content": content,
        });
        assert_eq!(answer(&mut world, "Grep", input).await, expected);
    }
    let none = answer(&mut world, "Grep", json!({"pattern": "z"})).await;
    assert_eq!(none["numFiles"], 0);
}
