//! The location of a store, as people and settings write it.

mod server;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;

pub(crate) use self::server::{AddressError, DatabaseServer};

/// The flag of every command that opens a store.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct StoreArgs {
    /// Store to use, sqlite:PATH or postgres://USER@HOST/DATABASE [default: posse.db in posse's
    /// home]
    #[arg(long, global = true, value_name = "STORE", value_parser = StoreParser, help_heading = "Store")]
    pub(crate) store: Option<StoreLocation>,
}

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    /// A file of SQLite.
    File(PathBuf),
    /// A server of PostgreSQL.
    Server(DatabaseServer),
}

impl StoreLocation {
    /// Returns the file, if it is one.
    pub(crate) fn file(&self) -> Option<&std::path::Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Server(_) => None,
        }
    }

    /// Returns the location for people, without a password.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::File(path) => path.to_string_lossy().into_owned(),
            Self::Server(server) => server.shown(),
        }
    }

    /// Returns the location for a command line that others may read, without a password.
    pub(crate) fn address(&self) -> String {
        match self {
            Self::File(path) => format!("sqlite:{}", path.to_string_lossy()),
            Self::Server(server) => server.address(),
        }
    }
}

/// Parses the flag. Its error messages never contain a password.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreParser;

impl TypedValueParser for StoreParser {
    type Value = StoreLocation;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<StoreLocation, clap::Error> {
        let text = value.to_string_lossy();
        // clap's own message would repeat the value and with it a password.
        parse(&text).map_err(|why| {
            let what = format!(
                "invalid value '{}' for '--store <STORE>': {why}",
                crate::output::tame(&hushed(&text))
            );
            command.clone().error(ErrorKind::ValueValidation, what)
        })
    }
}

/// Why a text does not name a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LocationError {
    #[error("a store is a file: one in memory is lost when the command ends")]
    InMemory,
    #[error("a store is sqlite:PATH, without options or a `?` in its path")]
    Options,
    #[error(transparent)]
    Server(#[from] AddressError),
    #[error(
        "a store is sqlite:PATH, such as sqlite:/home/me/posse.db, or postgres://USER@HOST/DATABASE"
    )]
    Unknown,
}

/// Parses a location.
pub(crate) fn parse(text: &str) -> Result<StoreLocation, LocationError> {
    match text.split_once(':') {
        Some(("sqlite", path)) if path.trim() == ":memory:" => Err(LocationError::InMemory),
        Some(("sqlite", path)) if path.contains('?') => Err(LocationError::Options),
        Some(("sqlite", path)) if !path.trim().is_empty() => {
            Ok(StoreLocation::File(PathBuf::from(path)))
        }
        Some(("postgres" | "postgresql", _)) => {
            Ok(StoreLocation::Server(DatabaseServer::parse(text)?))
        }
        _ => Err(LocationError::Unknown),
    }
}

/// Returns a location without what could be a password: nothing before an `@` is shown.
pub(crate) fn hushed(text: &str) -> String {
    match (
        text.find("://"),
        text.rfind('@'),
        text.contains("password="),
    ) {
        (_, _, true) | (Some(_), Some(_), _) => {
            format!("{}:…", text.split(':').next().unwrap_or_default())
        }
        _ => text.to_owned(),
    }
}

/// Replaces a leading `~`, which a shell does not expand after `sqlite:`.
pub(crate) fn from_home(place: StoreLocation, home: Option<&Path>) -> StoreLocation {
    match (&place, home) {
        (StoreLocation::File(path), Some(home)) => match path.strip_prefix("~") {
            Ok(rest) => StoreLocation::File(home.join(rest)),
            Err(_) => place,
        },
        _ => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_store_is_said() {
        let file = |path: &str| Ok(StoreLocation::File(path.into()));
        assert_eq!(parse("sqlite:/a b/c.db"), file("/a b/c.db"));
        assert_eq!(parse("sqlite:x:y"), file("x:y"));
        for wrong in [
            "",
            "sqlite:",
            "sqlite: ",
            "sqlite:a.db?mode=ro",
            "/a/b.db",
            "posse.db",
            "mysql:x",
        ] {
            assert!(
                parse(wrong)
                    .unwrap_err()
                    .to_string()
                    .contains("sqlite:PATH"),
                "{wrong}"
            );
        }
        assert!(
            parse("sqlite::memory:")
                .unwrap_err()
                .to_string()
                .contains("a store is a file")
        );
        assert!(
            parse("postgresql:db")
                .unwrap_err()
                .to_string()
                .contains("postgres://USER@HOST/DATABASE")
        );
        assert!(matches!(
            parse("postgres://host/db"),
            Ok(StoreLocation::Server(_))
        ));
    }

    #[test]
    fn what_could_be_a_password_is_not_repeated() {
        for text in [
            "mysql://me:s3cret@host/db",
            "postgres:/me:s3cret://@",
            "postgre://h/db?password=s3cret",
        ] {
            assert!(!hushed(text).contains("s3cret"), "{text}");
        }
        assert_eq!(hushed("posse.db"), "posse.db");
        let refused = clap::Command::new("posse")
            .arg(
                clap::Arg::new("store")
                    .long("store")
                    .value_parser(StoreParser),
            )
            .try_get_matches_from(["posse", "--store", "postgres://me:s3@cret@host/db"])
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("%40") && !refused.contains("cret"),
            "{refused}"
        );
    }

    #[test]
    fn a_path_may_begin_at_home() {
        let home = Some(Path::new("/home/me"));
        let from = |path: &str| from_home(StoreLocation::File(path.into()), home);
        assert_eq!(from("~/x.db"), StoreLocation::File("/home/me/x.db".into()));
        assert_eq!(from("~you/x.db"), StoreLocation::File("~you/x.db".into()));
        assert_eq!(from("a/~/x.db"), StoreLocation::File("a/~/x.db".into()));
    }
}
