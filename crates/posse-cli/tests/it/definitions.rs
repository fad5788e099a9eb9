//! Types of agents that people define: `posse agents list | show | check | new`, `--agents`, and files that change
//! while posse runs.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Output, Stdio};

use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};
use crate::run::{LINES, lines, result};
use crate::trust::untrusted;

/// Starts an agent of the type `reviewer` when it is told to review; who has the right prompt answers.
const REVIEWS: &str = r#"
[[rule]]
when = { agent = "re:^/main/.", marker = "You look at what others did." }
reply = [{ text = "two mistakes" }]
[[rule]]
when.tool = "two mistakes"
reply = [{ text = "It found two mistakes." }]
[[rule]]
when.tool = "re:."
reply = [{ text = "The tool said: {{tool}}" }]
[[rule]]
when.user = "review"
reply = [{ tool = "Agent", input = { description = "look", prompt = "Look.", subagent_type = "Reviewer" } }]
"#;

const FILE: &str = ".posse/agents/reviewer.md";

fn definition(name: &str) -> String {
    format!("---\nname: {name}\ndescription: looks at changes\n---\nYou look at what others did.\n")
}

/// A repository of its own: what lies above the tests' directory is none of theirs.
pub(crate) fn project(name: &str, script: &str) -> Project {
    let project = Project::new(name, script);
    std::fs::create_dir(project.file(".git")).unwrap();
    project
}

/// Writes a file that is whole as soon as it is there: nobody sees half of it.
pub(crate) fn write(project: &Project, name: &str, text: &str) {
    let (path, draft) = (project.file(name), project.file("../draft"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&draft, text).unwrap();
    std::fs::rename(draft, path).unwrap();
}

pub(crate) fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn types_are_listed_with_where_they_are_from() {
    let project = project("definitions-list", "");
    write(
        &project,
        ".claude/agents/a/reviewer.md",
        &definition("Reviewer"),
    );
    write(&project, FILE, &definition("reviewer"));
    write(
        &project,
        "../home/agents/plan.md",
        "---\nname: plan\ndescription: plans\nmodel: small\ntools: Read\n---\nPlan.\n",
    );
    let listed = stdout(&project.run(&["agents", "list"]));
    let rows: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["NAME", "SOURCE", "MODEL", "TOOLS", "DESCRIPTION"]);
    let row = |name: &str| {
        rows.iter()
            .find(|row| row[0] == name)
            .unwrap_or_else(|| panic!("{listed}"))
    };
    assert_eq!(
        row("reviewer")[1..],
        ["project", "inherit", "all", "looks", "at", "changes"]
    );
    assert_eq!(row("plan")[1..], ["user", "small", "Read", "plans"]);
    assert_eq!(row("general-purpose")[1], "built-in");
    assert!(!listed.contains("Reviewer"), "{listed}");
    let all = stdout(&project.run(&["agents", "list", "--all"]));
    let shadowed = all
        .lines()
        .find(|line| line.starts_with("Reviewer"))
        .unwrap();
    assert!(shadowed.contains(FILE), "{all}");
    let told = lines(&project.run(&["agents", "list", "--all", "--json"]));
    let of = |name: &str| {
        told.iter()
            .filter(|line| line["name"] == name)
            .collect::<Vec<_>>()
    };
    let path = project.file(FILE).to_string_lossy().into_owned();
    assert_eq!(
        (
            &of("reviewer")[0]["path"],
            &of("reviewer")[0]["shadowed_by"]
        ),
        (&json!(path), &Value::Null)
    );
    assert_eq!(of("Reviewer")[0]["shadowed_by"], json!(path));
    assert_eq!(
        (&of("plan")[0]["tools"], &of("plan")[0]["shadowed_by"]),
        (&json!(["Read"]), &Value::Null)
    );
    assert!(
        of("Plan")[0]["shadowed_by"]
            .as_str()
            .unwrap()
            .ends_with("/home/agents/plan.md"),
        "{told:?}"
    );
    assert!(
        !project.file("../home/posse.db").exists(),
        "looking makes no store"
    );
}

#[test]
fn a_type_is_shown_with_all_that_it_has() {
    let project = project("definitions-show", "");
    let text = "---\nname: reviewer\ndescription: looks\ntools: [Read, Grep]\nmemory: project\nmaxTurns: 7\n\
                skills: [git]\nisolation: worktree\n---\nYou look.\n";
    write(&project, FILE, text);
    write(
        &project,
        ".claude/agents/reviewer.md",
        &definition("reviewer"),
    );
    let output = project.run(&["agents", "show", "REVIEWER"]);
    let shown = stdout(&output);
    for part in [
        "reviewer\nlooks\n\nfrom                project: .posse/agents/reviewer.md\n",
        "shadows             .claude/agents/reviewer.md",
        "tools               Read, Grep\n",
        "isolation           worktree\n",
        "maxTurns            7\n",
        "memory              project, in /",
        "/work/.posse/agent-memory/reviewer\n",
        "skills              git\n",
        "\nYou look.\n",
    ] {
        assert!(
            shown.contains(part),
            "{part:?} in {shown}{}",
            stderr(&output)
        );
    }
    let told = result(&project.run(&["agents", "show", "reviewer", "--json"]));
    assert_eq!(
        (&told["max_turns"], &told["prompt"]),
        (&json!(7), &json!("You look."))
    );
    assert_eq!(
        (
            &told["memory"]["scope"],
            told["shadows"].as_array().unwrap().len()
        ),
        (&json!("project"), 1)
    );
    let output = project.run(&["agents", "show", "reviwer", "--json"]);
    assert_eq!(code(&output), Some(1));
    let told = result(&output);
    assert_eq!(told["error"], "there is no agent type named reviwer");
    let hint = told["hint"].as_str().unwrap();
    assert!(
        hint.starts_with("did you mean reviewer? there are general-purpose, "),
        "{hint}"
    );
}

// proves AD-05
#[test]
fn what_is_broken_is_told_by_file_and_line() {
    let project = project("definitions-check", REVIEWS);
    write(&project, FILE, &definition("reviewer"));
    let output = project.run(&["agents", "check"]);
    assert_eq!(
        (stdout(&output).as_str(), code(&output)),
        ("1 definition: 0 errors, 0 warnings, 0 notes\n", Some(0))
    );
    write(
        &project,
        ".claude/agents/a.md",
        "---\nname: a\ndescription: a\nmaxTurns: \x1b[2J\n---\nx\n",
    );
    write(
        &project,
        ".claude/agents/b.md",
        "---\nname: b\ndescription: b\nhooks: {Stop: [{hooks: [{type: command, command: \"true\", timout: 1}]}]}\n---\nx\n",
    );
    write(&project, ".claude/agents/c.md", &definition("reviewer"));
    let output = project.run(&["agents", "check"]);
    let told = stdout(&output);
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(code(&output), Some(1));
    assert!(
        told[0].starts_with(".claude/agents/a.md:4: error: "),
        "{told:#?}"
    );
    assert!(!told[0].contains('\x1b'), "{told:#?}");
    assert!(
        told[1].starts_with(".claude/agents/b.md:4: note: `timout` is not known"),
        "{told:#?}"
    );
    assert_eq!(
        told[2..],
        [
            ".claude/agents/c.md: note: not used: .posse/agents/reviewer.md takes precedence as \
             reviewer",
            "3 definitions: 1 error, 0 warnings, 2 notes",
        ]
    );
    let output = project.run(&["agents", "check", "--json"]);
    let told = result(&output);
    assert_eq!(
        (&told["errors"], &told["definitions"], code(&output)),
        (&json!(1), &json!(3), Some(1))
    );
    assert_eq!(
        (&told["remarks"][0]["line"], &told["remarks"][0]["weight"]),
        (&json!(4), &json!("error"))
    );
    assert!(
        told["error"].is_string() && told["hint"].is_string(),
        "{told}"
    );
    for (path, expected) in [
        ("nowhere", 1),
        (FILE, 0),
        (".posse", 0),
        (".claude/agents", 1),
        (".claude/agents/b.md", 0),
    ] {
        let output = project.run(&["agents", "check", path]);
        assert_eq!(code(&output), Some(expected), "{path}: {}", stdout(&output));
    }
    // A run says it, and what is not broken can be started.
    let output = project.run(&["-p", "review", "--allowedTools", "Agent"]);
    assert_eq!(stdout(&output), "It found two mistakes.\n");
    let said = stderr(&output);
    assert!(
        said.starts_with("warning: .claude/agents/a.md:4: ") && said.lines().count() == 1,
        "{said}"
    );
    for number in 0..6 {
        write(
            &project,
            &format!(".claude/agents/x{number}.md"),
            "---\nname: x\n",
        );
    }
    let said = stderr(&project.run(&["-p", "review", "--allowedTools", "Agent"]));
    let last = "warning: and 2 more about agents: `posse agents check` lists all";
    assert_eq!(
        (said.lines().count(), said.lines().last()),
        (6, Some(last)),
        "{said}"
    );
}

#[test]
fn a_new_definition_is_one_to_begin_with() {
    let project = project("definitions-new", "");
    let output = project.run(&["agents", "new", "reviewer"]);
    assert!(
        stdout(&output).starts_with(&format!("{FILE}\n")),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).contains("posse agents check"));
    let tools = [
        "agents",
        "new",
        "tester",
        "--description",
        "tests: \"all\" of it\n# really",
        "--tools",
        "Read, Bash",
    ];
    assert_eq!(code(&project.run(&tools)), Some(0));
    for name in ["12", "true", "prüfer"] {
        assert_eq!(
            code(&project.run(&["agents", "new", name])),
            Some(0),
            "{name}"
        );
    }
    let output = project.run(&["agents", "new", "explore", "--user"]);
    assert!(
        stdout(&output).contains("It now takes precedence over built-in."),
        "{}",
        stdout(&output)
    );
    let output = project.run(&["agents", "check"]);
    assert_eq!(
        (stdout(&output).as_str(), code(&output)),
        ("6 definitions: 0 errors, 0 warnings, 0 notes\n", Some(0))
    );
    let told = result(&project.run(&["agents", "show", "tester", "--json"]));
    assert_eq!(
        (&told["description"], &told["tools"]),
        (
            &json!("tests: \"all\" of it\n# really"),
            &json!(["Read", "Bash"])
        )
    );
    assert_eq!(
        result(&project.run(&["agents", "show", "explore", "--json"]))["source"],
        "user"
    );
    // What is there is left alone.
    let before = std::fs::read(project.file(FILE)).unwrap();
    let output = project.run(&["agents", "new", "reviewer", "--json"]);
    let told = result(&output);
    assert_eq!(
        (&told["error"], code(&output)),
        (&json!(format!("{FILE} already exists")), Some(1))
    );
    assert_eq!(std::fs::read(project.file(FILE)).unwrap(), before);
    for bad in ["", "a/b", "../x", "two words", "fork", "a:b"] {
        let output = project.run(&["agents", "new", bad]);
        assert_eq!(code(&output), Some(2), "{bad}: {}", stdout(&output));
    }
    assert!(!project.file(".posse/x.md").exists());
    let told = result(&project.run(&["agents", "new", "other", "--json"]));
    assert_eq!(
        (&told["name"], &told["counts"]),
        (&json!("other"), &json!(true))
    );
}

/// What `new` says about trying works as it is said.
#[test]
fn a_new_definition_can_be_tried_as_it_says() {
    let project = project("definitions-try", "");
    let said = stdout(&project.run(&["agents", "new", "reviewer"]));
    let script: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with("posse "))
        .collect();
    let server = crate::binary::Server::start("definitions-tried", &script.join("\n"));
    let mut tried = project.posse(&["-p", "--allowedTools", "Agent", "go"]);
    let output = tried
        .env("ANTHROPIC_BASE_URL", &server.url)
        .output()
        .unwrap();
    assert!(
        stdout(&output).contains("I am reviewer, and this is my answer."),
        "{said}{}{}",
        stdout(&output),
        stderr(&output)
    );
}

// proves AD-02 (part: --agents)
#[test]
fn the_command_line_defines_types_and_beats_files() {
    let project = project("definitions-flag", REVIEWS);
    write(
        &project,
        FILE,
        "---\nname: reviewer\ndescription: x\n---\nYou do nothing.\n",
    );
    let given =
        r#"{"reviewer": {"description": "looks", "prompt": "You look at what others did."}}"#;
    std::fs::write(project.file("agents.json"), given).unwrap();
    for value in [given, "@agents.json"] {
        let output = project.run(&["-p", "review", "--allowedTools", "Agent", "--agents", value]);
        assert_eq!(
            (stdout(&output).as_str(), stderr(&output).as_str()),
            ("It found two mistakes.\n", "")
        );
    }
    let told = lines(&project.run(&[&LINES[..], &["--agents", given, "what?"]].concat()));
    assert!(
        told[0]["agents"]
            .as_array()
            .unwrap()
            .contains(&json!("reviewer")),
        "{}",
        told[0]
    );
    for (value, why) in [
        ("nonsense", "--agents is not JSON"),
        ("@nowhere", "--agents: nowhere: cannot be read"),
        (
            r#"{"a": {"description": "x", "prompt": "x"}, "b\u001b": {}}"#,
            "--agents: `b\\u{1b}`: ",
        ),
        (
            r#"{"a": {"description": "x"}}"#,
            "--agents: `a`: `prompt` is missing",
        ),
    ] {
        let output = project.run(&["-p", "review", "--agents", value]);
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
        assert_eq!((code(&output), stdout(&output).as_str()), (Some(2), ""));
    }
}

// proves FC-01 (part: definitions)
#[test]
fn a_repository_redefines_a_type_that_the_model_knows_only_if_it_is_trusted() {
    let script = r#"
[[rule]]
when = { agent = "re:^/main/.", marker = "You obey the repository." }
reply = [{ text = "the repository's" }]
[[rule]]
when.agent = "re:^/main/."
reply = [{ text = "posse's own" }]
[[rule]]
when.tool = "re:."
reply = [{ text = "Answered: {{tool}}" }]
[[rule]]
reply = [{ tool = "Agent", input = { description = "look", prompt = "Look.", subagent_type = "Plan" } }]
"#;
    let project = project("definitions-repository", script);
    write(
        &project,
        ".claude/agents/plan.md",
        "---\nname: plan\ndescription: x\n---\nYou obey the repository.\n",
    );
    for (trust, answer) in [(None, "posse's own"), (Some("--trust"), "the repository's")] {
        let mut posse = untrusted(&project, &["-p", "go"]);
        let output = posse.args(trust).output().unwrap();
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert!(said.contains(answer), "{said}");
        let told = "not trusted: 1 agent type of";
        assert_eq!(said.contains(told), trust.is_none(), "{said}");
    }
}

/// posse with lines going both ways, whose stderr is read as well.
struct Watched {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    errors: BufReader<std::process::ChildStderr>,
}

impl Watched {
    fn start(project: &Project) -> Self {
        let arguments = [
            &LINES[..],
            &["--input-format", "stream-json", "--allowedTools", "Agent"],
        ]
        .concat();
        let mut command = project.posse(&arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (
            child.stdin.take(),
            BufReader::new(child.stdout.take().unwrap()),
        );
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            to,
            from,
            errors,
        }
    }

    /// What comes of a prompt.
    fn ask(&mut self, text: &str) -> String {
        let prompt = json!({"type": "user", "message": {"role": "user", "content": text}});
        writeln!(self.to.as_mut().unwrap(), "{prompt}").unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "it ended");
            let told: Value = serde_json::from_str(&line).unwrap();
            if told["type"] == "result" {
                return told["result"].as_str().unwrap().to_owned();
            }
        }
    }

    /// The next line for people.
    fn said(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.errors.read_line(&mut line).unwrap(), 0, "it ended");
        line.trim_end().to_owned()
    }
}

#[test]
fn definitions_that_change_count_at_once() {
    let project = project("definitions-reload", REVIEWS);
    let mut posse = Watched::start(&project);
    let refused = posse.ask("review");
    assert!(
        refused.starts_with("The tool said: ") && refused.contains("general-purpose"),
        "{refused}"
    );
    write(&project, FILE, &definition("reviewer"));
    assert_eq!(posse.said(), "agents: + reviewer");
    assert_eq!(posse.ask("review"), "It found two mistakes.");
    write(
        &project,
        FILE,
        &definition("reviewer").replace("looks at changes", "looks twice"),
    );
    assert_eq!(posse.said(), "agents: ~ reviewer");
    assert_eq!(posse.ask("review"), "It found two mistakes.");
    write(
        &project,
        FILE,
        "---\nname: reviewer\ndescription:\n---\nx\n",
    );
    let said = posse.said();
    assert!(
        said.starts_with("agents: - reviewer; .posse/agents/reviewer.md:3: "),
        "{said}"
    );
    assert!(posse.ask("review").starts_with("The tool said: "));
    // Files of the user's count as well, and directories that come and go.
    std::fs::remove_dir_all(project.file(".posse")).unwrap();
    write(
        &project,
        "../home/agents/mine/reviewer.md",
        &definition("reviewer"),
    );
    assert_eq!(posse.said(), "agents: + reviewer");
    write(&project, ".claude/agents/other.md", &definition("other"));
    assert_eq!(posse.said(), "agents: + other");
    write(
        &project,
        "../home/agents/explore.md",
        &definition("explore"),
    );
    assert_eq!(posse.said(), "agents: ~ explore");
    assert_eq!(posse.ask("review"), "It found two mistakes.");
    drop(posse.to.take());
    assert_eq!(posse.child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut posse.errors, &mut rest).unwrap();
    assert_eq!(rest, "", "what did not change is not told");
}
