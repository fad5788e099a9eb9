//! Commands of README and of the manual, as written.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary::Server;

const README: &str = include_str!("../../../../README.md");
const AGENTS: &str = include_str!("../../../../docs/agents.md");
const SKILLS: &str = include_str!("../../../../docs/skills.md");
const TEAMS: &str = include_str!("../../../../docs/teams.md");
const STORY: &str = include_str!("../../../../docs/stories/teams.sh");

/// The blocks of a page that are marked with this name, as one script. In a block with prompts only
/// these lines are commands.
pub(crate) fn script(page: &str, name: &str) -> String {
    let mark = format!("<!-- run: {name} -->\n```");
    let blocks = page.split(mark.as_str()).skip(1).map(|block| {
        let (kind, rest) = block.split_once('\n').unwrap();
        let (block, _) = rest.split_once("```").unwrap();
        match kind {
            "console" => block
                .lines()
                .filter_map(|line| line.strip_prefix("$ "))
                .map(|line| format!("{line}\n"))
                .collect(),
            _ => block.to_owned(),
        }
    });
    blocks.collect()
}

/// Runs the marked blocks of a page that serve a model on this port, and gives what they said.
fn run(page: &str, port: &str, place: &str) -> (PathBuf, String) {
    let script = script(page, "trying").replace(port, &free_port());
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
        .env("POSSE_SANDBOX", "off")
        .env("POSSE_TRUST", &place)
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
        "1 definition: 0 errors, 0 warnings, 2 notes\n",
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
    let (_, said) = run(SKILLS, "4444", "trying-skills");
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
    let (place, said) = run(AGENTS, "4343", "trying");
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

/// All pages, and the names of their blocks that a test here runs.
const RUN: [(&str, &[&str]); 12] = [
    ("agents", &["trying"]),
    ("cli", &["prompts", "team", "restore"]),
    ("coming-from", &["files"]),
    ("fleet", &["fleet"]),
    ("headless", &["lines"]),
    // The tests of hooks run these.
    ("hooks", &["format", "tests", "notify"]),
    // The tests of MCP servers run these.
    ("mcp", &["servers", "serving"]),
    ("models", &["models"]),
    ("protocol", &["schema"]),
    ("scripted-model", &["served"]),
    ("skills", &["trying"]),
    ("teams", &["team"]),
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(docs().join(format!("{name}.md"))).unwrap()
}

#[test]
fn every_block_that_is_marked_is_run() {
    let top = ["README.md", "CONTRIBUTING.md"].map(|name| docs().join("..").join(name));
    let pages = std::fs::read_dir(docs()).unwrap();
    for path in pages.map(|entry| entry.unwrap().path()).chain(top) {
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let run = RUN.iter().find(|(page, _)| *page == name);
        let run = run.map_or(&[][..], |(_, run)| run);
        let text = std::fs::read_to_string(&path).unwrap();
        let marks = text.split("<!-- run: ").skip(1);
        let mut marks: Vec<&str> = marks
            .map(|rest| rest.split_once(" -->").unwrap().0)
            .collect();
        marks.dedup();
        assert_eq!(marks, run, "{name}");
    }
}

/// Runs the blocks of a page with a scripted model at hand, and gives what they said.
fn run_page(name: &str, mark: &str, before: &str, replaced: &[(&str, &str)]) -> String {
    let place = format!("page-{name}-{mark}");
    let server = Server::start(&place, "");
    let mut script = script(&page(name), mark);
    assert!(!script.is_empty(), "{name} {mark}");
    for (words, with) in replaced {
        assert!(script.contains(words), "{words} is not in {script}");
        script = script.replace(words, with);
    }
    let url = &server.url;
    let begin = format!(
        "export ANTHROPIC_BASE_URL={url} OPENAI_BASE_URL={url}/v1\n\
         git init -q && git -c user.name=me -c user.email=me@example.org commit -q --allow-empty -m begin\n"
    );
    bash(&format!("{begin}{before}\n{script}"), &place).1
}

#[test]
fn prompts_of_the_manual_run() {
    // The reader's own build.
    let said = run_page(
        "cli",
        "prompts",
        "cargo() { echo 'test result: FAILED'; }",
        &[],
    );
    assert!(said.contains("test result: FAILED"), "{said}");
}

#[test]
fn a_team_written_by_hand_is_imported_and_kept_as_the_manual_says() {
    let said = run_page("cli", "team", "", &[]);
    for expected in [
        "imported team parser: 2 members, 2 tasks, 1 message, 1 note\n",
        "Write the lexer",
        "look at the lexer first",
    ] {
        assert!(said.contains(expected), "{expected} is not in:\n{said}");
    }
}

#[test]
fn a_backup_is_restored_as_the_manual_says() {
    let before = "export HOME=$PWD; unset POSSE_HOME\n\
                  posse -p kept && posse store backup backup.db && posse -p lost";
    let said = run_page("cli", "restore", before, &[("/where/it/is", "$HOME")]);
    assert!(said.contains("is intact: 1 agent"), "{said}");
}

#[test]
fn what_becomes_of_files_is_listed_as_the_manual_says() {
    let before = r#"mkdir .claude; echo '{"statusLine": {"type": "x"}}' > .claude/settings.json"#;
    let said = run_page("coming-from", "files", before, &[]);
    assert!(said.contains("not used  .claude/settings.json"), "{said}");
}

#[test]
fn a_fleet_begins_as_the_manual_says() {
    let server = posse_testkit::postgres::Server::start(Default::default()).unwrap();
    let port = server.port();
    // A worker works until it is stopped.
    let before = format!(
        "export PGHOST=127.0.0.1 PGPORT={port} PGUSER=postgres\n\
         posse() {{ case $1 in worker) timeout -s INT 3 posse \"$@\" || [ $? = 124 ];; *) command posse \"$@\";; esac; }}"
    );
    let here = format!("@127.0.0.1:{port}/");
    let replaced = [
        ("@db.example:5432/", here.as_str()),
        ("@db.example/", &here),
    ];
    run_page("fleet", "fleet", &before, &replaced);
    let count = "SELECT count(*) FROM posse.agent";
    let agents = posse_testkit::postgres::sql(&server.url_of("posse"), count).unwrap();
    assert_eq!(agents.trim(), "1");
}

#[test]
fn lines_come_and_go_as_the_manual_says() {
    let said = run_page("headless", "lines", "", &[]);
    assert!(said.contains(r#""subtype":"success""#), "{said}");
}

// proves WR-04 (part: printed)
#[test]
fn the_schema_is_printed_as_the_manual_says() {
    run_page("protocol", "schema", "", &[]);
    let printed = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page-protocol-schema/protocol.json");
    let version = posse_protocol::wire::VERSION;
    let kept = docs().join(format!("schema/protocol-{version}.json"));
    assert_eq!(
        std::fs::read_to_string(printed).unwrap(),
        std::fs::read_to_string(kept).unwrap()
    );
}

#[test]
fn models_are_asked_as_the_manual_says() {
    let replaced = [
        ("http://127.0.0.1:11434/v1", "$OPENAI_BASE_URL"),
        ("https://openrouter.ai/api/v1", "$OPENAI_BASE_URL"),
        ("…", "any"),
    ];
    let said = run_page(
        "models",
        "models",
        "KEY=any; export OPENAI_API_KEY=any",
        &replaced,
    );
    assert_eq!(said.matches("Hello!").count(), 4, "{said}");
}

#[test]
fn a_scripted_model_serves_as_the_manual_says() {
    let port = free_port();
    // It is served in the background, and ends with the shell.
    let before = format!(
        "printf '[[rule]]\\nreply = [{{ text = \"a heron\" }}]\\n' > my.toml\n\
         posse() {{ case $2 in my.toml) command posse scripted-model --port {port} my.toml >/dev/null & trap \"kill $!\" EXIT\n\
         until curl -s 127.0.0.1:{port} >/dev/null; do :; done;; *) command posse \"$@\";; esac; }}"
    );
    let said = run_page("scripted-model", "served", &before, &[("4141", &port)]);
    assert!(said.contains("a heron"), "{said}");
}

#[test]
fn a_team_is_run_and_resumed_as_the_manual_says() {
    // Its tasks stay open, so that there is something to resume.
    let before = "mkdir -p .posse/teams\n\
         printf '[roles.dev]\\n[[tasks]]\\nsubject = \"s\"\\n' > .posse/teams/mend.toml\n\
         posse() { command posse \"$@\" || [ $? = 3 ]; }\n\
         id() { posse team show --json | grep -o '\"session_id\":\"[^\"]*' | cut -d'\"' -f4; }";
    let replaced = [("--resume ID", "--resume $(id)"), ("NAME", "mend")];
    run_page("teams", "team", before, &replaced);
}
