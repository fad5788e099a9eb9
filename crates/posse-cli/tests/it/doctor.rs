//! `posse doctor`, and what else the binary says of itself.

use serde_json::{Value, json};

use crate::binary::{Project, Server, posse, run, stderr, stdout};

fn grades(output: &std::process::Output) -> Vec<(String, String)> {
    let line = |line: &str| {
        let told: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| told[name].as_str().unwrap().to_owned();
        if text("grade") != "good" {
            assert!(
                told["advice"]
                    .as_str()
                    .is_some_and(|advice| !advice.is_empty()),
                "{told}"
            );
        }
        (text("check"), text("grade"))
    };
    stdout(output).lines().map(line).collect()
}

// proves FC-08 (part: a sandbox)
#[test]
fn all_is_well_beside_a_scripted_model() {
    let server = Server::start("doctor", "");
    let output = run(&["doctor", "--json", "--base-url", &server.url]);
    let all = [
        "key", "endpoint", "git", "tmux", "sandbox", "store", "place", "trust", "settings",
    ];
    // Nothing is claimed that is not in force: commands are not confined.
    let expected = all.map(|check| match check {
        "sandbox" => (check.to_owned(), "lacking".to_owned()),
        _ => (check.to_owned(), "good".to_owned()),
    });
    assert_eq!(grades(&output), expected, "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn servers_that_are_declared_are_named() {
    let project = Project::new("doctor-servers", "");
    let declared = |name: &str| json!({ "mcpServers": { name: { "command": "server" } } });
    let write = |file: &str, text: String| std::fs::write(project.file(file), text).unwrap();
    write(".mcp.json", declared("of-all").to_string());
    std::fs::create_dir_all(project.file("../home")).unwrap();
    write("../home/.claude.json", declared("mine").to_string());
    let output = crate::trust::untrusted(&project, &["doctor"])
        .output()
        .unwrap();
    let said = stdout(&output);
    assert!(
        said.contains("✓ servers  mine; `posse mcp check`"),
        "{said}"
    );
    assert!(said.contains("servers  of-all is not started: "), "{said}");
}

// proves FC-08 (part: a scripted model)
#[test]
fn a_scripted_model_is_not_taken_for_a_provider() {
    let server = Server::start("doctor-scripted", "");
    let endpoint = |key: Option<&str>| {
        let output = posse()
            .args(["doctor", "--json", "--base-url", &server.url])
            .envs(key.map(|key| ("ANTHROPIC_API_KEY", key)))
            .output()
            .unwrap();
        let lines = stdout(&output);
        let mut told = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        told.find(|told| told["check"] == "endpoint").unwrap()
    };
    for (key, grade) in [(None, "good"), (Some("sk-of-the-test"), "lacking")] {
        let told = endpoint(key);
        assert_eq!(told["grade"], grade, "{told}");
        let found = told["found"].as_str().unwrap();
        assert!(found.contains("a scripted model, not a provider"), "{told}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let output = posse()
        .args(["doctor", "--json", "--base-url", "http://127.0.0.1:9"])
        .env("PATH", "/nowhere")
        .env("POSSE_HOME", "/proc/nobody")
        .output()
        .unwrap();
    let grade = |check: &str| {
        grades(&output)
            .into_iter()
            .find(|(name, _)| name == check)
            .unwrap()
            .1
    };
    assert_eq!(["endpoint", "git", "store"].map(grade), ["bad"; 3]);
    assert_eq!(["tmux", "sandbox"].map(grade), ["lacking"; 2]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn settings_are_checked_as_a_run_would_take_them() {
    let project = Project::new("doctor-settings", "");
    let check = |text: &str, grade: &str, found: &[&str]| {
        std::fs::create_dir_all(project.file("../home")).unwrap();
        std::fs::write(project.file("../home/settings.json"), text).unwrap();
        let output = project.run(&["doctor", "--json"]);
        let last: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
        assert_eq!(
            (&last["check"], &last["grade"]),
            (&"settings".into(), &grade.into()),
            "{last}"
        );
        assert!(
            found
                .iter()
                .all(|what| last["found"].as_str().unwrap().contains(what)),
            "{last}"
        );
    };
    check("{", "bad", &["settings.json", "EOF"]);
    check(
        r#"{"permissions": {"deny": ["Bsh"]}}"#,
        "bad",
        &["settings.json", "Bsh"],
    );
    check(
        r#"{"permissions": {"allow": ["Bsh"]}}"#,
        "lacking",
        &["settings.json", "Bsh"],
    );
    check(
        r#"{"permissions": {"defaultMode": "plan"}}"#,
        "good",
        &["mode plan"],
    );
}

#[test]
fn a_missing_key_and_a_blocked_way_are_two_findings() {
    let output = posse()
        .args(["doctor", "--json", "--base-url", "https://model.invalid"])
        .env("HTTPS_PROXY", "http://127.0.0.1:9")
        .output()
        .unwrap();
    let bad = |check: &str| (check.to_owned(), "bad".to_owned());
    assert_eq!(grades(&output)[..2], [bad("key"), bad("endpoint")]);
}

#[test]
fn it_says_what_it_is() {
    assert_eq!(
        stdout(&run(&["--version"])),
        format!("posse {}\n", env!("CARGO_PKG_VERSION"))
    );
    let help = stdout(&run(&["--help"]));
    for command in [
        "--print",
        "sessions",
        "team",
        "task",
        "mail",
        "agents",
        "worktrees",
        "store",
        "ask-model",
        "scripted-model",
        "doctor",
        "completions",
    ] {
        assert!(help.contains(command), "{help}");
    }
    assert!(stdout(&run(&["completions", "bash"])).contains("_posse()"));
    assert_eq!(run(&["no-such-command"]).status.code(), Some(2));
    let mistyped = run(&["sesions", "list", "--json"]);
    assert_eq!(mistyped.status.code(), Some(2));
    assert!(
        stderr(&mistyped).contains("did you mean `sessions`?"),
        "{}",
        stderr(&mistyped)
    );
    assert_eq!(run(&[]).status.code(), Some(1));
}
