//! What each key does to the text, one case after another. `|` marks the cursor.

use super::*;

const FAMILY: &str = "👨\u{200d}👩\u{200d}👧";

fn marked(text: &str) -> EditBuffer {
    let (before, after) = text.split_once('|').unwrap();
    let mut buffer = EditBuffer::new();
    assert!(buffer.set(&format!("{before}{after}")));
    while buffer.cursor() > before.len() {
        assert!(buffer.go(Motion::Left));
    }
    assert_eq!(buffer.cursor(), before.len(), "not a boundary");
    buffer
}

fn shown(buffer: &EditBuffer) -> String {
    let (before, after) = buffer.text().split_at(buffer.cursor());
    format!("{before}|{after}")
}

/// Applies the key once per step; a key that returns false changes nothing.
#[track_caller]
fn check(key: fn(&mut EditBuffer) -> bool, steps: &[&str]) {
    let mut buffer = marked(steps[0]);
    for step in &steps[1..] {
        assert!(key(&mut buffer), "before {step:?}");
        assert_eq!(shown(&buffer), *step);
    }
}

#[track_caller]
fn check_end(key: fn(&mut EditBuffer) -> bool, steps: &[&str]) {
    check(key, steps);
    let mut buffer = marked(steps[steps.len() - 1]);
    assert!(!key(&mut buffer));
    assert_eq!(shown(&buffer), steps[steps.len() - 1]);
}

#[test]
fn left_and_right_go_by_graphemes() {
    let text = |at: usize| {
        let mut parts = ["a", "漢", FAMILY, "e\u{301}", "\n", "🇩🇪", "ש"].to_vec();
        parts.insert(at, "|");
        parts.concat()
    };
    let steps: Vec<String> = (0..=7).map(text).collect();
    let mut steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    check_end(|it: &mut EditBuffer| it.go(Motion::Right), &steps);
    steps.reverse();
    check_end(|it: &mut EditBuffer| it.go(Motion::Left), &steps);
}

#[test]
fn words_end_where_the_kind_of_letter_changes() {
    check_end(
        |it: &mut EditBuffer| it.go(Motion::WordRight),
        &[
            "|fix src/main.rs  now",
            "fix| src/main.rs  now",
            "fix src|/main.rs  now",
        ]
        .into_iter()
        .chain([
            "fix src/main|.rs  now",
            "fix src/main.rs|  now",
            "fix src/main.rs  now|",
        ])
        .collect::<Vec<_>>(),
    );
    check_end(
        |it: &mut EditBuffer| it.go(Motion::WordLeft),
        &["two\n words. |", "two\n |words. ", "|two\n words. "],
    );
    check_end(
        |it: &mut EditBuffer| it.go(Motion::WordLeft),
        &[
            "漢字かなカナ|",
            "漢字かな|カナ",
            "漢字|かなカナ",
            "|漢字かなカナ",
        ],
    );
    check_end(
        |it: &mut EditBuffer| it.go(Motion::WordRight),
        &["|שלום עולם", "שלום| עולם", "שלום עולם|"],
    );
    check_end(
        |it: &mut EditBuffer| it.go(Motion::WordRight),
        &[
            "|e\u{301}te\u{301} a_b",
            "e\u{301}te\u{301}| a_b",
            "e\u{301}te\u{301} a_b|",
        ],
    );
    check(
        |it: &mut EditBuffer| it.go(Motion::WordLeft),
        &["a 👍 👍|", "|a 👍 👍"],
    );
}

#[test]
fn line_and_buffer_ends() {
    check_end(
        |it: &mut EditBuffer| it.go(Motion::LineStart),
        &["one\ntwo| x\n", "one\n|two x\n"],
    );
    check_end(
        |it: &mut EditBuffer| it.go(Motion::LineEnd),
        &["one\ntwo| x\ny", "one\ntwo x|\ny"],
    );
    check_end(
        |it: &mut EditBuffer| it.go(Motion::BufferStart),
        &["one\ntwo|", "|one\ntwo"],
    );
    check_end(
        |it: &mut EditBuffer| it.go(Motion::BufferEnd),
        &["o|ne\ntwo", "one\ntwo|"],
    );
}

#[test]
fn erasing_takes_whole_graphemes() {
    let text = format!("a{FAMILY}e\u{301}|");
    check_end(
        EditBuffer::backspace,
        &[&text, &format!("a{FAMILY}|"), "a|", "|"],
    );
    let text = format!("|{FAMILY}e\u{301}漢\n");
    check_end(
        EditBuffer::delete,
        &[&text, "|e\u{301}漢\n", "|漢\n", "|\n", "|"],
    );
}

#[test]
fn kills() {
    check_end(
        |it: &mut EditBuffer| it.kill(Kill::ToEnd),
        &["a|b c\nd", "a|\nd", "a|d", "a|"],
    );
    check_end(
        |it: &mut EditBuffer| it.kill(Kill::ToStart),
        &["a\nb c|d", "a\n|d", "a|d", "|d"],
    );
    check_end(
        |it: &mut EditBuffer| it.kill(Kill::ToBlank),
        &["see src/main.rs  |x", "see |x", "|x"],
    );
    check_end(
        |it: &mut EditBuffer| it.kill(Kill::ToBlank),
        &["one\n漢字|", "one\n|", "|"],
    );
    check_end(
        |it: &mut EditBuffer| it.kill(Kill::WordLeft),
        &["src/main.rs|", "src/main.|", "src/|", "|"],
    );
    check_end(
        |it: &mut EditBuffer| it.kill(Kill::WordRight),
        &["|one, two.", "|, two.", "|.", "|"],
    );
}

#[test]
fn kills_in_a_row_are_yanked_together() {
    let mut buffer = marked("one two| three\n");
    buffer.kill(Kill::ToBlank);
    buffer.kill(Kill::ToEnd);
    buffer.kill(Kill::ToBlank);
    assert_eq!(shown(&buffer), "|\n");
    buffer.go(Motion::Right);
    assert!(buffer.yank());
    assert_eq!(shown(&buffer), "\none two three|");
    buffer.kill(Kill::WordLeft);
    assert!(buffer.yank() && buffer.yank());
    assert_eq!(shown(&buffer), "\none two threethree|");
    assert!(!EditBuffer::new().yank());
}

#[test]
fn a_mark_joins_the_letter_before_it() {
    let mut buffer = marked("|\u{301}x");
    buffer.insert("e");
    assert_eq!(shown(&buffer), "e\u{301}|x");
    buffer.undo();
    assert_eq!(shown(&buffer), "|\u{301}x");
}

#[test]
fn typing_is_undone_by_words() {
    let mut buffer = EditBuffer::new();
    "fix the bug"
        .chars()
        .for_each(|typed| assert!(buffer.insert(&typed.to_string())));
    for expected in ["fix the |", "fix |", "|"] {
        assert!(buffer.undo());
        assert_eq!(shown(&buffer), expected);
    }
    assert!(!buffer.undo());
    assert!(buffer.redo() && buffer.redo());
    assert_eq!(shown(&buffer), "fix the |");
    buffer.insert("x");
    assert!(!buffer.redo());

    let mut buffer = marked("one two|");
    (0..5).for_each(|_| assert!(buffer.backspace()));
    assert_eq!(shown(&buffer), "on|");
    buffer.undo();
    assert_eq!(shown(&buffer), "one |");
    buffer.undo();
    assert_eq!(shown(&buffer), "one two|");
}

#[test]
fn undo_is_bounded_in_steps_and_bytes() {
    let mut buffer = EditBuffer::new();
    (0..300).for_each(|_| assert!(buffer.paste("x") == Paste::Inline));
    let steps = std::iter::from_fn(|| buffer.undo().then_some(())).count();
    assert_eq!((steps, buffer.text().len()), (200, 100));

    let large = "y".repeat(TEXT_LIMIT);
    (0..50).for_each(|_| assert!(buffer.set(&large) && buffer.set("")));
    let steps = std::iter::from_fn(|| buffer.undo().then_some(())).count();
    assert_eq!(steps, 8);
}

#[test]
fn what_does_not_fit_is_refused_whole() {
    let mut buffer = EditBuffer::new();
    assert!(buffer.insert(&"x".repeat(TEXT_LIMIT - 1)));
    assert!(!buffer.insert("漢"));
    assert!(!buffer.set(&"x".repeat(TEXT_LIMIT + 1)));
    assert_eq!(buffer.paste(&"x".repeat(1_001)), Paste::Refused);
    assert!(buffer.insert("x"));
    assert_eq!(buffer.text().len(), TEXT_LIMIT);
    assert_eq!(buffer.paste("x"), Paste::Refused);
}

#[test]
fn a_chip_is_one_unit() {
    let block = "line\n".repeat(214);
    let mut buffer = marked("see |!");
    assert_eq!(buffer.paste(&block), Paste::Chip(1));
    assert_eq!(buffer.shown(), "see [paste 1: 214 lines]!");
    assert_eq!(buffer.expanded(), format!("see {block}!"));
    assert!(buffer.go(Motion::Left));
    assert_eq!(buffer.cursor(), 4);
    assert!(buffer.go(Motion::WordRight) && buffer.backspace());
    assert_eq!(shown(&buffer), "see |!");
    assert!(buffer.undo());
    assert_eq!(buffer.take(), format!("see {block}!"));
    assert!(buffer.is_empty());
}

#[test]
fn chips_begin_above_ten_lines_or_a_thousand_characters() {
    for (text, label) in [
        ("l\n".repeat(10), None),
        ("l\r".repeat(11), Some("[paste 1: 11 lines]")),
        ("漢".repeat(1_000), None),
        ("漢".repeat(1_001), Some("[paste 1: 1001 characters]")),
    ] {
        let mut buffer = EditBuffer::new();
        buffer.paste(&text);
        assert_eq!(buffer.shown(), label.unwrap_or(&text));
        assert_eq!(buffer.expanded(), text.replace('\r', "\n"));
    }
}

#[test]
fn a_chip_cannot_be_forged() {
    let mut buffer = EditBuffer::new();
    buffer.paste(&"secret\n".repeat(20));
    let chip = buffer.text().to_owned();
    buffer.insert(" [paste 1: 20 lines] ");
    buffer.insert(&chip);
    buffer.paste(&chip);
    buffer.replace(0..0, &chip);
    assert_eq!(buffer.expanded().matches("secret").count(), 20);
    assert_eq!(
        buffer.expanded(),
        format!("{} [paste 1: 20 lines] ", "secret\n".repeat(20))
    );
}

#[test]
fn images_are_numbered_by_themselves() {
    let mut buffer = EditBuffer::new();
    buffer.paste(&"x\n".repeat(20));
    assert_eq!(buffer.insert_image("png"), Some(1));
    assert_eq!(buffer.insert_image("\u{1b}jpeg]"), Some(2));
    assert_eq!(
        buffer.shown(),
        "[paste 1: 20 lines][image 1: png][image 2: jpeg]"
    );
    assert_eq!(buffer.images(), [1, 2]);
    buffer.backspace();
    assert_eq!(buffer.images(), [1]);
    assert!(buffer.expanded().ends_with("x\n[image 1: png]"));
    // The caller may still hold the data of earlier images.
    buffer.take();
    assert_eq!(buffer.insert_image("png"), Some(3));
    // What was taken out and comes back has its images again; what is typed has none.
    buffer.take();
    buffer.set("look at [image 1: png]");
    assert_eq!(buffer.images(), [1]);
    buffer.take();
    buffer.insert("look at [image 1: png]");
    assert_eq!(buffer.images(), [0; 0]);
}

#[test]
fn pastes_share_ten_megabytes() {
    let large = "x".repeat(PASTE_LIMIT / 2 + 1);
    let mut buffer = EditBuffer::new();
    assert_eq!(buffer.paste(&"x".repeat(PASTE_LIMIT + 1)), Paste::Refused);
    assert_eq!(buffer.paste(&large), Paste::Chip(1));
    assert_eq!(buffer.paste(&large), Paste::Refused);
    assert_eq!(buffer.expanded(), large);

    // An erased block gives its room up, and undo no longer reaches it.
    buffer.kill(Kill::ToStart);
    assert_eq!(buffer.paste(&large), Paste::Chip(1));
    assert!(buffer.undo() && !buffer.undo() && !buffer.yank());
}

#[test]
fn a_killed_chip_outlives_the_prompt() {
    let block = "x\n".repeat(20);
    let mut buffer = EditBuffer::new();
    buffer.paste(&block);
    buffer.kill(Kill::ToStart);
    buffer.insert("sent");
    assert_eq!(buffer.take(), "sent");
    buffer.paste(&"y\n".repeat(20));
    assert!(buffer.yank());
    assert_eq!(buffer.shown(), "[paste 2: 20 lines][paste 1: 20 lines]");
    assert!(buffer.expanded().ends_with(&block));
}

#[test]
fn drafts_move_between_buffers() {
    let block = "x\n".repeat(20);
    let mut one = marked("a|b");
    one.paste(&block);
    let mut two = EditBuffer::new();
    two.paste(&"y\n".repeat(20));
    assert!(two.restore(&one.draft()));
    assert_eq!(
        (two.expanded(), two.cursor()),
        (format!("a{block}b"), one.cursor())
    );
    assert_eq!(one.draft().shown(), "a[paste 1: 20 lines]b");
    assert!(two.undo());
    assert_eq!(two.expanded(), "y\n".repeat(20));
}

/// Run with `--release --run-ignored all --no-capture` to see the time on the processor.
#[test]
#[ignore = "measures"]
fn layout_of_large_texts() {
    for (name, text) in [
        (
            "100 KB ASCII",
            "some words of a long prompt\n".repeat(3_600),
        ),
        ("1 MB ASCII", "some words of a long prompt\n".repeat(36_000)),
        ("1 MB one line", "words ".repeat(170_000)),
        ("1 MB Han", "漢字".repeat(170_000)),
    ] {
        let mut buffer = EditBuffer::new();
        assert!(buffer.set(&text));
        let start = processor_time();
        buffer.insert("x");
        let typed = processor_time() - start;
        let rows = buffer.layout(80).rows.len();
        let wrapped = processor_time() - start - typed;
        println!("{name}: typed in {typed:?}, {rows} rows in {wrapped:?}");
    }
}

/// The time this thread has run, which other load on the machine does not change.
pub(super) fn processor_time() -> std::time::Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = statistics.split(' ').next().unwrap();
    std::time::Duration::from_nanos(nanoseconds.parse().unwrap())
}
