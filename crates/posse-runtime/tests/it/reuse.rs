//! What an agent's calls read from the cache, for how long it is kept there, and what was missed.

use std::sync::Arc;
use std::time::Duration;

use posse_protocol::{Event, EventKind, Missed, PermissionMode, ReplyFacts};
use posse_runtime::live::handle::Agent;
use posse_testkit::rig::{farewell, prompt, until_end};
use posse_testkit::{Rig, TestClock, scripted};

const MINUTE: Duration = Duration::from_secs(60);

const TALK: &str = "[[rule]]\nreply = [{ text = 'yes' }]\n";

fn rig(script: &str) -> (Rig, TestClock) {
    let clock = TestClock::default();
    let server = scripted::play_on(&clock, script).unwrap();
    let mut rig = Rig::with(server, Arc::new(clock.clone())).unwrap();
    rig.profile.mode = PermissionMode::BypassPermissions;
    (rig, clock)
}

/// What is told of the replies in a run.
async fn replies(agent: &mut Agent) -> Vec<ReplyFacts> {
    let (events, _) = until_end(agent).await;
    let facts = |event: Event| match event.kind {
        EventKind::Entry(entry) => entry.reply,
        _ => None,
    };
    events.into_iter().filter_map(facts).collect()
}

/// The one reply to a prompt.
async fn asked(agent: &mut Agent) -> ReplyFacts {
    agent.handle.send(prompt("more")).await.unwrap();
    replies(agent).await.remove(0)
}

fn expired(before: &ReplyFacts) -> Option<Missed> {
    Some(Missed {
        tokens: before.usage.prompt(),
        why: "expired".into(),
    })
}

// proves FK-06 (part: expiry; the TTL)
// proves FK-08 (part: why)
#[tokio::test]
async fn who_is_asked_every_twenty_minutes_misses_once() {
    let (rig, clock) = rig(TALK);
    let mut agent = rig.prompted("go").await.unwrap();
    let mut last = replies(&mut agent).await.remove(0);
    assert!(last.usage.cache_write_5m > 1000 && last.usage.cache_write_1h == 0);
    assert_eq!(last.missed, None);
    clock.advance(20 * MINUTE);
    let second = asked(&mut agent).await;
    assert_eq!(
        (second.usage.cache_read, &second.missed),
        (0, &expired(&last))
    );
    assert!(second.usage.cache_write_1h > 1000 && second.usage.cache_write_5m == 0);
    last = second;
    for _ in 0..3 {
        clock.advance(20 * MINUTE);
        let next = asked(&mut agent).await;
        assert_eq!(
            (next.usage.cache_read, &next.missed),
            (last.usage.prompt(), &None)
        );
        last = next;
    }
    // What was measured is known to whoever takes it up.
    let id = agent.id;
    farewell(agent).await;
    let mut agent = rig
        .another()
        .unwrap()
        .resume(id, None, rig.setup.clone())
        .await
        .unwrap();
    clock.advance(40 * MINUTE);
    let next = asked(&mut agent).await;
    assert_eq!(
        (next.usage.cache_read, &next.missed),
        (last.usage.prompt(), &None)
    );
    assert!(next.usage.cache_write_1h > 0 && next.usage.cache_write_5m == 0);
    // Not even an hour is enough, and that is said too.
    clock.advance(61 * MINUTE);
    let late = asked(&mut agent).await;
    assert_eq!((late.usage.cache_read, &late.missed), (0, &expired(&next)));
    let stored = rig.store.read(id).await.unwrap().entries;
    assert_eq!(
        stored.last().unwrap().entry.reply.as_ref().unwrap().missed,
        late.missed
    );
}

// proves FK-08 (part: why)
#[tokio::test]
async fn what_expired_while_nobody_was_here_is_missed_too() {
    let (rig, clock) = rig(TALK);
    let mut agent = rig.prompted("go").await.unwrap();
    let first = replies(&mut agent).await.remove(0);
    let id = agent.id;
    farewell(agent).await;
    clock.advance(6 * MINUTE);
    let mut agent = rig
        .another()
        .unwrap()
        .resume(id, None, rig.setup.clone())
        .await
        .unwrap();
    assert_eq!(asked(&mut agent).await.missed, expired(&first));
}

// proves FK-08 (part: read and written)
#[tokio::test]
async fn turns_that_follow_each_other_miss_nothing() {
    let glob = r#"{ tool = "Glob", input = { pattern = "*" } }, "#;
    let script = format!(
        "[[rule]]\nwhen.turn = 10\nreply = [{}]\n[[rule]]\nwhen.turn = 20\n{}\n[[rule]]\nreply = [{glob}]\n",
        glob.repeat(30),
        "reply = [{ text = 'yes' }]",
    );
    let (rig, clock) = rig(&script);
    let mut agent = rig.prompted("go").await.unwrap();
    let replies = replies(&mut agent).await;
    assert_eq!(replies.len(), 20);
    for (turn, pair) in replies.windows(2).enumerate() {
        let (read, left) = (pair[1].usage.cache_read, pair[0].usage.prompt());
        assert_eq!((read, &pair[1].missed), (left, &None), "turn {}", turn + 2);
    }
    drop(clock);
}
