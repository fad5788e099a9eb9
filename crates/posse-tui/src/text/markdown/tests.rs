//! Tests of Markdown: how it looks, and that streaming never takes back a line.

use proptest::prelude::*;
use ratatui_core::text::Line;

use super::MarkdownStream;
use super::cursor::Limits;

mod corpus;
mod cost;
mod look;

use corpus::CORPUS;

/// Streams a text in pieces. After each, what was taken and the tail must be what `render` makes of
/// the text so far.
fn check_stream<'a>(pieces: impl IntoIterator<Item = &'a str>, width: u16) {
    check_limits(pieces, width, Limits::default());
}

fn check_limits<'a>(pieces: impl IntoIterator<Item = &'a str>, width: u16, limits: Limits) {
    let whole = |source: &str| {
        let mut stream = MarkdownStream::with_limits(limits);
        stream.push(source);
        stream.finish(width)
    };
    let mut stream = MarkdownStream::with_limits(limits);
    let mut source = String::new();
    let mut taken = Vec::new();
    for piece in pieces {
        stream.push(piece);
        source.push_str(piece);
        taken.extend(stream.take_closed(width));
        let mut lines = taken.clone();
        lines.extend(stream.tail(width));
        assert_lines(&lines, &whole(&source), &source);
    }
    taken.extend(stream.finish(width));
    assert!(stream.is_empty());
    assert_lines(&taken, &whole(&source), &source);
}

fn assert_lines(streamed: &[Line<'static>], whole: &[Line<'static>], source: &str) {
    if streamed != whole {
        let shown = |lines: &[Line<'static>]| {
            let lines = lines.iter().map(|line| format!("{line}\n"));
            lines.collect::<String>()
        };
        panic!(
            "streamed differs from whole after {source:?}\n--- streamed\n{}--- whole\n{}",
            shown(streamed),
            shown(whole)
        );
    }
}

fn characters(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices()
        .map(|(at, character)| &text[at..at + character.len_utf8()])
}

#[test]
fn every_prefix_of_the_corpus_streams_as_it_renders() {
    assert!(CORPUS.len() >= 60);
    for source in CORPUS {
        check_stream(characters(source), 40);
        check_stream(characters(source), 12);
        for limits in SMALL_LIMITS {
            check_limits(characters(source), 20, *limits);
        }
    }
}

#[test]
fn pairs_of_the_corpus_stream_as_they_render() {
    for (index, first) in CORPUS.iter().enumerate() {
        let second = CORPUS[(index * 7 + 3) % CORPUS.len()];
        check_stream(characters(&format!("{first}\n{second}")), 30);
        check_stream(characters(&format!("{first}\n\n{second}")), 30);
    }
}

#[test]
fn repeated_snippets_stream_as_they_render() {
    let limits = Limits {
        part: 200,
        list: 10,
        parsed: 100,
    };
    for snippet in CORPUS {
        let source = snippet.repeat(12);
        let lines = source.split_inclusive('\n');
        check_limits(lines, 30, limits);
    }
}

proptest! {
    #[test]
    fn fragments_stream_as_they_render(
        fragments in prop::collection::vec(prop::sample::select(FRAGMENTS), 0..24),
        width in 1u16..50,
    ) {
        let source = fragments.concat();
        check_stream(characters(&source), width);
        for limits in SMALL_LIMITS {
            check_limits(characters(&source), width, *limits);
        }
    }

    #[test]
    fn any_text_streams_as_it_renders(pieces in prop::collection::vec(any::<String>(), 0..6)) {
        check_stream(pieces.iter().map(String::as_str), 20);
    }
}

/// Limits that short texts exceed.
const SMALL_LIMITS: &[Limits] = &[
    Limits {
        part: 24,
        list: 2,
        parsed: 8,
    },
    Limits {
        part: 5,
        list: 1,
        parsed: 0,
    },
    Limits {
        part: 1000,
        list: 1,
        parsed: 1000,
    },
];

/// What mixes badly.
const FRAGMENTS: &[&str] = &[
    "\n",
    "\n",
    "\n",
    "\n\n",
    "  ",
    "    ",
    "\t",
    "\r\n",
    "\r",
    " ",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "2) ",
    "10. ",
    "> ",
    ">",
    "# ",
    "## ",
    "===",
    "---",
    "***",
    "```",
    "```rust\n",
    "~~~",
    "`",
    "``",
    "*",
    "**",
    "_",
    "~~",
    "|",
    "a | b\n",
    "|-|-|\n",
    "--|--\n",
    "[a]",
    "[a]: ",
    "[a]: /u\n",
    "'t",
    "\"t",
    "](/u)",
    "![",
    "<",
    ">",
    "<div>\n",
    "</div>",
    "<!--",
    "-->",
    "<pre>",
    "</pre>\n",
    "<b>",
    "&amp;",
    "&#27;",
    "\\",
    "[ ] ",
    "[x] ",
    "word",
    "word",
    "two words",
    "日本",
    "👩\u{200d}👧",
    "é",
    "\u{301}",
    "\u{1b}[2J",
    "https://example.com/a",
    "12",
    ".",
    ":",
    "=",
    "-",
];
