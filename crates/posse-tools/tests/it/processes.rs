//! Programs that run beside posse, by pipes.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_port::clock::SystemClock;
use posse_port::confinement::Tier;
use posse_port::process::{Process, ProcessBoundary, ProcessRequest, Processes as _};
use posse_tools::SystemProcesses;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::shell::carrying;

/// How long a program may take to end by itself in tests that need none of it.
const NONE: Duration = Duration::ZERO;
/// More than any program here needs.
const AMPLE: Duration = Duration::from_secs(20);

fn request(marker: &str, words: &[&str]) -> ProcessRequest {
    ProcessRequest {
        words: words.iter().map(OsString::from).collect(),
        directory: "/".into(),
        marker: marker.into(),
        variables: vec![("GREETING".into(), "a b".into())],
        boundary: ProcessBoundary::None,
        clock: Arc::new(SystemClock::default()),
    }
}

async fn start(marker: &str, words: &[&str]) -> Process {
    let started = SystemProcesses::default().start(request(marker, words));
    started.await.unwrap()
}

#[tokio::test]
async fn a_program_is_talked_to_line_by_line_and_ends_with_its_input() {
    let script = "while read -r line; do echo \"$line, $GREETING\"; done; echo over >&2; exit 3";
    let Process {
        mut input,
        output,
        mut errors,
        control,
        tier,
    } = start("talk", &["sh", "-c", script]).await;
    assert_eq!(tier, Tier::C);
    let mut output = BufReader::new(output).lines();
    for word in ["one", "two"] {
        input
            .write_all(format!("{word}\n").as_bytes())
            .await
            .unwrap();
        let heard = output.next_line().await.unwrap().unwrap();
        assert_eq!(heard, format!("{word}, a b"));
    }
    drop(input);
    let end = control.end(AMPLE).await;
    assert_eq!(end.status.and_then(|status| status.code()), Some(3));
    assert_eq!((end.left, output.next_line().await.unwrap()), (0, None));
    let mut told = String::new();
    errors.read_to_string(&mut told).await.unwrap();
    assert_eq!(told, "over\n");
}

#[tokio::test]
async fn what_does_not_end_is_ended_with_all_that_it_has_started() {
    let script =
        "trap '' TERM; setsid sleep 1000 & (trap '' TERM; echo up; sleep 1000) ; sleep 1000";
    let marker = "stubborn";
    let mut process = start(marker, &["sh", "-c", script]).await;
    process.output.read_exact(&mut [0; 3]).await.unwrap();
    assert!(carrying(&format!("POSSE_CALL={marker}")) >= 3);
    let begun = Instant::now();
    let end = process.control.end(NONE).await;
    assert!(end.left >= 3, "{end:?}");
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert_eq!(carrying(&format!("POSSE_CALL={marker}")), 0);
}

#[tokio::test]
async fn what_is_dropped_is_killed() {
    let marker = "dropped";
    let mut process = start(marker, &["sh", "-c", "echo up; sleep 1000; sleep 1000"]).await;
    process.output.read_exact(&mut [0; 3]).await.unwrap();
    drop(process);
    let begun = Instant::now();
    while carrying(&format!("POSSE_CALL={marker}")) > 0 {
        assert!(begun.elapsed() < AMPLE);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_program_that_cannot_run_says_so() {
    let mut process = start("missing", &["no-such-program-here"]).await;
    process.control.ended().await;
    let end = process.control.end(NONE).await;
    assert_eq!(end.status.and_then(|status| status.code()), Some(127));
    let mut told = String::new();
    process.errors.read_to_string(&mut told).await.unwrap();
    assert!(told.contains("no-such-program-here"), "{told}");
    let nowhere = ProcessRequest {
        directory: "/nowhere".into(),
        ..request("nowhere", &["true"])
    };
    let failed = SystemProcesses::default().start(nowhere).await.unwrap_err();
    assert!(
        failed.to_string().contains("/nowhere is not a directory"),
        "{failed}"
    );
}
