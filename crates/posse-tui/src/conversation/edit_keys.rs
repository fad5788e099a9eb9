//! Keys that edit a text, as in shells.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::edit::{EditBuffer, Kill, Motion};

/// Edits a text as shells do.
pub(crate) fn edit(buffer: &mut EditBuffer, key: KeyEvent) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let by_word = control || alt;
    match key.code {
        KeyCode::Char('a') if control => buffer.go(Motion::LineStart),
        KeyCode::Char('e') if control => buffer.go(Motion::LineEnd),
        KeyCode::Char('b') if control => buffer.go(Motion::Left),
        KeyCode::Char('f') if control => buffer.go(Motion::Right),
        KeyCode::Char('b') if alt => buffer.go(Motion::WordLeft),
        KeyCode::Char('f') if alt => buffer.go(Motion::WordRight),
        KeyCode::Char('d') if alt => buffer.kill(Kill::WordRight),
        KeyCode::Char('d') if control => buffer.delete(),
        KeyCode::Char('h') if control => buffer.backspace(),
        KeyCode::Char('k') if control => buffer.kill(Kill::ToEnd),
        KeyCode::Char('u') if control => buffer.kill(Kill::ToStart),
        KeyCode::Char('w') if control => buffer.kill(Kill::ToBlank),
        KeyCode::Char('y') if control => buffer.yank(),
        KeyCode::Char('_' | '7') if control => buffer.undo(),
        KeyCode::Char('_') if alt => buffer.redo(),
        KeyCode::Char(c) if !control && !alt => buffer.insert(c.encode_utf8(&mut [0; 4])),
        KeyCode::Backspace if by_word => buffer.kill(Kill::WordLeft),
        KeyCode::Backspace => buffer.backspace(),
        KeyCode::Delete if by_word => buffer.kill(Kill::WordRight),
        KeyCode::Delete => buffer.delete(),
        KeyCode::Left if by_word => buffer.go(Motion::WordLeft),
        KeyCode::Right if by_word => buffer.go(Motion::WordRight),
        KeyCode::Left => buffer.go(Motion::Left),
        KeyCode::Right => buffer.go(Motion::Right),
        KeyCode::Home if control => buffer.go(Motion::BufferStart),
        KeyCode::End if control => buffer.go(Motion::BufferEnd),
        KeyCode::Home => buffer.go(Motion::LineStart),
        KeyCode::End => buffer.go(Motion::LineEnd),
        KeyCode::Enter => buffer.newline(),
        _ => false,
    };
}
