//! Sub-agents with a checkout of their own: made, worked in, told of, kept or removed, and back after a crash.

use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::Arc;

use posse_model::RetryPolicy;
use posse_port::clock::SystemClock;
use posse_port::store::AgentState;
use posse_port::worktree::{Base, Dirty, Made, Wanted, Worktree, Worktrees};
use posse_port::{BoxFuture, Ports};
use posse_protocol::{Command, Notification, RunStatus};
use posse_runtime::definition::agent_type::Definition;
use posse_runtime::definition::agent_type::{Isolation, built_in};
use posse_runtime::runtime::Runtime;
use posse_testkit::Rig;
use posse_testkit::rig::{farewell, prompt, until_end};
use posse_testkit::scripted::anthropic;
use tokio::sync::Semaphore;

use super::{
    last_words, news, paths, pipe, ready, rig, rows, sent_by, told_ends, until_over, words,
};

/// Runs git in a directory, without what the machine's user has configured.
#[expect(clippy::disallowed_methods, reason = "a test looks with git itself")]
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let run = Process::new("git")
        .args([
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@t",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&run.stderr)
    );
    String::from_utf8(run.stdout).unwrap().trim_end().to_owned()
}

/// A rig whose working directory is a repository with one commit.
pub(crate) fn repository(script: &str) -> Rig {
    let rig = rig(script);
    rig.file("a.rs", "fn a() {}\n").unwrap();
    git(rig.work(), &["init", "-q", "-b", "main"]);
    git(rig.work(), &["add", "-A"]);
    git(rig.work(), &["commit", "-q", "-m", "First things"]);
    rig
}

/// A main agent that starts one in a worktree, which runs this and then says where it was.
fn isolated(command: &str, more: &str) -> String {
    format!(
        r#"
[[rule]]
when = {{ agent = "re:^/main/", tool = "re:." }}
reply = [{{ text = "I was in {{{{tool}}}}" }}]
[[rule]]
when.agent = "re:^/main/"
reply = [{{ tool = "Bash", input = {{ command = '''{command}''' }} }}]
[[rule]]
when.turn = 1
reply = [{{ tool = "Agent", input = {{ description = "Work", prompt = "Work."{more} }} }}]
[[rule]]
reply = [{{ text = "Thanks." }}]
"#
    )
}

const APART: &str = r#", isolation = "worktree""#;

/// The end of the one sub-agent, and what the main agent was told of it.
async fn worked(rig: &Rig) -> (Notification, String) {
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_over(&mut agent, "Work").await;
    until_end(&mut agent).await;
    farewell(agent).await;
    (end, last_words(&sent_by(rig, "/main")[1]))
}

// proves WA-11 (part: its branch)
#[tokio::test]
async fn a_run_in_a_worktree_says_its_directory_and_branch() {
    let rig = repository(&isolated("pwd", APART));
    let mut agent = rig.prompted("go").await.unwrap();
    let (events, _) = until_over(&mut agent, "Work").await;
    let run = &news(events.iter().find(|event| news(event).is_some()).unwrap())
        .unwrap()
        .run;
    let place = run.place.as_deref().unwrap();
    assert_eq!(place.branch, Some(format!("posse/{}", run.task)));
    until_end(&mut agent).await;
    let told = last_words(&sent_by(&rig, "/main")[1]);
    assert!(
        told.contains(&format!("I was in {}", place.cwd.display())),
        "{told}"
    );
    farewell(agent).await;
}

/// All worktrees that git knows but the repository itself.
fn others(rig: &Rig) -> Vec<PathBuf> {
    let list = git(rig.work(), &["worktree", "list", "--porcelain"]);
    let all = list
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "))
        .map(PathBuf::from);
    all.filter(|path| path != rig.work()).collect()
}

// proves WT-01
// proves AG-09 (part: completed)
// proves AG-01 (part: worktree)
// proves WT-02 (part: HEAD)
// proves WT-03 (part: returned)
#[tokio::test]
async fn file_and_shell_tools_work_inside_the_worktree_and_its_change_is_kept() {
    let script = r#"
[[rule]]
when = { agent = "re:^/main/", turn = 1 }
reply = [{ tool = "Write", input = { file_path = "new.rs", content = "fn new() {}\n" } }, { tool = "Read", input = { file_path = "a.rs" } }]
[[rule]]
when = { agent = "re:^/main/", turn = 2 }
reply = [{ tool = "Edit", input = { file_path = "a.rs", old_string = "fn a()", new_string = "fn b()" } }]
[[rule]]
when = { agent = "re:^/main/", turn = 3 }
reply = [{ tool = "Bash", input = { command = "git add new.rs && git -c user.name=T -c user.email=t@t commit -qm New && pwd && git rev-parse --abbrev-ref HEAD" } }]
[[rule]]
when = { agent = "re:^/main/", turn = 4 }
reply = [{ tool = "Grep", input = { pattern = "fn", output_mode = "files_with_matches" } }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Done." }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Work", prompt = "Work.", isolation = "worktree" } }]
[[rule]]
reply = [{ text = "Thanks." }]
"#;
    let rig = repository(script);
    let (end, told) = worked(&rig).await;
    let worktree = end.worktree.unwrap();
    let child = sent_by(&rig, "/main/general-purpose-1");
    let agent = end.task.to_string();
    assert_eq!(worktree.branch, format!("posse/{agent}"));
    assert!(
        worktree.path.ends_with(&agent) && worktree.path.starts_with(rig.worktrees()),
        "{worktree:?}"
    );
    assert_eq!(
        last_words(&child[3]),
        format!("{}\n{}\n", worktree.path.display(), worktree.branch)
    );
    let found = last_words(&child[4]);
    assert!(
        found.contains("new.rs") && !found.contains(&rig.work().display().to_string()),
        "{found}"
    );

    // Where it was started from nothing has changed.
    assert_eq!(git(rig.work(), &["status", "--porcelain"]), "");
    assert_eq!(
        std::fs::read_to_string(rig.work().join("a.rs")).unwrap(),
        "fn a() {}\n"
    );
    assert!(!rig.work().join("new.rs").exists());
    // All of it is there: what was committed and what was not.
    assert_eq!(
        std::fs::read_to_string(worktree.path.join("a.rs")).unwrap(),
        "fn b() {}\n"
    );
    assert_eq!(
        git(rig.work(), &["log", "--format=%s", &worktree.branch]),
        "New\nFirst things"
    );
    assert_eq!(others(&rig), std::slice::from_ref(&worktree.path));
    let kept = worktree.kept.unwrap();
    assert!(kept.contains("1 commit") && kept.contains("a.rs"), "{kept}");
    let base = git(rig.work(), &["rev-parse", "HEAD"]);
    assert_eq!(worktree.base, base);
    for part in [
        &worktree.path.display().to_string(),
        &worktree.branch,
        &base,
        &kept,
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // It is not locked any more.
    assert!(!git(rig.work(), &["worktree", "list", "--porcelain"]).contains("locked"));
}

// proves WT-02 (part: HEAD; absence stated)
#[tokio::test]
async fn the_agent_is_told_its_base_and_what_is_not_in_it() {
    let rig = repository(&isolated("cat a.rs; ls", APART));
    rig.file("a.rs", "fn changed() {}\n").unwrap();
    rig.file("untracked.rs", "").unwrap();
    let (end, _) = worked(&rig).await;
    let child = sent_by(&rig, "/main/general-purpose-1");
    let first = words(&child[0]["messages"][0]);
    let note = &first[0];
    assert_eq!(first[1], "Work.");
    let worktree = end.worktree.unwrap();
    let short = &worktree.base[..7];
    for part in [
        &worktree.path.display().to_string(),
        &worktree.branch,
        short,
        "First things",
        "main",
    ] {
        assert!(note.contains(part), "{part}: {note}");
    }
    assert!(
        note.contains("NOT in it: ") && note.contains("a.rs") && note.contains("untracked.rs"),
        "{note}"
    );
    assert_eq!(
        last_words(&child[1]),
        "fn a() {}\na.rs\n",
        "the commit, not the change"
    );
    // Siblings in worktrees of their own would share what stands before the first message.
    assert!(!child[0]["system"].to_string().contains(&worktree.branch));
}

// proves WT-02 (part: carried)
#[tokio::test]
async fn uncommitted_work_is_carried_over_if_that_is_wanted() {
    let mut rig = repository(&isolated("cat a.rs; ls; git status --porcelain", APART));
    rig.setup.spawning.dirty = Dirty::Carry;
    rig.file("a.rs", "fn changed() {}\n").unwrap();
    rig.file("untracked.rs", "").unwrap();
    let (end, told) = worked(&rig).await;
    let child = sent_by(&rig, "/main/general-purpose-1");
    assert_eq!(
        last_words(&child[1]),
        "fn changed() {}\na.rs\nuntracked.rs\n M a.rs\n?? untracked.rs\n",
        "{}",
        words(&child[0]["messages"][0])[0]
    );
    let note = &words(&child[0]["messages"][0])[0];
    assert!(
        note.contains("is in it, still uncommitted: ") && !note.contains("NOT in it"),
        "{note}"
    );
    // It was given that and changed nothing: the original is where it was.
    assert_eq!(end.worktree.unwrap().kept, None, "{told}");
    assert_eq!(others(&rig), [] as [PathBuf; 0]);
    assert_eq!(
        git(rig.work(), &["status", "--porcelain"]),
        " M a.rs\n?? untracked.rs"
    );
}

// proves WT-02 (part: fresh)
#[tokio::test]
async fn fresh_begins_at_the_default_branch_of_the_remote() {
    let mut rig = repository(&isolated("git log --format=%s", APART));
    rig.setup.spawning.base = Base::Fresh;
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let told = last_words(&sent_by(&rig, "/main")[1]);
    assert!(
        told.starts_with("isolation: "),
        "there is no remote: {told}"
    );
    assert_eq!(paths(&rig), ["/main", "/main"]);

    let mut rig = repository(&isolated("git log --format=%s", APART));
    rig.setup.spawning.base = Base::Fresh;
    let remote = tempfile::tempdir().unwrap();
    git(
        rig.work(),
        &[
            "clone",
            "-q",
            "--bare",
            ".",
            remote.path().to_str().unwrap(),
        ],
    );
    git(
        rig.work(),
        &["remote", "add", "origin", remote.path().to_str().unwrap()],
    );
    git(rig.work(), &["fetch", "-q", "origin"]);
    git(rig.work(), &["remote", "set-head", "origin", "main"]);
    git(
        rig.work(),
        &["commit", "-q", "--allow-empty", "-m", "Only here"],
    );
    let (end, _) = worked(&rig).await;
    assert_eq!(
        last_words(&sent_by(&rig, "/main/general-purpose-1")[1]),
        "First things\n"
    );
    assert_eq!(
        end.worktree.unwrap().base,
        git(rig.work(), &["rev-parse", "origin/main"])
    );
}

// proves WT-03 (part: no change)
#[tokio::test]
async fn without_a_change_it_is_removed_with_its_branch() {
    let rig = repository(&isolated("pwd", APART));
    let (end, told) = worked(&rig).await;
    let worktree = end.worktree.unwrap();
    assert_eq!(worktree.kept, None);
    assert!(told.contains("nothing changed there"), "{told}");
    assert!(!worktree.path.exists());
    assert_eq!(others(&rig), [] as [PathBuf; 0]);
    assert_eq!(git(rig.work(), &["branch", "--list", "posse/*"]), "");
}

// proves BG-05 (part: worktree and branch)
// proves AG-13 (part: with a worktree)
#[tokio::test]
async fn a_notification_names_worktree_and_branch_and_one_shot_types_show_their_id() {
    let rig = repository(&isolated(
        "touch new.rs",
        &format!("{APART}, run_in_background = true"),
    ));
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_over(&mut agent, "Work").await;
    let worktree = end.worktree.clone().unwrap();
    assert_eq!(told_ends(&rig, agent.id, agent.id).await, [end]);
    while sent_by(&rig, "/main")
        .iter()
        .all(|body| !last_words(body).contains("<task-notification>"))
    {
        until_end(&mut agent).await;
    }
    let told = last_words(sent_by(&rig, "/main").last().unwrap());
    let path = format!(
        "<worktree>{} (made from {}",
        worktree.path.display(),
        worktree.base
    );
    assert!(told.contains(&path) && told.contains("new.rs"), "{told}");
    assert!(
        told.contains(&format!("<branch>{}</branch>", worktree.branch)),
        "{told}"
    );
    farewell(agent).await;

    let mut once = repository(&isolated("pwd", APART));
    let kinds = built_in().into_iter().map(|kind| Definition {
        one_shot: true,
        ..kind
    });
    once.setup.spawning.types = Arc::new(kinds.collect());
    let (end, told) = worked(&once).await;
    assert!(
        told.contains(&format!("agent id: {}", end.task)) && told.contains(" tokens, "),
        "{told}"
    );
}

// proves AD-12
// proves AG-07
#[tokio::test]
async fn a_calls_isolation_beats_the_types_and_excludes_a_directory() {
    let typed = |rig: &mut Rig| {
        let kinds = built_in().into_iter();
        let kinds = kinds.map(|kind| Definition {
            isolation: Some(Isolation::Worktree),
            model: Some("claude-sonnet-5-5".into()),
            ..kind
        });
        rig.setup.spawning.types = Arc::new(kinds.collect());
    };
    // The type alone.
    let mut rig = repository(&isolated("pwd", ""));
    typed(&mut rig);
    let (end, _) = worked(&rig).await;
    assert!(end.worktree.is_some());
    assert_eq!(
        sent_by(&rig, "/main/general-purpose-1")[0]["model"],
        "claude-sonnet-5-5"
    );
    // The call says more.
    let mut rig = repository(&isolated(
        "pwd",
        &format!(r#"{APART}, model = "claude-haiku-5-5""#),
    ));
    typed(&mut rig);
    let (end, _) = worked(&rig).await;
    assert!(end.worktree.is_some());
    assert_eq!(
        sent_by(&rig, "/main/general-purpose-1")[0]["model"],
        "claude-haiku-5-5"
    );

    for (more, why) in [
        (
            r#", isolation = "worktree", cwd = ".""#,
            "cwd and isolation cannot be combined",
        ),
        (
            r#", cwd = ".""#,
            "works in a checkout of its own, so the call cannot name a directory",
        ),
        (r#", tools = ["Bash"]"#, "tools"),
        (r#", hooks = {}"#, "hooks"),
        (r#", skills = ["a"]"#, "skills"),
        (r#", mcpServers = ["a"]"#, "mcpServers"),
        (
            r#", isolation = "remote""#,
            "remote agents are not supported yet",
        ),
    ] {
        let mut rig = repository(&isolated("pwd", more));
        typed(&mut rig);
        let mut agent = rig.prompted("go").await.unwrap();
        until_end(&mut agent).await;
        let told = last_words(&sent_by(&rig, "/main")[1]);
        assert!(told.contains(why), "{more}: {told}");
        assert_eq!(
            (rows(&rig, agent.id).await, others(&rig)),
            (vec![], vec![]),
            "{more}"
        );
    }
}

#[tokio::test]
async fn without_a_repository_the_call_fails_and_says_so() {
    let rig = rig(&isolated("pwd", APART));
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let told = last_words(&sent_by(&rig, "/main")[1]);
    assert!(
        told.starts_with("isolation: ") && told.contains("git"),
        "{told}"
    );
    assert_eq!(rows(&rig, agent.id).await, []);
}

// proves WT-04 (part: locked)
#[tokio::test]
async fn the_worktree_of_a_live_agent_is_locked_and_stopping_it_keeps_what_it_did() {
    let mut rig = repository("");
    // The sub-agent's own directory has no such pipe: it is told where it is.
    let place = pipe(&rig, "ready");
    let script = isolated(
        &format!("touch new.rs; echo > {}; sleep 60", place.display()),
        &format!("{APART}, run_in_background = true"),
    );
    rig.server = posse_testkit::scripted::play(&script).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    ready(place.clone()).await;
    std::fs::remove_file(place).unwrap();
    let list = git(rig.work(), &["worktree", "list", "--porcelain"]);
    assert!(list.contains("locked posse: agent "), "{list}");
    agent.handle.send(Command::StopRuns).await.unwrap();
    let (_, end) = until_over(&mut agent, "Work").await;
    assert_eq!(end.status, RunStatus::Killed);
    let worktree = end.worktree.unwrap();
    assert!(worktree.kept.unwrap().contains("new.rs"));
    assert!(worktree.path.join("new.rs").exists());
    farewell(agent).await;
    assert!(!git(rig.work(), &["worktree", "list", "--porcelain"]).contains("locked"));
}

/// Worktrees that are given back when the test says so.
struct Slow {
    git: posse_tools::GitWorktrees,
    gate: Arc<Semaphore>,
}

impl Worktrees for Slow {
    fn make(&self, wanted: Wanted) -> BoxFuture<'static, Result<Made, String>> {
        self.git.make(wanted)
    }

    fn changes(&self, worktree: &Worktree) -> BoxFuture<'static, Option<String>> {
        self.git.changes(worktree)
    }

    fn release(&self, worktree: &Worktree) -> BoxFuture<'static, Option<String>> {
        let (release, gate) = (self.git.release(worktree), Arc::clone(&self.gate));
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            release.await
        })
    }

    fn reclaim(&self, worktree: &Worktree) -> BoxFuture<'static, Result<bool, String>> {
        self.git.reclaim(worktree)
    }
}

// proves BG-04 (part: worktree clean-up)
#[tokio::test]
async fn nobody_waits_for_the_clean_up_of_a_worktree() {
    let rig = repository(&isolated("pwd", APART));
    let (gate, clock) = (Arc::new(Semaphore::new(0)), SystemClock::default());
    let (clock, url) = (Arc::new(clock), rig.server.url());
    let model = Arc::new(anthropic(&url, clock, RetryPolicy::default()).unwrap());
    let runtime = Runtime::new(Ports {
        worktrees: Arc::new(Slow {
            git: posse_tools::GitWorktrees::new(rig.worktrees()),
            gate: Arc::clone(&gate),
        }),
        ..Ports::new(model, Arc::clone(&rig.store))
    });
    let mut agent = runtime.start(&rig.profile, rig.setup.clone());
    agent.handle.send(prompt("go")).await.unwrap();
    let (_, over) = until_over(&mut agent, "Work").await;
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "Thanks.", "its starter has gone on");
    let child = rows(&rig, agent.id).await.remove(0);
    assert_eq!(child.state, AgentState::Completed);
    let path = over.worktree.unwrap().path;
    assert!(path.exists(), "and the worktree is still there");
    gate.add_permits(1);
    farewell(agent).await;
    runtime.shut_down().await;
    assert!(!path.exists());
}

/// What is written to after its end goes on in its worktree, which is made again if it was removed.
// proves TR-02 (part: worktree)
#[tokio::test]
async fn who_is_revived_works_in_its_worktree_again() {
    let script = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
reply = [{ text = "I was in {{tool}}" }]
[[rule]]
when = { agent = "re:^/main/", user = "Once more" }
reply = [{ tool = "Bash", input = { command = "pwd; touch more.rs" } }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Bash", input = { command = "pwd" } }]
[[rule]]
when = { user = "wake it", turn = 3 }
reply = [{ tool = "SendMessage", input = { to = "scout", message = "Once more" } }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Work", prompt = "Work.", name = "scout", isolation = "worktree" } }]
[[rule]]
reply = [{ text = "Thanks." }]
"#;
    let rig = repository(script);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, first) = until_over(&mut agent, "Work").await;
    until_end(&mut agent).await;
    let path = first.worktree.unwrap().path;
    agent.handle.send(prompt("wake it")).await.unwrap();
    let (_, second) = until_over(&mut agent, "Work").await;
    let worktree = second.worktree.unwrap();
    assert_eq!(
        (second.status, &worktree.path),
        (RunStatus::Completed, &path)
    );
    assert!(path.join("more.rs").exists() && worktree.kept.unwrap().contains("more.rs"));
    let bodies = sent_by(&rig, "/main/scout-1");
    let woken = bodies
        .iter()
        .map(last_words)
        .find(|said| said.contains("Once more"))
        .unwrap();
    assert!(
        woken.contains("was removed and has been made again"),
        "{woken}"
    );
    assert_eq!(
        last_words(bodies.last().unwrap()).lines().next(),
        path.to_str()
    );
    farewell(agent).await;
}

/// Who has a worktree does not end while somebody below works in it, whoever has woken that one.
#[tokio::test]
async fn a_worktree_is_not_given_back_while_a_sub_agent_works_in_it() {
    let rig = repository("");
    let (began, go) = (pipe(&rig, "began"), pipe(&rig, "go"));
    let (hold, held) = (pipe(&rig, "hold"), pipe(&rig, "held"));
    let script = format!(
        r#"
[[rule]]
when = {{ agent = "re:/guest-", tool = "re:^woken" }}
reply = [{{ text = "I was here." }}]
[[rule]]
when = {{ agent = "re:/guest-", user = "Once more" }}
reply = [{{ tool = "Bash", input = {{ command = "echo > {began}; read x < {go}; touch late.rs; echo woken" }} }}]
[[rule]]
when.agent = "re:/guest-"
reply = [{{ text = "Nothing to do." }}]
[[rule]]
when = {{ agent = "re:/host-", turn = 1 }}
reply = [{{ tool = "Agent", input = {{ description = "Visit", prompt = "Visit.", name = "guest" }} }}]
[[rule]]
when = {{ agent = "re:/host-", turn = 2 }}
reply = [{{ tool = "Bash", input = {{ command = "echo > {hold}; read x < {held}" }} }}]
[[rule]]
when.agent = "re:/host-"
reply = [{{ text = "Done." }}]
[[rule]]
when = {{ user = "wake it", turn = 3 }}
reply = [{{ tool = "SendMessage", input = {{ to = "guest", message = "Once more" }} }}]
[[rule]]
when.turn = 1
reply = [{{ tool = "Agent", input = {{ description = "Work", prompt = "Work.", name = "host", isolation = "worktree", run_in_background = true }} }}]
[[rule]]
reply = [{{ text = "Thanks." }}]
"#,
        began = began.display(),
        go = go.display(),
        hold = hold.display(),
        held = held.display(),
    );
    let mut rig = rig;
    rig.server = posse_testkit::scripted::play(&script).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    ready(hold).await;
    agent.handle.send(prompt("wake it")).await.unwrap();
    // The guest works again, for the main agent; then the host has nothing more to do.
    ready(began).await;
    super::release(held).await;
    let host = super::until_state(&rig, agent.id, "Work", AgentState::Waiting).await;
    assert!(host.cwd.exists());
    super::release(go).await;
    let (_, end) = until_over(&mut agent, "Work").await;
    assert_eq!(end.status, RunStatus::Completed);
    assert!(end.worktree.unwrap().kept.unwrap().contains("late.rs"));
    assert!(host.cwd.join("late.rs").exists());
    farewell(agent).await;
}

/// Who cannot be brought back has failed, and whoever wrote to it is told.
#[tokio::test]
async fn who_has_no_place_to_go_on_in_has_failed_and_that_is_told() {
    let script = r#"
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Nothing to do." }]
[[rule]]
when = { user = "wake it", turn = 3 }
reply = [{ tool = "SendMessage", input = { to = "scout", message = "Once more" } }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Work", prompt = "Work.", name = "scout", isolation = "worktree" } }]
[[rule]]
reply = [{ text = "Thanks." }]
"#;
    let rig = repository(script);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, first) = until_over(&mut agent, "Work").await;
    until_end(&mut agent).await;
    // Somebody else has put something where its worktree was.
    let path = first.worktree.unwrap().path;
    while path.exists() {
        tokio::task::yield_now().await;
    }
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("theirs"), "x").unwrap();
    agent.handle.send(prompt("wake it")).await.unwrap();
    while told_ends(&rig, agent.id, agent.id).await.is_empty() {
        agent.events.recv().await.unwrap();
    }
    let end = told_ends(&rig, agent.id, agent.id).await.remove(0);
    assert_eq!(end.status, RunStatus::Failed);
    assert!(end.error.unwrap().contains("it could not continue: "));
    assert_eq!(
        super::row(&rig, agent.id, "Work").await.state,
        AgentState::Failed
    );
    assert_eq!(std::fs::read_to_string(path.join("theirs")).unwrap(), "x");
    farewell(agent).await;
}
