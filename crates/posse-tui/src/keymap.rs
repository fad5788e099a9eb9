//! Which keys do what: tables of actions and chords, which a person's file may change.
//!
//! The conversation and the board have a table each. An action that has lost its chords still has a
//! name that can be typed.

mod chord;

use crossterm::event::KeyEvent;

pub use self::chord::{Chord, WrongChord};

/// Something that keys can do.
pub(crate) trait KeyAction: Copy + Eq + 'static {
    /// All, in the order in which they are looked for, each with its name in a file and the chords
    /// that it has at first.
    const ALL: &'static [(Self, &'static str, &'static [&'static str])];

    /// Returns why it may not have a chord.
    fn refusal(self, chord: Chord) -> Option<&'static str>;

    /// Returns true if one chord may do both: they are never possible at the same time, or the first
    /// of them is meant where both are.
    fn may_share_chord_with(self, other: Self) -> bool;
}

/// The chords of one action.
#[derive(Clone, Debug)]
struct KeyRow<A> {
    action: A,
    name: &'static str,
    chords: Vec<Chord>,
    /// True if a file has given them.
    is_own: bool,
}

/// Which chords do what.
#[derive(Clone, Debug)]
pub(crate) struct KeyTable<A> {
    rows: Vec<KeyRow<A>>,
}

/// Why a chord does not do what a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyProblem {
    /// There is no such action.
    UnknownAction(String),
    /// It is not a chord.
    Wrong {
        /// What is written.
        chord: String,
        /// Why it is none.
        why: WrongChord,
    },
    /// The action may not have this chord.
    Refused {
        /// The chord.
        chord: Chord,
        /// Why not.
        why: &'static str,
    },
    /// The file gives the chord to another action, too, which keeps it.
    Taken {
        /// The chord.
        chord: Chord,
        /// The name of the other action.
        by: &'static str,
    },
}

impl<A: KeyAction> Default for KeyTable<A> {
    fn default() -> Self {
        let rows = A::ALL.iter().map(|(action, name, chords)| KeyRow {
            action: *action,
            name,
            chords: chords
                .iter()
                .filter_map(|chord| chord.parse().ok())
                .collect(),
            is_own: false,
        });
        Self {
            rows: rows.collect(),
        }
    }
}

impl<A: KeyAction> KeyTable<A> {
    /// Returns the names of all actions.
    pub(crate) fn names() -> Vec<&'static str> {
        A::ALL.iter().map(|(_, name, _)| *name).collect()
    }

    /// Gives an action these chords in place of those it has, and returns what of that does not hold.
    /// Another action that had one of them at first loses it. An empty list leaves the action
    /// without one; if no chord of a list holds, the action keeps its own.
    pub(crate) fn bind(&mut self, name: &str, chords: &[String]) -> Vec<KeyProblem> {
        let Some(at) = self.rows.iter().position(|row| row.name == name) else {
            return vec![KeyProblem::UnknownAction(name.to_owned())];
        };
        let mut problems = Vec::new();
        let mut held = Vec::new();
        for text in chords {
            match self.check(at, text) {
                Ok(chord) if held.contains(&chord) => {}
                Ok(chord) => held.push(chord),
                Err(problem) => problems.push(problem),
            }
        }
        if held.is_empty() && !chords.is_empty() {
            return problems;
        }
        let action = self.rows[at].action;
        for row in &mut self.rows {
            if row.action != action && !row.action.may_share_chord_with(action) {
                row.chords.retain(|chord| !held.contains(chord));
            }
        }
        let row = &mut self.rows[at];
        row.is_own = true;
        // What nobody may take away stays.
        row.chords.retain(|chord| chord.is_reserved());
        held.retain(|chord| !row.chords.contains(chord));
        held.append(&mut row.chords);
        row.chords = held;
        problems
    }

    /// Returns a chord, if the action of a row may have it.
    fn check(&self, at: usize, text: &str) -> Result<Chord, KeyProblem> {
        let chord: Chord = text.parse().map_err(|why| KeyProblem::Wrong {
            chord: text.to_owned(),
            why,
        })?;
        let action = self.rows[at].action;
        let refusal = match chord.is_reserved() {
            true if self.rows[at].chords.contains(&chord) => None,
            true => Some("nothing can take Enter, Esc or Ctrl-C away"),
            false => action.refusal(chord),
        };
        if let Some(why) = refusal {
            return Err(KeyProblem::Refused { chord, why });
        }
        let takes = |row: &&KeyRow<A>| {
            let is_other = row.action != action && !row.action.may_share_chord_with(action);
            row.is_own && is_other && row.chords.contains(&chord)
        };
        match self.rows.iter().find(takes) {
            Some(row) => Err(KeyProblem::Taken {
                chord,
                by: row.name,
            }),
            None => Ok(chord),
        }
    }

    /// Returns what a key does, of the actions that are possible now.
    pub(crate) fn action(&self, key: KeyEvent, is_possible: impl Fn(A) -> bool) -> Option<A> {
        let action = |chord: Chord| {
            let mut rows = self.rows.iter();
            let found = rows.find(|row| is_possible(row.action) && row.chords.contains(&chord));
            found.map(|row| row.action)
        };
        let chord = Chord::of(key);
        // Shift does not change what an arrow does, unless it is meant.
        action(chord).or_else(|| action(chord.without_shift()?))
    }

    /// Returns the chords of an action.
    pub(crate) fn chords(&self, action: A) -> &[Chord] {
        let row = self.rows.iter().find(|row| row.action == action);
        row.map_or(&[], |row| &row.chords)
    }

    /// Returns the first chord of an action for people; none if it has none.
    pub(crate) fn first(&self, action: A) -> Option<String> {
        self.chords(action).first().map(ToString::to_string)
    }

    /// Returns all chords of an action for people: `o, Ctrl-O`.
    pub(crate) fn listed(&self, action: A) -> String {
        let chords: Vec<String> = self.chords(action).iter().map(Chord::to_string).collect();
        chords.join(", ")
    }
}

#[cfg(test)]
mod tests;
