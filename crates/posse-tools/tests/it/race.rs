//! A directory that is swapped for a link, again and again, while file tools use it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use posse_port::tool::ToolError;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::world::World;

/// What came of the tries.
#[derive(Debug, Default)]
struct Tally {
    done: u64,
    refused: u64,
    /// Refused at the open: the swap fell between the look and the open.
    caught: u64,
    escaped: u64,
    swaps: u64,
}

/// Swaps two names until it is dropped.
pub(crate) struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapper {
    pub(crate) fn start(one: PathBuf, other: PathBuf) -> Self {
        let (stop, swaps) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&swaps));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        Self {
            stop,
            swaps,
            thread: Some(thread),
        }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Calls a tool on `d/…` while `d` is a directory and a link to outside by turns, until there were
/// `least` tries and swaps, and enough of either end.
async fn race(tool: &str, least: u64) -> Tally {
    let world = World::in_memory();
    // For Edit, both are alike: then nothing but the roots protects the one outside.
    let outside = if tool == "Edit" { "one" } else { "outside" };
    world.write("w/d/f", if tool == "Edit" { "one" } else { "inside" });
    world.write("out/f", outside);
    world.link("w/l", world.path("out"));
    world.ok("Read", json!({"file_path": "d/f"})).await;
    let mut tally = Tally::default();
    let swapper = Swapper::start(world.path("w/d"), world.path("w/l"));
    let mut tries = 0;
    let enough = least / 100;
    while tries < least
        || swapper.swaps.load(Ordering::Relaxed) < least
        || tally.done < enough
        || tally.refused < enough
    {
        tries += 1;
        match world.call(tool, input(tool, tries, tally.done)).await {
            Ok(output) => {
                tally.done += 1;
                tally.escaped += u64::from(format!("{output:?}").contains("outside"));
            }
            Err(ToolError::Tell(told)) => {
                tally.refused += 1;
                tally.caught += u64::from(told.contains("meanwhile"));
            }
            Err(stop) => panic!("{stop}"),
        }
        if tool == "Write" && tries.is_multiple_of(1000) {
            for directory in ["w/d", "w/l"] {
                clear(&world, directory);
            }
        }
    }
    tally.swaps = swapper.swaps.load(Ordering::Relaxed);
    drop(swapper);
    tally.escaped += fs::read_dir(world.path("out")).unwrap().count() as u64 - 1;
    tally.escaped += u64::from(world.read("out/f") != outside);
    tally
}

/// Removes what was written inside; what was written outside stays to be counted.
fn clear(world: &World, directory: &str) {
    let Ok(real) = world.path(directory).canonicalize() else {
        return;
    };
    for entry in fs::read_dir(&real).into_iter().flatten().flatten() {
        let inside = !entry.path().starts_with(world.path("out")) && real != world.path("out");
        if inside && entry.file_name().to_string_lossy().starts_with('n') {
            // By the real name, which the swap may have given to the link meanwhile.
            let handle = rustix::fs::openat2(
                CWD,
                &real,
                rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY,
                rustix::fs::Mode::empty(),
                rustix::fs::ResolveFlags::NO_SYMLINKS,
            );
            if let Ok(handle) = handle {
                let _ =
                    rustix::fs::unlinkat(handle, entry.file_name(), rustix::fs::AtFlags::empty());
            }
        }
    }
}

fn input(tool: &str, tries: u64, done: u64) -> Value {
    match tool {
        "Read" => json!({"file_path": "d/f"}),
        "Write" => json!({"file_path": format!("d/n{tries}"), "content": "x"}),
        // To and fro, so that the file is as the one outside again and again.
        _ if done.is_multiple_of(2) => {
            json!({"file_path": "d/f", "old_string": "one", "new_string": "two"})
        }
        _ => json!({"file_path": "d/f", "old_string": "two", "new_string": "one"}),
    }
}

fn check(tally: &Tally, least: u64) {
    assert_eq!(tally.escaped, 0, "{tally:?}");
    assert!(tally.swaps >= least, "{tally:?}");
}

async fn short(tool: &str) {
    check(&race(tool, 3000).await, 3000);
}

// proves PE-07 (part: symlinks)
#[tokio::test]
async fn read_never_follows_a_swapped_link() {
    short("Read").await;
}

// proves PE-07 (part: symlinks)
// corpus C154
#[tokio::test]
async fn write_never_follows_a_swapped_link() {
    short("Write").await;
}

// proves PE-07 (part: symlinks)
#[tokio::test]
async fn edit_never_follows_a_swapped_link() {
    short("Edit").await;
}

#[tokio::test]
#[ignore = "minutes; cargo xtask runs it"]
async fn race_full() {
    for tool in ["Read", "Write", "Edit"] {
        let start = Instant::now();
        let tally = race(tool, 100_000).await;
        println!("{tool}: {tally:?} in {:?}", start.elapsed());
        check(&tally, 100_000);
        assert!(tally.caught > 0, "no swap fell into the gap: {tally:?}");
    }
}
