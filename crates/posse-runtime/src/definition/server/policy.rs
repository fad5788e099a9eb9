//! Which servers settings let start: `allowedMcpServers` and `deniedMcpServers`.

use posse_port::servers::{ServerEntry, ServerTransport};
use serde_json::Value;

/// What servers are held to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerPolicy {
    /// The only ones that may be started; none for all.
    pub allowed: Option<Vec<ServerPattern>>,
    /// Those that may not, whoever declares them.
    pub denied: Vec<ServerPattern>,
}

/// Servers that are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerPattern {
    /// Those of this name.
    Name(String),
    /// Those that are exactly this program with these arguments.
    Command(Vec<String>),
    /// Those at such an address; `*` stands for anything, in the host for anything but a path.
    Url(String),
}

/// What a pattern must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an entry must be an object with one of `serverName` (a text), `serverCommand` (a list of texts) \
     and `serverUrl` (a text)"
)]
pub struct PatternError;

impl ServerPattern {
    /// Reads an entry of a list.
    pub fn read(entry: &Value) -> Result<Self, PatternError> {
        let entry = entry.as_object().filter(|entry| entry.len() == 1);
        let (key, value) = entry
            .and_then(|entry| entry.iter().next())
            .ok_or(PatternError)?;
        let text = || value.as_str().map(str::to_owned).ok_or(PatternError);
        match key.as_str() {
            "serverName" => text().map(Self::Name),
            "serverUrl" => text().map(Self::Url),
            "serverCommand" => {
                let words = value.as_array().filter(|words| !words.is_empty());
                let words = words.into_iter().flatten();
                let words = words.map(|word| word.as_str().map(str::to_owned));
                let words: Option<Vec<String>> = words.collect();
                let words = words.filter(|words| !words.is_empty());
                words.map(Self::Command).ok_or(PatternError)
            }
            _ => Err(PatternError),
        }
    }

    fn matches(&self, entry: &ServerEntry) -> bool {
        match (self, &entry.transport) {
            (Self::Name(name), _) => *name == entry.name,
            (Self::Command(meant), ServerTransport::Program { words, .. }) => meant == words,
            (Self::Url(pattern), ServerTransport::Http { url, .. }) => is_meant(pattern, url),
            _ => false,
        }
    }
}

impl ServerPolicy {
    /// Returns why a server may not be started; none if it may. Its variables are replaced, so that
    /// no entry says something else than it does.
    pub(crate) fn refusal(&self, entry: &ServerEntry, is_managed: bool) -> Option<String> {
        if self.denied.iter().any(|pattern| pattern.matches(entry)) {
            return Some("deniedMcpServers of the settings names it".to_owned());
        }
        let allowed = self.allowed.as_ref().filter(|_| !is_managed)?;
        let is_of_kind = |pattern: &&ServerPattern| match entry.transport {
            ServerTransport::Program { .. } => matches!(pattern, ServerPattern::Command(_)),
            ServerTransport::Http { .. } => matches!(pattern, ServerPattern::Url(_)),
        };
        // Where commands or addresses are listed, a name alone is not enough: anything can have it.
        let is_allowed = match allowed.iter().any(|pattern| is_of_kind(&pattern)) {
            true => allowed
                .iter()
                .filter(is_of_kind)
                .any(|pattern| pattern.matches(entry)),
            false => allowed.iter().any(|pattern| pattern.matches(entry)),
        };
        (!is_allowed).then(|| "allowedMcpServers of the settings does not name it".to_owned())
    }
}

/// Returns true if a pattern means an address.
fn is_meant(pattern: &str, url: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let (Some(pattern), Some(url)) = (Address::of(pattern), Address::of(url)) else {
        return false;
    };
    let is_same_host = {
        let (pattern, host) = (pattern.host.to_lowercase(), url.host.to_lowercase());
        is_glob(&pattern, &host)
    };
    is_glob(&pattern.scheme.to_lowercase(), &url.scheme.to_lowercase())
        && is_same_host
        && is_glob(pattern.path, url.path)
}

/// The parts of an address.
struct Address<'a> {
    scheme: &'a str,
    /// Host and port, with a user if one is named.
    host: &'a str,
    /// The rest, without a `/` at its end.
    path: &'a str,
}

impl<'a> Address<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        // `https://allowed.org@other.org` is at other.org.
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        Some(Self {
            scheme,
            host,
            path: path.strip_suffix('/').unwrap_or(path),
        })
    }
}

/// Returns true if a text is the pattern, in which `*` stands for anything.
fn is_glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    // The first place of each part will do: what is left for the others is longest.
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_part_by_part() {
        let check = |pattern, url, expected| {
            assert_eq!(is_meant(pattern, url), expected, "{pattern} {url}");
        };
        check(
            "https://mcp.example.org/*",
            "https://mcp.example.org/a/b",
            true,
        );
        check(
            "https://mcp.example.org/*",
            "https://MCP.example.org/a",
            true,
        );
        check("https://mcp.example.org", "https://mcp.example.org/", true);
        check(
            "https://mcp.example.org",
            "https://mcp.example.org/a",
            false,
        );
        check("https://*.example.org/*", "https://a.b.example.org/x", true);
        check(
            "https://*.example.org/*",
            "https://evil.org/.example.org/x",
            false,
        );
        check(
            "https://*.example.org/*",
            "https://evil.org?.example.org/x",
            false,
        );
        check(
            "https://example.org/*",
            "https://example.org@evil.org/x",
            false,
        );
        check("https://example.org/*", "https://example.org:8080/x", false);
        check(
            "https://example.org:*/*",
            "https://example.org:8080/x",
            true,
        );
        check("http://localhost:*/*", "https://localhost:1/x", false);
        check("*://localhost/*", "http://localhost/x", true);
        check("*", "http://anything", true);
    }

    #[test]
    fn stars_stand_for_anything() {
        let check = |pattern, text, expected| {
            assert_eq!(is_glob(pattern, text), expected, "{pattern} {text}");
        };
        check("", "", true);
        check("a", "ab", false);
        check("a*", "ab", true);
        check("*a*b", "xaxb", true);
        check("*a*b", "xbxa", false);
        check("ab*ba", "aba", false);
        check("**", "x", true);
    }
}
