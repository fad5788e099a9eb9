//! Keys: what each does now. What is open takes them first: the help, a line at the foot, something
//! that waits for a yes, a question.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::act;
use super::action::{self, Action, KeyPlace, WorktreeAction};
use super::layout::is_reviewing;
use super::line::LineUse;
use super::{Board, BoardEffect, BoardScreen};
use crate::conversation::{SETTLE_MS, edit_by_key};
use crate::question::Typing;
use crate::text::one_line;

/// Handles a key.
pub(super) fn pressed(it: &mut Board, mut key: KeyEvent, now_ms: i64) -> Vec<BoardEffect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    it.notice = None;
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if let KeyCode::Char(letter) = key.code
        && (alt || control)
    {
        // Alt-Y is meant also with Shift or Caps Lock.
        key.code = KeyCode::Char(letter.to_ascii_lowercase());
    }
    let leaves = key.code == KeyCode::Esc || control && key.code == KeyCode::Char('c');
    if let Some(first) = it.help {
        help(it, key, first);
        return Vec::new();
    }
    if it.line.is_some() {
        return to_line(it, key, leaves, now_ms);
    }
    if it.confirm.is_some() {
        return to_confirm(it, key, now_ms);
    }
    if it.questions.is_open() {
        return to_question(it, key, leaves, now_ms);
    }
    if leaves {
        return escape(it, now_ms);
    }
    match action_of(it, key) {
        Some(action) => act::run(it, action, "", now_ms),
        None => Vec::new(),
    }
}

/// Returns what a key does where it is pressed.
fn action_of(it: &Board, key: KeyEvent) -> Option<Action> {
    it.keys.0.action(key, |action| action.is_on(place(it)))
}

/// Returns where keys are pressed now.
pub(super) fn place(it: &Board) -> KeyPlace {
    match is_reviewing(it) {
        true => KeyPlace::Review,
        false => KeyPlace::Screen(it.screen),
    }
}

/// Handles pasted text.
pub(super) fn pasted(it: &mut Board, text: &str) -> Vec<BoardEffect> {
    if let Some(line) = &mut it.line {
        line.text.paste(text);
        line.chosen = 0;
        edited(it);
    } else if it.questions.typing() == Some(Typing::Line)
        && let Some(words) = it.questions.words()
    {
        words.paste(text);
    }
    Vec::new()
}

/// Closes what is open on the screen, else the board.
fn escape(it: &mut Board, now_ms: i64) -> Vec<BoardEffect> {
    if is_reviewing(it) {
        return act::run(it, Action::Worktree(WorktreeAction::Close), "", now_ms);
    } else if it.reads {
        it.reads = false;
    } else if it.screen == BoardScreen::Agents && !it.agents.tree.filter().is_empty() {
        it.agents.set_filter("");
    } else {
        return vec![BoardEffect::Leave];
    }
    Vec::new()
}

/// Scrolls the help, or closes it.
fn help(it: &mut Board, key: KeyEvent, first: usize) {
    let last = action::ACTIONS.len() - 1;
    it.help = match key.code {
        KeyCode::Down | KeyCode::Char('j') => Some((first + 1).min(last)),
        KeyCode::Up | KeyCode::Char('k') => Some(first.saturating_sub(1)),
        KeyCode::PageDown => Some((first + usize::from(it.size.rows / 2)).min(last)),
        KeyCode::PageUp => Some(first.saturating_sub(usize::from(it.size.rows / 2))),
        _ => None,
    };
}

/// Only a yes is one.
fn to_confirm(it: &mut Board, key: KeyEvent, now_ms: i64) -> Vec<BoardEffect> {
    let others = KeyModifiers::ALT | KeyModifiers::CONTROL;
    if key.code == KeyCode::Char('y') && !key.modifiers.intersects(others) {
        return act::confirmed(it, now_ms);
    }
    it.confirm = None;
    Vec::new()
}

fn to_question(it: &mut Board, key: KeyEvent, leaves: bool, now_ms: i64) -> Vec<BoardEffect> {
    if leaves {
        it.questions.close();
        return Vec::new();
    }
    let others = KeyModifiers::ALT | KeyModifiers::CONTROL;
    let alone = !key.modifiers.intersects(others);
    match (it.questions.typing(), key.code) {
        (Some(Typing::Key), KeyCode::Char(letter)) if alone => {
            act::answer(it, &letter.to_string(), now_ms)
        }
        (Some(Typing::Key), _) => match action_of(it, key) {
            Some(action) if action.answer().is_some() => act::by_chord(it, action, now_ms),
            _ => Vec::new(),
        },
        (Some(Typing::Line), KeyCode::Enter) if alone => {
            let words = it.questions.words().map(|words| words.take());
            let words = words.unwrap_or_default();
            act::answer(it, words.trim(), now_ms)
        }
        (Some(Typing::Line), _) => {
            if let Some(words) = it.questions.words() {
                edit_by_key(words, key);
            }
            Vec::new()
        }
        (None, _) => Vec::new(),
    }
}

fn to_line(it: &mut Board, key: KeyEvent, leaves: bool, now_ms: i64) -> Vec<BoardEffect> {
    let Some(line) = &mut it.line else {
        return Vec::new();
    };
    let is_palette = line.purpose == LineUse::Palette;
    match key.code {
        _ if leaves => {
            let text = line.text.expanded();
            match it.line.take().map(|line| line.purpose) {
                Some(LineUse::Filter) => it.agents.set_filter(""),
                Some(LineUse::Message(agent, _)) if !text.is_empty() => {
                    it.drafts.insert(agent, text);
                }
                Some(LineUse::Comment(comment, place)) => {
                    if let Some(review) = &mut it.worktrees.review {
                        review.keep_begun(comment, place, text);
                    }
                }
                _ => {}
            }
        }
        KeyCode::Backspace if line.text.is_empty() => it.line = None,
        KeyCode::Enter => return entered(it, now_ms),
        KeyCode::Up if is_palette => line.chosen = line.chosen.saturating_sub(1),
        KeyCode::Down if is_palette => {
            let count = action::fitting(line.text.text()).0.len();
            line.chosen = (line.chosen + 1).min(count.saturating_sub(1));
        }
        KeyCode::Tab if is_palette => {
            let (fitting, argument) = action::fitting(line.text.text());
            if let Some(chosen) = fitting.get(line.chosen) {
                let completed = format!("{} {argument}", chosen.name);
                line.text.set(&completed);
                line.chosen = 0;
            }
        }
        _ => {
            edit_by_key(&mut line.text, key);
            line.chosen = 0;
            edited(it);
        }
    }
    Vec::new()
}

/// The line has changed: a filter holds at once.
fn edited(it: &mut Board) {
    if let Some(line) = it
        .line
        .as_ref()
        .filter(|line| line.purpose == LineUse::Filter)
    {
        let words = one_line(&line.text.expanded());
        it.agents.set_filter(words.trim());
    }
}

/// Does what the line says.
fn entered(it: &mut Board, now_ms: i64) -> Vec<BoardEffect> {
    let Some(mut line) = it.line.take() else {
        return Vec::new();
    };
    let is_new = |at: i64| now_ms.saturating_sub(at) < SETTLE_MS as i64;
    if line.appeared_ms.is_some_and(is_new) {
        it.line = Some(line);
        return Vec::new();
    }
    let words = line.text.take();
    let words = words.trim();
    match line.purpose {
        LineUse::Filter => Vec::new(),
        LineUse::Message(..) | LineUse::NewTask(_) | LineUse::Comment(..) if words.is_empty() => {
            Vec::new()
        }
        LineUse::Comment(comment, place) => {
            if let Some(review) = &mut it.worktrees.review {
                review.write(comment, place, words);
            }
            Vec::new()
        }
        LineUse::Message(agent, _) => vec![BoardEffect::Message(agent, words.to_owned())],
        LineUse::NewTask(list) => {
            let subject = one_line(words);
            vec![BoardEffect::AddTask { list, subject }]
        }
        LineUse::Palette => {
            let words = one_line(words);
            let (fitting, argument) = action::fitting(&words);
            match fitting.get(line.chosen) {
                Some(chosen) if !words.is_empty() => act::run(it, chosen.action, argument, now_ms),
                Some(_) => Vec::new(),
                None => {
                    it.notice = Some(format!("nothing is called {words}"));
                    Vec::new()
                }
            }
        }
    }
}
