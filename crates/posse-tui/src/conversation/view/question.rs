//! The question that waits: who asks, what it is about, and the keys that answer it.

use posse_protocol::Display;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::{QUESTION_ROWS, edited_rows, most_rows};
use crate::conversation::questions::OpenQuestion;
use crate::conversation::{Conversation, KeyedAction};
use crate::question::{QuestionDialog, Typing, deed, wanted};
use crate::text::{changed_file, changed_lines, clip, columns, diff, one_line, tame, wrap};
use crate::theme::ColorRole;

/// Number of lines of what is asked about, while the question is open.
const SHOWN_LINES: usize = 9;
/// The same while it is closed.
const CLOSED_LINES: usize = 5;
/// Number of rows of what the person writes.
const WORD_ROWS: usize = 3;

/// A question as it is drawn.
#[derive(Default)]
pub(super) struct QuestionLines {
    pub(super) lines: Vec<Line<'static>>,
    /// The row and the column of the cursor, if the question is answered in words.
    pub(super) caret: Option<(usize, u16)>,
}

/// Returns the first question in at most `room` lines.
///
/// What it is about is cut off first, then what may be typed; what the person types is always
/// there.
pub(super) fn draw(it: &Conversation, width: u16, room: usize) -> QuestionLines {
    let Some(open) = it.questions.first() else {
        return QuestionLines::default();
    };
    if room == 0 {
        return QuestionLines::default();
    }
    let mut lines = vec![head(it, &open.dialog, width)];
    let mut left = room - 1;
    let mut content = content(&open.dialog, width);
    if !it.questions.is_open {
        let chords = vec![clip(&Line::from(chords(it, &open.dialog)), width)];
        // The command is seen before the keys that allow it.
        let has_chords = left > content.len().min(1);
        let most = (left - usize::from(has_chords)).min(CLOSED_LINES);
        let content = closed(&open.dialog, content, most);
        let key = it.keys.0.first(KeyedAction::Answer);
        let place = format!("{} shows all", key.as_deref().unwrap_or("/answer"));
        lines.extend(beginning(content, most, &place, width));
        lines.extend(chords.into_iter().filter(|_| has_chords));
        return QuestionLines { lines, caret: None };
    }
    let mut words = None;
    if it.questions.typing() == Some(Typing::Line) {
        let sign = ("» ", ColorRole::Warning.style());
        let most = WORD_ROWS.min(left.max(1));
        let drawn = edited_rows(&open.words, width, most, sign);
        left = left.saturating_sub(drawn.0.len());
        words = Some(drawn);
    }
    if open.dialog.is_choice() {
        content.clear();
    }
    let mut keys = prompt_lines(open, width);
    // What is long was printed when it was opened.
    let is_printed = content.len() > most_shown(it);
    let reserved = usize::from(!is_printed && !content.is_empty());
    if keys.len() > left.saturating_sub(reserved) {
        keys = short_lines(open, width);
    }
    keys = shortened(keys, left.saturating_sub(reserved), "", width);
    left -= keys.len();
    let hint = (left > reserved).then(|| hint(it.questions.count(), width));
    left -= usize::from(hint.is_some());
    let most = match is_printed {
        true => left.min(CLOSED_LINES),
        false => left,
    };
    lines.extend(shortened(content, most, "see above", width));
    lines.extend(keys);
    lines.extend(hint);
    let caret = words.map(|(words, (row, column))| {
        lines.truncate(room.saturating_sub(words.len()));
        let first = lines.len();
        lines.extend(words);
        (first + row, column)
    });
    QuestionLines { lines, caret }
}

/// Returns all of what the first question is about, if the live region has no room for it.
pub(in crate::conversation) fn too_long(it: &Conversation, width: u16) -> Vec<Line<'static>> {
    let Some(open) = it.questions.first() else {
        return Vec::new();
    };
    let is_long = content(&open.dialog, width).len() > most_shown(it);
    match is_long && !open.dialog.is_choice() {
        // The terminal wraps it, so that it is copied as it is.
        true => content(&open.dialog, u16::MAX),
        false => Vec::new(),
    }
}

/// Returns all that may be typed now, if the live region has room for few words only.
pub(in crate::conversation) fn unfit_prompt(it: &Conversation, width: u16) -> Vec<Line<'static>> {
    let Some(open) = it.questions.first() else {
        return Vec::new();
    };
    let most = most_rows(it);
    let is_written = it.questions.typing() == Some(Typing::Line);
    // Who asks, what the person writes, the prompt, the status.
    let others = 2 + usize::from(is_written) + usize::from(most >= QUESTION_ROWS);
    let keys = prompt_lines(open, width);
    match keys.len() > most.saturating_sub(others) {
        true => keys,
        false => Vec::new(),
    }
}

/// Returns how many lines of what is asked about are shown while the question is open.
fn most_shown(it: &Conversation) -> usize {
    SHOWN_LINES.min(usize::from(it.size.rows).saturating_sub(8))
}

/// Returns what a closed question is about, and the number of its lines. If there is no room for all
/// of a change, only the lines that come and go are left.
fn closed(
    dialog: &QuestionDialog,
    mut lines: Vec<Line<'static>>,
    most: usize,
) -> (Vec<Line<'static>>, usize) {
    let count = lines.len();
    if let Some(Display::Diff(change)) = dialog.question().shown.as_ref().filter(|_| count > most) {
        lines.truncate(1);
        lines.extend(changed_lines(change));
    }
    (lines, count)
}

/// Returns at most `most` lines, the last of which says how many are missing, and where they are.
fn shortened(
    lines: Vec<Line<'static>>,
    most: usize,
    place: &str,
    width: u16,
) -> Vec<Line<'static>> {
    let count = lines.len();
    beginning((lines, count), most, place, width)
}

/// Returns the first of `count` lines, at most `most`, the last of which says how many are missing,
/// and where they are.
fn beginning(
    (mut lines, count): (Vec<Line<'static>>, usize),
    most: usize,
    place: &str,
    width: u16,
) -> Vec<Line<'static>> {
    if count > most && most > 1 {
        let place = match place {
            "" => String::new(),
            place => format!(" · {place}"),
        };
        lines.truncate(most - 1);
        let text = format!("  … {} more lines{place}", count - lines.len());
        lines.push(Line::styled(text, Style::new().dim()));
    }
    lines.truncate(most);
    lines.iter().map(|line| clip(line, width)).collect()
}

/// Returns the first question with all that is asked about, however long.
pub(in crate::conversation) fn in_full(it: &Conversation) -> Vec<Line<'static>> {
    let Some(open) = it.questions.first() else {
        return Vec::new();
    };
    let mut lines = vec![head(it, &open.dialog, u16::MAX)];
    if !open.dialog.is_choice() {
        lines.extend(content(&open.dialog, u16::MAX));
    }
    let prompt = open.prompt.lines();
    lines.extend(prompt.map(|line| Line::raw(tame(line).into_owned())));
    lines
}

fn head(it: &Conversation, dialog: &QuestionDialog, width: u16) -> Line<'static> {
    let who = dialog.from().map_or_else(
        || "the agent".to_owned(),
        |path| one_line(path.strip_prefix("/main/").unwrap_or(path)),
    );
    let what = deed(dialog.question());
    let count = it.questions.count();
    let place = match count {
        1 => String::new(),
        count => format!(" · 1 of {count}"),
    };
    // How to allow it without a question is for those who are not asked.
    let why = dialog.question().why.split("; allow it with").next();
    let why = one_line(why.unwrap_or_default());
    let line = Line::from(vec![
        Span::styled("◐ ", ColorRole::Warning.style()),
        Span::styled(format!("{who} {what}"), Style::new().bold()),
        Span::styled(format!("{place} · {why}"), Style::new().dim()),
    ]);
    clip(&line, width)
}

/// Returns what is asked about: the change, the command, the plan, the questions.
pub(crate) fn content(dialog: &QuestionDialog, width: u16) -> Vec<Line<'static>> {
    let question = dialog.question();
    match &question.shown {
        Some(Display::Diff(change)) => {
            let mut file = changed_file(change);
            file.spans.insert(0, Span::raw("  "));
            let mut lines = vec![file];
            lines.extend(diff(change, usize::MAX));
            lines
        }
        Some(Display::Text { text }) => plain(&format!("{}\n{text}", wanted(question)), width),
        None => plain(&wanted(question), width),
    }
}

fn plain(text: &str, width: u16) -> Vec<Line<'static>> {
    let text = tame(text);
    let lines = text.lines().map(|line| Line::raw(format!("  {line}")));
    lines.flat_map(|line| wrap(&line, width, 2)).collect()
}

fn chords(it: &Conversation, dialog: &QuestionDialog) -> Vec<Span<'static>> {
    let key = ColorRole::Warning.style();
    let mut spans = vec![Span::raw("  ")];
    let mut add = |action: KeyedAction, what: String| {
        if let Some(chord) = it.keys.0.first(action) {
            spans.push(Span::styled(chord, key));
            spans.push(Span::raw(format!(" {what}   ")));
        }
    };
    if dialog.typing() == Typing::Key {
        add(KeyedAction::Yes, "yes".to_owned());
        add(KeyedAction::No, "no".to_owned());
    }
    add(KeyedAction::Answer, "open".to_owned());
    let always = dialog.question().suggestions.first();
    if let Some(suggestion) = always.filter(|_| dialog.typing() == Typing::Key) {
        // The last one: a long rule must not hide another key.
        let rules = one_line(&suggestion.rules.join(", "));
        add(KeyedAction::Always, format!("always {rules}"));
    }
    spans
}

/// Returns what may be typed now.
fn prompt_lines(open: &OpenQuestion, width: u16) -> Vec<Line<'static>> {
    let lines = open
        .prompt
        .lines()
        .map(|line| Line::raw(tame(line).into_owned()));
    lines.flat_map(|line| wrap(&line, width, 4)).collect()
}

/// Returns the same in few words, a key and its word on the same line.
fn short_lines(open: &OpenQuestion, width: u16) -> Vec<Line<'static>> {
    let mut lines: Vec<String> = Vec::new();
    for word in open.dialog.short_prompt() {
        match lines.last_mut() {
            Some(line) if columns(line) + columns(&word) + 3 <= usize::from(width) => {
                line.push_str(&format!(" · {word}"));
            }
            _ => lines.push(word),
        }
    }
    lines.into_iter().map(Line::raw).collect()
}

/// Returns the keys that leave the question.
fn hint(count: usize, width: u16) -> Line<'static> {
    let text = match count {
        1 => "  Esc back to the prompt",
        _ => "  Esc back to the prompt · Tab next question",
    };
    clip(&Line::styled(text, Style::new().dim()), width)
}
