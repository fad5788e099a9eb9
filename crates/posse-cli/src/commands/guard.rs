//! `posse guard`: the watchdog that posse starts beside itself, to start commands and to end what
//! they may leave running. It is not for people, so that help and completions do not mention it. It is
//! checked for before anything else, so that it stays small.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::assemble::tools;

/// Runs as a watchdog, if the command line asks for it.
pub(crate) fn asked(words: &[OsString]) -> Option<ExitCode> {
    let [_, name, arguments @ ..] = words else {
        return None;
    };
    if name != tools::GUARD {
        return None;
    }
    // A person who types this is told that there is no such command.
    tools::run_watchdog(arguments).map(|()| ExitCode::SUCCESS)
}
