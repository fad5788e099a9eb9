//! `posse guard ID [CGROUP]`: what posse starts beside itself to end what it may leave running. Not for
//! people, so no help and no completion speaks of it; and small, so that it is asked for before anything else.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::assemble::tools;

/// Stands guard, if that is what these words ask for.
pub(crate) fn asked(words: &[OsString]) -> Option<ExitCode> {
    let [_, name, arguments @ ..] = words else {
        return None;
    };
    if name != tools::GUARD {
        return None;
    }
    // Who is no guardian is a person, and is told that there is no such command.
    tools::run_watchdog(arguments).map(|()| ExitCode::SUCCESS)
}
