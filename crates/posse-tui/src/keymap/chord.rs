//! Chords: keys with what is held down, as a terminal sends them and as people write them.

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key, and what is held down with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// A chord that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongChord {
    /// A word is not a key.
    #[error("`{0}` is not a key")]
    UnknownKey(String),
    /// A word is not something that can be held down.
    #[error("`{0}` is not ctrl, alt or shift")]
    UnknownModifier(String),
    /// A terminal sends another chord for it.
    #[error("a terminal sends the same for it as for {0}")]
    SentAs(Chord),
}

/// What can be held down.
const MODIFIERS: [(&str, KeyModifiers); 3] = [
    ("ctrl", KeyModifiers::CONTROL),
    ("alt", KeyModifiers::ALT),
    ("shift", KeyModifiers::SHIFT),
];

/// Keys that are not characters, with their names for people.
const KEYS: [(&str, KeyCode); 15] = [
    ("Enter", KeyCode::Enter),
    ("Esc", KeyCode::Esc),
    ("Tab", KeyCode::Tab),
    ("Space", KeyCode::Char(' ')),
    ("Backspace", KeyCode::Backspace),
    ("Delete", KeyCode::Delete),
    ("Insert", KeyCode::Insert),
    ("Up", KeyCode::Up),
    ("Down", KeyCode::Down),
    ("Left", KeyCode::Left),
    ("Right", KeyCode::Right),
    ("PageUp", KeyCode::PageUp),
    ("PageDown", KeyCode::PageDown),
    ("Home", KeyCode::Home),
    ("End", KeyCode::End),
];

/// Number of function keys.
const FUNCTIONS: u8 = 12;

impl Chord {
    /// The words that chords are made of, besides characters.
    pub fn words() -> Vec<String> {
        let modifiers = MODIFIERS.iter().map(|(name, _)| (*name).to_owned());
        let keys = KEYS.iter().map(|(name, _)| name.to_ascii_lowercase());
        let functions = (1..=FUNCTIONS).map(|number| format!("f{number}"));
        modifiers.chain(keys).chain(functions).collect()
    }

    /// Returns the chord of a key that was pressed.
    pub fn of(key: KeyEvent) -> Self {
        let held = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT;
        let mut chord = Self {
            code: key.code,
            modifiers: key.modifiers & held,
        };
        match &mut chord.code {
            KeyCode::BackTab => {
                chord.code = KeyCode::Tab;
                chord.modifiers |= KeyModifiers::SHIFT;
            }
            KeyCode::Char(letter) => {
                // Alt-Y is meant also with Shift or Caps Lock; a capital letter tells of itself.
                chord.modifiers.remove(KeyModifiers::SHIFT);
                if !chord.modifiers.is_empty() {
                    *letter = letter.to_ascii_lowercase();
                }
                if chord.modifiers.contains(KeyModifiers::CONTROL) {
                    *letter = sent(*letter);
                }
            }
            _ => {}
        }
        chord
    }

    /// Returns the chord of a key that does not write without Shift, if that is held down.
    pub(super) fn without_shift(self) -> Option<Self> {
        let is_held = self.modifiers.contains(KeyModifiers::SHIFT) && self.code != KeyCode::Tab;
        let modifiers = self.modifiers - KeyModifiers::SHIFT;
        is_held.then_some(Self { modifiers, ..self })
    }

    /// Returns true if Ctrl or Alt is held down.
    pub(crate) fn is_held(self) -> bool {
        let held = KeyModifiers::CONTROL | KeyModifiers::ALT;
        self.modifiers.intersects(held)
    }

    /// Returns true if it is a key that neither writes nor moves in a text.
    pub(crate) fn is_free_of_text(self) -> bool {
        matches!(
            self.code,
            KeyCode::F(_) | KeyCode::Insert | KeyCode::PageUp | KeyCode::PageDown | KeyCode::Tab
        )
    }

    /// Returns true if nobody may take it for something else: Enter, Esc and Ctrl-C.
    pub(crate) fn is_reserved(self) -> bool {
        match self.code {
            KeyCode::Esc => true,
            KeyCode::Enter => !self.modifiers.contains(KeyModifiers::ALT),
            KeyCode::Char('c') => self.modifiers == KeyModifiers::CONTROL,
            _ => false,
        }
    }

    /// Returns the other chord for which terminals send the same.
    fn sent_as(self) -> Option<Self> {
        if !self.modifiers.contains(KeyModifiers::CONTROL) {
            return None;
        }
        let code = match self.code {
            KeyCode::Char('i') => KeyCode::Tab,
            KeyCode::Char('m') => KeyCode::Enter,
            KeyCode::Char('[' | '3') => KeyCode::Esc,
            KeyCode::Char('?' | '8') => KeyCode::Backspace,
            _ => return None,
        };
        let modifiers = self.modifiers - KeyModifiers::CONTROL;
        Some(Self { code, modifiers })
    }

    /// Returns why it may not answer a question: a key that was meant for something else must not.
    pub(crate) fn refusal_to_answer(self) -> Option<&'static str> {
        let may_answer = self.is_held() && self.code != KeyCode::Enter;
        (!may_answer).then_some("an answer needs Ctrl or Alt, and not Enter")
    }

    /// Returns true if it is this character, and nothing is held down.
    pub(crate) fn is_character(self, character: char) -> bool {
        self.code == KeyCode::Char(character) && self.modifiers.is_empty()
    }
}

/// Returns the character that is meant by what a terminal sends with Ctrl: the same for Ctrl-\ and
/// Ctrl-4, and so on.
fn sent(character: char) -> char {
    match character {
        '2' | '@' => ' ',
        '4' => '\\',
        '5' => ']',
        '6' => '^',
        '7' | '/' => '_',
        other => other,
    }
}

impl FromStr for Chord {
    type Err = WrongChord;

    fn from_str(text: &str) -> Result<Self, WrongChord> {
        let mut rest = text;
        let mut modifiers = KeyModifiers::empty();
        // The last character may be a hyphen itself.
        while let Some((word, after)) = rest
            .split_once('-')
            .filter(|(word, after)| !word.is_empty() && !after.is_empty())
        {
            let word = word.to_ascii_lowercase();
            let known = MODIFIERS.iter().find(|(name, _)| *name == word);
            let (_, modifier) = known.ok_or(WrongChord::UnknownModifier(word))?;
            modifiers |= *modifier;
            rest = after;
        }
        let code = code_of(rest).ok_or_else(|| WrongChord::UnknownKey(rest.to_owned()))?;
        let code = match code {
            KeyCode::Char(letter) if modifiers == KeyModifiers::SHIFT => {
                KeyCode::Char(letter.to_ascii_uppercase())
            }
            code => code,
        };
        let chord = Self::of(KeyEvent::new(code, modifiers));
        match chord.sent_as() {
            Some(other) => Err(WrongChord::SentAs(other)),
            None => Ok(chord),
        }
    }
}

/// Returns the key of a name or a character.
fn code_of(name: &str) -> Option<KeyCode> {
    let mut characters = name.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        let is_one = !only.is_control() && !only.is_whitespace();
        return is_one.then_some(KeyCode::Char(only));
    }
    let name = name.to_ascii_lowercase();
    let known = KEYS
        .iter()
        .find(|(known, _)| known.to_ascii_lowercase() == name);
    let function = || {
        let number: u8 = name.strip_prefix('f')?.parse().ok()?;
        (1..=FUNCTIONS)
            .contains(&number)
            .then_some(KeyCode::F(number))
    };
    known.map(|(_, code)| *code).or_else(function)
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, modifier) in [
            ("Ctrl-", KeyModifiers::CONTROL),
            ("Alt-", KeyModifiers::ALT),
            ("Shift-", KeyModifiers::SHIFT),
        ] {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        let named = KEYS.iter().find(|(_, code)| *code == self.code);
        match (named, self.code) {
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(letter)) if self.is_held() => {
                write!(f, "{}", letter.to_ascii_uppercase())
            }
            (None, KeyCode::Char(letter)) => write!(f, "{letter}"),
            (None, KeyCode::F(number)) => write!(f, "F{number}"),
            (None, _) => Ok(()),
        }
    }
}
