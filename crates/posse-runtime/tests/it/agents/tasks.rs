//! The task tools of agents without a team: one list for the session, claims, checks.

use posse_protocol::{ListId, PermissionMode, RealmId, Task, TaskId, TaskStatus};
use posse_testkit::Rig;
use posse_testkit::rig::until_end;

use super::{last_words, offered, rig, sent_by};

/// A main agent that makes these calls, a turn each, and is done.
fn turns(calls: &[&str]) -> String {
    let rule = |(turn, call): (usize, &&str)| {
        format!(
            "[[rule]]\nwhen = {{ agent = \"re:^/main$\", turn = {} }}\nreply = [{call}]\n",
            turn + 1
        )
    };
    let rules: String = calls.iter().enumerate().map(rule).collect();
    format!("{rules}[[rule]]\nreply = [{{ text = \"done\" }}]\n")
}

/// What came of each turn.
async fn told(rig: &Rig) -> (RealmId, Vec<String>) {
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let told = sent_by(rig, "/main")
        .iter()
        .skip(1)
        .map(last_words)
        .collect();
    (RealmId::from(agent.id.uuid()), told)
}

async fn task(rig: &Rig, realm: RealmId, id: u64) -> Task {
    rig.store
        .task(ListId { realm, team: None }, TaskId(id))
        .await
        .unwrap()
        .unwrap()
}

// proves TK-01 (part: the tools)
// proves TK-02 (part: missing tasks; cycles)
// proves TK-11 (part: a claim; repeated)
// proves TK-12 (part: deleted; open blockers)
// proves TK-13
#[tokio::test]
async fn an_agent_without_a_team_works_on_the_list_of_the_session() {
    let rig = rig(&turns(&[
        r#"{ tool = "TaskCreate", input = { subject = "Fix it", description = "All of it", activeForm = "Fixing", metadata = { pr = 7 } } },
           { tool = "TaskCreate", input = { subject = "Test it", blockedBy = [1] } },
           { tool = "TaskCreate", input = { subject = "Not this" } },
           { tool = "TaskCreate", input = { subject = "Nor this", blockedBy = ["9"] } }"#,
        r#"{ tool = "TaskUpdate", input = { taskId = 3, status = "deleted" } },
           { tool = "TaskUpdate", input = { taskId = 2, owner = "me" } },
           { tool = "TaskUpdate", input = { taskId = 2, addBlockedBy = [2] } },
           { tool = "TaskUpdate", input = { taskId = 1, owner = "me" } },
           { tool = "TaskUpdate", input = { taskId = 1, owner = "me", status = "in_progress" } }"#,
        r#"{ tool = "TaskList", input = {} }, { tool = "TaskGet", input = { taskId = "1" } }, { tool = "TaskGet", input = { taskId = 3 } }"#,
        r#"{ tool = "TaskUpdate", input = { taskId = 1, status = "completed" } }"#,
        r#"{ tool = "TaskList", input = {} }"#,
        r#"{ tool = "TaskList", input = { team_name = "crew" } }"#,
    ]));
    let (realm, told) = told(&rig).await;
    let made: Vec<&str> = told[0].lines().collect();
    assert_eq!(
        made,
        [
            "Task 1 is on the list.",
            "Task 2 is on the list.",
            "Task 3 is on the list.",
            "No task was created: there is no task 9."
        ]
    );
    let changed = &told[1];
    assert!(
        changed.contains("Refused: task 2 waits for 1; claim another until then."),
        "{changed}"
    );
    assert!(changed.contains("would wait for each other"), "{changed}");
    assert_eq!(
        changed.matches("Task 1 is yours, and in progress.").count(),
        2,
        "{changed}"
    );
    let seen = &told[2];
    assert!(
        seen.contains("1: Fix it [in_progress], owner /main\n2: Test it [pending], blocked by 1\n"),
        "{seen}"
    );
    assert!(
        !seen.contains("Not this") && seen.contains("Task 3 was deleted."),
        "{seen}"
    );
    assert!(
        seen.contains("activeForm: Fixing\nblocks: 2\nmetadata: {\"pr\":7}\n"),
        "{seen}"
    );
    assert!(told[3].contains("Can be claimed now: 2."), "{}", told[3]);
    assert_eq!(
        told[4],
        "1: Fix it [completed], owner /main\n2: Test it [pending]"
    );
    assert!(told[5].contains("you have no team crew"), "{}", told[5]);
    let done = task(&rig, realm, 1).await;
    assert_eq!(
        (done.status, done.blocks, done.version),
        (TaskStatus::Completed, vec![TaskId(2)], 3)
    );
}

// proves TK-13
// proves AG-19 (part: team-making)
#[tokio::test]
async fn sub_agents_share_the_list_and_make_no_teams() {
    let rig = rig(r#"
[[rule]]
when = { agent = "/main/", turn = 1 }
reply = [{ tool = "TaskUpdate", input = { taskId = 1, status = "in_progress" } }]
[[rule]]
when.agent = "/main/"
reply = [{ text = "taken" }]
[[rule]]
when = { turn = 1 }
reply = [{ tool = "TaskCreate", input = { subject = "Fix it" } }]
[[rule]]
when = { turn = 2 }
reply = [{ tool = "Agent", input = { description = "d", prompt = "p" } }]
[[rule]]
when = { turn = 3 }
reply = [{ tool = "TaskGet", input = { taskId = 1 } }, { tool = "TaskUpdate", input = { taskId = 1, owner = "/main/x" } }]
[[rule]]
reply = [{ text = "done" }]
"#);
    let (_, told) = told(&rig).await;
    let requests = rig.server.requests();
    let path = requests
        .iter()
        .find_map(|it| it.header("x-posse-agent").filter(|path| *path != "/main"))
        .unwrap();
    let sub = sent_by(&rig, path);
    assert!(
        last_words(&sub[1]).starts_with("Task 1 is yours"),
        "{}",
        last_words(&sub[1])
    );
    assert!(
        told[2].contains(&format!("1: Fix it [pending], begun by {path}")),
        "{}",
        told[2]
    );
    assert!(told[2].contains("owner: without a team"), "{}", told[2]);
    let first = &sent_by(&rig, "/main")[0];
    let (main, sub) = (offered(first), offered(&sub[0]));
    for tool in ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"] {
        assert!(main.contains(&tool) && sub.contains(&tool), "{tool}");
    }
    for tool in [
        "TeamCreate",
        "TeamDelete",
        "TeamHandOver",
        "NoteWrite",
        "NoteRead",
    ] {
        assert!(main.contains(&tool) && !sub.contains(&tool), "{tool}");
    }
    assert!(main.contains(&"ExitPlanMode") && !sub.contains(&"ExitPlanMode"));
}

const CHECKED: [&str; 4] = [
    r#"{ tool = "TaskCreate", input = { subject = "Fix it", check = "echo looked >>log; test -f fixed" } }"#,
    r#"{ tool = "TaskUpdate", input = { taskId = 1, status = "completed" } }"#,
    r#"{ tool = "Write", input = { file_path = "fixed", content = "x" } }"#,
    r#"{ tool = "TaskUpdate", input = { taskId = 1, status = "completed" } }"#,
];

// proves TK-10 (part: the check)
#[tokio::test]
async fn a_task_is_completed_when_its_check_passes() {
    let rig = rig(&turns(&CHECKED));
    let (realm, told) = told(&rig).await;
    assert!(
        told[1].starts_with("Task 1 is not completed: its check failed"),
        "{}",
        told[1]
    );
    assert!(told[1].contains("exit code 1"), "{}", told[1]);
    assert!(told[3].starts_with("Updated, to version"), "{}", told[3]);
    assert_eq!(task(&rig, realm, 1).await.status, TaskStatus::Completed);
    assert_eq!(
        std::fs::read_to_string(rig.work().join("log")).unwrap(),
        "looked\nlooked\n"
    );
    // The model sees one call with one answer: the check is nobody's call.
    let body = sent_by(&rig, "/main").pop().unwrap();
    let uses = serde_json::to_string(&body)
        .unwrap()
        .matches("\"tool_use\"")
        .count();
    assert_eq!(uses, 4);
}

// proves TK-10 (part: the gate)
#[tokio::test]
async fn a_check_is_judged_like_any_command() {
    let mut rig = rig(&turns(&CHECKED))
        .rules(&["Write"], &["Bash(echo looked *)"])
        .unwrap();
    rig.profile.mode = PermissionMode::AcceptEdits;
    let (realm, told) = told(&rig).await;
    for answer in [&told[1], &told[3]] {
        assert!(answer.starts_with("Task 1 is not completed"), "{answer}");
        assert!(
            answer.contains("Denied: the rule `Bash(echo looked *)`"),
            "{answer}"
        );
    }
    assert_eq!(task(&rig, realm, 1).await.status, TaskStatus::Pending);
    assert!(!rig.work().join("log").exists());
}

#[tokio::test]
async fn who_cannot_run_commands_is_told_so() {
    let mut rig = rig(&turns(&CHECKED));
    rig.setup.tools.retain(|name| name != "Bash");
    let (realm, told) = told(&rig).await;
    assert!(told[1].contains("you cannot run commands"), "{}", told[1]);
    assert_eq!(task(&rig, realm, 1).await.status, TaskStatus::Pending);
}
