//! A declared team takes its tasks: by role, in order, as soon as they are ready.

use posse_port::store::{Page, Store, TaskFilter};
use posse_protocol::{
    Command, ContentBlock, ListId, PlannedTask, Takes, Task, TaskStatus, TeamPlan, TeamRole,
};
use posse_testkit::rig::farewell;
use posse_testkit::{Faulty, StoreCall};

use super::*;

pub(super) fn role(takes: Option<&[&str]>) -> TeamRole {
    TeamRole {
        prompt: "You know your part.".into(),
        takes: takes.map(|words| words.iter().map(|word| (*word).to_owned()).collect()),
        ..TeamRole::default()
    }
}

pub(super) fn planned(subject: &str, role: Option<&str>, blocked_by: &[u64]) -> PlannedTask {
    PlannedTask {
        subject: subject.into(),
        description: format!("{subject}, all of it."),
        role: role.map(str::to_owned),
        blocked_by: blocked_by.to_vec(),
        check: None,
    }
}

pub(super) async fn raised(rig: &Rig, plan: TeamPlan) -> Agent {
    let agent = rig
        .runtime()
        .unwrap()
        .start(&rig.profile, rig.setup.clone());
    let words = vec![ContentBlock::text("Build the boat.")];
    let command = Command::Team {
        name: "crew".parse().unwrap(),
        plan: Box::new(plan),
        words,
    };
    agent.handle.send(command).await.unwrap();
    agent
}

/// Everybody completes the task that it was given last.
pub(super) const WORKERS: &str = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
reply = [{ text = "Done with it." }]
[[rule]]
when = { agent = "re:^/main/", user = 're:Task (\d+) is yours' }
reply = [{ tool = "TaskUpdate", input = { taskId = "{{user.1}}", status = "completed" } }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Ready." }]
[[rule]]
reply = [{ text = "I see." }]
"#;

// proves TK-06 (part: claimable at once)
/// Members and ready tasks are read one after the other: what is taken in between is work.
#[tokio::test]
async fn a_task_that_is_taken_while_the_lead_looks_is_work() {
    let mut rig = rig(WORKERS);
    let real = Arc::clone(&rig.store);
    let looked = Arc::clone(&real);
    rig.store = Arc::new(Faulty {
        before: Box::new(move |call| match call {
            StoreCall::ReadyTasks => Box::pin(until_taken(Arc::clone(&looked))),
            StoreCall::Take | StoreCall::Teams => Box::pin(std::future::ready(())),
        }),
        ..Faulty::new(real)
    });
    let roles = [("dev", role(None)), ("reviewer", role(Some(&["review"])))];
    // By turns, so that between two tasks nobody works for a moment.
    let task = |number: u64| {
        let role = if number.is_multiple_of(2) {
            "review"
        } else {
            "dev"
        };
        let before: Vec<u64> = (number > 1).then(|| number - 1).into_iter().collect();
        planned(&format!("Part {number}"), Some(role), &before)
    };
    let plan = TeamPlan {
        description: "It builds boats.".into(),
        roles: roles
            .into_iter()
            .map(|(name, role)| (name.parse().unwrap(), role))
            .collect(),
        tasks: (1..=8).map(task).collect(),
    };
    let mut agent = raised(&rig, plan).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    let done = tasks(&rig, root, "crew").await;
    let is_done = |task: &Task| task.status == TaskStatus::Completed;
    assert!(done.iter().all(is_done), "{done:?}");
}

/// Waits until no task is pending, or for some looks.
async fn until_taken(store: Arc<dyn Store>) {
    for _ in 0..200 {
        let teams = store.teams(None, Page::all()).await.unwrap();
        let mut pending = 0;
        for team in teams {
            let list = ListId {
                realm: team.realm,
                team: Some(team.name),
            };
            let tasks = store.tasks(list, TaskFilter::default(), Page::all()).await;
            let tasks = tasks.unwrap();
            let is_pending = |task: &&Task| task.status == TaskStatus::Pending;
            pending += tasks.iter().filter(is_pending).count();
        }
        if pending == 0 {
            return;
        }
    }
}

// proves TE-14 (part: roles)
// proves TE-06 (part: available; the task)
// proves TK-05 (part: the lowest for its role; marked; the prompt)
// proves TK-06 (part: claimable at once; wakes)
#[tokio::test]
async fn tasks_are_taken_by_role_as_soon_as_they_are_ready() {
    let rig = rig(WORKERS);
    let roles = [("dev", role(None)), ("reviewer", role(Some(&["review"])))];
    let plan = TeamPlan {
        description: "It builds boats.".into(),
        roles: roles
            .into_iter()
            .map(|(name, role)| (name.parse().unwrap(), role))
            .collect(),
        tasks: vec![
            planned("Look at the keel", Some("review"), &[2]),
            planned("Lay the keel", None, &[]),
            planned("Plank it", Some("dev"), &[1]),
            planned("Launch it", Some("review"), &[3]),
        ],
    };
    let mut agent = raised(&rig, plan).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    let done = tasks(&rig, root, "crew").await;
    assert!(
        done.iter().all(|task| task.status == TaskStatus::Completed),
        "{done:?}"
    );
    let owners: Vec<&str> = done
        .iter()
        .map(|task| task.owner.as_ref().unwrap().name.as_str())
        .collect();
    assert_eq!(owners, ["reviewer", "dev", "dev", "reviewer"]);
    let reviewer = member(&rig, root, "reviewer").await;
    assert_eq!(
        reviewer.takes,
        Takes::Only {
            unmarked: false,
            roles: vec!["review".into()]
        }
    );
    assert_eq!(reviewer.role.as_deref(), Some("reviewer"));
    // Each was told number, subject and description, and asked to go on with open ones.
    let told: Vec<String> = sent_by(&rig, "/dev-").iter().map(last_words).collect();
    let first = told
        .iter()
        .find(|told| told.contains("Task 2 is yours"))
        .unwrap();
    assert!(
        first.contains("Lay the keel, all of it.") && first.contains("continue with open tasks"),
        "{first}"
    );
    // The goal came to each as mail from the lead.
    assert!(
        told[0].contains("Build the boat.") && told[0].contains("team-lead"),
        "{}",
        told[0]
    );
    // What a teammate has done since it was idle last is in the mail that says that it is.
    let mails = inbox(&rig, root, root).await;
    let reports = mails
        .iter()
        .filter(|mail| mail.kind == MailKind::Idle && mail.from.name() == "reviewer");
    let told: Vec<&str> = reports.map(|mail| mail.body.as_str()).collect();
    let launched = |body: &&&str| body.contains("Launch it") && body.contains("completed");
    assert_eq!(told.iter().filter(launched).count(), 1, "{told:?}");
    farewell(agent).await;
}

/// A teammate ends its turn with a task undone; then it is reminded, and gives it back.
const FORGETFUL: &str = r#"
[[rule]]
when = { agent = "re:^/main/", user = "still in progress" }
reply = [{ text = "I cannot do it." }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Ready." }]
[[rule]]
reply = [{ text = "I see." }]
"#;

// proves TK-09 (part: reminded; pending)
#[tokio::test]
async fn who_ends_its_turn_with_a_task_is_reminded_once_and_its_end_makes_it_pending() {
    let rig = rig(FORGETFUL);
    let plan = TeamPlan {
        description: "d".into(),
        roles: [("dev".parse().unwrap(), role(None))].into(),
        tasks: vec![planned("Lay the keel", None, &[])],
    };
    let mut agent = raised(&rig, plan).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    let reminded = sent_by(&rig, "/dev-")
        .iter()
        .filter(|body| last_words(body).contains("still in progress"))
        .count();
    assert_eq!(reminded, 1);
    let task = tasks(&rig, root, "crew").await.remove(0);
    assert_eq!(
        (task.status, task.owner.unwrap().name.as_str()),
        (TaskStatus::InProgress, "dev")
    );
    rig.runtime().unwrap().shut_down().await;
    let task = tasks(&rig, root, "crew").await.remove(0);
    assert_eq!(
        (task.status, task.owner, task.lost_by.as_deref()),
        (TaskStatus::Pending, None, Some("dev"))
    );
}

/// Everybody but the lead reads for ever.
const GREEDY: &str = r#"
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Read", input = { file_path = "a.txt" } }]
[[rule]]
reply = [{ text = "I see." }]
"#;

// proves LI-01 (part: per team)
#[tokio::test]
async fn a_team_has_one_budget_for_all_of_it() {
    const TOKENS: u64 = 120_000;
    let mut rig = rig(GREEDY);
    rig.file("a.txt", &"a line of text\n".repeat(10)).unwrap();
    rig.setup.limits.budget.tokens = Some(TOKENS);
    let roles = [("dev", role(None)), ("cook", role(None))];
    let roles = roles.map(|(name, role)| (name.parse().unwrap(), role));
    let plan = TeamPlan {
        description: "It reads.".into(),
        roles: roles.into_iter().collect(),
        tasks: Vec::new(),
    };
    let mut agent = raised(&rig, plan).await;
    let root = agent.id;
    for name in ["dev", "cook"] {
        until_told_idle(&rig, &mut agent, root, name).await;
        assert!(sent_by(&rig, &format!("/{name}-")).len() > 1, "{name}");
    }
    let used: u64 = rig
        .server
        .requests()
        .iter()
        .filter_map(|request| request.usage)
        .map(|usage| usage.prompt() + usage.output)
        .sum();
    assert!(used <= TOKENS, "{used}");
    let limit = "the session is limited to 120000 tokens";
    for mail in inbox(&rig, root, root).await {
        assert!(mail.body.contains(limit), "{}", mail.body);
    }
    farewell(agent).await;
}

/// Until the lead has mail that a member is idle.
async fn until_told_idle(rig: &Rig, agent: &mut Agent, root: AgentId, name: &str) {
    let idle = |mail: &Mail| mail.kind == MailKind::Idle && mail.from.name() == name;
    while !inbox(rig, root, root).await.iter().any(idle) {
        agent.events.recv().await.expect("it lives");
    }
}
