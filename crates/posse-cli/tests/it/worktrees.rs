//! `posse worktrees`, and what is done about worktrees when posse starts.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use posse_port::worktree::{Base, Dirty, Wanted, Worktree, Worktrees};
use posse_protocol::AgentId;
use posse_tools::GitWorktrees;
use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};
use crate::team::{lines, refused, succeed};

/// Agents whose ids begin alike.
pub(crate) const IDS: [&str; 3] = [
    "0197f0aa-0001-7000-8000-000000000001",
    "0197f0aa-0002-7000-8000-000000000002",
    "0197f0aa-0003-7000-8000-000000000003",
];

/// A project that is a repository with one commit.
pub(crate) fn repository(name: &str) -> Project {
    repository_with(name, "")
}

/// The same, where the model plays `script`.
pub(crate) fn repository_with(name: &str, script: &str) -> Project {
    let project = Project::new(name, script);
    git(&project.file("."), &["init", "-q", "-b", "main"]);
    std::fs::write(project.file("a.txt"), "one\n").unwrap();
    commit(&project.file("."));
    project
}

pub(crate) fn commit(at: &Path) {
    git(at, &["add", "-A"]);
    git(
        at,
        &[
            "-c",
            "user.name=me",
            "-c",
            "user.email=me@localhost",
            "commit",
            "-q",
            "-m",
            "All of it",
        ],
    );
}

pub(crate) fn git(at: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(at)
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    stdout(&output).trim_end().to_owned()
}

/// A process that has worktrees: it is this one, and it is gone when this is dropped.
pub(crate) struct Host {
    worktrees: GitWorktrees,
    runtime: tokio::runtime::Runtime,
}

impl Host {
    fn new(project: &Project) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        Self {
            worktrees: GitWorktrees::new(project.file("../home/worktrees")),
            runtime,
        }
    }

    fn make(&self, project: &Project, agent: &str) -> Worktree {
        let agent: AgentId = agent.parse().unwrap();
        let (from, base, dirty) = (project.file("."), Base::Head, Dirty::Tell);
        let made = self.runtime.block_on(self.worktrees.make(Wanted {
            agent,
            from,
            base,
            dirty,
        }));
        made.unwrap().worktree
    }

    /// One with a file that nobody has committed; its agent has ended.
    fn make_kept(&self, project: &Project, agent: &str) -> Worktree {
        let worktree = self.make(project, agent);
        std::fs::write(worktree.path.join("new.txt"), agent).unwrap();
        assert!(
            self.runtime
                .block_on(self.worktrees.release(&worktree))
                .is_some()
        );
        worktree
    }
}

/// One that is kept, one that a dead process left, and one that is live as long as the host is.
pub(crate) fn three(project: &Project) -> (Host, [Worktree; 3]) {
    let dead = Host::new(project);
    let (kept, left) = (dead.make_kept(project, IDS[0]), dead.make(project, IDS[1]));
    drop(dead);
    let host = Host::new(project);
    let live = host.make(project, IDS[2]);
    (host, [kept, left, live])
}

pub(crate) fn states(project: &Project) -> Vec<(String, String)> {
    let text = |told: &Value, key: &str| told[key].as_str().unwrap().to_owned();
    let told = lines(project, &["worktrees", "list", "--json"]);
    told.iter()
        .map(|told| (text(told, "agent_id"), text(told, "state")))
        .collect()
}

pub(crate) fn expected(pairs: &[(usize, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(id, state)| (IDS[*id].to_owned(), (*state).to_owned()))
        .collect()
}

#[test]
fn each_is_listed_with_its_state_and_what_it_holds() {
    let project = repository("worktrees-list");
    let (_host, [kept, left, live]) = three(&project);
    assert_eq!(
        states(&project),
        expected(&[(0, "kept"), (1, "left"), (2, "live")])
    );
    let told = lines(&project, &["worktrees", "list", "--json"]);
    let repository = project.file(".").canonicalize().unwrap();
    let head = git(&repository, &["rev-parse", "HEAD"]);
    for (told, worktree) in told.iter().zip([&kept, &left, &live]) {
        assert_eq!(told["path"], json!(worktree.path), "{told}");
        assert_eq!(
            (&told["branch"], &told["base"]),
            (&json!(worktree.branch), &json!(head)),
            "{told}"
        );
        assert_eq!(told["repository"], json!(repository), "{told}");
    }
    assert!(
        told[0]["keeps"].as_str().unwrap().contains("new.txt"),
        "{}",
        told[0]
    );
    assert_eq!(told[1]["keeps"], Value::Null);
    let table = succeed(&project, &["worktrees", "list"]);
    let branch = format!("  {}\n  {}\n", kept.branch, kept.path.display());
    assert!(
        table.contains(&branch) && table.contains("git merge posse/ID"),
        "{table}"
    );
}

#[test]
fn those_of_this_repository_can_be_listed_from_any_of_its_checkouts() {
    let project = repository("worktrees-here");
    let (_host, [kept, ..]) = three(&project);
    let other = repository("worktrees-here-not");
    let here = |at: &Path| {
        let mut command = project.posse(&["worktrees", "list", "--here", "--json"]);
        command.current_dir(at).output().unwrap()
    };
    let count = |at: &Path| stdout(&here(at)).lines().count();
    std::fs::create_dir(project.file("sub")).unwrap();
    assert_eq!(
        (
            count(&project.file("sub")),
            count(&kept.path),
            count(&other.file("."))
        ),
        (3, 3, 0)
    );
    let outside = here(Path::new("/"));
    assert_eq!(outside.status.code(), Some(1));
    assert!(
        stderr(&outside).contains("/ is not in a git repository"),
        "{}",
        stderr(&outside)
    );
}

#[test]
fn what_holds_nothing_is_removed_and_the_rest_is_told() {
    let project = repository("worktrees-clean");
    let (host, [kept, left, live]) = three(&project);
    let said = succeed(&project, &["worktrees", "clean"]);
    assert!(
        said.contains(&format!("removed {}\n", left.path.display())),
        "{said}"
    );
    let told = said.lines().find(|line| line.starts_with("kept ")).unwrap();
    assert!(
        told.contains(kept.path.to_str().unwrap()) && told.contains("new.txt"),
        "{said}"
    );
    assert!(!said.contains(live.path.to_str().unwrap()), "{said}");
    assert_eq!(states(&project), expected(&[(0, "kept"), (2, "live")]));
    assert!(!git(&project.file("."), &["branch", "--list", "posse/*"]).contains(IDS[1]));
    drop(host);
    let told = lines(&project, &["worktrees", "clean", "--json"]);
    let removed: Vec<_> = told
        .iter()
        .map(|it| (&it["agent_id"], &it["removed"]))
        .collect();
    assert_eq!(
        removed,
        [
            (&json!(IDS[0]), &json!(false)),
            (&json!(IDS[2]), &json!(true))
        ]
    );
}

#[test]
fn named_ones_are_removed_only_if_nothing_is_lost() {
    let project = repository("worktrees-ids");
    let (_host, [kept, left, _]) = three(&project);
    let clean = |ids: &[&str], said: &[&str]| {
        refused(&project, &[&["worktrees", "clean"], ids].concat(), 1, said);
    };
    clean(
        &["ffff"],
        &["no worktree of an agent ffff", "posse worktrees list"],
    );
    clean(
        &["0197f0aa"],
        &["several ids begin with", IDS[0], IDS[1], IDS[2]],
    );
    clean(&[IDS[2]], &["a running agent", "posse agents ps"]);
    clean(&[IDS[2], "--discard"], &["a running agent"]);
    // None is removed if one of them may not be.
    clean(
        &["0197f0aa-0002", "0197f0aa-0001"],
        &["new.txt", "would be lost", "--discard"],
    );
    assert!(kept.path.is_dir() && left.path.is_dir());
    let said = succeed(&project, &["worktrees", "clean", "0197f0aa-0002"]);
    assert_eq!(said, format!("removed {}\n", left.path.display()));
    assert_eq!(states(&project), expected(&[(0, "kept"), (2, "live")]));
    refused(&project, &["worktrees", "clean", "--discard"], 2, &["<ID>"]);
}

#[test]
fn what_was_thrown_away_can_be_got_back_if_it_was_committed() {
    let project = repository("worktrees-discard");
    let host = Host::new(&project);
    let worktree = host.make_kept(&project, IDS[0]);
    commit(&worktree.path);
    std::fs::write(worktree.path.join("newer.txt"), "newer\n").unwrap();
    let tip = git(&worktree.path, &["rev-parse", "HEAD"]);
    let said = succeed(&project, &["worktrees", "clean", IDS[0], "--discard"]);
    assert!(
        said.starts_with(&format!("discarded {}: ", worktree.path.display())),
        "{said}"
    );
    assert!(
        said.contains("newer.txt") && said.contains(&format!("git branch NAME {tip}\n")),
        "{said}"
    );
    assert!(!worktree.path.exists());
    assert_eq!(
        git(&project.file("."), &["branch", "--list", "posse/*"]),
        ""
    );
    git(&project.file("."), &["merge", "-q", &tip]);
    assert_eq!(
        std::fs::read_to_string(project.file("new.txt")).unwrap(),
        IDS[0]
    );

    let other = host.make_kept(&project, IDS[1]);
    let [told] = &lines(
        &project,
        &["worktrees", "clean", IDS[1], "--discard", "--json"],
    )[..] else {
        panic!("one object");
    };
    assert_eq!(
        (&told["removed"], &told["path"]),
        (&json!(true), &json!(other.path)),
        "{told}"
    );
    assert_eq!(told["commits"], json!([]), "nothing was committed: {told}");
    assert!(lines(&project, &["worktrees", "list", "--json"]).is_empty());
}

#[test]
fn where_there_are_none_nothing_is_made_and_git_is_not_needed() {
    let project = Project::new("worktrees-none", "");
    let run = |arguments: &[&str]| {
        let output = project
            .posse(arguments)
            .env("PATH", "/nowhere")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    assert_eq!(run(&["worktrees", "list"]), "");
    assert_eq!(run(&["worktrees", "list", "--json"]), "");
    assert_eq!(run(&["worktrees", "clean"]), "nothing to remove\n");
    assert!(!project.file("../home").exists());
    refused(
        &project,
        &["worktrees", "clean", "0197"],
        1,
        &["no worktree of an agent 0197"],
    );
}

// proves WT-04 (part: sweep)
#[test]
fn a_start_removes_what_the_dead_left_clean_and_tells_of_the_others() {
    let project = repository("worktrees-sweep");
    let dead = Host::new(&project);
    let (clean, dirty) = (dead.make(&project, IDS[0]), dead.make(&project, IDS[1]));
    std::fs::write(dirty.path.join("new.txt"), "new\n").unwrap();
    drop(dead);
    let host = Host::new(&project);
    let live = host.make(&project, IDS[2]);
    let porcelain = git(&project.file("."), &["worktree", "list", "--porcelain"]);
    let of_live = porcelain
        .split("\n\n")
        .find(|it| it.contains(IDS[2]))
        .unwrap();
    assert!(of_live.contains("\nlocked"), "{porcelain}");

    // It goes on until its input ends.
    let lines = [
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
    ];
    let mut command = project.posse(&lines);
    let mut posse = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A session begins with the program's first line.
    let input = posse.stdin.as_mut().unwrap();
    std::io::Write::write_all(input, b"{\"type\":\"keep_alive\"}\n").unwrap();
    let said = BufReader::new(posse.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let told = said.into_iter().find(|line| line.contains("worktree"));
    assert_eq!(
        told.unwrap(),
        "1 worktree of an agent that has ended holds work: posse worktrees list"
    );
    assert!(!clean.path.exists() && dirty.path.join("new.txt").exists() && live.path.is_dir());
    drop(posse.stdin.take());
    assert_eq!(posse.wait().unwrap().code(), Some(0));
    assert_eq!(states(&project), expected(&[(1, "kept"), (2, "live")]));
}

/// A main agent that starts two in worktrees: one leaves half of its work there, the other none, and then both
/// hang. Asked again they do the rest.
const HALF: &str = r#"
[[rule]]
when = { agent = "re:^/main/half-", turn = 1 }
reply = [{ tool = "Write", input = { file_path = "half.rs", content = "half" } }]
[[rule]]
when = { agent = "re:^/main/half-", turn = 2 }
times = 1
fault = { kind = "stall" }
[[rule]]
when = { agent = "re:^/main/half-", turn = 2 }
reply = [{ tool = "Bash", input = { command = "pwd; cat half.rs; git branch --show-current" } }]
[[rule]]
when = { agent = "re:^/main/half-" }
reply = [{ text = "{{tool}}" }]
[[rule]]
when = { agent = "re:^/main/none-", turn = 1 }
reply = [{ tool = "Glob", input = { pattern = "*" } }]
[[rule]]
when = { agent = "re:^/main/none-", turn = 2 }
times = 1
fault = { kind = "stall" }
[[rule]]
when = { agent = "re:^/main/none-", turn = 2 }
reply = [{ tool = "Bash", input = { command = "pwd; ls" } }]
[[rule]]
when = { agent = "re:^/main/none-" }
reply = [{ text = "{{tool}}" }]
[[rule]]
when = { user = "begin", turn = 1 }
reply = [
  { tool = "Agent", input = { description = "half", prompt = "Work.", name = "half", isolation = "worktree", run_in_background = true } },
  { tool = "Agent", input = { description = "none", prompt = "Work.", name = "none", isolation = "worktree", run_in_background = true } },
]
[[rule]]
reply = [{ text = "I see." }]
"#;

// proves BG-05 (part: worktree and branch)
#[test]
fn who_was_killed_goes_on_in_its_worktree_also_if_that_was_swept_away() {
    let project = repository("worktrees-killed");
    let server = crate::crash::serve(HALF);
    let posse = |more: &[&str]| {
        let lines = [
            "-p",
            "--output-format",
            "stream-json",
            "--permission-mode",
            "bypassPermissions",
        ];
        let mut command = project.posse(&[&lines[..], more].concat());
        command
            .env("ANTHROPIC_BASE_URL", server.url())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let mut first = posse(&["begin"]).spawn().unwrap();
    let calls = |path: &str| {
        let requests = server.requests();
        requests
            .iter()
            .filter(|it| {
                it.header("x-posse-agent")
                    .is_some_and(|at| at.starts_with(path))
            })
            .count()
    };
    while calls("/main/half-") < 2 || calls("/main/none-") < 2 {
        assert!(first.try_wait().unwrap().is_none(), "it has ended");
        std::thread::yield_now();
    }
    first.kill().unwrap();
    let output = first.wait_with_output().unwrap();
    let began = stdout(&output);
    let session: Value = serde_json::from_str(began.lines().next().unwrap()).unwrap();
    // The two start at once, so either may be the older, that is the first of the list.
    let before = lines(&project, &["worktrees", "list", "--json"]);
    let states: BTreeSet<_> = before
        .iter()
        .map(|told| (told["state"].as_str().unwrap(), told["keeps"].is_string()))
        .collect();
    assert_eq!(before.len(), 2);
    assert_eq!(states, [("kept", true), ("left", false)].into());

    // Swept, what holds nothing goes.
    succeed(&project, &["worktrees", "clean"]);
    let swept = lines(&project, &["worktrees", "list", "--json"]);
    assert_eq!(swept.len(), 1);
    assert!(
        swept[0]["keeps"].as_str().unwrap().contains("half.rs"),
        "{}",
        swept[0]
    );

    let output = posse(&["--resume", session["session_id"].as_str().unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let told: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let end = |description: &str| {
        let ends: Vec<&Value> = told
            .iter()
            .filter(|line| {
                line["subtype"] == "task_notification" && line["description"] == description
            })
            .collect();
        assert_eq!(ends.len(), 1, "{description}: {told:#?}");
        assert_eq!(ends[0]["status"], "completed", "{description}");
        ends[0]["worktree"].clone()
    };
    let (half, none) = (end("half"), end("none"));
    assert!(
        half["kept"].as_str().unwrap().contains("half.rs") && none["kept"].is_null(),
        "{half} {none}"
    );
    let text = |path: &Value, file: &str| {
        std::fs::read_to_string(Path::new(path.as_str().unwrap()).join(file)).unwrap_or_default()
    };
    assert_eq!(text(&half["path"], "half.rs"), "half");
    let requests = server.requests();
    let last = |path: &str| {
        let mut own = requests.iter().filter(|it| {
            it.header("x-posse-agent")
                .is_some_and(|at| at.starts_with(path))
        });
        String::from_utf8_lossy(&own.next_back().unwrap().body).into_owned()
    };
    // Both worked where they had been, on their own branches.
    for (path, worktree) in [("/main/half-", &half), ("/main/none-", &none)] {
        assert!(
            last(path).contains(worktree["path"].as_str().unwrap()),
            "{}",
            last(path)
        );
    }
    assert!(
        last("/main/half-").contains(half["branch"].as_str().unwrap()),
        "{}",
        last("/main/half-")
    );
    assert!(
        last("/main/none-").contains("has been made again"),
        "{}",
        last("/main/none-")
    );
    let left = lines(&project, &["worktrees", "list", "--json"]);
    assert_eq!(
        left.iter().map(|told| &told["state"]).collect::<Vec<_>>(),
        ["kept"]
    );
}

/// One agent works in a worktree of its own.
pub(crate) const ISOLATED: &str = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
reply = [{ text = "written" }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Write", input = { file_path = "new.txt", content = "hello" } }]
[[rule]]
when.tool = "re:."
reply = [{ text = "It is done." }]
[[rule]]
reply = [{ tool = "Agent", input = { description = "d", prompt = "p", isolation = "worktree", name = "dev" } }]
"#;

// proves FC-02 (part: where work lies)
#[test]
fn the_last_lines_say_where_work_lies_and_how_it_comes_home() {
    let project = repository_with("worktrees-home", ISOLATED);
    let output = project.run(&["-p", "--permission-mode", "acceptEdits", "go"]);
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    assert!(!project.file("new.txt").exists(), "it is elsewhere");
    let [what, home] = told.lines().collect::<Vec<_>>()[..] else {
        panic!("{told}")
    };
    assert!(
        what.starts_with("not in this checkout: work of dev") && what.contains("new.txt"),
        "{told}"
    );
    // The command is pasted as it stands.
    let command = home.strip_prefix("bring it home: ").unwrap();
    let pasted = Command::new("sh")
        .args(["-c", command])
        .current_dir(project.file("."))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "me")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "me@localhost")))
        .output()
        .unwrap();
    assert!(pasted.status.success(), "{command}: {}", stderr(&pasted));
    let brought = std::fs::read_to_string(project.file("new.txt")).unwrap();
    assert_eq!(brought, "hello");
}
