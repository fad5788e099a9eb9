//! The environment. This is the only place that reads it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::error::Advised;

/// Returns a variable's value; empty counts as absent.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the room that reads the environment"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns all variables.
pub(crate) fn all() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// Returns the variables that are text.
pub(crate) fn texts() -> BTreeMap<String, String> {
    let texts = all().into_iter().filter_map(|(name, value)| {
        let value = value.into_string().ok()?;
        Some((name.into_string().ok()?, value))
    });
    texts.collect()
}

/// Returns the directory for the user's files: `$POSSE_HOME`, else `~/.posse`.
pub(crate) fn posse_home() -> Option<PathBuf> {
    let given = variable("POSSE_HOME").map(PathBuf::from);
    given.or_else(|| std::env::home_dir().map(|home| home.join(".posse")))
}

/// Returns the user's home.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::home_dir()
}

/// Returns the directory posse was started in, with links resolved.
pub(crate) fn working_directory() -> anyhow::Result<PathBuf> {
    let found = std::env::current_dir().and_then(|path| path.canonicalize());
    found.map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow::Error::new(Advised {
            what: "the working directory no longer exists".into(),
            advice: "cd to an existing one; `cd .` is enough if it was created again".into(),
        }),
        _ => anyhow::Error::new(error).context("cannot use the working directory"),
    })
}
