//! Programs that a repository's own settings have posse's git run: they are held as commands are.

use std::fs;
use std::path::PathBuf;

use crate::binary::{Project, stderr, stdout};
use crate::worktrees;

/// A repository with a filter that leaves marks wherever it can.
struct Filtered {
    project: Project,
    out: PathBuf,
}

impl Filtered {
    /// The filter is a script of the checkout: letters are small in commits and capitals in files.
    fn new(name: &str) -> Self {
        let project = worktrees::repository_with(name, worktrees::ISOLATED);
        let out = Project::place(name).join("out");
        fs::create_dir_all(&out).unwrap();
        let script = project.file("filter.sh");
        let marks = [
            out.join("MARK"),
            project.file("../home/MARK"),
            project.file(".git/hooks/MARK"),
        ];
        let marks = marks.map(|mark| format!("echo x >>{}\n", mark.display()));
        let case = "case $1 in smudge) tr a-z A-Z;; clean) tr A-Z a-z;; esac\n";
        fs::write(&script, format!("#!/bin/sh\n{}{case}", marks.concat())).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&script, mode).unwrap();
        fs::write(project.file(".gitattributes"), "*.txt filter=case\n").unwrap();
        worktrees::commit(&project.file("."));
        for word in ["smudge", "clean"] {
            let key = format!("filter.case.{word}");
            let program = format!("{} {word}", script.display());
            worktrees::git(&project.file("."), &["config", &key, &program]);
        }
        fs::write(project.file("b.txt"), "NEW\n").unwrap();
        Self { project, out }
    }

    /// Has an agent work in a worktree that uncommitted work goes to, and looks at that. Returns
    /// what was told.
    fn work(&self, sandbox: &str) -> String {
        let settings = r#"{"agents": {"worktree": {"dirty": "carry"}}}"#;
        let mode = ["--permission-mode", "acceptEdits"];
        let work = [&["-p", "go", "--settings", settings][..], &mode].concat();
        let told = [&work[..], &["worktrees", "list"]].map(|arguments| {
            let mut posse = self.project.posse(arguments);
            let output = posse.env("POSSE_SANDBOX", sandbox).output().unwrap();
            format!("{}{}", stdout(&output), stderr(&output))
        });
        told.concat()
    }

    /// Returns the marks that were left.
    fn marks(&self) -> Vec<PathBuf> {
        let places = [
            self.out.join("MARK"),
            self.project.file("../home/MARK"),
            self.project.file(".git/hooks/MARK"),
        ];
        places.into_iter().filter(|it| it.exists()).collect()
    }

    /// Returns what files of a name in worktrees contain.
    fn in_worktrees(&self, name: &str) -> Vec<String> {
        let list = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
        let roots = list(self.project.file("../home/worktrees"));
        let trees = roots.flat_map(|root| list(root.path()));
        let files = trees.filter_map(|tree| fs::read_to_string(tree.path().join(name)).ok());
        files.collect()
    }
}

// proves PE-14 (part: git)
#[test]
fn a_filter_of_a_repository_works_and_reaches_nothing_else() {
    let filtered = Filtered::new("git-filter");
    let told = filtered.work("auto");
    assert!(
        told.contains("It is done.") && told.contains("new.txt"),
        "{told}"
    );
    assert_eq!(filtered.in_worktrees("a.txt"), ["ONE\n"], "{told}");
    assert_eq!(filtered.in_worktrees("b.txt"), ["NEW\n"], "{told}");
    assert!(filtered.marks().is_empty(), "{:?}", filtered.marks());
    let held = filtered.project.file("../home/worktrees/.held");
    assert_eq!(
        fs::read_dir(held).unwrap().count(),
        0,
        "nothing is left behind"
    );
}

/// Else the test above would prove nothing.
#[test]
fn without_a_sandbox_the_filter_reaches_everything() {
    let filtered = Filtered::new("git-filter-off");
    let told = filtered.work("off");
    assert!(told.contains("It is done."), "{told}");
    assert_eq!(filtered.marks().len(), 3);
}
