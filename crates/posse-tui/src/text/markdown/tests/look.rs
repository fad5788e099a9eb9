//! How Markdown looks.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::super::render;
use crate::theme::ColorRole;

fn check(source: &str, width: u16, expected: &[&str]) {
    let lines = render(source, width);
    let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(shown, expected, "{source}");
}

#[test]
fn blocks_have_a_blank_line_between() {
    check("# A\ntext\n---\n> q\n", 40, &["A", "", "text", "", "│ q"]);
    check("text\n\n---\nend", 40, &["text", "", "───", "", "end"]);
    check("a\n\n```\n```\n\nb", 40, &["a", "", "b"]);
    check("one two three", 8, &["one two", "three"]);
    check("a  \nb", 8, &["a", "b"]);
}

#[test]
fn lists_have_bullets_and_numbers() {
    check(
        "- a\n- b c d f\n  - e\n\nx",
        8,
        &["• a", "• b c d", "  f", "  • e", "", "x"],
    );
    check("9. a\n9. b\n   c\n", 40, &["9. a", "10. b c"]);
    check("- a\n\n  b\n\n- c", 40, &["• a", "", "  b", "", "• c"]);
    check("- [x] a\n- [ ] b\n-\n", 40, &["[x] a", "[ ] b", "• "]);
    check(
        "1. a\n   ```sh\n   ls\n   ```\n2. b",
        40,
        &["1. a", "   ls", "2. b"],
    );
}

#[test]
fn quotes_have_a_bar() {
    let source = "> one two three\n>\n> - a\n>   > b\n\nc";
    check(
        source,
        12,
        &["│ one two", "│ three", "│", "│ • a", "│   │ b", "", "c"],
    );
}

#[test]
fn code_is_one_line_for_each_line() {
    let long = "x".repeat(50);
    check(
        &format!("```\n  {long}\n\n\tend\n```"),
        10,
        &[&format!("  {long}"), "", "    end"],
    );
    check("    indented\n      more\n", 10, &["indented", "  more"]);
}

#[test]
fn links_images_and_html_are_text() {
    check(
        "[a](http://b) <http://c> ![d](e)",
        60,
        &["a (http://b) http://c [image: d]"],
    );
    check("<me@b.c> [](http://d)", 60, &["me@b.c http://d"]);
    check("<div>\n*a*\n</div>\n", 60, &["<div>", "*a*", "</div>"]);
    check("a <b>c</b> &lt;", 60, &["a <b>c</b> <"]);
    check(
        "[a][1]\n\n[1]: http://b",
        60,
        &["[a][1]", "", "[1]: http://b"],
    );
}

#[test]
fn tables_are_aligned_and_narrowed() {
    let source = "| a | bb | c |\n|---|--:|:-:|\n| 1 | 2 | long |\n| x | 333 |  |\n";
    check(source, 40, &["a   bb   c", "1    2  long", "x  333"]);
    let source = "| name | text |\n|---|---|\n| a | one two three four five |\n";
    check(
        source,
        20,
        &["name  text", "a     one two three", "      four five"],
    );
    let source = "|a|b|c|d|\n|-|-|-|-|\n|one|two|three|four|\n";
    check(source, 10, &["a  b  c  d", "one  two", "  three", "  four"]);
}

#[test]
fn words_have_styles() {
    let plain = Style::new();
    let expected = Line::from(vec![
        Span::styled("a ", plain),
        Span::styled("b", plain.italic()),
        Span::styled(" ", plain),
        Span::styled("c", plain.bold()),
        Span::styled(" ", plain),
        Span::styled("d", ColorRole::Code.style()),
        Span::styled(" ", plain),
        Span::styled("e", plain.crossed_out()),
        Span::styled(" f", plain),
        Span::styled(" (g)", plain.dim()),
    ]);
    assert_eq!(render("a *b* **c** `d` ~~e~~ [f](g)", 60), [expected]);
    let title = |level: &str| render(&format!("{level} t"), 60)[0].spans[0].style;
    assert_eq!(title("#"), plain.bold().underlined());
    assert_eq!(title("##"), plain.bold());
    assert_eq!(render("|a|\n|-|\n|b|", 60)[0].spans[0].style, plain.bold());
    let code = render("```rust\nlet\n```", 60);
    assert_eq!(code[0].spans[0].style, ColorRole::Keyword.style());
}

#[test]
fn nothing_is_obeyed() {
    let source = "\u{1b}[2J &#27;[2J `\u{9b}2J` [a](x\u{7}y) <b\u{1b}>\n\n\
                  | \u{1b} |\n|-|\n\n```\u{1b}\n\u{1b}\n```\n\n<div>\u{1b}\n\n[a]: \u{1b}\n";
    for line in render(source, 20) {
        let text = line.to_string();
        assert!(!text.contains(char::is_control), "{text:?}");
    }
    let stacked = render("a&#x301;&#x301;&#x301;*&#x301;&#x301;&#x301;b*", 20);
    assert!(stacked[0].to_string().chars().count() <= 8, "{stacked:?}");
}
