//! Task numbers as a short text: `1-5,7`.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Distinct numbers in order, as ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers(Vec<RangeInclusive<u64>>);

impl Numbers {
    /// Returns true if it is one of them.
    pub(super) fn contains(&self, number: u64) -> bool {
        self.0.iter().any(|range| range.contains(&number))
    }

    /// Returns up to `most` of the numbers that are not in `present`. A range may be huge, so the
    /// effort depends only on what is found and returned.
    pub(super) fn missing_from(&self, present: &BTreeSet<u64>, most: usize) -> Vec<u64> {
        let mut missing = Vec::new();
        for range in &self.0 {
            let mut next = *range.start();
            for there in present.range(range.clone()) {
                missing.extend((next..*there).take(most.saturating_sub(missing.len())));
                next = there.saturating_add(1);
            }
            missing.extend((next..=*range.end()).take(most.saturating_sub(missing.len())));
        }
        missing
    }
}

impl FromIterator<u64> for Numbers {
    fn from_iter<T: IntoIterator<Item = u64>>(numbers: T) -> Self {
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        for number in numbers.into_iter().collect::<BTreeSet<_>>() {
            match ranges.last_mut() {
                Some(last) if last.end().checked_add(1) == Some(number) => {
                    *last = *last.start()..=number
                }
                _ => ranges.push(number..=number),
            }
        }
        Self(ranges)
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match range.start() == range.end() {
                true => write!(f, "{comma}{}", range.start())?,
                false => write!(f, "{comma}{}-{}", range.start(), range.end())?,
            }
        }
        Ok(())
    }
}

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is not a list of task numbers: write 1-5,7");
        let mut ranges = Vec::new();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse()) else {
                return Err(wrong());
            };
            if first > last {
                return Err(wrong());
            }
            ranges.push(first..=last);
        }
        Ok(Self(ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_gaps_are_found() {
        let numbers: Numbers = [7, 1, 2, 3, 5, 2].into_iter().collect();
        assert_eq!(numbers.to_string(), "1-3,5,7");
        assert_eq!("1-3,5,7".parse(), Ok(numbers.clone()));
        assert_eq!(
            Numbers::default().to_string().parse(),
            Ok(Numbers::default())
        );
        assert!(numbers.contains(2) && !numbers.contains(4));
        let present = BTreeSet::from([1, 3, 4, 7]);
        assert_eq!(numbers.missing_from(&present, 9), [2, 5]);
        let huge: Numbers = format!("2-{}", u64::MAX).parse().unwrap();
        assert_eq!(huge.missing_from(&present, 3), [2, 5, 6]);
        for wrong in ["x", "3-1", "1-2-3", "-1"] {
            assert!(wrong.parse::<Numbers>().is_err(), "{wrong}");
        }
    }
}
