//! What was sent once is sent again byte for byte, whatever was said: random conversations, their forks, and
//! the same in another process.

use std::fmt::Write as _;
use std::sync::Arc;

use posse_port::BoxFuture;
use posse_port::tool::{
    FollowUp, Intent, Subject, Tool, ToolContext, ToolError, ToolOutput, Workspace,
};
use posse_protocol::{
    Command, ContentBlock, Outcome, PermissionMode, RawJson, ToolContent, ToolSpec, Usage,
};
use posse_runtime::live::handle::Agent;
use posse_scripted::Recorded;
use posse_testkit::Rig;
use posse_testkit::rig::{farewell, until_end};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use serde_json::value::RawValue;

/// Takes any object and answers what it was given, sometimes with an image, sometimes as a failure.
struct Echo;

impl Tool for Echo {
    fn name(&self) -> &str {
        "Echo"
    }

    fn spec(&self) -> ToolSpec {
        let input_schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
        ToolSpec {
            name: "Echo".into(),
            description: "Says it again.".into(),
            input_schema,
        }
    }

    fn intent(&self, input: &RawJson, _: &Workspace) -> Result<Intent, ToolError> {
        let title = "Echo".to_owned();
        let beside_others = !input.get().len().is_multiple_of(5);
        Ok(Intent {
            read_only: true,
            beside_others,
            subject: Subject::Nothing,
            waits: false,
            title,
        })
    }

    fn run(
        &self,
        input: RawJson,
        _: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let image = || ToolContent::Image {
            media_type: "image/png".into(),
            data: "iVBORw0KGgo=".into(),
        };
        let text = ToolContent::text(input.get());
        let content = match input.get().len() % 4 {
            0 => vec![text, image()],
            1 => vec![image()],
            2 => {
                return Box::pin(std::future::ready(Err(ToolError::Tell(
                    input.get().to_owned(),
                ))));
            }
            _ => vec![text],
        };
        Box::pin(std::future::ready(Ok(ToolOutput {
            content,
            answer: None,
            then: FollowUp::Nothing,
        })))
    }
}

/// Whatever people and models write.
fn text() -> impl Strategy<Value = String> {
    let odd = [
        "",
        " \n",
        "plain words",
        "\u{1F980}\u{1D518} \u{1F469}\u{200D}\u{1F469}\u{200D}\u{1F467}",
        "e\u{301}\u{327} \u{e9} \u{5d0}\u{202e}\u{2066}",
        "\u{0}\u{1}\u{1b}[31m\u{7f}\u{85}\u{a0}\u{2028}\u{2029}\u{feff}\u{fffd}\r\n\t",
        r#""quoted" \ \\ \u0041 \/ </text> &amp; ]},{"role":"user""#,
        "\u{10ffff}\u{e000}\u{fffe}",
    ];
    let odd = prop::sample::select(odd.to_vec()).prop_map(str::to_owned);
    prop_oneof![odd, "\\PC{1,30}", any::<String>()]
}

/// A JSON object as a model may type it: keys in any order, spaces anywhere, odd numbers and escapes.
fn typed() -> impl Strategy<Value = String> {
    let leaf = [
        "1.50",
        "-0",
        "1E+2",
        "10000000000000000000000000000000000000001",
        "true",
        "null",
        r#""\u00e9\/\ud83e\udd80""#,
        "[ ]",
        "[1 ,\n2]",
    ];
    let leaf = prop_oneof![
        prop::sample::select(leaf.to_vec()).prop_map(str::to_owned),
        text().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    let key = prop_oneof![
        prop::sample::select(vec!["b", "a", "z", "file_path", "A", "\u{e9}"])
            .prop_map(str::to_owned),
        text()
    ];
    let space = || prop::sample::select(vec!["", "", " ", "  ", "\n\t", "\r\n "]);
    let object = move |value: BoxedStrategy<String>| {
        let field = (key.clone(), value, space(), space(), space());
        let field = field.prop_map(|(key, value, before, around, after)| {
            format!(
                "{before}{}{around}:{after}{value}{around}",
                serde_json::to_string(&key).unwrap()
            )
        });
        (prop::collection::vec(field, 0..5), space())
            .prop_map(|(fields, end)| format!("{{{}{end}}}", fields.join(",")))
    };
    let inner = object(leaf.clone().boxed());
    object(prop_oneof![4 => leaf, 1 => inner].boxed())
}

/// What a model says before it is answered.
#[derive(Clone, Debug)]
struct Reply {
    thinking: Option<String>,
    redacted: bool,
    text: String,
    calls: Vec<String>,
}

fn reply() -> impl Strategy<Value = Reply> {
    let calls = prop_oneof![3 => 1..4_usize, 1 => 4..31_usize];
    let calls = calls.prop_flat_map(|count| prop::collection::vec(typed(), count));
    (prop::option::of(text()), any::<bool>(), text(), calls).prop_map(
        |(thinking, redacted, text, calls)| Reply {
            thinking,
            redacted,
            text,
            calls,
        },
    )
}

/// What a person says, and what the model makes of it before it ends.
#[derive(Clone, Debug)]
struct Round {
    words: Vec<ContentBlock>,
    replies: Vec<Reply>,
    last: String,
}

fn round() -> impl Strategy<Value = Round> {
    let image = || ContentBlock::Image {
        media_type: "image/png".into(),
        data: "iVBORw0KGgo=".into(),
    };
    let word = prop_oneof![3 => text().prop_map(ContentBlock::text), 1 => Just(()).prop_map(move |()| image())];
    (
        prop::collection::vec(word, 1..4),
        prop::collection::vec(reply(), 0..4),
        text(),
    )
        .prop_map(|(words, replies, last)| Round {
            words,
            replies,
            last,
        })
}

/// A conversation: some rounds, one that forks, and some in another process.
#[derive(Clone, Debug)]
struct Story {
    before: Vec<Round>,
    /// The reply that asks for forks, what they are told, and what they say first.
    split: Reply,
    directives: Vec<String>,
    forked: Reply,
    after: Vec<Round>,
}

fn story() -> impl Strategy<Value = Story> {
    (
        prop::collection::vec(round(), 1..4),
        reply(),
        prop::collection::vec(text(), 1..4),
        reply(),
        prop::collection::vec(round(), 1..3),
    )
        .prop_map(|(before, split, directives, forked, after)| Story {
            before,
            split,
            directives,
            forked,
            after,
        })
}

/// A text as TOML has it, without the braces that scripts fill.
fn toml(text: &str) -> String {
    // Each brace apart: three in a row would leave two.
    serde_json::to_string(&text.replace('{', "{ "))
        .unwrap()
        .replace('\u{7f}', "\\u007f")
}

impl Reply {
    fn blocks(&self, more: &[String]) -> String {
        let mut blocks = Vec::new();
        if let Some(thinking) = &self.thinking {
            blocks.push(format!("{{ thinking = {} }}", toml(thinking)));
        }
        if self.redacted {
            blocks.push("{ redacted_thinking = 'sealed' }".to_owned());
        }
        blocks.push(format!("{{ text = {} }}", toml(&self.text)));
        blocks.extend(
            self.calls
                .iter()
                .map(|typed| format!("{{ tool = 'Echo', json = {} }}", toml_of_json(typed))),
        );
        blocks.extend(more.iter().cloned());
        blocks.join(", ")
    }
}

/// Nothing is filled in here.
fn toml_of_json(typed: &str) -> String {
    serde_json::to_string(typed)
        .unwrap()
        .replace('\u{7f}', "\\u007f")
}

impl Story {
    fn script(&self) -> String {
        let mut script =
            String::from("[[rule]]\nwhen.agent = 're:^/main/'\nwhen.state = { said = '1' }\n");
        script.push_str("reply = [{ text = 'Scope: all of it.' }]\n");
        script.push_str("[[rule]]\nwhen.agent = 're:^/main/'\nset = { said = '1' }\n");
        writeln!(script, "reply = [{}]", self.forked.blocks(&[])).unwrap();
        let mut turn = 0;
        let mut rule = |blocks: &str| {
            turn += 1;
            writeln!(script, "[[rule]]\nwhen.turn = {turn}\nreply = [{blocks}]").unwrap();
        };
        let rounds = |rounds: &[Round], rule: &mut dyn FnMut(&str)| {
            for round in rounds {
                round
                    .replies
                    .iter()
                    .for_each(|reply| rule(&reply.blocks(&[])));
                rule(&format!(
                    "{{ text = {} }}",
                    toml(&format!("done {}", round.last))
                ));
            }
        };
        rounds(&self.before, &mut rule);
        let fork = |directive: &String| {
            let prompt = toml(&format!("Look. {directive}"));
            format!(
                "{{ tool = 'Agent', input = {{ subagent_type = 'fork', prompt = {prompt}, description = 'x' }} }}"
            )
        };
        rule(
            &self
                .split
                .blocks(&self.directives.iter().map(fork).collect::<Vec<_>>()),
        );
        rule("{ text = 'All told.' }");
        rounds(&self.after, &mut rule);
        script
    }
}

/// A request as the prompt cache sees it: what stays, and the messages. Marks are no part of it, nor is what
/// stands between the two and belongs to no prompt.
#[derive(Debug)]
struct Sent {
    preamble: String,
    messages: String,
    usage: Usage,
}

impl Sent {
    fn of(request: &Recorded) -> Self {
        let mut body = String::from_utf8(request.body.to_vec()).unwrap();
        for ttl in ["", r#","ttl":"1h""#] {
            body = body.replace(
                &format!(r#","cache_control":{{"type":"ephemeral"{ttl}}}"#),
                "",
            );
        }
        assert_eq!(request.status, 200, "{body}");
        let (preamble, rest) = body.split_once(r#","max_tokens":"#).unwrap();
        let (_, messages) = rest.split_once(r#","messages":["#).unwrap();
        let messages = messages.strip_suffix("]}").unwrap().to_owned();
        Self {
            preamble: preamble.to_owned(),
            messages,
            usage: request.usage.unwrap(),
        }
    }

    /// Whether all of this one is how `next` begins, and whether the cache knew it.
    fn begins(&self, next: &Self) -> Result<(), TestCaseError> {
        prop_assert_eq!(&self.preamble, &next.preamble);
        let more = next.messages.strip_prefix(&self.messages);
        prop_assert!(
            more.is_some_and(|more| more.starts_with(",{")),
            "{}\nis not how this begins:\n{}",
            self.messages,
            next.messages
        );
        // A first image among the words makes other messages of all, as the provider counts.
        if self.has_image() || !next.has_image() {
            prop_assert!(
                next.usage.cache_read >= self.usage.prompt(),
                "{:?} {:?}",
                self.usage,
                next.usage
            );
        }
        Ok(())
    }

    fn has_image(&self) -> bool {
        let messages: Vec<Value> = serde_json::from_str(&format!("[{}]", self.messages)).unwrap();
        let blocks = messages
            .iter()
            .filter_map(|message| message["content"].as_array())
            .flatten();
        blocks.into_iter().any(|block| block["type"] == "image")
    }
}

fn by(requests: &[Recorded], path: &str) -> Vec<Sent> {
    let own = requests
        .iter()
        .filter(|request| request.header("x-posse-agent") == Some(path));
    own.map(Sent::of).collect()
}

async fn play(agent: &mut Agent, rounds: &[Round]) {
    for round in rounds {
        agent
            .handle
            .send(Command::Prompt(round.words.clone()))
            .await
            .unwrap();
        let (_, end) = until_end(agent).await;
        assert_eq!(end.outcome, Outcome::Completed);
    }
}

async fn check(story: Story) -> Result<(), TestCaseError> {
    let mut rig = Rig::playing(&story.script()).unwrap().agents();
    rig.profile.mode = PermissionMode::BypassPermissions;
    rig.setup.limits.max_tokens = 60_000;
    rig.setup.tools.extend([Arc::new(Echo) as Arc<dyn Tool>]);
    let split = Round {
        words: vec![ContentBlock::text("Split it.")],
        ..story.before[0].clone()
    };
    let mut agent = rig
        .runtime()
        .unwrap()
        .start(&rig.profile, rig.setup.clone());
    play(&mut agent, &story.before).await;
    let before = rig.server.requests().len();
    play(&mut agent, &[split]).await;
    let id = agent.id;
    farewell(agent).await;
    // As another process would.
    let mut agent = rig
        .another()
        .unwrap()
        .resume(id, None, rig.setup.clone())
        .await
        .unwrap();
    play(&mut agent, &story.after).await;

    let requests = rig.server.requests();
    let main = by(&requests, "/main");
    for pair in main.windows(2) {
        pair[0].begins(&pair[1])?;
    }
    let (asked, answered) = (&main[before], &main[before + 1]);
    let rest = &answered.messages[asked.messages.len() + 1..];
    let reply = serde_json::Deserializer::from_str(rest)
        .into_iter::<&RawValue>()
        .next()
        .unwrap()
        .unwrap();
    let begins = format!(
        r#"{},{},{{"role":"user","content":["#,
        asked.messages,
        reply.get()
    );
    let mut paths: Vec<&str> = requests
        .iter()
        .filter_map(|it| it.header("x-posse-agent"))
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths.retain(|path| *path != "/main");
    prop_assert_eq!(paths.len(), story.directives.len());
    for path in paths {
        let own = by(&requests, path);
        asked.begins(&own[0])?;
        prop_assert!(
            own[0].messages.starts_with(&begins),
            "not after the reply that asked for it"
        );
        prop_assert_eq!(own.len(), 2);
        own[0].begins(&own[1])?;
    }
    farewell(agent).await;
    Ok(())
}

// proves TU-07 (part: byte for byte)
// proves FK-01 (part: the parent's bytes)
#[test]
fn every_request_begins_with_the_bytes_of_the_one_before() {
    let config = ProptestConfig {
        cases: 16,
        max_shrink_iters: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    TestRunner::new(config)
        .run(&story(), |story| runtime.block_on(check(story)))
        .unwrap();
}
