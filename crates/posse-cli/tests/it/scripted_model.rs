//! `posse scripted-model`.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use crate::binary::{Server, run, stderr, stdout};

#[test]
fn the_conformance_requests_get_their_classes() {
    let server = Server::start("conformance", "");
    let output = run(&["scripted-model", "--conformance", &server.url]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    assert!(stdout(&output).lines().count() >= 20);
    assert!(
        stderr(&output).contains(" 0 failed, 0 skipped"),
        "{}",
        stderr(&output)
    );
    let sink = run(&["scripted-model", "--conformance", "http://127.0.0.1:9"]);
    assert_eq!(sink.status.code(), Some(1));
}

#[test]
fn a_wrong_script_is_refused_by_the_rule() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("wrong.toml");
    std::fs::File::create(&path)
        .unwrap()
        .write_all(b"[[rule]]\nname = 'first'\n")
        .unwrap();
    let output = run(&["scripted-model", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("wrong.toml: rule first: it neither replies nor fails"),
        "{said}"
    );
    let missing = stderr(&run(&["scripted-model", "/nowhere.toml"]));
    assert!(
        missing.contains("cannot read the script /nowhere.toml"),
        "{missing}"
    );
}

#[test]
fn a_taken_port_is_told() {
    let server = Server::start("port", "");
    let port = server.url.rsplit(':').next().unwrap();
    let output = run(&["scripted-model", "--port", port]);
    assert!(stderr(&output).contains("--port"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn other_processes_can_look_and_move_the_clock() {
    let server = Server::start("control", "");
    run(&["ask-model", "--base-url", &server.url, "remember me"]);
    let curl = |arguments: &[&str]| {
        stdout(
            &Command::new("curl")
                .arg("-s")
                .args(arguments)
                .output()
                .unwrap(),
        )
    };
    let recorded: serde_json::Value =
        serde_json::from_str(&curl(&[&format!("{}/_scripted/wait?count=1", server.url)])).unwrap();
    assert!(
        recorded[0]["body"]
            .as_str()
            .unwrap()
            .contains("remember me")
    );
    assert_eq!(
        (&recorded[0]["status"], &recorded[0]["rule"]),
        (&200.into(), &"echo".into())
    );
    let headers = recorded[0]["headers"].to_string();
    assert!(
        !headers.contains("Bearer") && headers.contains("anthropic-version"),
        "no credentials: {headers}"
    );
    let clock = curl(&[
        "-d",
        r#"{"advance_ms": 3600000}"#,
        &format!("{}/_scripted/clock", server.url),
    ]);
    let now: serde_json::Value = serde_json::from_str(&clock).unwrap();
    assert!(now["now_ms"].as_u64().unwrap() >= 3_600_000);
}
