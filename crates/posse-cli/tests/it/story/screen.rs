//! A screen as tmux has it: cells with styles, written in one way only, and without what differs in
//! each run.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Where homes are in recordings, as wide as where that of a story is.
const HOMES: &str = "/mnt/home";
/// Begins a screen.
const CLEAR: &str = "\u{1b}[0m\u{1b}[H\u{1b}[2J";

/// What is seen of a cell besides its character.
#[derive(Clone, Default, PartialEq, Eq)]
struct CellStyle {
    /// Bold, dim and the like, by their codes.
    attributes: BTreeSet<u8>,
    foreground: String,
    background: String,
}

impl CellStyle {
    /// Changes it as a sequence says.
    fn apply(&mut self, codes: &str) {
        let mut codes = codes.split(';');
        while let Some(code) = codes.next() {
            match code.parse().unwrap_or(0) {
                0_u8 => *self = Self::default(),
                code @ 1..=9 => drop(self.attributes.insert(code)),
                22 => self.attributes.retain(|code| !matches!(code, 1 | 2)),
                code @ 23..=29 => drop(self.attributes.remove(&(code - 20))),
                39 => self.foreground.clear(),
                49 => self.background.clear(),
                38 | 48 => {
                    let count = match codes.next() {
                        Some("2") => 3,
                        _ => 1,
                    };
                    let kind = if count == 3 { "2" } else { "5" };
                    let values: Vec<&str> = codes.by_ref().take(count).collect();
                    let color = format!("{code};{kind};{}", values.join(";"));
                    match code {
                        "38" => self.foreground = color,
                        _ => self.background = color,
                    }
                }
                40..=47 | 100..=107 => self.background = code.to_owned(),
                _ => self.foreground = code.to_owned(),
            }
        }
    }

    /// Returns the style of a blank cell, of which less is seen.
    fn blank(&self) -> Self {
        let is_seen = |code: &&u8| matches!(**code, 4 | 7 | 9);
        Self {
            attributes: self.attributes.iter().filter(is_seen).copied().collect(),
            foreground: String::new(),
            background: self.background.clone(),
        }
    }

    /// Returns the sequence that leads to it, whatever was before.
    fn sequence(&self) -> String {
        let codes = self.attributes.iter().map(ToString::to_string);
        let colors = [&self.foreground, &self.background].into_iter().cloned();
        let codes: Vec<String> = std::iter::once("0".to_owned())
            .chain(codes)
            .chain(colors.filter(|color| !color.is_empty()))
            .collect();
        format!("\u{1b}[{}m", codes.join(";"))
    }
}

/// The screen of a terminal.
pub(super) struct ShownScreen {
    /// Each line with the sequences of its styles.
    lines: Vec<String>,
    cursor: String,
}

impl ShownScreen {
    /// Returns what `capture-pane -e` has printed, and below it the row, the column and the
    /// visibility of the cursor.
    pub(super) fn of(captured: &str) -> Self {
        let (captured, cursor) = captured.trim_end().rsplit_once('\n').unwrap_or_default();
        let mut style = CellStyle::default();
        let mut lines: Vec<String> = captured
            .split('\n')
            .map(|line| written(line, &mut style))
            .collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        Self {
            lines,
            cursor: cursor_sequence(cursor),
        }
    }

    /// Returns what clears the screen and draws this one, without what differs in each run.
    pub(super) fn normal(&self, homes: &str) -> String {
        assert_eq!(homes.len(), HOMES.len(), "{homes}");
        let lines = self.lines.iter();
        let lines = lines.map(|line| NORMAL.line(&line.replace(homes, HOMES)));
        let lines: Vec<String> = lines.collect();
        format!("{CLEAR}{}{}", lines.join("\r\n"), self.cursor)
    }
}

/// Returns the sequences that put the cursor in its place, and show or hide it.
fn cursor_sequence(cursor: &str) -> String {
    let numbers: Vec<u16> = cursor.split(' ').flat_map(str::parse).collect();
    let [row, column, is_shown] = numbers[..] else {
        return String::new();
    };
    let shown = if is_shown == 1 { 'h' } else { 'l' };
    format!("\u{1b}[{};{}H\u{1b}[?25{shown}", row + 1, column + 1)
}

/// Returns a line in the one way in which it is recorded: it begins and ends without a style.
fn written(line: &str, style: &mut CellStyle) -> String {
    let mut cells: Vec<(char, CellStyle)> = Vec::new();
    let mut rest = line.chars();
    while let Some(next) = rest.next() {
        match next {
            '\u{1b}' => {
                let codes: String = rest.by_ref().take_while(|c| *c != 'm').collect();
                style.apply(codes.trim_start_matches('['));
            }
            // Another set of characters, which tmux switches to and from.
            '\u{e}' | '\u{f}' => {}
            ' ' => cells.push((' ', style.blank())),
            next => cells.push((next, style.clone())),
        }
    }
    while cells.last() == Some(&(' ', CellStyle::default())) {
        cells.pop();
    }
    let (mut text, mut current) = (String::new(), CellStyle::default());
    for (character, style) in cells {
        let is_same_blank = character == ' ' && style == current.blank();
        if style != current && !is_same_blank {
            text.push_str(&style.sequence());
            current = style;
        }
        text.push(character);
    }
    if current != CellStyle::default() {
        text.push_str("\u{1b}[0m");
    }
    text
}

/// What differs in each run: ids, ages, costs. What stands in its place is as wide.
struct Normal {
    id: Regex,
    age: Regex,
    cost: Regex,
    context: Regex,
    /// Facts at the end of the status.
    spent: Regex,
}

static NORMAL: LazyLock<Normal> = LazyLock::new(Normal::new);

impl Normal {
    fn new() -> Self {
        let regex = |pattern: &str| Regex::new(pattern).unwrap();
        Self {
            id: regex("[0-9a-f]{8}(-[0-9a-f]{4}){2}((-[0-9a-f]{4})(-[0-9a-f]{12}))?"),
            age: regex(r"([0-9]+) s\b( *)"),
            cost: regex(r"\$[0-9]+\.[0-9]+"),
            context: regex("[0-9]+ % of"),
            spent: regex(r" · [0-9]+ % of [0-9]+[kM]| · \$[0-9.]+| +\? keys"),
        }
    }

    fn line(&self, line: &str) -> String {
        let hex = |found: &Captures<'_>| found[0].replace(|c: char| c.is_ascii_hexdigit(), "0");
        let zeros = |found: &Captures<'_>| found[0].replace(|c: char| c.is_ascii_digit(), "0");
        let line = self.id.replace_all(line, hex);
        let line = self.cost.replace_all(&line, zeros);
        let line = self.context.replace_all(&line, zeros);
        let mut narrower = 0;
        let line = self.age.replace_all(&line, |found: &Captures<'_>| {
            let columns = found[1].len() - 1;
            let blanks = &found[2];
            // A column ends there, or the end of the line is at its right edge.
            match blanks.len() {
                0 | 1 => narrower += columns,
                _ => return format!("0 s{blanks}{}", " ".repeat(columns)),
            }
            format!("0 s{blanks}")
        });
        // What has room beside the time depends on how long that is.
        if line.contains("Esc interrupts") {
            return self.spent.replace_all(&line, "").into_owned();
        }
        let right = "? keys";
        line.replace(right, &format!("{}{right}", " ".repeat(narrower)))
    }
}

/// Returns the text of a screen.
pub(super) fn plain(screen: &str) -> String {
    let mut text = String::new();
    let mut rest = screen.chars();
    while let Some(next) = rest.next() {
        match next {
            '\u{1b}' => while rest.next().is_some_and(|c| !c.is_ascii_alphabetic()) {},
            '\r' => {}
            next => text.push(next),
        }
    }
    text
}

/// Returns two screens in words, and the first line that differs with its styles.
pub(super) fn difference(recorded: &str, now: &str) -> String {
    let mut text = format!(
        "--- recorded\n{}\n--- now\n{}\n---\n",
        plain(recorded),
        plain(now)
    );
    let differs = |(one, other): &(&str, &str)| one != other;
    let mut pairs = recorded.split("\r\n").zip(now.split("\r\n"));
    if let Some((recorded, now)) = pairs.find(differs) {
        let _ = write!(text, "recorded: {recorded:?}\nnow:      {now:?}");
    }
    text
}
