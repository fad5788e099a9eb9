//! Suggestions for mistyped words.

/// Returns the name closest to `word`, ignoring case, if it is close enough to be a typo.
pub fn closest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let far = |name: &str| edits(&word.to_lowercase(), &name.to_lowercase());
    let best = names.iter().copied().min_by_key(|name| far(name))?;
    // Two edits turn a short word into almost any other, which is not a useful guess.
    (far(best) <= 2.min((word.chars().count() + 1) / 3)).then_some(best)
}

/// Returns the edit distance; a swap of adjacent letters counts as one edit.
fn edits(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let mut cost = (last[j] + usize::from(a != b))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            // Two letters in the wrong order are one typing mistake, not two.
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_meant() {
        assert_eq!(closest("dney", &["allow", "deny"]), Some("deny"));
        assert_eq!(closest("Deny", &["allow", "deny"]), Some("deny"));
        assert_eq!(closest("no", &["ask", "deny"]), None);
        assert_eq!(
            (
                edits("", "ab"),
                edits("kitten", "sitting"),
                edits("ab", "ba")
            ),
            (2, 3, 1)
        );
    }
}
