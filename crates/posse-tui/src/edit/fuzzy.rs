//! Fuzzy matching of file paths and command names.
//!
//! A pattern matches if its characters occur in order. Of all ways to place them the best counts:
//! together, at the starts of words, in the file name rather than in its directories.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Longer candidates do not match; it is the longest path that Linux takes.
const LONGEST: usize = 4_096;

const CHARACTER: i32 = 16;
const CONSECUTIVE: i32 = 12;
const SEGMENT_START: i32 = 10;
const WORD_START: i32 = 8;
const CAMEL_START: i32 = 7;
const IN_NAME: i32 = 6;
const GAP: i32 = 1;
/// Worse than any score that can be reached.
const NEVER: i32 = i32::MIN / 2;

/// How well a pattern matches; more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score(i32);

/// Returns how well `pattern` matches, or `None` if it does not.
///
/// Capitals matter only if the pattern has some. An empty pattern matches everything alike.
pub fn score(pattern: &str, candidate: &str) -> Option<Score> {
    Matcher::new(pattern).score(candidate)
}

/// Returns the indices of the best `limit` candidates, best first.
///
/// Equal scores are ordered by length, then alphabetically. Memory is bounded by `limit` and the
/// longest path, not by the number of candidates.
pub fn best<T: AsRef<str>>(pattern: &str, candidates: &[T], limit: usize) -> Vec<usize> {
    let mut matcher = Matcher::new(pattern);
    let mut found: BinaryHeap<Reverse<Ranked<'_>>> = BinaryHeap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let text = candidate.as_ref();
        let Some(score) = matcher.score(text) else {
            continue;
        };
        let ranked = Ranked { score, text, index };
        if found.len() < limit {
            found.push(Reverse(ranked));
        } else if let Some(mut worst) = found.peek_mut().filter(|worst| ranked > worst.0) {
            *worst = Reverse(ranked);
        }
    }
    found
        .into_sorted_vec()
        .into_iter()
        .map(|Reverse(ranked)| ranked.index)
        .collect()
}

/// A match among others; greater is better.
#[derive(PartialEq, Eq)]
struct Ranked<'a> {
    score: Score,
    text: &'a str,
    index: usize,
}

impl Ord for Ranked<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let quality = self.score.cmp(&other.score);
        quality
            .then_with(|| other.text.len().cmp(&self.text.len()))
            .then_with(|| other.text.cmp(self.text))
            .then_with(|| other.index.cmp(&self.index))
    }
}

impl PartialOrd for Ranked<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A pattern with room to work in, used for many candidates.
struct Matcher {
    pattern: Vec<char>,
    /// The same in bytes, if it is ASCII.
    bytes: Option<Vec<u8>>,
    exact: bool,
    /// The candidate as the pattern compares it.
    folded: Vec<char>,
    /// What a match at each place is worth.
    bonus: Vec<i32>,
    /// Best score so far with the last match exactly here, and here or before, for one character
    /// of the pattern and the next.
    rows: [Vec<Cell>; 2],
}

#[derive(Clone, Copy)]
struct Cell {
    here: i32,
    reached: i32,
}

impl Matcher {
    fn new(pattern: &str) -> Matcher {
        let exact = pattern.chars().any(char::is_uppercase);
        let bytes = pattern.is_ascii().then(|| pattern.as_bytes().to_vec());
        let pattern = pattern
            .chars()
            .map(|character| fold(character, exact))
            .collect();
        let (folded, bonus, rows) = Default::default();
        Matcher {
            pattern,
            bytes,
            exact,
            folded,
            bonus,
            rows,
        }
    }

    fn score(&mut self, candidate: &str) -> Option<Score> {
        if self.pattern.is_empty() {
            return Some(Score(0));
        }
        if candidate.len() > LONGEST || !self.may_match(candidate.as_bytes()) {
            return None;
        }
        self.read(candidate);
        let first = self.first_place()?;
        let mut start = first;
        for (index, character) in self.pattern.iter().enumerate() {
            let [above, row] = &mut self.rows;
            start = fill(
                row,
                above,
                &self.folded,
                &self.bonus,
                (index, *character),
                start,
            )?;
            self.rows.swap(0, 1);
        }
        let reached = self.rows[0].last()?.reached;
        (reached > NEVER / 2).then_some(Score(reached))
    }

    /// Returns false if the pattern cannot match. Cheap, since most candidates fail here.
    fn may_match(&self, candidate: &[u8]) -> bool {
        let Some(pattern) = &self.bytes else {
            return true;
        };
        let mut rest = candidate.iter();
        let exact = self.exact;
        pattern.iter().all(|wanted| match exact {
            true => rest.any(|byte| byte == wanted),
            // A letter outside of ASCII can fold into it (K for kelvin).
            false => rest.any(|byte| byte.to_ascii_lowercase() == *wanted || !byte.is_ascii()),
        })
    }

    fn read(&mut self, candidate: &str) {
        self.folded.clear();
        self.bonus.clear();
        let name = candidate
            .trim_end_matches('/')
            .rfind('/')
            .map_or(0, |at| at + 1);
        let mut before = '/';
        for (at, character) in candidate.char_indices() {
            let in_name = if at >= name { IN_NAME } else { 0 };
            self.bonus
                .push(CHARACTER + in_name + start_bonus(before, character));
            self.folded.push(fold(character, self.exact));
            before = character;
        }
    }

    /// Returns where the first character occurs first; nothing before can be part of a match.
    fn first_place(&self) -> Option<usize> {
        let first = self.pattern.first()?;
        self.folded.iter().position(|character| character == first)
    }
}

/// Fills the row of one character of the pattern. Returns where the next row starts, or `None` if
/// the character does not occur.
fn fill(
    row: &mut Vec<Cell>,
    above: &[Cell],
    folded: &[char],
    bonus: &[i32],
    (index, wanted): (usize, char),
    start: usize,
) -> Option<usize> {
    const NOWHERE: Cell = Cell {
        here: NEVER,
        reached: NEVER,
    };
    row.clear();
    row.resize(start.min(folded.len()), NOWHERE);
    let mut found = None;
    let mut reached = NEVER;
    for place in start..folded.len() {
        let mut here = NEVER;
        if folded[place] == wanted {
            let before = match (index, place.checked_sub(1)) {
                (0, _) => 0,
                (_, Some(before)) => above[before].reached.max(above[before].here + CONSECUTIVE),
                (_, None) => NEVER,
            };
            if before > NEVER / 2 {
                here = before + bonus[place];
                found.get_or_insert(place + 1);
            }
        }
        reached = here.max(reached - GAP);
        row.push(Cell { here, reached });
    }
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each candidate is better than the next.
    #[track_caller]
    fn check(pattern: &str, ordered: &[&str]) {
        let mut shuffled: Vec<&str> = ordered.to_vec();
        shuffled.sort_by_key(|text| text.bytes().rev().collect::<Vec<_>>());
        let found: Vec<&str> = best(pattern, &shuffled, 100)
            .into_iter()
            .map(|index| shuffled[index])
            .collect();
        assert_eq!(found, ordered, "{pattern}");
    }

    #[test]
    fn better_matches_come_first() {
        check(
            "main",
            &[
                "main.rs",
                "src/main.rs",
                "src/main_loop.rs",
                "src/domain.rs",
                "main/a.rs",
            ],
        );
        check(
            "ed",
            &["edit/mod.rs", "src/edit/mod.rs", "src/text/dots.rs"],
        );
        check(
            "buf",
            &[
                "src/buffer.rs",
                "src/edit_buffer.rs",
                "src/rebuff.rs",
                "buf/x.rs",
            ],
        );
        check(
            "eb",
            &["EditBuffer.rs", "edit_buffer.rs", "elbow.rs", "e/x/b/x.rs"],
        );
        check("srcmain", &["src/main.rs", "src/domain.rs"]);
        check("src/ma", &["src/main.rs", "src/tasks/main.rs"]);
        check("edit/", &["src/edit/", "src/edit/mod.rs"]);
        check("mod", &["mod.rs", "a/mod.rs", "b/mod.rs", "a/model.rs"]);
    }

    #[test]
    fn whole_words_beat_scattered_letters() {
        check(
            "test",
            &["src/test.rs", "src/tests.rs", "src/latest.rs", "t/e/s/t.rs"],
        );
    }

    #[test]
    fn directories_match_by_their_own_name() {
        check("edit", &["src/edit/", "src/edit/rows.rs"]);
    }

    #[test]
    fn capitals_matter_once_they_are_typed() {
        assert!(score("readme", "README.md").is_some());
        assert!(score("README", "README.md").is_some());
        assert!(score("README", "readme.md").is_none());
        assert!(score("über", "ÜBER.txt").is_some());
        assert!(score("k", "\u{212a}").is_some());
    }

    #[test]
    fn all_characters_must_occur_in_order() {
        assert!(score("abc", "acb").is_none());
        assert!(score("aa", "a").is_none());
        assert!(score("漢字", "docs/漢_字.md").is_some());
        assert!(score("a", "").is_none());
        assert!(score("x", &"x".repeat(LONGEST + 1)).is_none());
        assert!(score(&"x".repeat(300), &"x".repeat(300)).is_some());
    }

    #[test]
    fn an_empty_pattern_takes_the_shortest() {
        assert_eq!(best("", &["bbb", "b", "a", "cc"], 3), [2, 1, 3]);
        assert_eq!(best("", &["a"], 0), [0; 0]);
        assert_eq!(best("a", &[] as &[&str], 5), [0; 0]);
    }

    /// Run with `--release --run-ignored all --no-capture` to see the time.
    #[test]
    #[ignore = "measures"]
    fn a_hundred_thousand_paths() {
        let words = [
            "parser",
            "src",
            "tests",
            "EditBuffer",
            "main_loop",
            "http",
            "store",
            "mod",
        ];
        let path = |number: usize| {
            let word = |divisor: usize| words[number / divisor % words.len()];
            format!("crates/{}/{}/{}_{number}.rs", word(1), word(8), word(64))
        };
        let paths: Vec<String> = (0..100_000).map(path).collect();
        for pattern in [
            "s",
            "src",
            "main",
            "parsermod",
            "crates/htt",
            "zzz",
            "EditB",
        ] {
            let start = std::time::Instant::now();
            let found = best(pattern, &paths, 50).len();
            println!("{pattern}: {found} in {:?}", start.elapsed());
        }
    }
}
