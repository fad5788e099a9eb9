//! The examples, as programs: what they ask the model, and what they print.

use std::path::Path;
use std::process::{Output, Stdio};

use posse_scripted::Server;
use posse_testkit::scripted::play;
use serde_json::Value;
use tokio::process::Command;

/// Returns an example that is to work in a directory, with a model in this process and no key.
#[expect(clippy::disallowed_methods, reason = "an example is a program")]
fn example(name: &str, server: &Server, directory: &Path) -> Command {
    let own = std::env::current_exe().unwrap();
    let examples = own.ancestors().nth(2).unwrap().join("examples");
    let mut command = Command::new(examples.join(name));
    command
        .current_dir(directory)
        .env("ANTHROPIC_BASE_URL", server.url())
        .env_remove("ANTHROPIC_API_KEY")
        .env("TMPDIR", directory)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// What an example printed in a new directory, which has a file `notes.txt`.
async fn printed(name: &str, server: &Server, argument: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("notes.txt"), "the door is green\n").unwrap();
    let Output {
        status,
        stdout,
        stderr,
    } = example(name, server, directory.path())
        .env("ANTHROPIC_API_KEY", "test")
        .arg(argument)
        .output()
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&stderr);
    assert!(status.success() && errors.is_empty(), "{status}: {errors}");
    String::from_utf8(stdout).unwrap()
}

/// The bodies of all requests.
fn bodies(server: &Server) -> Vec<Value> {
    let bodies = server.requests().into_iter();
    let bodies = bodies.map(|request| serde_json::from_slice(&request.body).unwrap());
    bodies.collect()
}

/// The names of the tools in a request.
fn tools(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn one_agent_reads_and_answers() {
    let script = r#"
[[rule]]
when.tool = "the door is green"
reply = [{ text = "The notes say that it is green." }]
[[rule]]
when.user = "Which colour"
reply = [{ text = "Let me look." }, { tool = "Read", input = { file_path = "notes.txt" } }]
"#;
    let server = play(script).unwrap();
    let printed = printed("one_agent", &server, "Which colour has the door?").await;
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "Let me look.",
            "> Read notes.txt",
            "The notes say that it is green."
        ]
    );
    assert!(lines[3].starts_with("(2 model calls, $0."), "{printed}");
    let bodies = bodies(&server);
    assert_eq!(bodies.len(), 2);
    assert_eq!(tools(&bodies[0])[..3], ["Glob", "Grep", "Read"]);
}

#[tokio::test]
async fn an_own_tool_is_called() {
    let script = r#"
[[rule]]
when.tool = "unknown article; there are chair, lamp, table"
reply = [{ tool = "Stock", input = { article = "lamp" } }]
[[rule]]
when.tool = "2"
reply = [{ text = "Yes, we have two." }]
[[rule]]
when.user = "lights"
reply = [{ tool = "Stock", input = { article = "light" } }]
"#;
    let server = play(script).unwrap();
    let printed = printed("own_tool", &server, "Do you have lights?").await;
    let expected = ["> Stock of light", "> that failed", "> Stock of lamp"];
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[..3], expected);
    assert_eq!(lines[3..], ["Yes, we have two."]);
    let bodies = bodies(&server);
    assert_eq!(bodies.len(), 3);
    let schema = &bodies[0]["tools"][0]["input_schema"]["properties"]["article"];
    assert_eq!(schema["description"], "The article, in small letters.");
}

#[tokio::test]
async fn a_team_does_its_tasks() {
    let script = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
reply = [{ text = "It is written." }]
[[rule]]
when = { agent = "re:^/main/", user = 're:Task (\d+) is yours' }
reply = [{ tool = "TaskUpdate", input = { taskId = "{{user.1}}", status = "completed" } }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Ready." }]
[[rule]]
when.user = "Task 3: completed"
reply = [{ text = "The book is ready." }]
[[rule]]
reply = [{ text = "They are at it." }]
"#;
    let server = play(script).unwrap();
    let printed = printed("team", &server, "a guide to doors").await;
    for joined in ["writer-1", "writer-2", "editor"] {
        assert!(
            printed.contains(&format!("{joined} has joined\n")),
            "{printed}"
        );
    }
    let lines: Vec<&str> = printed.lines().collect();
    let [told @ .., first, second, third] = &lines[..] else {
        panic!("{printed}");
    };
    assert_eq!(told.last(), Some(&"The book is ready."), "{printed}");
    assert!(first.starts_with("1. Write the first chapter: Completed, writer-"));
    assert!(second.starts_with("2. Write the second chapter: Completed, writer-"));
    assert_eq!(*third, "3. Edit both chapters: Completed, editor");
    let goal = |body: &Value| body.to_string().contains("a guide to doors");
    assert!(bodies(&server).iter().any(goal));
}

#[tokio::test]
async fn an_own_store_prints_each_step() {
    let script = "[[rule]]\nreply = [{ text = \"Hello.\" }]\n";
    let server = play(script).unwrap();
    let printed = printed("own_store", &server, "Say hello.").await;
    let steps = printed.lines().filter(|line| line.starts_with("step "));
    let steps: Vec<&str> = steps.collect();
    assert!(steps[0].starts_with("step 1 of "), "{printed}");
    assert!(steps[0].ends_with(": [Prompt]"), "{printed}");
    assert!(steps[1].ends_with(": [Reply]"), "{printed}");
    assert!(printed.contains("\nHello.\n"), "{printed}");
    assert!(printed.ends_with(&format!("{} steps in all\n", steps.len())));
    assert_eq!(bodies(&server).len(), 1);
}

#[tokio::test]
async fn an_example_without_a_key_says_so() {
    let server = play("[[rule]]\nreply = [{ text = \"Never.\" }]\n").unwrap();
    let directory = tempfile::tempdir().unwrap();
    for name in ["one_agent", "own_tool", "team", "own_store"] {
        let output = example(name, &server, directory.path())
            .output()
            .await
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains("set ANTHROPIC_API_KEY"),
            "{errors}"
        );
    }
    assert!(server.requests().is_empty());
}
