//! Requests and signals: shutting down, plans, interruptions, another lead.

use std::time::Duration;

use posse_port::store::{Address, Op, Order, Page};
use posse_protocol::{Command, Detail, IdleReason, MailId, RequestKind, TaskStatus, WatchTarget};
use posse_runtime::live::viewers::Viewed;
use posse_scripted::Recorded;
use posse_testkit::rig::{farewell, prompt};
use posse_testkit::store_contract::create;
use uuid::Uuid;

use super::life::{plan, say};
use super::tasks::raised;
use super::*;

/// A team of one hand; the main agent does as it is told, and the hand as its rules say.
fn crew(more: &str, input: &str) -> String {
    format!(
        r#"
{more}
[[rule]]
when = {{ agent = "re:^/main$", turn = 1 }}
times = 1
reply = [{{ tool = "TeamCreate", input = {{ team_name = "crew", description = "d" }} }}]
[[rule]]
when = {{ agent = "re:^/main$", turn = 2 }}
times = 1
reply = [{{ tool = "Agent", input = {{ description = "d", prompt = "p", name = "hand" {input} }} }}]
[[rule]]
reply = [{{ text = "ok" }}]
"#
    )
}

async fn ready(rig: &Rig) -> Agent {
    let mut agent = rig.prompted("go").await.unwrap();
    until_quiet(&mut agent).await;
    agent
}

async fn told(agent: &mut Agent, text: &str) -> RunEnd {
    agent.handle.send(prompt(text)).await.unwrap();
    until_quiet(agent).await
}

const SHUTDOWN: &str = r#"
[[rule]]
when = { agent = "re:^/main$", tool = "hand" }
reply = [{ text = "ok" }]
[[rule]]
when = { agent = "/hand-", tool = "re:." }
reply = [{ text = "ok" }]
[[rule]]
when = { agent = "re:^/main$", user = "end it" }
times = 1
reply = [{ tool = "SendMessage", input = { to = "hand", message = { type = "shutdown_request", reason = "all is done" } } }]
[[rule]]
when = { agent = "/hand-", user = 're:"request_id": "([0-9a-f-]+)"', state = { asked = "once" } }
times = 1
reply = [{ tool = "SendMessage", input = { to = "team-lead", message = { type = "shutdown_response", request_id = "{{user.1}}", approve = true } } },
  { tool = "Bash", input = { command = "echo bye > last" } }]
[[rule]]
when = { agent = "/hand-", user = 're:"request_id": "([0-9a-f-]+)"' }
times = 1
set = { asked = "once" }
reply = [{ tool = "SendMessage", input = { to = "team-lead", message = { type = "shutdown_response", request_id = "{{user.1}}", approve = false, reason = "I am not done" } } }]
"#;

// proves TE-07 (part: the answer; the end)
// proves SM-06 (part: shutdown)
// proves SM-09 (part: shutdown)
// proves SM-01 (part: control messages)
#[tokio::test]
async fn who_is_asked_to_end_says_no_and_then_yes() {
    let rig = rig(&crew(SHUTDOWN, ""));
    let mut agent = ready(&rig).await;
    let root = agent.id;
    let hand = member(&rig, root, "hand").await.agent;
    told(&mut agent, "end it").await;
    let answers = |mails: Vec<Mail>| -> Vec<Mail> {
        mails
            .into_iter()
            .filter(|mail| mail.kind == MailKind::ShutdownResponse)
            .collect()
    };
    let first = answers(inbox(&rig, root, root).await);
    assert!(
        first.len() == 1 && first[0].body.contains("I am not done"),
        "{first:?}"
    );
    assert!(
        rig.store
            .requests(realm(root), None, Page::all())
            .await
            .unwrap()
            .is_empty(),
        "it is answered"
    );
    assert_eq!(team(&rig, root, "crew").await.members.len(), 2);
    // Asked by the user this time; on the second request it agrees, and ends when its calls are done.
    let id = MailId::from(Uuid::now_v7());
    let to = Address::Agent(hand);
    let op = Op::Request {
        id,
        to,
        kind: RequestKind::Shutdown,
        text: "Please.".into(),
    };
    rig.store
        .operate(Order {
            realm: realm(root),
            ops: vec![op],
            at_ms: 1,
        })
        .await
        .unwrap();
    let left =
        |event: &Event| member_news(event).is_some_and(|news| news.what == MemberChange::Left);
    until(&mut agent, left).await;
    let crew = team(&rig, root, "crew").await;
    assert_eq!((crew.members.len(), crew.former.len()), (1, 1), "{crew:?}");
    assert_eq!(
        std::fs::read_to_string(rig.work().join("last")).unwrap(),
        "bye\n",
        "its last calls ended first"
    );
    let second = answers(inbox(&rig, root, root).await);
    assert_eq!(second.len(), 2, "the lead hears of it");
    // Mail does not bring it back.
    let sent = sent_by(&rig, "/hand-").len();
    told(&mut agent, "anything").await;
    assert_eq!(sent_by(&rig, "/hand-").len(), sent);
    farewell(agent).await;
}

const FORCED: &str = r#"
[[rule]]
when = { agent = "re:^/main$", user = "end it" }
times = 1
reply = [{ tool = "SendMessage", input = { to = "hand", message = { type = "shutdown_request" } } }]
[[rule]]
when = { agent = "re:^/main$", user = "stop it" }
times = 1
reply = [{ tool = "TaskStop", input = { task_id = "hand" } }]
"#;

// proves TE-07 (part: the deadline)
#[tokio::test]
async fn who_does_not_answer_can_be_forced_after_the_deadline() {
    for (deadline, members) in [(3600, 2), (0, 1)] {
        let mut rig = rig(&crew(FORCED, ""));
        rig.setup.spawning.teams.deadline = Duration::from_secs(deadline);
        let mut agent = ready(&rig).await;
        let root = agent.id;
        told(&mut agent, "end it").await;
        assert_eq!(
            rig.store
                .requests(realm(root), None, Page::all())
                .await
                .unwrap()
                .len(),
            1
        );
        told(&mut agent, "stop it").await;
        // Before the deadline it is interrupted only, and has time to answer.
        assert_eq!(
            team(&rig, root, "crew").await.members.len(),
            members,
            "{deadline}"
        );
        let end = inbox(&rig, root, root)
            .await
            .into_iter()
            .filter(|mail| mail.kind == MailKind::Notification)
            .count();
        assert_eq!(end, 2 - members, "its lead is told of such an end");
        farewell(agent).await;
    }
}

// proves TE-07 (part: the deadline)
#[tokio::test]
async fn who_is_late_is_sent_the_dismissal_alone() {
    let mut rig = rig(&crew(FORCED, ""));
    rig.setup.spawning.teams.deadline = Duration::ZERO;
    let mut agent = ready(&rig).await;
    let root = agent.id;
    let hand = member(&rig, root, "hand").await.agent;
    told(&mut agent, "end it").await;
    agent.handle.send(prompt("stop it")).await.unwrap();
    let (mut left, mut ended) = (false, false);
    until(&mut agent, |event| {
        left |= member_news(event).is_some_and(|news| news.what == MemberChange::Left);
        ended |= matches!(event.kind, EventKind::Ended(_));
        left && ended
    })
    .await;
    assert_eq!(team(&rig, root, "crew").await.members.len(), 1);
    let kinds: Vec<MailKind> = inbox(&rig, root, hand)
        .await
        .into_iter()
        .map(|mail| mail.kind)
        .collect();
    assert!(
        kinds.contains(&MailKind::Dismissal) && !kinds.contains(&MailKind::Interruption),
        "{kinds:?}"
    );
    let said = sent_by(&rig, "/main")
        .iter()
        .map(last_words)
        .collect::<Vec<_>>();
    assert!(
        said.iter().any(|said| said.contains("is ended now")),
        "{said:?}"
    );
    farewell(agent).await;
}

const PLAN: &str = r#"
[[rule]]
when = { agent = "re:^/main$", tool = "hand" }
reply = [{ text = "ok" }]
[[rule]]
when = { agent = "/hand-", turn = 2 }
reply = [{ tool = "ExitPlanMode", input = { plan = "1. Build." } }]
[[rule]]
when = { agent = "/hand-", tool = "re:." }
reply = [{ text = "ok" }]
[[rule]]
when = { agent = "re:^/main$", user = 're:"request_id": "([0-9a-f-]+)"', state = { answered = "once" } }
times = 1
reply = [{ tool = "SendMessage", input = { to = "hand", message = { type = "plan_approval_response", request_id = "{{user.1}}", approve = true } } }]
[[rule]]
when = { agent = "re:^/main$", user = 're:"request_id": "([0-9a-f-]+)"' }
times = 1
set = { answered = "once" }
reply = [{ tool = "SendMessage", input = { to = "hand", message = { type = "plan_approval_response", request_id = "{{user.1}}", approve = false, feedback = "Write tests first." } } }]
[[rule]]
when = { agent = "/hand-", turn = 1 }
reply = [{ tool = "Bash", input = { command = "echo x > early" } }]
[[rule]]
when = { agent = "/hand-", user = "Write tests first." }
times = 1
reply = [{ tool = "ExitPlanMode", input = { plan = "1. Test. 2. Build." } }]
[[rule]]
when = { agent = "/hand-", user = "has approved your plan" }
times = 1
reply = [{ tool = "Bash", input = { command = "echo x > late" } }]
"#;

// proves TE-08 (part: no edits before; the lead; feedback)
// proves AG-01 (part: mode)
// proves AG-17 (part: teammates)
// proves SM-06 (part: plans)
// proves SM-09 (part: plans)
// proves PE-01 (part: plan)
#[tokio::test]
async fn nothing_is_changed_before_the_lead_has_approved_the_plan() {
    let rig = rig(&crew(PLAN, ", mode = \"plan\""));
    let mut agent = ready(&rig).await;
    let root = agent.id;
    assert!(!rig.work().join("early").exists(), "it may not edit yet");
    assert!(
        rig.work().join("late").exists(),
        "{:?}",
        sent_by(&rig, "/hand-")
            .iter()
            .map(last_words)
            .collect::<Vec<_>>()
    );
    let said = all_words(sent_by(&rig, "/hand-").last().unwrap());
    assert!(said.contains("Write tests first."), "{said}");
    assert!(
        rig.store
            .requests(realm(root), None, Page::all())
            .await
            .unwrap()
            .is_empty()
    );
    let hand = member(&rig, root, "hand").await.agent;
    assert_ne!(
        rig.store.read(hand).await.unwrap().record.mode,
        PermissionMode::Plan
    );
    told(&mut agent, "on").await;
    farewell(agent).await;
}

const PLANNING_WITH_HELP: &str = r#"
[[rule]]
when = { agent = "re:/hand-.*/", turn = 1 }
reply = [{ text = "Found." }]
[[rule]]
when = { agent = "/hand-", turn = 1 }
reply = [{ tool = "Agent", input = { description = "d", prompt = "look", subagent_type = "general-purpose" } }]
"#;

// proves AG-19 (part: plan-switching)
#[tokio::test]
async fn who_works_by_plan_hands_it_in_itself() {
    let rig = rig(&crew(PLANNING_WITH_HELP, ", mode = \"plan\""));
    let agent = ready(&rig).await;
    let requests = rig.server.requests();
    let offers = |request: &&Recorded| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let tools = body["tools"].as_array().unwrap().clone();
        tools.iter().any(|tool| tool["name"] == "ExitPlanMode")
    };
    let deeper = |request: &&Recorded| {
        let path = request.header("x-posse-agent").unwrap();
        path.split("/hand-").nth(1).map(|rest| rest.contains('/'))
    };
    let of_team = requests.iter().filter(|request| deeper(request).is_some());
    let (below, own): (Vec<_>, Vec<_>) = of_team.partition(|request| deeper(request) == Some(true));
    assert_eq!(below.len(), 1, "its sub-agent asked once");
    assert!(own.iter().all(offers), "the member has it");
    assert!(!offers(&below[0]), "its sub-agent has not");
    farewell(agent).await;
}

/// A plan is handed in, and nobody answers.
const UNANSWERED: &str = r#"
[[rule]]
when = { agent = "/hand-", turn = 1 }
reply = [{ tool = "ExitPlanMode", input = { plan = "1. Build." } }]
[[rule]]
when = { agent = "re:^/main$", user = "summary" }
reply = [{ text = "<summary>We sail.</summary>" }]
[[rule]]
when = { agent = "/hand-", user = "has approved your plan" }
times = 1
reply = [{ tool = "Bash", input = { command = "echo x > late" } }]
"#;

// proves TE-08 (part: the user)
// proves TE-12 (part: open requests)
// proves SM-09 (part: not open)
#[tokio::test]
async fn a_plan_waits_for_approval_through_a_compaction_and_a_resume_and_a_person_may_give_it() {
    let rig = rig(&crew(UNANSWERED, ", mode = \"plan\""));
    let mut agent = ready(&rig).await;
    let root = agent.id;
    let open = rig
        .store
        .requests(realm(root), None, Page::all())
        .await
        .unwrap();
    assert_eq!(
        (open.len(), open[0].kind, open[0].to),
        (1, RequestKind::Plan, root)
    );
    agent
        .handle
        .send(Command::Compact { keep: None })
        .await
        .unwrap();
    until_end(&mut agent).await;
    told(&mut agent, "who is there?").await;
    let known = all_words(sent_by(&rig, "/main").last().unwrap());
    assert!(
        known.contains(&open[0].id.to_string()),
        "the request is restated: {known}"
    );
    rig.runtime().unwrap().shut_down().await;
    drop(agent);
    assert_eq!(
        rig.store
            .requests(realm(root), None, Page::all())
            .await
            .unwrap(),
        open,
        "it is still there"
    );
    let runtime = rig.another().unwrap();
    let mut agent = runtime.resume(root, None, rig.setup.clone()).await.unwrap();
    let (id, request) = (MailId::from(Uuid::now_v7()), open[0].id);
    let op = Op::Respond {
        id,
        request,
        kind: RequestKind::Plan,
        approve: true,
        text: String::new(),
    };
    let done = rig
        .store
        .operate(Order {
            realm: realm(root),
            ops: vec![op.clone()],
            at_ms: 1,
        })
        .await
        .unwrap();
    assert!(done[0].is_ok(), "{done:?}");
    until_idle(&mut agent, "hand").await;
    assert!(rig.work().join("late").exists());
    let again = rig
        .store
        .operate(Order {
            realm: realm(root),
            ops: vec![op],
            at_ms: 1,
        })
        .await
        .unwrap();
    assert!(again[0].is_err(), "what is not open cannot be answered");
    farewell(agent).await;
}

// proves WA-10 (part: requests; mail; tasks; any process)
#[tokio::test]
async fn viewers_are_told_of_requests_mail_and_tasks() {
    let rig = rig(&crew(UNANSWERED, ", mode = \"plan\""));
    let runtime = rig.runtime().unwrap();
    let mut agent = runtime.start(&rig.profile, rig.setup.clone());
    let root = agent.id;
    let viewer = runtime.watch();
    assert!(viewer.watch(WatchTarget::Session(root), Some(Detail::News)));
    agent.handle.send(prompt("go")).await.unwrap();
    until_quiet(&mut agent).await;
    let request = async |is_open: bool| {
        let mut before = Vec::new();
        loop {
            match viewer.next().await {
                Viewed::Event(event) => match &event.kind {
                    EventKind::Request(update) if update.is_open == is_open => {
                        return (event, before);
                    }
                    _ => before.push(event),
                },
                Viewed::Behind { lost } => panic!("{lost} events were lost"),
            }
        }
    };
    let (opened, _) = request(true).await;
    let EventKind::Request(plan) = &opened.kind else {
        unreachable!("it was looked for");
    };
    assert_eq!(
        (opened.agent, plan.kind, plan.text.as_str()),
        (root, RequestKind::Plan, "1. Build.")
    );
    // Somebody answers, elsewhere, and adds a task.
    let answer = Op::Respond {
        id: MailId::from(Uuid::now_v7()),
        request: plan.id,
        kind: RequestKind::Plan,
        approve: true,
        text: String::new(),
    };
    let ops = vec![create("crew", "mend it", &[]), answer];
    let (realm, at_ms) = (realm(root), 1);
    let order = Order { realm, ops, at_ms };
    for done in rig.store.operate(order).await.unwrap() {
        done.unwrap();
    }
    let (_, before) = request(false).await;
    let hand = member(&rig, root, "hand").await.agent;
    let is_mail = |event: &Event| match &event.kind {
        EventKind::Mail(mail) => event.agent == hand && mail.kind == MailKind::PlanApprovalResponse,
        _ => false,
    };
    assert!(before.iter().any(is_mail), "{before:#?}");
    let is_task = |event: &Event| match &event.kind {
        EventKind::Task(task) => event.agent == root && task.subject == "mend it",
        _ => false,
    };
    assert!(before.iter().any(is_task), "{before:#?}");
    farewell(agent).await;
}

const FAILS: &str = r#"
[[rule]]
when = { agent = "/hand-", user = "now fail" }
times = 1
fault = { kind = "status", status = 400 }
"#;

// proves TE-06 (part: failed)
#[tokio::test]
async fn who_cannot_go_on_says_why_and_goes_on_when_it_is_written_to() {
    let rig = rig(&crew(FAILS, ""));
    let mut agent = ready(&rig).await;
    let root = agent.id;
    let hand = member(&rig, root, "hand").await.agent;
    let words = |text: &str| Command::To {
        agent: hand,
        command: Box::new(prompt(text)),
    };
    agent.handle.send(words("now fail")).await.unwrap();
    let events = until_idle(&mut agent, "hand").await;
    let Some(MemberChange::Idle(report)) =
        member_news(events.last().unwrap()).map(|news| &news.what)
    else {
        panic!("it is idle")
    };
    assert_eq!(report.reason, IdleReason::Failed);
    assert!(
        report
            .error
            .as_deref()
            .is_some_and(|error| error.contains("400")),
        "{report:?}"
    );
    let told = inbox(&rig, root, root).await;
    assert!(
        told.last().unwrap().body.contains("\"reason\":\"failed\""),
        "{told:?}"
    );
    agent.handle.send(words("again")).await.unwrap();
    until_idle(&mut agent, "hand").await;
    farewell(agent).await;
}

const HELD: &str = r#"
[[rule]]
when = { agent = "/hand-", turn = 1 }
times = 1
delay_ms = 1000
reply = [{ text = "never said" }]
"#;

// proves TE-19 (part: idle; not ended)
// proves TE-06 (part: interrupted)
#[tokio::test]
async fn who_is_interrupted_is_idle_and_goes_on_when_it_is_written_to() {
    let (rig, clock) = paced(&crew(HELD, ""));
    let mut agent = rig.prompted("go").await.unwrap();
    let root = agent.id;
    clock.asleep_for(Duration::from_secs(1)).await;
    let hand = member(&rig, root, "hand").await;
    assert_eq!(hand.state, MemberState::Running);
    let command = Command::To {
        agent: hand.agent,
        command: Box::new(Command::Interrupt),
    };
    agent.handle.send(command).await.unwrap();
    let events = until_idle(&mut agent, "hand").await;
    let Some(MemberChange::Idle(report)) =
        member_news(events.last().unwrap()).map(|news| &news.what)
    else {
        panic!("it is idle")
    };
    assert_eq!(report.reason, IdleReason::Interrupted);
    assert_eq!(member(&rig, root, "hand").await.state, MemberState::Idle);
    // The user's own words wake it.
    let command = Command::To {
        agent: hand.agent,
        command: Box::new(prompt("go on")),
    };
    agent.handle.send(command).await.unwrap();
    until_idle(&mut agent, "hand").await;
    assert!(last_words(sent_by(&rig, "/hand-").last().unwrap()).contains("go on"));
    // The same from another process: by mail, which alone begins nothing.
    let before = sent_by(&rig, "/hand-").len();
    let send = |kind, body: &str| Op::Send {
        id: MailId::from(Uuid::now_v7()),
        to: Address::Agent(hand.agent),
        kind,
        summary: "from outside".into(),
        body: body.into(),
    };
    let order = |op| Order {
        realm: realm(root),
        ops: vec![op],
        at_ms: 1,
    };
    rig.store
        .operate(order(send(MailKind::Interruption, "")))
        .await
        .unwrap();
    rig.store
        .operate(order(send(MailKind::Text, "and on")))
        .await
        .unwrap();
    until_idle(&mut agent, "hand").await;
    let sent = sent_by(&rig, "/hand-");
    assert_eq!(sent.len(), before + 1, "one request, for the words");
    assert!(all_words(sent.last().unwrap()).contains("and on"));
    farewell(agent).await;
}

const NAMESAKE: &str = r#"
[[rule]]
when = { agent = "/hand-", user = "start one" }
times = 1
reply = [{ tool = "Agent", input = { description = "d", prompt = "p", name = "hand" } },
  { tool = "Agent", input = { description = "d", prompt = "p", name = "helper" } }]
"#;

#[tokio::test]
async fn a_sub_agent_cannot_be_called_like_a_member() {
    let rig = rig(&crew(NAMESAKE, ""));
    let mut agent = ready(&rig).await;
    let hand = member(&rig, agent.id, "hand").await.agent;
    let command = Command::To {
        agent: hand,
        command: Box::new(prompt("start one")),
    };
    agent.handle.send(command).await.unwrap();
    until_idle(&mut agent, "hand").await;
    let said = sent_by(&rig, "/hand-")
        .iter()
        .map(all_words)
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        said.contains("name: hand is or was a member of team crew"),
        "{said}"
    );
    assert!(!said.contains("name: helper"), "{said}");
    farewell(agent).await;
}

const HAND_OVER: &str = r#"
[[rule]]
when = { agent = "re:^/main$", user = "hand over" }
times = 1
reply = [{ tool = "TeamHandOver", input = { to = "hand" } }]
[[rule]]
when = { agent = "/hand-", user = "you lead" }
times = 1
reply = [{ tool = "TaskCreate", input = { subject = "Row", description = "d" } }, { tool = "TaskUpdate", input = { taskId = "1", owner = "main" } },
  { tool = "TeamHandOver", input = { to = "main" } }]
"#;

// proves TE-15
// proves TK-11 (part: an assignment; the mail)
#[tokio::test]
async fn leadership_is_handed_over_and_back() {
    let rig = rig(&crew(HAND_OVER, ""));
    let mut agent = ready(&rig).await;
    let root = agent.id;
    let hand = member(&rig, root, "hand").await.agent;
    told(&mut agent, "hand over").await;
    let crew = team(&rig, root, "crew").await;
    assert_eq!(crew.lead, hand);
    assert!(
        crew.members
            .iter()
            .any(|member| member.agent == root && member.name.as_str() == "main"),
        "{crew:?}"
    );
    let command = Command::To {
        agent: hand,
        command: Box::new(prompt("you lead")),
    };
    agent.handle.send(command).await.unwrap();
    until_quiet(&mut agent).await;
    let crew = team(&rig, root, "crew").await;
    assert_eq!(
        crew.lead,
        root,
        "{:?}",
        sent_by(&rig, "/hand-")
            .iter()
            .map(last_words)
            .collect::<Vec<_>>()
    );
    let task = tasks(&rig, root, "crew").await.remove(0);
    assert_eq!(
        (task.status, task.owner.unwrap().agent),
        (TaskStatus::Pending, Some(root)),
        "it was assigned"
    );
    let mails = inbox(&rig, root, root).await;
    assert!(
        mails
            .iter()
            .any(|mail| mail.kind == MailKind::Text && mail.body.contains("Row")),
        "and mailed"
    );
    farewell(agent).await;
}

const STUCK: &str = r#"
[[rule]]
when = { agent = "/cook-", turn = 1 }
reply = [{ text = "ok" }]
[[rule]]
when.agent = "/cook-"
reply = [{ tool = "Read", input = { file_path = "nowhere" } }]
[[rule]]
reply = [{ text = "ok" }]
"#;

// proves FC-03 (part: teammate; told to the lead)
#[tokio::test]
async fn a_teammate_that_repeats_itself_becomes_idle_and_its_lead_is_told() {
    let rig = rig(STUCK);
    let mut agent = raised(&rig, plan(&["cook"], Vec::new())).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    let cook = member(&rig, root, "cook").await.agent;
    let before = sent_by(&rig, "/cook-").len();
    say(&mut agent, cook, "cook", "go on").await;
    assert_eq!(sent_by(&rig, "/cook-").len() - before, 5);
    assert_eq!(member(&rig, root, "cook").await.state, MemberState::Idle);
    let told = inbox(&rig, root, root).await;
    let reason = "repeated a call that failed in the same way";
    assert!(
        told.iter().any(|mail| mail.body.contains(reason)),
        "{told:?}"
    );
    farewell(agent).await;
}
