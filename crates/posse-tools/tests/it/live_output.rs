//! What a command prints is shown while it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use posse_port::tool::{LiveOutput, OutputViewers};
use serde_json::json;

use crate::world::World;

/// Somebody who watches, or has left.
#[derive(Default)]
struct Watcher {
    is_gone: AtomicBool,
    shown: Mutex<Vec<(String, u64)>>,
}

impl OutputViewers for Watcher {
    fn is_watched(&self) -> bool {
        !self.is_gone.load(Ordering::Acquire)
    }

    fn show(&self, text: String, skipped: u64) {
        self.shown.lock().unwrap().push((text, skipped));
    }
}

fn watched() -> (World, Arc<Watcher>) {
    let (mut world, watcher) = (World::new(), Arc::<Watcher>::default());
    world.context.output = LiveOutput::to(watcher.clone());
    (world, watcher)
}

// proves WA-05 (part: bounded; tail)
#[tokio::test]
async fn a_flood_is_shown_in_bounded_pieces_up_to_its_end() {
    // Whole lines of seven bytes.
    const ALL: u64 = 42_000_000;
    let (world, watcher) = watched();
    let begun = std::time::Instant::now();
    let command = format!("yes äöü | head -c {ALL}; echo; echo the end");
    world.ok("Bash", json!({ "command": command })).await;
    let pauses = begun.elapsed().as_millis() as usize / 50;
    let shown = std::mem::take(&mut *watcher.shown.lock().unwrap());
    let bytes = |(text, skipped): &(String, u64)| text.len() as u64 + skipped;
    assert!(shown.iter().all(|(text, _)| text.len() <= 16 << 10));
    assert!(!shown.iter().any(|(text, _)| text.contains('\u{fffd}')));
    assert!(shown.len() <= pauses + 2, "{} in {pauses}", shown.len());
    let told: u64 = shown.iter().map(bytes).sum();
    assert_eq!(
        told,
        ALL + "\nthe end\n".len() as u64,
        "all is accounted for"
    );
    assert!(shown.last().unwrap().0.ends_with("\nthe end\n"));
}

// proves WA-05 (part: nobody)
#[tokio::test]
async fn nothing_is_shown_while_nobody_watches() {
    let (world, watcher) = watched();
    watcher.is_gone.store(true, Ordering::Release);
    let told = world.ok("Bash", json!({"command": "echo a; echo b"})).await;
    assert_eq!(told, "a\nb\n");
    assert_eq!(*watcher.shown.lock().unwrap(), []);
}
