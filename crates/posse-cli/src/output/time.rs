//! Times and ages: in the machine's time zone for people, in UTC for programs.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Returns a time in RFC 3339, for programs.
pub(crate) fn moment(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(
        |_| format!("{ms} ms"),
        |at| at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string(),
    )
}

/// Returns a time to the minute, for people: in the zone of `TZ`, else of `/etc/localtime`.
pub(crate) fn minute(ms: i64) -> String {
    minute_in(ms, TimeZone::system())
}

fn minute_in(ms: i64, zone: TimeZone) -> String {
    Timestamp::from_millisecond(ms).map_or_else(
        |_| format!("{ms} ms"),
        |at| at.to_zoned(zone).strftime("%Y-%m-%d %H:%M").to_string(),
    )
}

/// Returns the current time in milliseconds of Unix time.
pub(crate) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
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
    }

    #[test]
    fn people_read_times_of_their_zone() {
        let zone = |posix: &str| TimeZone::posix(posix).unwrap();
        assert_eq!(minute_in(61_000, TimeZone::UTC), "1970-01-01 00:01");
        assert_eq!(minute_in(61_000, zone("IST-5:30")), "1970-01-01 05:31");
        assert_eq!(minute_in(61_000, zone("NST3:30")), "1969-12-31 20:31");
        assert_eq!(
            minute_in(i64::MAX, TimeZone::UTC),
            format!("{} ms", i64::MAX)
        );
    }
}
