//! Chooses the store: the flag, else `$POSSE_STORE`, else the settings, else the one in posse's
//! home.

use std::path::Path;
use std::time::Duration;

use super::environment::{self, variable};
use super::search_paths::SearchPaths;
use super::settings::{StoreSettings, store_settings};
use super::store::{StoreArgs, StoreLocation, from_home, hushed, parse};
use crate::error::Advised;

/// The chosen store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreChoice {
    pub(crate) place: StoreLocation,
    /// Somebody has named it, so that it should exist.
    pub(crate) named: bool,
    /// Age at which rows of its feeds are removed, if that is set.
    pub(crate) feed_age: Option<Duration>,
}

/// Returns the store from the flag, the environment, the settings, or the default.
fn place(flag: Option<&StoreLocation>, places: &SearchPaths) -> anyhow::Result<StoreChoice> {
    let StoreSettings { location, feed_age } = store_settings(places)?;
    let named = |place: StoreLocation| StoreChoice {
        place: from_home(place, places.home.as_deref()),
        named: true,
        feed_age,
    };
    if let Some(place) = flag {
        return Ok(named(place.clone()));
    }
    if let Some(text) = variable("POSSE_STORE") {
        return Ok(named(parse(&text).map_err(|why| Advised {
            what: format!("POSSE_STORE is `{}`: {why}", hushed(&text)),
            advice: "correct it, or unset it".into(),
        })?));
    }
    if let Some(place) = location {
        return Ok(named(place));
    }
    let home = places.posse_home.as_ref().ok_or_else(|| Advised {
        what: "there is no home directory".into(),
        advice: "set POSSE_HOME to a directory you own".into(),
    })?;
    Ok(StoreChoice {
        place: StoreLocation::File(home.join("posse.db")),
        named: false,
        feed_age,
    })
}

/// Returns the chosen store; a server with its password.
pub(crate) fn meant_store(store: &StoreArgs) -> anyhow::Result<StoreChoice> {
    // Not from the current directory: the user chooses a store, never a repository.
    let choice = place(store.store.as_ref(), &SearchPaths::at(Path::new("/")))?;
    let place = match choice.place {
        StoreLocation::File(path) if path.is_dir() => anyhow::bail!(Advised {
            what: format!("{} is a directory", path.display()),
            advice: format!(
                "a store is a file: sqlite:{}",
                path.join("posse.db").display()
            ),
        }),
        StoreLocation::File(path) => StoreLocation::File(path),
        StoreLocation::Server(server) => {
            StoreLocation::Server(server.or_password(environment::variable("PGPASSWORD")))
        }
    };
    Ok(StoreChoice { place, ..choice })
}

/// Returns a store that exists, as far as that can be determined without opening it.
pub(crate) fn there(place: StoreLocation) -> Result<StoreLocation, Advised> {
    let path = match &place {
        StoreLocation::File(path) if !path.exists() => path,
        StoreLocation::File(_) | StoreLocation::Server(_) => return Ok(place),
    };
    Err(Advised {
        what: format!("there is no store {} yet", path.display()),
        advice: "--store sqlite:PATH names another; `posse -p` and `posse team import` create one"
            .into(),
    })
}

/// Returns a command that uses the same store as this process: the flag must be repeated. A
/// password is not, since `PGPASSWORD` passes it.
pub(crate) fn in_store(command: String, store: &StoreArgs) -> String {
    match &store.store {
        Some(place) => format!("{command} --store {}", quoted(&place.address())),
        None => command,
    }
}

/// Quotes a word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/:@,%+=".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
