//! What a person decides before a conversation begins: at the first start, without a key, whether
//! to give one or to try posse with the scripted model; and in a workspace that is not trusted, or
//! has changed, whether its files count.

use std::io::{self, BufRead, Write};

use anyhow::Context;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::assemble::local_model::LocalModel;
use crate::assemble::run_config::RunConfig;
use crate::config::{environment, key_file};
use crate::definitions::trustable::{Extent, Trustable};
use crate::present::trust;

/// What the person chose.
pub(super) enum FirstRun {
    /// There is a key, or none is needed.
    Ready,
    /// A scripted model answers, as long as this lives.
    Scripted(LocalModel),
    /// They leave.
    Leave,
}

/// Asks for a key, if one is needed and missing.
pub(super) fn prepare(config: &RunConfig) -> anyhow::Result<FirstRun> {
    let settings = config.provider.settle()?;
    if settings.key.is_some() || settings.is_local() {
        return Ok(FirstRun::Ready);
    }
    let name = settings.key_name();
    let file = key_file::path().map(|path| path.display().to_string());
    let file = file.unwrap_or_default();
    tell(&welcome(name, &file))?;
    loop {
        tell("1, 2 or q: ")?;
        match line()?.as_deref().map(str::trim) {
            Some("1") => match key(name)? {
                true => return Ok(FirstRun::Ready),
                false => tell("there was no key\n")?,
            },
            Some("2") => {
                let model = LocalModel::start()?;
                tell("It greets and repeats what you say; the costs are made up.\n")?;
                return Ok(FirstRun::Scripted(model));
            }
            Some("q") | None => return Ok(FirstRun::Leave),
            Some(_) => {}
        }
    }
}

/// Asks about a workspace that is not trusted, or has files that wait. Returns false if the person
/// leaves.
pub(super) fn ask_for_trust(config: &RunConfig) -> anyhow::Result<bool> {
    let places = config.search_paths(&environment::working_directory()?);
    let extent = match places.trust.is_trusted() {
        true => Extent::Here,
        false => Extent::Whole,
    };
    // In one that is trusted for this run nothing waits.
    if config.flags.trusts || places.trust.is_trusted_for_now() {
        return Ok(true);
    }
    let found = Trustable::at(&places, extent);
    let is_waiting = found.waiting().next().is_some();
    if !is_waiting && (places.trust.is_trusted() || !found.trust.can_be_kept()) {
        return Ok(true);
    }
    tell(&trust::introduction(&found))?;
    if !found.trust.can_be_kept() {
        tell("Trust in this directory is not kept; --trust uses its files once.\n\n")?;
        return Ok(true);
    }
    tell(CHOICES)?;
    loop {
        tell("1, 2 or q: ")?;
        match line()?.as_deref().map(str::trim) {
            Some("1") => {
                found.accept()?;
                tell("trusted; `posse trust remove` takes it back\n")?;
                return Ok(true);
            }
            Some("2") => return Ok(true),
            Some("q") | None => return Ok(false),
            Some(_) => {}
        }
    }
}

/// What may be chosen about a workspace.
const CHOICES: &str = "  \
    1  trust them as they are now; what changes later is asked again\n  \
    2  go on without them: nothing of the workspace is run or obeyed\n  \
    q  leave\n\n";

/// Returns what may be chosen, in lines that a terminal of 80 columns does not break.
fn welcome(name: &str, file: &str) -> String {
    format!(
        "Welcome to posse. It has no key for a model yet: {name} is not set.\n\n  \
         1  give it a key\n     \
         It is kept in a file that only you can read:\n     \
         {file}\n  \
         2  try it without a key\n     \
         A scripted model on this machine answers; nothing is sent anywhere.\n  \
         q  leave\n\n"
    )
}

/// Reads a key without showing it, and keeps it. Returns false if there is none.
fn key(name: &str) -> anyhow::Result<bool> {
    tell("Paste the key (it is not shown), then Enter: ")?;
    let terminal = io::stdin();
    let before = tcgetattr(&terminal)?;
    let mut hidden = before.clone();
    hidden.local_modes -= LocalModes::ECHO;
    tcsetattr(&terminal, OptionalActions::Now, &hidden)?;
    let read = line();
    tcsetattr(&terminal, OptionalActions::Now, &before)?;
    tell("\n")?;
    let key = read?.unwrap_or_default();
    let key = key.trim();
    if key.is_empty() || key.contains(char::is_whitespace) {
        return Ok(false);
    }
    let path = key_file::keep(name, key).context("the key could not be kept")?;
    tell(&format!(
        "kept in {}; `posse logout` removes it\n",
        path.display()
    ))?;
    Ok(true)
}

/// Returns the next line; none at the end.
fn line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let length = io::stdin().lock().read_line(&mut line)?;
    Ok((length > 0).then_some(line))
}

fn tell(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_broken_by_a_terminal_of_80_columns() {
        let text = welcome(
            "ANTHROPIC_API_KEY",
            "/home/somebody/with/a/directory/.posse/keys.json",
        );
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
