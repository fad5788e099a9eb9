//! A recorded completion, cut and damaged at every byte, and what compatible servers leave out.

use posse_port::model::{ModelError, RateLimits, Reply};
use posse_protocol::{ContentBlock, RawJson, StopReason};

use super::Assembly;
use crate::dialect::Assembly as _;
use crate::sse::Decoder;

const RECORDED: &[u8] = include_bytes!("recorded.txt");

fn read(bytes: &[u8]) -> Result<Reply, ModelError> {
    let (mut decoder, mut assembly) = (Decoder::default(), Assembly::default());
    let result = decoder.feed(bytes, |event| {
        assembly.event(event, &mut |_| {}).map_err(Box::new)
    });
    result.map_err(|error| *error)?;
    if assembly.is_complete() {
        assembly.finish(RateLimits::default())
    } else {
        Err(ModelError::Cut {
            received: 0,
            source: None,
        })
    }
}

#[test]
fn cut_at_every_byte_it_is_never_whole() {
    assert_eq!(read(RECORDED).unwrap().content.len(), 4);
    for at in 0..RECORDED.len() {
        match read(&RECORDED[..at]) {
            Err(ModelError::Cut { .. }) => {}
            other => panic!("cut at {at}: {other:?}"),
        }
    }
}

#[test]
fn a_damaged_byte_is_never_accepted() {
    let mut bytes = RECORDED.to_vec();
    for at in 0..bytes.len() {
        let good = std::mem::replace(&mut bytes[at], 0xff);
        match read(&bytes) {
            Err(error @ (ModelError::Garbled { .. } | ModelError::Cut { .. })) => {
                assert!(error.retryable())
            }
            other => panic!("damaged at {at}: {other:?}"),
        }
        bytes[at] = good;
    }
}

fn stream(chunks: &[&str]) -> Result<Reply, ModelError> {
    let text: String = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    read(text.as_bytes())
}

/// A stream of chunks that each bring this in `tool_calls`.
fn calls(finish: &str, chunks: &[&str]) -> Result<Vec<String>, ModelError> {
    let delta = |call: &&str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{call}]}}}}]}}"#);
    let mut chunks: Vec<String> = chunks.iter().map(delta).collect();
    chunks.push(format!(
        r#"{{"choices":[{{"delta":{{}},"finish_reason":"{finish}"}}]}}"#
    ));
    chunks.push("[DONE]".into());
    let reply = stream(&chunks.iter().map(String::as_str).collect::<Vec<_>>())?;
    let told = reply.content.iter().map(|block| match block {
        ContentBlock::ToolUse { id, name, input } => format!("{id} {name} {}", input.get()),
        other => format!("{other:?}"),
    });
    Ok(told.collect())
}

#[test]
fn parallel_calls_are_told_apart_however_they_are_numbered() {
    let same_index = [
        r#"{"index":0,"id":"a","function":{"name":"List","arguments":"{}"}}"#,
        r#"{"index":0,"id":"b","function":{"name":"List","arguments":"{}"}}"#,
    ];
    assert_eq!(
        calls("tool_calls", &same_index).unwrap(),
        ["a List {}", "b List {}"]
    );
    let no_index = [
        r#"{"function":{"name":"List"}}"#,
        r#"{"function":{"name":"List"}}"#,
    ];
    assert_eq!(
        calls("stop", &no_index).unwrap(),
        ["call__0 List {}", "call__1 List {}"]
    );
    let interleaved = [
        r#"{"index":0,"id":"a","function":{"name":"Read","arguments":"{\"p\":"}}"#,
        r#"{"index":1,"id":"b","function":{"name":"Read","arguments":"{\"q\":"}}"#,
        r#"{"index":0,"function":{"arguments":"1}"}}"#,
        r#"{"index":1,"id":"","function":{"name":null,"arguments":"2}"}}"#,
    ];
    assert_eq!(
        calls("tool_calls", &interleaved).unwrap(),
        [r#"a Read {"p":1}"#, r#"b Read {"q":2}"#]
    );
}

#[test]
fn a_call_that_the_cap_cut_is_dropped_and_not_an_error() {
    let half = [
        r#"{"index":0,"id":"a","function":{"name":"List","arguments":"{}"}}"#,
        r#"{"index":1,"id":"b","function":{"name":"Write","arguments":"{\"text\":\"lo"}}"#,
    ];
    assert_eq!(calls("length", &half).unwrap(), ["a List {}"]);
    assert!(matches!(
        calls("tool_calls", &half),
        Err(ModelError::Garbled { .. })
    ));
}

#[test]
fn every_optional_field_is_optional() {
    // No id, no model, no usage, no role; finish in the same chunk as the text.
    let bare = stream(&[
        r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]);
    assert_eq!(bare.unwrap().content, [ContentBlock::text("hi")]);
    // A whole call at once, without index, id or arguments, and `stop` for a reason.
    let call = stream(&[
        r#"{"id":"x","choices":[{"delta":{"reasoning":"hm","tool_calls":[{"function":{"name":"List"}}]}}]}"#,
        r#"{"choices":[{"delta":null,"finish_reason":"stop"}]}"#,
        "[DONE]",
    ])
    .unwrap();
    let expected = ContentBlock::ToolUse {
        id: "call_x_0".into(),
        name: "List".into(),
        input: RawJson::empty_object(),
    };
    assert_eq!(
        (&call.content[1], call.stop),
        (&expected, StopReason::ToolUse)
    );
    // Both names for thinking at once.
    let both = stream(&[
        r#"{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]);
    let hm = ContentBlock::Thinking {
        thinking: "hm".into(),
        signature: String::new(),
    };
    assert_eq!(both.unwrap().content, [hm]);
    // An error inside the stream, as an object or as words.
    for error in [
        r#"{"error":{"message":"no memory"}}"#,
        r#"{"error":"no memory"}"#,
    ] {
        let Err(ModelError::Api(error)) = stream(&[error]) else {
            panic!("{error}")
        };
        assert_eq!(error.message, "no memory");
    }
    assert!(matches!(
        stream(&["[DONE]"]),
        Err(ModelError::Garbled { .. })
    ));
}
