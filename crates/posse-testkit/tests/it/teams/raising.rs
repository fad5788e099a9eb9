//! Teams that a model makes: members join, do what they are told, become idle, and end with the session.

use super::*;
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
