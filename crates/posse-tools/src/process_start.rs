//! A command as a shell gets it, and as it is sent to the process that starts the shell.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use posse_sandbox::ConfinedJob;

use crate::detached::SECRETS;
use crate::process_table::CALL_MARK;

/// Enters the cgroup whose door is `$2`, if it can, and becomes bash, or sh where there is no bash.
///
/// Adds a setting for git to those in the environment: git uses a bare repository only if it is
/// named. A clone can contain a directory that looks like one, whose settings run programs.
const BASH: &str = r#"case ${GIT_CONFIG_COUNT:-x} in *[!0-9]*) GIT_CONFIG_COUNT=0;; esac
export "GIT_CONFIG_KEY_$GIT_CONFIG_COUNT=safe.bareRepository" "GIT_CONFIG_VALUE_$GIT_CONFIG_COUNT=explicit"
export GIT_CONFIG_COUNT=$((GIT_CONFIG_COUNT + 1))
[ -z "$2" ] || { echo 0 >"$2"; } 2>/dev/null
command -v bash >/dev/null 2>&1 && exec bash -c "$1"; exec sh -c "$1""#;

/// What a shell is to run, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProcessStart {
    /// Outside, like a command of the person's own.
    Outside(OutsideProcess),
    /// In a sandbox.
    Within(Box<ConfinedJob>),
}

/// What a message begins with.
const OUTSIDE: u8 = 0;
const WITHIN: u8 = 1;

impl ProcessStart {
    /// Returns the directory that it starts in.
    pub(crate) fn cwd(&self) -> &Path {
        match self {
            Self::Outside(command) => &command.cwd,
            Self::Within(confined) => &confined.job.directory,
        }
    }

    /// Returns it as a message.
    pub(crate) fn to_message(&self) -> io::Result<Vec<u8>> {
        let (kind, message) = match self {
            Self::Outside(command) => (OUTSIDE, command.to_message()?),
            Self::Within(confined) => (WITHIN, confined.to_bytes()),
        };
        Ok([vec![kind], message].concat())
    }

    /// Returns what a message says.
    pub(crate) fn from_message(message: &[u8]) -> Option<Self> {
        let (kind, message) = message.split_first()?;
        match *kind {
            OUTSIDE => OutsideProcess::from_message(message).map(Self::Outside),
            WITHIN => {
                let confined = ConfinedJob::from_bytes(message).ok()?;
                Some(Self::Within(Box::new(confined)))
            }
            _ => None,
        }
    }
}

/// What a shell outside is to run, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutsideProcess {
    pub(crate) command: OsString,
    pub(crate) cwd: PathBuf,
    /// What its processes are found by.
    pub(crate) marker: OsString,
    /// Variables of posse's environment that it is not to have, beside posse's secrets.
    pub(crate) without: Vec<OsString>,
    /// Variables that it is to have beside those.
    pub(crate) variables: Vec<(OsString, OsString)>,
}

impl OutsideProcess {
    /// Sets what `sh` runs, where, and its environment and input. `door` is that of a cgroup.
    pub(crate) fn prepare(&self, command: &mut Command, door: Option<&Path>) {
        command
            .args(["-c", BASH, "sh"])
            .arg(&self.command)
            .args(door)
            .current_dir(&self.cwd)
            .stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
            .env(CALL_MARK, &self.marker)
            .env("GIT_TERMINAL_PROMPT", "0");
        for name in SECRETS {
            command.env_remove(name);
        }
        for name in &self.without {
            command.env_remove(name);
        }
    }

    /// Returns it as a message.
    fn to_message(&self) -> io::Result<Vec<u8>> {
        let fixed = [&self.marker, self.cwd.as_os_str(), &self.command];
        let without = self.without.iter().map(OsString::as_os_str);
        let variables: Vec<OsString> = self.variables.iter().map(pair).collect();
        let variables = variables.iter().map(OsString::as_os_str);
        let fields = fixed.into_iter().chain(without).chain(variables);
        let fields: Vec<&[u8]> = fields.map(OsStr::as_bytes).collect();
        // No program can be given one.
        if fields.iter().any(|field| field.contains(&0)) {
            let what = "the command contains a NUL character";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        Ok(fields.join(&0))
    }

    /// Returns the command in a message.
    fn from_message(message: &[u8]) -> Option<Self> {
        let mut fields = message
            .split(|byte| *byte == 0)
            .map(|field| OsString::from_vec(field.to_vec()));
        let (marker, cwd, command) = (fields.next()?, fields.next()?.into(), fields.next()?);
        let mut read = Self {
            command,
            cwd,
            marker,
            without: Vec::new(),
            variables: Vec::new(),
        };
        for field in fields {
            match memchr::memchr(b'=', field.as_bytes()) {
                Some(at) => {
                    let (name, value) = field.as_bytes().split_at(at);
                    let value = OsStr::from_bytes(&value[1..]).to_owned();
                    read.variables
                        .push((OsStr::from_bytes(name).to_owned(), value));
                }
                None => read.without.push(field),
            }
        }
        Some(read)
    }
}

/// Returns a variable as one text.
fn pair((name, value): &(OsString, OsString)) -> OsString {
    let mut pair = name.clone();
    pair.push("=");
    pair.push(value);
    pair
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(command: &str) -> OutsideProcess {
        OutsideProcess {
            command: command.into(),
            cwd: "/".into(),
            marker: "mark".into(),
            without: Vec::new(),
            variables: Vec::new(),
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "nothing is started")]
    fn secrets_do_not_go_along() {
        let mut command = Command::new("sh");
        job("env").prepare(&mut command, None);
        let changes: Vec<_> = command.get_envs().collect();
        for secret in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "OPENAI_API_KEY",
        ] {
            assert!(changes.contains(&(secret.as_ref(), None)), "{secret}");
        }
        assert!(changes.contains(&("POSSE_CALL".as_ref(), Some("mark".as_ref()))));
        assert!(changes.contains(&("GIT_TERMINAL_PROMPT".as_ref(), Some("0".as_ref()))));
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "it has no children that could stay"
    )]
    fn settings_that_the_environment_has_for_git_are_kept() {
        for count in [Some("1"), None, Some("odd")] {
            let mut command = Command::new("sh");
            job("git config --get-regexp 'a[.]b|safe'").prepare(&mut command, None);
            command
                .env("GIT_CONFIG_KEY_0", "a.b")
                .env("GIT_CONFIG_VALUE_0", "c");
            command.env_remove("GIT_CONFIG_COUNT");
            command.envs(count.map(|count| ("GIT_CONFIG_COUNT", count)));
            let printed = command.output().unwrap().stdout;
            let printed = String::from_utf8(printed).unwrap();
            let kept = printed.starts_with("a.b c\n");
            assert_eq!(kept, count == Some("1"), "{printed}");
            assert!(
                printed.ends_with("safe.barerepository explicit\n"),
                "{printed}"
            );
        }
    }

    #[test]
    fn a_message_brings_all_of_it() {
        let mut sent = OutsideProcess {
            without: vec!["GIT_DIR".into(), "GIT_WORK_TREE".into()],
            variables: vec![("A".into(), "b=c".into()), ("EMPTY".into(), "".into())],
            ..job("echo é\necho \"x\"")
        };
        for without in [2, 0] {
            sent.without.truncate(without);
            let message = sent.to_message().unwrap();
            assert_eq!(OutsideProcess::from_message(&message), Some(sent.clone()));
        }
        assert!(job("a\0b").to_message().is_err());
        assert_eq!(OutsideProcess::from_message(b"mark\0/"), None);
    }
}
