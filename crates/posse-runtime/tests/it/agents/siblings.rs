//! Siblings that share a preamble: the first of them writes it to the cache, and the others read it.

use std::sync::Arc;
use std::time::Duration;

use posse_port::store::AgentState;
use posse_protocol::{Command, RunStatus, Usage};
use posse_runtime::definition::agent_type::built_in;
use posse_runtime::live::handle::Agent;
use posse_scripted::Recorded;
use posse_testkit::rig::{prompt, until_end};
use posse_testkit::{Rig, TestClock};

use super::worktrees::repository;
use super::{SECOND, inbox, over, rig, rows, timed, until_over};

const SIBLINGS: usize = 16;

/// So long a client waits for a reply that does not come.
const STALL: Duration = Duration::from_secs(600);

/// So long nobody else is sent while a probe is not answered.
const PROBE: Duration = Duration::from_secs(45);

/// The main agent starts so many in one reply whenever it is told to go; a sibling's reply begins after a
/// second. `more` are rules that come before.
fn script(count: usize, more: &str) -> String {
    let calls = (0..count).map(|number| {
        format!(
            "{{ tool = \"Agent\", input = {{ description = \"no {number}\", prompt = \"Be no {number}.\", \
             run_in_background = true }} }}, "
        )
    });
    format!(
        r#"
{more}
[[rule]]
when.agent = "re:^/main/"
delay_ms = 1000
reply = [{{ text = "I was." }}]
[[rule]]
when.tool = "re:."
reply = [{{ text = "They are at it." }}]
[[rule]]
when.user = "re:^go"
reply = [{}]
[[rule]]
reply = [{{ text = "I see." }}]
"#,
        calls.collect::<String>()
    )
}

/// What siblings have sent.
fn siblings(rig: &Rig) -> Vec<Recorded> {
    let mut requests = rig.server.requests();
    requests.retain(|request| request.header("x-posse-agent") != Some("/main"));
    requests
}

/// How many of them wrote what all share, and how many read it.
fn written_and_read(rig: &Rig) -> (usize, usize) {
    let used: Vec<Usage> = siblings(rig)
        .iter()
        .filter_map(|request| request.usage)
        .collect();
    let wrote = used
        .iter()
        .filter(|usage| usage.cache_read == 0 && usage.cache_write_5m > 1000);
    (
        wrote.count(),
        used.iter().filter(|usage| usage.cache_read > 1000).count(),
    )
}

/// Waits until so many sub-agents are in this state.
async fn until_count(rig: &Rig, agent: &Agent, state: AgentState, count: usize) {
    while rows(rig, agent.id)
        .await
        .iter()
        .filter(|row| row.state == state)
        .count()
        < count
    {
        tokio::task::yield_now().await;
    }
}

/// Lets all that are at it come to their ends.
async fn until_all_over(clock: &TestClock, agent: &mut Agent, mut left: usize) {
    let ends = async {
        while left > 0 {
            left -= usize::from(over(&agent.events.recv().await.unwrap()).is_some());
        }
    };
    tokio::select! {
        () = ends => {}
        () = clock.run_sparing(&[STALL, PROBE]) => {}
    }
}

/// Waits until the main agent has heard of so many ends, and has answered.
async fn until_told(rig: &Rig, clock: &TestClock, agent: &Agent, ends: usize) {
    let told = async {
        loop {
            let mail = inbox(rig, agent.id, agent.id).await;
            let state = rig.store.read(agent.id).await.unwrap().record.state;
            if mail.iter().filter(|mail| mail.shown_in.is_some()).count() == ends
                && state == AgentState::Idle
            {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = told => {}
        () = clock.run_sparing(&[STALL, PROBE]) => {}
    }
}

/// Starts siblings, and waits until one of them calls and the others wait for it.
async fn started(rig: &Rig, clock: &TestClock) -> Agent {
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.live, SIBLINGS);
    clock.asleep_for(SECOND).await;
    until_count(rig, &agent, AgentState::Created, SIBLINGS - 1).await;
    assert_eq!(siblings(rig).len(), 1, "one goes alone");
    agent
}

// proves FK-05 (part: other siblings)
#[tokio::test]
async fn one_of_many_writes_what_all_share() {
    let (rig, clock) = timed(&script(SIBLINGS, ""));
    let mut agent = started(&rig, &clock).await;
    clock.advance(SECOND);
    clock.many_asleep_for(SECOND, SIBLINGS - 1).await;
    until_all_over(&clock, &mut agent, SIBLINGS).await;
    assert_eq!(written_and_read(&rig), (1, SIBLINGS - 1));
}

/// With fewer places than siblings, nobody holds one while it waits for another.
#[tokio::test]
async fn who_waits_for_a_sibling_takes_no_place() {
    let (mut rig, clock) = timed(&script(SIBLINGS, ""));
    rig.setup.spawning.running = 2;
    let mut agent = started(&rig, &clock).await;
    clock.advance(SECOND);
    clock.many_asleep_for(SECOND, 2).await;
    until_all_over(&clock, &mut agent, SIBLINGS).await;
    assert_eq!(written_and_read(&rig), (1, SIBLINGS - 1));
}

// proves FK-05 (part: a first one that fails)
#[tokio::test]
async fn the_next_writes_the_cache_when_the_first_fails() {
    let overloaded = r#"
[[rule]]
when.agent = "re:^/main/"
times = 1
fault = { kind = "status", status = 529, type = "overloaded_error", retry_after = "60" }
"#;
    let (rig, clock) = timed(&script(SIBLINGS, overloaded));
    let mut agent = rig.prompted("go").await.unwrap();
    until_all_over(&clock, &mut agent, SIBLINGS).await;
    let all = siblings(&rig);
    assert_eq!(all.len(), SIBLINGS + 1);
    // The provider asks all to wait; then one goes, and the others when its reply has begun.
    let gap = |later: usize, earlier: usize| all[later].at_us - all[earlier].at_us;
    assert!(gap(1, 0) >= 60_000_000);
    assert!(gap(2, 1) >= 1_000_000);
    assert_eq!(written_and_read(&rig), (1, SIBLINGS - 1));
}

// proves FK-05 (part: a first one that fails)
#[tokio::test]
async fn the_next_goes_at_once_when_the_first_is_stopped() {
    let (rig, clock) = timed(&script(SIBLINGS, ""));
    let mut agent = started(&rig, &clock).await;
    let path = siblings(&rig)[0]
        .header("x-posse-agent")
        .unwrap()
        .to_owned();
    let all = rows(&rig, agent.id).await;
    let first = all.iter().find(|row| row.path == path).unwrap();
    let waits = all.iter().find(|row| row.path != path).unwrap();
    // Who waits is stopped like anybody else, and nobody waits for it.
    for stopped in [waits, first] {
        agent
            .handle
            .send(Command::StopRun(stopped.agent.uuid()))
            .await
            .unwrap();
        let (_, end) = until_over(&mut agent, &stopped.origin.as_ref().unwrap().description).await;
        assert_eq!(end.status, RunStatus::Killed);
    }
    while siblings(&rig).len() < 2 {
        tokio::task::yield_now().await;
    }
    until_count(&rig, &agent, AgentState::Created, SIBLINGS - 3).await;
    until_all_over(&clock, &mut agent, SIBLINGS - 2).await;
    let sent = siblings(&rig);
    assert_eq!(sent.len(), SIBLINGS - 1);
    assert!(
        sent.iter()
            .all(|request| request.header("x-posse-agent") != Some(waits.path.as_str()))
    );
    let read = sent[2..]
        .iter()
        .filter(|request| request.usage.unwrap().cache_read > 1000)
        .count();
    assert_eq!(
        read,
        SIBLINGS - 3,
        "all after the second read what that has written"
    );
}

// proves FK-05 (part: other siblings)
#[tokio::test]
async fn nobody_waits_for_what_can_be_read_until_the_cache_forgets() {
    let (rig, clock) = timed(&script(3, ""));
    let mut agent = rig.prompted("go").await.unwrap();
    let mut told = 0;
    // What the main agent hears may make it wait some seconds more.
    for (gap, at_once) in [(0, 1), (250, 3), (400, 1)] {
        if gap > 0 {
            clock.advance(gap * SECOND);
            agent.handle.send(prompt("go on")).await.unwrap();
        }
        until_end(&mut agent).await;
        clock.many_asleep_for(SECOND, at_once).await;
        until_count(&rig, &agent, AgentState::Created, 3 - at_once).await;
        until_all_over(&clock, &mut agent, 3).await;
        told += 3;
        until_told(&rig, &clock, &agent, told).await;
    }
    assert_eq!(written_and_read(&rig), (2, 7));
}

/// How much of the first requests of all siblings is the same, and how long the longest is.
fn shared(rig: &Rig) -> (usize, usize) {
    let sent = siblings(rig);
    let first = &sent[0].body;
    let common = |other: &Recorded| {
        first
            .iter()
            .zip(&other.body)
            .take_while(|(one, two)| one == two)
            .count()
    };
    (
        sent[1..].iter().map(common).min().unwrap(),
        sent.iter().map(|request| request.body.len()).max().unwrap(),
    )
}

/// Siblings with different prompts, and what else their calls say; their types may begin with a prompt too.
async fn shared_by(mut rig: Rig, initial: Option<&str>) -> (usize, usize) {
    let mut types = built_in();
    types
        .iter_mut()
        .for_each(|kind| kind.initial_prompt = initial.map(str::to_owned));
    rig.setup.spawning.types = Arc::new(types.into());
    let mut agent = rig.prompted("go").await.unwrap();
    until_all_over(&TestClock::default(), &mut agent, SIBLINGS).await;
    shared(&rig)
}

#[tokio::test]
async fn what_siblings_differ_in_comes_last() {
    let schema =
        r#"output_schema = { type = "object", properties = { answer = { type = "string" } } }, "#;
    let apart = r#"isolation = "worktree", "#;
    let script = |more: &str| {
        let at_once = script(SIBLINGS, "")
            .replace("delay_ms = 1000\n", "")
            .replace("I was.", "{}");
        at_once.replace("prompt =", &format!("{more}prompt ="))
    };
    for (more, initial) in [
        ("", None),
        (schema, None),
        (schema, Some("Look around first.")),
    ] {
        let (same, whole) = shared_by(rig(&script(more)), initial).await;
        assert!(
            same as f64 >= 0.995 * whole as f64,
            "{same} of {whole}: {more} {initial:?}"
        );
    }
    // Where each works is its own, and of what it is told about that nothing else comes after.
    let both = [apart, schema].concat();
    let (same, whole) = shared_by(repository(&script(&both)), Some("Look around first.")).await;
    assert!(whole - same < 250, "{same} of {whole}, in worktrees");
}

/// One that hangs must not hold up all others.
#[tokio::test]
async fn nobody_waits_for_one_that_hangs() {
    let hangs = r#"
[[rule]]
when.agent = "re:^/main/"
times = 1
fault = { kind = "stall" }
"#;
    let (rig, clock) = timed(&script(SIBLINGS, hangs));
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.live, SIBLINGS);
    clock.many_asleep_for(15 * SECOND, SIBLINGS - 1).await;
    assert_eq!(siblings(&rig).len(), 1);
    clock.advance(15 * SECOND);
    clock.many_asleep_for(SECOND, SIBLINGS - 1).await;
    assert_eq!(siblings(&rig).len(), SIBLINGS, "all go");
    agent.handle.send(Command::StopRuns).await.unwrap();
    let mut ended = 0;
    while ended < SIBLINGS {
        ended += usize::from(over(&agent.events.recv().await.unwrap()).is_some());
    }
}
