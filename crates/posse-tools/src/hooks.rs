//! Runs hooks: programs that are started for each call, programs that stay, and servers.

mod http;
mod persistent;
mod program;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::available_parallelism;

use http::{HookRequest, HookServers};
use persistent::PersistentPrograms;
use posse_port::BoxFuture;
use posse_port::hooks::{HookCall, HookFailure, HookReturn, HookRunner, HookTarget};
use tokio::sync::Semaphore;

use crate::system_processes::SystemProcesses;

/// How much of a reply is read, in bytes; of errors as much again.
const MOST_BYTES: usize = 1 << 20;
/// How many programs run at once, for each core.
const PROGRAMS_PER_CORE: usize = 2;
/// How many requests to servers are made at once; each has a connection.
const MOST_REQUESTS: usize = 64;

/// Runs hooks on this machine. Clones share what bounds them.
#[derive(Clone)]
pub struct SystemHooks(Arc<Shared>);

struct Shared {
    processes: SystemProcesses,
    /// Runs functions of the program that drives posse.
    callbacks: Option<Arc<dyn HookRunner>>,
    /// Places for programs, given in order of arrival.
    programs: Semaphore,
    /// The same for those that nobody waits for.
    beside: Semaphore,
    /// Programs that stay.
    persistent: PersistentPrograms,
    /// Places for requests, given in order of arrival.
    requests: Semaphore,
    servers: HookServers,
}

impl SystemHooks {
    /// Returns what runs hooks. Headers of requests may name variables of `environment`. Without
    /// `callbacks`, functions of the program that drives posse are not run.
    pub fn new(
        processes: SystemProcesses,
        environment: BTreeMap<String, String>,
        callbacks: Option<Arc<dyn HookRunner>>,
    ) -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Shared {
            processes,
            callbacks,
            programs: Semaphore::new(PROGRAMS_PER_CORE * cores),
            beside: Semaphore::new(PROGRAMS_PER_CORE * cores),
            persistent: PersistentPrograms::default(),
            requests: Semaphore::new(MOST_REQUESTS),
            servers: HookServers::new(environment),
        }))
    }

    /// Ends the programs that stay. They are killed when the last clone is dropped, too.
    pub async fn end(&self) {
        self.0.persistent.end().await;
    }
}

impl HookRunner for SystemHooks {
    fn run(&self, call: HookCall) -> BoxFuture<'static, HookReturn> {
        let shared = Arc::clone(&self.0);
        Box::pin(async move { shared.answer(&call).await })
    }
}

impl Shared {
    async fn answer(&self, call: &HookCall) -> HookReturn {
        match &call.target {
            HookTarget::Program { words } => {
                let work = program::run(&self.processes, words, call);
                let places = if call.beside {
                    &self.beside
                } else {
                    &self.programs
                };
                placed(places, call, work).await
            }
            // It has a place of its own, whether or not it is asked.
            HookTarget::Persistent { words } => {
                let work = self.persistent.call(&self.processes, words, call);
                timed(call, work).await
            }
            HookTarget::Http {
                url,
                headers,
                variables,
            } => {
                let request = HookRequest {
                    url,
                    headers,
                    variables,
                };
                let work = self.servers.post(request, call);
                placed(&self.requests, call, work).await
            }
            HookTarget::Callback { .. } => match &self.callbacks {
                Some(callbacks) => callbacks.run(call.clone()).await,
                None => failed(HookFailure::NotRun("nothing here runs callbacks".into())),
            },
        }
    }
}

/// Does the work of a call once there is a place for it. Waiting for that is not part of its time.
async fn placed(
    places: &Semaphore,
    call: &HookCall,
    work: impl Future<Output = HookReturn>,
) -> HookReturn {
    let place = tokio::select! {
        biased;
        () = call.cancel.cancelled() => return failed(HookFailure::Stopped),
        place = places.acquire() => place,
    };
    let said = timed(call, work).await;
    drop(place);
    said
}

/// Does the work of a call, and says how long it took.
async fn timed(call: &HookCall, work: impl Future<Output = HookReturn>) -> HookReturn {
    let begun = call.clock.now();
    let said = work.await;
    HookReturn {
        took: call.clock.now().saturating_sub(begun),
        ..said
    }
}

/// Returns what is said of a hook that has not replied.
fn failed(failure: HookFailure) -> HookReturn {
    HookReturn {
        failure: Some(failure),
        ..HookReturn::default()
    }
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
