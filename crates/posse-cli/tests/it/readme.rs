//! Commands of README and of the manual, as written.

use std::path::{Path, PathBuf};
use std::process::Command;

const README: &str = include_str!("../../../../README.md");
const AGENTS: &str = include_str!("../../../../docs/agents.md");
const SKILLS: &str = include_str!("../../../../docs/skills.md");
const TEAMS: &str = include_str!("../../../../docs/teams.md");
const STORY: &str = include_str!("../../../../docs/stories/teams.sh");

/// Runs what stands in a page's blocks from a mark to the end of the section, and gives what it said.
fn run(page: &str, mark: &str, port: &str, place: &str) -> (PathBuf, String) {
    let (_, after) = page
        .split_once(&format!("<!-- tested: {mark} -->\n"))
        .unwrap();
    let (section, _) = after.split_once("\n## ").unwrap();
    let blocks = section
        .split("```sh\n")
        .skip(1)
        .map(|block| block.split_once("```").unwrap().0);
    let script = blocks.collect::<String>().replace(port, &free_port());
    bash(&format!("{script}\nkill %1"), place)
}

/// Any free port, so that a test can run beside a server that somebody uses.
fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

/// Runs a script in a new directory, and gives that and what it said.
fn bash(script: &str, place: &str) -> (PathBuf, String) {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_posse")).parent().unwrap();
    let output = Command::new("bash")
        .args(["-euc", script])
        .env_clear()
        .env(
            "PATH",
            format!("{}:/usr/local/bin:/usr/bin:/bin", binaries.display()),
        )
        .env("POSSE_HOME", place.join("home"))
        .current_dir(&place)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (place, said)
}

/// Pasted from the first to the last line in one shell, it works, ends what it started, and leaves nothing.
#[test]
fn the_tour_can_be_pasted_in_one_shell() {
    let (_, after) = README.split_once("<!-- tour: begin -->").unwrap();
    let (tour, _) = after.split_once("<!-- tour: end -->").unwrap();
    let blocks = tour
        .split("```sh\n")
        .skip(1)
        .map(|block| block.split_once("```").unwrap().0);
    let script = blocks.collect::<String>().replace("4242", &free_port());
    let left = "wait; echo \"exported: ${ANTHROPIC_BASE_URL-nothing}; running: $(jobs -pr)\"";
    let (place, said) = bash(&format!("{script}\n{left}"), "tour");
    for expected in [
        "add.sh subtracted. It adds now, and ./test.sh passes.\n",
        "+echo $(($1 + $2))",
        "the test fails: find the bug and fix it",
        "2 + 2 is 0",
        "Yes: -2 and -3 are -5.\n",
        "add.sh adds two numbers. mul.sh adds them, too, and should multiply.\n",
        "3 agents\n",
        "1 definition: 0 errors, 0 warnings, 0 notes\n",
        "mul.sh multiplies now. The reviewer has tried it with a negative number.\n",
        "+echo $(($1 * $2))",
        "tasks: 2 completed\n",
        "exported: nothing; running: \n",
    ] {
        assert!(said.contains(expected), "{expected} is not in:\n{said}");
    }
    let files = std::fs::read_dir(place).unwrap().flatten();
    let files: Vec<_> = files.map(|entry| entry.file_name()).collect();
    assert_eq!(files, ["home"], "nothing is left but posse's home");
}

#[test]
fn a_skill_is_written_checked_and_tried_as_the_manual_says() {
    let (_, said) = run(SKILLS, "trying", "4444", "trying-skills");
    for expected in [
        "1 definition: 0 errors, 0 warnings, 0 notes\n",
        "Finds who uses a thing.",
        "\nlexer.rs uses it.\nFind who uses x. The files: \n",
    ] {
        assert!(said.contains(expected), "{expected} is not in:\n{said}");
    }
}

#[test]
fn an_agent_is_written_checked_and_tried_as_the_manual_says() {
    let (place, said) = run(AGENTS, "trying", "4343", "trying");
    for expected in [
        "1 definition: 0 errors, 0 warnings, 0 notes\n",
        "\nThe reviewer found one thing: x is never used.\nLook at lexer.rs.\n",
    ] {
        assert!(said.contains(expected), "{expected} is not in:\n{said}");
    }
    assert!(place.join("try/.posse/agents/reviewer.md").exists());
}

// proves TE-11 (part: lead and teammates)
#[test]
fn the_story_of_a_team_goes_as_the_manual_tells_it() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/stories/teams.toml");
    let (_, said) = bash(
        &format!("set +e; STORY={}\n{STORY}", script.display()),
        "story",
    );
    let told = TEAMS
        .split_once("<!-- story: begin -->")
        .unwrap()
        .1
        .split_once("<!-- story: end -->")
        .unwrap()
        .0;
    let steps = |text: &str| -> Vec<String> {
        let steps = text.lines().filter(|line| line.starts_with("$ "));
        steps
            .map(|line| {
                line.trim_end_matches(|c: char| c.is_ascii_digit())
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(
        steps(&said),
        steps(told),
        "`cargo xtask story` writes it anew"
    );
    for line in [
        "✓ #1 add.sh must add (dev-",
        "✓ #2 mul.sh must multiply (dev-",
        "→ #3 Try both scripts: reviewer\n",
        "● running · #3 Try both scripts\n",
        "✓ #3 Try both scripts (reviewer)\n",
        "\nadd.sh adds and mul.sh multiplies. The reviewer has tried both, with negative numbers too.\n",
        "\ntasks: 3 completed\n",
    ] {
        assert!(said.contains(line), "{line} is not in:\n{said}");
        assert!(
            told.contains(line),
            "{line} is not in the page: `cargo xtask story` writes it anew"
        );
    }
    let declared = STORY
        .split_once("sums.toml <<'END'\n")
        .unwrap()
        .1
        .split_once("END\n")
        .unwrap()
        .0;
    assert!(
        TEAMS.contains(declared),
        "the page shows the team that is run"
    );
}

#[test]
fn a_team_written_by_hand_is_imported_as_the_manual_says() {
    let manual = include_str!("../../../../docs/cli.md");
    let (_, after) = manual.split_once("or you:\n\n```sh\n").unwrap();
    let (_, said) = bash(after.split_once("```").unwrap().0, "by-hand");
    assert!(
        said.starts_with("imported team parser: 2 members, 2 tasks, 1 message, 1 note\n"),
        "{said}"
    );
}
