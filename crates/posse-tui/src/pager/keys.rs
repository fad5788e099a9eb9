//! Keys of the pager.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEvent, MouseEventKind};

use super::document::matching;
use super::entry::Folds;
use super::scroll::{self, LinePlace};
use super::{Pager, PagerEffect, SearchStage};
use crate::conversation::edit_by_key;
use crate::edit::EditBuffer;
use crate::terminal::WHEEL;

/// Handles a key.
pub(super) fn pressed(it: &mut Pager, mut key: KeyEvent) -> Vec<PagerEffect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    it.notice = None;
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if let KeyCode::Char(letter) = key.code
        && control
    {
        key.code = KeyCode::Char(letter.to_ascii_lowercase());
    }
    let leaves = key.code == KeyCode::Esc || control && key.code == KeyCode::Char('c');
    if it.search.line.is_some() {
        return to_line(it, key, leaves);
    }
    let page = it.height().saturating_sub(1).max(1);
    match key.code {
        _ if leaves => return vec![PagerEffect::Leave],
        KeyCode::Char('z') if control => return vec![PagerEffect::Suspend],
        KeyCode::Char('o' | '\\' | '4') if control => return vec![PagerEffect::Leave],
        _ if control => {}
        KeyCode::Char('q') => return vec![PagerEffect::Leave],
        KeyCode::Up | KeyCode::Char('k') => up(it, 1),
        KeyCode::Down | KeyCode::Char('j') | KeyCode::Enter => down(it, 1),
        KeyCode::PageUp | KeyCode::Char('b') => up(it, page),
        KeyCode::PageDown | KeyCode::Char(' ') => down(it, page),
        KeyCode::Home | KeyCode::Char('g') => go(it, LinePlace::default()),
        KeyCode::End | KeyCode::Char('G') => it.follows = true,
        KeyCode::Char('/') => it.search.line = Some(EditBuffer::new()),
        KeyCode::Char('n') => return again(it, false),
        KeyCode::Char('N') => return again(it, true),
        KeyCode::Char('t') => fold(it, |folds| folds.shows_thinking = !folds.shows_thinking),
        KeyCode::Char('c') => fold(it, |folds| folds.shows_results = !folds.shows_results),
        KeyCode::Char('y') => return copy(it),
        _ => {}
    }
    Vec::new()
}

/// Handles the wheel. Nothing else of the mouse does anything.
pub(super) fn wheel(it: &mut Pager, event: MouseEvent) {
    match event.kind {
        MouseEventKind::ScrollUp => up(it, WHEEL),
        MouseEventKind::ScrollDown => down(it, WHEEL),
        _ => {}
    }
}

fn up(it: &mut Pager, lines: usize) {
    let place = scroll::up(&mut it.document, it.top, lines);
    go(it, place);
}

fn down(it: &mut Pager, lines: usize) {
    let place = scroll::down(&mut it.document, it.top, lines);
    go(it, place);
}

fn go(it: &mut Pager, place: LinePlace) {
    it.top = place;
    it.follows = false;
}

/// Shows or hides a kind of lines. The entry at the top stays there.
fn fold(it: &mut Pager, change: impl FnOnce(&mut Folds)) {
    let mut folds = it.document.folds();
    change(&mut folds);
    it.document.fold(folds);
    it.follows = false;
}

/// Returns the effect that copies what the entry at the top says.
fn copy(it: &mut Pager) -> Vec<PagerEffect> {
    let height = it.height();
    let places = scroll::screen(&mut it.document, it.top, height);
    let entry = places.first().map(|place| place.entry);
    match entry.and_then(|entry| it.document.source(entry)) {
        Some(source) => vec![PagerEffect::Copy(source)],
        None => {
            it.notice = Some("there is nothing to copy".to_owned());
            Vec::new()
        }
    }
}

fn to_line(it: &mut Pager, key: KeyEvent, leaves: bool) -> Vec<PagerEffect> {
    let Some(line) = &mut it.search.line else {
        return Vec::new();
    };
    match key.code {
        _ if leaves => it.search.line = None,
        KeyCode::Backspace if line.is_empty() => it.search.line = None,
        KeyCode::Enter => {
            let text = line.take();
            it.search.line = None;
            let text = text.trim();
            // An empty line repeats the search.
            if !text.is_empty() {
                it.search.text = text.to_owned();
            }
            // At the end there is nothing below.
            return match it.follows {
                true => search(it, it.document.total().checked_sub(1), true),
                false => search(it, Some(it.top.entry), false),
            };
        }
        _ => edit_by_key(line, key),
    }
    Vec::new()
}

/// Searches on: the other lines of the entry at the top first.
fn again(it: &mut Pager, backwards: bool) -> Vec<PagerEffect> {
    if it.search.text.is_empty() {
        it.notice = Some("/ searches".to_owned());
        return Vec::new();
    }
    let LinePlace { entry, line } = it.top;
    let lines = it.document.lines(entry).unwrap_or_default();
    let mut fitting = matching(lines, &it.search.text);
    let found = match backwards {
        true => fitting.rfind(|number| *number < line),
        false => fitting.find(|number| *number > line),
    };
    drop(fitting);
    if let Some(line) = found {
        go(it, LinePlace { entry, line });
        return Vec::new();
    }
    let next = match backwards {
        true => entry.checked_sub(1),
        false => Some(entry + 1).filter(|next| *next < it.document.total()),
    };
    search(it, next, backwards)
}

/// Searches from an entry, or from the other end if there is none.
fn search(it: &mut Pager, from: Option<u64>, backwards: bool) -> Vec<PagerEffect> {
    if it.search.text.is_empty() {
        return Vec::new();
    }
    it.search.backwards = backwards;
    it.search.stage = match from {
        Some(_) => SearchStage::Onward,
        None => SearchStage::Around,
    };
    let from = from.unwrap_or_else(|| it.document.far_end(backwards));
    let text = it.search.text.clone();
    vec![PagerEffect::Search {
        text,
        from,
        backwards,
    }]
}
