//! Bash: what it tells, and that nothing outlives its call.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_port::tool::{Subject, VARIABLES};
use posse_tools::Reach;
use rustix::fs::{CWD, FileType, Mode};
use serde_json::json;

use crate::background::until;
use crate::world::{HandClock, World, told, tool};

/// A pipe that a command writes to when it is where the test wants it.
pub(crate) fn pipe(world: &World) {
    named_pipe(world, "w/ready");
}

pub(crate) fn named_pipe(world: &World, path: &str) {
    let path = world.path(path);
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

pub(crate) async fn ready(world: &World) {
    let path = world.path("w/ready");
    tokio::task::spawn_blocking(move || fs::read(path).unwrap())
        .await
        .unwrap();
}

/// How many living processes carry the world's marker.
pub(crate) fn marked(world: &World) -> usize {
    carrying(&format!("POSSE_CALL={}", world.context.marker))
}

/// How many have this in their environment.
pub(crate) fn carrying(entry: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let environments =
        processes.filter_map(|process| fs::read(process.path().join("environ")).ok());
    environments
        .filter(|all| {
            all.split(|byte| *byte == 0)
                .any(|one| one == entry.as_bytes())
        })
        .count()
}

#[tokio::test]
async fn commands_read_the_variables_of_hooks_first() {
    let world = World::new();
    let directory = world.context.workspace.variables();
    let set = |hook: PathBuf, text: &str| {
        fs::create_dir_all(&hook).unwrap();
        fs::write(hook.join(VARIABLES), text).unwrap();
    };
    set(directory.join("b"), "export WORD=\"$WORD b\"");
    set(directory.join("a"), "export WORD=\"it's a\"\n");
    let theirs = world.context.workspace.repository_variables();
    set(theirs.join("z"), "export WORD=their");
    // The world has no sandbox, so that nothing else would hold the hook either.
    let command = json!({"command": "printenv WORD"});
    assert_eq!(world.ok("Bash", command).await, "it's a b\n");
    fs::remove_dir_all(&directory).unwrap();
    let command = json!({"command": "printenv WORD"});
    assert_eq!(world.ok("Bash", command).await, "their\n");
}

// proves FC-01 (part: bare repositories)
/// A cloned directory can hold what git takes for a repository, with settings that run programs.
#[tokio::test]
async fn git_does_not_follow_a_repository_hidden_in_a_directory() {
    let world = World::new();
    for (path, text) in [
        ("HEAD", "ref: refs/heads/main\n"),
        (
            "config",
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\t\
             fsmonitor = \"touch PWNED; false\"\n",
        ),
        ("objects/x", ""),
        ("refs/x", ""),
    ] {
        let path = world.path("w/pkg").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let command = "cd pkg; git status 2>&1; ls";
    let said = world.ok("Bash", json!({"command": command})).await;
    assert!(said.contains("cannot use bare repository"), "{said}");
    assert!(!said.contains("PWNED"), "{said}");
}

#[tokio::test]
async fn output_comes_in_order_and_ends_are_told() {
    let world = World::new();
    let bash = |command: &str| json!({"command": command});
    let mixed = "echo one; echo two >&2; echo three; pwd";
    let expected = format!("one\ntwo\nthree\n{}\n", world.path("w").display());
    assert_eq!(world.ok("Bash", bash(mixed)).await, expected);
    assert_eq!(world.ok("Bash", bash("true")).await, "(no output)");
    assert_eq!(
        world.told("Bash", bash("exit 4")).await,
        "(no output)\nexit code 4"
    );
    assert_eq!(
        world
            .ok("Bash", bash("cat; [[ -z $(cat) ]] && echo none"))
            .await,
        "none\n",
        "no input"
    );
    assert_eq!(
        world.told("Bash", bash("echo x; exit 3")).await,
        "x\nexit code 3"
    );
    assert_eq!(
        world.told("Bash", bash("printf x; kill -9 $$")).await,
        "x\nkilled by SIGKILL (signal 9)"
    );
    assert_eq!(
        world
            .told("Bash", bash("sh -c 'kill -11 $$'; exit $?"))
            .await
            .lines()
            .last(),
        Some("exit code 139 (SIGSEGV)")
    );
    assert_eq!(
        world.ok("Bash", bash("printf 'a\\377b'")).await,
        "a\u{fffd}b"
    );
    assert_eq!(
        world.ok("Bash", bash("echo $POSSE_CALL")).await,
        format!("{}\n", world.context.marker)
    );
}

#[test]
fn the_intent_is_the_command() {
    let world = World::new();
    let intent = world
        .intent("Bash", &json!({"command": "make\nmake test"}))
        .unwrap();
    assert_eq!(intent.subject, Subject::runs("make\nmake test"));
    assert_eq!(intent.title, "$ make…");
    assert!(!intent.read_only && !intent.beside_others);
    assert!(
        told(world.intent("Bash", &json!({"command": "x", "timeout": 600_001})))
            .contains("at most")
    );
    assert!(
        told(world.intent("Bash", &json!({"command": "x", "timeout": 0}))).contains("more than 0")
    );
}

#[tokio::test]
async fn a_shell_leads_its_session_and_is_bash() {
    let world = World::new();
    let command = "read -r pid name state parent group session rest </proc/$$/stat; \
                   echo $((pid - $$)) $((group - $$)) $((session - $$)) $0 ${BASH_VERSION:+yes}";
    assert_eq!(
        world.ok("Bash", json!({"command": command})).await,
        "0 0 0 bash yes\n"
    );
}

/// Runs the test below on a terminal, of which it says itself that it has one.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "stands for a posse that a user starts"
)]
async fn commands_have_no_terminal_even_if_posse_has() {
    let this = std::env::current_exe().unwrap();
    let command = format!(
        "'{}' --exact shell::on_a_terminal --ignored --nocapture",
        this.display()
    );
    let mut script = std::process::Command::new("script");
    script
        .args(["-qec", &command, "/dev/null"])
        .stdin(std::process::Stdio::null());
    let output = script.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("it has a terminal"),
        "{told}"
    );
    assert!(!told.contains("owned"), "{told}");
}

#[tokio::test]
#[ignore = "runs on a terminal, which the test above makes"]
async fn on_a_terminal() {
    if fs::File::open("/dev/tty").is_err() {
        return;
    }
    println!("it has a terminal");
    let world = World::new();
    let told = world
        .told("Bash", json!({"command": "printf owned >/dev/tty"}))
        .await;
    assert!(
        told.contains("/dev/tty: No such device or address"),
        "{told}"
    );
    let told = world
        .told("Bash", json!({"command": "read -r word </dev/tty"}))
        .await;
    assert!(
        told.contains("/dev/tty: No such device or address"),
        "{told}"
    );
}

// proves TU-05 (part: tools; process groups)
#[tokio::test]
async fn a_cancelled_command_is_gone_within_a_second_with_all_it_started() {
    let world = World::new();
    pipe(&world);
    // One that ignores being asked, in a session of its own, whose parent is gone; one that hides its mark.
    let command = "echo begun; (setsid sh -c 'trap \"\" TERM; sleep 1000 & echo x >ready; sleep 1000' &); \
                   env -i setsid sleep 1000 & trap '' TERM; sleep 1000; sleep 1000";
    let run = world.told("Bash", json!({"command": command}));
    let cancel = async {
        ready(&world).await;
        // One of them says that it is ready; the others may not be there yet.
        until(|| marked(&world) >= 4).await;
        world.context.cancel.cancel();
        Instant::now()
    };
    let (told, cancelled) = tokio::join!(run, cancel);
    let took = cancelled.elapsed();
    assert_eq!(
        told,
        "begun\ninterrupted; all processes it had started were ended"
    );
    assert_eq!(marked(&world), 0);
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn time_is_up_when_the_clock_says_so() {
    let mut world = World::new();
    pipe(&world);
    let clock = HandClock::default();
    world.context.clock = Arc::new(clock.clone());
    let command = "trap '' TERM; echo begun; echo x >ready; sleep 1000; sleep 1000";
    for (input, limit) in [
        (json!({"command": command}), Duration::from_secs(120)),
        (
            json!({"command": command, "timeout": 1500}),
            Duration::from_millis(1500),
        ),
    ] {
        let time = async {
            ready(&world).await;
            clock.wake(limit).await;
            clock.wake(Duration::from_millis(300)).await;
        };
        let (told, ()) = tokio::join!(world.told("Bash", input), time);
        let limit = limit.as_secs_f64();
        assert_eq!(
            told,
            format!("begun\nended after {limit} s, its time limit; timeout sets another")
        );
        assert_eq!(marked(&world), 0);
    }
}

#[tokio::test]
async fn what_is_left_running_is_ended_and_said_so() {
    let world = World::new();
    let told = world
        .ok(
            "Bash",
            json!({"command": "sleep 1000 & setsid sleep 1000 & echo done"}),
        )
        .await;
    assert_eq!(
        told,
        "done\n(2 processes were still running when the shell ended; now ended, too)"
    );
    assert_eq!(marked(&world), 0);
    let silent = world.ok("Bash", json!({"command": "sleep 1000 &"})).await;
    let ended = "(1 process was still running when the shell ended; now ended, too)";
    assert_eq!(silent, format!("(no output)\n{ended}"));
    let tee = world
        .ok("Bash", json!({"command": "echo through > >(cat)"}))
        .await;
    assert_eq!(tee, "through\n", "what is just ending may end");
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_leaves_nothing() {
    let world = World::new();
    pipe(&world);
    let run = world.call(
        "Bash",
        json!({"command": "setsid sh -c 'echo x >ready; sleep 1000'"}),
    );
    tokio::select! {
        _ = run => panic!("it sleeps"),
        () = ready(&world) => {}
    }
    // Killed, but perhaps not quite gone: their ends are not waited for by who drops.
    while marked(&world) > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "stands for what a dead posse has left"
)]
async fn what_a_dead_call_left_is_ended() {
    let world = World::new();
    let start = |marker: &str| {
        let mut command = std::process::Command::new("sleep");
        command
            .arg("1000")
            .env("POSSE_CALL", marker)
            .spawn()
            .unwrap()
    };
    let mut left = start(&world.context.marker);
    let mut other = start(&format!("{}0", world.context.marker));
    tool("Bash", Reach::Public)
        .abandon(world.context.marker.clone())
        .await;
    assert_eq!(left.wait().unwrap().signal(), Some(15));
    assert_eq!(
        other.try_wait().unwrap(),
        None,
        "another call's are left alone"
    );
    other.kill().unwrap();
    other.wait().unwrap();
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_and_kept_in_a_file() {
    let world = World::new();
    let told = world.ok("Bash", json!({"command": "seq 1 20000"})).await;
    let whole: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    let file = world.path(&format!("spill/{}.txt", world.context.marker));
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
    let note = format!(
        "[… {} of {} bytes left out here; all of it is in {} …]",
        whole.len() - 30_000,
        whole.len(),
        file.display()
    );
    let (start, end) = told.split_once(&format!("\n{note}\n")).unwrap();
    assert_eq!(
        (start, end),
        (&whole[..15_000], &whole[whole.len() - 15_000..])
    );
    world.ok("Read", json!({"file_path": file})).await;
    let fresh = World::new();
    fs::remove_dir(fresh.path("spill")).unwrap();
    fresh
        .ok("Bash", json!({"command": "umask 0; seq 1 20000"}))
        .await;
    let mode = |path: &str| fs::metadata(fresh.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        mode("spill"),
        0o700,
        "the directory is made when it is needed"
    );
    assert_eq!(mode(&format!("spill/{}.txt", fresh.context.marker)), 0o600);
    let short = World::new();
    short
        .ok(
            "Bash",
            json!({"command": "head -c 30000 /dev/zero | tr '\\0' x"}),
        )
        .await;
    assert_eq!(
        fs::read_dir(short.path("spill")).unwrap().count(),
        0,
        "what is told needs no file"
    );
}

// proves BG-15 (part: commands)
#[tokio::test]
async fn output_files_are_capped_and_say_where() {
    let world = World::new();
    let told = world
        .ok(
            "Bash",
            json!({"command": "head -c 70000000 /dev/zero | tr '\\0' x"}),
        )
        .await;
    assert!(
        told.contains("of 70000000 bytes left out here; the first 64 MiB of it are in"),
        "{}",
        told.len()
    );
    let file = fs::read(world.path(&format!("spill/{}.txt", world.context.marker))).unwrap();
    assert!(file.len() <= 64 << 20);
    let at = (64 << 20) - 100;
    let cut = String::from_utf8_lossy(&file[at..]);
    assert_eq!(
        cut,
        format!("\n[posse cut the output here, at byte {at}]\n")
    );
    assert!(file[..at].iter().all(|byte| *byte == b'x'));
}
