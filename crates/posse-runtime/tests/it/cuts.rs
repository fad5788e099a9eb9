//! A reply cut at every byte, over a real connection.

use posse_protocol::ContentBlock;
use posse_testkit::{TestClock, scripted};

use crate::calls::{ask, policy, port};

/// About 4 kB on the wire: thinking, text beyond ASCII, two calls, one of them without input.
const REPLY: &str = r#"
reply = [
  { thinking = "First I should look at the file, then decide what to change in it." },
  { text = "I will read the file “größe.rs” and list the directory, both at once, to see what is there. 漢字 too." },
  { tool = "Read", id = "toolu_1", input = { path = "src/größe.rs", limit = 20, deep = { a = [1, 2, 3] } } },
  { tool = "List", id = "toolu_2" },
]
"#;

#[tokio::test]
async fn every_cut_is_noticed_and_retried() {
    let clock = TestClock::default();
    // A first server, to learn what is said and how long it is.
    let whole = scripted::play(&format!("[[rule]]\n{REPLY}")).unwrap();
    let model = scripted::anthropic(&whole.url(), port(&clock), policy()).unwrap();
    let expected = meaning(&ask(&model, &clock, "go").await.result.unwrap().content);
    assert_eq!(expected.len(), 4);
    let request = posse_model::http_client("http://127.0.0.1")
        .unwrap()
        .post(format!("{}/v1/messages", whole.url()))
        .header("anthropic-version", "2026-10-21")
        .header("x-api-key", "test")
        .body(whole.requests()[0].body.clone());
    let length = request.send().await.unwrap().bytes().await.unwrap().len();
    assert!((3500..5000).contains(&length), "{length}");

    let mut script = String::new();
    for at in 0..length {
        let when =
            format!("when.user = 'cut at {at}.'\ntimes = 1\nfault = {{ kind = 'cut', at = {at} }}");
        script.push_str(&format!("[[rule]]\n{when}\n{REPLY}\n"));
    }
    let server = scripted::play(&format!("{script}[[rule]]\n{REPLY}")).unwrap();
    let model = scripted::anthropic(&server.url(), port(&clock), policy()).unwrap();
    for at in 0..length {
        let run = ask(&model, &clock, &format!("cut at {at}.")).await;
        let reply = run.result.unwrap();
        assert_eq!(
            (run.failures, reply.attempts),
            (vec!["cut"], 2),
            "cut at {at}"
        );
        assert_eq!(
            run.received,
            [at as u64],
            "all that was sent before the cut arrived"
        );
        assert_eq!(meaning(&reply.content), expected, "cut at {at}");
    }
}

/// Content without signatures, which differ from server to server.
fn meaning(content: &[ContentBlock]) -> Vec<String> {
    content
        .iter()
        .map(|block| match block {
            ContentBlock::Thinking { thinking, .. } => thinking.clone(),
            other => format!("{other:?}"),
        })
        .collect()
}
