//! The address of a server, which is shown without its password.

use std::fmt;

/// The form of an address.
const FORM: &str = "a server is postgres://USER@HOST/DATABASE; separate several hosts with commas";

/// Prefix of parameters that only posse knows.
const OWN: &str = "posse_";

/// Why a text is not the address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("{}", FORM)]
    Form,
    #[error("{}; a parameter is NAME=VALUE", FORM)]
    Parameter,
    #[error("write @, /, ? and # in a password or a parameter as %40, %2F, %3F and %23")]
    Unescaped,
}

/// A server of PostgreSQL, with the database.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DatabaseServer {
    user: Option<String>,
    password: Option<String>,
    hosts: String,
    database: String,
    /// `name=value` pairs without the password.
    parameters: Vec<String>,
}

impl DatabaseServer {
    /// Parses an address.
    pub(super) fn parse(text: &str) -> Result<Self, AddressError> {
        let (_, rest) = text.split_once("://").ok_or(AddressError::Form)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // The driver takes everything before the first `@` for credentials, wherever it is. An
        // unescaped one would end up in messages as part of the host.
        if path.contains('@') || authority.matches('@').count() > 1 {
            return Err(AddressError::Unescaped);
        }
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => (credentials, hosts),
            None => ("", authority),
        };
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (credentials, None),
        };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut server = Self {
            user: Some(user.to_owned()).filter(|user| !user.is_empty()),
            password: password
                .map(str::to_owned)
                .filter(|password| !password.is_empty()),
            hosts: hosts.to_owned(),
            database: path.trim_start_matches('/').to_owned(),
            parameters: Vec::new(),
        };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("password", value)) => server.password = Some(value.to_owned()),
                Some(_) => server.parameters.push(parameter.to_owned()),
                None => return Err(AddressError::Parameter),
            }
        }
        if server.hosts.is_empty() && server.parameter("host").is_none() {
            return Err(AddressError::Form);
        }
        if server.database.contains('/') {
            return Err(AddressError::Form);
        }
        Ok(server)
    }

    /// Returns the address for people: `user@host/database`.
    pub(crate) fn shown(&self) -> String {
        let user = self.user.as_deref().or_else(|| self.parameter("user"));
        let hosts = if self.hosts.is_empty() {
            self.parameter("host").unwrap_or_default()
        } else {
            &self.hosts
        };
        let database = match self.database.as_str() {
            "" => self.parameter("dbname").or(user).unwrap_or_default(),
            database => database,
        };
        format!(
            "{}{hosts}/{database}",
            user.map_or_else(String::new, |user| format!("{user}@"))
        )
    }

    /// Returns the address without the password, for places that others may read.
    pub(crate) fn address(&self) -> String {
        Self {
            password: None,
            ..self.clone()
        }
        .whole()
    }

    /// Returns the address for PostgreSQL's own programs, without posse's parameters.
    pub(crate) fn for_others(&self) -> String {
        let mut others = self.clone();
        others
            .parameters
            .retain(|parameter| !parameter.starts_with(OWN));
        others.address()
    }

    /// Returns the address with the password. Nobody else may read it.
    pub(crate) fn whole(&self) -> String {
        let Self {
            hosts, database, ..
        } = self;
        let user = self.user.as_deref().unwrap_or_default();
        let credentials = match &self.password {
            Some(password) => format!("{user}:{password}@"),
            None if user.is_empty() => String::new(),
            None => format!("{user}@"),
        };
        let query = self.parameters.join("&");
        let query = if query.is_empty() {
            query
        } else {
            format!("?{query}")
        };
        format!("postgres://{credentials}{hosts}/{database}{query}")
    }

    /// Returns the decoded password.
    pub(crate) fn password(&self) -> Option<String> {
        self.password.as_deref().map(decoded)
    }

    /// Adds a password if the address has none.
    pub(crate) fn or_password(mut self, password: Option<String>) -> Self {
        self.password = self
            .password
            .or_else(|| password.map(|password| encoded(&password)));
        self
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
    }
}

impl fmt::Debug for DatabaseServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the password, not even in debug output.
        write!(f, "Server({})", self.shown())
    }
}

/// Percent-encodes text for an address.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(one).collect()
}

/// Decodes percent-encoded text.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut clear, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let code = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                clear.push(code);
                at += 3;
            }
            None => {
                clear.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&clear).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> DatabaseServer {
        DatabaseServer::parse(text).unwrap()
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let check = |text: &str, shown: &str, address: &str| {
            let server = server(text);
            assert_eq!(
                (server.shown().as_str(), server.address().as_str()),
                (shown, address)
            );
            assert!(!format!("{server:?}").contains("s3cret"), "{server:?}");
        };
        check("postgres://me:s3cret@h/db", "me@h/db", "postgres://me@h/db");
        check(
            "postgresql://me@h:6000/db",
            "me@h:6000/db",
            "postgres://me@h:6000/db",
        );
        check(
            "postgres://h/db?password=s3cret&sslmode=require",
            "h/db",
            "postgres://h/db?sslmode=require",
        );
        check("postgres://:s3cret@h/db", "h/db", "postgres://h/db");
        check(
            "postgres://me:s%2F3cret@a,b:2/db?x=1",
            "me@a,b:2/db",
            "postgres://me@a,b:2/db?x=1",
        );
        check(
            "postgres:///db?host=/run/pg&user=me",
            "me@/run/pg/db",
            "postgres:///db?host=/run/pg&user=me",
        );
        check("postgres://me@h", "me@h/me", "postgres://me@h/");
        check(
            "postgres://me@h/db?posse_lease=2s",
            "me@h/db",
            "postgres://me@h/db?posse_lease=2s",
        );
    }

    #[test]
    fn whoever_opens_it_gets_all_and_others_what_is_theirs() {
        let whole = server("postgres://me:p%40ss@h/db?posse_lease=2s&sslmode=require");
        assert_eq!(
            whole.whole(),
            "postgres://me:p%40ss@h/db?posse_lease=2s&sslmode=require"
        );
        assert_eq!(whole.for_others(), "postgres://me@h/db?sslmode=require");
        assert_eq!(whole.password().as_deref(), Some("p@ss"));
        let asked = server("postgres://me@h/db").or_password(Some("a/b@ü%".into()));
        assert_eq!(asked.whole(), "postgres://me:a%2Fb%40%C3%BC%25@h/db");
        assert_eq!(asked.password().as_deref(), Some("a/b@ü%"));
        assert_eq!(whole.clone().or_password(Some("other".into())), whole);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for wrong in [
            "postgres://",
            "postgres:h/db",
            "postgres:///db",
            "postgres://h/a/b",
            "postgres://h/db?x",
        ] {
            assert!(
                DatabaseServer::parse(wrong)
                    .unwrap_err()
                    .to_string()
                    .contains("USER@HOST/DATABASE"),
                "{wrong}"
            );
        }
        for wrong in [
            "postgres://me:a@b@h/db",
            "postgres://me:a/b@h/db",
            "postgres://me:a?b@h/db",
        ] {
            assert!(
                DatabaseServer::parse(wrong)
                    .unwrap_err()
                    .to_string()
                    .contains("%40"),
                "{wrong}"
            );
        }
    }
}
