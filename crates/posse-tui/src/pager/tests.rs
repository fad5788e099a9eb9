//! A pager over a transcript that somebody else has.

mod random;
mod screens;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use posse_protocol::{ContentBlock, EntryKind, Message, RawJson, Role, ToolContent};
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
                    let from = from as usize;
                    let found = match backwards {
                        true => self.stored.iter().take(from + 1).rev().find(has_it),
                        false => self.stored.iter().skip(from).find(has_it),
                    };
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
            "● $ cargo test",
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
fn the_wheel_scrolls_and_a_click_does_nothing() {
    use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
    let mouse = |kind| {
        PagerInput::Mouse(MouseEvent {
            kind,
            column: 3,
            row: 3,
            modifiers: KeyModifiers::NONE,
        })
    };
    let mut reader = Reader::new(turns(20), 80, 12);
    reader.press("Home");
    let first = reader.rows();
    reader.input(mouse(MouseEventKind::ScrollDown));
    let down = reader.rows();
    reader.press("Home Down Down Down");
    assert_eq!(reader.rows(), down);
    assert_ne!(down, first);
    reader.input(mouse(MouseEventKind::Down(MouseButton::Left)));
    reader.input(mouse(MouseEventKind::Up(MouseButton::Left)));
    assert_eq!(reader.rows(), down);
    reader.input(mouse(MouseEventKind::ScrollUp));
    assert_eq!(reader.rows(), first);
}
