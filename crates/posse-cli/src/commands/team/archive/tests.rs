//! Teams as files, there and back.

use posse_protocol::{MailKind, Sender, Takes, TaskStatus};

use super::*;

fn files_of(list: &[(&str, &str)]) -> ArchiveFiles {
    list.iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

fn found(list: &[(&str, &str)]) -> Result<ParsedArchive, Vec<ArchiveError>> {
    let mut found = parse(&files_of(list), 5)?;
    check(&mut found.archive).map(|()| found)
}

const CONFIG_TEXT: &str = r#"{"name": "parser", "leadAgentId": "team-lead@parser", "futureKey": 1, "members": [
    {"agentId": "alice@parser", "name": "alice", "joinedAt": 1730000000000, "cwd": "/w"},
    {"agentId": "team-lead@parser", "name": "team-lead"}]}"#;

#[test]
fn what_others_wrote_is_understood() {
    let list = [
        ("config.json", CONFIG_TEXT),
        (
            "tasks/1.json",
            r#"{"id": "1", "subject": "lex", "status": "completed", "blocks": ["2"]}"#,
        ),
        (
            "tasks/2.json",
            r#"{"id": 2, "subject": "parse", "owner": "alice@parser", "blockedBy": []}"#,
        ),
        (
            "tasks/10.json",
            r#"{"subject": "print", "owner": "zoe", "blockedBy": [2, "1"], "createdAt": "2026-11-15T08:30:00Z"}"#,
        ),
        ("tasks/.highwatermark", "10"),
        (
            "inboxes/alice.json",
            r#"[{"from": "team-lead", "text": "hello\nyou", "timestamp": "2026-11-15T08:30:00.123Z", "read": true},
            {"from": "user", "text": "hi", "summary": "s"}, {"from": "ghost", "text": "boo"}]"#,
        ),
        ("inboxes/gone.json", "[]"),
        ("notes/plan.md", "# plan"),
    ];
    let ParsedArchive { archive, warnings } = found(&list).unwrap();
    assert_eq!(
        warnings,
        [
            "inboxes/gone.json is left out: no member has this name",
            "tasks/.highwatermark is left out: tasks are named 1.json, 2.json and so on",
            "tasks/10.json: its owner was removed: zoe is not a member of the team",
        ]
    );
    let names: Vec<&str> = archive
        .team
        .members
        .iter()
        .map(|member| member.name.as_str())
        .collect();
    assert_eq!(names, ["team-lead", "alice"], "the lead stands first");
    assert_eq!(archive.team.lead, archive.team.members[0].agent);
    let [first, second, third] = &archive.tasks[..] else {
        panic!("{:?}", archive.tasks)
    };
    assert_eq!(
        (first.status, &first.blocks[..]),
        (TaskStatus::Completed, &[second.id, third.id][..])
    );
    assert_eq!(
        (&second.blocked_by[..], second.waits_for.len()),
        (&[first.id][..], 0)
    );
    let owner = second.owner.as_ref().unwrap();
    assert_eq!(
        (owner.name.as_str(), owner.agent),
        ("alice", Some(archive.team.members[1].agent))
    );
    assert_eq!(third.owner, None);
    assert_eq!(
        (third.waits_for.clone(), third.created_ms),
        (vec![second.id], 1_794_731_400_000)
    );
    assert_eq!(archive.last_task, 10);
    let [from_lead, from_user, from_ghost] = &archive.mail[1][..] else {
        panic!("{:?}", archive.mail)
    };
    assert_eq!(
        (from_lead.summary.as_str(), from_lead.sent_ms),
        ("hello", 1_794_731_400_123)
    );
    assert_eq!(
        (from_lead.kind, from_lead.shown_in, from_user.shown_in),
        (MailKind::Text, Some(0), None)
    );
    assert_eq!(from_user.from, Sender::User);
    assert_eq!(from_ghost.from.name(), "ghost");
    assert_eq!(
        (archive.notes[0].author.as_str(), archive.notes[0].version),
        ("user", 1)
    );
}

#[test]
fn what_was_written_is_read_without_loss() {
    let list = [
        ("config.json", CONFIG_TEXT),
        (
            "tasks/1.json",
            r#"{"subject": "a", "activeForm": "b", "metadata": {"z": {"y": 1, "x": 1.5}, "a": null}}"#,
        ),
        (
            "tasks/3.json",
            r#"{"subject": "c", "status": "deleted", "blockedBy": ["1"], "version": 7, "posse": {"lostBy": "bob"}}"#,
        ),
        (
            "inboxes/alice.json",
            r#"[{"from": "bob", "text": "\u0000é", "kind": "idle", "read": true, "posse": {"shownIn": 9}}]"#,
        ),
        ("notes/plan.md", "no newline at its end"),
    ];
    let mut archive = found(&list).unwrap().archive;
    archive.team.members[1].cwd = std::path::PathBuf::from(
        <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(vec![b'/', 0xff]),
    );
    let alice = &mut archive.team.members[1];
    alice.role = Some("lexer".into());
    alice.takes = Takes::Only {
        unmarked: false,
        roles: vec!["lex".into()],
    };
    archive.team.former = vec!["bob".parse().unwrap(), "eve".parse().unwrap()];
    (archive.tasks[0].role, archive.tasks[0].check) = (Some("lex".into()), Some("make lex".into()));
    archive.last_task = 12;
    let written = files(&archive, &FormerInboxes::new());
    let mut again = parse(&written, 99).unwrap();
    check(&mut again.archive).unwrap();
    assert_eq!(again.archive, archive);
    assert_eq!(files(&again.archive, &FormerInboxes::new()), written);
    assert!(
        written
            .values()
            .filter(|text| text.starts_with(['{', '[']))
            .all(|text| text.ends_with("\n"))
    );
    assert!(
        written["tasks/1.json"].find("\"a\": null").unwrap()
            < written["tasks/1.json"].find("\"z\"").unwrap()
    );
    let known = previous(&written["config.json"]).unwrap();
    assert_eq!(known.team, "parser");
    assert!(
        written
            .keys()
            .all(|name| name == "config.json" || known.wrote(name))
    );
    for other in [
        "tasks/2.json",
        "tasks/01.json",
        "notes/other.md",
        "inboxes/bob.json",
        "config.json",
    ] {
        assert!(!known.wrote(other), "{other}");
    }
    assert!(
        written["config.json"].contains("\"tasks\": \"1,3\""),
        "{}",
        written["config.json"]
    );
    let broken = ArchiveFiles::from([("config.json".into(), unfinished(&written["config.json"]))]);
    assert!(previous(&broken["config.json"]).is_some_and(|known| known.wrote("tasks/3.json")));
    assert!(
        parse(&broken, 99).unwrap_err()[0]
            .why
            .contains("is incomplete")
    );
    assert_eq!(previous(CONFIG_TEXT), None, "another program's");
}

#[test]
fn a_lead_that_was_handed_to_another_stays_so() {
    let mut archive = found(&[("config.json", CONFIG_TEXT)]).unwrap().archive;
    archive.team.members[0].name = "main".parse().unwrap();
    archive.team.lead = archive.team.members[1].agent;
    let written = files(&archive, &FormerInboxes::new());
    assert!(written["config.json"].contains("\"leadAgentId\": \"alice@parser\""));
    let mut again = parse(&written, archive.team.created_ms).unwrap();
    check(&mut again.archive).unwrap();
    assert_eq!(again.archive, archive);
}

#[test]
fn what_is_wrong_is_named_with_its_file() {
    let check = |file: &str, text: &str, why: &str| {
        let mut list = vec![
            ("config.json", CONFIG_TEXT),
            ("tasks/1.json", r#"{"subject": "a"}"#),
        ];
        list.retain(|(name, _)| *name != file);
        list.push((file, text));
        let all = found(&list).unwrap_err();
        let [wrong] = &all[..] else { panic!("{all:?}") };
        assert!(wrong.file == file && wrong.why.contains(why), "{wrong:?}");
    };
    check("config.json", "{", "EOF");
    check(
        "config.json",
        r#"{"name": "../x", "members": []}"#,
        "`../x` is not a valid name",
    );
    check(
        "config.json",
        r#"{"name": "x", "members": []}"#,
        "no member is named team-lead",
    );
    let members =
        |list: &str| format!(r#"{{"name": "x", "members": [{{"name": "team-lead"}}, {list}]}}"#);
    check(
        "config.json",
        &members(r#"{"name": "a/b"}"#),
        "is not a valid name",
    );
    check(
        "config.json",
        &members(r#"{"name": "user"}"#),
        "cannot be named user",
    );
    check(
        "config.json",
        &members(r#"{"name": "a"}, {"name": "a"}"#),
        "two members",
    );
    let former = members(r#"{"name": "a"}], "posse": {"formerNames": ["user"]}, "x": [1"#);
    check("config.json", &former, "no member can have been named user");
    let two = members(r#"{"name": "a", "agentId": "a@x"}], "leadAgentId": "a@x", "x": [1"#);
    check("config.json", &two, "cannot be named team-lead");
    check(
        "tasks/1.json",
        r#"{"id": "2", "subject": "a"}"#,
        "the task in it is 2",
    );
    check(
        "tasks/1.json",
        r#"{"subject": "a", "status": "done"}"#,
        "unknown variant `done`",
    );
    check(
        "tasks/1.json",
        r#"{"subject": "a", "blockedBy": [7]}"#,
        "7, which does not exist",
    );
    check(
        "tasks/1.json",
        r#"{"subject": "a", "blocks": ["x"]}"#,
        "numbered from 1",
    );
    check(
        "tasks/1.json",
        r#"{"subject": "a", "blockedBy": [1]}"#,
        "for itself",
    );
    check(
        "tasks/1.json",
        r#"{"subject": "a", "createdAt": "soon"}"#,
        "is not a time",
    );
    for absurd in [
        "-5",
        "9e18",
        "253402300800000",
        "\"-000044-01-01T00:00:00Z\"",
    ] {
        check(
            "tasks/1.json",
            &format!(r#"{{"subject": "a", "createdAt": {absurd}}}"#),
            "before 1970",
        );
    }
    check(
        "inboxes/alice.json",
        r#"[{"text": "a"}]"#,
        "missing field `from`",
    );
    let long = format!(r#"[{{"from": "user", "text": "{}"}}]"#, "x".repeat(300_000));
    check("inboxes/alice.json", &long, "too many");
}

#[test]
fn all_that_is_wrong_is_named_and_so_is_a_circle() {
    let all = found(&[
        ("config.json", CONFIG_TEXT),
        ("tasks/1.json", "{"),
        ("tasks/2.json", r#"{"subject": 1}"#),
        ("inboxes/alice.json", "{}"),
    ]);
    let files: Vec<String> = all
        .unwrap_err()
        .into_iter()
        .map(|wrong| wrong.file)
        .collect();
    assert_eq!(
        files,
        ["inboxes/alice.json", "tasks/1.json", "tasks/2.json"]
    );
    let circle = found(&[
        ("config.json", CONFIG_TEXT),
        ("tasks/1.json", r#"{"subject": "a", "blockedBy": [2]}"#),
        ("tasks/2.json", r#"{"subject": "b", "blockedBy": [4]}"#),
        ("tasks/3.json", r#"{"subject": "c", "blockedBy": [9]}"#),
        (
            "tasks/4.json",
            r#"{"subject": "d", "blocks": [2], "blockedBy": [2]}"#,
        ),
    ]);
    let wrong = circle.unwrap_err();
    assert_eq!(
        wrong[0],
        ArchiveError::new("tasks/3.json", "it waits for 9, which does not exist")
    );
    assert_eq!(
        wrong[1],
        ArchiveError::new(
            "tasks/2.json",
            "these tasks wait for each other in a cycle: 2, 4"
        )
    );
}

#[test]
fn what_is_listed_and_missing_is_named() {
    let list = [
        ("config.json", CONFIG_TEXT),
        ("tasks/1.json", r#"{"subject": "a"}"#),
        ("tasks/2.json", r#"{"subject": "b"}"#),
        ("notes/plan.md", "plan"),
    ];
    let mut written = files(&found(&list).unwrap().archive, &FormerInboxes::new());
    for file in ["tasks/2.json", "inboxes/alice.json", "notes/plan.md"] {
        assert!(written.remove(file).is_some());
    }
    let wrong = parse(&written, 9).unwrap_err();
    let missing: Vec<&str> = wrong.iter().map(|wrong| wrong.file.as_str()).collect();
    assert_eq!(
        missing,
        ["notes/plan.md", "inboxes/alice.json", "tasks/2.json"]
    );
    assert!(
        wrong
            .iter()
            .all(|wrong| wrong.why.contains("config.json lists it"))
    );
}
