//! Runs hooks: programs that are started for each call.

mod program;

use std::sync::Arc;
use std::thread::available_parallelism;

use posse_port::BoxFuture;
use posse_port::hooks::{HookCall, HookFailure, HookReturn, HookRunner, HookTarget};
use tokio::sync::Semaphore;

use crate::system_processes::SystemProcesses;

/// How much of a reply is read, in bytes; of errors as much again.
const MOST_BYTES: usize = 1 << 20;
/// How many programs run at once, for each core.
const PROGRAMS_PER_CORE: usize = 2;

/// Runs hooks on this machine. Clones share what bounds them.
#[derive(Clone)]
pub struct SystemHooks(Arc<Shared>);

struct Shared {
    processes: SystemProcesses,
    /// Runs functions of the program that drives posse.
    callbacks: Option<Arc<dyn HookRunner>>,
    /// Places for programs, given in order of arrival.
    programs: Semaphore,
}

impl SystemHooks {
    /// Returns what runs hooks. Without `callbacks`, functions of the program that drives posse
    /// are not run.
    pub fn new(processes: SystemProcesses, callbacks: Option<Arc<dyn HookRunner>>) -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Shared {
            processes,
            callbacks,
            programs: Semaphore::new(PROGRAMS_PER_CORE * cores),
        }))
    }
}

impl HookRunner for SystemHooks {
    fn run(&self, call: HookCall) -> BoxFuture<'static, HookReturn> {
        let shared = Arc::clone(&self.0);
        match &call.target {
            HookTarget::Callback { .. } => match &shared.callbacks {
                Some(callbacks) => callbacks.run(call),
                None => not_run("nothing here runs callbacks"),
            },
            HookTarget::Program { words } => {
                let words = words.clone();
                Box::pin(async move { shared.program(&words, &call).await })
            }
            HookTarget::Persistent { .. } | HookTarget::Http { .. } => {
                not_run("this kind of hook is not run here")
            }
        }
    }
}

impl Shared {
    /// Runs a program once there is a place for it. Waiting for that is not part of its time.
    async fn program(&self, words: &[String], call: &HookCall) -> HookReturn {
        let place = tokio::select! {
            biased;
            () = call.cancel.cancelled() => return failed(HookFailure::Stopped),
            place = self.programs.acquire() => place,
        };
        let begun = call.clock.now();
        let said = program::run(&self.processes, words, call).await;
        drop(place);
        HookReturn {
            took: call.clock.now().saturating_sub(begun),
            ..said
        }
    }
}

/// Returns what is said of a hook that has not replied.
fn failed(failure: HookFailure) -> HookReturn {
    HookReturn {
        failure: Some(failure),
        ..HookReturn::default()
    }
}

fn not_run(why: &str) -> BoxFuture<'static, HookReturn> {
    let said = failed(HookFailure::NotRun(why.into()));
    Box::pin(std::future::ready(said))
}

/// Waits until a call has to end, and returns why.
async fn over(call: &HookCall) -> HookFailure {
    tokio::select! {
        biased;
        () = call.cancel.cancelled() => HookFailure::Stopped,
        () = call.clock.sleep(call.limit) => HookFailure::TimedOut(call.limit),
    }
}

/// Returns what was said as text, cut where too much was said.
fn text(mut bytes: Vec<u8>) -> String {
    bytes.truncate(MOST_BYTES);
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
