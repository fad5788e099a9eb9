//! Hooks with real programs and servers.

mod http;
mod persistent;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_port::clock::SystemClock;
use posse_port::hooks::{HookCall, HookFailure, HookReturn, HookRunner as _, HookTarget, NoHooks};
use posse_port::process::ProcessBoundary;
use posse_tools::{SystemHooks, SystemProcesses};
use tokio_util::sync::CancellationToken;

use crate::shell::carrying;
use crate::world::{HandClock, World};

/// More than any program here needs.
const AMPLE: Duration = Duration::from_secs(60);

fn hooks() -> SystemHooks {
    SystemHooks::new(SystemProcesses::default(), BTreeMap::new(), None)
}

fn call(marker: &str, target: HookTarget) -> HookCall {
    HookCall {
        target,
        input: "{\"a\":1}".into(),
        directory: "/".into(),
        marker: marker.into(),
        variables: vec![("GREETING".into(), "a b".into())],
        limit: AMPLE,
        boundary: ProcessBoundary::None,
        clock: Arc::new(SystemClock::default()),
        beside: false,
        cancel: CancellationToken::new(),
    }
}

fn program(marker: &str, script: &str) -> HookCall {
    let words = ["sh", "-c", script].map(str::to_owned).into();
    call(marker, HookTarget::Program { words })
}

fn left(marker: &str) -> usize {
    carrying(&format!("POSSE_CALL={marker}"))
}

/// Runs a script, and looks that nothing of it is left.
async fn run(marker: &str, script: &str) -> HookReturn {
    let said = hooks().run(program(marker, script)).await;
    assert_eq!(left(marker), 0, "{script}");
    said
}

#[tokio::test]
async fn a_program_reads_its_input_and_replies() {
    let said = run(
        "hook-talk",
        "cat; pwd; echo \"$GREETING\"; echo over >&2; exit 2",
    )
    .await;
    assert_eq!(said.output, "{\"a\":1}/\na b\n");
    assert_eq!((&*said.errors, said.code), ("over\n", Some(2)));
    assert_eq!(said.failure, None);
    assert!(said.took > Duration::ZERO);
    let half = run("hook-half", "printf '{\"decision\":'").await;
    assert_eq!((&*half.output, half.code), ("{\"decision\":", Some(0)));
}

#[tokio::test]
async fn a_program_that_is_missing_has_an_exit_code() {
    let missing = run("hook-missing", "exec no-such-program-here").await;
    assert_eq!((missing.code, missing.failure), (Some(127), None));
    assert!(missing.errors.contains("no-such-program-here"));
    let nothing = HookTarget::Program { words: Vec::new() };
    let nothing = hooks().run(call("hook-nothing", nothing)).await.failure;
    assert_eq!(
        nothing,
        Some(HookFailure::NotRun("it names no program".into()))
    );
}

#[tokio::test]
async fn a_program_that_a_signal_ends_is_no_reply() {
    let said = run("hook-signal", "echo begun; kill -9 $$").await;
    let killed = HookFailure::Killed("killed by SIGKILL (signal 9)".into());
    assert_eq!((said.code, said.failure), (None, Some(killed)));
    assert_eq!(said.output, "begun\n");
}

#[tokio::test]
async fn a_large_input_need_not_be_read() {
    let large = HookCall {
        input: "x".repeat(1 << 20).into(),
        ..program("hook-unread", "exit 0")
    };
    let said = hooks().run(large.clone()).await;
    assert_eq!((said.code, said.failure), (Some(0), None));
    let words = ["sh", "-c", "wc -c"].map(str::to_owned).into();
    let target = HookTarget::Program { words };
    let counted = hooks().run(HookCall { target, ..large }).await;
    assert_eq!(counted.output.trim(), "1048576");
}

#[tokio::test]
async fn a_program_that_prints_too_much_is_ended() {
    for script in ["yes | head -c 100000000", "yes | head -c 100000000 >&2"] {
        let said = run("hook-floods", script).await;
        assert_eq!(said.failure, Some(HookFailure::TooLong(1 << 20)));
        assert!(said.output.len().max(said.errors.len()) <= 1 << 20);
    }
    let fits = run("hook-fits", "yes | head -c 1048576").await;
    assert_eq!((fits.output.len(), fits.failure), (1 << 20, None));
}

// proves HK-11 (part: no process)
#[tokio::test]
async fn what_a_program_leaves_behind_is_ended_and_not_waited_for() {
    let daemon =
        "(setsid sh -c 'trap \"\" TERM; echo up >&2; sleep 1000; sleep 1000' &) ; echo said";
    let begun = Instant::now();
    let said = run("hook-daemon", daemon).await;
    assert_eq!((&*said.output, said.code), ("said\n", Some(0)));
    assert_eq!(said.failure, None);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

// proves HK-11 (part: no process)
#[tokio::test]
async fn a_program_that_hangs_is_ended_with_all_that_it_has_started() {
    let world = World::new();
    world.write("w/up", "");
    let clock = HandClock::default();
    let script = "trap '' TERM; setsid sleep 1000 & echo begun; echo x >up; sleep 1000; sleep 1000";
    let hangs = HookCall {
        directory: world.path("w"),
        clock: Arc::new(clock.clone()),
        ..program("hook-hangs", script)
    };
    let time = async {
        while world.read("w/up").is_empty() {
            tokio::task::yield_now().await;
        }
        clock.wake(AMPLE).await;
        // How long what ignores SIGTERM is given.
        clock.wake(Duration::ZERO).await;
        clock.wake(Duration::from_millis(300)).await;
        std::future::pending().await
    };
    let said = tokio::select! {
        said = hooks().run(hangs) => said,
        // What has ended by itself is not waited for.
        () = time => unreachable!("time goes on"),
    };
    assert_eq!(said.failure, Some(HookFailure::TimedOut(AMPLE)));
    assert_eq!(left("hook-hangs"), 0);
}

// proves HK-11 (part: stop; no process)
#[tokio::test]
async fn a_stop_ends_a_program_within_a_second() {
    let world = World::new();
    world.write("w/up", "");
    let script = "trap '' TERM; setsid sleep 1000 & echo x >up; sleep 1000; sleep 1000";
    let stopped = HookCall {
        directory: world.path("w"),
        ..program("hook-stop", script)
    };
    let cancel = stopped.cancel.clone();
    let (said, begun) = tokio::join!(hooks().run(stopped), async {
        while world.read("w/up").is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        Instant::now()
    });
    assert_eq!(said.failure, Some(HookFailure::Stopped));
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(left("hook-stop"), 0);
}

#[tokio::test]
async fn a_directory_that_is_gone_is_told() {
    let world = World::new();
    let gone = world.path("w/gone");
    fs::create_dir(&gone).unwrap();
    fs::remove_dir(&gone).unwrap();
    let nowhere = HookCall {
        directory: gone.clone(),
        ..program("hook-nowhere", "true")
    };
    let said = hooks().run(nowhere).await;
    let why = format!("it did not start: {} is not a directory", gone.display());
    assert_eq!(said.failure, Some(HookFailure::NotRun(why)));
}

/// Waiting for a place is not part of a hook's time, but a stop ends it.
#[tokio::test]
async fn programs_wait_for_a_place() {
    let world = World::new();
    world.write("w/up", "");
    let hooks = hooks();
    let places = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    let running: Vec<HookCall> = (0..places)
        .map(|_| HookCall {
            directory: world.path("w"),
            ..program("hook-places", "echo x >>up; sleep 1000")
        })
        .collect();
    let cancels: Vec<_> = running.iter().map(|call| call.cancel.clone()).collect();
    let mut all = tokio::task::JoinSet::new();
    for call in running {
        all.spawn(hooks.run(call));
    }
    while world.read("w/up").lines().count() < places {
        tokio::task::yield_now().await;
    }
    let clock = HandClock::default();
    let waits = HookCall {
        clock: Arc::new(clock.clone()),
        ..program("hook-waits", "echo ran")
    };
    let cancel = waits.cancel.clone();
    let mut waiting = hooks.run(waits);
    tokio::select! {
        biased;
        said = &mut waiting => panic!("{said:?}"),
        () = std::future::ready(()) => {}
    }
    assert_eq!((clock.sleepers(), left("hook-waits")), (0, 0));
    cancel.cancel();
    assert_eq!(waiting.await.failure, Some(HookFailure::Stopped));
    let next = program("hook-next", "echo ran");
    let (said, ()) = tokio::join!(hooks.run(next), async { cancels[0].cancel() });
    assert_eq!(said.output, "ran\n");
    cancels.iter().for_each(CancellationToken::cancel);
    all.join_all().await;
}

#[tokio::test]
async fn callbacks_are_handed_on() {
    let callback = || {
        call(
            "hook-callback",
            HookTarget::Callback {
                id: "a".into(),
                call: None,
            },
        )
    };
    let none = hooks().run(callback()).await.failure;
    let why = "nothing here runs callbacks".into();
    assert_eq!(none, Some(HookFailure::NotRun(why)));
    let hooks = SystemHooks::new(
        SystemProcesses::default(),
        BTreeMap::new(),
        Some(Arc::new(NoHooks)),
    );
    let handed = hooks.run(callback()).await;
    assert_eq!(handed, NoHooks.run(callback()).await);
}
