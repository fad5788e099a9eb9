//! Skills and commands: `posse skills list | show | check`, `/name` as a prompt, and files that change while posse runs.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::binary::{stderr, stdout};
use crate::definitions::{code, project, write};
use crate::run::{LINES, lines, result};

const SKILL: &str = ".posse/skills/review/SKILL.md";
const REVIEW: &str =
    "---\ndescription: Reviews a change.\nargument-hint: \"[file]\"\n---\nReview $ARGUMENTS.\n";

// proves HK-05 (part: front matter)
#[test]
fn skills_are_listed_shown_and_checked() {
    let project = project("skills-list", "");
    write(&project, SKILL, REVIEW);
    write(
        &project,
        ".claude/commands/git/tidy.md",
        "---\nuser-invocable: false\n---\nTidy up.\n",
    );
    write(&project, "../home/skills/review/SKILL.md", REVIEW);
    let listed = stdout(&project.run(&["skills", "list"]));
    let rows: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["NAME", "SOURCE", "FOR", "DESCRIPTION"]);
    assert_eq!(rows[1], ["git:tidy", "project", "model", "Tidy", "up."]);
    assert_eq!(
        rows[2],
        ["review", "project", "all", "Reviews", "a", "change."]
    );
    let told = lines(&project.run(&["skills", "list", "--all", "--json"]));
    let path = project.file(SKILL).to_string_lossy().into_owned();
    assert_eq!(
        (told.len(), &told[1]["path"], &told[2]["shadowed_by"]),
        (3, &json!(path), &json!(path))
    );

    let shown = stdout(&project.run(&["skills", "show", "/REVIEW"]));
    for part in [
        "/review [file]\nReviews a change.\n",
        "project: .posse/skills/review/SKILL.md\n",
        "\nReview $ARGUMENTS.\n",
    ] {
        assert!(shown.contains(part), "{part:?} in {shown}");
    }
    let told = result(&project.run(&["skills", "show", "review", "--json"]));
    assert_eq!(
        (&told["body"], told["shadows"].as_array().unwrap().len()),
        (&json!("Review $ARGUMENTS."), 1)
    );
    let output = project.run(&["skills", "show", "revew", "--json"]);
    assert_eq!(
        (code(&output), &result(&output)["error"]),
        (Some(1), &json!("there is no skill named revew"))
    );

    write(
        &project,
        ".claude/commands/bad.md",
        "---\ncontext: thread\n---\nx\n",
    );
    write(
        &project,
        ".claude/commands/grabs.md",
        "---\nallowed-tools: Bash\n---\nx\n",
    );
    let output = project.run(&["skills", "check"]);
    let told = stdout(&output);
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(code(&output), Some(1));
    assert!(
        told[0].contains("/home/skills/review/SKILL.md: note: not used: "),
        "{told:#?}"
    );
    assert_eq!(
        told[1],
        ".claude/commands/bad.md:2: error: `context` must be `fork`, not `thread`"
    );
    assert!(
        told[2].starts_with(".claude/commands/grabs.md:2: warning: ignored: `allowed-tools`"),
        "{told:#?}"
    );
    assert_eq!(told[3], "4 definitions: 1 error, 1 warning, 1 note");
    let told = result(&project.run(&["skills", "check", "--json", ".claude/commands/bad.md"]));
    assert_eq!(
        (&told["errors"], &told["error"]),
        (&json!(1), &json!("1 error in definitions of skills"))
    );
    let said = stderr(&project.run(&["-p", "what?"]));
    assert!(
        said.starts_with("warning: .claude/commands/bad.md:2: ") && said.lines().count() == 2,
        "{said}"
    );
}

// proves HK-05 (part: called by name)
#[test]
fn a_prompt_with_a_slash_calls_a_skill() {
    let project = project("skills-call", "");
    write(&project, SKILL, REVIEW);
    let output = project.run(&["-p", "/review main.rs"]);
    assert!(
        stdout(&output).contains("Review main.rs."),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    assert_eq!(
        stdout(&project.run(&["-p", "/tmp is full"])),
        "You said: /tmp is full\n"
    );
    let output = project.run(&["-p", "/reviw main.rs"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (Some(1), ""));
    assert!(
        stderr(&output).contains("there is no command /reviw; did you mean /review?"),
        "{}",
        stderr(&output)
    );
}

fn user(text: &str) -> String {
    format!(
        "{}\n",
        json!({"type": "user", "message": {"role": "user", "content": text}})
    )
}

// proves HK-05 (part: called by name)
#[test]
fn programs_call_skills_and_hear_of_them() {
    let project = project("skills-lines", "");
    write(&project, SKILL, REVIEW);
    write(
        &project,
        ".claude/commands/quiet.md",
        "---\ndisable-model-invocation: true\n---\nBe quiet.\n",
    );
    let arguments = [&LINES[..], &["--input-format", "stream-json"]].concat();
    let mut child = project
        .posse(&arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut told = BufReader::new(output)
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    // A session begins with the program's first line.
    input.write_all(b"{\"type\":\"keep_alive\"}\n").unwrap();
    let init = told.next().unwrap();
    assert_eq!(
        (&init["skills"], &init["slash_commands"]),
        (&json!(["review"]), &json!(["quiet", "review", "compact"]))
    );
    assert!(
        init["tools"].as_array().unwrap().contains(&json!("Skill")),
        "{init}"
    );
    input.write_all(user("/nothing here").as_bytes()).unwrap();
    let wrong = told.next().unwrap();
    assert_eq!(
        (&wrong["subtype"], &wrong["error"]),
        (
            &json!("input_error"),
            &json!("there is no command /nothing")
        )
    );
    input.write_all(user("/review main.rs").as_bytes()).unwrap();
    let replay = told.next().unwrap();
    assert_eq!(
        (
            &replay["isReplay"],
            &replay["message"]["content"][0]["text"]
        ),
        (&json!(true), &json!("/review main.rs"))
    );
    let end = told.find(|line| line["type"] == "result").unwrap();
    assert!(
        end["result"].as_str().unwrap().contains("Review main.rs."),
        "{end}"
    );
    let ask =
        json!({"type": "control_request", "request_id": "r", "request": {"subtype": "initialize"}});
    input.write_all(format!("{ask}\n").as_bytes()).unwrap();
    let answer = told
        .find(|line| line["type"] == "control_response")
        .unwrap();
    let review = &answer["response"]["response"]["commands"][1];
    assert_eq!(
        (&review["name"], &review["argumentHint"]),
        (&json!("review"), &json!("[file]"))
    );
    // What is new can be called at once: one asks until it is there.
    write(&project, ".posse/commands/fresh.md", "Be fresh.\n");
    loop {
        input.write_all(user("/fresh").as_bytes()).unwrap();
        let next = told
            .find(|line| line["subtype"] == "input_error" || line["type"] == "result")
            .unwrap();
        if next["type"] == "result" {
            assert!(
                next["result"].as_str().unwrap().contains("Be fresh."),
                "{next}"
            );
            break;
        }
    }
    drop(input);
    assert_eq!(told.count(), 0);
    assert_eq!(
        child.wait().unwrap().code(),
        Some(1),
        "there was input that could not be understood"
    );
}

// proves FK-12 (part: progress and output)
#[test]
fn the_answer_of_an_agent_of_its_own_is_the_result() {
    let script = "[[rule]]\nwhen.agent = 're:^/main/'\nreply = [{ text = 'Two callers.' }]\n[[rule]]\nreply = [{ text = 'The main model was called.' }]\n";
    let project = project("skills-fork", script);
    write(
        &project,
        SKILL,
        "---\ncontext: fork\n---\nFind callers of $0.\n",
    );
    let output = project.run(&["-p", "/review lexer", "--verbose"]);
    assert_eq!(
        (stdout(&output).as_str(), code(&output)),
        ("Two callers.\n", Some(0)),
        "{}",
        stderr(&output)
    );
    assert!(
        stderr(&output).contains("/review"),
        "progress is shown: {}",
        stderr(&output)
    );
    let told = result(&project.run(&["-p", "--output-format", "json", "/review lexer"]));
    assert_eq!(
        (&told["result"], &told["num_turns"], &told["is_error"]),
        (&json!("Two callers."), &json!(0), &json!(false))
    );
    // That is what there is to go on with, and nothing is left to do.
    let session = told["session_id"].as_str().unwrap();
    let output = project.run(&["-p", "--resume", session]);
    assert_eq!(code(&output), Some(1));
    assert!(
        stderr(&output).contains("has nothing left to do"),
        "{}",
        stderr(&output)
    );
    let on = result(&project.run(&["-p", "-c", "--output-format", "json", "and now?"]));
    assert_eq!(
        (&on["session_id"], &on["result"]),
        (&json!(session), &json!("The main model was called."))
    );
}

#[test]
fn what_is_piped_to_a_skill_is_no_argument_and_no_command() {
    let project = project("skills-piped", "");
    write(&project, SKILL, "Look at $0. !`echo got $ARGUMENTS`\n");
    write(
        &project,
        ".claude/commands/fork.md",
        "---\ncontext: fork\n---\nLook at $0.\n",
    );
    for (prompt, expected) in [
        (
            "/review 'a;touch bad'",
            "<command-output command=\"echo got 'a;touch bad'\">\ngot a;touch bad\n<",
        ),
        ("/fork main.rs", "Look at main.rs.\n\n$(touch worse)"),
    ] {
        let mut child = project
            .posse(&["-p", prompt, "--allowedTools", "Bash(echo *)"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(b"$(touch worse)")
            .unwrap();
        let told = stdout(&child.wait_with_output().unwrap());
        assert!(
            told.contains(expected) && told.contains("$(touch worse)"),
            "{expected} in {told}"
        );
    }
    assert!(!project.file("bad").exists() && !project.file("worse").exists());
}
