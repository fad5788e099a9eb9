//! A recorded reply, cut and damaged at every byte, and noise.

use posse_port::model::{ModelError, RateLimits, Reply};
use posse_protocol::{ContentBlock, StopReason, Usage};
use proptest::prelude::*;

use super::Assembly;
use crate::dialect::Assembly as _;
use crate::sse::Decoder;

const RECORDED: &[u8] = include_bytes!("recorded.txt");

/// Reads chunks as a connection would hand them over; the stream ends after the last.
fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Reply, ModelError> {
    let (mut decoder, mut assembly) = (Decoder::default(), Assembly::default());
    for chunk in chunks {
        let result = decoder.feed(chunk, |event| {
            assembly.event(event, &mut |_| {}).map_err(Box::new)
        });
        result.map_err(|error| *error)?;
        if assembly.is_complete() {
            return assembly.finish(RateLimits::default());
        }
    }
    Err(ModelError::Cut {
        received: 0,
        source: None,
    })
}

/// The texts of a reply, in order.
fn texts(reply: &Reply) -> Vec<String> {
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text { text } => text.clone(),
        ContentBlock::Thinking {
            thinking,
            signature,
        } => format!("{thinking}{signature}"),
        ContentBlock::ToolUse { id, name, input } => format!("{id}{name}{}", input.get()),
        other => format!("{other:?}"),
    };
    reply.content.iter().map(text).collect()
}

#[test]
fn the_recorded_reply_is_what_it_says() {
    let reply = read([RECORDED]).unwrap();
    assert_eq!(reply.stop, StopReason::ToolUse);
    let [
        ContentBlock::Thinking {
            thinking,
            signature,
        },
        ContentBlock::Text { text },
        read,
        list,
    ] = &reply.content[..]
    else {
        panic!("{:?}", reply.content);
    };
    assert!(thinking.starts_with("First I should look") && !signature.is_empty());
    assert!(text.ends_with("漢字 too."));
    assert!(matches!(read, ContentBlock::ToolUse { id, .. } if id == "toolu_1"));
    assert!(matches!(list, ContentBlock::ToolUse { input, .. } if input.get() == "{}"));
    assert!(
        reply.usage.output > 0 && reply.usage.thinking > 0,
        "{:?}",
        reply.usage
    );
}

#[test]
fn cut_at_every_byte_it_is_never_whole() {
    for at in 0..RECORDED.len() {
        match read([&RECORDED[..at]]) {
            Err(ModelError::Cut { .. }) => {}
            other => panic!("cut at {at}: {other:?}"),
        }
    }
}

#[test]
fn in_any_two_pieces_it_is_the_same() {
    let whole = read([RECORDED]).unwrap();
    for at in 0..RECORDED.len() {
        assert_eq!(
            read([&RECORDED[..at], &RECORDED[at..]]).unwrap(),
            whole,
            "at {at}"
        );
    }
}

/// A byte that is no text is always noticed: as garbage, or as a stream that does not end.
#[test]
fn a_byte_that_is_no_text_is_never_accepted() {
    let mut bytes = RECORDED.to_vec();
    for at in 0..bytes.len() {
        let good = std::mem::replace(&mut bytes[at], 0xff);
        match read([&bytes[..]]) {
            Err(error @ (ModelError::Garbled { .. } | ModelError::Cut { .. })) => {
                assert!(error.retryable())
            }
            other => panic!("damaged at {at}: {other:?}"),
        }
        bytes[at] = good;
    }
}

/// A bit that flips inside a text cannot be noticed, but it can never make a hole: what is accepted
/// has every block, and each is as long as it was, give or take the damaged character.
#[test]
fn a_flipped_bit_never_makes_a_hole() {
    let whole = texts(&read([RECORDED]).unwrap());
    let mut bytes = RECORDED.to_vec();
    let mut accepted = 0;
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            match read([&bytes[..]]) {
                Ok(reply) => {
                    accepted += 1;
                    let found = texts(&reply);
                    assert_eq!(found.len(), whole.len(), "byte {at} bit {bit}");
                    for (found, whole) in found.iter().zip(&whole) {
                        let lost = whole.len().abs_diff(found.len());
                        assert!(lost <= 4, "byte {at} bit {bit}: {found:?} for {whole:?}");
                    }
                }
                Err(ModelError::Garbled { .. } | ModelError::Cut { .. } | ModelError::Api(_)) => {}
                Err(error) => panic!("byte {at} bit {bit}: {error:?}"),
            }
            bytes[at] ^= 1 << bit;
        }
    }
    assert!(accepted > 0, "flips inside texts are accepted");
}

/// The cap on output may fall inside a tool call: that is a reply, without the half call. The same
/// half call with any other end is damage.
#[test]
fn a_call_that_the_cap_cut_is_dropped_and_not_an_error() {
    let text = String::from_utf8(RECORDED.to_vec()).unwrap();
    // All of the first call's input but its last piece, and no second call.
    let last_piece = text
        .match_indices("event: content_block_delta")
        .filter(|(at, _)| text[*at..].contains(r#""index":2"#));
    let (cut, _) = last_piece.last().unwrap();
    let stop = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}\n\n";
    let end = &text[text.find("event: message_delta").unwrap()..];
    let half = format!("{}{stop}{end}", &text[..cut]);
    assert!(matches!(
        read([half.as_bytes()]),
        Err(ModelError::Garbled { .. })
    ));
    let capped = half.replace(
        r#""stop_reason":"tool_use""#,
        r#""stop_reason":"max_tokens""#,
    );
    let reply = read([capped.as_bytes()]).unwrap();
    assert_eq!(
        (reply.stop, reply.content.len()),
        (StopReason::MaxTokens, 2)
    );
}

/// Events of every kind, some of them damaged, in any order.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let events: Vec<Vec<u8>> = RECORDED
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .chain([
            b"event: error\ndata: {\"error\":1}\n\n".to_vec(),
            b"data: [DONE]\n\n".to_vec(),
        ])
        .collect();
    let encoded = prop_oneof![
        6 => prop::sample::select(events),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => Just(b"\n\n".to_vec()),
        1 => Just(b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":18446744073709551615,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\ud800\"}}\n\n".to_vec()),
    ];
    prop::collection::vec(encoded, 1..20).prop_map(|encoded_entries| encoded_entries.concat())
}

/// A million chunks of noise: no panic, and what is held never exceeds what was sent.
#[test]
fn noise_is_survived() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let strategy = (noise(), prop::collection::vec(1_usize..60, 50));
    runner
        .run(&strategy, |(bytes, cuts)| {
            let mut rest = &bytes[..];
            let (mut decoder, mut assembly) = (Decoder::default(), Assembly::default());
            let mut sent = 0;
            // Fifty chunks a case: a stream goes on after an error only here, to see more of it.
            for cut in &cuts {
                let (chunk, after) = rest.split_at((*cut).min(rest.len()));
                rest = if after.is_empty() { &bytes } else { after };
                sent += chunk.len();
                // Errors are what noise is expected to give.
                let _ = decoder.feed(chunk, |event| {
                    assembly.event(event, &mut |_| {}).map_err(Box::new)
                });
                prop_assert!(decoder.held() <= sent, "{} of {sent}", decoder.held());
            }
            let (blocks, Usage { .. }) = assembly.salvage();
            prop_assert!(blocks.len() <= sent);
            Ok(())
        })
        .unwrap();
}
