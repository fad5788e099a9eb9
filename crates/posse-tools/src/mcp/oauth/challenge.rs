//! What a server says when it wants somebody to sign in: the header `WWW-Authenticate`.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// What a server wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::mcp) struct Challenge {
    /// Where it describes itself.
    pub(super) resource_metadata: Option<String>,
    /// What has to be permitted.
    pub(super) scopes: Vec<String>,
    /// What is wrong with the token.
    error: Option<String>,
}

impl Challenge {
    /// Reads the headers of an answer.
    pub(in crate::mcp) fn of(headers: &HeaderMap) -> Self {
        let texts = headers.get_all(WWW_AUTHENTICATE).into_iter();
        let texts = texts.filter_map(|it| it.to_str().ok());
        let found = texts.filter_map(Self::read).next();
        found.unwrap_or_default()
    }

    /// Returns what has to be permitted, if the token is good for less.
    pub(in crate::mcp) fn missing_scopes(&self) -> Option<&[String]> {
        let is_scope = self.error.as_deref() == Some("insufficient_scope");
        is_scope.then_some(&self.scopes)
    }

    /// Reads the first challenge for a bearer of a token.
    fn read(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let mut starts = lower.match_indices("bearer").map(|(at, _)| at);
        let is_scheme = |at: &usize| {
            let before = text[..*at].trim_end();
            let after = text[at + "bearer".len()..].chars().next();
            (before.is_empty() || before.ends_with(',')) && after.is_none_or(|c| c == ' ')
        };
        let start = starts.find(is_scheme)? + "bearer".len();
        let mut challenge = Self::default();
        let mut rest = text[start..].trim_start();
        while let Some((name, value, more)) = parameter(rest) {
            match name.to_ascii_lowercase().as_str() {
                "resource_metadata" => challenge.resource_metadata = Some(value),
                "scope" => {
                    challenge.scopes = value.split_whitespace().map(str::to_owned).collect();
                }
                "error" => challenge.error = Some(value),
                _ => {}
            }
            rest = more;
        }
        Some(challenge)
    }
}

/// Reads `name=value` or `name="value"`, and what follows the next comma.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = text.split_once('=')?;
    let name = name.trim();
    if name.is_empty() || name.contains([' ', ',', '"']) {
        return None;
    }
    let rest = rest.trim_start();
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => {
            let mut value = String::new();
            let mut chars = quoted.char_indices();
            let end = loop {
                match chars.next()? {
                    (at, '"') => break at,
                    (_, '\\') => value.push(chars.next()?.1),
                    (_, c) => value.push(c),
                }
            };
            (value, &quoted[end + 1..])
        }
        None => {
            let end = rest.find([',', ' ']).unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        }
    };
    let rest = rest.trim_start();
    Some((
        name,
        value,
        rest.strip_prefix(',').unwrap_or(rest).trim_start(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_in_all_their_forms() {
        let check = |text: &str, metadata: Option<&str>, scopes: &[&str], missing: bool| {
            let read = Challenge::read(text).unwrap();
            assert_eq!(read.resource_metadata.as_deref(), metadata, "{text}");
            assert_eq!(read.scopes, scopes, "{text}");
            assert_eq!(read.missing_scopes().is_some(), missing, "{text}");
        };
        check("Bearer", None, &[], false);
        check(
            r#"Bearer resource_metadata="https://a/b", scope="x y""#,
            Some("https://a/b"),
            &["x", "y"],
            false,
        );
        check(
            r#"bearer realm="a, \"b\" c",error=insufficient_scope , scope=x"#,
            None,
            &["x"],
            true,
        );
        check(
            r#"Basic realm="bearer of news", Bearer scope="x""#,
            None,
            &["x"],
            false,
        );
        check(r#"Bearer scope="never closed"#, None, &[], false);
        for none in ["", "Basic realm=x", "Bearers a=b"] {
            assert_eq!(Challenge::read(none), None, "{none}");
        }
    }
}
