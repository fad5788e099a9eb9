//! What a shell asks, and the form in which it wants the answer.

use super::line::{escaped, split};
use super::{Candidate, CompletionShell};

/// The type of completion in which bash only lists what fits.
const LISTS: &str = "63";

/// A command line that is to be completed at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CompletionRequest {
    shell: CompletionShell,
    /// The words up to the cursor, the program first; the last one may be empty.
    pub(super) words: Vec<String>,
    /// How much of the last word bash does not replace.
    kept: String,
    /// bash shows what fits, and inserts nothing.
    is_list: bool,
}

impl CompletionRequest {
    /// Reads what the script of a shell gives. Returns `None` if that is not a line of posse's.
    pub(super) fn new(shell: CompletionShell, given: Vec<String>) -> Option<Self> {
        let request = match shell {
            CompletionShell::Bash => {
                let [line, replaced, kind] = <[String; 3]>::try_from(given).ok()?;
                let words = split(&line);
                let kept = words.last().and_then(|word| word.strip_suffix(&*replaced));
                Self {
                    shell,
                    kept: kept.unwrap_or_default().to_owned(),
                    is_list: kind == LISTS,
                    words,
                }
            }
            CompletionShell::Zsh => Self::whole(shell, given),
            CompletionShell::Fish => {
                let mut words = given;
                // The word itself comes with its quotes.
                let current = words.pop().map(|word| split(&word).pop());
                words.push(current.flatten().unwrap_or_default());
                Self::whole(shell, words)
            }
        };
        (request.words.len() > 1).then_some(request)
    }

    fn whole(shell: CompletionShell, words: Vec<String>) -> Self {
        Self {
            shell,
            words,
            kept: String::new(),
            is_list: false,
        }
    }

    /// Returns the word that is completed.
    pub(super) fn current(&self) -> &str {
        self.words.last().map_or("", String::as_str)
    }

    /// Returns the value of a flag that stands in the line already.
    pub(super) fn flag(&self, name: &str) -> Option<&str> {
        let before = self.words.split_last()?.1;
        let mut words = before.iter();
        while let Some(word) = words.next() {
            let Some(rest) = word.strip_prefix(name) else {
                continue;
            };
            match rest.strip_prefix('=') {
                Some(value) => return Some(value),
                None if rest.is_empty() => return words.next().map(String::as_str),
                None => {}
            }
        }
        None
    }

    /// Returns candidates as the shell reads them, one a line.
    pub(super) fn answer(&self, found: &[Candidate]) -> String {
        let is_list = self.is_list && found.len() > 1;
        found.iter().map(|it| self.line(it, is_list)).collect()
    }

    fn line(&self, candidate: &Candidate, is_list: bool) -> String {
        let Candidate { value, about } = candidate;
        match self.shell {
            CompletionShell::Bash => {
                let value = value.strip_prefix(&self.kept).unwrap_or(value);
                match is_list && !about.is_empty() {
                    true => format!("{value}  ({about})\n"),
                    false => escaped(value) + "\n",
                }
            }
            CompletionShell::Zsh => {
                let value = value.replace('\\', "\\\\").replace(':', "\\:");
                match about.is_empty() {
                    true => value + "\n",
                    false => format!("{value}\t{about}\n"),
                }
            }
            CompletionShell::Fish => format!("{value}\t{about}\n"),
        }
    }
}
