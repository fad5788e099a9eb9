//! Random sequences of operations: what must hold after each of them.

use super::*;
use crate::edit::grapheme;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Op {
    Insert(String),
    Paste(String),
    Block(usize),
    Image,
    Set(String),
    Replace(usize, usize, String),
    Up(usize),
    Down(usize),
    Plain(usize),
    Roundtrip,
}

type Plain = fn(&mut EditBuffer) -> bool;

const EDITS: [Plain; 9] = [
    EditBuffer::newline,
    EditBuffer::backspace,
    EditBuffer::delete,
    |it: &mut EditBuffer| it.kill(Kill::ToEnd),
    |it: &mut EditBuffer| it.kill(Kill::ToStart),
    |it: &mut EditBuffer| it.kill(Kill::ToBlank),
    |it: &mut EditBuffer| it.kill(Kill::WordLeft),
    |it: &mut EditBuffer| it.kill(Kill::WordRight),
    EditBuffer::yank,
];

const MOVES: [Plain; 8] = [
    |it: &mut EditBuffer| it.go(Motion::Left),
    |it: &mut EditBuffer| it.go(Motion::Right),
    |it: &mut EditBuffer| it.go(Motion::WordLeft),
    |it: &mut EditBuffer| it.go(Motion::WordRight),
    |it: &mut EditBuffer| it.go(Motion::LineStart),
    |it: &mut EditBuffer| it.go(Motion::LineEnd),
    |it: &mut EditBuffer| it.go(Motion::BufferStart),
    |it: &mut EditBuffer| it.go(Motion::BufferEnd),
];

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-c ]{1,12}",
        Just("\u{301}".to_owned()),
        Just("\u{200d}".to_owned()),
        Just("👨\u{200d}👩\u{200d}👧".to_owned()),
        Just("🇩".to_owned()),
        Just("漢字かな カナ".to_owned()),
        Just("שלום".to_owned()),
        Just("\u{600}".to_owned()),
        Just("क्ष".to_owned()),
        Just("\r\n\t\u{1b}\u{e000}\u{100000}\u{202e}".to_owned()),
        ".{0,6}",
    ];
    prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => text().prop_map(Op::Insert),
        2 => text().prop_map(Op::Paste),
        2 => (11..30usize).prop_map(Op::Block),
        1 => Just(Op::Image),
        1 => text().prop_map(Op::Set),
        1 => (0..60usize, 0..60usize, text()).prop_map(|(a, b, text)| Op::Replace(a, b, text)),
        2 => (0..30usize).prop_map(Op::Up),
        2 => (0..30usize).prop_map(Op::Down),
        12 => (0..EDITS.len() + MOVES.len()).prop_map(Op::Plain),
        1 => Just(Op::Roundtrip),
    ]
}

/// A block of which no two are alike, with all that must survive in a block.
fn block(lines: usize, serial: usize) -> String {
    (0..lines)
        .map(|line| format!("<{serial}.{line}>\t\u{e000}\u{100000}\n"))
        .collect()
}

fn apply(buffer: &mut EditBuffer, op: &Op, serial: usize) {
    match op {
        Op::Insert(text) => assert!(buffer.insert(text)),
        Op::Paste(text) => assert_eq!(buffer.paste(text), Paste::Inline),
        Op::Block(lines) => paste_block(buffer, &block(*lines, serial)),
        Op::Image => assert!(buffer.insert_image("png").is_some()),
        Op::Set(text) => assert!(buffer.set(text)),
        Op::Replace(one, two, text) => assert!(buffer.replace(*one.min(two)..*one.max(two), text)),
        Op::Up(width) => {
            let (row, _) = buffer.layout(*width).caret;
            assert_eq!(buffer.up(*width), row > 0);
            assert_eq!(buffer.layout(*width).caret.0, row.saturating_sub(1));
        }
        Op::Down(width) => check_down(buffer, *width),
        Op::Plain(index) => {
            let plain = EDITS.iter().chain(&MOVES).nth(*index).unwrap();
            plain(buffer);
        }
        Op::Roundtrip => {
            let draft = buffer.draft();
            let mut other = EditBuffer::new();
            other.paste(&block(12, usize::MAX));
            assert!(other.restore(&draft));
            assert_eq!(other.expanded(), buffer.expanded());
            assert_eq!(other.cursor(), buffer.cursor());
            assert!(buffer.restore(&draft));
        }
    }
}

fn paste_block(buffer: &mut EditBuffer, block: &str) {
    let at = buffer.cursor();
    let (before, after) = buffer.text().split_at(at);
    let expand = |text: &str| buffer.chips.expanded(text);
    let expected = format!("{}{block}{}", expand(before), expand(after));
    assert!(matches!(buffer.paste(block), Paste::Chip(_)));
    assert_eq!(buffer.expanded(), expected);
}

fn check_down(buffer: &mut EditBuffer, width: usize) {
    let layout = buffer.layout(width);
    let last = layout.caret.0 + 1 == layout.rows.len();
    // The row that only the caret keeps goes away under it, and the rows below move up.
    let row = layout.rows[layout.caret.0];
    let empty =
        row.start == row.end && row.start > 0 && !buffer.text()[..row.start].ends_with('\n');
    assert_eq!(buffer.down(width), !last);
    let expected = if last || empty {
        layout.caret.0
    } else {
        layout.caret.0 + 1
    };
    assert_eq!(buffer.layout(width).caret.0, expected);
}

fn check(buffer: &EditBuffer) {
    let text = buffer.text();
    assert!(text.is_char_boundary(buffer.cursor()));
    assert!(
        grapheme::is_boundary(text, buffer.cursor()),
        "{text:?} {}",
        buffer.cursor()
    );
    assert!(!text.contains(['\r', '\t', '\u{1b}', '\u{e000}', '\u{202e}']));
    for width in [0, 1, 2, 7, 30] {
        let Layout {
            rows,
            caret: (row, column),
        } = buffer.layout(width);
        let width = width.max(1);
        assert!(row < rows.len() && column < width, "{text:?} {width}");
        let mut next = 0;
        for row in &rows {
            assert!(row.start == next || text.as_bytes()[next] == b'\n' && row.start == next + 1);
            assert!(row.width <= width && row.end >= row.start);
            assert!(grapheme::is_boundary(text, row.end));
            buffer.spans(*row, width);
            next = row.end;
        }
        assert_eq!(next, text.len());
    }
    let lengths = buffer.pieces().into_iter().map(|piece| match piece {
        Piece::Text(text) => text.len(),
        Piece::Chip(_) => 4,
    });
    assert_eq!(
        lengths.sum::<usize>(),
        text.len(),
        "each chip in the text is held"
    );
    complete::target(text, buffer.cursor());
}

proptest! {
    #[test]
    fn everything_holds_after_any_operations(ops in prop::collection::vec(op(), 1..40)) {
        let mut buffer = EditBuffer::new();
        for (serial, op) in ops.iter().enumerate() {
            let before = (buffer.text().to_owned(), buffer.expanded());
            let mut alone = buffer.clone();
            alone.settle();
            apply(&mut alone, op, serial);
            check(&alone);
            let changed = alone.text() != before.0;
            let after = (alone.text().to_owned(), alone.expanded());
            if changed {
                prop_assert!(alone.undo());
                check(&alone);
                prop_assert_eq!((alone.text(), alone.expanded()), (&*before.0, before.1.clone()));
                prop_assert!(alone.redo());
                check(&alone);
                prop_assert_eq!((alone.text(), alone.expanded()), (&*after.0, after.1));
            }
            apply(&mut buffer, op, serial);
            check(&buffer);
        }
        let last = buffer.expanded();
        let mut steps = 0;
        while buffer.undo() {
            steps += 1;
            check(&buffer);
        }
        prop_assert!(buffer.is_empty());
        (0..steps).for_each(|_| assert!(buffer.redo()));
        prop_assert_eq!(buffer.expanded(), last.clone());
        prop_assert_eq!(buffer.take(), last);
        prop_assert!(buffer.is_empty() && !buffer.undo());
        buffer.yank();
        check(&buffer);
    }

    #[test]
    fn scores_are_found_exactly_for_subsequences(pattern in "[a-cA/]{0,5}", path in "[a-cA-B/_]{0,12}") {
        let exact = pattern.contains('A');
        let fold = |text: &str| if exact { text.to_owned() } else { text.to_lowercase() };
        let folded = fold(&path);
        let mut rest = folded.chars();
        let occurs = fold(&pattern).chars().all(|wanted| rest.any(|found| found == wanted));
        prop_assert_eq!(fuzzy::score(&pattern, &path).is_some(), occurs);
    }
}
