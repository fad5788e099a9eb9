//! `posse confine`: the launcher that confines a command and starts it. It is not for people, so
//! that help and completions do not mention it. It is checked for before anything else: it must
//! not do anything that the command could see.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs as a launcher, if the command line and the orders on the input ask for it.
pub(crate) fn asked(words: &[OsString]) -> Option<ExitCode> {
    posse_sandbox::run_launcher(words)
}
