//! Which settings of a repository make git run nothing.

use std::fs;
use std::io;
use std::path::Path;

use crate::git_index::gitlinks;
use crate::layout::small_file;

/// Sections whose settings run nothing in the calls that posse makes: none fetches, sends, signs,
/// merges or opens an editor, and hooks are turned off.
const SECTIONS: [&str; 50] = [
    "advice",
    "am",
    "apply",
    "author",
    "blame",
    "branch",
    "checkout",
    "clean",
    "clone",
    "color",
    "column",
    "commit",
    "committer",
    "credential",
    "extensions",
    "feature",
    "fetch",
    "format",
    "gc",
    "gitflow",
    "github",
    "gpg",
    "grep",
    "gui",
    "http",
    "i18n",
    "index",
    "init",
    "log",
    "maintenance",
    "merge",
    "notes",
    "pack",
    "protocol",
    "pull",
    "push",
    "rebase",
    "receive",
    "remote",
    "rerere",
    "safe",
    "stash",
    "status",
    "submodule",
    "svn-remote",
    "tag",
    "transfer",
    "url",
    "user",
    "worktree",
];
/// Settings of the section `core` that run nothing, or that posse sets itself.
const CORE: [&str; 26] = [
    "abbrev",
    "attributesfile",
    "autocrlf",
    "bare",
    "bigfilethreshold",
    "checkstat",
    "compression",
    "eol",
    "excludesfile",
    "filemode",
    "fsmonitor",
    "hookspath",
    "ignorecase",
    "logallrefupdates",
    "precomposeunicode",
    "preloadindex",
    "quotepath",
    "repositoryformatversion",
    "safecrlf",
    "sharedrepository",
    "sparsecheckout",
    "sparsecheckoutcone",
    "symlinks",
    "trustctime",
    "untrackedcache",
    "worktree",
];
/// Settings of the section `diff` that run nothing.
const DIFF: [&str; 7] = [
    "algorithm",
    "colormoved",
    "context",
    "ignoresubmodules",
    "mnemonicprefix",
    "renamelimit",
    "renames",
];

/// Settings that a new repository has, by section. None of them makes git run a program, whoever
/// calls it.
const OF_NEW: [(&str, &[&str]); 6] = [
    (
        "core",
        &[
            "bare",
            "filemode",
            "ignorecase",
            "logallrefupdates",
            "precomposeunicode",
            "repositoryformatversion",
            "symlinks",
        ],
    ),
    (
        "extensions",
        &["objectformat", "partialclone", "refstorage"],
    ),
    ("branch.", &["merge", "rebase", "remote"]),
    (
        "remote.",
        &["fetch", "partialclonefilter", "promisor", "tagopt", "url"],
    ),
    ("submodule.", &["active", "url"]),
    ("user", &["email", "name"]),
];

/// Returns the first setting in a file of git's that may make it run a program in the calls that
/// posse makes. What is not known may, and so may what is not written plainly.
pub fn first_that_runs(settings: &str) -> Option<String> {
    first_unknown(settings, |section, key| match section {
        "core" => CORE.contains(&key),
        "diff" => DIFF.contains(&key),
        // Of a driver.
        "merge." => false,
        section => SECTIONS.contains(&section.trim_end_matches('.')),
    })
}

/// Returns true if git runs nothing of the repository around a directory while it only reads there.
/// That asks for a repository that is as new: without submodules, missing objects, and settings that
/// a new one does not have.
pub fn reads_run_nothing(directory: &Path) -> bool {
    let has = |path: &Path, name: &str| fs::symlink_metadata(path.join(name)).is_ok();
    for path in directory.ancestors() {
        let git = path.join(".git");
        if fs::symlink_metadata(&git).is_ok_and(|found| found.is_dir()) {
            let elsewhere = ["commondir", "config.worktree", "modules"];
            return !elsewhere.iter().any(|name| has(&git, name))
                && !has(path, ".gitmodules")
                && small_file(&git.join("config")).is_some_and(|it| is_plain(&it))
                && has_no_gitlinks(&git.join("index"));
        }
        // Git takes a directory with these for a repository, too.
        if has(path, "HEAD") || has(path, ".git") {
            return false;
        }
    }
    false
}

fn is_plain(settings: &[u8]) -> bool {
    let settings = String::from_utf8_lossy(settings);
    let fetches = ["partialclone", "promisor"];
    let lower = settings.to_ascii_lowercase();
    is_of_new(&settings) && !fetches.iter().any(|name| lower.contains(name))
}

/// Returns true if an index names no repository within; also if there is none yet.
fn has_no_gitlinks(index: &Path) -> bool {
    match fs::read(index) {
        Ok(index) => gitlinks(&index).is_some_and(|found| found.is_empty()),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Returns true if a settings file says no more than that of a new repository.
pub(crate) fn is_of_new(settings: &str) -> bool {
    let is_known = |section: &str, key: &str| {
        let mut of_new = OF_NEW.iter();
        of_new.any(|(known, keys)| *known == section && keys.contains(&key))
    };
    first_unknown(settings, is_known).is_none()
}

/// Returns the first setting that is not known, or not written plainly.
fn first_unknown(settings: &str, is_known: impl Fn(&str, &str) -> bool) -> Option<String> {
    let mut section = String::new();
    for line in settings.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('[') {
            match section_of(line) {
                Some(found) => section = found,
                None => return Some(line.to_owned()),
            }
            continue;
        }
        let key = line.split(['=', ' ', '\t']).next().unwrap_or_default();
        let key = key.to_ascii_lowercase();
        if !is_known(&section, &key) || line.ends_with('\\') {
            return Some(format!("{}.{key}", section.trim_end_matches('.')));
        }
    }
    None
}

/// Returns the section that a line begins, with a dot if it has a name of its own. None if there
/// is more on the line.
fn section_of(line: &str) -> Option<String> {
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    let (section, dot) = match inner.split_once(' ') {
        Some((section, name)) => {
            let name = name.trim().strip_prefix('"')?.strip_suffix('"')?;
            (section, (!name.contains(['"', '\\'])).then_some(".")?)
        }
        None => (inner, ""),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let section = Some(section).filter(|it| !it.is_empty() && it.chars().all(is_plain))?;
    Some(format!("{}{dot}", section.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_settings_run_nothing() {
        let usual = "# made by git\n[core]\n\trepositoryformatversion = 0\n\tfileMode = true\n\
                     \thooksPath = .husky/_\n[remote \"origin\"]\n\turl = git@example.com:a/b\n\
                     \tfetch = +refs/heads/*:refs/remotes/origin/*\n\n[branch \"main\"]\n\
                     \tremote = origin\n[user]\n  email = a@b\n[merge]\n  conflictstyle = diff3\n\
                     [diff]\n  renames = true\n";
        assert_eq!(first_that_runs(usual), None);
        assert_eq!(first_that_runs(""), None);
    }

    #[test]
    fn a_new_repository_says_little() {
        let new = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\
                   \turl = https://example.com/a\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                   [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";
        assert!(is_of_new(new));
        for more in [
            "[core]\n\tfsmonitor = x",
            "[core]\n\thooksPath = x",
            "[remote \"origin\"]\n\tuploadpack = x",
            "[gpg]\n\tprogram = x",
            "[branch]\n\tmerge = x",
        ] {
            assert!(!is_of_new(&format!("{new}{more}\n")), "{more}");
        }
    }

    #[test]
    fn reading_runs_nothing_in_a_repository_that_is_as_new() {
        let plain = "[core]\n\tbare = false\n";
        type Change = fn(&Path);
        let cases: [(Change, bool); 8] = [
            (|_| {}, true),
            (
                |top| fs::write(top.join(".git/index"), "odd").unwrap(),
                false,
            ),
            (|top| fs::write(top.join(".gitmodules"), "").unwrap(), false),
            (
                |top| fs::write(top.join(".git/commondir"), "..").unwrap(),
                false,
            ),
            (|top| fs::write(top.join("deep/HEAD"), "").unwrap(), false),
            (
                |top| fs::write(top.join("deep/.git"), "gitdir: x").unwrap(),
                false,
            ),
            (
                |top| fs::write(top.join(".git/config"), "[core]\n\tfsmonitor = ./x").unwrap(),
                false,
            ),
            (
                |top| {
                    let settings = "[remote \"origin\"]\n\tpromisor = true";
                    fs::write(top.join(".git/config"), settings).unwrap();
                },
                false,
            ),
        ];
        for (at, (change, expected)) in cases.into_iter().enumerate() {
            let top = tempfile::tempdir().unwrap();
            fs::create_dir_all(top.path().join(".git")).unwrap();
            fs::create_dir(top.path().join("deep")).unwrap();
            fs::write(top.path().join(".git/config"), plain).unwrap();
            change(top.path());
            assert_eq!(
                reads_run_nothing(&top.path().join("deep")),
                expected,
                "{at}"
            );
        }
        assert!(!reads_run_nothing(Path::new("/proc")));
    }

    #[test]
    fn what_may_run_a_program_is_found() {
        for (settings, found) in [
            ("[filter \"x\"]\n\tsmudge = ./x", "filter.smudge"),
            ("[FILTER \"x\"]\n\tclean=./x", "filter.clean"),
            ("[core]\n\tbare = false\n\tPager = ./x", "core.pager"),
            ("[core]\n\tsshCommand = ./x", "core.sshcommand"),
            ("[diff]\n\texternal = ./x", "diff.external"),
            ("[diff \"x\"]\n\ttextconv = ./x", "diff.textconv"),
            ("[merge \"x\"]\n\tdriver = ./x", "merge.driver"),
            ("[include]\n\tpath = ../x", "include.path"),
            ("[includeIf \"gitdir:/\"]\n\tpath = x", "includeif.path"),
            ("[alias]\n\tst = !x", "alias.st"),
            ("[unknown]\n\tkey = 1", "unknown.key"),
            // Another section could begin where this one is taken to go on.
            ("[user]\n\tname = a\\\n[filter \"x\"]", "user.name"),
            ("[user] name = a", "[user] name = a"),
            ("[filter.x]\n\tclean = x", "[filter.x]"),
            ("[user \"a\\\"]\"]\n", "[user \"a\\\"]\"]"),
            ("key = 1", ".key"),
        ] {
            assert_eq!(
                first_that_runs(settings).as_deref(),
                Some(found),
                "{settings}"
            );
        }
    }
}
