//! Times and ages, for people and programs.

/// Returns a time in RFC 3339.
pub(crate) fn moment(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(
        |_| format!("{ms} ms"),
        |at| at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string(),
    )
}

/// Returns a time to the minute, for people.
pub(crate) fn minute(ms: i64) -> String {
    let at = moment(ms);
    format!("{} UTC", at.get(..16).unwrap_or(&at).replace('T', " "))
}

/// Returns the current time in milliseconds of Unix time.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Returns a duration in its largest unit.
pub(crate) fn age(ms: i64) -> String {
    match ms / 1000 {
        seconds @ ..60 => format!("{}s", seconds.max(0)),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_unit_is_told() {
        assert_eq!(
            ["-5", "0", "59999", "60000", "3600000", "90000000"].map(|ms| age(ms.parse().unwrap())),
            ["0s", "0s", "59s", "1m", "1h", "1d"]
        );
        assert_eq!(minute(61_000), "1970-01-01 00:01 UTC");
    }
}
