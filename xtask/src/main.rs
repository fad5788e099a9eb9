//! The developer's tool: checks that the workspace is in order, what is proven, and how fast it is.
//!
//! `cargo xtask tidy`, `cargo xtask shape`, `cargo xtask behaviour [--require IDS]`, `cargo xtask bench NAME [--quick]`,
//! `cargo xtask faults [team|team-kill|postgres [--quick]]`, `cargo xtask scenarios postgres`, `cargo xtask sdk`,
//! `cargo xtask conformance [--quick]`, `cargo xtask dist [--quick|try]`,
//! `cargo xtask screens`, `cargo xtask story`, `cargo xtask tour`.

#![expect(
    clippy::disallowed_methods,
    reason = "a developer's tool starts processes"
)]
#![expect(clippy::print_stdout, reason = "a developer's tool prints")]

mod behaviour;
mod bench;
mod conformance;
mod dist;
mod screens;
mod shape;
mod source;
mod story;
mod tidy;
mod tour;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: cargo xtask tidy [--all [--root DIR]] | shape [--root DIR] [--verbose [FIGURE]] | behaviour [--require TU,AG-07,…] \
                     | bench startup|model|turn|store|spawn|worktree|fork|team|postgres|feed|tui|sandbox|hooks|mcp [--quick] \
                     | faults [team [--seeds N] [--quick] | team-kill [--moments N] [--quick] \
                     | postgres [--kills N] [--quick] | guard] \
                     | scenarios postgres | conformance [--quick] | dist [--quick|try] | sdk | screens | story | tour";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root()?;
    match words[..] {
        ["tidy"] => tidy::run(&root, tidy::Listed::Failing),
        ["tidy", "--all"] => tidy::run(&root, tidy::Listed::All),
        ["tidy", "--all", "--root", other] => tidy::run(Path::new(other), tidy::Listed::All),
        ["behaviour"] => behaviour::run(&root, ""),
        ["behaviour", "--require", required] => behaviour::run(&root, required),
        ["bench", name] => bench::run(&root, name, bench::Effort::Full),
        ["bench", name, "--quick"] => bench::run(&root, name, bench::Effort::Quick),
        ["faults"] => faults(&root, ALL, &[]),
        ["faults", "team"] => faults(&root, CLAIMERS, &[]),
        ["faults", "team", "--seeds", seeds] => faults(&root, CLAIMERS, &[("POSSE_SEEDS", seeds)]),
        ["faults", "team", "--quick"] => quick(&root, "test(killed_claimers_do_each_task_once)"),
        ["faults", "postgres"] => faults(&root, FLEET, &[]),
        ["faults", "postgres", "--kills", kills] => faults(&root, FLEET, &[("POSSE_KILLS", kills)]),
        ["faults", "postgres", "--quick"] => quick(&root, "test(fleet::)"),
        ["faults", "team-kill"] => faults(&root, KILLED, &[]),
        ["faults", "team-kill", "--moments", moments] => {
            faults(&root, KILLED, &[("POSSE_MOMENTS", moments)])
        }
        ["faults", "team-kill", "--quick"] => quick(&root, "test(a_team_killed_at_some_moments)"),
        ["faults", "guard"] => faults(&root, GUARD, &[]),
        ["scenarios", "postgres"] => scenarios(&root),
        ["conformance"] => conformance::run(&root, conformance::Scenarios::All),
        ["conformance", "--quick"] => conformance::run(&root, conformance::Scenarios::Quick),
        // Started by the suite.
        ["conformance-client", url] => conformance::client(&root, url),
        ["dist"] => dist::run(&root),
        ["dist", "--quick"] => dist::quick(&root),
        ["dist", "try"] => dist::on_bare_root(&root),
        ["sdk"] => faults(&root, SDK, &[]),
        ["shape", ref words @ ..] => shape::run(&root, words),
        ["screens"] => screens::run(&root),
        ["story"] => story::run(&root),
        ["tour"] => tour::run(&root),
        _ => bail!(USAGE),
    }
}

/// Claimers that are killed, whole teams, fleets on PostgreSQL and random commands: long forms that are asked for by
/// name.
const CLAIMERS: &str = "test(many_killed_claimers)";
const FLEET: &str = "test(fleet::)";
const KILLED: &str = "test(a_team_killed_at_many_moments)";
const GUARD: &str = "test(many_random_commands) | test(of_a_million_random_lines) | test(no_attack_by_anybody) | test(hour::)";
/// What the official SDKs can ask of posse.
const SDK: &str = "package(posse-cli) & test(/^sdk::/)";
/// All long forms of faults.
const ALL: &str = "not test(/^sdk::/)";

/// The long forms of fault runs: the tests that CI ignores, one after another, with what they counted. Those that are
/// `chosen`, as often as the environment in `told` says.
fn faults(root: &Path, chosen: &str, told: &[(&str, &str)]) -> Result<ExitCode> {
    let mut nextest = nextest(root, "faults", chosen);
    nextest.envs(told.iter().copied());
    nextest.args(["--run-ignored", "only"]);
    finished(one_by_one(&mut nextest))
}

/// The short form of one, which CI runs with all tests.
fn quick(root: &Path, filter: &str) -> Result<ExitCode> {
    finished(one_by_one(&mut nextest(root, "faults", filter)))
}

/// What is played with a store of any kind: teams, their messages and tasks, processes that are killed and stopped. But for one
/// test: a server takes longer than the test's clock, which then takes a probe of the provider for lost.
const SCENARIOS: &str = "kind(test) & (package(posse-testkit) | package(posse-runtime)) & test(/^(teams|claimers|messages|recovery|agents|forks|requests|cancels|compaction|store::stopped)::/) - test(the_next_writes_the_cache_when_the_first_fails)";

/// The same scenarios as all tests have, with the store on a server.
fn scenarios(root: &Path) -> Result<ExitCode> {
    let mut nextest = nextest(root, "ci", SCENARIOS);
    finished(nextest.env("POSSE_TEST_STORE", "postgres"))
}

/// The test runner for some tests of the workspace. They are chosen by a filter, not by their package: with fewer
/// packages cargo would choose other features, and build half of the dependencies a second time.
fn nextest(root: &Path, profile: &str, filter: &str) -> Command {
    let mut nextest = cargo(root);
    nextest.args(["nextest", "run", "--workspace", "--cargo-profile", "ci"]);
    nextest.args(["--profile", profile, "-E", filter]);
    nextest
}

/// One test after another, each with what it said.
fn one_by_one(nextest: &mut Command) -> &mut Command {
    nextest.args(["--test-threads", "1", "--success-output", "immediate"])
}

/// Runs it to its end.
fn finished(command: &mut Command) -> Result<ExitCode> {
    Ok(if command.status()?.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Cargo, without what `cargo run` told us about ourselves: build scripts that watch those variables
/// would run again, and half the workspace be built twice.
fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root);
    let ours = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
        "CARGO_PRIMARY_",
    ];
    for (name, _) in std::env::vars_os() {
        if ours
            .iter()
            .any(|prefix| name.to_string_lossy().starts_with(prefix))
        {
            cargo.env_remove(name);
        }
    }
    cargo
}

fn root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    Ok(root.context("xtask lies in the workspace")?.to_owned())
}
