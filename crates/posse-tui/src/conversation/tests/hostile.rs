//! Text that wants to be more than text, at every place where a conversation shows it.

use posse_protocol::{EntryKind, EventKind, ListKind, ListedName, Listing, RawJson};

use super::screens::{run, run_end};
use super::*;
use crate::fixtures;
use crate::terminal::{InlineTerminal, text_bytes};
use crate::text::tame::tests::PAYLOADS;

/// Sizes of screens.
const SIZES: [(u16, u16); 4] = [(120, 40), (80, 24), (40, 12), (20, 5)];

/// Shows a text everywhere, and returns all bytes that are written for it.
fn shown(text: &str, (columns, rows): (u16, u16)) -> Vec<u8> {
    let mut talk = Talk::new(columns, rows);
    let mut terminal = InlineTerminal::new(crate::theme::Theme::ansi());
    let mut bytes = Vec::new();
    let mut draw = |talk: &mut Talk| {
        let frame = view(&mut talk.state, talk.now_ms);
        bytes.extend(terminal.draw(frame, talk.now_ms));
    };
    talk.works();
    talk.event(EventKind::Delta(Delta::Text(text.into())));
    draw(&mut talk);
    talk.event(reply(0, text));
    let prompt = entry(1, EntryKind::Prompt, vec![ContentBlock::text(text)]);
    talk.event(EventKind::Entry(Box::new(prompt)));
    talk.event(EventKind::CallStarted {
        call: "c".into(),
        tool: text.into(),
        title: text.into(),
    });
    talk.event(EventKind::Output {
        call: "c".into(),
        text: text.into(),
        skipped: 0,
    });
    draw(&mut talk);
    let results = entry(2, EntryKind::Results, vec![result("c", text, false)]);
    talk.event(EventKind::Entry(Box::new(results)));
    talk.event(run(9, "helper", text));
    draw(&mut talk);
    talk.event(run_end(9, "helper", text));
    talk.event(EventKind::Warning(text.into()));
    talk.input(Input::Notice(text.into()));
    draw(&mut talk);
    talk.input(Input::Paste(text.into()));
    draw(&mut talk);
    let name = ListedName {
        name: text.into(),
        about: text.into(),
    };
    talk.input(Input::Draft("@".into()));
    talk.event(EventKind::Listed(Box::new(Listing {
        what: ListKind::Files,
        part: String::new(),
        names: vec![name],
        left_out: 0,
    })));
    draw(&mut talk);
    talk.asks(Question {
        tool: text.into(),
        why: text.into(),
        from: Some(text.into()),
        input: RawJson::from(&serde_json::json!({ "command": text })),
        ..fixtures::question("c")
    });
    talk.wait(1000);
    draw(&mut talk);
    talk.press("Tab");
    draw(&mut talk);
    bytes.extend(terminal.leave(&[], columns, talk.now_ms));
    bytes
}

/// Checks that bytes are printable, but for the sequences that posse itself writes.
fn check(bytes: &[u8], payload: &str) {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_control() && c != '\r' && c != '\n') {
        let Some(sequence) = rest[at..].strip_prefix("\x1b[") else {
            panic!(
                "{:?} after {payload:?}",
                &rest[at..].chars().take(9).collect::<String>()
            );
        };
        let end = sequence
            .find(|c: char| c.is_ascii_alphabetic())
            .expect("a sequence has an end");
        let (parameters, kind) = (&sequence[..end], &sequence[end..=end]);
        let is_known = match kind {
            "h" | "l" => ["?2026", "?25", "?7"].contains(&parameters),
            "A" | "B" | "C" | "G" | "J" | "K" | "X" | "m" => {
                parameters.chars().all(|c| c.is_ascii_digit() || c == ';')
            }
            _ => false,
        };
        assert!(is_known, "{parameters}{kind} after {payload:?}");
        rest = &sequence[end + 1..];
    }
}

// proves UI-10
#[test]
fn nothing_from_outside_is_more_than_text() {
    for payload in PAYLOADS {
        for size in SIZES {
            check(&shown(payload, size), payload);
        }
        let line = Line::raw((*payload).to_owned());
        let plain = text_bytes(&[line]);
        assert!(!plain.iter().any(|byte| *byte < 0x20 && *byte != b'\n'));
    }
}
