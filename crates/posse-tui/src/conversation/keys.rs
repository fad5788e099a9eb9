//! Keys: what each does now.
//!
//! Letters and Enter belong to the draft, unless the person has opened a question.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use posse_protocol::{Command, PermissionMode};

use super::edit_keys::edit;
use super::{Conversation, Effect, KeyedAction, Request, actions, chooser, images, menu, slash};
use crate::edit::{EditBuffer, Motion, Prefix};
use crate::question::Typing;

/// Time within which a second press means more.
const TWICE_MS: u64 = 1000;

/// Handles a key.
pub(super) fn pressed(it: &mut Conversation, mut key: KeyEvent, now_ms: u64) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    it.notice = None;
    let shows_keys = std::mem::take(&mut it.shows_keys);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if let KeyCode::Char(letter) = key.code
        && (alt || control)
    {
        // Alt-Y is meant also with Shift or Caps Lock.
        key.code = KeyCode::Char(letter.to_ascii_lowercase());
    }
    if control && key.code == KeyCode::Char('c') {
        return interrupt(it, now_ms);
    }
    let action = it.keys.0.action(key, |action| is_possible(it, action));
    if action == Some(KeyedAction::Suspend) {
        return run(it, KeyedAction::Suspend, now_ms);
    }
    it.presses.interrupt_ms = None;
    let escaped_ms = it.presses.escape_ms.take();
    if it.questions.is_open {
        return to_question(it, key, action, now_ms);
    }
    if it.chooser.is_some() && action.and_then(KeyedAction::answer).is_none() {
        return chooser::pressed(it, key, action == Some(KeyedAction::History));
    }
    match (action, key.code) {
        // Where a name is typed, it is meant for that.
        (Some(_), KeyCode::Tab) if it.menu.is_some() => complete(it),
        (Some(KeyedAction::Keys), _) if shows_keys => Vec::new(),
        (Some(action), _) => run(it, action, now_ms),
        (None, KeyCode::Esc) if shows_keys => Vec::new(),
        (None, KeyCode::Esc) => escape(it, escaped_ms, now_ms),
        (None, _) => write(it, key, now_ms),
    }
}

/// Returns true if an action is possible now. If not, its key edits the draft.
fn is_possible(it: &Conversation, action: KeyedAction) -> bool {
    match action {
        KeyedAction::Yes | KeyedAction::No | KeyedAction::Always => it.questions.count() > 0,
        KeyedAction::Quit | KeyedAction::Background | KeyedAction::Keys => it.draft.is_empty(),
        _ => true,
    }
}

/// Does what a chord stands for.
fn run(it: &mut Conversation, action: KeyedAction, now_ms: u64) -> Vec<Effect> {
    match action {
        KeyedAction::Newline => {
            it.draft.newline();
            return menu::refresh(it);
        }
        KeyedAction::Later => return send(it, false, now_ms),
        KeyedAction::History => chooser::history(it, ""),
        KeyedAction::Mode => return next_mode(it),
        KeyedAction::Answer => drop(actions::open(it, now_ms)),
        KeyedAction::Yes => return by_chord(it, 'y', now_ms),
        KeyedAction::No => return by_chord(it, 'n', now_ms),
        KeyedAction::Always => return by_chord(it, 'a', now_ms),
        KeyedAction::Agent(number) => return show(it, usize::from(number)),
        KeyedAction::Board => return vec![Effect::Ask(Request::Board)],
        KeyedAction::Transcript => return vec![Effect::Ask(Request::Transcript)],
        KeyedAction::Background => return actions::detach(it),
        KeyedAction::StopAll => return actions::stop_all_if_meant(it, now_ms),
        KeyedAction::Image => return vec![Effect::Ask(Request::ClipboardImage)],
        KeyedAction::Editor => return vec![Effect::OpenEditor(it.draft.expanded())],
        KeyedAction::Suspend => return vec![Effect::Suspend],
        KeyedAction::Quit => return actions::leave(it, now_ms),
        KeyedAction::Keys => it.shows_keys = true,
    }
    Vec::new()
}

/// Handles a key that belongs to the draft.
fn write(it: &mut Conversation, key: KeyEvent, now_ms: u64) -> Vec<Effect> {
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    match key.code {
        KeyCode::Tab => complete(it),
        KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => {
            it.draft.newline();
            menu::refresh(it)
        }
        KeyCode::Enter => enter(it, now_ms),
        KeyCode::Up | KeyCode::Down => vertical(it, key.code == KeyCode::Down),
        _ => {
            edit(&mut it.draft, key);
            menu::refresh(it)
        }
    }
}

/// Sends a line, with the images that were put in before it. A command leaves them for the next.
pub(super) fn typed_line(it: &mut Conversation, line: &str, now_ms: u64) -> Vec<Effect> {
    it.notice = None;
    // The key that lists the keys, where there are none.
    let line = if line.trim() == "?" { "/help" } else { line };
    let before = it.draft.draft();
    let is_command = matches!(Prefix::of(line), Prefix::Slash { .. });
    if is_command || before.is_empty() {
        it.draft.set(line);
    } else {
        it.draft.go(Motion::BufferEnd);
        it.draft.insert(&format!(" {line}"));
    }
    let effects = send(it, true, now_ms);
    if is_command {
        it.draft.restore(&before);
    }
    effects
}

/// Handles pasted text.
pub(super) fn pasted(it: &mut Conversation, text: &str) -> Vec<Effect> {
    match it.questions.typing() {
        Some(Typing::Line) => {
            if let Some(words) = it.questions.words() {
                words.paste(text);
            }
            Vec::new()
        }
        // A key is meant, and text is none.
        Some(Typing::Key) => Vec::new(),
        None if it.chooser.is_some() => Vec::new(),
        None => images::paste(it, text),
    }
}

/// Ctrl-C: the draft, then the run, then the program.
fn interrupt(it: &mut Conversation, now_ms: u64) -> Vec<Effect> {
    let is_second = is_soon(it.presses.interrupt_ms, now_ms);
    it.presses.interrupt_ms = Some(now_ms);
    if it.questions.is_open {
        it.questions.close();
        return Vec::new();
    }
    if it.chooser.take().is_some() {
        return Vec::new();
    }
    if is_second {
        return actions::leave(it, now_ms);
    }
    if !it.draft.is_empty() {
        let draft = it.draft.take();
        if let Some(before) = it.history.end() {
            it.history.push(before.expanded());
        }
        it.history.push(draft);
        it.menu = None;
        return Vec::new();
    }
    if it.is_working() {
        return actions::interrupt(it);
    }
    it.notice = Some("Ctrl-C again leaves".to_owned());
    Vec::new()
}

/// Esc: the menu, then the run; twice with nothing to close, the list of prompts to return to.
fn escape(it: &mut Conversation, before_ms: Option<u64>, now_ms: u64) -> Vec<Effect> {
    if it.menu.take().is_some() {
        return Vec::new();
    }
    if it.is_working() {
        return actions::interrupt(it);
    }
    if !it.draft.is_empty() {
        return Vec::new();
    }
    if is_soon(before_ms, now_ms) {
        return actions::rewind(it, None);
    }
    it.presses.escape_ms = Some(now_ms);
    it.notice = Some("Esc again returns to an earlier prompt".to_owned());
    Vec::new()
}

/// Answers the first question by the word of a chord.
fn by_chord(it: &mut Conversation, key: char, now_ms: u64) -> Vec<Effect> {
    let is_key = |open: &super::questions::OpenQuestion| open.dialog.typing() == Typing::Key;
    if !it.questions.first().is_some_and(is_key) {
        // Its options must be seen to be chosen.
        actions::open(it, now_ms);
        return Vec::new();
    }
    if !it.questions.is_settled(now_ms) {
        it.notice = Some("the question has only just come: look at it first".to_owned());
        return Vec::new();
    }
    let effects = actions::answer(it, &key.to_string(), now_ms);
    if key == 'a' && effects.is_empty() {
        // Which rule, and where it holds.
        actions::open(it, now_ms);
    }
    effects
}

/// A key while the person has opened a question.
fn to_question(
    it: &mut Conversation,
    key: KeyEvent,
    action: Option<KeyedAction>,
    now_ms: u64,
) -> Vec<Effect> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let answer = action.and_then(KeyedAction::answer);
    match (it.questions.typing(), key.code) {
        (None, _) | (_, KeyCode::Esc) => it.questions.close(),
        (_, KeyCode::Tab) => {
            actions::skip(it, now_ms);
        }
        _ if action == Some(KeyedAction::Answer) => {
            actions::skip(it, now_ms);
        }
        (Some(Typing::Key), _) if answer.is_some() => {
            let word = answer.map(String::from).unwrap_or_default();
            return actions::answer(it, &word, now_ms);
        }
        (Some(Typing::Key), KeyCode::Char(c)) if !control => {
            return actions::answer(it, &c.to_string(), now_ms);
        }
        (Some(Typing::Line), KeyCode::Enter) if !alt => {
            // Words that answer nothing yet stay where they are.
            if it.questions.is_settled(now_ms)
                && let Some(words) = it.questions.words().map(EditBuffer::take)
            {
                return actions::answer(it, &words, now_ms);
            }
        }
        (Some(Typing::Line), _) => {
            if let Some(words) = it.questions.words() {
                edit(words, key);
            }
        }
        (Some(Typing::Key), _) => {}
    }
    Vec::new()
}

/// Completes a name, if one fits and has come.
fn complete(it: &mut Conversation) -> Vec<Effect> {
    match menu::accept(it) {
        true => menu::refresh(it),
        false => Vec::new(),
    }
}

fn enter(it: &mut Conversation, now_ms: u64) -> Vec<Effect> {
    if menu::wants_enter(it) && menu::accept(it) {
        return menu::refresh(it);
    }
    let ends_open = it.draft.text()[..it.draft.cursor()].ends_with('\\');
    if ends_open && it.draft.cursor() == it.draft.text().len() {
        it.draft.backspace();
        it.draft.newline();
        return menu::refresh(it);
    }
    send(it, true, now_ms)
}

/// Sends the draft.
fn send(it: &mut Conversation, joins: bool, now_ms: u64) -> Vec<Effect> {
    let text = it.draft.expanded();
    let words = text.trim();
    if words.is_empty() {
        return Vec::new();
    }
    let mut effects = vec![Effect::KeepPrompt(text.clone())];
    match Prefix::of(words) {
        Prefix::Shell(command) => {
            let command = command.trim().to_owned();
            effects.push(it.to_shown(Command::Shell(command)));
        }
        Prefix::Memory(note) => effects.push(slash::note(it, note.trim().to_owned())),
        Prefix::Slash { name, arguments } => match slash::run(it, name, arguments, now_ms) {
            Some(more) => effects.extend(more),
            None => effects.push(actions::say(it, words)),
        },
        Prefix::Words(words) => {
            if it.is_working() && joins {
                it.shown.joining += 1;
            }
            effects.push(actions::say(it, words));
        }
    }
    let before = it.history.end();
    it.history.push(text.clone());
    // A command may have put another draft in its place.
    if it.draft.expanded() == text {
        it.draft.take();
    }
    if let Some(before) = before {
        // Typed before earlier prompts were looked at, and not sent with one of them.
        it.draft.restore(&before);
    }
    it.menu = None;
    effects
}

/// Up and down: within the draft, in the menu, then through earlier prompts.
fn vertical(it: &mut Conversation, down: bool) -> Vec<Effect> {
    if let Some(menu) = it.menu.as_mut().filter(|menu| !menu.items.is_empty()) {
        menu.step(down);
        return Vec::new();
    }
    let width = usize::from(it.width().saturating_sub(2).max(1));
    let moved = match down {
        true => it.draft.down(width),
        false => it.draft.up(width),
    };
    if moved {
        return Vec::new();
    }
    if !down && it.draft.is_empty() && !it.shown.queue.is_empty() {
        return actions::take_back(it);
    }
    let current = it.draft.draft();
    let other = match down {
        true => it.history.next(current),
        false => it.history.previous(current),
    };
    if let Some(other) = other {
        it.draft.restore(&other);
        it.menu = None;
    }
    Vec::new()
}

fn next_mode(it: &mut Conversation) -> Vec<Effect> {
    let next = match it.mode() {
        PermissionMode::Default => PermissionMode::AcceptEdits,
        PermissionMode::AcceptEdits => PermissionMode::Plan,
        PermissionMode::Plan if it.offered.may_bypass => PermissionMode::BypassPermissions,
        _ => PermissionMode::Default,
    };
    vec![it.to_shown(Command::SetMode(next))]
}

/// Shows the main agent for 0, or the n-th of the others.
fn show(it: &mut Conversation, number: usize) -> Vec<Effect> {
    let agent = match number.checked_sub(1) {
        None => Some(it.main),
        // The number that the strip and /agents show.
        Some(at) => {
            let other = it.others.all().get(at).filter(|other| other.is_agent);
            other.map(|other| other.id.into())
        }
    };
    let Some(agent) = agent else {
        it.notice = Some(format!("{number} is not an agent; /agents lists them"));
        return Vec::new();
    };
    match agent == it.shown.agent {
        true => Vec::new(),
        false => vec![Effect::Show(agent)],
    }
}

fn is_soon(before_ms: Option<u64>, now_ms: u64) -> bool {
    actions::is_within(before_ms, now_ms, TWICE_MS)
}
