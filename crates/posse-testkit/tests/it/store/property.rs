//! Random histories, right and wrong, on a real store and on the model of one: both must agree on what
//! became of each step, on all that can be read, and on what each host must be told.
//!
//! `POSSE_SEED` is the seed; whatever failed is printed with it, made as short as can be.

mod draft;
mod played;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use posse_testkit::store_contract::Open;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::Directory;
use played::Played;

/// The seed that was asked for, or a fixed one: a red run is red again.
#[expect(clippy::disallowed_methods, reason = "whoever looks for a failure again says which")]
fn seed() -> u64 {
    std::env::var("POSSE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// Plays so many histories of so many deeds on stores that `with` makes.
#[expect(clippy::print_stdout, reason = "the seed, and how much was compared")]
fn histories(name: &str, (count, length): (u32, usize), with: impl Fn(&dyn Fn(Open<'_>))) {
    let seed = seed();
    println!("{name}: POSSE_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config =
        Config { cases: count, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
    let compared = AtomicUsize::new(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let played =
        TestRunner::new_with_rng(config, rng).run(&vec(weighted(0.999, draft::deeds()), length), |deeds| {
            // Each can shrink to none at all, so that what fails becomes short.
            let deeds: Vec<_> = deeds.into_iter().flatten().collect();
            with(&|open| runtime.block_on(Played::all(open, &deeds)));
            compared.fetch_add(deeds.len(), Ordering::Relaxed);
            Ok(())
        });
    if let Err(error) = played {
        panic!("POSSE_SEED={seed}: {error}");
    }
    println!("{name}: {count} histories, {} deeds compared", compared.into_inner());
}

fn in_memory(size: (u32, usize)) {
    histories("memory", size, |play| {
        let memory = posse_store::Sqlite::in_memory().unwrap();
        play(&|| Arc::new(memory.another_host().unwrap()));
    });
}

fn in_a_file(size: (u32, usize)) {
    histories("file", size, |play| {
        let directory = Directory::new();
        play(&|| directory.open());
    });
}

// proves SM-05 (open: a crash in the middle of a commit)
// proves SM-08
// proves TK-02
// proves TK-03
#[test]
fn memory_does_what_the_model_does() {
    in_memory((64, 60));
}

#[test]
fn a_file_does_what_the_model_does() {
    in_a_file((8, 60));
}

#[test]
#[ignore = "long: cargo xtask faults"]
fn memory_does_what_the_model_does_for_long() {
    in_memory((1000, 200));
}

#[test]
#[ignore = "long: cargo xtask faults"]
fn a_file_does_what_the_model_does_for_long() {
    in_a_file((100, 200));
}
