//! `posse mail` and `posse agents`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::binary::Project;
use crate::team::{lines, refused, succeed, with_team};

#[test]
fn mail_waits_for_who_does_not_run() {
    let project = with_team("mail-send");
    let sent = succeed(
        &project,
        &[
            "mail",
            "send",
            "--team",
            "parser",
            "alice",
            "\nlook here\nand there",
        ],
    );
    assert_eq!(sent, "sent to alice: it waits in its inbox\n");
    succeed(
        &project,
        &[
            "mail",
            "send",
            "alice@parser",
            "x",
            "--summary",
            "short \u{1b}[2J",
        ],
    );
    let receipts = lines(
        &project,
        &["mail", "send", "--team", "parser", "*", "to all", "--json"],
    );
    let names: Vec<&str> = receipts
        .iter()
        .map(|it| it["to"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["alice", "team-lead"]);
    let table = succeed(
        &project,
        &[
            "mail",
            "list",
            "--team",
            "parser",
            "--to",
            "alice",
            "--waiting",
        ],
    );
    for words in ["begin", "look here", "short \\u{1b}[2J", "to all"] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let newest = lines(
        &project,
        &[
            "mail", "list", "--team", "parser", "--to", "alice", "-n", "2", "--json",
        ],
    );
    let texts: Vec<_> = newest
        .iter()
        .map(|it| (it["number"].clone(), it["text"].clone()))
        .collect();
    assert_eq!(texts, [(3.into(), "x".into()), (4.into(), "to all".into())]);
    assert_eq!(
        (&newest[0]["from"], &newest[0]["state"]),
        (&"user".into(), &"waits".into())
    );
    let id = receipts[0]["agent_id"].as_str().unwrap();
    assert_eq!(
        lines(
            &project,
            &["mail", "list", "--team", "parser", "--to", id, "--json"]
        )
        .len(),
        4
    );
    assert_eq!(
        lines(
            &project,
            &["mail", "list", "--to", "alice@parser", "--json"]
        )
        .len(),
        4
    );
    assert_eq!(
        lines(&project, &["mail", "list", "--to", "*@parser", "--json"]).len(),
        5
    );
    let texts = succeed(
        &project,
        &["mail", "list", "--to", "alice@parser", "--verbose"],
    );
    assert!(
        texts.contains("user → alice 2 · ") && texts.contains("\n  look here\n  and there\n"),
        "{texts}"
    );
}

#[test]
fn who_cannot_have_mail_is_said() {
    let project = with_team("mail-refused");
    let send = |arguments: &[&str], code, said: &[&str]| {
        refused(
            &project,
            &[&["mail", "send"], arguments].concat(),
            code,
            said,
        );
    };
    send(
        &["--team", "parser", "bob", "x"],
        1,
        &["no agent named bob in team parser", "alice"],
    );
    send(&["--team", "other", "alice", "x"], 1, &["no team other"]);
    send(
        &["alice@../x", "x"],
        1,
        &["is not a valid name", "name@team"],
    );
    send(&["--team", "parser", "alice", " "], 1, &["nothing to send"]);
    send(
        &["alice", "x"],
        1,
        &["no team or session given", "--team NAME"],
    );
    send(&["--team", "parser", "alice"], 2, &["<TEXT>"]);
    let (text, summary) = ("x".repeat(100_000), "y".repeat(100_000));
    let long = ["--team", "parser", "--summary", &summary, "alice", &text];
    succeed(&project, &[&["mail", "send"], &long[..]].concat());
    let mut child = project
        .posse(&["mail", "send", "alice@parser", "-", "--summary", "yy"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &vec![b'x'; 262_143]).unwrap();
    let said = crate::binary::stderr(&child.wait_with_output().unwrap());
    assert!(
        said.contains("text and summary have 262145 bytes together; the limit is 262144"),
        "{said}"
    );
    refused(
        &project,
        &["mail", "list", "--team", "parser", "--to", "bob"],
        1,
        &["no agent named bob"],
    );
}

#[test]
fn who_runs_is_listed_with_its_process() {
    let project = Project::new("agents-ps", "");
    assert_eq!(lines(&project, &["agents", "ps", "--json"]).len(), 0);
    let mut child = project
        .posse(&[
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let line = r#"{"type":"user","message":{"role":"user","content":"hello"}}"#;
    std::io::Write::write_all(&mut input, format!("{line}\n").as_bytes()).unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let result = output
        .lines()
        .map(Result::unwrap)
        .find(|line| line.contains("\"type\":\"result\""));
    assert!(result.is_some());
    let [agent] = &lines(&project, &["agents", "ps", "--json"])[..] else {
        panic!("one agent")
    };
    assert_eq!(
        (&agent["pid"], &agent["session_id"]),
        (&child.id().into(), &agent["agent_id"])
    );
    assert_eq!(
        (&agent["state"], &agent["path"]),
        (&"idle".into(), &"/main".into())
    );
    let table = succeed(&project, &["agents", "ps"]);
    assert!(table.contains(&format!("pid {}", child.id())), "{table}");
    refused(
        &project,
        &["mail", "send", "/other", "x"],
        1,
        &["no agent named /other in the session", "/main"],
    );
    assert_eq!(
        succeed(&project, &["mail", "send", "/main", "x"]),
        "sent to /main: it waits in its inbox\n"
    );
    drop(input);
    assert!(child.wait().unwrap().success());
    assert_eq!(lines(&project, &["agents", "ps", "--json"]).len(), 0);
    let all = lines(&project, &["agents", "ps", "--all", "--json"]);
    assert_eq!((all.len(), &all[0]["pid"]), (1, &serde_json::Value::Null));
}
