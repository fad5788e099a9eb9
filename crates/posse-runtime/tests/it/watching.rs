//! Watching agents of the same process.

use posse_protocol::{
    Activity, AgentId, Delta, Detail, Event, EventKind, Outcome, PermissionMode, WaitReason,
    WatchTarget,
};
use posse_runtime::live::subscription::Subscription;
use posse_runtime::live::viewers::Viewed;
use posse_testkit::Rig;
use posse_testkit::rig::{prompt, until_end};

fn rig(script: &str) -> Rig {
    let mut rig = Rig::playing(script).unwrap().agents();
    rig.profile.mode = PermissionMode::BypassPermissions;
    rig
}

/// Everything that a viewer has to read.
fn seen(viewer: &Subscription) -> Vec<Viewed> {
    std::iter::from_fn(|| viewer.try_next()).collect()
}

/// The events among it.
fn events(viewer: &Subscription) -> Vec<Event> {
    let event = |viewed| match viewed {
        Viewed::Event(event) => event,
        Viewed::Behind { lost } => panic!("{lost} events were lost"),
    };
    seen(viewer).into_iter().map(event).collect()
}

/// The text of the replies of an agent, as it arrived.
fn said(events: &[Event], agent: AgentId) -> String {
    let own = events.iter().filter(|event| event.agent == agent);
    own.filter_map(|event| match &event.kind {
        EventKind::Delta(Delta::Text(text)) => Some(text.as_str()),
        _ => None,
    })
    .collect()
}

fn entries(events: &[Event], agent: AgentId) -> usize {
    let own = events.iter().filter(|event| event.agent == agent);
    own.filter(|event| matches!(event.kind, EventKind::Entry(_)))
        .count()
}

const SCOUT: &str = r#"
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Three callers." }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Find", prompt = "Find.", name = "scout" } }]
[[rule]]
reply = [{ text = "That was all." }]
"#;

// proves WA-01 (part: sub-agents; several; detail)
#[tokio::test]
async fn a_sub_agent_is_seen_by_all_who_watch_as_closely_as_they_want() {
    let rig = rig(SCOUT);
    let runtime = rig.runtime().unwrap();
    let mut agent = runtime.start(&rig.profile, rig.setup.clone());
    let [first, second, news, other] = std::array::from_fn(|_| runtime.watch());
    let session = WatchTarget::Session(agent.id);
    first.watch(session, Some(Detail::All));
    second.watch(session, Some(Detail::All));
    second.watch(WatchTarget::Agent(agent.id), Some(Detail::News));
    news.watch(session, Some(Detail::News));
    let elsewhere = WatchTarget::Session(AgentId::from(uuid::Uuid::now_v7()));
    assert!(!other.watch(elsewhere, Some(Detail::All)));
    agent.handle.send(prompt("go")).await.unwrap();
    let (front_end, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "That was all.");

    let by_first = events(&first);
    let is_run = |event: &&Event| matches!(event.kind, EventKind::Run(_));
    let scout = by_first.iter().find(is_run).unwrap().agent;
    assert_ne!(scout, agent.id);
    assert_eq!(said(&by_first, scout), "Three callers.");
    assert_eq!(entries(&by_first, scout), 2, "its prompt and its reply");
    assert_eq!(events(&second), by_first, "each once");

    // Less detail is less: neither words nor entries.
    let by_news = events(&news);
    assert_eq!(
        (said(&by_news, scout).as_str(), entries(&by_news, scout)),
        ("", 0)
    );
    let is_start = |event: &Event| event.agent == scout && event.kind == EventKind::Started;
    assert!(by_news.iter().any(is_start));

    // Each says what it does and what it has used.
    let activities = |agent: AgentId| -> Vec<Activity> {
        let own = by_news.iter().filter(|event| event.agent == agent);
        own.filter_map(|event| match event.kind {
            EventKind::State(activity) => Some(activity),
            _ => None,
        })
        .collect()
    };
    assert_eq!(
        activities(scout),
        [Activity::Working, Activity::Idle, Activity::Gone]
    );
    let waits = Activity::Waiting(WaitReason::Children);
    // A new viewer makes it tell everybody again, before its prompt or after.
    let mut main = activities(agent.id);
    main.dedup();
    assert_eq!(
        main[usize::from(main[0] == Activity::Idle)..],
        [Activity::Working, waits, Activity::Working, Activity::Idle]
    );
    let spent = by_first.iter().rev().find_map(|event| match &event.kind {
        EventKind::Spending(update) if event.agent == scout => Some(update),
        _ => None,
    });
    let spent = spent.unwrap();
    assert_eq!((&spent.own, spent.own.len()), (&spent.subtree, 1));
    assert!(spent.own[0].cost.is_some() && spent.context_window.is_some());
    assert_eq!(
        spent.context_tokens,
        spent.own[0].usage.prompt() + spent.own[0].usage.output
    );
    assert!(!front_end.iter().any(|event| event.kind.is_for_viewers()));

    // The front end gets what it got before: of others only what concerns it.
    assert_eq!(
        (said(&front_end, scout).as_str(), entries(&front_end, scout)),
        ("", 0)
    );
    let main = |events: &[Event]| (said(events, agent.id), entries(events, agent.id));
    assert_eq!(main(&front_end), main(&by_first));
    assert_eq!(seen(&other), []);
}

const MANY: &str = r#"
[[rule]]
when.turn = 41
reply = [{ text = "That was all." }]
[[rule]]
when.user = "go"
reply = [{ tool = "Glob", input = { pattern = "a*" } }, { tool = "Glob", input = { pattern = "b*" } }]
[[rule]]
reply = [{ text = "Yes." }]
"#;

// proves WA-02 (part: told; no agent waits)
#[tokio::test]
async fn a_viewer_that_does_not_read_holds_up_nobody_and_is_told() {
    let rig = rig(MANY);
    let runtime = rig.runtime().unwrap();
    let mut agent = runtime.start(&rig.profile, rig.setup.clone());
    let (reading, stopped) = (runtime.watch(), runtime.watch());
    for viewer in [&reading, &stopped] {
        assert!(viewer.watch(WatchTarget::Agent(agent.id), Some(Detail::All)));
    }
    agent.handle.send(prompt("go")).await.unwrap();
    let mut read = 0;
    let end = loop {
        tokio::select! {
            viewed = reading.next() => match viewed {
                Viewed::Event(_) => read += 1,
                Viewed::Behind { lost } => panic!("{lost} events were lost"),
            },
            Some(event) = agent.events.recv() => if let EventKind::Ended(end) = event.kind {
                break end;
            },
        }
    };
    read += events(&reading).len() as u64;
    assert_eq!((end.outcome, end.turns), (Outcome::Completed, 41));
    let [Viewed::Behind { lost }] = seen(&stopped)[..] else {
        panic!("it was not told");
    };
    assert!(lost > 256 && lost <= read, "{lost} of {read}");

    // From then on it sees again what happens.
    agent.handle.send(prompt("again")).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    let last = events(&stopped);
    assert_eq!(said(&last, agent.id), end.text);

    // Who has left sees nothing more.
    drop(reading);
    stopped.watch(WatchTarget::Agent(agent.id), None);
    agent.handle.send(prompt("once more")).await.unwrap();
    until_end(&mut agent).await;
    assert_eq!(seen(&stopped), []);
}

const COMMANDS: &str = r#"
[[rule]]
when.turn = 1
reply = [{ tool = "Bash", input = { command = "echo one; until [ -e go ]; do sleep 0.01; done; echo two" } },
         { tool = "Bash", input = { command = "echo three; until [ -e on ]; do sleep 0.01; done", run_in_background = true } }]
[[rule]]
reply = [{ text = "That was all." }]
"#;

// proves WA-05 (part: foreground; background; detail)
#[tokio::test]
async fn what_commands_print_is_seen_while_they_run() {
    let rig = rig(COMMANDS);
    let runtime = rig.runtime().unwrap();
    let mut agent = runtime.start(&rig.profile, rig.setup.clone());
    let (viewer, news) = (runtime.watch(), runtime.watch());
    viewer.watch(WatchTarget::Agent(agent.id), Some(Detail::All));
    news.watch(WatchTarget::Agent(agent.id), Some(Detail::News));
    agent.handle.send(prompt("go")).await.unwrap();
    let output = async || loop {
        match viewer.next().await {
            Viewed::Event(Event {
                kind: EventKind::Output { call, text, .. },
                ..
            }) => return (call, text),
            Viewed::Event(_) => {}
            Viewed::Behind { lost } => panic!("{lost} events were lost"),
        }
    };
    // The first command waits for this.
    let (first, text) = output().await;
    assert_eq!(text, "one\n");
    std::fs::write(rig.work().join("go"), "").unwrap();
    assert_eq!(output().await, (first.clone(), "two\n".to_owned()));
    // The second goes on after its call.
    let (second, text) = output().await;
    assert_eq!(text, "three\n");
    assert_ne!(first, second);
    std::fs::write(rig.work().join("on"), "").unwrap();
    let (front_end, _) = until_end(&mut agent).await;
    let is_output = |event: &Event| matches!(event.kind, EventKind::Output { .. });
    assert!(!front_end.iter().any(is_output));
    assert!(!events(&news).iter().any(is_output));
}
