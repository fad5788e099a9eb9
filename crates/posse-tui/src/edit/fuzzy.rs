//! Fuzzy matching of file paths and command names.
//!
//! A pattern matches if its characters occur in order. Of all ways to place them the best counts:
//! together, at the starts of words, in the file name rather than in its directories.

mod align;

use align::Matcher;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

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

#[cfg(test)]
mod tests {
    use super::align::LONGEST;
    use super::*;
    use crate::edit::manners::processor_time;

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

    /// Run with `--release --run-ignored all --no-capture` to see the time on the processor.
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
            let start = processor_time();
            let found = best(pattern, &paths, 50).len();
            println!("{pattern}: {found} in {:?}", processor_time() - start);
        }
    }
}
