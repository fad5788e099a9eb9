//! Worktrees of processes that are killed at any call, of gits that are, and of disks that are full; and what
//! the next process makes of them.

#![expect(clippy::disallowed_methods, reason = "it is about processes")]
#![expect(clippy::print_stderr, reason = "the long form says what it counted")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::io::{FdFlags, fcntl_setfd};
use uuid::Uuid;

const WORKER: &str = env!("CARGO_BIN_EXE_tree-work");
const AGENT: &str = "0197f000-0000-7000-8000-00000000000a";

/// What changes something, or starts or awaits what does.
const CALLS: &[&str] = &[
    "openat",
    "write",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "flock",
    "clone3",
    "vfork",
    "waitid",
    "wait4",
    "copy_file_range",
    "memfd_create",
];

/// What the worker does.
#[derive(Clone, Copy, Debug)]
struct Deed {
    work: &'static str,
    dirty: &'static str,
}

const IDLE: Deed = Deed {
    work: "idle",
    dirty: "tell",
};
const WORK: Deed = Deed {
    work: "work",
    dirty: "tell",
};
const CARRY: Deed = Deed {
    work: "idle",
    dirty: "carry",
};

/// A repository and a home for worktrees; gone when dropped.
struct Ground(PathBuf);

impl Ground {
    fn empty() -> Self {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let ground = Self(
            base.canonicalize()
                .unwrap()
                .join(format!("posse-trees-{}", Uuid::now_v7())),
        );
        fs::create_dir(&ground.0).unwrap();
        ground
    }

    /// With uncommitted work in the repository.
    fn template() -> Self {
        let ground = Self::empty();
        fs::create_dir(ground.repository()).unwrap();
        ground.git(&["init", "-q", "-b", "main"]);
        fs::write(ground.repository().join("a.txt"), "one\n").unwrap();
        fs::create_dir(ground.repository().join("src")).unwrap();
        fs::write(ground.repository().join("src/b.rs"), "fn b() {}\n").unwrap();
        ground.git(&["add", "-A"]);
        ground.git(&["commit", "-q", "-m", "Begin"]);
        fs::write(ground.repository().join("a.txt"), "changed\n").unwrap();
        ground
    }

    fn copy(&self) -> Self {
        let copy = Self::empty();
        copy_all(&self.0, &copy.0);
        copy
    }

    fn repository(&self) -> PathBuf {
        self.0.join("r")
    }

    fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    fn git(&self, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.repository()).args(words);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
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
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the deed beneath strace, and waits for all that it has started.
    fn run(&self, deed: Deed, strace: &[&str]) -> Output {
        let (mut all, held) = pipe().unwrap();
        // Whoever comes from the worker has it, too.
        fcntl_setfd(&held, FdFlags::empty()).unwrap();
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq"])
            .args(strace)
            .arg(WORKER)
            .arg("life")
            .arg(self.home());
        let output = command
            .arg(self.repository())
            .args([AGENT, deed.work, deed.dirty])
            .output()
            .unwrap();
        drop(held);
        all.read_to_end(&mut Vec::new()).unwrap();
        output
    }

    fn sweep(&self) -> String {
        let output = Command::new(WORKER)
            .arg("sweep")
            .arg(self.home())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// What must hold after a sweep, whatever happened before.
    fn check(&self, output: &Output, what: &str) {
        let said = String::from_utf8_lossy(&output.stdout);
        let swept = self.sweep();
        let what = format!(
            "{what}\nsaid: {said}{}swept: {swept}",
            String::from_utf8_lossy(&output.stderr)
        );
        self.git(&["fsck", "--strict"]);
        let work = self
            .plot()
            .map(|plot| plot.join(AGENT).join("work.txt"))
            .filter(|work| work.exists());
        if said.contains("worked\n") {
            let work = work
                .as_ref()
                .unwrap_or_else(|| panic!("work is lost: {what}"));
            assert_eq!(fs::read_to_string(work).unwrap(), "work", "{what}");
        }
        let agents = usize::from(work.is_some());
        let left: Vec<String> = self.left();
        assert_eq!(
            left,
            if agents == 1 {
                vec![AGENT.to_owned()]
            } else {
                vec![]
            },
            "{what}"
        );
        assert_eq!(
            self.git(&["branch", "--list", "posse/*"]).lines().count(),
            agents,
            "{what}"
        );
        let list = self.git(&["worktree", "list", "--porcelain"]);
        assert_eq!(
            list.matches("worktree ").count(),
            1 + agents,
            "{what}\n{list}"
        );
        assert!(
            !list.contains("locked") && !list.contains("prunable"),
            "{what}\n{list}"
        );
        let mut files = Vec::new();
        all_files(&self.repository().join(".git"), &mut files);
        files.retain(|file| file.extension().is_some_and(|kind| kind == "lock"));
        assert_eq!(files, Vec::<PathBuf>::new(), "{what}");
        assert_eq!(
            fs::read_to_string(self.repository().join("a.txt")).unwrap(),
            "changed\n",
            "{what}"
        );
        // And there is nothing more to do.
        assert_eq!(
            self.sweep()
                .lines()
                .filter(|line| line.starts_with("removed"))
                .count(),
            0,
            "{what}"
        );
    }

    fn plot(&self) -> Option<PathBuf> {
        let plots = fs::read_dir(self.home()).into_iter().flatten().flatten();
        plots
            .map(|plot| plot.path())
            .find(|plot| !plot.ends_with(".hosts"))
    }

    fn left(&self) -> Vec<String> {
        let inside = self
            .plot()
            .into_iter()
            .flat_map(|plot| fs::read_dir(plot).unwrap().flatten());
        let names = inside.map(|entry| entry.file_name().into_string().unwrap());
        names
            .filter(|name| ![".lock", ".noting", ".repository"].contains(&name.as_str()))
            .collect()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn all_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            all_files(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}

/// How often an undisturbed run makes each call: the most of any thread, since strace counts so.
fn count(
    template: &Ground,
    deed: Deed,
    calls: &[&str],
    follow: &[&str],
) -> BTreeMap<String, usize> {
    let ground = template.copy();
    let log = ground.0.join("strace.log");
    let trace = format!("trace={}", calls.join(","));
    let words = [follow, &["-o", log.to_str().unwrap(), "-e", &trace]].concat();
    let output = ground.run(deed, &words);
    assert!(
        output.status.success(),
        "{deed:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    ground.check(&output, "undisturbed");
    let text = fs::read_to_string(log).unwrap();
    let mut by_thread: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (thread, rest) in text.lines().filter_map(|line| line.split_once(' ')) {
        if let Some((name, _)) = rest.trim_start().split_once('(') {
            *by_thread.entry((name, thread)).or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    for ((name, _), count) in by_thread {
        let entry: &mut usize = most.entry(name.to_owned()).or_default();
        *entry = count.max(*entry);
    }
    most
}

/// Injects `fault` at every `stride`-th of `calls` in a deed. Follows git, or not.
fn each(
    deed: Deed,
    calls: &[&str],
    follow: &[&str],
    fault: &str,
    stride: usize,
    judge: &dyn Fn(&Ground, &Output, &str),
) {
    let template = Ground::template();
    let counts = count(&template, deed, calls, follow);
    let mut injected = 0;
    for (call, count) in &counts {
        // So that a stride meets other places of each call.
        for nth in (1 + injected % stride..=*count).step_by(stride) {
            let ground = template.copy();
            let (trace, inject) = (
                format!("trace={call}"),
                format!("inject={call}:{fault}:when={nth}"),
            );
            let words = [follow, &["-o", "/dev/null", "-e", &trace, "-e", &inject]].concat();
            let output = ground.run(deed, &words);
            let what = format!("{deed:?}, {fault} at {call} {nth} of {count}");
            judge(&ground, &output, &what);
            ground.check(&output, &what);
            injected += 1;
        }
    }
    eprintln!("{deed:?}: {injected} times {fault} at {counts:?}, every {stride}");
    assert!(injected > 0);
}

/// Git goes on when posse is killed.
const POSSE: &[&str] = &["-b", "execve"];
const GIT_TOO: &[&str] = &[];

fn killed(stride: usize) {
    for deed in [IDLE, WORK, CARRY] {
        each(deed, CALLS, POSSE, "signal=KILL", stride, &|_, _, _| {});
    }
}

/// Whichever comes to that call first, posse or a git of its: the other goes on.
fn git_killed(stride: usize) {
    let calls = ["write", "rename", "unlink", "mkdir", "rmdir", "unlinkat"];
    for deed in [IDLE, WORK, CARRY] {
        each(
            deed,
            &calls,
            GIT_TOO,
            "signal=KILL",
            stride,
            &|ground, _, _| {
                // Git's own, and everybody's: who has killed git must remove it.
                drop(fs::remove_file(
                    ground.repository().join(".git/packed-refs.lock"),
                ));
            },
        );
    }
}

fn full_disk(stride: usize) {
    let judge = |ground: &Ground, output: &Output, what: &str| {
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!told.contains("panicked"), "{what}: {told}");
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() && !said.contains("made") && told.contains("made: ") {
            assert!(
                told.contains("omit isolation") || told.contains("Commit it first"),
                "{what}: {told}"
            );
            assert_eq!(ground.left(), Vec::<String>::new(), "{what}: {told}");
            assert_eq!(
                ground.git(&["branch", "--list", "posse/*"]),
                "",
                "{what}: {told}"
            );
        }
    };
    for deed in [IDLE, WORK, CARRY] {
        let calls = ["write", "mkdir", "rename", "copy_file_range", "pwrite64"];
        each(deed, &calls, GIT_TOO, "error=ENOSPC", stride, &judge);
    }
}

// proves WT-03 (part: no change; any change)
// proves WT-04 (part: sweep)
#[test]
fn killed_at_some_calls_it_loses_no_work_and_leaves_nothing_else() {
    killed(17);
}

#[test]
#[ignore = "the long form: `cargo xtask faults`"]
fn killed_at_every_call_it_loses_no_work_and_leaves_nothing_else() {
    killed(1);
}

#[test]
fn with_git_killed_at_some_calls_it_loses_no_work_and_leaves_nothing_else() {
    git_killed(13);
}

#[test]
#[ignore = "the long form: `cargo xtask faults`"]
fn with_git_killed_at_every_call_it_loses_no_work_and_leaves_nothing_else() {
    git_killed(1);
}

#[test]
fn on_a_disk_that_is_full_at_some_calls_it_says_so_and_loses_no_work() {
    full_disk(5);
}

#[test]
#[ignore = "the long form: `cargo xtask faults`"]
fn on_a_disk_that_is_full_at_every_call_it_says_so_and_loses_no_work() {
    full_disk(1);
}

/// What a shell in a hook or a `git rebase --exec` sets leads git elsewhere.
#[test]
fn it_is_not_led_astray_by_its_environment() {
    let (ground, other) = (Ground::template(), Ground::template());
    let mut command = Command::new(WORKER);
    command
        .arg("life")
        .arg(ground.home())
        .arg(ground.repository())
        .args([AGENT, "work", "carry"]);
    command
        .env("GIT_DIR", other.repository().join(".git"))
        .env("GIT_WORK_TREE", other.repository());
    command
        .env("GIT_INDEX_FILE", other.repository().join(".git/index"))
        .env("GIT_PREFIX", "src/");
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    ground.check(&output, "with GIT_DIR");
    assert_eq!(
        fs::read_to_string(ground.plot().unwrap().join(AGENT).join("a.txt")).unwrap(),
        "changed\n"
    );
    assert_eq!(other.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn without_git_that_is_said() {
    let ground = Ground::template();
    let mut command = Command::new(WORKER);
    command
        .arg("life")
        .arg(ground.home())
        .arg(ground.repository())
        .args([AGENT, "idle", "tell"]);
    let output = command.env("PATH", ground.home()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("there is no git") && told.contains("omit isolation"),
        "{told}"
    );
    assert!(!ground.home().exists());
}
