//! The screen at several sizes, and text that wants to be more than text.

use super::*;

#[test]
fn the_screen_at_all_sizes() {
    let mut text = String::new();
    for (columns, rows) in [(120, 40), (80, 24), (40, 12), (20, 5)] {
        for keys in ["", "t c", "/ p r o m"] {
            let mut stored = turns(2);
            stored.push(reply(
                8,
                "漢字かな e\u{301} שלום\n\n```rust\nlet a = 1;\n```",
            ));
            let mut reader = Reader::new(stored, columns, rows);
            reader.press(keys);
            text.push_str(&format!("── {columns} × {rows} {keys} ──\n"));
            let caret = view(&mut reader.pager).caret;
            for (row, line) in reader.rows().iter().enumerate() {
                let caret = caret.filter(|caret| usize::from(caret.y) == row);
                let mark = caret.map_or_else(String::new, |caret| format!("  ◂{}", caret.x));
                text.push_str(&format!("│ {line}{mark}\n"));
            }
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("pager", text));
}

// proves UI-10
#[test]
fn nothing_from_outside_reaches_the_terminal_but_cells() {
    for payload in crate::text::tame::tests::PAYLOADS {
        let mut stored = turns(1);
        stored.push(reply(4, payload));
        let call = ContentBlock::ToolUse {
            id: "c".into(),
            name: (*payload).into(),
            input: RawJson::from(&serde_json::json!({"command": payload})),
        };
        let thinking = ContentBlock::Thinking {
            thinking: (*payload).into(),
            signature: String::new(),
        };
        stored.push(entry(5, EntryKind::Reply, vec![thinking, call]));
        let result = ContentBlock::ToolResult {
            tool_use_id: "c".into(),
            content: vec![ToolContent::text(*payload)],
            is_error: true,
        };
        stored.push(entry(6, EntryKind::Results, vec![result]));
        for (kind, seq) in [
            (EntryKind::Prompt, 7),
            (EntryKind::Model, 8),
            (EntryKind::Compaction, 9),
        ] {
            stored.push(entry(seq, kind, vec![ContentBlock::text(*payload)]));
        }
        let mut reader = Reader::new(stored, 80, 60);
        reader.input(PagerInput::Notice((*payload).into()));
        let size = |length: u16| std::num::NonZeroU16::new(length).unwrap();
        let mut parser = vt100::Parser::new(size(60), size(80), 0);
        let mut screen = crate::terminal::FullScreen::new(crate::theme::Theme::ansi());
        parser.process(&screen.enter());
        for keys in ["", "t c", "Home"] {
            if !keys.is_empty() {
                reader.press(keys);
            }
            let frame = view(&mut reader.pager);
            parser.process(&screen.draw(frame.cells.clone(), frame.caret));
            let on_terminal = parser.screen().rows(0, 80);
            let on_terminal: Vec<String> =
                on_terminal.map(|row| row.trim_end().to_owned()).collect();
            assert_eq!(on_terminal, rows(&frame.cells), "{payload:?}");
        }
    }
}
