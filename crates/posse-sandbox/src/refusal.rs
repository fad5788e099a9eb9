//! What a sandbox has refused, read from what a command printed: only lines that have the kernel's
//! own words and a path that the plan really refuses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::layout::plain;
use crate::plan::{MountKind, Plan};

/// How many lines before an error may name its path, as in an error with causes.
const LINES_BEFORE: usize = 4;
/// How many refused paths are told at most.
const MOST: usize = 5;

/// Words of the kernel about a file that cannot be written.
const UNWRITABLE: [&str; 4] = [
    "Read-only file system",
    "read-only file system",
    // A mount that would be renamed or replaced.
    "Device or resource busy",
    "EROFS",
];
/// What node says when it cannot make a directory and those above it. In a directory that is there,
/// that can only be a refusal.
const UNMADE: &str = "ENOENT: no such file or directory, mkdir ";
/// Words of the kernel about a file that cannot be opened.
const UNREADABLE: [&str; 2] = ["Permission denied", "permission denied"];

/// Words of programs about a name or a host that cannot be reached. Where there is no network at
/// all, they are true of every host.
const UNREACHABLE: [&str; 8] = [
    "Temporary failure in name resolution",
    "Could not resolve host",
    "failed to lookup address information",
    "Network is unreachable",
    "network is unreachable",
    "EAI_AGAIN",
    "ENETUNREACH",
    "dns error",
];

/// What a command was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Paths that it would have written.
    pub write: Vec<PathBuf>,
    /// Paths that it would have read.
    pub read: Vec<PathBuf>,
    /// Whether it would have reached a host.
    pub network: bool,
}

impl Refusals {
    /// Finds out what a command that ran in `directory` was refused, from what it printed. Paths that
    /// are not quoted count only if it has `failed`.
    pub fn in_output(output: &str, directory: &Path, plan: &Plan, failed: bool) -> Self {
        let lines: Vec<&str> = output.lines().collect();
        let (mut write, mut read) = (BTreeSet::new(), BTreeSet::new());
        for (at, line) in lines.iter().enumerate() {
            let says = |words: &[&str]| words.iter().any(|word| line.contains(word));
            let (is_refused, found): (&dyn Fn(&Path) -> bool, _) = if says(&UNWRITABLE) {
                (&|path: &Path| refuses_writing(plan, path), &mut write)
            } else if line.contains(UNMADE) {
                (&|path: &Path| refuses_making(plan, path), &mut write)
            } else if says(&UNREADABLE) {
                (&|path: &Path| hides(plan, path), &mut read)
            } else {
                continue;
            };
            let before = lines.get(at.saturating_sub(LINES_BEFORE)..at);
            let before = before.unwrap_or_default().iter().rev();
            let mut named = named_in(line, failed);
            if failed {
                named.extend(before.flat_map(|line| absolute_in(line)));
            }
            let paths = named.iter().map(|name| plain(&directory.join(name)));
            found.extend(paths.filter(|path| is_refused(path)).take(1));
        }
        let says_unreachable = UNREACHABLE.iter().any(|words| output.contains(words));
        Self {
            write: write.into_iter().take(MOST).collect(),
            read: read.into_iter().take(MOST).collect(),
            network: says_unreachable && !plan.shares_network(),
        }
    }
}

/// Returns what a line with an error could be about, the likeliest first: what is quoted, else the
/// word before the error, if a colon stands between them.
fn named_in(line: &str, failed: bool) -> Vec<&str> {
    let errors = || UNWRITABLE.iter().chain(&UNREADABLE);
    let mut named: Vec<&str> = quoted(line)
        .filter(|text| !errors().any(|error| text.contains(error)))
        .collect();
    named.reverse();
    let before = errors().filter_map(|words| line.split_once(words));
    let before = before.filter_map(|(before, _)| before.trim_end().strip_suffix(':'));
    let subject = before.filter_map(|before| before.rsplit([' ', ':']).next());
    named.extend(subject.filter(|name| failed && !name.is_empty()));
    named
}

/// Returns the absolute paths in a line: what is quoted, and words.
fn absolute_in(line: &str) -> Vec<&str> {
    let words = line.split_whitespace();
    let words = words.map(|word| word.trim_end_matches([',', ':', ';', '.']));
    let all = quoted(line).chain(words);
    all.filter(|it| it.len() > 1 && it.starts_with('/'))
        .collect()
}

/// Returns the texts in quotation marks of any kind.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    let pairs = [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('“', '”')];
    pairs.into_iter().flat_map(move |(open, close)| {
        let mut rest = line;
        std::iter::from_fn(move || {
            let (_, begun) = rest.split_once(open)?;
            let (text, after) = begun.split_once(close)?;
            rest = after;
            Some(text)
        })
        .filter(|text| !text.is_empty())
    })
}

/// Returns true if the plan, and nothing else, keeps a path from being written.
fn refuses_writing(plan: &Plan, path: &Path) -> bool {
    if plan.is_writable(path) {
        return false;
    }
    let mut above = path.ancestors();
    let existing = above.find_map(|path| statvfs(path).ok());
    existing.is_some_and(|it| !it.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Returns true if a directory could be made but for the plan.
fn refuses_making(plan: &Plan, path: &Path) -> bool {
    path.parent().is_some_and(Path::is_dir) && refuses_writing(plan, path)
}

fn hides(plan: &Plan, path: &Path) -> bool {
    let mut above = plan.mounts.iter().rev();
    let mount = above.find(|mount| path.starts_with(&mount.path));
    mount.is_some_and(|mount| mount.kind == MountKind::Hide)
}

#[cfg(test)]
mod tests {
    use posse_port::confinement::Confinement;

    use super::*;
    use crate::surroundings::Surroundings;
    use crate::tier::KernelSupport;

    fn plan(root: &Path, hidden: &Path) -> Plan {
        let confinement = Confinement {
            write: vec![root.join("w")],
            keep: vec![root.join("w/.git")],
            hide: vec![hidden.to_owned()],
            ..Confinement::default()
        };
        let support = KernelSupport {
            namespaces: true,
            landlock: 7,
            seccomp: true,
        };
        let surroundings = Surroundings::look(&confinement, support, root, &[]);
        Plan::new(&confinement, &surroundings).unwrap()
    }

    #[test]
    fn what_programs_print_is_read() {
        let root = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("w/.git")).unwrap();
        std::fs::write(root.join("secret"), "").unwrap();
        let plan = plan(&root, &root.join("secret"));
        let at = |name: &str| root.join(name).display().to_string();
        let cases = [
            (
                "bash: line 1: ../new: Read-only file system".into(),
                vec!["new"],
                vec![],
            ),
            (
                "touch: cannot touch '../a b': Read-only file system".into(),
                vec!["a b"],
                vec![],
            ),
            (
                "mkdir: cannot create directory ‘../d’: Read-only file system".into(),
                vec!["d"],
                vec![],
            ),
            (
                format!("OSError: [Errno 30] Read-only file system: '{}'", at("p")),
                vec!["p"],
                vec![],
            ),
            (
                format!("Error: EROFS: read-only file system, open '{}'", at("n")),
                vec!["n"],
                vec![],
            ),
            (
                format!(
                    "error: failed to create directory `{}`\n\nCaused by:\n  Read-only file system (os error 30)",
                    at("target")
                ),
                vec!["target"],
                vec![],
            ),
            (
                format!(
                    "error: failed to write {}\n\nCaused by:\n  Read-only file system (os error 30)",
                    at("Cargo.lock")
                ),
                vec!["Cargo.lock"],
                vec![],
            ),
            (
                "/usr/bin/ld: cannot open output file ../a.out: Read-only file system".into(),
                vec!["a.out"],
                vec![],
            ),
            (
                "error: could not write config file .git/config: Device or resource busy".into(),
                vec!["w/.git/config"],
                vec![],
            ),
            (
                format!(
                    "npm error ENOENT: no such file or directory, mkdir '{}'",
                    at("node_modules")
                ),
                vec!["node_modules"],
                vec![],
            ),
            (
                format!(
                    "ENOENT: no such file or directory, mkdir '{}'",
                    at("none/node_modules")
                ),
                vec![],
                vec![],
            ),
            (
                format!("cat: {}: Permission denied", at("secret")),
                vec![],
                vec!["secret"],
            ),
            // A word alone, a path that may be written, and one that is not hidden.
            ("Read-only file system".into(), vec![], vec![]),
            (
                "touch: cannot touch 'x': Read-only file system".into(),
                vec![],
                vec![],
            ),
            ("cat: ../other: Permission denied".into(), vec![], vec![]),
            (
                "tests of the Read-only file system pass".into(),
                vec![],
                vec![],
            ),
        ];
        let offline = "curl: (6) Could not resolve host: example.com";
        assert!(Refusals::in_output(offline, &root.join("w"), &plan, true).network);
        for (output, write, read) in cases {
            let paths = |names: Vec<&str>| names.into_iter().map(|it| root.join(it)).collect();
            let expected = Refusals {
                write: paths(write),
                read: paths(read),
                network: false,
            };
            let found = Refusals::in_output(&output, &root.join("w"), &plan, true);
            assert_eq!(found, expected, "{output}");
        }
    }
}
