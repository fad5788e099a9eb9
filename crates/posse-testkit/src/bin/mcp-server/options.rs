//! Arguments.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::Failed;

/// Options without a value.
const FLAGS: [&str; 15] = [
    // Its list has one tool more after each call, and it says so.
    "--change-list",
    // It lives on when its input ends.
    "--ignore-eof",
    // It lives on when it is asked to end.
    "--ignore-term",
    // Asks for the roots as soon as it is connected, and logs the answer.
    "--roots",
    // Has a tool `ask`, which asks the person.
    "--elicit",
    // Has a tool `push`, which sends its message unasked.
    "--channel",
    // Knows `initialize` only.
    "--old",
    // Knows `server/discover` only.
    "--new",
    // Never answers what it does not know: with `--old`, `server/discover`.
    "--swallow",
    // Answers what it does not know with an empty result: with `--old`, `server/discover`.
    "--agree",
    // Says on its errors that it fails, and ends with 7 before it reads anything.
    "--fail-start",
    // Says that `echo` is to be known from the beginning.
    "--always-load",
    // Has no prompts and no resources.
    "--only-tools",
    // Wants people to sign in, and is its own authorization server.
    "--sign-in",
    // Refuses to refresh tokens.
    "--refuse-refresh",
];

/// What it was started with.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// All words.
    pub(crate) words: Vec<String>,
    /// `--http PORT`: listens on 127.0.0.1 instead of reading its input; 0 for a free port. The first
    /// line of its output is the URL.
    pub(crate) http: Option<u16>,
    /// `--slow-start MS`: reads nothing before.
    pub(crate) slow_start: Option<Duration>,
    /// `--page N`: lists have N entries a page.
    pub(crate) page: Option<usize>,
    /// `--tools N`: has the tools `tool_1` to `tool_N` too.
    pub(crate) tools: usize,
    /// `--log FILE`: appends a line for its start, each call, what was cancelled, answers to its own
    /// questions, and the end of its input. A line is on the disk before the call is answered.
    pub(crate) log: Option<PathBuf>,
    /// `--bearer TOKEN`: refuses HTTP requests without it.
    pub(crate) bearer: Option<String>,
    /// `--first-lasts S`: the token of a sign-in, before it is refreshed, is good for so many seconds.
    pub(crate) first_lasts: Option<u64>,
    /// `--slow-refresh MS`: takes so long before it refreshes a token.
    pub(crate) slow_refresh: Option<Duration>,
    /// `--title TEXT`: its name.
    pub(crate) title: Option<String>,
}

impl Options {
    /// Reads the arguments.
    pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Self, Failed> {
        let words: Vec<String> = words.collect();
        let mut options = Self {
            words: words.clone(),
            ..Self::default()
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            if FLAGS.contains(&word.as_str()) {
                continue;
            }
            let value = words.next().ok_or(format!("{word} needs a value"))?;
            match word.as_str() {
                "--http" => options.http = Some(value.parse()?),
                "--slow-start" => {
                    options.slow_start = Some(Duration::from_millis(number(&value)?));
                }
                "--page" => options.page = Some(number(&value)?),
                "--tools" => options.tools = number(&value)?,
                "--log" => options.log = Some(value.into()),
                "--bearer" => options.bearer = Some(value),
                "--first-lasts" => options.first_lasts = Some(number(&value)?),
                "--slow-refresh" => {
                    options.slow_refresh = Some(Duration::from_millis(number(&value)?));
                }
                "--title" => options.title = Some(value),
                _ => return Err(format!("there is no option {word}").into()),
            }
        }
        Ok(options)
    }

    /// Returns true if a flag was given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.words.iter().any(|word| word == flag)
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, Failed> {
    let number = text.parse();
    number.map_err(|_| format!("{text} is not a number").into())
}
