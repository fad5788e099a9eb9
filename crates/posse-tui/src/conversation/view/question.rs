//! The question that waits: who asks, what it is about, and the keys that answer it.

use posse_protocol::{Display, QuestionKind};
use ratatui_core::style::{Color, Style};
use ratatui_core::text::{Line, Span};

use super::rows;
use crate::conversation::Conversation;
use crate::conversation::questions::OpenQuestion;
use crate::question::{QuestionDialog, Typing, wanted};
use crate::text::{clip, diff, one_line, tame, wrap};

/// Number of lines of what is asked about.
const SHOWN_LINES: usize = 8;
/// The same while the question is closed.
const CLOSED_LINES: usize = 3;

/// Returns the lines of the first question.
pub(super) fn lines(it: &Conversation, width: u16) -> Vec<Line<'static>> {
    let Some(open) = it.questions.first() else {
        return Vec::new();
    };
    let mut lines = vec![head(it, &open.dialog, width)];
    let is_open = it.questions.is_open;
    let most = if is_open { SHOWN_LINES } else { CLOSED_LINES };
    lines.extend(content(&open.dialog, width, most));
    if !is_open {
        lines.push(clip(&Line::from(chords(&open.dialog)), width));
        return lines;
    }
    lines.extend(prompt_lines(open, width));
    if it.questions.typing() == Some(Typing::Line) {
        let sign = ("» ", Style::new().fg(Color::Yellow));
        lines.extend(rows(&it.questions.words, width, 3, sign).0);
    }
    lines
}

/// Returns the first question with all that is asked about, however long.
pub(in crate::conversation) fn in_full(it: &Conversation) -> Vec<Line<'static>> {
    let Some(open) = it.questions.first() else {
        return Vec::new();
    };
    let mut lines = vec![head(it, &open.dialog, u16::MAX)];
    lines.extend(content(&open.dialog, u16::MAX, usize::MAX));
    let prompt = open.prompt.lines();
    lines.extend(prompt.map(|line| Line::raw(tame(line).into_owned())));
    lines
}

/// Returns how far above the end of the question the cursor stands, and its column, if it is
/// answered in words.
pub(super) fn caret(it: &Conversation, width: u16) -> Option<(usize, u16)> {
    it.questions.first()?;
    if it.questions.typing() != Some(Typing::Line) {
        return None;
    }
    let (lines, (row, column)) = rows(&it.questions.words, width, 3, ("» ", Style::new()));
    Some((lines.len() - row, column))
}

fn head(it: &Conversation, dialog: &QuestionDialog, width: u16) -> Line<'static> {
    let who = dialog.from().map_or_else(
        || "the agent".to_owned(),
        |path| one_line(path.strip_prefix("/main/").unwrap_or(path)),
    );
    let what = match dialog.question().kind {
        QuestionKind::Choice => "asks you".to_owned(),
        QuestionKind::Plan => "hands in a plan".to_owned(),
        QuestionKind::Permission => format!("wants to use {}", one_line(&dialog.question().tool)),
    };
    let count = it.questions.count();
    let place = match count {
        1 => String::new(),
        count => format!(" · 1 of {count}"),
    };
    // How to allow it without a question is for those who are not asked.
    let why = dialog.question().why.split("; allow it with").next();
    let why = one_line(why.unwrap_or_default());
    let line = Line::from(vec![
        Span::styled("◐ ", Style::new().fg(Color::Yellow)),
        Span::styled(format!("{who} {what}"), Style::new().bold()),
        Span::styled(format!("{place} · {why}"), Style::new().dim()),
    ]);
    clip(&line, width)
}

/// Returns what is asked about: the change, the command, the plan.
fn content(dialog: &QuestionDialog, width: u16, most: usize) -> Vec<Line<'static>> {
    let question = dialog.question();
    if dialog.is_choice() {
        // Its options are shown once it is open.
        let text = if most == CLOSED_LINES {
            wanted(question)
        } else {
            String::new()
        };
        return plain(&text, width);
    }
    let lines: Vec<Line<'static>> = match &question.shown {
        Some(Display::Diff(change)) => diff(change, most),
        Some(Display::Text { text }) => plain(&format!("{}\n{text}", wanted(question)), width),
        None => plain(&wanted(question), width),
    };
    let hidden = lines.len().saturating_sub(most);
    let mut lines: Vec<_> = lines.into_iter().take(most).collect();
    if hidden > 0 {
        lines.push(Line::styled(
            format!("  … {hidden} more lines: Tab opens it"),
            Style::new().dim(),
        ));
    }
    lines.iter().map(|line| clip(line, width)).collect()
}

fn plain(text: &str, width: u16) -> Vec<Line<'static>> {
    let text = tame(text);
    let lines = text.lines().map(|line| Line::raw(format!("  {line}")));
    lines.flat_map(|line| wrap(&line, width, 2)).collect()
}

fn chords(dialog: &QuestionDialog) -> Vec<Span<'static>> {
    let key = Style::new().fg(Color::Yellow);
    let mut spans = vec![Span::raw("  ")];
    let mut add = |chord: &'static str, what: String| {
        spans.push(Span::styled(chord, key));
        spans.push(Span::raw(format!(" {what}   ")));
    };
    if dialog.typing() == Typing::Key {
        add("Alt-Y", "yes".to_owned());
        let always = dialog.question().suggestions.first();
        if let Some(suggestion) = always {
            add(
                "Alt-A",
                format!("always {}", one_line(&suggestion.rules.join(", "))),
            );
        }
        add("Alt-N", "no".to_owned());
    }
    add("Tab", "open".to_owned());
    spans
}

/// Returns what may be typed now.
fn prompt_lines(open: &OpenQuestion, width: u16) -> Vec<Line<'static>> {
    let lines = open
        .prompt
        .lines()
        .map(|line| Line::raw(tame(line).into_owned()));
    let mut lines: Vec<_> = lines.flat_map(|line| wrap(&line, width, 4)).collect();
    lines.push(Line::styled(
        "  Esc back to the prompt · Tab next question",
        Style::new().dim(),
    ));
    lines
}
