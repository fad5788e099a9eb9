//! A worker: hosts members of teams that are meant for workers and that no process hosts, until
//! it is told to end.

mod report;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use posse_port::clock::{Clock as _, SystemClock};
use posse_port::store::{AgentFilter, Page, Store, StoreError};
use posse_protocol::{AgentId, Event, MemberState, Name, Team};
use posse_runtime::definition::spawning::WORKER;
use posse_runtime::live::handle::AgentHandle;
use posse_runtime::runtime::Runtime;
use posse_runtime::session::team::host::{Hosted, Hosting, Members};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::report::WorkerReport;
use super::signals::{Signals, unless_signalled};
use super::stop;
use super::view_socket::ViewSocket;
use crate::assemble::open::{self, SessionParts};
use crate::assemble::provider::ModelFallback;
use crate::assemble::run_config::{ProcessPurpose, RunConfig};
use crate::assemble::store::OpenStore;
use crate::config::settings::account::AccountSettings;
use crate::config::settings::sandbox::SandboxSettings;
use crate::config::{caller, environment, store_choice};
use crate::definitions::WatchGuard;

/// Interval of scans. A worker that hosts nobody gets no notifications from the store.
const LOOK: Duration = Duration::from_millis(500);
/// A scan reads all teams. The pause after it is this many times as long as it took, so that
/// scanning never uses more than 5 % of the time.
const REST: u32 = 20;
/// Time a session stays served without a lead, or without a member here.
const GRACE: Duration = Duration::from_secs(10);
/// Number of events of all sessions that may wait.
const EVENTS: usize = 256;

/// What a worker does.
pub(crate) struct WorkerConfig {
    /// The teams to serve; empty for any.
    pub(crate) teams: Vec<Name>,
    /// Maximum number of members.
    pub(crate) most: Option<usize>,
    /// Print JSON.
    pub(crate) json: bool,
}

/// Why a worker stops.
enum WorkerExit {
    /// It was told to.
    Told,
    /// It was taken for dead, and others took over its members.
    Fenced,
}

/// Works until it is told to end.
pub(crate) async fn serve(config: RunConfig, worker: &WorkerConfig) -> anyhow::Result<ExitCode> {
    caller::only_a_person_can("host the members of a team")?;
    let config = RunConfig {
        purpose: ProcessPurpose::Host,
        ..config
    };
    let meant = store_choice::meant_store(&config.store)?;
    let mut report = WorkerReport::new(worker.json);
    report.ready(&meant.place, worker)?;
    loop {
        // A worker that was taken for dead cannot write any more: it starts again as another
        // host.
        let store = OpenStore::at(&meant.place, meant.feed_age)?;
        match work(&config, worker, &store, &mut report).await? {
            WorkerExit::Told => return Ok(ExitCode::SUCCESS),
            WorkerExit::Fenced => report.note("this worker was presumed dead; it starts again")?,
        }
    }
}

/// Serves sessions with one host.
async fn work(
    config: &RunConfig,
    worker: &WorkerConfig,
    store: &OpenStore,
    report: &mut WorkerReport,
) -> anyhow::Result<WorkerExit> {
    // It is the same for all sessions of this process.
    let here = environment::working_directory()?;
    let account = AccountSettings::of_owner(
        config.search_paths(&here),
        config.flags.sources,
        config.flags.settings.clone(),
    )?;
    // No model is needed: members have their own.
    let runtime_parts = open::runtime_parts(
        config,
        store,
        ModelFallback::Settings(Some(String::new())),
        &account,
        // Sessions have settings of their own; what holds hooks of repositories is the machine's.
        &SandboxSettings::default(),
    )?;
    let runtime = runtime_parts.runtime;
    let _socket = ViewSocket::open(store, &runtime, None);
    let context = WorkerContext {
        config,
        worker,
        store: store.store.as_ref(),
        runtime: &runtime,
    };
    let (said, mut events) = mpsc::channel(EVENTS);
    let mut served = ServedSessions {
        sessions: HashMap::new(),
        told: HashSet::new(),
        hearing: JoinSet::new(),
        said,
    };
    let over = {
        let stopping = stop::when_told(store.clone());
        tokio::pin!(stopping);
        let (mut signals, clock) = (Signals::new()?, SystemClock::default());
        let mut look = clock.sleep(Duration::ZERO);
        let (mut looking, mut began, mut rest) = (None, Instant::now(), LOOK);
        loop {
            tokio::select! {
                () = signals.next() => break WorkerExit::Told,
                Err(error) = &mut stopping => return Err(error.into()),
                Some((session, event)) = events.recv() => served.event(session, event, report)?,
                () = &mut look, if looking.is_none() => {
                    began = Instant::now();
                    // Polled by the loop: a slow store must not hold up events or signals.
                    looking = Some(Box::pin(context.look(served.sessions.keys().copied().collect())));
                }
                outcome = async { match &mut looking { Some(it) => it.await, None => std::future::pending().await } },
                    if looking.is_some() =>
                {
                    // A store that fails now may work the next time.
                    if let Ok(outcome) = outcome {
                        served.on_scan(outcome, rest, &runtime, report)?;
                    }
                    rest = LOOK.max(REST * began.elapsed());
                    (looking, look) = (None, clock.sleep(rest));
                    if runtime.is_fenced() {
                        break WorkerExit::Fenced;
                    }
                }
            }
        }
    };
    // Members are released. Events are still read, so that nobody waits for this process
    // meanwhile.
    let given_back = served
        .sessions
        .keys()
        .map(|session| runtime.members_here(*session))
        .sum();
    served.sessions.clear();
    let drain = async { while events.recv().await.is_some() {} };
    unless_signalled(async {
        // Not joined: `served` still holds a sender, so that the events never end by themselves.
        tokio::select! {
            () = runtime.shut_down() => {}
            () = drain => {}
        }
    })
    .await?;
    if let WorkerExit::Told = over {
        report.ended(given_back)?;
    }
    Ok(over)
}

/// What a scan needs.
struct WorkerContext<'a> {
    config: &'a RunConfig,
    worker: &'a WorkerConfig,
    store: &'a dyn Store,
    runtime: &'a Runtime,
}

/// The result of a scan.
struct ScanOutcome {
    /// Sessions that are hosted from now on.
    hosted: Vec<(AgentId, Hosted, [WatchGuard; 4])>,
    /// Sessions that cannot be hosted here, and why.
    left: Vec<(AgentId, String)>,
    /// Sessions whose lead a process hosts.
    led: HashSet<AgentId>,
}

impl WorkerContext<'_> {
    /// Finds free members and hosts those it can.
    async fn look(&self, known: HashSet<AgentId>) -> Result<ScanOutcome, StoreError> {
        let teams = self.store.teams(None, Page::all()).await?;
        let mut outcome = ScanOutcome {
            hosted: Vec::new(),
            left: Vec::new(),
            led: HashSet::new(),
        };
        let (mut wanted, mut again) = (HashMap::new(), false);
        for team in teams.iter().filter(|team| is_led(team)) {
            let Some((session, cwd)) = self.session_of(team).await? else {
                continue;
            };
            outcome.led.insert(session);
            if !self.means(team) || !team.members.iter().any(is_free) {
                continue;
            }
            again |= known.contains(&session);
            if !known.contains(&session) {
                wanted.insert(session, cwd);
            }
        }
        if again {
            self.runtime.take_up_free().await;
        }
        for (session, cwd) in wanted {
            match self.host(session, cwd).await {
                Ok(hosted) => outcome.hosted.push(hosted),
                Err(error) => outcome
                    .left
                    .push((session, posse_port::in_a_line(error.as_ref()))),
            }
        }
        Ok(outcome)
    }

    fn means(&self, team: &Team) -> bool {
        self.worker.teams.is_empty() || self.worker.teams.contains(&team.name)
    }

    /// Returns the main agent of a team's session, and where it works.
    async fn session_of(&self, team: &Team) -> Result<Option<(AgentId, PathBuf)>, StoreError> {
        let mut at = team.lead;
        loop {
            let filter = AgentFilter {
                id: Some(at),
                ..AgentFilter::default()
            };
            let Some(found) = self.store.agents(filter, Page::first(1)).await?.pop() else {
                return Ok(None);
            };
            match found.origin {
                Some(origin) => at = origin.parent,
                None => return Ok(Some((found.agent, found.cwd))),
            }
        }
    }

    /// Hosts the free members of a session.
    async fn host(
        &self,
        session: AgentId,
        cwd: PathBuf,
    ) -> anyhow::Result<(AgentId, Hosted, [WatchGuard; 4])> {
        // A shared store also has sessions of other machines.
        anyhow::ensure!(cwd.is_dir(), "{} does not exist here", cwd.display());
        let SessionParts {
            setup,
            live,
            skills,
            memory,
            hooks,
        } = SessionParts::of(self.config, &cwd)?;
        let members = Members::Raised {
            most: self.worker.most,
        };
        let hosted = self
            .runtime
            .host(Hosting { session, members }, setup)
            .await?;
        Ok((
            session,
            hosted,
            [live.watch(), skills.watch(), memory.watch(), hooks.watch()],
        ))
    }
}

/// Returns true if a process hosts the lead.
fn is_led(team: &Team) -> bool {
    team.members
        .iter()
        .any(|member| member.agent == team.lead && member.held)
}

/// Returns true if a member waits for a worker.
fn is_free(member: &posse_protocol::Member) -> bool {
    !member.held && member.backend == WORKER && member.state != MemberState::ShutDown
}

/// The sessions that are served.
struct ServedSessions {
    sessions: HashMap<AgentId, ServedSession>,
    /// Sessions that cannot be hosted and were reported.
    told: HashSet<AgentId>,
    hearing: JoinSet<()>,
    said: mpsc::Sender<(AgentId, Event)>,
}

/// A session that is served.
struct ServedSession {
    /// Dropping it releases what is hosted.
    _handle: AgentHandle,
    _watching: [WatchGuard; 4],
    /// How long it had neither a lead nor a working member, or no member here.
    idle: Duration,
    /// Members that work.
    busy: HashSet<AgentId>,
}

impl ServedSessions {
    fn event(
        &mut self,
        session: AgentId,
        event: Event,
        report: &mut WorkerReport,
    ) -> anyhow::Result<()> {
        if let Some(session) = self.sessions.get_mut(&session)
            && let posse_protocol::EventKind::Member(news) = &event.kind
        {
            match news.what {
                posse_protocol::MemberChange::Running => session.busy.insert(event.agent),
                _ => session.busy.remove(&event.agent),
            };
        }
        report.event(session, &event)
    }

    /// Takes over the result of a scan, and drops sessions that are no longer needed.
    fn on_scan(
        &mut self,
        outcome: ScanOutcome,
        since: Duration,
        runtime: &Runtime,
        report: &mut WorkerReport,
    ) -> anyhow::Result<()> {
        for (
            session,
            Hosted {
                handle, mut events, ..
            },
            watching,
        ) in outcome.hosted
        {
            let said = self.said.clone();
            self.hearing.spawn(async move {
                while let Some(event) = events.recv().await {
                    if said.send((session, event)).await.is_err() {
                        return;
                    }
                }
            });
            let (idle, busy) = (Duration::ZERO, HashSet::new());
            self.sessions.insert(
                session,
                ServedSession {
                    _handle: handle,
                    _watching: watching,
                    idle,
                    busy,
                },
            );
        }
        for (session, why) in outcome.left {
            if self.told.insert(session) {
                report.left(session, &why)?;
            }
        }
        self.sessions.retain(|session, it| {
            let needed = runtime.members_here(*session) > 0
                && (outcome.led.contains(session) || !it.busy.is_empty());
            it.idle = if needed {
                Duration::ZERO
            } else {
                it.idle + since
            };
            it.idle < GRACE
        });
        // Finished tasks are removed from the set, which would grow otherwise.
        while self.hearing.try_join_next().is_some() {}
        Ok(())
    }
}
