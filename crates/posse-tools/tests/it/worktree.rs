//! Worktrees with real git, in repositories of the tests' own.

mod carry;
mod kept;
mod made;
mod review;
mod swept;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use posse_port::worktree::{Base, Dirty, Made, Wanted, Worktree, Worktrees as _};
use posse_protocol::AgentId;
use posse_tools::GitWorktrees;
use uuid::Uuid;

/// A repository `r` with two commits, and a home for worktrees; gone when dropped.
pub(crate) struct Ground {
    base: PathBuf,
    pub(crate) trees: GitWorktrees,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let ground = Self::empty();
        ground.git("", &["init", "-q", "-b", "main", "r"]);
        ground.write("r/a.txt", "one\n");
        ground.write("r/src/b.rs", "fn b() {}\n");
        ground.write("r/.gitignore", "*.log\ntarget/\nnode_modules/\n");
        ground.commit("r", "Begin");
        ground.write("r/a.txt", "one\ntwo\n");
        ground.commit("r", "Add two");
        ground
    }

    /// Without a repository, and in none.
    pub(crate) fn empty() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let unique = format!(
            "posse-trees-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let base = base.canonicalize().unwrap().join(unique);
        fs::create_dir_all(&base).unwrap();
        let trees = GitWorktrees::new(base.join("home/worktrees"));
        Self { base, trees }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        write(&self.path(path), content);
    }

    pub(crate) fn git(&self, at: &str, words: &[&str]) -> String {
        git(&self.path(at), words)
    }

    pub(crate) fn commit(&self, at: &str, subject: &str) {
        self.git(at, &["add", "-A"]);
        self.git(at, &["commit", "-q", "-m", subject]);
    }

    /// Another posse with the same home.
    pub(crate) fn other(&self) -> GitWorktrees {
        GitWorktrees::new(self.path("home/worktrees"))
    }

    pub(crate) async fn make(&self) -> Made {
        self.trees.make(self.wanted("r")).await.unwrap()
    }

    pub(crate) fn wanted(&self, from: &str) -> Wanted {
        let agent = AgentId::from(Uuid::now_v7());
        Wanted {
            agent,
            from: self.path(from),
            base: Base::Head,
            dirty: Dirty::Tell,
        }
    }

    /// Nothing is left of any worktree, and the repository is whole.
    pub(crate) fn is_as_before(&self) {
        assert_eq!(self.git("r", &["branch", "--list", "posse/*"]), "");
        assert_eq!(
            self.git("r", &["worktree", "list", "--porcelain"])
                .matches("worktree ")
                .count(),
            1
        );
        self.git("r", &["fsck", "--strict"]);
        assert_eq!(self.left(), Vec::<String>::new());
    }

    /// What lies beneath home, but for what a plot has for itself.
    pub(crate) fn left(&self) -> Vec<String> {
        let plots = fs::read_dir(self.path("home/worktrees"))
            .into_iter()
            .flatten()
            .flatten();
        let plots = plots.filter(|plot| plot.file_name() != ".hosts");
        let inside = plots.flat_map(|plot| fs::read_dir(plot.path()).unwrap().flatten());
        let names = inside.map(|entry| entry.file_name().into_string().unwrap());
        names
            .filter(|name| ![".lock", ".noting", ".repository"].contains(&name.as_str()))
            .collect()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// Git as a person runs it, whatever this machine is set to.
#[expect(clippy::disallowed_methods, reason = "it stands for a person")]
pub(crate) fn git(at: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(at).args(words);
    for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        git.env(name, "/dev/null");
    }
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_NAME"), "Ann")
            .env(format!("GIT_{role}_EMAIL"), "ann@example.org");
    }
    let output = git.output().unwrap();
    assert!(
        output.status.success(),
        "git {words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Where git keeps what it knows of a worktree.
pub(crate) fn registration(worktree: &Worktree) -> PathBuf {
    let text = fs::read_to_string(worktree.path.join(".git")).unwrap();
    text.trim_end().strip_prefix("gitdir: ").unwrap().into()
}
