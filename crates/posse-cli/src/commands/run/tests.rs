//! The command line of `posse -p`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use posse_protocol::Cost;
use posse_runtime::govern::budget::Budget;
use posse_runtime::live::setup::Approver;

use super::*;

fn parsed(arguments: &[&str]) -> Result<RunCommand, clap::Error> {
    let args = crate::Args::try_parse_from([&["posse"], arguments].concat())?;
    args.run
        .check()
        .map_err(|wrong| wrong.into_clap(crate::Args::command()))?;
    Ok(args.run)
}

#[test]
fn the_prompt_may_stand_anywhere() {
    for arguments in [
        &["-p", "do it", "--max-turns", "3"][..],
        &["-p", "--max-turns", "3", "do it"],
        &["--max-turns", "3", "do it", "--print"],
    ] {
        let run = parsed(arguments).unwrap();
        assert_eq!(
            (run.prompt.as_deref(), run.options.max_turns),
            (Some("do it"), Some(3)),
            "{arguments:?}"
        );
    }
    let run = parsed(&["-p", "doctor"]).unwrap();
    assert_eq!(
        run.prompt.as_deref(),
        Some("doctor"),
        "after -p a word is a prompt"
    );
    assert!(
        crate::Args::try_parse_from(["posse", "doctor"])
            .unwrap()
            .command
            .is_some()
    );
}

#[test]
fn rules_come_in_lists_and_both_spellings() {
    let run = parsed(&[
        "-p",
        "x",
        "--allowedTools",
        "Bash(git diff *),Edit",
        "--allowed-tools",
        "Read",
        "--disallowedTools",
        "WebFetch",
    ])
    .unwrap();
    let config = run.run_config(InlineAgents::default());
    assert_eq!(config.allow, ["Bash(git diff *)", "Edit", "Read"]);
    assert_eq!(config.deny, ["WebFetch"]);
}

#[test]
fn budgets_are_positive_and_exact() {
    let budget = |text: &str| parsed(&["-p", "x", &format!("--max-budget-usd={text}")]);
    assert_eq!(
        budget("0.25").unwrap().options.terms.max_budget_usd,
        Some(Cost::from_pico_usd(250_000_000_000))
    );
    for wrong in ["0", "-1", "NaN", "inf", "much"] {
        assert_eq!(budget(wrong).unwrap_err().exit_code(), 2, "{wrong}");
    }
}

#[test]
fn limits_of_all_kinds_are_passed_on() {
    let flags = [
        "-p",
        "x",
        "--max-budget-tokens",
        "9",
        "--max-time",
        "60",
        "--max-agents",
        "5",
        "--max-depth",
        "0",
        "--auto-background",
        "120",
    ];
    let config = parsed(&flags).unwrap().run_config(InlineAgents::default());
    let time = Some(Duration::from_secs(60));
    assert_eq!(
        config.limits.budget,
        Budget {
            tokens: Some(9),
            time,
            ..Budget::default()
        }
    );
    assert_eq!(
        (config.agents.depth, config.agents.running),
        (Some(0), Some(5))
    );
    assert_eq!(
        config.agents.auto_background,
        Some(Duration::from_secs(120))
    );
    assert!(!config.agents.no_background);
    assert!(
        parsed(&["-p", "x", "--no-background"])
            .unwrap()
            .run_config(InlineAgents::default())
            .agents
            .no_background
    );
}

#[test]
fn what_does_not_go_together_is_a_usage_error() {
    for wrong in [
        &["-p", "hi", "there"][..],
        &["-p", "x", "--add-dir", "/no/such/place"],
        &["-p", "x", "--add-dir", "/etc/hosts"],
        &["-p", "x", "--model", ""],
        &["-p", "x", "--allowedTools", "Bsh"],
        &["-p", "x", "--disallowedTools", "Edit Bsh"],
        &[
            "-p",
            "x",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
        ],
        &["-p", "--input-format", "stream-json"],
        &["-p", "x", "--include-partial-messages"],
        &["-p", "x", "--include-hook-events"],
        &["-p", "x", "--fork-session"],
        &["-p", "x", "--continue", "--resume", "1"],
        &["-p", "x", "--permission-mode", "yolo"],
        &["-p", "x", "--max-turns", "0"],
        &["-p", "x", "--allowed-tools", "Bash("],
        &["-p", "x", "--max-agents", "0"],
        &["-p", "x", "--max-budget-tokens", "0"],
        &["-p", "x", "--max-time", "0"],
        &["-p", "x", "--background-wait", "-1"],
        &["-p", "x", "--no-background", "--auto-background", "9"],
    ] {
        assert_eq!(parsed(wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
    }
    assert!(
        parsed(&["-p", "hi", "there"])
            .unwrap_err()
            .to_string()
            .contains("quote it, \"hi there …\"")
    );
    assert_eq!(
        parsed(&["-p", "x", "--add-dir", "/etc/../etc"])
            .unwrap()
            .options
            .terms
            .add_dir,
        [PathBuf::from("/etc")]
    );
    let run = parsed(&[
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
    ])
    .unwrap();
    assert_eq!(
        run.run_config(InlineAgents::default()).approver,
        Approver::FrontEnd
    );
    assert_eq!(
        parsed(&["-p", "x"])
            .unwrap()
            .run_config(InlineAgents::default())
            .approver,
        Approver::Nobody
    );
    let waits = parsed(&["-p", "x", "--on-question", "wait=2m"]).unwrap();
    assert_eq!(
        waits.run_config(InlineAgents::default()).approver,
        Approver::Anyone(Duration::from_secs(120))
    );
    assert_eq!(
        parsed(&["-p", "-r", "0197"]).unwrap().which(),
        Some(SessionChoice::Id("0197".into()))
    );
    assert_eq!(
        parsed(&["-p", "-c"]).unwrap().which(),
        Some(SessionChoice::Newest)
    );
}
