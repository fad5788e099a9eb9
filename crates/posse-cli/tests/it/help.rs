//! Help: the overview, pages of the manual.

use crate::binary::{posse, stderr, stdout};

fn told(words: &[&str]) -> String {
    let output = posse().args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    stdout(&output)
}

#[test]
fn the_overview_fits_a_screen_and_nothing_is_lost() {
    let overview = told(&["--help"]);
    assert!(overview.lines().count() < 40, "{overview}");
    assert_eq!(overview, told(&["-h"]));
    assert_eq!(overview, told(&["-p", "--help"]));
    for words in [
        "Run ",
        "Look ",
        "Set up ",
        "--allowed-tools",
        "Examples:",
        "posse help run",
    ] {
        assert!(overview.contains(words), "{words}: {overview}");
    }
    let all = told(&["help", "run"]);
    for flag in [
        "--max-budget-usd",
        "--background-wait",
        "--json-schema",
        "--fork-session",
        "--store",
        "--team-backend",
        "--screen-reader",
        "Possible values:",
        "[PROMPT]",
        "Examples:",
    ] {
        assert!(all.contains(flag), "{flag}: {all}");
    }
    assert!(!all.contains("scripted-model  "), "{all}");
}

#[test]
fn commands_have_examples_in_each_form_of_help() {
    for words in [
        &["team", "stop", "--help"][..],
        &["team", "stop", "-h"],
        &["help", "team", "stop"],
    ] {
        let help = told(words);
        assert!(help.contains("Usage: posse team stop"), "{help}");
        assert!(help.contains("posse team stop dev --force"), "{help}");
    }
    // A group alone is an error that shows its help.
    let output = posse().args(["team"]).output().unwrap();
    assert!(
        stderr(&output).contains("posse team run products"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn pages_of_the_manual_are_in_the_binary() {
    let list = told(&["help"]);
    for word in [
        "permissions",
        "troubleshooting",
        "coming-from",
        "scripted-model",
        "run",
    ] {
        assert!(list.contains(&format!("\n  {word} ")), "{word}: {list}");
    }
    let page = told(&["help", "permissions"]);
    let source = include_str!("../../../../docs/permissions.md");
    assert_eq!(page.lines().next(), source.lines().next());
    assert!(page.len() * 10 > source.len() * 9, "it is the whole page");
    assert!(page.contains("posse help headless") && !page.contains("docs/headless.md"));
    assert!(
        told(&["help", "trust"]).starts_with("# "),
        "pages come before commands"
    );
    assert!(
        told(&["help", "cost"]).contains("Usage: posse cost"),
        "commands after pages"
    );

    for (words, meant) in [
        (&["permisions"][..], "did you mean `permissions`?"),
        (&["dotcor"], "did you mean `doctor`?"),
        (&["team", "atach"], "did you mean `attach`?"),
        (&["frobnicate"], "`posse help` lists all"),
    ] {
        let output = posse().arg("help").args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(meant), "{}", stderr(&output));
    }
}
