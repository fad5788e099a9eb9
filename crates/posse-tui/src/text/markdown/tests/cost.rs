//! What long and hostile texts cost.

use std::time::{Duration, Instant};

use super::super::{MarkdownStream, render};

/// Streams a text in pieces of a few words, as a model does, and returns the time.
fn stream(source: &str) -> Duration {
    let began = Instant::now();
    let mut stream = MarkdownStream::default();
    let mut lines = 0;
    let mut rest = source;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(12));
        stream.push(piece);
        lines += stream.take_closed(80).len();
        rest = after;
    }
    lines += stream.finish(80).len();
    let took = began.elapsed();
    assert_eq!(lines, render(source, 80).len());
    took
}

/// Lines of a long reply. Tests without optimisation are ten times slower.
const LINES: usize = if cfg!(debug_assertions) { 1000 } else { 8000 };

/// Long replies of each kind.
fn long_replies() -> Vec<(&'static str, String)> {
    let words = "Some words of *prose* that a model may write, with `code` in them.\n";
    let repeat = |text: &str| text.repeat(LINES / text.lines().count());
    vec![
        ("paragraphs", repeat(&format!("{words}{words}{words}\n"))),
        ("one paragraph", repeat(words)),
        ("list", repeat(&format!("- {words}"))),
        ("loose list", repeat(&format!("- {words}\n"))),
        ("numbers", repeat(&format!("1. {words}"))),
        ("quote", repeat(&format!("> {words}"))),
        (
            "table",
            format!("|a|b|\n|-|-|\n{}", repeat("| some words | and others |\n")),
        ),
        (
            "code",
            format!(
                "```rust\n{}",
                repeat("    let x = call(1, \"two\"); // three\n")
            ),
        ),
        ("fences", repeat("```sh\nls -l\n```\n\ntext\n")),
        ("html", format!("<div>\n{}", repeat("<p>text</p>\n"))),
        ("titles", repeat("## Title\n")),
        ("definitions", repeat("[a]: /url\n")),
        ("lists and definitions", repeat("- a\n\n[a]: /url\n")),
        ("blank", repeat("\n")),
    ]
}

/// The bound is wide: machines that test are slow and busy. What it finds is quadratic time.
#[test]
fn long_replies_take_linear_time() {
    for (name, source) in long_replies() {
        let took = stream(&source);
        println!("{name}: {took:?}");
        assert!(took < Duration::from_secs(5), "{name}: {took:?}");
    }
}

#[test]
fn hostile_nesting_is_bounded() {
    for source in [
        ">".repeat(50_000),
        "- ".repeat(20_000),
        "> - ".repeat(10_000),
        "[".repeat(50_000),
        "*a ".repeat(20_000),
        "![".repeat(20_000),
        "<a ".repeat(20_000),
        "`a``b".repeat(10_000),
        "|".repeat(5_000) + "\n" + &"|-".repeat(5_000) + "\n",
    ] {
        let began = Instant::now();
        let lines = render(&source, 80);
        let took = began.elapsed();
        println!("{:?}: {took:?}, {} lines", &source[..4], lines.len());
        assert!(
            took < Duration::from_secs(20),
            "{:?}: {took:?}",
            &source[..4]
        );
    }
}
