//! Where programs are: the shell, and those that rules name.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use posse_port::tool::RuledPaths;

/// Files that are many programs, by the name that they are called by.
const MANY_PROGRAMS: [&str; 3] = ["busybox", "toybox", "coreutils"];

/// The directories that a command finds programs in.
#[derive(Debug)]
pub(super) struct SearchPath {
    directories: Vec<PathBuf>,
    /// The shell that runs every command.
    pub(super) shell: &'static str,
}

/// Files of the programs that rules are about.
pub(super) struct RuledPrograms {
    /// Those that are never run.
    pub(super) denied: Vec<PathBuf>,
    /// Those that are run when somebody has agreed.
    pub(super) asked: Vec<PathBuf>,
}

impl RuledPrograms {
    pub(super) fn contains(&self, path: &PathBuf) -> bool {
        self.denied.contains(path) || self.asked.contains(path)
    }
}

impl SearchPath {
    /// Returns the one of an environment. The shell is bash, or sh where there is no bash.
    pub(super) fn of(environment: &[(OsString, OsString)]) -> Self {
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let directories = path.map(|(_, path)| std::env::split_paths(path));
        let directories: Vec<PathBuf> = directories.into_iter().flatten().collect();
        let has_bash = directories.iter().any(|it| it.join("bash").is_file());
        let shell = if has_bash { "bash" } else { "sh" };
        Self { directories, shell }
    }

    /// Returns where the programs are that rules are about.
    pub(super) fn ruled(&self, rules: &RuledPaths) -> RuledPrograms {
        RuledPrograms {
            denied: self.files_of(&rules.denied_programs),
            asked: self.files_of(&rules.asked_programs),
        }
    }

    /// Returns where programs are, without links: not the shell, and not one that is many programs.
    fn files_of(&self, programs: &[String]) -> Vec<PathBuf> {
        let names = programs.iter().filter(|name| *name != self.shell);
        let found = names.flat_map(|name| self.directories.iter().map(move |it| it.join(name)));
        let mut files: Vec<PathBuf> = found
            .filter_map(|path| path.canonicalize().ok())
            .filter(|path| path.is_file())
            .filter(|path| !MANY_PROGRAMS.iter().any(|many| path.ends_with(many)))
            .collect();
        files.extend(self.other_names(&files));
        files.sort();
        files.dedup();
        files
    }

    /// Returns further names of files that have several.
    fn other_names(&self, files: &[PathBuf]) -> Vec<PathBuf> {
        let several = files.iter().filter_map(|file| file.metadata().ok());
        let several: Vec<_> = several
            .filter(|found| found.nlink() > 1)
            .map(|found| (found.dev(), found.ino()))
            .collect();
        if several.is_empty() {
            return Vec::new();
        }
        let real = self
            .directories
            .iter()
            .filter_map(|it| it.canonicalize().ok());
        let entries = real.flat_map(|it| std::fs::read_dir(it).into_iter().flatten().flatten());
        let same = entries.filter(|entry| {
            let found = entry.metadata();
            found.is_ok_and(|found| several.contains(&(found.dev(), found.ino())))
        });
        same.map(|entry| entry.path()).collect()
    }
}
