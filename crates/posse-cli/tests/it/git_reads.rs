//! Git that only reads, without a sandbox: it needs no rule where it runs nothing of the repository.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::binary::{Project, stdout};
use crate::turns;

const READS: &str =
    "git status --short && git log --format=%s && git diff --stat | cat && git show --stat HEAD";

/// Makes a checkout with a commit and a change, in which an agent looks around.
fn checkout(name: &str, more: &str) -> Project {
    let project = Project::new(&format!("git-reads-{name}"), &turns::commands(&[READS]));
    let script = format!(
        "git init -q -b main . && echo a >f && git add f && \
         git -c user.name=a -c user.email=a@b commit -qm 'the first' && echo b >>f && {more}"
    );
    let mut made = Command::new("bash");
    made.args(["-ec", &script]).current_dir(project.file(""));
    assert!(made.status().unwrap().success());
    project
}

/// Returns what the agent was told, whom nobody could answer.
fn told(project: &Project) -> String {
    stdout(&project.run(&["-p", "look"]))
}

// proves PE-06 (part: only reads)
#[test]
fn git_that_only_reads_needs_no_rule() {
    // A hook would run if it wrote the index.
    let project = checkout("plain", "touch -d '1 hour ago' f");
    let hook = project.file(".git/hooks/post-index-change");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\n").unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let told = told(&project);
    assert!(
        told.contains("the first\n") && told.contains("M f"),
        "{told}"
    );
    assert!(!project.file(".git/hooks/ran").exists());
}

// proves PE-06 (part: only reads)
#[test]
fn git_that_could_run_something_is_asked_about() {
    for (name, more) in [
        ("monitor", "git config core.fsmonitor 'touch PWNED'"),
        (
            "textconv",
            "git config diff.x.textconv 'touch PWNED' && echo 'f diff=x' >.gitattributes",
        ),
        (
            "module",
            "git init -q sub && git -C sub commit -q --allow-empty -m s && git add sub",
        ),
    ] {
        let identity = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";
        let project = checkout(name, &format!("{identity}; {more}"));
        let told = told(&project);
        assert!(!told.contains("the first"), "{name}: {told}");
        assert!(told.contains("no one is available"), "{name}: {told}");
        assert!(!project.file("PWNED").exists(), "{name}");
    }
}

// proves TS-01 (part: git)
#[test]
fn git_is_asked_about_where_nobody_trusts_the_workspace() {
    let project = checkout("strange", "true");
    let mut posse = project.posse(&["-p", "look"]);
    let told = stdout(&posse.env_remove("POSSE_TRUST").output().unwrap());
    assert!(!told.contains("the first"), "{told}");
}
