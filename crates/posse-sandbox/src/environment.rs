//! The environment of a confined command: without secrets and without ways to other programs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Tells a posse that is started inside that it is.
pub const CONFINED: &str = "POSSE_CONFINED";

/// Words in the names of variables that hold secrets.
const SECRET_WORDS: [&str; 14] = [
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
    "COOKIE",
];
/// Variables that lead to other programs, to posse's own data, or to settings with secrets in them.
const LEADS: [&str; 13] = [
    "DOCKER_HOST",
    "GIT_ASKPASS",
    "GIT_CONFIG_PARAMETERS",
    "GPG_AGENT_INFO",
    "POSSE_STORE",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "TMUX",
    "TMUX_PANE",
    "WAYLAND_DISPLAY",
    "DISPLAY",
    "XDG_RUNTIME_DIR",
];
/// Beginnings of the names of such variables.
const LEAD_PREFIXES: [&str; 4] = ["DBUS_", "SSH_AUTH_", "VSCODE_IPC", "VSCODE_GIT_"];
/// Settings that git gets beside its own: none of them runs a program that a file names.
const GIT_SETTINGS: [(&str, &str); 3] = [
    ("safe.bareRepository", "explicit"),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
];
/// Keeps npm from asking its registry for news of itself, about which a person would be asked.
const WITHOUT_NEWS: (&str, &str) = ("npm_config_update_notifier", "false");
/// More than this, a count of settings is not one.
const MOST_GIT_SETTINGS: usize = 1000;

/// Variables that name a proxy, in small letters.
const PROXIES: [&str; 5] = [
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "ftp_proxy",
    "no_proxy",
];
/// What is reached without the proxy.
const NOT_PROXIED: &str = "localhost,127.0.0.1,::1";

/// Which proxy the environment names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedProxy {
    /// That of the environment outside.
    Outer,
    /// One that listens on this port inside.
    Inner(u16),
    /// None.
    None,
}

/// Returns the environment that a command has inside. `temporary` is its temporary directory.
pub fn inside(
    outside: Vec<(OsString, OsString)>,
    temporary: &Path,
    proxy: NamedProxy,
) -> Vec<(OsString, OsString)> {
    let git = git_settings(&outside);
    let mut inside: Vec<_> = outside
        .into_iter()
        .filter(|(name, value)| !is_git_setting(name) && !is_secret(name, value))
        .filter(|(name, _)| !is_temporary(name) && name != CONFINED && name != WITHOUT_NEWS.0)
        // It cannot be reached from inside.
        .filter(|(name, _)| proxy == NamedProxy::Outer || !is_proxy(name))
        .collect();
    for name in ["TMPDIR", "TMP", "TEMP"] {
        inside.push((name.into(), temporary.into()));
    }
    inside.push(("GIT_CONFIG_COUNT".into(), git.len().to_string().into()));
    for (index, (key, value)) in git.into_iter().enumerate() {
        inside.push((format!("GIT_CONFIG_KEY_{index}").into(), key));
        inside.push((format!("GIT_CONFIG_VALUE_{index}").into(), value));
    }
    if let NamedProxy::Inner(port) = proxy {
        let address = format!("http://127.0.0.1:{port}");
        for (name, value) in [
            ("http_proxy", address.as_str()),
            ("https_proxy", &address),
            ("no_proxy", NOT_PROXIED),
        ] {
            inside.push((name.into(), value.into()));
            inside.push((name.to_uppercase().into(), value.into()));
        }
        // Without it, node asks no proxy.
        inside.push(("NODE_USE_ENV_PROXY".into(), "1".into()));
    }
    for (name, value) in [WITHOUT_NEWS, (CONFINED, "1")] {
        inside.push((name.into(), value.into()));
    }
    inside
}

/// Returns true for a variable that names a proxy.
fn is_proxy(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    PROXIES.contains(&name.as_str())
}

/// Returns true if a command must not see the variable.
fn is_secret(name: &OsStr, value: &OsStr) -> bool {
    let upper = name.to_string_lossy().to_uppercase();
    LEADS.contains(&upper.as_str())
        || LEAD_PREFIXES.iter().any(|it| upper.starts_with(it))
        || upper == "XAUTHORITY"
        || upper.split('_').any(is_secret_word)
        || has_password(value.as_bytes())
}

/// Returns true for a word such as `TOKEN` and one that ends with it, such as `APITOKEN`.
fn is_secret_word(word: &str) -> bool {
    // `MONKEY` ends with a word that is too short to tell.
    let ends = |known: &&str| word == *known || (known.len() > 4 && word.ends_with(*known));
    SECRET_WORDS.iter().any(ends) || word.ends_with("APIKEY") || word == "OAUTH"
}

/// Returns true if it is a URL with a password in it.
fn has_password(value: &[u8]) -> bool {
    let value = String::from_utf8_lossy(value);
    let mut urls = value.split("://").skip(1);
    urls.any(|rest| {
        let end = rest.find(['/', ' ', '?', '#']).unwrap_or(rest.len());
        let user = rest.get(..end).and_then(|host| host.rsplit_once('@'));
        user.is_some_and(|(user, _)| user.contains(':'))
    })
}

fn is_temporary(name: &OsStr) -> bool {
    ["TMPDIR", "TMP", "TEMP"].iter().any(|it| name == *it)
}

fn is_git_setting(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name == b"GIT_CONFIG_COUNT"
        || name.starts_with(b"GIT_CONFIG_KEY_")
        || name.starts_with(b"GIT_CONFIG_VALUE_")
}

/// Returns the settings for git that the environment has, without secrets, and those of a sandbox.
fn git_settings(environment: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let find = |name: &str| {
        let mut found = environment.iter().filter(|(it, _)| it == name);
        found.next().map(|(_, value)| value.clone())
    };
    let count = find("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse().ok());
    let count = count.filter(|count| *count <= MOST_GIT_SETTINGS);
    let mut settings: Vec<(OsString, OsString)> = (0..count.unwrap_or(0))
        .filter_map(|index| {
            let key = find(&format!("GIT_CONFIG_KEY_{index}"))?;
            Some((key, find(&format!("GIT_CONFIG_VALUE_{index}"))?))
        })
        .filter(|(key, value)| {
            let key = key.to_string_lossy().to_lowercase();
            !key.contains("extraheader")
                && !key.starts_with("credential.")
                && !has_password(key.as_bytes())
                && !has_password(value.as_bytes())
        })
        .collect();
    settings.extend(GIT_SETTINGS.map(|(key, value)| (key.into(), value.into())));
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(environment: &[(&str, &str)]) -> Vec<(String, String)> {
        let environment = environment
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let text = |text: OsString| text.into_string().unwrap();
        inside(environment, Path::new("/tmp"), NamedProxy::Outer)
            .into_iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect()
    }

    #[test]
    fn secrets_and_ways_out_are_taken_away() {
        for name in [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "npm_config__auth",
            "NPM_TOKEN",
            "DB_PASSWORD",
            "MYAPIKEY",
            "GHTOKEN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GITHUB_OAUTH",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "TMUX",
            "DOCKER_HOST",
            "VSCODE_IPC_HOOK_CLI",
            "XAUTHORITY",
            "POSSE_STORE",
            "GIT_CONFIG_PARAMETERS",
        ] {
            let left = names(&[(name, "value")]);
            assert!(!left.iter().any(|(it, _)| it == name), "{name}");
        }
        for value in ["postgres://me:secret@db/posse", "a https://u:p@host/ b"] {
            let left = names(&[("DATABASE_URL", value)]);
            assert!(!left.iter().any(|(it, _)| it == "DATABASE_URL"), "{value}");
        }
    }

    #[test]
    fn what_work_needs_stays() {
        for (name, value) in [
            ("PATH", "/usr/bin"),
            ("HOME", "/root"),
            ("GIT_AUTHOR_NAME", "A"),
            ("CARGO_HOME", "/c"),
            ("POSSE_CALL", "mark"),
            ("KEYBOARD", "us"),
            ("MONKEY", "see"),
            ("HTTP_PROXY", "http://127.0.0.1:3128/a:b@c"),
            ("LANG", "C.UTF-8"),
        ] {
            let left = names(&[(name, value)]);
            assert!(left.contains(&(name.into(), value.into())), "{name}");
        }
    }

    #[test]
    fn settings_for_git_are_added_to_those_that_are_there() {
        let left = names(&[
            ("GIT_CONFIG_COUNT", "3"),
            ("GIT_CONFIG_KEY_0", "a.b"),
            ("GIT_CONFIG_VALUE_0", "c"),
            ("GIT_CONFIG_KEY_1", "http.extraHeader"),
            ("GIT_CONFIG_VALUE_1", "Authorization: x"),
            ("GIT_CONFIG_KEY_2", "lost"),
        ]);
        let expected = [
            ("GIT_CONFIG_COUNT", "4"),
            ("GIT_CONFIG_KEY_0", "a.b"),
            ("GIT_CONFIG_VALUE_0", "c"),
            ("GIT_CONFIG_KEY_1", "safe.bareRepository"),
            ("GIT_CONFIG_VALUE_1", "explicit"),
            ("GIT_CONFIG_KEY_2", "core.fsmonitor"),
            ("GIT_CONFIG_VALUE_2", "false"),
            ("GIT_CONFIG_KEY_3", "gc.auto"),
            ("GIT_CONFIG_VALUE_3", "0"),
        ];
        let git = left
            .into_iter()
            .filter(|(name, _)| name.starts_with("GIT_CONFIG"));
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(git.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn temporary_files_go_to_its_own_directory() {
        let left = names(&[("TMPDIR", "/home/me/tmp"), ("POSSE_CONFINED", "0")]);
        let expected = [("TMPDIR", "/tmp"), ("TMP", "/tmp"), ("TEMP", "/tmp")];
        for (name, value) in expected {
            assert!(left.contains(&(name.into(), value.into())));
        }
        let confined: Vec<_> = left.iter().filter(|(it, _)| it == CONFINED).collect();
        assert_eq!(confined, [&(CONFINED.to_owned(), "1".to_owned())]);
        assert_eq!(left.iter().filter(|(it, _)| it == "TMPDIR").count(), 1);
    }
}
