//! Chooses one of a list by typing a part of it.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui_core::layout::Position;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::edit::{EditBuffer, Kill, fuzzy};
use crate::terminal::{Frame, Size, region};
use crate::text::{clip, columns, one_line};
use crate::theme::ColorRole;

/// Number of rows that are shown at most.
const ROWS: usize = 12;

/// One of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PickerItem {
    /// What it is called, and searched by.
    pub words: String,
    /// What else is known of it: age, cost.
    pub about: String,
}

/// What comes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickerStep {
    /// It goes on.
    Stay,
    /// The item with this number is chosen.
    Chosen(usize),
    /// Nothing is chosen.
    Left,
}

/// A list with a search line.
pub struct Picker {
    title: String,
    items: Vec<PickerItem>,
    search: EditBuffer,
    /// The numbers of those that fit, best first.
    fitting: Vec<usize>,
    chosen: usize,
}

impl Picker {
    /// Shows a list.
    pub fn new(title: &str, items: Vec<PickerItem>) -> Self {
        let fitting = (0..items.len()).collect();
        Self {
            title: title.to_owned(),
            items,
            search: EditBuffer::new(),
            fitting,
            chosen: 0,
        }
    }

    /// Searches for a part.
    pub fn search(&mut self, part: &str) {
        self.searched(|search| search.set(part));
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> PickerStep {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            _ if key.kind == KeyEventKind::Release => {}
            KeyCode::Esc => return PickerStep::Left,
            KeyCode::Char('c' | 'd') if control => return PickerStep::Left,
            KeyCode::Enter => {
                let chosen = self.fitting.get(self.chosen);
                return chosen.map_or(PickerStep::Stay, |at| PickerStep::Chosen(*at));
            }
            KeyCode::Up => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down => {
                let last = self.fitting.len().saturating_sub(1);
                self.chosen = (self.chosen + 1).min(last);
            }
            KeyCode::Backspace => self.searched(EditBuffer::backspace),
            KeyCode::Char('u') if control => self.searched(|it| it.kill(Kill::ToStart)),
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.searched(|it| it.insert(c.encode_utf8(&mut [0; 4])));
            }
            _ => {}
        }
        PickerStep::Stay
    }

    /// Changes the search, and what fits.
    fn searched(&mut self, change: impl FnOnce(&mut EditBuffer) -> bool) {
        change(&mut self.search);
        self.chosen = 0;
        let words: Vec<&str> = self.items.iter().map(|item| item.words.as_str()).collect();
        let part = self.search.text().to_lowercase();
        if part.is_empty() {
            self.fitting = (0..words.len()).collect();
            return;
        }
        self.fitting = fuzzy::best(self.search.text(), &words, words.len());
        // Those with all of it stay in the order of the list, which is that of time.
        self.fitting.sort_by_key(|at| {
            let has_all = words[*at].to_lowercase().contains(&part);
            if has_all { (0, *at) } else { (1, 0) }
        });
    }

    /// Returns the words of the first items that fit.
    pub fn fitting_words(&self, most: usize) -> impl Iterator<Item = &str> {
        let items = self.fitting.iter().take(most);
        items.filter_map(|at| self.items.get(*at).map(|item| item.words.as_str()))
    }

    /// Returns the frame.
    pub fn view(&self, size: Size) -> Frame {
        let width = size.columns.max(4);
        let most = usize::from(size.rows.max(4)).min(ROWS + 3);
        let (lines, caret) = self.lines(width, most);
        Frame {
            printed: Vec::new(),
            live: region(&lines, width),
            caret,
        }
    }

    /// Returns at most `most` lines, and where the cursor stands. The search line is always there;
    /// items come before the hint, and the hint before the title.
    pub fn lines(&self, width: u16, most: usize) -> (Vec<Line<'static>>, Position) {
        let dim = Style::new().dim();
        let room = most.saturating_sub(1).min(ROWS + 2);
        let (has_hint, has_title) = (room > 1, room > 2);
        let room = room - usize::from(has_hint) - usize::from(has_title);
        let mut lines = Vec::new();
        if has_title {
            lines.push(Line::styled(one_line(&self.title), dim));
        }
        let first = (self.chosen + 1).saturating_sub(room);
        let shown = self.fitting.iter().enumerate().skip(first).take(room);
        let shown = shown.filter_map(|(at, number)| Some((at, self.items.get(*number)?)));
        for (at, item) in shown {
            let (sign, style) = match at == self.chosen {
                true => ("❯ ", ColorRole::Accent.style().bold()),
                false => ("  ", Style::new()),
            };
            let about = match item.about.as_str() {
                "" => String::new(),
                about => format!("{about}  "),
            };
            lines.push(Line::from(vec![
                Span::styled(sign, dim),
                Span::styled(one_line(&about), dim),
                Span::styled(one_line(&item.words), style),
            ]));
        }
        if self.fitting.is_empty() && room > 0 {
            lines.push(Line::styled("  nothing fits", dim));
        }
        let row = lines.len() as u16;
        lines.push(Line::from(vec![
            Span::styled("› ", ColorRole::Accent.style().bold()),
            Span::raw(self.search.text().to_owned()),
        ]));
        if has_hint {
            let hint = "type to search · Enter chooses · Esc leaves";
            lines.push(Line::styled(hint, dim));
        }
        let lines: Vec<_> = lines.iter().map(|line| clip(line, width)).collect();
        let column = columns(self.search.text()) as u16 + 2;
        (
            lines,
            Position::new(column.min(width.saturating_sub(1)), row),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker() -> Picker {
        let item = |words: &str| PickerItem {
            words: words.into(),
            about: "2h".into(),
        };
        let words = ["fix the parser", "write docs", "parse dates"];
        Picker::new("sessions", words.map(item).into())
    }

    fn press(picker: &mut Picker, code: KeyCode) -> PickerStep {
        picker.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn what_is_typed_narrows_the_list() {
        let mut picker = picker();
        for c in "docs".chars() {
            assert_eq!(press(&mut picker, KeyCode::Char(c)), PickerStep::Stay);
        }
        assert_eq!(press(&mut picker, KeyCode::Enter), PickerStep::Chosen(1));
        press(&mut picker, KeyCode::Char('x'));
        assert_eq!(press(&mut picker, KeyCode::Enter), PickerStep::Stay);
        assert_eq!(press(&mut picker, KeyCode::Esc), PickerStep::Left);
    }

    #[test]
    fn arrows_choose_and_stop_at_the_ends() {
        let mut picker = picker();
        press(&mut picker, KeyCode::Up);
        assert_eq!(press(&mut picker, KeyCode::Enter), PickerStep::Chosen(0));
        for _ in 0..5 {
            press(&mut picker, KeyCode::Down);
        }
        assert_eq!(press(&mut picker, KeyCode::Enter), PickerStep::Chosen(2));
    }

    #[test]
    fn the_chosen_one_is_always_shown() {
        let mut picker = picker();
        press(&mut picker, KeyCode::Down);
        press(&mut picker, KeyCode::Down);
        let size = Size {
            columns: 30,
            rows: 5,
        };
        let frame = picker.view(size);
        let text: String = frame
            .live
            .content
            .iter()
            .map(|cell| cell.symbol())
            .collect();
        assert!(text.contains("❯ 2h  parse dates"), "{text}");
        assert!(frame.live.area.height <= 5);
    }
}
