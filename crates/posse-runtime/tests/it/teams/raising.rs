//! Teams that a model makes: members join, do what they are told, become idle, and end with the session.

use super::*;
use posse_port::store::Page;
use posse_runtime::definition::agent_type::{Definition, built_in};
use posse_testkit::rig::{farewell, prompt};

/// The main agent makes a team, starts three in one turn, and is told of their idleness.
const CREW: &str = r#"
[[rule]]
when = { agent = "re:^/main$", turn = 1 }
reply = [{ tool = "TeamCreate", input = { team_name = "crew", description = "It sails." } }]
[[rule]]
when = { agent = "re:^/main$", turn = 2 }
reply = [
  { tool = "Agent", input = { description = "look out", prompt = "Look out, one.", name = "scout" } },
  { tool = "Agent", input = { description = "look out", prompt = "Look out, two.", name = "scout", team_name = "crew" } },
  { tool = "Agent", input = { description = "cook", prompt = "Cook.", name = "cook" } },
]
[[rule]]
when = { agent = "re:^/main$", turn = 3 }
reply = [{ text = "They are at it." }]
[[rule]]
when.agent = "re:^/main$"
reply = [{ text = "I see." }]
[[rule]]
when.agent = "re:/cook-"
reply = [{ text = "Soup." }]
[[rule]]
reply = [{ text = "Land." }]
"#;

// proves TE-01 (part: TeamCreate)
// proves TE-02
// proves TE-06 (part: available; the last answer)
// proves TE-16 (part: how its team works; the first prompt)
// proves TE-17 (part: colours; a number; told)
// proves TE-18 (part: members at work; the end)
// proves AG-02 (part: teammate)
// proves AG-09 (part: teammate_spawned)
// proves AG-01 (part: team_name)
// proves SM-06 (part: idle)
#[tokio::test]
async fn three_join_work_become_idle_and_end_with_the_session() {
    let rig = rig(CREW);
    let mut agent = rig.prompted("go").await.unwrap();
    let root = agent.id;
    let end = until_quiet(&mut agent).await;
    assert_eq!(end.text, "I see.");
    let crew = team(&rig, root, "crew").await;
    let names: Vec<&str> = crew
        .members
        .iter()
        .map(|member| member.name.as_str())
        .collect();
    assert_eq!(names.len(), 4);
    assert!(
        ["team-lead", "scout", "scout-2", "cook"]
            .iter()
            .all(|name| names.contains(name)),
        "{names:?}"
    );
    assert_eq!((crew.lead, crew.description.as_str()), (root, "It sails."));
    let mut colors: Vec<&str> = crew
        .members
        .iter()
        .map(|member| member.color.as_str())
        .collect();
    colors.sort_unstable();
    colors.dedup();
    assert_eq!(colors.len(), 4);
    for member in crew.members.iter().filter(|member| member.agent != root) {
        assert_eq!(
            (member.state, member.backend.as_str(), member.held),
            (MemberState::Idle, "in-process", true)
        );
        assert_eq!(
            (member.cwd.as_path(), member.agent_type.as_str()),
            (rig.work(), "general-purpose")
        );
        assert!(
            member.model == "claude-opus-5" && member.joined_ms > 0,
            "{member:?}"
        );
        let mails = inbox(&rig, root, member.agent).await;
        assert_eq!(mails.len(), 1, "its prompt is mail");
        assert_eq!(
            (mails[0].from.name(), mails[0].body.as_str()),
            ("team-lead", member.prompt.as_str())
        );
    }
    // The caller is told the names that they got.
    let told = last_words(&sent_by(&rig, "/main")[2]);
    assert!(told.contains("scout-2") && told.contains("crew"), "{told}");
    // What each is told: the team's rules in the system prompt, who it is and its mail in the first message.
    let cook = &sent_by(&rig, "/cook-")[0];
    let system = cook["system"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["text"].as_str().unwrap());
    let system = system.collect::<Vec<_>>().join("\n");
    assert!(
        system.contains("SendMessage") && !system.contains("cook"),
        "{system}"
    );
    assert!(
        last_words(cook).contains("cook@crew") && last_words(cook).contains("Cook."),
        "{}",
        last_words(cook)
    );
    // One idle mail each, and each shown once.
    let mails = inbox(&rig, root, root).await;
    let idle: Vec<&Mail> = mails
        .iter()
        .filter(|mail| mail.kind == MailKind::Idle)
        .collect();
    assert_eq!((mails.len(), idle.len()), (3, 3));
    assert!(idle.iter().all(|mail| mail.shown_in.is_some()));
    let all = all_words(sent_by(&rig, "/main").last().unwrap());
    assert!(all.contains("Soup.") && all.contains("Land."), "{all}");
    // When the main agent is done they end with it, and the team can go.
    farewell(agent).await;
    let crew = team(&rig, root, "crew").await;
    assert_eq!(crew.members.len(), 1, "{:?}", crew.members);
    assert_eq!(crew.former.len(), 3);
}

/// What tells a member of crew something, and what waits for it while it works.
const BUSY: &str = r#"
[[rule]]
when = { agent = "re:^/main$", turn = 1 }
reply = [{ tool = "TeamCreate", input = { team_name = "crew", description = "d" } }]
[[rule]]
when = { agent = "re:^/main$", turn = 2 }
reply = [{ tool = "Agent", input = { description = "d", prompt = "p", name = "hand" } }]
[[rule]]
when = { agent = "re:^/main$", user = "tell it" }
times = 1
reply = [{ tool = "SendMessage", input = { to = "hand", message = "also do this" } }]
[[rule]]
when = { agent = "re:/hand-", turn = 1 }
reply = [{ tool = "Bash", input = { command = "echo up >ready; cat hold" } }]
[[rule]]
reply = [{ text = "ok" }]
"#;

// proves SM-02
#[tokio::test]
async fn a_message_to_a_busy_teammate_is_in_its_next_request() {
    let rig = rig(BUSY);
    for name in ["ready", "hold"] {
        nix::unistd::mkfifo(&rig.work().join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let (ready, hold) = (rig.work().join("ready"), rig.work().join("hold"));
    let up = tokio::task::spawn_blocking(move || std::fs::read(ready));
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.live, 1, "its teammate is at work");
    up.await.unwrap().unwrap();
    agent.handle.send(prompt("tell it")).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.live, sent_by(&rig, "/hand-").len()), (1, 1));
    tokio::task::spawn_blocking(move || std::fs::write(hold, "go on\n"))
        .await
        .unwrap()
        .unwrap();
    until_quiet(&mut agent).await;
    let sent = sent_by(&rig, "/hand-");
    assert_eq!(sent.len(), 2);
    let told = last_words(&sent[1]);
    assert!(
        told.contains("go on") && told.contains("also do this"),
        "{told}"
    );
}

/// Makes teams by names that are none, twice the same, and another; then starts one, and deletes what it can.
const TEAMS: &str = r#"
[[rule]]
when = { agent = "re:^/main$", turn = 1 }
reply = [
  { tool = "TeamCreate", input = { team_name = "../crew", description = "d" } },
  { tool = "TeamCreate", input = { team_name = "My Crew", description = "d" } },
  { tool = "TeamCreate", input = { team_name = "LONG", description = "d" } },
  { tool = "TeamCreate", input = { team_name = "crew", description = "d" } },
  { tool = "TeamCreate", input = { team_name = "crew", description = "d" } },
  { tool = "TeamCreate", input = { team_name = "ops", description = "d" } },
]
[[rule]]
when = { agent = "re:^/main$", turn = 2 }
reply = [
  { tool = "Agent", input = { description = "d", prompt = "p", name = "hand", team_name = "crew" } },
  { tool = "TaskCreate", input = { subject = "Row", description = "d", team_name = "crew" } },
  { tool = "TeamDelete", input = { team_name = "crew" } },
]
[[rule]]
when = { agent = "re:^/main$", user = "end it" }
times = 1
reply = [{ tool = "SendMessage", input = { to = "hand", message = { type = "shutdown_request" } } }]
[[rule]]
when = { agent = "re:^/main$", user = "stop it" }
times = 1
reply = [{ tool = "TaskStop", input = { task_id = "hand" } }]
[[rule]]
when = { agent = "re:^/main$", user = "delete it" }
times = 1
reply = [{ tool = "TeamDelete", input = { team_name = "crew" } }]
[[rule]]
reply = [{ text = "ok" }]
"#;

// proves TE-01 (part: names; several teams; TeamDelete)
#[tokio::test]
async fn teams_have_names_of_their_own_and_are_deleted_without_members() {
    let mut rig = rig(&TEAMS.replace("LONG", &"x".repeat(65)));
    rig.setup.spawning.teams.deadline = std::time::Duration::ZERO;
    let mut agent = rig.prompted("go").await.unwrap();
    let root = agent.id;
    until_quiet(&mut agent).await;
    let results = |at: usize| {
        let body = sent_by(&rig, "/main").remove(at);
        let message = body["messages"].as_array().unwrap().last().unwrap().clone();
        let blocks = message["content"].as_array().unwrap().clone();
        // A teammate that is idle by then is told of in the same message.
        let results = blocks.iter().filter(|block| block["type"] == "tool_result");
        let failed = results.map(|block| block["is_error"] == true);
        (failed.collect::<Vec<_>>(), words(&message))
    };
    let (failed, told) = results(1);
    assert_eq!(failed, [true, true, true, false, true, false], "{told:?}");
    let (failed, told) = results(2);
    assert_eq!(failed, [false, false, true], "{told:?}");
    assert!(told[2].contains("hand"), "who lives is named: {told:?}");
    for words in ["end it", "stop it", "delete it"] {
        agent.handle.send(prompt(words)).await.unwrap();
        until_quiet(&mut agent).await;
    }
    let teams = rig
        .store
        .teams(Some(realm(root)), Page::first(10))
        .await
        .unwrap();
    let names: Vec<&str> = teams.iter().map(|team| team.name.as_str()).collect();
    assert_eq!(names, ["ops"]);
    let list = ListId {
        realm: realm(root),
        team: Some("crew".parse().unwrap()),
    };
    let left = rig
        .store
        .tasks(list, TaskFilter::default(), Page::first(10))
        .await;
    assert!(left.map_or(true, |tasks| tasks.is_empty()));
    farewell(agent).await;
}

// proves AG-05 (part: teammates)
#[tokio::test]
async fn no_teammate_is_started_past_a_limit() {
    let mut rig = rig(CREW);
    rig.setup.spawning.least_memory = u64::MAX;
    let mut agent = rig.prompted("go").await.unwrap();
    let root = agent.id;
    until_quiet(&mut agent).await;
    let told = last_words(&sent_by(&rig, "/main")[2]);
    let refused = "No agent was started: the machine has";
    assert_eq!(told.matches(refused).count(), 3, "{told}");
    assert_eq!(team(&rig, root, "crew").await.members.len(), 1);
    farewell(agent).await;
}

// proves TE-16 (part: the default; how its team works; the definition's body)
#[tokio::test]
async fn a_teammate_is_told_the_default_the_rules_of_its_team_and_its_own_part() {
    let mut rig = rig(&CREW.replace(
        "name = \"cook\"",
        "name = \"cook\", subagent_type = \"tester\"",
    ));
    let tester = Definition {
        name: "tester".into(),
        description: "Tests.".into(),
        prompt: "You test things.".into(),
        ..Definition::default()
    };
    let general = built_in().remove(0);
    let kinds = [general.clone(), tester];
    rig.setup.spawning.types = Arc::new(kinds.into_iter().collect());
    let mut agent = rig.prompted("go").await.unwrap();
    until_quiet(&mut agent).await;
    let system = |name: &str| -> Vec<String> {
        let body = sent_by(&rig, name).remove(0);
        let blocks = body["system"].as_array().unwrap().clone();
        let texts = blocks.iter().map(|block| block["text"].as_str().unwrap());
        texts.map(str::to_owned).collect()
    };
    let (tester, scout) = (system("/cook-"), system("/scout-").join("\n"));
    let all = tester.join("\n");
    let at = |text: &str| all.find(text).unwrap_or_else(|| panic!("{text}: {all}"));
    let (default, rules, body) = (
        at(general.prompt.trim_end()),
        at("NoteWrite"),
        at("You test things."),
    );
    assert!(default < rules && rules < body, "{tester:#?}");
    assert!(!scout.contains("You test things."), "{scout}");
    farewell(agent).await;
}

/// The main agent is held by a command while its teammates become idle.
const HELD: &str = r#"
[[rule]]
when = { agent = "re:^/main$", turn = 3 }
reply = [{ tool = "Bash", input = { command = "echo up >ready; cat hold" } }]
"#;

// proves TE-06 (part: one message)
#[tokio::test]
async fn all_who_became_idle_meanwhile_are_told_of_at_once() {
    let rig = rig(&format!("{HELD}{CREW}"));
    for name in ["ready", "hold"] {
        nix::unistd::mkfifo(&rig.work().join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let (ready, hold) = (rig.work().join("ready"), rig.work().join("hold"));
    let up = tokio::task::spawn_blocking(move || std::fs::read(ready));
    let mut agent = rig.prompted("go").await.unwrap();
    up.await.unwrap().unwrap();
    // That mail is stored is not enough: the main agent has to know of it before it goes on.
    let mut idle = 0;
    until(&mut agent, |event| {
        idle += usize::from(
            member_news(event).is_some_and(|news| matches!(news.what, MemberChange::Idle(_))),
        );
        idle == 3
    })
    .await;
    tokio::task::spawn_blocking(move || std::fs::write(hold, "go on\n"))
        .await
        .unwrap()
        .unwrap();
    until_quiet(&mut agent).await;
    let told = last_words(&sent_by(&rig, "/main")[3]);
    assert_eq!(told.matches("<team-idle>").count(), 1, "{told}");
    assert_eq!(told.matches("<team-member ").count(), 3, "{told}");
    assert_eq!(sent_by(&rig, "/main").len(), 4, "one turn for all of them");
    farewell(agent).await;
}
