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

/// The file of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meant {
    pub(crate) path: PathBuf,
    /// Whether somebody has named it: it should be there then.
    pub(crate) named: bool,
}

/// The file of a store as people name it.
pub(crate) fn parse(text: &str) -> Result<PathBuf, String> {
    match text.split_once(':') {
        Some(("sqlite", path)) if path.trim() == ":memory:" => {
            Err("a store is a file: what is only in memory is gone when the command ends".into())
        }
        Some(("sqlite", path)) if path.contains('?') => {
            Err("a store is sqlite:PATH, without options and without a `?` in its path".into())
        }
        Some(("sqlite", path)) if !path.trim().is_empty() => Ok(PathBuf::from(path)),
        Some(("postgres" | "postgresql", _)) => {
            Err("PostgreSQL is not there yet; a store is sqlite:PATH".into())
        }
        _ => Err("a store is sqlite:PATH, sqlite:/home/me/posse.db for one".into()),
    }
}

/// A path that begins with `~` begins at home, whoever wrote it; a shell leaves it alone behind `sqlite:`.
pub(crate) fn from_home(path: PathBuf, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}

/// The file of the store: what the flag says, else the environment, else the settings, else posse's own.
pub(crate) fn place(flag: Option<&Path>, places: &Places) -> anyhow::Result<Meant> {
    let named = |path: PathBuf| Meant { path: from_home(path, places.home.as_deref()), named: true };
    if let Some(path) = flag {
        return Ok(named(path.to_owned()));
    }
    if let Some(text) = variable("POSSE_STORE") {
        return Ok(named(parse(&text).map_err(|why| Advised {
            what: format!("POSSE_STORE is `{text}`: {why}"),
            advice: "set it right, or unset it".into(),
        })?));
    }
    if let Some(path) = chosen_store(places)? {
        return Ok(named(path));
    }
    let home = places.posse_home.as_ref().ok_or_else(|| Advised {
        what: "there is no home directory".into(),
        advice: "set POSSE_HOME to a directory of yours".into(),
    })?;
    Ok(Meant { path: home.join("posse.db"), named: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_store_is_said() {
        assert_eq!(parse("sqlite:/a b/c.db"), Ok(PathBuf::from("/a b/c.db")));
        assert_eq!(parse("sqlite:x:y"), Ok(PathBuf::from("x:y")));
        for wrong in ["", "sqlite:", "sqlite: ", "sqlite:a.db?mode=ro", "/a/b.db", "posse.db", "mysql:x"] {
            assert!(parse(wrong).unwrap_err().contains("sqlite:PATH"), "{wrong}");
        }
        assert!(parse("sqlite::memory:").unwrap_err().contains("a store is a file"));
        for later in ["postgres://host/db", "postgresql:db"] {
            assert!(parse(later).unwrap_err().contains("not there yet"), "{later}");
        }
    }

    #[test]
    fn a_path_may_begin_at_home() {
        let home = Some(Path::new("/home/me"));
        let from = |path: &str| from_home(path.into(), home);
        assert_eq!(from("~/x.db"), Path::new("/home/me/x.db"));
        assert_eq!(from("~you/x.db"), Path::new("~you/x.db"));
        assert_eq!(from("a/~/x.db"), Path::new("a/~/x.db"));
    }
}
