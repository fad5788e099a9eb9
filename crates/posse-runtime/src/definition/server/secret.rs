//! Names that tell of a secret.

/// Words in such names.
const WORDS: [&str; 15] = [
    "KEY",
    "KEYS",
    "SECRET",
    "SECRETS",
    "TOKEN",
    "TOKENS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "AUTH",
    "AUTHORIZATION",
    "COOKIE",
];

/// Returns true if a variable, a header or a parameter of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let upper = name.to_uppercase();
    let mut words = upper.split(|c: char| !c.is_alphanumeric());
    words.any(|word| {
        // `MONKEY` ends with a word that is too short to tell.
        let ends = |known: &&str| word == *known || (known.len() > 4 && word.ends_with(*known));
        WORDS.iter().any(ends) || word.ends_with("APIKEY") || word == "OAUTH"
    })
}

/// Returns true if an address has a password or a parameter that tells of a secret in it.
pub(super) fn is_secret_url(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let mut names = query.split('&').filter_map(|it| it.split('=').next());
    authority.contains('@') || names.any(is_secret_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_told_from_others() {
        for name in [
            "GITHUB_TOKEN",
            "x-api-key",
            "Authorization",
            "DB_PASSWORD",
            "APITOKEN",
            "client_secret",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["MONKEY", "PATH", "AUTHOR", "KEYBOARD", "accept"] {
            assert!(!is_secret_name(name), "{name}");
        }
        let check = |url, expected| assert_eq!(is_secret_url(url), expected, "{url}");
        check("https://u:p@host/mcp", true);
        check("https://host/mcp?api_key=x", true);
        check("https://host/mcp?tenant=key", false);
        check("https://host/a@b", false);
    }
}
