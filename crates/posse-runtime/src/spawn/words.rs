//! What models are told of agents, runs and mail. Everything that another wrote stands in a frame that it
//! cannot close, and no frame can be imitated.

mod answer;
mod compacted;
mod fork;
mod frame;
mod neutral;
mod place;

pub use answer::{
    Delivery, Reader, Returned, Waited, launched, nobody, not_running, output, result, sent,
    stopped, stopped_by_user, unknown_run, without_transcript,
};
pub use compacted::{List, Standing, compacted, verbatim};
pub(crate) use fork::FORK_TAG;
pub use fork::{directive, fork_rules, moved};
pub use frame::{arrivals, mail, notification};
pub(crate) use frame::{attribute, time};
pub use neutral::neutral;
pub(crate) use place::reminder;
pub use place::{elsewhere, remade, types, worktree};

use std::borrow::Cow;
use std::path::Path;

use posse_protocol::{RunKind, RunUsage};

/// How much of a result is told.
const MOST_CHARACTERS: usize = 30_000;
/// How much is told of each, however many there are, and of an error.
const LEAST_CHARACTERS: usize = 2_000;
/// How long a summary is.
const SUMMARY_CHARACTERS: usize = 80;

/// What a message is about, from its first line: for people, if its sender did not say.
pub fn summary(message: &str) -> String {
    let line = message
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("(empty)");
    let line = plain_line(line);
    if line.chars().count() <= SUMMARY_CHARACTERS {
        return line;
    }
    let mut short: String = line.chars().take(SUMMARY_CHARACTERS - 1).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// In one line, whatever it was.
pub(in crate::spawn) fn plain_line(text: &str) -> String {
    text.trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Another's words in one line of ours.
pub(crate) fn line(text: &str) -> String {
    neutral(&plain_line(text)).into_owned()
}

/// A path in one line of ours, whatever it is called.
pub(crate) fn shown(path: &Path) -> String {
    line(&path.display().to_string())
}

/// A text, or if it is longer than `most` characters its beginning and its end.
pub(crate) fn cut<'a>(text: &'a str, most: usize, file: Option<&Path>) -> Cow<'a, str> {
    let all = text.chars().count();
    if all <= most {
        return Cow::Borrowed(text);
    }
    let at = |number: usize| {
        text.char_indices()
            .nth(number)
            .map_or(text.len(), |(at, _)| at)
    };
    let (start, end) = (&text[..at(most / 2)], &text[at(all - most / 2)..]);
    let left_out = all - most / 2 * 2;
    let whole = file.map_or_else(String::new, |file| {
        format!("; all of it is in {}", file.display())
    });
    Cow::Owned(format!(
        "{start}\n[… {left_out} of {all} characters left out here{whole} …]\n{end}"
    ))
}

/// What a run came to, so that nobody takes silence for something that was left out.
fn or_nothing(text: &str) -> &str {
    if text.trim().is_empty() {
        "(no output)"
    } else {
        text
    }
}

/// What a run used, in words.
fn usage(kind: RunKind, usage: RunUsage) -> String {
    let RunUsage {
        total_tokens,
        tool_uses,
        duration_ms,
    } = usage;
    let time = format!("{}.{} s", duration_ms / 1000, duration_ms % 1000 / 100);
    match kind {
        RunKind::Agent => {
            let uses = if tool_uses == 1 { "use" } else { "uses" };
            format!("{total_tokens} tokens, {tool_uses} tool {uses}, {time}")
        }
        RunKind::Shell => time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves SM-01 (open: addresses and control messages; here only the summary that is made)
    #[test]
    fn a_summary_is_the_first_line() {
        let table = [
            ("Tests pass\nall 12 of them", "Tests pass".to_owned()),
            ("\n \r\n  the second \tline ", "the second  line".to_owned()),
            ("", "(empty)".to_owned()),
            (&"é".repeat(80), "é".repeat(80)),
            (&"é".repeat(81), format!("{}…", "é".repeat(79))),
        ];
        for (text, expected) in table {
            assert_eq!(summary(text), expected);
            assert!(summary(text).chars().count() <= 80);
        }
    }

    #[test]
    fn long_texts_are_cut_in_the_middle() {
        let file = Path::new("/o");
        assert_eq!(cut("äöü", 3, Some(file)), "äöü");
        assert_eq!(
            cut("äbcdefgö", 4, Some(file)),
            "äb\n[… 4 of 8 characters left out here; all of it is in /o …]\ngö"
        );
        assert_eq!(
            cut("abcde", 3, None),
            "a\n[… 3 of 5 characters left out here …]\ne"
        );
    }

    #[test]
    fn usage_in_words() {
        let used = RunUsage {
            total_tokens: 1200,
            tool_uses: 1,
            duration_ms: 12_345,
        };
        assert_eq!(
            usage(RunKind::Agent, used),
            "1200 tokens, 1 tool use, 12.3 s"
        );
        assert_eq!(usage(RunKind::Shell, used), "12.3 s");
    }
}
