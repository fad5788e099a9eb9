//! What is printed of an agent where no screen is drawn.

use ratatui_core::style::Style;
use ratatui_core::text::Span;

use super::*;
use crate::conversation::AgentLines;
use crate::terminal::{styled_text, text_bytes};

const EDIT: &str = r#"{"file_path": "a", "old_string": "two", "new_string": "2"}"#;

fn shown(lines: &[Line<'static>]) -> String {
    String::from_utf8(text_bytes(lines)).unwrap()
}

/// Begins calls of one reply.
fn begin(calls: &[(&str, &str, &str)]) -> (AgentLines, String) {
    let mut lines = AgentLines::default();
    let blocks = calls.iter().map(|(id, tool, input)| call(id, tool, input));
    lines.reply(&entry(1, EntryKind::Reply, blocks.collect()), 40);
    let begun = calls
        .iter()
        .flat_map(|(id, tool, _)| lines.call_started(id, tool, &format!("{tool} {id}")));
    let begun: Vec<_> = begun.collect();
    (lines, shown(&begun))
}

fn results(lines: &mut AgentLines, blocks: Vec<ContentBlock>) -> String {
    shown(&lines.results(&entry(2, EntryKind::Results, blocks), 40))
}

#[test]
fn a_result_stands_under_its_call_or_names_it() {
    let (mut lines, begun) = begin(&[("a", "Read", "{}")]);
    assert_eq!(begun, "→ Read a\n", "no blank line before everything else");
    assert_eq!(
        results(&mut lines, vec![result("a", "x\ny", false)]),
        "  2 lines\n"
    );
    let (mut lines, begun) = begin(&[("a", "Bash", "{}"), ("b", "Edit", EDIT)]);
    assert_eq!(begun, "→ Bash a\n→ Edit b\n");
    let both = vec![result("a", "out", false), result("b", "ok", false)];
    assert_eq!(
        results(&mut lines, both),
        "\n● Bash a\n  out\n\n● Edit b\n     -two\n     +2\n"
    );
}

#[test]
fn what_a_person_has_seen_is_not_printed_again() {
    let (mut lines, _) = begin(&[("a", "Edit", EDIT)]);
    lines.asked("a");
    assert_eq!(
        results(&mut lines, vec![result("a", "ok", false)]),
        "\n● Edit a\n"
    );
    let (mut lines, _) = begin(&[]);
    lines.reply(
        &entry(1, EntryKind::Reply, vec![call("a", "Edit", EDIT)]),
        40,
    );
    lines.asked("a");
    let begun = lines.call_started("a", "Edit", "Edit a");
    assert_eq!(shown(&begun), "\n→ Edit a\n");
    assert_eq!(results(&mut lines, vec![result("a", "ok", false)]), "");
}

#[test]
fn denied_calls_and_agents_have_other_lines() {
    let (mut lines, begun) = begin(&[("a", "Agent", "{}")]);
    assert_eq!(begun, "");
    let both = vec![result("a", "found", false), result("b", "denied", true)];
    assert_eq!(results(&mut lines, both), "");
    let (mut lines, _) = begin(&[("a", "Agent", "{}")]);
    assert_eq!(
        results(&mut lines, vec![result("a", "gone", true)]),
        "✗ Agent a\n  gone\n"
    );
}

#[test]
fn styled_text_has_nothing_but_styles() {
    let line = Line::from(vec![
        Span::styled("bold", Style::new().bold()),
        Span::raw("a\u{1b}[2J\rb"),
    ]);
    assert_eq!(styled_text(&[line]), "\u{1b}[0;1mbold\u{1b}[0ma[2Jb\n");
    assert_eq!(styled_text(&[]), "");
}
