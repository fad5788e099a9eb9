//! The recipes of docs/hooks.md, run as the page has them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::binary::{stderr, stdout};
use crate::readme::script;

const PAGE: &str = include_str!("../../../../../docs/hooks.md");

/// A directory with the scripts of the page.
struct Recipes(PathBuf);

impl Recipes {
    fn new(name: &str) -> Self {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recipes-{name}"));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(place.join("bin")).unwrap();
        Self(place)
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.join(file), text).unwrap();
    }

    /// A program that the recipe finds in `PATH`.
    fn program(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.0.join("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs a recipe with these lines as its input.
    fn run(&self, shell: &str, text: &str, input: &[Value]) -> Output {
        assert!(!text.is_empty());
        self.write("recipe", text);
        let bin = self.0.join("bin");
        let mut child = Command::new(shell)
            .arg("recipe")
            .current_dir(&self.0)
            .env_clear()
            .env(
                "PATH",
                format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()),
            )
            .env("HOME", &self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines: String = input.iter().map(|line| format!("{line}\n")).collect();
        // One that reads nothing may have ended by now.
        let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).unwrap()
    }
}

/// The Python script of the page that is marked with this name.
fn python(name: &str) -> &'static str {
    let mark = format!("<!-- recipe: {name} -->\n```python\n");
    let (_, rest) = PAGE.split_once(mark.as_str()).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn a_file_is_formatted_after_an_edit() {
    let recipes = Recipes::new("format");
    recipes.write("a.json", "{\"a\":1}");
    let file = recipes.0.join("a.json");
    let input = json!({"tool_input": {"file_path": file}});
    let output = recipes.run("sh", &script(PAGE, "format"), &[input]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(recipes.read("a.json"), "{\n  \"a\": 1\n}\n");
}

#[test]
fn secrets_are_refused() {
    let recipes = Recipes::new("secrets");
    let code = |input: Value| {
        let input = json!({"tool_input": input});
        recipes
            .run("python3", python("secrets"), &[input])
            .status
            .code()
    };
    assert_eq!(
        code(json!({"content": "key = AKIAABCDEFGHIJKLMNOP"})),
        Some(2)
    );
    assert_eq!(
        code(json!({"new_string": "-----BEGIN RSA PRIVATE KEY"})),
        Some(2)
    );
    assert_eq!(code(json!({"content": "key = os.environ['KEY']"})), Some(0));
}

#[test]
fn an_agent_stops_only_when_the_tests_pass() {
    let recipes = Recipes::new("tests");
    recipes.program("make", "echo 1 failed; exit 1");
    let output = recipes.run("sh", &script(PAGE, "tests"), &[json!({})]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output), "the tests fail:\n1 failed\n");
    recipes.program("make", "echo fine");
    let output = recipes.run("sh", &script(PAGE, "tests"), &[json!({})]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_person_is_notified() {
    let recipes = Recipes::new("notify");
    recipes.program("notify-send", "printf '%s|' \"$@\" >told");
    let input = json!({"message": "a question waits"});
    recipes.run("sh", &script(PAGE, "notify"), &[input]);
    assert_eq!(recipes.read("told"), "posse|a question waits|");
}

#[test]
fn calls_are_logged_by_one_process() {
    let recipes = Recipes::new("audit");
    let call =
        |tool: &str| json!({"tool_name": tool, "tool_input": {}, "posse": {"path": "/main"}});
    let output = recipes.run("python3", python("audit"), &[call("Bash"), call("Edit")]);
    assert_eq!(stdout(&output), "{}\n{}\n", "{}", stderr(&output));
    let log = recipes.read("audit.jsonl");
    let entries = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let tools: Vec<Value> = entries.map(|entry| entry["tool"].clone()).collect();
    assert_eq!(tools, ["Bash", "Edit"]);
}
