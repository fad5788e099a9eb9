//! Finds out whether the programs of hooks are there, without running anything.

use std::path::{Path, PathBuf};

use posse_runtime::hook::{Hook, HookAction, HookProgram};
use rustix::fs::{Access, access};

use super::environment;
use super::search_paths::SearchPaths;

/// Words with which a line can begin that no file is needed for.
const OF_SHELL: [&str; 37] = [
    "!", ".", ":", "[", "[[", "alias", "builtin", "case", "cd", "command", "declare", "echo",
    "eval", "exec", "exit", "export", "false", "for", "function", "if", "local", "printf", "pwd",
    "read", "return", "set", "shift", "source", "test", "time", "trap", "true", "ulimit", "umask",
    "until", "while", "{",
];

/// Why a program cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MissingProgram {
    /// A path leads nowhere.
    #[error("{} does not exist", .0.display())]
    File(PathBuf),
    /// A file that is no program.
    #[error("{} is not executable", .0.display())]
    NotExecutable(PathBuf),
    /// No directory of `PATH` has it.
    #[error("there is no program `{0}` in PATH")]
    Name(String),
}

/// Where programs are looked for.
#[derive(Clone, Debug)]
pub(crate) struct ProgramSearch {
    /// The directories of `PATH`.
    directories: Vec<PathBuf>,
    /// Where hooks run, and where the session was started.
    directory: PathBuf,
    home: Option<PathBuf>,
}

impl ProgramSearch {
    /// Looks as a hook does that runs here.
    pub(crate) fn new(places: &SearchPaths) -> Self {
        let path = environment::variable("PATH").unwrap_or_default();
        Self {
            directories: std::env::split_paths(&path).collect(),
            directory: places.cwd.clone(),
            home: places.home.clone(),
        }
    }

    /// Returns why the program of a hook cannot be started; none if it can, or if that cannot be
    /// known without running it.
    pub(crate) fn missing(&self, hook: &Hook) -> Option<MissingProgram> {
        let HookAction::Program { program, .. } = &hook.action else {
            return None;
        };
        let word = match program {
            HookProgram::Line { line, .. } => {
                first_word(line, &|name| self.variable(name)).filter(|word| !is_of_shell(word))?
            }
            HookProgram::Words(words) => self.replaced(words.first()?),
        };
        self.find(&word)
    }

    fn find(&self, word: &str) -> Option<MissingProgram> {
        if !word.contains('/') {
            let mut files = self
                .directories
                .iter()
                .map(|directory| directory.join(word));
            let is_there = files.any(|file| is_executable(&file));
            return (!is_there).then(|| MissingProgram::Name(word.to_owned()));
        }
        let path = match (word.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.directory.join(word.strip_prefix("./").unwrap_or(word)),
        };
        match () {
            () if is_executable(&path) => None,
            () if path.is_file() => Some(MissingProgram::NotExecutable(path)),
            () => Some(MissingProgram::File(path)),
        }
    }

    /// Returns the value of a variable that is known before a hook runs.
    fn variable(&self, name: &str) -> Option<String> {
        let path = match name {
            "CLAUDE_PROJECT_DIR" | "PWD" => &self.directory,
            "HOME" => self.home.as_ref()?,
            _ => return None,
        };
        Some(path.to_str()?.to_owned())
    }

    /// Returns a word with its placeholders replaced.
    fn replaced(&self, word: &str) -> String {
        let project = self.directory.to_string_lossy();
        word.replace("${CLAUDE_PROJECT_DIR}", &project)
    }
}

fn is_of_shell(word: &str) -> bool {
    OF_SHELL.contains(&word)
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// Returns the word of a shell's line that names the program. None if only the shell knows it.
fn first_word(line: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut rest = line.trim_start();
    loop {
        let (word, after) = one_word(rest, variable)?;
        if !is_assignment(&rest[..rest.len() - after.len()]) {
            return Some(word).filter(|word| !word.is_empty());
        }
        rest = after.trim_start();
    }
}

/// Returns true if a word, as it is written, sets a variable.
fn is_assignment(written: &str) -> bool {
    written.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Returns the first word with its quotes taken away, and what follows it.
fn one_word<'a>(
    line: &'a str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<(String, &'a str)> {
    let mut word = String::new();
    let mut rest = line;
    let mut is_quoted = false;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '\'' if !is_quoted => {
                let (inside, after) = after.split_once('\'')?;
                word.push_str(inside);
                after
            }
            '"' => {
                is_quoted = !is_quoted;
                after
            }
            '\\' => {
                let next = after.chars().next()?;
                word.push(next);
                &after[next.len_utf8()..]
            }
            '$' => {
                let (name, after) = variable_name(after)?;
                word.push_str(&variable(name)?);
                after
            }
            '`' => return None,
            c if is_quoted => {
                word.push(c);
                after
            }
            '*' | '?' | '(' | '<' | '>' => return None,
            c if c.is_whitespace() || matches!(c, ';' | '|' | '&' | ')') => break,
            c => {
                word.push(c);
                after
            }
        };
    }
    (!is_quoted).then_some((word, rest))
}

/// Returns the name of the variable that begins behind a `$`, and what follows it.
fn variable_name(text: &str) -> Option<(&str, &str)> {
    if let Some(inside) = text.strip_prefix('{') {
        return inside.split_once('}');
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::settings::tests::Disk;

    #[test]
    fn the_first_word_is_found_as_a_shell_would() {
        let variable = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(first_word(line, &variable).as_deref(), expected, "{line}");
        };
        check("jq -r .tool_name", Some("jq"));
        check("  ./guard.sh; true", Some("./guard.sh"));
        check("A=1 B='x y' jq", Some("jq"));
        check("\"$HOME\"/bin/x y", Some("/h/bin/x"));
        check("\"${HOME}/a b/x\" y", Some("/h/a b/x"));
        check("'a b'/c", Some("a b/c"));
        check("a\\ b", Some("a b"));
        check("cat|jq", Some("cat"));
        // Only a shell knows these.
        for line in [
            "$TOOL x",
            "`which jq`",
            "$(which jq)",
            "(cd x)",
            "<in cat",
            "./*.sh",
            "\"a",
            "",
        ] {
            check(line, None);
        }
    }

    // proves HK-08 (part: missing programs)
    #[test]
    fn a_program_that_is_missing_is_told_from_one_that_is_there() {
        let disk = Disk::new();
        disk.write("repo/sub/guard", "#!/bin/sh\n");
        disk.write("repo/sub/bin/tool", "#!/bin/sh\n");
        let tool = disk.path("repo/sub/bin/tool");
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        let search = ProgramSearch {
            directories: vec![disk.path("repo/sub/bin")],
            ..ProgramSearch::new(&disk.places)
        };
        let check = |word: &str, expected: Option<MissingProgram>| {
            assert_eq!(search.find(word), expected, "{word}");
        };
        check("tool", None);
        check("bin/tool", None);
        check("jq", Some(MissingProgram::Name("jq".into())));
        let gone = search.directory.join("gone");
        check("./gone", Some(MissingProgram::File(gone)));
        let guard = search.replaced("${CLAUDE_PROJECT_DIR}/guard");
        check(
            &guard,
            Some(MissingProgram::NotExecutable(guard.clone().into())),
        );
        assert!(is_of_shell("if") && !is_of_shell("jq"));
    }
}
