//! Says what posse does not support of what users have: once for each content, but guards that are
//! missing in every run.

use std::collections::BTreeSet;
use std::path::Path;

use crate::assemble::sandbox;
use crate::config::environment::posse_home;
use crate::config::replace::{Durability, FileMode, replace};
use crate::config::settings::sandbox::SandboxUse;
use crate::config::unsupported::{MissingGuard, Unsupported, UnusedFile, WithoutGuards};
use crate::definitions::shown;
use crate::error::Advised;
use crate::output::{say, tame};

/// Maximum number of contents that are remembered.
const MOST: usize = 1000;

/// Reports what is not supported here. Fails if something must not be left out.
pub(super) fn tell(
    unsupported: &Unsupported,
    cwd: &Path,
    without: WithoutGuards,
    sandbox: SandboxUse,
) -> Result<(), Advised> {
    demanded(unsupported, cwd, without, sandbox)?;
    for guard in &unsupported.guards {
        say(&format!("warning: {}", guard_missing(guard, cwd)));
    }
    // The value of a flag is not in a file, and is reported each time.
    let is_flag = |file: &&UnusedFile| file.path == Path::new("--settings");
    for value in unsupported.files.iter().filter(is_flag) {
        say(&format!("warning: {}", not_used(value, cwd)));
    }
    let files = unsupported.files.iter().filter(|file| !is_flag(file));
    for file in news(files) {
        say(&format!(
            "warning: {}; `posse doctor` repeats this",
            not_used(file, cwd)
        ));
    }
    Ok(())
}

/// Fails if a file or flag demands what posse does not have.
fn demanded(
    unsupported: &Unsupported,
    cwd: &Path,
    without: WithoutGuards,
    sandbox: SandboxUse,
) -> Result<(), Advised> {
    let guard = unsupported.guards.first();
    if let Some(guard) = guard.filter(|_| without == WithoutGuards::Fails) {
        return Err(Advised {
            what: format!(
                "--require-hooks demands the hooks of {}, which do not run",
                shown(&guard.path, cwd)
            ),
            advice: "`posse hooks check` says why; leave --require-hooks out to run without them: \
                     the calls they would block are not blocked"
                .into(),
        });
    }
    let Some(path) = unsupported.demand_sandbox.first() else {
        return Ok(());
    };
    let missing = match sandbox {
        SandboxUse::Off => Some("it is off".to_owned()),
        SandboxUse::Auto | SandboxUse::Required => {
            let probe = sandbox::probe();
            (!probe.tier().has_mounts()).then(|| sandbox::in_words(&probe))
        }
    };
    match missing {
        None => Ok(()),
        Some(why) => Err(Advised {
            what: format!(
                "{} demands a sandbox (`failIfUnavailable`), and there is none: {why}",
                shown(path, cwd)
            ),
            advice: "`posse doctor --sandbox` says what is missing; set \
                     `sandbox.failIfUnavailable` to false to run without one"
                .into(),
        }),
    }
}

/// Returns what is said of hooks that do not guard.
pub(crate) fn guard_missing(guard: &MissingGuard, cwd: &Path) -> String {
    let events: Vec<&str> = guard.events.iter().copied().collect();
    format!(
        "{} hooks of {} do not run (`posse hooks check` says why): what they would block is not \
         blocked",
        events.join(" and "),
        shown(&guard.path, cwd)
    )
}

/// Returns what is said of a file.
pub(crate) fn not_used(file: &UnusedFile, cwd: &Path) -> String {
    format!(
        "{}: posse does not use {}",
        shown(&file.path, cwd),
        tame(&file.what)
    )
}

/// Returns the files whose content was not reported before, and remembers them. If that fails,
/// they are reported again.
fn news<'a>(files: impl Iterator<Item = &'a UnusedFile>) -> Vec<&'a UnusedFile> {
    let path = posse_home().map(|home| home.join("told"));
    let told = path
        .as_deref()
        .and_then(|path| std::fs::read_to_string(path).ok());
    let told: Vec<&str> = told.iter().flat_map(|told| told.lines()).collect();
    let known: BTreeSet<&str> = told.iter().copied().collect();
    let name = |file: &UnusedFile| format!("{:016x}", file.content);
    let new: Vec<&UnusedFile> = files
        .filter(|file| !known.contains(name(file).as_str()))
        .collect();
    if let (Some(path), false) = (path, new.is_empty()) {
        let names = new.iter().map(|file| name(file));
        let mut lines: Vec<String> = told
            .iter()
            .map(|line| (*line).to_owned())
            .chain(names)
            .collect();
        lines.drain(..lines.len().saturating_sub(MOST));
        let text = lines.join("\n") + "\n";
        // Replaced as a whole, so that two processes leave one of the two states.
        let _ = replace(&path, &text, FileMode::Usual, Durability::Unsynced);
    }
    new
}
