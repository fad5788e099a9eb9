//! `--on-question`: what happens when a tool call needs approval.

use std::str::FromStr;
use std::time::Duration;

use posse_runtime::live::setup::Approver;

/// Time that a question waits if none is given.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// What happens when a tool call needs approval and nobody is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnQuestion {
    /// The question waits until somebody answers it, at most this long.
    Wait(Duration),
    /// It is denied at once.
    Deny,
}

/// A value that is neither `wait`, `wait=TIME` nor `deny`.
#[derive(Debug, thiserror::Error)]
#[error("expected `wait`, `wait=TIME` such as `wait=90s`, `wait=10m` or `wait=2h`, or `deny`")]
pub(crate) struct BadOnQuestion;

impl FromStr for OnQuestion {
    type Err = BadOnQuestion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            None if text == "wait" => Ok(Self::Wait(PATIENCE)),
            None if text == "deny" => Ok(Self::Deny),
            Some(("wait", time)) => time_of(time).map(Self::Wait).ok_or(BadOnQuestion),
            _ => Err(BadOnQuestion),
        }
    }
}

/// Returns a time such as `90s`, `10m` or `2h`; a bare number is seconds. At most a year.
fn time_of(text: &str) -> Option<Duration> {
    let (number, unit) = match text.char_indices().last()? {
        (at, 's') => (&text[..at], 1),
        (at, 'm') => (&text[..at], 60),
        (at, 'h') => (&text[..at], 3600),
        _ => (text, 1),
    };
    let seconds = number.parse::<u32>().ok()?;
    let time = u64::from(seconds) * unit;
    (1..=365 * 24 * 3600)
        .contains(&time)
        .then(|| Duration::from_secs(time))
}

impl From<OnQuestion> for Approver {
    fn from(on_question: OnQuestion) -> Self {
        match on_question {
            OnQuestion::Wait(time) => Self::Anyone(time),
            OnQuestion::Deny => Self::Nobody,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let wait = |seconds| Some(OnQuestion::Wait(Duration::from_secs(seconds)));
        for (text, meant) in [
            ("wait", wait(600)),
            ("wait=90s", wait(90)),
            ("wait=90", wait(90)),
            ("wait=10m", wait(600)),
            ("wait=2h", wait(7200)),
            ("deny", Some(OnQuestion::Deny)),
            ("wait=0", None),
            ("wait=", None),
            ("wait=-1s", None),
            ("wait=9999999h", None),
            ("deny=1", None),
            ("ask", None),
        ] {
            assert_eq!(text.parse().ok(), meant, "{text}");
        }
    }
}
