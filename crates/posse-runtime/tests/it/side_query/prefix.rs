//! What a side query reads from the cache, and what it leaves of itself: nothing.

use std::sync::Arc;

use posse_port::Ports;
use posse_port::clock::SystemClock;
use posse_protocol::{Purpose, Usage};
use posse_runtime::runtime::Runtime;
use posse_runtime::session::start_error::StartError;
use posse_testkit::rig::farewell;
use posse_testkit::{Rig, scripted};

use super::{SIDE, ask, last, last_message, options, run, told};
use crate::turns::messages;

const TALK: &str = r#"
[[rule]]
when.user = "wants to know where your work stands"
reply = [{ text = "Half of it is done." }]
[[rule]]
when.user = "worth remembering"
reply = [{ text = "Tests need a clock." }]
[[rule]]
when.user = "on the side"
reply = [{ thinking = "Hm." }, { text = "Because of the clock." }]
[[rule]]
reply = [{ thinking = "Well." }, { text = "Done: a reply of some words, so that there is something to be read." }]
"#;

/// A conversation of a few long prompts. What the last request used.
async fn grown(rig: &Rig) -> (posse_runtime::live::handle::Agent, Usage) {
    let mut agent = rig
        .prompted(&format!("0: {}", "words ".repeat(500)))
        .await
        .unwrap();
    let mut usage = run(&mut agent).await;
    for turn in 1..12 {
        usage = told(&mut agent, &format!("{turn}: {}", "words ".repeat(500))).await;
    }
    (agent, usage)
}

// proves FK-13 (part: side question; progress summary; memory; same prefix; no trace)
#[tokio::test]
async fn a_side_query_reads_the_whole_prefix_and_the_agent_goes_on_as_if_it_had_not_been() {
    let (rig, twin) = (Rig::playing(TALK).unwrap(), Rig::playing(TALK).unwrap());
    let ((mut agent, before), (mut other, _)) = (grown(&rig).await, grown(&twin).await);
    let side_answer = ask(&rig, agent.id, "Why is it so?").await;
    assert_eq!(side_answer.answer.unwrap(), "Because of the clock.");
    let usage = side_answer.facts.unwrap().usage;
    assert_eq!(
        usage.cache_read,
        before.prompt(),
        "all that was sent before is read"
    );
    assert_eq!(
        (usage.cache_write_5m, usage.cache_write_1h),
        (0, 0),
        "and nothing is left"
    );
    assert!(
        usage.input < 400,
        "only its reply and the question are new: {usage:?}"
    );
    let runtime = rig.runtime().unwrap();
    assert_eq!(
        runtime
            .progress(agent.id, options())
            .await
            .unwrap()
            .answer
            .unwrap(),
        "Half of it is done."
    );
    let remembered = runtime
        .remember(agent.id, super::desk(&rig), options())
        .await
        .unwrap();
    assert_eq!(remembered.answer.unwrap(), "Tests need a clock.");

    let (next, undisturbed) = (
        told(&mut agent, "go on").await,
        told(&mut other, "go on").await,
    );
    assert_eq!(
        next, undisturbed,
        "what it reads and writes is what it would have been"
    );
    let own = |rig: &Rig| -> Vec<String> {
        let requests = rig.server.requests();
        requests
            .iter()
            .map(|request| messages(&request.body))
            .collect()
    };
    let (sent, alone) = (own(&rig), own(&twin));
    let (side_queries, work): (Vec<_>, Vec<_>) = sent
        .iter()
        .enumerate()
        .partition(|(at, _)| (12..15).contains(at));
    for ((_, sent), alone) in work.iter().zip(&alone) {
        let signed = |text: &str| text.split("signature").count();
        assert_eq!((sent.len(), signed(sent)), (alone.len(), signed(alone)));
        assert!(
            !sent.contains(SIDE) && !sent.contains("Half of it"),
            "no trace: {sent}"
        );
    }
    assert!(
        work.windows(2)
            .all(|pair| pair[1].1.starts_with(pair[0].1.as_str())),
        "each begins as the last"
    );
    assert!(
        side_queries
            .iter()
            .all(|(_, sent)| sent.starts_with(work[11].1.as_str())),
        "so do the side queries"
    );
    let (mine, theirs) = (
        rig.store.read(agent.id).await.unwrap(),
        twin.store.read(other.id).await.unwrap(),
    );
    assert_eq!(mine.entries.len(), theirs.entries.len());
    farewell(agent).await;
    farewell(other).await;
}

// proves FK-13 (part: accounting)
#[tokio::test]
async fn what_a_side_query_takes_is_booked_under_its_purpose() {
    let rig = Rig::playing(TALK).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    run(&mut agent).await;
    let work = rig.store.read(agent.id).await.unwrap().record.charges;
    let runtime = rig.runtime().unwrap();
    let mut taken = ask(&rig, agent.id, "why?").await.charges;
    taken.extend(ask(&rig, agent.id, "and how?").await.charges);
    taken.extend(runtime.progress(agent.id, options()).await.unwrap().charges);
    let remembered = runtime
        .remember(agent.id, super::desk(&rig), options())
        .await
        .unwrap();
    assert_eq!(remembered.unbooked, None);
    taken.extend(remembered.charges);
    let purposes: Vec<Purpose> = taken.iter().map(|charge| charge.purpose).collect();
    assert_eq!(
        purposes,
        [
            Purpose::Question,
            Purpose::Question,
            Purpose::Progress,
            Purpose::Memory
        ]
    );
    let kept = rig.store.read(agent.id).await.unwrap().record.charges;
    for purpose in Purpose::ALL {
        let sum = |charges: &[posse_port::store::Charge]| {
            let of = charges.iter().filter(|charge| charge.purpose == purpose);
            of.fold((Usage::default(), 0), |(usage, cost), charge| {
                (usage + charge.usage, cost + charge.cost.unwrap().pico_usd())
            })
        };
        let expected = if purpose == Purpose::Work {
            sum(&work)
        } else {
            sum(&taken)
        };
        assert_eq!(sum(&kept), expected, "{purpose:?}");
    }
    farewell(agent).await;
}

/// Two calls, the first of which goes on until it is let go.
const AT_WORK: &str = r#"
[[rule]]
when.user = "on the side"
reply = [{ text = "It waits for a file." }]
[[rule]]
when.tool = "ran"
reply = [{ text = "Done." }]
[[rule]]
reply = [
  { text = "I run it." },
  { tool = "Bash", input = { command = "while [ ! -e go ]; do sleep 0.01; done; echo ran" } },
  { tool = "Read", input = { file_path = "a.txt" } },
]
"#;

// proves FK-13 (part: side question)
#[tokio::test]
async fn an_agent_in_the_middle_of_its_calls_can_be_asked() {
    let mut rig = Rig::playing(AT_WORK).unwrap();
    rig.profile.mode = posse_protocol::PermissionMode::BypassPermissions;
    rig.file("a.txt", "a").unwrap();
    let mut agent = rig.prompted(&"words ".repeat(500)).await.unwrap();
    rig.server.wait_for_requests(1).await;
    while rig
        .store
        .read(agent.id)
        .await
        .map_or(true, |found| found.open_calls.is_empty())
    {
        tokio::task::yield_now().await;
    }
    let side_answer = ask(&rig, agent.id, "What are you at?").await;
    assert_eq!(side_answer.answer.unwrap(), "It waits for a file.");
    let first = rig.server.requests()[0].usage.unwrap();
    let usage = side_answer.facts.unwrap().usage;
    assert_eq!(
        (usage.cache_read, usage.cache_write_5m),
        (first.prompt(), 0)
    );
    let said = last_message(&last(&rig));
    let ids: Vec<_> = last(&rig)["messages"][1]["content"].as_array().unwrap()[1..]
        .iter()
        .map(|call| call["id"].clone())
        .collect();
    let answered: Vec<_> = said[..2]
        .iter()
        .map(|result| result["tool_use_id"].clone())
        .collect();
    assert_eq!(answered, ids, "every call has a result, first of all");
    assert_eq!(said[0]["content"], said[1]["content"], "the same for each");
    assert!(
        said[2]["text"].as_str().unwrap().starts_with(SIDE)
            && said[3]["text"] == "What are you at?"
    );

    rig.file("go", "").unwrap();
    let usage = run(&mut agent).await;
    assert_eq!(usage.cache_read, first.prompt());
    let body = String::from_utf8(rig.server.requests()[2].body.to_vec()).unwrap();
    assert!(
        body.contains("ran") && !body.contains(SIDE) && !body.contains("Under way"),
        "{body}"
    );
    farewell(agent).await;
}

#[tokio::test]
async fn bytes_of_another_dialect_are_not_sent() {
    let rig = Rig::playing(TALK).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    run(&mut agent).await;
    let clock = Arc::new(SystemClock::default());
    let url = format!("{}/v1", rig.server.url());
    let model = scripted::openai(&url, clock, posse_model::RetryPolicy::default()).unwrap();
    let runtime = Runtime::new(Ports::new(Arc::new(model), Arc::clone(&rig.store)));
    let refused = runtime.ask(agent.id, "why?", options()).await.unwrap_err();
    assert!(
        matches!(refused, StartError::OtherDialect { .. }),
        "{refused}"
    );
    assert_eq!(rig.server.requests().len(), 1);
    farewell(agent).await;
}
