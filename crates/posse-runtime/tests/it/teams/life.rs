//! What belongs to a long life: notes, order of mail, children, worktrees, compaction, and coming back.

use posse_port::store::{Address, AgentFilter, NewTask, Op, Order, Page};
use posse_protocol::{Command, MailId, TaskStatus, TeamPlan};
use posse_runtime::session::team::host::{Hosting, Members};
use posse_testkit::rig::{farewell, prompt};
use uuid::Uuid;

use super::tasks::{WORKERS, planned, raised, role};
use super::*;
use crate::agents::worktrees::repository;

pub(super) fn plan(names: &[&str], tasks: Vec<posse_protocol::PlannedTask>) -> TeamPlan {
    let roles = names
        .iter()
        .map(|name| (name.parse().unwrap(), role(None)))
        .collect();
    TeamPlan {
        description: "It builds boats.".into(),
        roles,
        tasks,
    }
}

const NOTES: &str = r#"
[[rule]]
when = { agent = "/cook-", user = "write it down" }
times = 1
reply = [{ tool = "NoteWrite", input = { name = "menu", text = "Soup on Monday." } }]
[[rule]]
when = { agent = "/mate-", user = "look" }
times = 1
reply = [{ tool = "NoteRead", input = { name = "menu" } }]
[[rule]]
reply = [{ text = "ok" }]
"#;

pub(super) async fn say(agent: &mut Agent, to: AgentId, name: &str, text: &str) {
    let command = Command::To {
        agent: to,
        command: Box::new(prompt(text)),
    };
    agent.handle.send(command).await.unwrap();
    until_idle(agent, name).await;
}

// proves TE-20
#[tokio::test]
async fn notes_of_one_are_listed_to_another_when_it_wakes() {
    let rig = rig(NOTES);
    let mut agent = raised(&rig, plan(&["cook", "mate"], Vec::new())).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    let (cook, mate) = (
        member(&rig, root, "cook").await.agent,
        member(&rig, root, "mate").await.agent,
    );
    say(&mut agent, cook, "cook", "write it down").await;
    let note = rig
        .store
        .notes(list(root, "crew"), Page::all())
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (note.name.as_str(), note.author.as_str(), note.version),
        ("menu", "cook", 1)
    );
    say(&mut agent, mate, "mate", "look").await;
    let sent = sent_by(&rig, "/mate-");
    let (woken, read) = (
        last_words(&sent[sent.len() - 2]),
        last_words(sent.last().unwrap()),
    );
    assert!(
        woken.contains("menu") && woken.contains("cook") && !woken.contains("Monday"),
        "{woken}"
    );
    assert!(read.contains("Soup on Monday."), "{read}");
    farewell(agent).await;
}

// proves TE-05 (part: in process)
#[tokio::test]
async fn while_time_stands_still_idle_teammates_hear_of_mail_and_of_tasks() {
    let clock = TestClock::default();
    let server = play_on(&clock, WORKERS).unwrap();
    let mut rig = Rig::with(server, Arc::new(clock.clone())).unwrap().agents();
    rig.profile.mode = PermissionMode::BypassPermissions;
    let mut agent = raised(&rig, plan(&["cook", "dev"], Vec::new())).await;
    let root = agent.id;
    until_idle(&mut agent, "cook").await;
    let (team, task) = (
        Some("crew".parse().unwrap()),
        NewTask {
            subject: "Row".into(),
            ..NewTask::default()
        },
    );
    let op = Op::CreateTask {
        team,
        task: Box::new(task),
    };
    rig.store
        .operate(Order {
            realm: realm(root),
            ops: vec![op],
            at_ms: 1,
        })
        .await
        .unwrap();
    while tasks(&rig, root, "crew").await[0].status != TaskStatus::Completed {
        agent.events.recv().await.unwrap();
    }
    let cook = member(&rig, root, "cook").await.agent;
    let (id, to, kind) = (
        MailId::from(Uuid::now_v7()),
        Address::Agent(cook),
        MailKind::Text,
    );
    let op = Op::Send {
        id,
        to,
        kind,
        summary: "s".into(),
        body: "heard?".into(),
    };
    rig.store
        .operate(Order {
            realm: realm(root),
            ops: vec![op],
            at_ms: 1,
        })
        .await
        .unwrap();
    // If it was the cook who rowed, its first idle notice is for the task and not for the mail.
    let heard = || {
        sent_by(&rig, "/cook-")
            .iter()
            .any(|body| last_words(body).contains("heard?"))
    };
    while !heard() {
        until_idle(&mut agent, "cook").await;
    }
}

const ORDER: &str = r#"
[[rule]]
when = { agent = "/hand-", turn = 1 }
reply = [{ tool = "Bash", input = { command = "echo up >ready; cat hold" } }]
[[rule]]
when = { agent = "/peer-", user = "write to hand" }
times = 1
reply = [{ tool = "SendMessage", input = { to = "hand", message = "peer one" } }, { tool = "SendMessage", input = { to = "hand", message = "peer two" } }]
[[rule]]
when = { agent = "re:^/main$", user = "write to hand" }
times = 1
reply = [{ tool = "SendMessage", input = { to = "hand", message = "lead one" } }]
[[rule]]
reply = [{ text = "ok" }]
"#;

// proves TE-04 (part: the user's words; the lead; peers)
// proves SM-08 (part: as shown)
#[tokio::test]
async fn the_users_words_come_before_the_leads_and_those_before_a_peers() {
    let rig = rig(ORDER);
    for name in ["ready", "hold"] {
        nix::unistd::mkfifo(&rig.work().join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let (ready, hold) = (rig.work().join("ready"), rig.work().join("hold"));
    let up = tokio::task::spawn_blocking(move || std::fs::read(ready));
    let mut agent = raised(&rig, plan(&["hand", "peer"], Vec::new())).await;
    let root = agent.id;
    until_idle(&mut agent, "peer").await;
    up.await.unwrap().unwrap();
    let (hand, peer) = (
        member(&rig, root, "hand").await.agent,
        member(&rig, root, "peer").await.agent,
    );
    say(&mut agent, peer, "peer", "write to hand").await;
    agent.handle.send(prompt("write to hand")).await.unwrap();
    while inbox(&rig, root, hand).await.len() < 4 {
        tokio::task::yield_now().await;
    }
    let (id, to, kind) = (
        MailId::from(Uuid::now_v7()),
        Address::Agent(hand),
        MailKind::Text,
    );
    let op = Op::Send {
        id,
        to,
        kind,
        summary: "s".into(),
        body: "user one".into(),
    };
    rig.store
        .operate(Order {
            realm: realm(root),
            ops: vec![op],
            at_ms: 1,
        })
        .await
        .unwrap();
    tokio::task::spawn_blocking(move || std::fs::write(hold, "\n"))
        .await
        .unwrap()
        .unwrap();
    until_idle(&mut agent, "hand").await;
    let told = last_words(&sent_by(&rig, "/hand-")[1]);
    let at = |text: &str| {
        told.find(text)
            .unwrap_or_else(|| panic!("{text} is missing: {told}"))
    };
    let order = [
        at("user one"),
        at("lead one"),
        at("peer one"),
        at("peer two"),
    ];
    assert!(order.is_sorted(), "{told}");
    farewell(agent).await;
}

const ADDRESSES: &str = r#"
[[rule]]
when = { agent = "re:^/main$", user = "send the two letters" }
times = 1
reply = [
  { tool = "SendMessage", input = { to = "cook@crew", message = "only you" } },
  { tool = "SendMessage", input = { to = "*", message = "all of you" } },
  { tool = "SendMessage", input = { to = "*", message = { type = "shutdown_request" } } },
]
[[rule]]
reply = [{ text = "ok" }]
"#;

// proves SM-01 (part: name@team; everyone)
// proves SM-06 (part: not broadcast)
#[tokio::test]
async fn one_of_a_team_or_all_the_others_are_written_to() {
    let rig = rig(ADDRESSES);
    let mut agent = raised(&rig, plan(&["cook", "mate"], Vec::new())).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    agent
        .handle
        .send(prompt("send the two letters"))
        .await
        .unwrap();
    until_quiet(&mut agent).await;
    let letters = async |of: AgentId| -> Vec<String> {
        let mails = inbox(&rig, root, of).await.into_iter();
        let texts = mails.filter(|mail| mail.kind == MailKind::Text);
        texts.skip(1).map(|mail| mail.body).collect()
    };
    let (cook, mate) = (
        member(&rig, root, "cook").await.agent,
        member(&rig, root, "mate").await.agent,
    );
    assert_eq!(letters(cook).await, ["only you", "all of you"]);
    assert_eq!(letters(mate).await, ["all of you"]);
    assert_eq!(letters(root).await, [""; 0], "nobody writes to itself");
    for name in ["/cook-", "/mate-"] {
        let told = all_words(sent_by(&rig, name).last().unwrap());
        assert!(told.contains("all of you"), "{told}");
    }
    let open = rig
        .store
        .requests(realm(root), None, Page::all())
        .await
        .unwrap();
    assert_eq!(open, [], "a request goes to one");
    farewell(agent).await;
}

/// The hand thinks for a second, and does what it is told afterwards.
const MEANWHILE: &str = r#"
[[rule]]
when = { agent = "/hand-", turn = 1 }
delay_ms = 1000
reply = [{ text = "Ready." }]
"#;

// proves TE-04 (part: a task)
#[tokio::test]
async fn mail_is_read_before_a_task_is_taken() {
    let (rig, clock) = paced(&format!("{MEANWHILE}{WORKERS}"));
    let mut agent = raised(&rig, plan(&["hand"], Vec::new())).await;
    let root = agent.id;
    clock.asleep_for(std::time::Duration::from_secs(1)).await;
    let hand = member(&rig, root, "hand").await.agent;
    let task = NewTask {
        subject: "Row".into(),
        ..NewTask::default()
    };
    let ops = vec![
        Op::CreateTask {
            team: Some("crew".parse().unwrap()),
            task: Box::new(task),
        },
        Op::Send {
            id: MailId::from(Uuid::now_v7()),
            to: Address::Agent(hand),
            kind: MailKind::Text,
            summary: "s".into(),
            body: "a letter".into(),
        },
    ];
    let order = Order {
        realm: realm(root),
        ops,
        at_ms: 1,
    };
    rig.store.operate(order).await.unwrap();
    clock.advance(std::time::Duration::from_secs(1));
    until_quiet(&mut agent).await;
    let told: Vec<String> = sent_by(&rig, "/hand-").iter().map(last_words).collect();
    let at = |text: &str| told.iter().position(|told| told.contains(text)).unwrap();
    assert!(at("a letter") < at("Task 1 is yours"), "{told:?}");
    farewell(agent).await;
}

const CHILDREN: &str = r#"
[[rule]]
when = { agent = "re:/hand-.*/", turn = 1 }
reply = [{ text = "Found." }]
[[rule]]
when = { agent = "/hand-", turn = 1 }
reply = [
  { tool = "Agent", input = { description = "d", prompt = "look", run_in_background = true, name = "finder" } },
  { tool = "Agent", input = { description = "d", prompt = "look", name = "other", team_name = "crew" } },
]
[[rule]]
reply = [{ text = "ok" }]
"#;

// proves TE-13
// proves AG-18 (part: no teammates; a name in a team)
#[tokio::test]
async fn a_teammate_starts_sub_agents_but_no_teammates() {
    let rig = rig(CHILDREN);
    let mut agent = raised(&rig, plan(&["hand"], Vec::new())).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    let hand = sent_by(&rig, "/hand-");
    let own: Vec<&Value> = hand
        .iter()
        .filter(|body| !all_words(body).is_empty())
        .collect();
    let told: Vec<String> = own.iter().map(|body| last_words(body)).collect();
    assert!(
        told.iter()
            .any(|told| told.contains("cannot start teammates")),
        "{told:?}"
    );
    assert!(
        told.iter().any(|told| told.contains("Found.")),
        "its end is told to it: {told:?}"
    );
    assert_eq!(team(&rig, root, "crew").await.members.len(), 2);
    let finder = AgentFilter {
        realm: Some(realm(root)),
        name: "finder".parse().ok(),
        ..AgentFilter::default()
    };
    assert_eq!(
        rig.store
            .agents(finder, Page::first(2))
            .await
            .unwrap()
            .len(),
        1,
        "a plain sub-agent has the name"
    );
    // Only when all of it was done it became idle.
    let idle = inbox(&rig, root, root)
        .await
        .into_iter()
        .filter(|mail| mail.kind == MailKind::Idle)
        .count();
    assert_eq!(idle, 1);
    farewell(agent).await;
}

const BRANCHES: &str = r#"
[[rule]]
when = { agent = "/dev-", turn = 1 }
reply = [{ tool = "Bash", input = { command = "pwd; echo x > new; git add new; git commit -qm new" } }]
[[rule]]
reply = [{ text = "ok" }]
"#;

// proves WT-05
#[tokio::test]
async fn a_teammate_has_a_worktree_where_its_role_says_so() {
    let rig = repository(BRANCHES);
    let mut plan = plan(&["dev"], Vec::new());
    plan.roles
        .values_mut()
        .for_each(|role| role.worktree = true);
    let mut agent = raised(&rig, plan).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    let dev = member(&rig, root, "dev").await;
    assert!(
        dev.cwd.starts_with(rig.worktrees().canonicalize().unwrap()),
        "{:?}",
        dev.cwd
    );
    assert!(dev.cwd.join("new").exists() && !rig.work().join("new").exists());
    let idle = inbox(&rig, root, root)
        .await
        .into_iter()
        .find(|mail| mail.kind == MailKind::Idle)
        .unwrap();
    assert!(idle.body.contains("\"branch\""), "{}", idle.body);
    farewell(agent).await;
    assert!(dev.cwd.join("new").exists(), "what was done there is kept");
}

// proves TE-12 (part: members; tasks)
#[tokio::test]
async fn a_lead_that_was_compacted_knows_its_team() {
    let rig = rig(&format!(
        "[[rule]]\nwhen = {{ agent = \"re:^/main$\", user = \"summary\" }}\nreply = [{{ text = \"<summary>We sail.</summary>\" }}]\n{WORKERS}"
    ));
    let blocked = planned("Launch it", Some("nobody"), &[]);
    let mut agent = raised(&rig, plan(&["cook", "mate"], vec![blocked])).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    agent
        .handle
        .send(Command::Compact { keep: None })
        .await
        .unwrap();
    until_end(&mut agent).await;
    agent.handle.send(prompt("who is there?")).await.unwrap();
    until_quiet(&mut agent).await;
    let told = all_words(sent_by(&rig, "/main").last().unwrap());
    for part in [
        "We sail.",
        "crew",
        "cook",
        "mate",
        "idle",
        "Launch it",
        "who is there?",
    ] {
        assert!(told.contains(part), "{part} is missing: {told}");
    }
    assert_eq!(team(&rig, root, "crew").await.members.len(), 3);
    farewell(agent).await;
}

#[tokio::test]
async fn a_team_whose_process_ended_comes_back_whole_and_goes_on() {
    let (rig, clock) = paced(&format!(
        "[[rule]]\nwhen = {{ agent = \"/dev-\", user = \"Task 1 is yours\" }}\ntimes = 1\ndelay_ms = 5000\nreply = [{{ text = \"never said\" }}]\n{WORKERS}"
    ));
    let mut declared = plan(
        &["dev"],
        vec![
            planned("Lay it", None, &[]),
            planned("Launch it", None, &[1]),
        ],
    );
    declared.roles.values_mut().for_each(|role| role.count = 2);
    let agent = raised(&rig, declared).await;
    let root = agent.id;
    clock.asleep_for(std::time::Duration::from_secs(5)).await;
    // One has the task; the other, which may start later, has read its first words too.
    let rests = |member: &Member| member.agent != root && member.state == MemberState::Idle;
    while !team(&rig, root, "crew").await.members.iter().any(rests) {
        tokio::task::yield_now().await;
    }
    let before = team(&rig, root, "crew").await;
    rig.runtime().unwrap().shut_down().await;
    drop(agent);
    let there = team(&rig, root, "crew").await;
    assert_eq!(there.members.len(), 3, "nobody has left");
    assert!(there.members.iter().all(|member| !member.held), "{there:?}");
    // Another process goes on.
    let runtime = rig.another().unwrap();
    let mut agent = runtime.resume(root, None, rig.setup.clone()).await.unwrap();
    let quiet = async {
        loop {
            let done = tasks(&rig, root, "crew")
                .await
                .iter()
                .all(|task| task.status == TaskStatus::Completed);
            let idle = team(&rig, root, "crew")
                .await
                .members
                .iter()
                .all(|member| member.state == MemberState::Idle);
            if done && idle {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = quiet => {}
        () = async { while agent.events.recv().await.is_some() {} } => panic!("it lives"),
        () = clock.run_sparing(&[]) => {}
    }
    let after = team(&rig, root, "crew").await;
    let ids = |team: &Team| {
        team.members
            .iter()
            .map(|member| (member.name.clone(), member.agent))
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&before), ids(&after), "the same members");
    let firsts = sent_by(&rig, "/dev-")
        .iter()
        .filter(|body| last_words(body).contains("Build the boat."))
        .count();
    assert_eq!(firsts, 2, "what was told once is not told again");
    farewell(agent).await;
}

#[tokio::test]
async fn members_are_hosted_elsewhere_than_their_lead() {
    let rig = rig(WORKERS);
    let mut agent = raised(&rig, plan(&["dev"], Vec::new())).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    rig.runtime().unwrap().shut_down().await;
    drop(agent);
    let runtime = rig.another().unwrap();
    let dev = member(&rig, root, "dev").await.agent;
    let hosting = Hosting {
        session: root,
        members: Members::One(dev),
    };
    let mut hosted = runtime
        .host(hosting.clone(), rig.setup.clone())
        .await
        .unwrap();
    assert_eq!(hosted.agents, [dev]);
    assert!(
        runtime.host(hosting, rig.setup.clone()).await.is_err(),
        "it is here already"
    );
    let words = Command::To {
        agent: dev,
        command: Box::new(prompt("from its own terminal")),
    };
    hosted.handle.send(words).await.unwrap();
    let mut said = String::new();
    while !said.contains("Ready.") {
        let event = hosted.events.recv().await.expect("it lives");
        said.push_str(&format!("{:?}", event.kind));
    }
    drop(hosted.handle);
    while hosted.events.recv().await.is_some() {}
    assert!(!member(&rig, root, "dev").await.held, "it was given up");
}
