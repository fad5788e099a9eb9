//! What the guardian does when posse is gone. That it is there, posse's own tests show.

use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use posse_tools::run_watchdog;

use crate::shell::carrying;

const MANY: usize = 100;
/// A group that nobody is in.
const NOBODYS: &str = "0";

/// A posse that is gone.
fn nobody() -> impl AsFd {
    UnixStream::pair().unwrap().0
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "stands for what a dead posse has left"
)]
fn all_that_carries_the_mark_is_ended_and_nothing_else() {
    let (mut up, tell) = io::pipe().unwrap();
    let start = |mark: &str| -> Child {
        let mut command = Command::new("setsid");
        command.args([
            "sh",
            "-c",
            "trap '' TERM HUP INT; echo x; exec >/dev/null; sleep 1000; sleep 1000",
        ]);
        command
            .env("POSSE_HOST", mark)
            .stdout(tell.try_clone().unwrap())
            .stdin(Stdio::null());
        command.spawn().unwrap()
    };
    let mine = "0197f000-0000-7000-8000-000000000001";
    let other = "0197f000-0000-7000-8000-000000000002";
    let mut marked: Vec<Child> = (0..MANY).map(|_| start(mine)).collect();
    let mut unmarked = start(other);
    up.read_exact(&mut [0; 2 * (MANY + 1)]).unwrap();
    let begun = Instant::now();
    assert_eq!(
        run_watchdog(&[mine.into(), NOBODYS.into()], nobody()),
        Some(())
    );
    let took = begun.elapsed();
    println!("{MANY} were gone after {took:?}");
    assert_eq!(carrying(&format!("POSSE_HOST={mine}")), 0);
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(
        marked
            .iter_mut()
            .all(|child| child.wait().unwrap().signal() == Some(9))
    );
    assert!(
        carrying(&format!("POSSE_HOST={other}")) > 0,
        "others are left alone"
    );
    run_watchdog(&[other.into(), NOBODYS.into()], nobody());
    unmarked.wait().unwrap();
}

#[test]
fn who_is_no_guardian_is_told_so() {
    assert_eq!(run_watchdog(&[], nobody()), None);
    assert_eq!(run_watchdog(&["the door".into()], nobody()), None);
    // It must not be talked into ending somebody else's cgroup.
    let id = "0197f000-0000-7000-8000-000000000003";
    assert_eq!(
        run_watchdog(
            &[id.into(), "/sys/fs/cgroup".into(), NOBODYS.into()],
            nobody()
        ),
        Some(())
    );
    assert_eq!(
        run_watchdog(&[id.into(), "/sys/fs/cgroup".into()], nobody()),
        None
    );
}

/// A command that was just started is in posse's group for a moment, and so is whoever has started posse.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "stands for what a dead posse has left"
)]
fn who_has_started_posse_is_left_alone() {
    let mut starter = Command::new("sleep")
        .arg("1000")
        .process_group(0)
        .spawn()
        .unwrap();
    let group = starter.id().to_string();
    let id = "0197f000-0000-7000-8000-000000000004";
    let mut command = Command::new("sleep");
    command
        .arg("1000")
        .env("POSSE_HOST", id)
        .process_group(starter.id().cast_signed());
    let mut started = command.spawn().unwrap();
    assert_eq!(run_watchdog(&[id.into(), group.into()], nobody()), Some(()));
    assert_eq!(started.wait().unwrap().signal(), Some(9));
    assert!(starter.try_wait().unwrap().is_none(), "it was ended");
    starter.kill().unwrap();
    starter.wait().unwrap();
}
