//! A worker: finds members of teams that were raised for workers and that nobody has, and has them work here, until it
//! is told to end.

mod report;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use posse_port::clock::{Clock as _, SystemClock};
use posse_port::store::{AgentFilter, Store, StoreError};
use posse_protocol::{AgentId, Event, MemberState, Name, Team};
use posse_runtime::definition::spawning::WORKER;
use posse_runtime::live::handle::AgentHandle;
use posse_runtime::live::setup::Asker;
use posse_runtime::runtime::Runtime;
use posse_runtime::session::team::host::{Hosted, Hosting, Members};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::report::Told;
use super::signals::{Signals, unless_signalled};
use super::stop;
use crate::assemble::open::{self, Equipment};
use crate::assemble::provider::Otherwise;
use crate::assemble::run_config::Wish;
use crate::assemble::store::Opened;
use crate::config::store_choice;
use crate::definitions::Watching;

/// How often it is looked who is free. A worker that has nobody is told nothing by the store.
const LOOK: Duration = Duration::from_millis(500);
/// Looking reads all teams. So many times as long as it took nothing is asked, whatever there is to read.
const REST: u32 = 20;
/// How long a session is served on that has no lead, or of which nobody is here.
const GRACE: Duration = Duration::from_secs(10);
/// Events of all sessions that may wait.
const EVENTS: usize = 256;

/// What a worker is to do.
pub(crate) struct Serving {
    /// The teams; any if there are none.
    pub(crate) teams: Vec<Name>,
    /// So many members at most.
    pub(crate) most: Option<usize>,
    /// Whether a program reads what it says.
    pub(crate) json: bool,
}

/// Why a worker stops.
enum Over {
    /// It was told to.
    Told,
    /// It was taken for dead, and others have what it had.
    Fenced,
}

/// Works until it is told to end.
pub(crate) async fn serve(wish: Wish, serving: &Serving) -> anyhow::Result<ExitCode> {
    let wish = Wish {
        is_host: true,
        asker: Asker::Nobody,
        ..wish
    };
    let place = store_choice::meant_store(&wish.store)?.place;
    let mut told = Told::new(serving.json);
    told.ready(&place, serving)?;
    loop {
        // Who was taken for dead can write nothing any more: it begins anew, as another host.
        match work(&wish, serving, &Opened::at(&place)?, &mut told).await? {
            Over::Told => return Ok(ExitCode::SUCCESS),
            Over::Fenced => told.note("this worker was taken for dead; it begins anew")?,
        }
    }
}

async fn work(
    wish: &Wish,
    serving: &Serving,
    store: &Opened,
    told: &mut Told,
) -> anyhow::Result<Over> {
    // Members have models of their own.
    let engine = open::engine(
        wish,
        store.store.clone(),
        Otherwise::Settings(Some(String::new())),
    )?;
    let runtime = engine.runtime;
    let here = Here {
        wish,
        serving,
        store: store.store.as_ref(),
        runtime: &runtime,
    };
    let (said, mut events) = mpsc::channel(EVENTS);
    let mut served = Served {
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
                () = signals.next() => break Over::Told,
                Err(error) = &mut stopping => return Err(error.into()),
                Some((session, event)) = events.recv() => served.event(session, event, told)?,
                () = &mut look, if looking.is_none() => {
                    began = Instant::now();
                    looking = Some(Box::pin(here.look(served.sessions.keys().copied().collect())));
                }
                looked = async { match &mut looking { Some(it) => it.await, None => std::future::pending().await } },
                    if looking.is_some() =>
                {
                    // A store that fails now may be there the next time.
                    if let Ok(looked) = looked {
                        served.looked(looked, rest, &runtime, told)?;
                    }
                    rest = LOOK.max(REST * began.elapsed());
                    (looking, look) = (None, clock.sleep(rest));
                    if runtime.is_fenced() {
                        break Over::Fenced;
                    }
                }
            }
        }
    };
    // What it has is given back. Events are read on, so that nobody waits for us while we wait.
    let given_back = served
        .sessions
        .keys()
        .map(|session| runtime.members_here(*session))
        .sum();
    served.sessions.clear();
    let drain = async { while events.recv().await.is_some() {} };
    unless_signalled(async {
        tokio::select! {
            () = runtime.shut_down() => {}
            () = drain => {}
        }
    })
    .await?;
    if let Over::Told = over {
        told.ended(given_back)?;
    }
    Ok(over)
}

/// What looking needs.
struct Here<'a> {
    wish: &'a Wish,
    serving: &'a Serving,
    store: &'a dyn Store,
    runtime: &'a Runtime,
}

/// What a look has found.
struct Looked {
    /// Sessions that are hosted from now on.
    hosted: Vec<(AgentId, Hosted, [Watching; 2])>,
    /// Sessions that are left to others, and why.
    left: Vec<(AgentId, String)>,
    /// Those that a process leads.
    led: HashSet<AgentId>,
}

impl Here<'_> {
    /// Looks who is free, and takes up whom it can.
    async fn look(&self, known: HashSet<AgentId>) -> Result<Looked, StoreError> {
        let teams = self.store.teams(None, usize::MAX).await?;
        let mut looked = Looked {
            hosted: Vec::new(),
            left: Vec::new(),
            led: HashSet::new(),
        };
        let (mut wanted, mut again) = (HashMap::new(), false);
        for team in teams.iter().filter(|team| is_led(team)) {
            let Some((session, cwd)) = self.session_of(team).await? else {
                continue;
            };
            looked.led.insert(session);
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
                Ok(hosted) => looked.hosted.push(hosted),
                Err(error) => looked
                    .left
                    .push((session, posse_port::in_a_line(error.as_ref()))),
            }
        }
        Ok(looked)
    }

    fn means(&self, team: &Team) -> bool {
        self.serving.teams.is_empty() || self.serving.teams.contains(&team.name)
    }

    /// The main agent of a team's session, and where it works.
    async fn session_of(&self, team: &Team) -> Result<Option<(AgentId, PathBuf)>, StoreError> {
        let mut at = team.lead;
        loop {
            let filter = AgentFilter {
                id: Some(at),
                ..AgentFilter::default()
            };
            let Some(found) = self.store.agents(filter, 1).await?.pop() else {
                return Ok(None);
            };
            match found.origin {
                Some(origin) => at = origin.parent,
                None => return Ok(Some((found.agent, found.cwd))),
            }
        }
    }

    /// Hosts what is free of a session.
    async fn host(
        &self,
        session: AgentId,
        cwd: PathBuf,
    ) -> anyhow::Result<(AgentId, Hosted, [Watching; 2])> {
        anyhow::ensure!(cwd.is_dir(), "{} is not here", cwd.display());
        let Equipment {
            setup,
            live,
            skills,
        } = Equipment::of(self.wish, &cwd)?;
        let members = Members::Raised {
            most: self.serving.most,
        };
        let hosted = self
            .runtime
            .host(Hosting { session, members }, setup)
            .await?;
        Ok((session, hosted, [live.watch(), skills.watch()]))
    }
}

/// Whether a process has the lead.
fn is_led(team: &Team) -> bool {
    team.members
        .iter()
        .any(|member| member.agent == team.lead && member.held)
}

/// Whether a member waits for a worker.
fn is_free(member: &posse_protocol::Member) -> bool {
    !member.held && member.backend == WORKER && member.state != MemberState::ShutDown
}

/// The sessions that are served.
struct Served {
    sessions: HashMap<AgentId, Session>,
    /// Those that are left to others, and were told of.
    told: HashSet<AgentId>,
    hearing: JoinSet<()>,
    said: mpsc::Sender<(AgentId, Event)>,
}

struct Session {
    /// When it is dropped, what is hosted is given back.
    _handle: AgentHandle,
    _watching: [Watching; 2],
    /// How long it has had no lead while nobody works, or nobody here.
    idle: Duration,
    /// Members that work.
    busy: HashSet<AgentId>,
}

impl Served {
    fn event(&mut self, session: AgentId, event: Event, told: &mut Told) -> anyhow::Result<()> {
        if let Some(session) = self.sessions.get_mut(&session)
            && let posse_protocol::EventKind::Member(news) = &event.kind
        {
            match news.what {
                posse_protocol::MemberChange::Running => session.busy.insert(event.agent),
                _ => session.busy.remove(&event.agent),
            };
        }
        told.event(session, &event)
    }

    fn looked(
        &mut self,
        looked: Looked,
        since: Duration,
        runtime: &Runtime,
        told: &mut Told,
    ) -> anyhow::Result<()> {
        for (
            session,
            Hosted {
                handle, mut events, ..
            },
            watching,
        ) in looked.hosted
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
                Session {
                    _handle: handle,
                    _watching: watching,
                    idle,
                    busy,
                },
            );
        }
        for (session, why) in looked.left {
            if self.told.insert(session) {
                told.left(session, &why)?;
            }
        }
        self.sessions.retain(|session, it| {
            let needed = runtime.members_here(*session) > 0
                && (looked.led.contains(session) || !it.busy.is_empty());
            it.idle = if needed {
                Duration::ZERO
            } else {
                it.idle + since
            };
            it.idle < GRACE
        });
        while self.hearing.try_join_next().is_some() {}
        Ok(())
    }
}
