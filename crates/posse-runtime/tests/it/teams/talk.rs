//! Teammates that write each other and do nothing else.

use posse_protocol::{Command, Outcome};
use posse_testkit::rig::{farewell, prompt};

use super::life::{plan, say};
use super::tasks::raised;
use super::*;

/// Five messages in a reply, one more than are allowed in a row.
const TALK: &str = r#"
[[rule]]
when.tool = "re:."
reply = [{ text = "ok" }]
[[rule]]
when = { agent = "re:^/main$", user = "hold on" }
times = 1
reply = [{ tool = "Bash", input = { command = "cat hold" } }]
[[rule]]
when = { agent = "re:^/main$", user = "instruct" }
times = 1
reply = [FIVE("cook")]
[[rule]]
when = { agent = "/cook-", user = "report" }
times = 1
reply = [FIVE("team-lead")]
[[rule]]
when = { agent = "/cook-", user = "chat" }
reply = [FIVE("mate")]
[[rule]]
reply = [{ text = "ok" }]
"#;

async fn crew() -> (Rig, Agent, AgentId) {
    let five = |to: &str| {
        let one =
            format!(r#"{{ tool = "SendMessage", input = {{ to = "{to}", message = "x" }} }}"#);
        [one.as_str(); 5].join(", ")
    };
    let mut script = TALK.to_owned();
    for to in ["cook", "team-lead", "mate"] {
        script = script.replace(&format!("FIVE(\"{to}\")"), &five(to));
    }
    let mut rig = rig(&script);
    rig.setup.spawning.teams.message_limit = 4;
    let mut agent = raised(&rig, plan(&["cook", "mate"], Vec::new())).await;
    until_quiet(&mut agent).await;
    let cook = member(&rig, agent.id, "cook").await.agent;
    (rig, agent, cook)
}

/// Waits until the main agent's run ends in this way.
async fn until_outcome(agent: &mut Agent, fits: impl Fn(&Outcome) -> bool) {
    let ends = |event: &Event| match &event.kind {
        EventKind::Ended(end) => fits(&end.outcome),
        _ => false,
    };
    until(agent, ends).await;
}

// proves FC-03 (part: messages)
#[tokio::test]
async fn what_a_lead_writes_and_is_told_is_not_a_row() {
    let (rig, mut agent, cook) = crew().await;
    let paused = |events: Vec<Event>| {
        let is_pause = |event: &Event| match &event.kind {
            EventKind::Ended(end) => end.outcome != Outcome::Completed,
            _ => false,
        };
        events.iter().any(is_pause)
    };
    agent.handle.send(prompt("instruct")).await.unwrap();
    assert!(!paused(until_idle(&mut agent, "cook").await));
    until_quiet(&mut agent).await;
    say(&mut agent, cook, "cook", "report").await;
    let end = until_quiet(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Completed);
    let (to_cook, to_lead) = (
        inbox(&rig, agent.id, cook).await,
        inbox(&rig, agent.id, agent.id).await,
    );
    let texts = |mails: Vec<Mail>| {
        let is_text = |mail: &&Mail| mail.kind == MailKind::Text && mail.body == "x";
        mails.iter().filter(is_text).count()
    };
    assert_eq!((texts(to_cook), texts(to_lead)), (5, 5));
    farewell(agent).await;
}

// proves FC-03 (part: messages)
#[tokio::test]
async fn messages_count_only_while_nobody_does_anything_else() {
    let (rig, mut agent, cook) = crew().await;
    let hold = rig.work().join("hold");
    nix::unistd::mkfifo(&hold, nix::sys::stat::Mode::S_IRWXU).unwrap();
    agent.handle.send(prompt("hold on")).await.unwrap();
    let begun = |event: &Event| matches!(&event.kind, EventKind::CallStarted { .. });
    until(&mut agent, begun).await;
    say(&mut agent, cook, "cook", "chat").await;
    let release = move || std::fs::write(hold, "go");
    let released = tokio::task::spawn_blocking(release).await.unwrap();
    released.unwrap();
    until_outcome(&mut agent, |outcome| *outcome == Outcome::Completed).await;
    let chat = Command::To {
        agent: cook,
        command: Box::new(prompt("chat")),
    };
    agent.handle.send(chat).await.unwrap();
    until_outcome(&mut agent, |outcome| matches!(outcome, Outcome::Paused(_))).await;
    farewell(agent).await;
}
