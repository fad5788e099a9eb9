//! What waits for an agent: who comes first.

use posse_protocol::{
    Command, ContentBlock, Detail, EventKind, Outcome, PromptChange, QueuedPrompt, WatchTarget,
};
use posse_runtime::live::subscription::Subscription;
use posse_runtime::live::viewers::Viewed;
use posse_testkit::Rig;
use posse_testkit::rig::{prompt, until_end};

use super::{SECOND, heard, paced, pipe, release, sent_by, until, until_over, words};

/// The main agent starts a sub-agent, which ends at once, and a command that waits for the test.
const HELD: &str = r#"
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "I am done." }]
[[rule]]
when.turn = 1
reply = [
  { tool = "Agent", input = { description = "Child", prompt = "Be.", run_in_background = true } },
  { tool = "Bash", input = { command = "echo x > begun; read -r _ < hold" } },
]
[[rule]]
reply = [{ text = "turn {{turn}}" }]
"#;

/// Told two things while it works, after its sub-agent has ended; then it may go on.
async fn told_meanwhile(rig: &Rig) -> posse_runtime::live::handle::Agent {
    let (begun, hold) = (pipe(rig, "begun"), pipe(rig, "hold"));
    let mut agent = rig.prompted("go").await.unwrap();
    super::ready(begun).await;
    until_over(&mut agent, "Child").await;
    agent.handle.send(prompt("first this")).await.unwrap();
    agent.handle.send(prompt("then that")).await.unwrap();
    heard(&mut agent).await;
    release(hold).await;
    agent
}

// proves BG-07 (part: next before later; order of arrival)
// proves BG-16 (part: prompts; ends)
#[tokio::test]
async fn words_that_join_come_before_mail_that_came_earlier() {
    let (mut rig, _clock) = paced(HELD);
    rig.setup.joins = true;
    let mut agent = told_meanwhile(&rig).await;
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.turns, end.text.as_str()),
        (Outcome::Completed, 2, "turn 2")
    );
    let main = sent_by(&rig, "/main");
    assert_eq!(main.len(), 2, "one turn for all of it");
    let told = words(&main[1]["messages"][2]);
    assert_eq!(told.len(), 5, "{told:#?}");
    assert!(told[0].contains("works in the background"), "{told:#?}");
    assert_eq!(
        told[2..4],
        ["first this".to_owned(), "then that".to_owned()]
    );
    assert!(told[4].starts_with("<task-notification>"), "{told:#?}");
}

// proves BG-07 (part: order of arrival)
#[tokio::test]
async fn words_that_do_not_join_have_runs_of_their_own() {
    let (rig, _clock) = paced(HELD);
    let mut agent = told_meanwhile(&rig).await;
    for turn in [2, 3, 4] {
        let (_, end) = until_end(&mut agent).await;
        assert_eq!(end.text, format!("turn {turn}"));
    }
    let main = sent_by(&rig, "/main");
    assert_eq!(main.len(), 4);
    let last = |at: usize| words(main[at]["messages"].as_array().unwrap().last().unwrap());
    assert!(
        last(1)[2].starts_with("<task-notification>"),
        "mail at the tool boundary: {:?}",
        last(1)
    );
    assert_eq!(
        (last(2), last(3)),
        (vec!["first this".to_owned()], vec!["then that".to_owned()])
    );
}

// proves BG-07 (part: next before later)
#[tokio::test]
async fn words_come_before_mail_also_where_the_turn_has_ended() {
    let script = r#"
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "I am done." }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Child", prompt = "Be.", run_in_background = true } }]
[[rule]]
when.turn = 2
delay_ms = 1000
reply = [{ text = "turn 2" }]
[[rule]]
reply = [{ text = "turn {{turn}}" }]
"#;
    for joins in [false, true] {
        let (mut rig, clock) = paced(script);
        rig.setup.joins = joins;
        let mut agent = rig.prompted("go").await.unwrap();
        clock.asleep_for(SECOND).await;
        let main = sent_by(&rig, "/main");
        let shown = super::count(&main[1], "<task-notification>") == 1;
        if !shown {
            until_over(&mut agent, "Child").await;
        }
        agent.handle.send(prompt("more")).await.unwrap();
        heard(&mut agent).await;
        clock.advance(SECOND);
        let (_, end) = until_end(&mut agent).await;
        assert_eq!(end.text, "turn 2", "joins: {joins}");
        let (_, end) = until_end(&mut agent).await;
        assert_eq!(end.text, "turn 3");
        let main = sent_by(&rig, "/main");
        assert_eq!(main.len(), 3);
        let told = words(main[2]["messages"].as_array().unwrap().last().unwrap());
        assert_eq!(
            (told[0].as_str(), told.len()),
            ("more", if shown { 1 } else { 2 }),
            "{told:?}"
        );
        assert!(
            shown || told[1].starts_with("<task-notification>"),
            "{told:?}"
        );
    }
}

// proves BG-07 (part: now)
// proves BG-16 (part: interrupts)
#[tokio::test]
async fn an_interrupt_waits_for_nothing() {
    let (rig, _clock) = paced(HELD);
    let begun = pipe(&rig, "begun");
    pipe(&rig, "hold");
    let mut agent = rig.prompted("go").await.unwrap();
    super::ready(begun).await;
    until_over(&mut agent, "Child").await;
    agent.handle.send(prompt("and this")).await.unwrap();
    agent.handle.send(Command::Interrupt).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.outcome, end.turns), (Outcome::Interrupted, 1));
    // What waited has its turn now, words first.
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "turn 2");
    let main = sent_by(&rig, "/main");
    let told = words(main[1]["messages"].as_array().unwrap().last().unwrap());
    let at = told.iter().position(|words| words == "and this").unwrap();
    assert!(told[at + 1].starts_with("<task-notification>"), "{told:?}");
    let started = |event: &posse_protocol::Event| matches!(event.kind, EventKind::Started);
    agent.handle.send(prompt("still there?")).await.unwrap();
    until(&mut agent, started).await;
}

/// Returns the next list of waiting prompts that a viewer is told.
async fn next_queue(viewer: &Subscription) -> Vec<QueuedPrompt> {
    loop {
        match viewer.next().await {
            Viewed::Event(event) => {
                if let EventKind::Queue(prompts) = event.kind {
                    return prompts;
                }
            }
            Viewed::Behind { lost } => panic!("{lost} events were lost"),
        }
    }
}

fn waiting(id: u64, text: &str, joins: bool) -> QueuedPrompt {
    QueuedPrompt {
        id,
        text: text.into(),
        images: 0,
        joins,
    }
}

// proves WA-07 (part: seen; edited; taken back; now; later; gone)
#[tokio::test]
async fn prompts_that_wait_are_seen_and_changed() {
    let (rig, _clock) = paced(HELD);
    let (begun, hold) = (pipe(&rig, "begun"), pipe(&rig, "hold"));
    let runtime = rig.runtime().unwrap();
    let mut agent = runtime.start(&rig.profile, rig.setup.clone());
    let viewer = runtime.watch();
    viewer.watch(WatchTarget::Agent(agent.id), Some(Detail::News));
    agent.handle.send(prompt("go")).await.unwrap();
    super::ready(begun).await;
    until_over(&mut agent, "Child").await;
    let mut all = Vec::new();
    for (id, text) in (1..).zip(["first", "second", "third", "fourth"]) {
        agent.handle.send(prompt(text)).await.unwrap();
        all.push(waiting(id, text, false));
        assert_eq!(next_queue(&viewer).await, all);
    }
    let change = async |prompt, change| {
        let command = Command::ChangePrompt { prompt, change };
        agent.handle.send(command).await.unwrap();
    };
    let edited = vec![ContentBlock::text("first, but better")];
    change(1, PromptChange::Edit(edited)).await;
    next_queue(&viewer).await;
    change(2, PromptChange::TakeBack).await;
    next_queue(&viewer).await;
    change(4, PromptChange::Join(true)).await;
    let expected = [
        waiting(1, "first, but better", false),
        waiting(3, "third", false),
        waiting(4, "fourth", true),
    ];
    assert_eq!(next_queue(&viewer).await, expected);
    // One that does not wait any more cannot be changed, and that is told.
    change(2, PromptChange::Join(true)).await;
    until(
        &mut agent,
        |event| matches!(&event.kind, EventKind::Warning(text) if text.contains("prompt 2")),
    )
    .await;
    release(hold).await;
    for turn in [2, 3, 4] {
        let (_, end) = until_end(&mut agent).await;
        assert_eq!(end.text, format!("turn {turn}"));
    }
    let main = sent_by(&rig, "/main");
    let last = |at: usize| words(main[at]["messages"].as_array().unwrap().last().unwrap());
    // At the tool boundary, before the mail.
    assert_eq!(last(1)[2], "fourth");
    assert!(last(1)[3].starts_with("<task-notification>"));
    let runs = [last(2), last(3)];
    assert_eq!(runs, [["first, but better"], ["third"]]);
    assert_eq!(main.len(), 4);
    assert_eq!(next_queue(&viewer).await.len(), 2);
    assert_eq!(next_queue(&viewer).await.len(), 1);
    assert_eq!(next_queue(&viewer).await, []);
}
