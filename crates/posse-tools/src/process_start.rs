//! What a process runs, and how that is sent to the watchdog, which starts it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use posse_sandbox::ConfinedJob;

use crate::detached::SECRETS;
use crate::process_table::CALL_MARK;

/// What tells git of a repository, whatever directory it is started in: a hook that started posse has it.
pub(crate) const OF_A_REPOSITORY: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
];

/// Enters the cgroup whose door is `$2`, if it can, and becomes bash, or sh where there is no bash.
///
/// Adds a setting for git to those in the environment: git uses a bare repository only if it is
/// named. A clone can contain a directory that looks like one, whose settings run programs.
const BASH: &str = r#"case ${GIT_CONFIG_COUNT:-x} in *[!0-9]*) GIT_CONFIG_COUNT=0;; esac
export "GIT_CONFIG_KEY_$GIT_CONFIG_COUNT=safe.bareRepository" "GIT_CONFIG_VALUE_$GIT_CONFIG_COUNT=explicit"
export GIT_CONFIG_COUNT=$((GIT_CONFIG_COUNT + 1))
[ -z "$2" ] || { echo 0 >"$2"; } 2>/dev/null
command -v bash >/dev/null 2>&1 && exec bash -c "$1"; exec sh -c "$1""#;

/// Enters the cgroup whose door is `$1`, if it can, and becomes the program that the others name.
const PROGRAM: &str = r#"[ -z "$1" ] || { echo 0 >"$1"; } 2>/dev/null
shift; exec "$@""#;

/// What a process is to run, and where.
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

/// What a process outside is to run, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutsideProcess {
    pub(crate) program: OutsideProgram,
    pub(crate) cwd: PathBuf,
    /// What its processes are found by.
    pub(crate) marker: OsString,
    /// Variables of posse's environment that it is not to have, beside posse's secrets.
    pub(crate) without: Vec<OsString>,
    /// Variables that it is to have beside those.
    pub(crate) variables: Vec<(OsString, OsString)>,
}

/// A program outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutsideProgram {
    /// A shell with a command of an agent.
    Shell(OsString),
    /// A program and its arguments.
    Program(Vec<OsString>),
}

/// The word for a shell in a message. Of any other program the number of words is sent.
const SHELL: &[u8] = b"shell";

impl OutsideProcess {
    /// Sets what `sh` runs, where, and its environment and input. `door` is that of a cgroup.
    pub(crate) fn prepare(&self, command: &mut Command, door: Option<&Path>) {
        match &self.program {
            OutsideProgram::Shell(text) => {
                command.args(["-c", BASH, "sh"]).arg(text).args(door);
            }
            OutsideProgram::Program(words) => match &words[..] {
                // It need not become another shell.
                [sh, flag, text] if sh == "sh" && flag == "-c" => {
                    command.arg("-c").arg(entering(door, text));
                }
                words => {
                    let door = door.map_or(OsStr::new(""), Path::as_os_str);
                    command.args(["-c", PROGRAM, "sh"]).arg(door).args(words);
                }
            },
        }
        command.current_dir(&self.cwd).stdin(Stdio::null());
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
        let (kind, words) = match &self.program {
            OutsideProgram::Shell(text) => (SHELL.to_vec(), std::slice::from_ref(text)),
            OutsideProgram::Program(words) => {
                (words.len().to_string().into_bytes(), words.as_slice())
            }
        };
        let fixed = [
            self.marker.as_bytes(),
            self.cwd.as_os_str().as_bytes(),
            &kind,
        ];
        let without = self.without.iter().map(OsString::as_os_str);
        let variables: Vec<OsString> = self.variables.iter().map(pair).collect();
        let variables = variables.iter().map(OsString::as_os_str);
        let words = words.iter().map(OsString::as_os_str);
        let more = words.chain(without).chain(variables);
        let fields = fixed.into_iter().chain(more.map(OsStr::as_bytes));
        let fields: Vec<&[u8]> = fields.collect();
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
        let (marker, cwd, kind) = (fields.next()?, fields.next()?.into(), fields.next()?);
        let program = match kind.as_bytes() {
            SHELL => OutsideProgram::Shell(fields.next()?),
            _ => {
                let count: usize = kind.to_str()?.parse().ok()?;
                let words: Vec<OsString> = fields.by_ref().take(count).collect();
                OutsideProgram::Program(Some(words).filter(|words| words.len() == count)?)
            }
        };
        let mut read = Self {
            program,
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

/// Returns a text for `sh` that enters the cgroup with this door first, if it can. Its lines have the
/// numbers that they have without that.
fn entering(door: Option<&Path>, text: &OsStr) -> OsString {
    let Some(door) = door else {
        return text.to_owned();
    };
    let door = door.as_os_str().as_bytes();
    let quoted: Vec<&[u8]> = door.split(|byte| *byte == b'\'').collect();
    let parts: [&[u8]; 4] = [
        b"{ echo 0 >'",
        &quoted.join(&br"'\''"[..]),
        b"'; } 2>/dev/null; ",
        text.as_bytes(),
    ];
    OsString::from_vec(parts.concat())
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
            program: OutsideProgram::Shell(command.into()),
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
    fn a_program_gets_its_words_as_they_are_and_enters_the_cgroup() {
        let door = PathBuf::from(format!("/tmp/posse-door-{}", std::process::id()));
        let words = ["printf", "%s.", "a b", "", "$HOME"].map(OsString::from);
        for known in [Some(door.as_path()), None] {
            let mut command = Command::new("sh");
            let mut process = job("");
            process.program = OutsideProgram::Program(words.to_vec());
            process.prepare(&mut command, known);
            let ended = command.output().unwrap();
            assert_eq!(String::from_utf8(ended.stdout).unwrap(), "a b..$HOME.");
        }
        assert_eq!(std::fs::read_to_string(&door).unwrap(), "0\n");
        std::fs::remove_file(door).unwrap();
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "it has no children that could stay"
    )]
    fn a_text_for_sh_stays_as_it_is_and_enters_the_cgroup() {
        let door = PathBuf::from(format!("/tmp/posse-door's-{}", std::process::id()));
        let script = "printf '%s.' \"$0\" \"$#\" \"it's\"\nno-such-program 2>&1";
        let run = |door: Option<&Path>| {
            let mut command = Command::new("sh");
            let mut process = job("");
            let words = ["sh", "-c", script].map(OsString::from);
            process.program = OutsideProgram::Program(words.to_vec());
            process.prepare(&mut command, door);
            let ended = command.output().unwrap();
            (
                String::from_utf8(ended.stdout).unwrap(),
                ended.status.code(),
            )
        };
        let (printed, code) = run(None);
        let is_second = printed.contains("2: no-such-program");
        assert!(printed.starts_with("sh.0.it's.") && is_second, "{printed}");
        assert_eq!(code, Some(127));
        assert_eq!(run(Some(&door)), (printed.clone(), code));
        assert_eq!(std::fs::read_to_string(&door).unwrap(), "0\n");
        assert_eq!(run(Some(Path::new("/nowhere/door"))), (printed, code));
        std::fs::remove_file(door).unwrap();
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
        let words = ["jq", "", "a=b", "shell"].map(OsString::from);
        sent.program = OutsideProgram::Program(words.to_vec());
        let message = sent.to_message().unwrap();
        assert_eq!(OutsideProcess::from_message(&message), Some(sent));
        assert_eq!(OutsideProcess::from_message(b"mark\0/\x003\0jq\0a"), None);
        assert!(job("a\0b").to_message().is_err());
        assert_eq!(OutsideProcess::from_message(b"mark\0/"), None);
    }
}
