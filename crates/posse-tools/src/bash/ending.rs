//! Describes how a command ended.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use crate::shell::{Ending, How};

/// Returns what went wrong, if something did.
pub(super) fn fault(ending: &Ending, limit: Option<Duration>) -> Option<String> {
    match ending.how {
        How::Exited(Some(status)) => fault_of_status(status),
        How::Exited(None) => Some("its exit status is unknown".into()),
        How::TimedOut => {
            let limit = limit.unwrap_or_default().as_secs_f64();
            Some(format!(
                "ended after {limit} s, its time limit; timeout sets another"
            ))
        }
        How::Interrupted => Some("interrupted; all processes it had started were ended".into()),
    }
}

/// Returns a remark about processes that the shell left behind, if there were any.
pub(super) fn left(ending: &Ending) -> Option<String> {
    match ending.how {
        How::Exited(_) => left_behind("the shell", ending.ended),
        _ => None,
    }
}

/// Returns a remark about processes that a program left behind, if there were any.
pub(crate) fn left_behind(program: &str, count: usize) -> Option<String> {
    let what = format!("still running when {program} ended; now ended, too");
    match count {
        0 => None,
        1 => Some(format!("(1 process was {what})")),
        count => Some(format!("({count} processes were {what})")),
    }
}

/// Returns what is wrong with an exit status, if anything.
pub(crate) fn fault_of_status(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        // Shells report a command that was killed by a signal as 128 plus its number.
        (Some(code), _) => match signal_name(code - 128) {
            Some(name) => Some(format!("exit code {code} ({name})")),
            None => Some(format!("exit code {code}")),
        },
        (None, Some(signal)) => {
            let name = signal_name(signal).unwrap_or("a signal");
            Some(format!("killed by {name} (signal {signal})"))
        }
        (None, None) => Some(status.to_string()),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_named() {
        let check = |raw, expected: Option<&str>| {
            assert_eq!(
                fault_of_status(ExitStatus::from_raw(raw)).as_deref(),
                expected
            )
        };
        check(0, None);
        check(3 << 8, Some("exit code 3"));
        check(137 << 8, Some("exit code 137 (SIGKILL)"));
        check(200 << 8, Some("exit code 200"));
        check(15, Some("killed by SIGTERM (signal 15)"));
        check(63, Some("killed by a signal (signal 63)"));
    }
}
