//! Tests of wrapping: what fits, what breaks, what never does.

use proptest::prelude::*;
use ratatui_core::style::{Color, Style};
use ratatui_core::text::{Line, Span};

use super::{clip, columns, wrap, wrap_hard};

fn check(text: &str, width: u16, hang: u16, expected: &[&str]) {
    let lines = wrap(&Line::raw(text), width, hang);
    let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(shown, expected, "{text:?} at {width}");
}

#[test]
fn breaks_at_words() {
    check("one two three", 20, 0, &["one two three"]);
    check("one two three", 7, 0, &["one two", "three"]);
    check("one two three", 7, 2, &["one two", "  three"]);
    check("one   two", 5, 0, &["one", "two"]);
    check("  one two", 6, 0, &["  one", "two"]);
    check("one ", 3, 0, &["one"]);
    check("", 3, 0, &[""]);
    check("a b", 0, 0, &["a", "b"]);
}

#[test]
fn breaks_long_words_but_no_addresses() {
    check("abcdefgh", 3, 0, &["abc", "def", "gh"]);
    check("x abcdefgh", 4, 2, &["x", "  ab", "  cd", "  ef", "  gh"]);
    let url = "https://example.com/a/b?c=d";
    check(&format!("see {url} now"), 10, 0, &["see", url, "now"]);
    check(
        "in src/text/wrap.rs:12 here",
        8,
        0,
        &["in", "src/text/wrap.rs:12", "here"],
    );
    let hard = wrap_hard(&Line::raw(url), 10);
    assert!(hard.iter().all(|line| line.width() <= 10));
}

#[test]
fn wide_text_breaks_between_ideographs() {
    check("日本語の文章", 5, 0, &["日本", "語の", "文章"]);
    check("日本。語", 4, 0, &["日", "本。", "語"]);
    check(
        "见https://example.com吧",
        6,
        0,
        &["见", "https://example.com", "吧"],
    );
    check("日", 1, 0, &["日"]);
    let family = "👨\u{200d}👩\u{200d}👧";
    check(&family.repeat(3), 4, 0, &[&family.repeat(2), family]);
}

#[test]
fn keeps_styles() {
    let red = Style::new().fg(Color::Red);
    let line = Line::from(vec![Span::raw("one t"), Span::styled("wo three", red)]);
    let expected = vec![
        Line::from(vec![Span::raw("one t"), Span::styled("wo", red)]),
        Line::from(vec![Span::raw(" "), Span::styled("three", red)]),
    ];
    assert_eq!(wrap(&line, 8, 1), expected);
}

#[test]
fn clips_with_an_ellipsis() {
    let shown = |text: &str, width| clip(&Line::raw(text), width).to_string();
    assert_eq!(shown("abc", 3), "abc");
    assert_eq!(shown("abcd", 3), "ab…");
    assert_eq!(shown("日本語", 4), "日…");
    assert_eq!(shown("abc", 1), "…");
    assert_eq!(shown("abc", 0), "");
    assert_eq!(shown("", 0), "");
}

proptest! {
    #[test]
    fn no_line_is_too_long_and_no_word_is_lost(text in "[a-zé日\u{300}👩 ]{0,80}", width in 1u16..20) {
        let lines = wrap(&Line::raw(text.as_str()), width, 0);
        for line in &lines {
            let fits = columns(&line.to_string()) <= usize::from(width.max(2));
            prop_assert!(fits || text.starts_with(' '), "{line:?}");
        }
        let dense = |text: &str| text.replace(' ', "");
        let shown: String = lines.iter().map(ToString::to_string).collect();
        prop_assert_eq!(dense(&shown), dense(&text));
    }
}
