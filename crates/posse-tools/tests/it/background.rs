//! Bash in the background: read while it runs, told of when it ends, and gone when it is stopped.

use std::fs;
use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_port::tool::{FollowUp, NewRun, RunReport, ToolContext, ToolOutput};
use posse_protocol::RunStatus;
use posse_tools::{Reach, SystemProcesses, ToolsConfig};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::shell::{carrying, marked, named_pipe, pipe, ready};
use crate::world::{HandClock, World, told, tool};

fn background(command: &str) -> Value {
    json!({"command": command, "run_in_background": true})
}

/// What goes on after a call, and what was said of it.
async fn start(world: &World, input: Value) -> (NewRun, String) {
    let ToolOutput { content, then, .. } = world.call("Bash", input).await.unwrap();
    let FollowUp::Runs(run) = then else {
        panic!("nothing goes on: {then:?}")
    };
    (
        *run,
        crate::world::text(ToolOutput {
            content,
            answer: None,
            then: FollowUp::Nothing,
        }),
    )
}

pub(crate) async fn until(mut there: impl FnMut() -> bool) {
    while !there() {
        tokio::task::yield_now().await;
    }
}

// proves BG-14 (part: output files)
#[tokio::test]
async fn a_command_in_the_background_is_read_while_it_runs_and_told_of_when_it_ends() {
    let mut world = World::new();
    let clock = HandClock::default();
    world.context.clock = Arc::new(clock.clone());
    pipe(&world);
    named_pipe(&world, "w/hold");
    let command = "echo first; echo x >ready; read -r _ <hold; echo last; exit 3";
    let (run, said) = start(&world, background(command)).await;
    assert_eq!(run.output, world.path(&format!("spill/{}.output", run.id)));
    assert!(said.contains(&run.id.to_string()), "{said}");
    assert!(said.contains(&run.output.display().to_string()), "{said}");
    assert_eq!(run.description, command);
    let output = run.output.clone();
    let look_on = async {
        ready(&world).await;
        until(|| fs::read(&output).unwrap() == b"first\n").await;
        assert!(
            world
                .ok("Read", json!({"file_path": output}))
                .await
                .contains("first")
        );
        assert_eq!(clock.sleepers(), 0, "there is no time limit");
        // The call is over: what cancels it is nothing to the run.
        world.context.cancel.cancel();
        fs::write(world.path("w/hold"), "").unwrap();
    };
    let (report, ()) = tokio::join!((run.work)(CancellationToken::new()), look_on);
    let expected = RunReport {
        status: RunStatus::Failed,
        summary: "exit code 3".into(),
        result: "first\nlast\n".into(),
    };
    assert_eq!(report, expected);
    assert_eq!(fs::read(&output).unwrap(), b"first\nlast\n");
}

#[tokio::test]
async fn ends_in_the_background_are_told_like_others() {
    let world = World::new();
    let (run, _) = start(
        &world,
        json!({"command": "true", "run_in_background": true, "description": "Tries"}),
    )
    .await;
    assert_eq!(run.description, "Tries");
    let report = (run.work)(CancellationToken::new()).await;
    let (status, summary, result) = (
        report.status,
        report.summary.as_str(),
        report.result.as_str(),
    );
    assert_eq!(
        (status, summary, result),
        (RunStatus::Completed, "exit code 0", "(no output)")
    );
    let (run, _) = start(&world, background("setsid sleep 1000 & seq 1 5000")).await;
    let report = (run.work)(CancellationToken::new()).await;
    assert_eq!(
        report.summary,
        "exit code 0 (1 process was still running when the shell ended; now ended, too)"
    );
    let whole: String = (1..=5000).map(|n| format!("{n}\n")).collect();
    let (note, end) = report.result.split_once('\n').unwrap();
    assert_eq!(end, &whole[whole.len() - 4000..]);
    assert!(
        note.starts_with("[… 19893 of 23893 bytes left out here; all of it is in "),
        "{note}"
    );
    assert_eq!(
        world
            .ok(
                "Bash",
                json!({"command": "echo x", "run_in_background": false})
            )
            .await,
        "x\n"
    );
    assert_eq!(marked(&world), 0);
}

#[tokio::test]
async fn a_time_limit_holds_in_the_background_if_it_is_set() {
    let mut world = World::new();
    pipe(&world);
    let clock = HandClock::default();
    world.context.clock = Arc::new(clock.clone());
    let command = "trap '' TERM; echo begun; echo x >ready; sleep 1000; sleep 1000";
    let input = json!({"command": command, "run_in_background": true, "timeout": 1500});
    let (run, _) = start(&world, input).await;
    let time = async {
        ready(&world).await;
        clock.wake(Duration::from_millis(1500)).await;
        clock.wake(Duration::from_millis(300)).await;
    };
    let (report, ()) = tokio::join!((run.work)(CancellationToken::new()), time);
    assert_eq!(report.status, RunStatus::Failed);
    assert_eq!(
        report.summary,
        "ended after 1.5 s, its time limit; timeout sets another"
    );
    assert_eq!(report.result, "begun\n");
    assert_eq!(marked(&world), 0);
}

// proves BG-15 (part: background commands)
#[tokio::test]
async fn output_files_of_the_background_are_capped_and_say_where() {
    let world = World::new();
    let (run, _) = start(
        &world,
        background("head -c 70000000 /dev/zero | tr '\\0' x"),
    )
    .await;
    let output = run.output.clone();
    let report = (run.work)(CancellationToken::new()).await;
    assert_eq!(report.status, RunStatus::Completed);
    assert!(
        report
            .result
            .contains("of 70000000 bytes left out here; the first 64 MiB of it are in")
    );
    let file = fs::read(output).unwrap();
    assert!(file.len() <= 64 << 20);
    let at = (64 << 20) - 100;
    assert_eq!(
        String::from_utf8_lossy(&file[at..]),
        format!("\n[posse cut the output here, at byte {at}]\n")
    );
    assert!(file[..at].iter().all(|byte| *byte == b'x'));
}

/// Leaves its session, ignores being asked to end, and loses its parent; and its parent ignores it, too.
const STUBBORN: &str = "echo begun; (setsid sh -c 'trap \"\" TERM; echo x >ready; sleep 1000; sleep 1000' &); \
                        trap '' TERM; sleep 1000; sleep 1000";

#[tokio::test]
async fn a_run_that_is_stopped_is_gone_with_all_it_started() {
    let world = World::new();
    pipe(&world);
    let (run, _) = start(&world, background(STUBBORN)).await;
    let cancel = CancellationToken::new();
    let stop = async {
        ready(&world).await;
        cancel.cancel();
        Instant::now()
    };
    let (report, stopped) = tokio::join!((run.work)(cancel.clone()), stop);
    let took = stopped.elapsed();
    assert_eq!(marked(&world), 0);
    let summary = "interrupted; all processes it had started were ended".into();
    assert_eq!(
        report,
        RunReport {
            status: RunStatus::Killed,
            summary,
            result: "begun\n".into()
        }
    );
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn a_run_that_nobody_follows_is_killed() {
    let world = World::new();
    pipe(&world);
    let (run, _) = start(&world, background(STUBBORN)).await;
    ready(&world).await;
    until(|| marked(&world) >= 3).await;
    drop(run);
    // Killed, but perhaps not quite gone: their ends are not waited for by who drops.
    until(|| marked(&world) == 0).await;
}

#[tokio::test]
async fn many_that_are_stopped_at_once_are_gone_as_soon_as_one() {
    const MANY: usize = 84;
    let world = World::new();
    pipe(&world);
    // Open for writing, too, so that it does not end between two that write.
    let mut up = fs::File::options()
        .read(true)
        .write(true)
        .open(world.path("w/ready"))
        .unwrap();
    let cancel = CancellationToken::new();
    let bash = tool("Bash", Reach::Public);
    let marker = |n: usize| format!("{}-{n}", world.context.marker);
    let mut runs = tokio::task::JoinSet::new();
    for n in 0..MANY {
        let intent = world.intent("Bash", &background(STUBBORN)).unwrap();
        let context = ToolContext {
            marker: marker(n),
            subject: intent.subject,
            ..world.context.clone()
        };
        let FollowUp::Runs(run) = bash
            .run((&background(STUBBORN)).into(), context)
            .await
            .unwrap()
            .then
        else {
            panic!("it goes on")
        };
        runs.spawn((run.work)(cancel.clone()));
    }
    let all_up = tokio::task::spawn_blocking(move || up.read_exact(&mut [0; 2 * MANY]).unwrap());
    all_up.await.unwrap();
    let begun = Instant::now();
    cancel.cancel();
    let reports = runs.join_all().await;
    let took = begun.elapsed();
    println!("{MANY} families were gone after {took:?}");
    assert!(
        reports
            .iter()
            .all(|report| report.status == RunStatus::Killed)
    );
    assert_eq!(
        (0..MANY)
            .map(|n| carrying(&format!("POSSE_CALL={}", marker(n))))
            .sum::<usize>(),
        0
    );
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn where_nothing_may_go_on_the_model_does_not_hear_of_it() {
    let world = World::new();
    let bash = |background| {
        let means = ToolsConfig {
            reach: Reach::Public,
            background,
            processes: SystemProcesses::default(),
            gate: None,
        };
        posse_tools::all(means).get("Bash").unwrap()
    };
    let spec = |background| {
        let spec = bash(background).spec();
        format!("{} {}", spec.description, spec.input_schema.get())
    };
    assert!(spec(true).contains("run_in_background"));
    assert!(!spec(false).contains("background"));
    let refused = bash(false).intent(&(&background("true")).into(), &world.context.workspace);
    assert!(told(refused).contains("unknown field `run_in_background`"));
}
