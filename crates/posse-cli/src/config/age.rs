//! Ages, as people write them.

/// A text that is not an age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an age is a number and a unit: 90m, 12h, 30d, 8w")]
pub(crate) struct AgeError;

/// Parses an age, a number and its unit, into milliseconds.
pub(crate) fn milliseconds(text: &str) -> Result<i64, AgeError> {
    let units = [
        ("s", 1),
        ("m", 60),
        ("h", 3600),
        ("d", 86_400),
        ("w", 604_800),
    ];
    let parsed = units.iter().find_map(|(unit, seconds)| {
        let number: u32 = text.strip_suffix(unit)?.parse().ok()?;
        i64::from(number).checked_mul(seconds * 1000)
    });
    parsed.ok_or(AgeError)
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn an_age_has_a_unit() {
        assert_eq!(milliseconds("30d"), Ok(2_592_000_000));
        assert_eq!(milliseconds("0s"), Ok(0));
        for wrong in ["30", "d", "-1d", "1.5h", "30 d", ""] {
            assert!(
                milliseconds(wrong).unwrap_err().to_string().contains("30d"),
                "{wrong}"
            );
        }
    }
}
