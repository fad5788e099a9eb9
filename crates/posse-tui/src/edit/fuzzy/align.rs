//! Places the characters of a pattern in a candidate, and counts what the best placement is worth.

use super::Score;

/// Longer candidates do not match; it is the longest path that Linux takes.
pub(super) const LONGEST: usize = 4_096;

// Characters side by side weigh more than any start, so that a word found whole beats its letters
// found at the starts of several words.
const CHARACTER: i32 = 16;
const CONSECUTIVE: i32 = 12;
const SEGMENT_START: i32 = 10;
const WORD_START: i32 = 8;
const CAMEL_START: i32 = 7;
const IN_NAME: i32 = 6;
const GAP: i32 = 1;

/// A pattern with room to work in, used for many candidates.
///
/// Almost all paths are ASCII, and bytes are compared several times as fast as characters.
pub(super) struct Matcher {
    pattern: Vec<char>,
    /// The same in bytes, if it is ASCII.
    pattern_bytes: Option<Vec<u8>>,
    exact: bool,
    characters: Vec<char>,
    folded: Vec<char>,
    folded_bytes: Vec<u8>,
    /// Where one character of the pattern, and the next one, can stand.
    places: [Vec<Place>; 2],
}

/// A place of a character of the pattern in the candidate.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    /// The best score of the pattern up to this character, placed here.
    score: i32,
}

impl Matcher {
    pub(super) fn new(pattern: &str) -> Matcher {
        let exact = pattern.chars().any(char::is_uppercase);
        Matcher {
            pattern: pattern
                .chars()
                .map(|character| fold(character, exact))
                .collect(),
            pattern_bytes: pattern.is_ascii().then(|| pattern.as_bytes().to_vec()),
            exact,
            characters: Vec::new(),
            folded: Vec::new(),
            folded_bytes: Vec::new(),
            places: Default::default(),
        }
    }

    pub(super) fn score(&mut self, candidate: &str) -> Option<Score> {
        if self.pattern.is_empty() {
            return Some(Score(0));
        }
        if candidate.len() > LONGEST {
            return None;
        }
        if candidate.is_ascii() {
            return self.score_bytes(candidate);
        }
        self.characters.clear();
        self.characters.extend(candidate.chars());
        let folded = self
            .characters
            .iter()
            .map(|character| fold(*character, self.exact));
        self.folded.clear();
        self.folded.extend(folded);
        let name = candidate[..name_start(candidate)].chars().count();
        let text = Text {
            original: &self.characters,
            folded: &self.folded,
            name,
        };
        align(&self.pattern, text, &mut self.places)
    }

    fn score_bytes(&mut self, candidate: &str) -> Option<Score> {
        let pattern = self.pattern_bytes.as_deref()?;
        let original = candidate.as_bytes();
        self.folded_bytes.clear();
        self.folded_bytes.extend_from_slice(original);
        if !self.exact {
            self.folded_bytes.make_ascii_lowercase();
        }
        // Most candidates end here.
        let mut rest = self.folded_bytes.iter();
        if !pattern
            .iter()
            .all(|wanted| rest.any(|found| found == wanted))
        {
            return None;
        }
        let name = name_start(candidate);
        align(
            pattern,
            Text {
                original,
                folded: &self.folded_bytes,
                name,
            },
            &mut self.places,
        )
    }
}

/// A candidate in bytes or characters.
struct Text<'a, C> {
    original: &'a [C],
    /// As the pattern compares it.
    folded: &'a [C],
    /// Where the file name begins.
    name: usize,
}

/// Finds the best placement, one character of the pattern after the other.
fn align<C>(pattern: &[C], text: Text<'_, C>, places: &mut [Vec<Place>; 2]) -> Option<Score>
where
    C: Copy + PartialEq + Into<char>,
{
    let [placed, next] = places;
    placed.clear();
    for (index, wanted) in pattern.iter().enumerate() {
        let start = placed.first().map_or(0, |place| place.at + 1);
        let mut reached = Reached::new(placed);
        next.clear();
        for (at, found) in text.folded.iter().enumerate().skip(start) {
            if found == wanted {
                let so_far = if index == 0 { 0 } else { reached.before(at) };
                next.push(Place {
                    at,
                    score: so_far + text.worth(at),
                });
            }
        }
        if next.is_empty() {
            return None;
        }
        std::mem::swap(placed, next);
    }
    let end = text.folded.len();
    placed
        .iter()
        .map(|place| Score(place.score - gap(place.at, end)))
        .max()
}

impl<C: Copy + Into<char>> Text<'_, C> {
    /// What a match at this place is worth by itself.
    fn worth(&self, at: usize) -> i32 {
        let before = at
            .checked_sub(1)
            .map_or('/', |before| self.original[before].into());
        let in_name = if at >= self.name { IN_NAME } else { 0 };
        CHARACTER + in_name + start_bonus(before, self.original[at].into())
    }
}

/// Walks the places of the character before, while the next character moves to the right.
struct Reached<'a> {
    rest: std::slice::Iter<'a, Place>,
    last: Option<Place>,
    /// The place that is best to continue from with a gap.
    best: Option<Place>,
}

impl<'a> Reached<'a> {
    fn new(places: &'a [Place]) -> Reached<'a> {
        Reached {
            rest: places.iter(),
            last: None,
            best: None,
        }
    }

    /// Returns the best score of all places before `at`, which is after at least one of them and
    /// not less than at the last call.
    fn before(&mut self, at: usize) -> i32 {
        while let Some(place) = self.rest.as_slice().first().filter(|place| place.at < at) {
            self.rest.next();
            let keeps = |best: &Place| best.score - gap(best.at, place.at + 1) >= place.score;
            self.best = self.best.filter(keeps).or(Some(*place));
            self.last = Some(*place);
        }
        let apart = self.best.map_or(0, |best| best.score - gap(best.at, at));
        let adjacent = self.last.filter(|last| last.at + 1 == at);
        adjacent.map_or(apart, |last| apart.max(last.score + CONSECUTIVE))
    }
}

/// What is lost by the characters between a place and what follows at `next`.
fn gap(at: usize, next: usize) -> i32 {
    // Candidates are at most LONGEST long.
    GAP * i32::try_from(next - at - 1).unwrap_or(i32::MAX)
}

fn name_start(candidate: &str) -> usize {
    candidate
        .trim_end_matches('/')
        .rfind('/')
        .map_or(0, |at| at + 1)
}

fn fold(character: char, exact: bool) -> char {
    match character {
        _ if exact => character,
        character if character.is_ascii() => character.to_ascii_lowercase(),
        character => character.to_lowercase().next().unwrap_or(character),
    }
}

fn start_bonus(before: char, character: char) -> i32 {
    match before {
        '/' => SEGMENT_START,
        '_' | '-' | '.' | ' ' | ':' => WORD_START,
        before if before.is_lowercase() && character.is_uppercase() => CAMEL_START,
        before if !before.is_ascii_digit() && character.is_ascii_digit() => CAMEL_START,
        _ => 0,
    }
}
