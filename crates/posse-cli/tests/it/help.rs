//! Help: the overview, pages of the manual, man pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    let team = told(&["team", "run", "--help"]);
    assert!(team.lines().count() < 80, "{team}");
    for words in ["--another", "--permission-mode", "posse help run"] {
        assert!(team.contains(words), "{words}: {team}");
    }
    assert!(!team.contains("--background-wait"), "{team}");
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

/// Returns what a program says about a page, which should be nothing.
fn complaints(program: &str, arguments: &[&str], page: &Path) -> String {
    let output = Command::new(program)
        .args(arguments)
        .arg(page)
        .env("LC_ALL", "C.UTF-8")
        .output();
    let output = output.unwrap_or_else(|_| panic!("no {program} here: run .ci/setup"));
    format!(
        "{}{}",
        stderr(&output),
        match program {
            "mandoc" => stdout(&output),
            _ => String::new(),
        }
    )
}

#[test]
fn man_pages_are_what_man_expects() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("man");
    let _ = fs::remove_dir_all(&directory);
    told(&["man", directory.to_str().unwrap()]);
    let pages: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    assert!(pages.len() > 70, "{pages:?}");
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        assert!(text.contains(".SH EXAMPLES"), "{}", page.display());
        // Without a date a page is the same whenever it is made; mandoc would rather have one.
        let lint = ["-Tlint", "-Werror"];
        assert_eq!(complaints("mandoc", &lint, page), "", "{}", page.display());
    }
    for name in ["posse.1", "posse-team-run.1", "posse-mcp-add-json.1"] {
        let page = directory.join(name);
        assert_eq!(
            complaints("man", &["--warnings", "-l"], &page),
            "",
            "{name}"
        );
    }
    assert_eq!(
        told(&["man"]),
        fs::read_to_string(directory.join("posse.1")).unwrap()
    );
    assert!(!told(&["--help"]).contains("\n  man "));
}
