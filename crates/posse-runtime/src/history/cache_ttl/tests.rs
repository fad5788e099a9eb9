//! Histories of calls, and what is made of them.

use super::*;

const MINUTE: i64 = 60_000;

/// A call that reads what it can of a cache which keeps everything for as long as its marks say.
fn usage(read: u64, written: u64, ttl: Ttl) -> Usage {
    let (five, hour) = if ttl == Ttl::FiveMinutes {
        (written, 0)
    } else {
        (0, written)
    };
    Usage {
        cache_read: read,
        cache_write_5m: five,
        cache_write_1h: hour,
        ..Usage::default()
    }
}

/// Plays calls, each so many minutes after the one before, with a prompt of so many tokens; the lengths of
/// their marks, `h` or `5`, and `x` behind each that missed something because it had expired.
fn play(calls: &[(i64, u64)]) -> String {
    let (mut cache_ttl, mut now, mut cached) = (CacheTtl::default(), 0, None::<(i64, u64, Ttl)>);
    let mut marks = String::new();
    for &(minutes, prompt) in calls {
        now += minutes * MINUTE;
        let ttl = cache_ttl.ttl(now);
        marks.push(if ttl == Ttl::OneHour { 'h' } else { '5' });
        let readable = cached.filter(|(at, _, ttl)| now - at < lifetime_ms(*ttl));
        let read = readable.map_or(0, |(_, tokens, _)| tokens.min(prompt));
        let missed = cache_ttl.called(now, &usage(read, prompt - read, ttl), None);
        if let Some(missed) = missed {
            assert_eq!(
                missed,
                Missed {
                    tokens: cached.unwrap().1,
                    why: "expired".into()
                }
            );
            marks.push('x');
        }
        cached = Some((now, prompt, ttl));
    }
    marks
}

// proves FK-06 (part: the TTL)
#[test]
fn marks_last_an_hour_where_that_has_been_cheaper() {
    let check = |calls: &[(i64, u64)], marks: &str| assert_eq!(play(calls), marks, "{calls:?}");
    check(&[], "");
    check(&[(0, 10_000)], "5");
    check(
        &[(0, 10_000), (1, 11_000), (4, 12_000), (1, 40_000)],
        "5555",
    );
    // The first gap is paid for; from then on what is kept is read.
    check(
        &[(0, 10_000), (20, 10_100), (20, 10_200), (59, 10_300)],
        "5hxhh",
    );
    check(
        &[
            (0, 10_000),
            (1, 20_000),
            (1, 30_000),
            (20, 30_100),
            (20, 30_200),
        ],
        "555hxh",
    );
    // Gaps that an hour does not bridge either.
    check(&[(0, 10_000), (90, 10_100), (90, 10_200)], "55x5x");
    // Much that is new and read at once: what one gap cost is nothing beside it.
    check(
        &[
            (0, 10_000),
            (20, 10_100),
            (1, 60_000),
            (1, 61_000),
            (20, 61_100),
        ],
        "5hxh5hx",
    );
}

#[test]
fn a_miss_is_what_was_left_and_not_read() {
    let left = |used: Usage| {
        let mut cache_ttl = CacheTtl::default();
        assert_eq!(
            cache_ttl.called(0, &used, None),
            None,
            "there was nothing to miss"
        );
        cache_ttl
    };
    let five = Ttl::FiveMinutes;
    let after = |used: Usage, minutes: i64, next: Usage, told: Option<&str>| {
        let told = told.map(|reason| CacheMiss {
            reason: reason.into(),
            missed_tokens: None,
        });
        left(used)
            .called(minutes * MINUTE, &next, told.as_ref())
            .map(|missed| (missed.tokens, missed.why))
    };
    let is = |tokens: u64, why: &str| Some((tokens, why.to_owned()));
    let whole = usage(1_000, 9_000, five);
    assert_eq!(after(whole, 1, usage(10_000, 500, five), None), None);
    assert_eq!(
        after(whole, 1, usage(9_900, 600, five), None),
        None,
        "a hundredth"
    );
    assert_eq!(
        after(whole, 1, usage(9_899, 601, five), None),
        is(101, "unknown")
    );
    assert_eq!(
        after(whole, 5, usage(0, 10_500, five), None),
        is(10_000, "expired")
    );
    assert_eq!(
        after(whole, 5, usage(4_000, 6_500, five), Some("unavailable")),
        is(6_000, "expired")
    );
    assert_eq!(
        after(whole, 5, usage(0, 10_500, five), Some("tools_changed")),
        is(10_000, "tools_changed")
    );
    let hour = usage(1_000, 9_000, Ttl::OneHour);
    assert_eq!(
        after(hour, 20, usage(0, 10_500, five), None),
        is(10_000, "unknown")
    );
    assert_eq!(
        after(hour, 60, usage(0, 10_500, five), None),
        is(10_000, "expired")
    );
    let small = Usage {
        input: 900,
        ..Usage::default()
    };
    assert_eq!(
        after(
            small,
            1,
            Usage {
                input: 1_000,
                ..Usage::default()
            },
            None
        ),
        None,
        "nothing was kept"
    );
    assert_eq!(
        after(whole, 1, Usage::default(), None),
        None,
        "nobody said what it read"
    );
    let mut cache_ttl = left(whole);
    cache_ttl.forget();
    assert_eq!(
        cache_ttl.called(MINUTE, &usage(1_000, 2_000, five), None),
        None,
        "a summary is new"
    );
}
