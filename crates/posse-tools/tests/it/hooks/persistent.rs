//! Hooks that stay.

use super::*;

/// Answers each line with the number of its process and the line.
const ECHO: &str = "while read -r line; do echo \"$$ $line\"; done";

fn stays(marker: &str, script: &str) -> HookCall {
    let words = ["sh", "-c", script].map(str::to_owned).into();
    call(marker, HookTarget::Persistent { words })
}

fn saying(call: &HookCall, input: &str) -> HookCall {
    HookCall {
        input: input.to_owned().into(),
        ..call.clone()
    }
}

/// Returns the process and the line that an answer names.
fn echoed(said: &HookReturn) -> (String, String) {
    assert_eq!((said.code, &said.failure), (Some(0), &None), "{said:?}");
    let (process, line) = said.output.split_once(' ').unwrap();
    (process.to_owned(), line.to_owned())
}

/// Waits until nothing with a marker is left.
async fn gone(marker: &str) {
    let begun = Instant::now();
    while left(marker) > 0 {
        assert!(begun.elapsed() < AMPLE);
        tokio::task::yield_now().await;
    }
}

/// Waits until a process has closed its files. It has no environment before that.
async fn closed(process: &str) {
    let begun = Instant::now();
    let is_open = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        !matches!(state, None | Some('Z' | 'X'))
    };
    while is_open() {
        assert!(begun.elapsed() < AMPLE);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn one_process_answers_line_by_line() {
    let hooks = hooks();
    let call = stays("stays-lines", ECHO);
    let first = echoed(&hooks.run(saying(&call, "{\"a\":\n1}")).await);
    let second = echoed(&hooks.run(saying(&call, "{}")).await);
    assert_eq!((&*first.1, &*second.1), ("{\"a\": 1}", "{}"));
    assert_eq!(first.0, second.0);
    let elsewhere = HookCall {
        directory: "/tmp".into(),
        ..call.clone()
    };
    assert_ne!(echoed(&hooks.run(elsewhere).await).0, first.0);
    hooks.end().await;
    assert_eq!(left("stays-lines"), 0);
    let again = echoed(&hooks.run(call).await);
    assert_ne!(again.0, first.0);
    drop(hooks);
    gone("stays-lines").await;
}

#[tokio::test]
async fn a_thousand_calls_are_answered_in_order() {
    let hooks = hooks();
    let call = stays("stays-many", "cat -u");
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..1000 {
        calls.spawn(hooks.run(saying(&call, &number.to_string())));
    }
    let begun = Instant::now();
    let mut answers = Vec::new();
    while let Some(said) = calls.join_next().await {
        answers.push(said.unwrap().output.parse::<usize>().unwrap());
    }
    println!("1,000 calls: {:?}", begun.elapsed());
    assert_eq!(answers, (0..1000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_process_that_dies_is_started_anew() {
    let hooks = hooks();
    let dies =
        "while read -r line; do case $line in die) echo why >&2; exit 3;; *) echo $$;; esac; done";
    let call = stays("stays-dies", dies);
    let first = hooks.run(saying(&call, "{}")).await.output;
    let died = hooks.run(saying(&call, "die")).await;
    let why = "it ended without an answer (exit code 3)".to_owned();
    assert_eq!(died.failure, Some(HookFailure::NotRun(why)));
    assert_eq!(died.errors, "why\n");
    let next = hooks.run(saying(&call, "{}")).await.output;
    assert!(!next.is_empty() && next != first);
    // It may die between calls, and say its last with its end.
    let once = stays("stays-once", "read -r line; echo \"$$ $line\"");
    let one = echoed(&hooks.run(saying(&once, "a")).await);
    closed(&one.0).await;
    let other = echoed(&hooks.run(saying(&once, "b")).await);
    assert_eq!((&*one.1, &*other.1), ("a", "b"));
}

#[tokio::test]
async fn a_process_that_floods_is_ended() {
    let hooks = hooks();
    let call = stays("stays-floods", "read -r line; yes | tr -d '\\n'");
    let said = hooks.run(call).await;
    assert_eq!(said.failure, Some(HookFailure::TooLong(1 << 20)));
    assert_eq!(left("stays-floods"), 0);
    // Errors do not hold it up.
    let script = "read -r line; yes | head -c 5000000 >&2; echo done; cat >/dev/null";
    let complains = hooks.run(stays("stays-complains", script)).await;
    assert_eq!((&*complains.output, complains.code), ("done", Some(0)));
    assert!(complains.errors.len() <= 1 << 20);
}

// proves HK-11 (part: stop; no process)
#[tokio::test]
async fn a_late_answer_is_not_that_of_the_next_call() {
    let hooks = hooks();
    let world = World::new();
    world.write("w/asked", "");
    let slow = "while read -r line; do case $line in slow) echo x >>asked; sleep 1000;; esac; \
                echo \"$$ $line\"; done";
    let call = HookCall {
        directory: world.path("w"),
        ..stays("stays-slow", slow)
    };
    let first = echoed(&hooks.run(saying(&call, "a")).await);
    let clock = HandClock::default();
    let late = HookCall {
        clock: Arc::new(clock.clone()),
        ..saying(&call, "slow")
    };
    let asked = async |times: usize| {
        while world.read("w/asked").lines().count() < times {
            tokio::task::yield_now().await;
        }
    };
    let (said, ()) = tokio::join!(hooks.run(late), async {
        asked(1).await;
        clock.wake(AMPLE).await;
    });
    assert_eq!(said.failure, Some(HookFailure::TimedOut(AMPLE)));
    assert_eq!(left("stays-slow"), 0);
    let second = echoed(&hooks.run(saying(&call, "b")).await);
    assert_eq!(second.1, "b");
    assert_ne!(second.0, first.0);
    // One that waits for its turn is stopped without harm.
    let (held, waits) = (saying(&call, "slow"), saying(&call, "c"));
    let waits = HookCall {
        cancel: CancellationToken::new(),
        ..waits
    };
    let (held_cancel, waits_cancel) = (held.cancel.clone(), waits.cancel.clone());
    let (held, waits, ()) = tokio::join!(hooks.run(held), hooks.run(waits), async {
        asked(2).await;
        waits_cancel.cancel();
        held_cancel.cancel();
    });
    assert_eq!(held.failure, Some(HookFailure::Stopped));
    assert_eq!(waits.failure, Some(HookFailure::Stopped));
    assert_eq!(left("stays-slow"), 0);
}

#[tokio::test]
async fn a_process_that_is_not_called_for_long_is_ended() {
    let hooks = hooks();
    let clock = HandClock::default();
    let call = HookCall {
        clock: Arc::new(clock.clone()),
        ..stays("stays-idle", ECHO)
    };
    echoed(&hooks.run(call.clone()).await);
    echoed(&hooks.run(call).await);
    assert_eq!(left("stays-idle"), 1);
    clock.wake(Duration::from_secs(600)).await;
    clock.wake(Duration::ZERO).await;
    gone("stays-idle").await;
}
