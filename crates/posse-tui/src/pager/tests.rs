//! A pager over a transcript that somebody else has.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use posse_protocol::{ContentBlock, EntryKind, Message, RawJson, Role, ToolContent};
use proptest::prelude::*;
use proptest::sample::select;
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::Modifier;
use unicode_width::UnicodeWidthStr;

use super::*;

/// A pager, and the store behind it.
struct Reader {
    pager: Pager,
    stored: Vec<Entry>,
    /// Number of entries that were read.
    read: u64,
    effects: Vec<PagerEffect>,
}

impl Reader {
    fn new(stored: Vec<Entry>, columns: u16, rows: u16) -> Self {
        let (pager, effects) = Pager::open(PagerBeginning {
            size: Size { columns, rows },
            title: "dev-1".into(),
            total: stored.len() as u64,
        });
        let mut reader = Self {
            pager,
            stored,
            read: 0,
            effects: Vec::new(),
        };
        reader.carry_out(effects);
        reader
    }

    /// Does what the loop does: what is asked for follows at once.
    fn carry_out(&mut self, effects: Vec<PagerEffect>) {
        for effect in effects {
            match effect {
                PagerEffect::Read { from, count } => {
                    assert!(count > 0 && count <= READ, "{count}");
                    self.read += count;
                    let stored = self.stored.iter().skip(from as usize);
                    let entries = stored.take(count as usize).cloned().collect();
                    self.input(PagerInput::Entries { from, entries });
                }
                PagerEffect::Search {
                    text,
                    from,
                    backwards,
                } => {
                    let has_it = |entry: &&Entry| {
                        let words = format!("{:?}", entry.message).to_lowercase();
                        words.contains(&text.to_lowercase())
                    };
                    let (before, after) = self.stored.split_at(from as usize);
                    let found = match backwards {
                        true => self.stored[..=from as usize].iter().rev().find(has_it),
                        false => after.iter().find(has_it),
                    };
                    assert!(before.len() <= self.stored.len());
                    let entry = found.map(|entry| entry.seq);
                    self.input(PagerInput::Found { entry });
                }
                other => self.effects.push(other),
            }
        }
    }

    fn input(&mut self, input: PagerInput) {
        let effects = update(&mut self.pager, input);
        self.carry_out(effects);
    }

    fn press(&mut self, names: &str) -> Vec<PagerEffect> {
        for name in names.split(' ').filter(|name| !name.is_empty()) {
            self.input(PagerInput::Key(named(name)));
        }
        std::mem::take(&mut self.effects)
    }

    fn search(&mut self, text: &str) {
        self.press("/");
        for letter in text.chars() {
            let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
            self.input(PagerInput::Key(key));
        }
        self.press("Enter");
    }

    fn rows(&mut self) -> Vec<String> {
        rows(&view(&mut self.pager).cells)
    }

    /// Returns the lines of the transcript that are on the screen.
    fn lines(&mut self) -> Vec<String> {
        let mut rows = self.rows();
        rows.pop();
        rows.remove(0);
        rows
    }

    fn head(&mut self) -> String {
        self.rows().remove(0)
    }
}

fn named(name: &str) -> KeyEvent {
    let code = match name {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "PageUp" => KeyCode::PageUp,
        "PageDown" => KeyCode::PageDown,
        letter => KeyCode::Char(letter.chars().next().unwrap()),
    };
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn rows(cells: &Buffer) -> Vec<String> {
    let width = usize::from(cells.area.width);
    let row = |cells: &[Cell]| {
        let mut text = String::new();
        let mut covered = 0;
        for cell in cells {
            if covered > 0 {
                covered -= 1;
                continue;
            }
            covered = cell.symbol().width().saturating_sub(1);
            text.push_str(cell.symbol());
        }
        text.trim_end().to_owned()
    };
    cells.content.chunks(width).map(row).collect()
}

fn entry(seq: u64, kind: EntryKind, content: Vec<ContentBlock>) -> Entry {
    let role = match kind {
        EntryKind::Reply => Role::Assistant,
        _ => Role::User,
    };
    Entry {
        seq,
        kind,
        message: Arc::new(Message { role, content }),
        reply: None,
    }
}

fn reply(seq: u64, text: &str) -> Entry {
    entry(seq, EntryKind::Reply, vec![ContentBlock::text(text)])
}

/// A turn: a prompt, thinking and a call, its result of many lines, a reply.
fn turn(first: u64) -> Vec<Entry> {
    let output: Vec<String> = (1..=30)
        .map(|line| format!("output {first}-{line}"))
        .collect();
    vec![
        entry(
            first,
            EntryKind::Prompt,
            vec![ContentBlock::text(format!("prompt {first}"))],
        ),
        entry(
            first + 1,
            EntryKind::Reply,
            vec![
                ContentBlock::Thinking {
                    thinking: format!("first thought {first}\nsecond thought"),
                    signature: String::new(),
                },
                ContentBlock::ToolUse {
                    id: format!("call-{first}"),
                    name: "Bash".into(),
                    input: RawJson::parse(r#"{"command": "cargo test"}"#).unwrap(),
                },
            ],
        ),
        entry(
            first + 2,
            EntryKind::Results,
            vec![ContentBlock::ToolResult {
                tool_use_id: format!("call-{first}"),
                content: vec![ToolContent::text(output.join("\n"))],
                is_error: false,
            }],
        ),
        reply(first + 3, &format!("reply **{first}**")),
    ]
}

fn turns(count: u64) -> Vec<Entry> {
    (0..count).flat_map(|number| turn(number * 4)).collect()
}

/// Returns all lines of a transcript, rendered at once.
fn all_lines(stored: &[Entry], folds: entry::Folds, width: u16) -> Vec<String> {
    let mut document = Document::new(stored.len() as u64, width);
    document.fold(folds);
    document.add(0, stored.len() as u64, stored.to_vec(), 0);
    let mut lines = Vec::new();
    for seq in 0..stored.len() as u64 {
        let drawn = document.lines(seq).unwrap_or_default();
        lines.extend(
            drawn
                .iter()
                .map(|line| line.to_string().trim_end().to_owned()),
        );
    }
    lines
}

#[test]
fn a_transcript_opens_at_its_end() {
    let mut reader = Reader::new(turns(2), 60, 14);
    assert_eq!(
        reader.rows(),
        [
            "dev-1                                           5 of 8 · end",
            "› prompt 4",
            "",
            "∴ thinking, 2 lines",
            "",
            "● Bash  cargo test",
            "  output 4-1",
            "  output 4-2",
            "  output 4-3",
            "  output 4-4",
            "  … 26 more lines",
            "",
            "reply 4",
            "q leave  / search  n N next, previous  t thinking",
        ]
    );
    // What comes then is shown as long as the end is.
    reader.stored.push(reply(8, "one more"));
    reader.input(PagerInput::Total(9));
    assert!(
        reader
            .lines()
            .ends_with(&["reply 4".into(), String::new(), "one more".into()])
    );
    reader.press("Up");
    reader.stored.push(reply(9, "and another"));
    reader.input(PagerInput::Total(10));
    assert!(reader.lines().ends_with(&["reply 4".into(), String::new()]));
    reader.press("G");
    assert!(reader.lines().ends_with(&["and another".into()]));
}

#[test]
fn keys_leave_fold_and_copy() {
    let mut reader = Reader::new(turns(1), 60, 60);
    assert_eq!(reader.press("q"), [PagerEffect::Leave]);
    assert_eq!(reader.press("Esc"), [PagerEffect::Leave]);
    let copied = "prompt 0".to_owned();
    assert_eq!(reader.press("y"), [PagerEffect::Copy(copied)]);
    assert!(!reader.lines().contains(&"  first thought 0".to_owned()));
    reader.press("t");
    assert!(reader.lines().contains(&"  first thought 0".to_owned()));
    reader.press("c");
    assert!(reader.lines().contains(&"  output 0-30".to_owned()));
    reader.press("c t");
    assert!(!reader.lines().contains(&"  output 0-30".to_owned()));
    assert!(!reader.lines().contains(&"  first thought 0".to_owned()));
}

#[test]
fn a_text_is_found_wherever_it_is() {
    let mut reader = Reader::new(turns(1000), 60, 12);
    reader.search("Prompt 404");
    let cells = view(&mut reader.pager).cells;
    assert!(reader.lines().contains(&"› prompt 404".to_owned()));
    let marked = cells.content.iter();
    let marked: String = marked
        .filter(|cell| cell.modifier.contains(Modifier::REVERSED))
        .map(Cell::symbol)
        .collect();
    assert_eq!(marked, "prompt 404");
    // It is folded: what is found is shown.
    reader.search("output 2000-29");
    assert_eq!(reader.lines()[0], "  output 2000-29");
    reader.press("g");
    reader.search("reply");
    assert!(reader.head().contains("4 of 4000"), "{}", reader.head());
    reader.press("n n");
    assert!(reader.head().contains("12 of 4000"), "{}", reader.head());
    reader.press("N");
    assert!(reader.head().contains("8 of 4000"), "{}", reader.head());
    reader.press("N N");
    assert!(reader.rows().last().unwrap().contains("from the other end"));
    assert!(reader.head().contains("of 4000 · end") || reader.head().contains("3999 of"));
    reader.search("nowhere at all");
    assert_eq!(reader.rows().last().unwrap(), "nowhere at all is not found");
}

#[test]
fn only_a_part_is_read_and_kept() {
    let mut reader = Reader::new(turns(4000), 80, 40);
    assert!(reader.read <= 2 * READ, "{}", reader.read);
    reader.press("Home");
    assert_eq!(reader.lines()[1], "› prompt 0");
    assert!(reader.read <= 4 * READ, "{}", reader.read);
    for _ in 0..250 {
        reader.press("PageDown");
    }
    let known = reader.pager.document.known();
    assert!(known.end - known.start <= 2000);
    assert!(reader.pager.document.drawn_count() <= 256);
}

#[test]
fn there_may_be_nothing() {
    let mut reader = Reader::new(Vec::new(), 30, 5);
    assert_eq!(reader.lines()[0], "nothing was said yet");
    assert_eq!(
        reader.press("PageDown Up End Home n y q").last(),
        Some(&PagerEffect::Leave)
    );
    // A store that has fewer entries than it said is not asked for ever.
    let (mut pager, effects) = Pager::open(PagerBeginning {
        size: Size {
            columns: 30,
            rows: 5,
        },
        title: String::new(),
        total: 500,
    });
    assert_eq!(
        effects,
        [PagerEffect::Read {
            from: 300,
            count: 200
        }]
    );
    let mut asked = 0;
    let mut from = Some(300);
    while let Some(number) = from.take() {
        asked += 1;
        let entries = Vec::new();
        let effects = update(
            &mut pager,
            PagerInput::Entries {
                from: number,
                entries,
            },
        );
        from = effects.iter().find_map(|effect| match effect {
            PagerEffect::Read { from, .. } => Some(*from),
            _ => None,
        });
    }
    assert_eq!(asked, 3);
}

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
    settings.set_snapshot_path("tests/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("pager", text));
}

// proves UI-10 (part: the pager)
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
        let mut screen = crate::terminal::FullScreen::new(true);
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

fn words() -> impl Strategy<Value = String> {
    let parts = vec![
        "word ",
        "\n",
        "\n\n",
        "- item\n",
        "漢字かな",
        "\u{1b}[2J",
        "e\u{301}",
        "```\nlet a = 1;\n```\n",
        "a-very-long-word-that-is-longer-than-the-screen-is-wide-and-must-be-broken",
    ];
    prop::collection::vec(select(parts), 0..5).prop_map(|parts| parts.concat())
}

fn transcript() -> impl Strategy<Value = Vec<Entry>> {
    let kinds = vec![
        EntryKind::Prompt,
        EntryKind::Reply,
        EntryKind::Results,
        EntryKind::Model,
        EntryKind::Compaction,
    ];
    let entries = prop::collection::vec((select(kinds), words()), 0..450);
    entries.prop_map(|entries| {
        let entries = entries.into_iter().zip(0..);
        let entry = |((kind, text), seq)| entry(seq, kind, vec![ContentBlock::text(text)]);
        entries.map(entry).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_screen_is_a_part_of_the_transcript(
        stored in transcript(),
        (columns, rows) in (4..60u16, 3..30u16),
        keys in prop::collection::vec(
            select(vec!["Up", "Down", "PageUp", "PageDown", "Home", "End", "t", "c", "n", "N"]),
            1..40,
        ),
    ) {
        let mut reader = Reader::new(stored, columns, rows);
        reader.search("word");
        let mut rendered: Vec<(entry::Folds, Vec<String>)> = Vec::new();
        for key in keys {
            reader.press(key);
            let folds = reader.pager.document.folds();
            if !rendered.iter().any(|(known, _)| *known == folds) {
                rendered.push((folds, all_lines(&reader.stored, folds, columns)));
            }
            let known = rendered.iter().find(|(known, _)| *known == folds);
            let (_, all) = known.unwrap();
            let mut shown = reader.lines();
            if all.is_empty() {
                continue;
            }
            if all.len() < shown.len() {
                prop_assert!(shown[all.len()..].iter().all(String::is_empty));
                shown.truncate(all.len());
            }
            let is_part = all.windows(shown.len()).any(|part| part == shown);
            prop_assert!(is_part, "{shown:#?}");
            if key == "End" {
                prop_assert!(all.ends_with(&shown));
            }
            if key == "Home" {
                prop_assert!(all.starts_with(&shown));
            }
        }
    }
}
