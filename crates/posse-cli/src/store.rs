//! Which store is meant: the flag, else `$POSSE_STORE`, else the settings, else the one in posse's home.

use std::path::{Path, PathBuf};

use crate::environment::variable;
use crate::hint::Advised;
use crate::settings::{Places, chosen_store};

/// The flag of every command that opens a store.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct StoreArgs {
    /// Where everything is kept, sqlite:PATH [default: posse.db in posse's home]
    #[arg(long, global = true, value_name = "STORE", value_parser = parse, help_heading = "Store")]
    pub(crate) store: Option<PathBuf>,
}

/// The file of a store as people name it.
pub(crate) fn parse(text: &str) -> Result<PathBuf, String> {
    match text.split_once(':') {
        Some(("sqlite", path)) if !path.is_empty() => Ok(PathBuf::from(path)),
        Some(("postgres" | "postgresql", _)) => {
            Err("PostgreSQL is not there yet; a store is sqlite:PATH".into())
        }
        _ => Err("a store is sqlite:PATH, sqlite:/home/me/posse.db for one".into()),
    }
}

/// The file of the store: what the flag says, else the environment, else the settings, else posse's own.
pub(crate) fn place(flag: Option<&Path>, places: &Places) -> anyhow::Result<PathBuf> {
    if let Some(path) = flag {
        return Ok(path.to_owned());
    }
    if let Some(text) = variable("POSSE_STORE") {
        return Ok(parse(&text).map_err(|why| Advised {
            what: format!("POSSE_STORE is `{text}`: {why}"),
            advice: "set it right, or unset it".into(),
        })?);
    }
    if let Some(path) = chosen_store(places)? {
        return Ok(path);
    }
    let home = places.posse_home.as_ref().ok_or_else(|| Advised {
        what: "there is no home directory".into(),
        advice: "set POSSE_HOME to a directory of yours".into(),
    })?;
    Ok(home.join("posse.db"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_store_is_said() {
        assert_eq!(parse("sqlite:/a b/c.db"), Ok(PathBuf::from("/a b/c.db")));
        assert_eq!(parse("sqlite:x:y"), Ok(PathBuf::from("x:y")));
        for wrong in ["", "sqlite:", "/a/b.db", "posse.db", "mysql:x"] {
            assert!(parse(wrong).unwrap_err().contains("sqlite:PATH"), "{wrong}");
        }
        for later in ["postgres://host/db", "postgresql:db"] {
            assert!(parse(later).unwrap_err().contains("not there yet"), "{later}");
        }
    }
}
