//! Lines as they arrive, in pieces and of any length.

use posse_protocol::EventKind;
use posse_protocol::wire::line::Lines;
use posse_protocol::wire::{ClientMessage, ServerMessage, ServerReader, WireError};
use proptest::prelude::*;

use crate::round_trip::event;

// proves WR-05 (part: reading)
#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_one_is_read() {
    let input = b"one\ntoo long\n\xff\nfour\n\n12345";
    let too_long = || Err(WireError::TooLong(4));
    let expected = [
        Ok("one".to_owned()),
        too_long(),
        Err(WireError::NotUtf8),
        Ok("four".to_owned()),
        Ok(String::new()),
        too_long(),
    ];
    for size in 1..=input.len() {
        let mut lines = Lines::up_to(4);
        let read: Vec<_> = input
            .chunks(size)
            .flat_map(|chunk| lines.push(chunk))
            .collect();
        assert_eq!(read, expected, "{size}");
        assert_eq!(lines.push(b"6789\nlast\n"), [Ok("last".to_owned())]);
    }
}

proptest! {
    #[test]
    fn messages_are_read_however_they_are_cut(
        texts in proptest::collection::vec("(?s).{0,8}", 0..8),
        size in 1..64_usize,
    ) {
        let messages: Vec<_> = texts.into_iter().map(|text| event(EventKind::Warning(text))).collect();
        let bytes: String = messages.iter().map(|message| message.clone().encode().unwrap()).collect();
        let mut reader = ServerReader::default();
        let read: Vec<_> = bytes.as_bytes().chunks(size).flat_map(|chunk| reader.push(chunk)).collect();
        prop_assert_eq!(read, messages.into_iter().map(Ok).collect::<Vec<_>>());
    }

    #[test]
    fn rubbish_is_an_error_and_never_a_panic(line in "(?s).{0,64}") {
        prop_assert!(ClientMessage::decode(&line).is_err());
        prop_assert!(ServerMessage::decode(&line).is_err());
    }
}
