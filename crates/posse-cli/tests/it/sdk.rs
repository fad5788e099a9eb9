//! The official SDKs, which start posse as their CLI.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary::{Project, stderr, stdout};

/// The model that the programs of `tests/sdk` talk to.
const SCRIPT: &str = include_str!("../sdk/script.toml");

/// A folder that `.ci/setup` fills.
pub(crate) fn installed(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let path = path.join(name);
    assert!(path.exists(), "run .ci/setup first: it installs the SDKs");
    path
}

/// Returns a program of `tests/sdk`.
pub(crate) fn program(name: &str) -> String {
    format!("{}/tests/sdk/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs the program, which drives posse, with these cases; all if there are none.
#[expect(
    clippy::print_stdout,
    reason = "`cargo xtask sdk` shows versions and cases"
)]
fn drive(name: &str, mut program: Command, cases: &[&str]) {
    let project = Project::new(name, SCRIPT);
    let posse = project.posse(&[]);
    let variables = posse
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    program
        .env_clear()
        .envs(variables)
        .current_dir(project.file(""))
        .arg(env!("CARGO_BIN_EXE_posse"))
        .args(cases);
    let output = program.output().unwrap();
    let said = stdout(&output);
    assert!(output.status.success(), "{said}{}", stderr(&output));
    let held = said.matches("held: ").count();
    assert!(
        held > 0 && (cases.is_empty() || held == cases.len()),
        "{said}"
    );
    print!("{said}");
}

/// The Python SDK.
fn python(name: &str, cases: &[&str]) {
    let mut command = Command::new(installed("venv/bin/python"));
    command.arg(program("agent_sdk.py"));
    drive(name, command, cases);
}

/// The TypeScript SDK.
fn node(name: &str, cases: &[&str]) {
    let sdk = installed("npm/node_modules/@anthropic-ai/claude-agent-sdk");
    let mut command = Command::new("node");
    command.arg(program("agent_sdk.mjs")).arg(sdk);
    drive(name, command, cases);
}

// proves FC-11 (part: Python; TypeScript)
// proves CV-04 (part: stream-json)
#[test]
fn both_sdks_drive_posse() {
    python(
        "sdk-python",
        &[
            "a_query_has_its_result",
            "a_callback_decides_about_tools",
            "the_model_is_set",
        ],
    );
    node(
        "sdk-node",
        &["a_query_has_its_result", "the_mode_and_the_model_are_set"],
    );
}

// proves MC-13 (part: eras; run; cancelled)
#[test]
fn the_python_package_of_the_protocol_uses_posse_as_a_server() {
    let mut command = Command::new(installed("venv/bin/python"));
    command.arg(program("mcp_client.py"));
    drive("sdk-mcp", command, &[]);
}

/// What hooks of programs are tried with.
const HOOKS: &[&str] = &[
    "a_hook_denies_a_call",
    "a_hook_changes_an_input",
    "a_hook_adds_to_a_result",
    "a_hook_holds_the_end_back",
    "a_hook_adds_to_a_prompt_and_refuses_one",
    "a_hook_that_fails_is_passed_over_or_blocks",
    "hooks_that_never_run_are_refused",
];

// proves FC-11 (part: hooks)
// proves HK-08 (part: onFailure)
#[test]
fn programs_answer_hooks_by_the_python_sdk() {
    python("sdk-python-hooks", HOOKS);
}

// proves FC-11 (part: hooks)
// proves HK-08 (part: onFailure)
#[test]
fn programs_answer_hooks_by_the_typescript_sdk() {
    node("sdk-node-hooks", HOOKS);
}

#[test]
#[ignore = "the long form: `cargo xtask sdk`"]
fn all_that_the_python_sdk_can_ask_for() {
    python("sdk-python-all", &[]);
}

#[test]
#[ignore = "the long form: `cargo xtask sdk`"]
fn all_that_the_typescript_sdk_can_ask_for() {
    node("sdk-node-all", &[]);
}
