//! What calls of TaskUpdate come to.

use posse_protocol::Owner as Doer;
use serde_json::{Value, json};

use super::*;
use crate::prompt::team::samples::{member, task, team};

/// Member 1 leads, 2 is scout, 3 is dev; task 3 waits for nothing.
fn decided(who: u128, input: Value, task: &Task) -> Result<Vec<String>, String> {
    let team = team(&[member("team-lead", 1), member("scout", 2), member("dev", 3)]);
    ops(who, input, task, Some(&team), None)
}

fn ops(
    who: u128,
    input: Value,
    task: &Task,
    team: Option<&Team>,
    passed: Option<&str>,
) -> Result<Vec<String>, String> {
    let mut whole = json!({"taskId": 3});
    let (Value::Object(map), Value::Object(input)) = (&mut whole, input) else {
        panic!("objects")
    };
    map.extend(input);
    let input: TaskUpdateInput = serde_json::from_value(whole).unwrap();
    let at = UpdateContext {
        agent: Uuid::from_u128(who).into(),
        path: "/main/a",
        list: team.map(|team| &team.name),
        team,
    };
    let ops =
        decide(&input, task, &at, passed.map(str::to_owned)).map_err(|error| error.to_string())?;
    Ok(ops.iter().map(shown).collect())
}

fn shown(op: &Op) -> String {
    match op {
        Op::Claim { id, .. } => format!("claim {id}"),
        Op::UpdateTask { id, change, .. } => {
            let TaskChange {
                status,
                owner,
                block_on,
                subject,
                passed,
                ..
            } = &**change;
            let mut text = format!("update {id}");
            if let Some(status) = status {
                text.push_str(&format!(" {status}"));
            }
            if let Some(owner) = owner {
                text.push_str(&format!(" owner={}", owner.as_deref().unwrap_or("-")));
            }
            if !block_on.is_empty() {
                text.push_str(&format!(" on={block_on:?}"));
            }
            if let Some(subject) = subject {
                text.push_str(&format!(" subject={subject}"));
            }
            if let Some(passed) = passed {
                text.push_str(&format!(" passed={passed}"));
            }
            text
        }
        Op::Send {
            to: Address::Member { name, .. },
            kind: MailKind::Text,
            summary,
            body,
            ..
        } => {
            assert!(
                body.contains("It reads </team-task> wrong.") && body.contains("taskId 3"),
                "{body}"
            );
            format!("mail {name}: {summary}")
        }
        other => panic!("{other:?}"),
    }
}

fn open() -> Task {
    Task {
        waits_for: Vec::new(),
        ..task(3)
    }
}

fn of(who: u128, named: &str, status: TaskStatus) -> Task {
    let owner = Some(Doer {
        agent: Some(Uuid::from_u128(who).into()),
        name: named.into(),
    });
    Task {
        owner,
        status,
        ..open()
    }
}

// proves TK-11 (part: a claim; an assignment)
#[test]
fn who_is_named_as_owner() {
    let mine = of(2, "scout", TaskStatus::InProgress);
    type Case<'a> = (u128, Value, Task, Result<&'a [&'a str], &'a str>);
    let table: Vec<Case<'_>> = vec![
        (2, json!({"owner": "me"}), open(), Ok(&["claim 3"])),
        (2, json!({"owner": "scout"}), open(), Ok(&["claim 3"])),
        (
            2,
            json!({"owner": "me", "status": "in_progress"}),
            open(),
            Ok(&["claim 3"]),
        ),
        (
            2,
            json!({"status": "in_progress"}),
            open(),
            Ok(&["claim 3"]),
        ),
        // Repeated by its owner.
        (
            2,
            json!({"owner": "me", "status": "in_progress"}),
            mine.clone(),
            Ok(&["claim 3"]),
        ),
        (1, json!({"owner": "team-lead"}), open(), Ok(&["claim 3"])),
        (
            2,
            json!({"owner": "me", "subject": "s"}),
            open(),
            Ok(&["claim 3", "update 3 subject=s"]),
        ),
        (
            2,
            json!({"owner": "me", "status": "completed"}),
            mine.clone(),
            Ok(&["update 3 completed"]),
        ),
        (
            2,
            json!({"owner": "me", "status": "completed"}),
            open(),
            Ok(&["claim 3", "update 3 completed"]),
        ),
        (
            2,
            json!({"status": "completed"}),
            mine.clone(),
            Ok(&["update 3 completed"]),
        ),
        (
            2,
            json!({"owner": ""}),
            mine.clone(),
            Ok(&["update 3 owner=-"]),
        ),
        (
            2,
            json!({"owner": "", "status": "pending"}),
            mine.clone(),
            Ok(&["update 3 pending owner=-"]),
        ),
        (
            2,
            json!({"owner": "user"}),
            open(),
            Ok(&["update 3 owner=user"]),
        ),
        // The lead gives it to another, who is told.
        (
            1,
            json!({"owner": "scout"}),
            open(),
            Ok(&["update 3 owner=scout", "mail scout: Task 3: Fix the parser"]),
        ),
        (
            1,
            json!({"owner": "scout", "status": "in_progress", "subject": "Now this"}),
            open(),
            Ok(&[
                "update 3 in_progress owner=scout subject=Now this",
                "mail scout: Task 3: Now this",
            ]),
        ),
        (
            1,
            json!({"owner": "scout"}),
            of(2, "scout", TaskStatus::Pending),
            Ok(&["update 3 owner=scout"]),
        ),
        (
            1,
            json!({"owner": "scout", "status": "completed"}),
            open(),
            Ok(&["update 3 completed owner=scout"]),
        ),
        (
            3,
            json!({"owner": "scout"}),
            open(),
            Err("owner: only the lead assigns tasks to others;"),
        ),
        (
            1,
            json!({"owner": "nobody"}),
            open(),
            Err("owner: no member of team crew is named nobody; there are team-lead, scout, dev"),
        ),
        (
            2,
            json!({"owner": "me", "status": "pending"}),
            open(),
            Err("owner: claiming a task makes it in_progress"),
        ),
        (
            2,
            json!({"owner": "", "status": "in_progress"}),
            open(),
            Err("owner: a task in progress must have an owner"),
        ),
        // What is known not to be claimable is not even tried.
        (
            3,
            json!({"owner": "me"}),
            of(2, "scout", TaskStatus::Pending),
            Err("Refused: task 3 is scout's; claim another"),
        ),
        (
            3,
            json!({"owner": "me"}),
            task(3),
            Err("Refused: task 3 waits for 2; claim another until then."),
        ),
        (
            3,
            json!({"owner": "me"}),
            of(2, "scout", TaskStatus::Completed),
            Err("Refused: task 3 is completed."),
        ),
        // Whether scout's process lives is for the store to say.
        (3, json!({"owner": "me"}), mine, Ok(&["claim 3"])),
        (2, json!({}), open(), Err("Nothing to change")),
        (
            2,
            json!({"addBlockedBy": [1]}),
            open(),
            Ok(&["update 3 on=[TaskId(1)]"]),
        ),
        (
            2,
            json!({"addBlocks": ["7", 8]}),
            open(),
            Ok(&["update 7 on=[TaskId(3)]", "update 8 on=[TaskId(3)]"]),
        ),
    ];
    for (who, input, task, expected) in table {
        match (decided(who, input.clone(), &task), expected) {
            (Ok(ops), Ok(expected)) => assert_eq!(ops, expected, "{input}"),
            (Err(told), Err(expected)) => assert!(told.starts_with(expected), "{input}: {told}"),
            (got, expected) => panic!("{input}: {got:?}, not {expected:?}"),
        }
    }
}

#[test]
fn without_a_team_a_task_is_taken_or_left_to_the_user() {
    let take = |owner: &str| ops(2, json!({ "owner": owner }), &open(), None, None);
    assert_eq!(take("me").unwrap(), ["claim 3"]);
    assert_eq!(take("/main/a").unwrap(), ["claim 3"]);
    assert_eq!(take("user").unwrap(), ["update 3 owner=user"]);
    assert!(
        take("/main/b")
            .unwrap_err()
            .starts_with("owner: without a team")
    );
    // Whoever works for a member is none itself.
    let team = team(&[member("team-lead", 1), member("scout", 2)]);
    assert_eq!(
        ops(9, json!({"owner": "me"}), &open(), Some(&team), None).unwrap(),
        ["claim 3"]
    );
    assert!(ops(9, json!({"owner": "scout"}), &open(), Some(&team), None).is_err());
}

// proves TK-10 (part: the check)
#[test]
fn a_check_must_pass_before_a_task_is_completed() {
    let checked = Task {
        check: Some("make".into()),
        ..open()
    };
    let input = |more: Value| -> TaskUpdateInput {
        let mut whole = json!({"taskId": 3});
        let (Value::Object(map), Value::Object(more)) = (&mut whole, more) else {
            panic!("objects")
        };
        map.extend(more);
        serde_json::from_value(whole).unwrap()
    };
    let completed = input(json!({"status": "completed"}));
    assert_eq!(must_pass(&completed, &checked), Ok(Some("make".into())));
    assert_eq!(must_pass(&completed, &open()), Ok(None));
    assert_eq!(
        must_pass(&input(json!({"status": "in_progress"})), &checked),
        Ok(None)
    );
    assert_eq!(
        must_pass(
            &completed,
            &Task {
                status: TaskStatus::Completed,
                ..checked.clone()
            }
        ),
        Ok(None)
    );
    assert!(
        must_pass(
            &input(json!({"status": "completed", "check": "true"})),
            &checked
        )
        .is_err()
    );
    let done = ops(
        2,
        json!({"status": "completed"}),
        &checked,
        None,
        Some("make"),
    )
    .unwrap();
    assert_eq!(done, ["update 3 completed passed=make"]);
}

// proves FC-01 (part: completed twice)
#[test]
fn of_two_who_complete_a_task_one_is_told_so() {
    let completed = json!({"status": "completed"});
    let done = of(3, "dev", TaskStatus::Completed);
    let refused = decided(2, completed.clone(), &done);
    assert_eq!(refused, Err("Refused: task 3 is completed.".to_owned()));
    // One that says it twice of its own task is not refused.
    let own = of(2, "dev", TaskStatus::Completed);
    for again in [
        completed.clone(),
        json!({"status": "completed", "owner": "me"}),
    ] {
        assert_eq!(decided(2, again, &own), Ok(Vec::new()));
    }
    // If it is completed by another meanwhile, the store refuses; who takes it first has changed it itself.
    let expected = |input: Value, task: &Task| {
        let input: TaskUpdateInput = serde_json::from_value(input).unwrap();
        let at = UpdateContext {
            agent: Uuid::from_u128(2).into(),
            path: "/main/a",
            list: None,
            team: None,
        };
        let last = decide(&input, task, &at, None).unwrap().pop();
        match last {
            Some(Op::UpdateTask { expect, .. }) => expect,
            other => panic!("{other:?}"),
        }
    };
    let mine = of(2, "/main/a", TaskStatus::InProgress);
    assert_eq!(
        expected(json!({"taskId": 3, "status": "completed"}), &mine),
        Some(4)
    );
    assert_eq!(
        expected(
            json!({"taskId": 3, "status": "completed", "owner": "me"}),
            &open()
        ),
        None
    );
}
