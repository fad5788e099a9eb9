//! The official client packages against the scripted model.

use std::path::PathBuf;

use posse_scripted::{Script, Server, ServerOptions};

/// Runs a Python program of this folder in the environment that `.ci/setup` makes.
async fn python(program: &str, arguments: Vec<String>) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let interpreter = root.join("target/venv/bin/python");
    assert!(
        interpreter.exists(),
        "run .ci/setup first: it installs the official packages"
    );
    let program = format!("{}/tests/python/{program}", env!("CARGO_MANIFEST_DIR"));
    let run = tokio::task::spawn_blocking(move || start(interpreter, program, arguments));
    let output = run.await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "the packages are another program's"
)]
fn start(interpreter: PathBuf, program: String, arguments: Vec<String>) -> std::process::Output {
    std::process::Command::new(interpreter)
        .arg(program)
        .args(arguments)
        .output()
        .unwrap()
}

const SCRIPT: &str = include_str!("../python/script.toml");

#[tokio::test]
async fn the_anthropic_package_is_content() {
    let server = posse_testkit::scripted::play(SCRIPT).unwrap();
    let plain = Server::start(ServerOptions::playing(Script::built_in().unwrap())).unwrap();
    let cases = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../posse-scripted/src/conformance.jsonl"
    );
    python(
        "anthropic_sdk.py",
        vec![server.url(), cases.into(), plain.url()],
    )
    .await;
}

#[tokio::test]
async fn the_openai_package_is_content() {
    let server = posse_testkit::scripted::play(SCRIPT).unwrap();
    python("openai_sdk.py", vec![server.url()]).await;
}
