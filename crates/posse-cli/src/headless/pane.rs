//! Members of a team in a terminal of their own: a process that takes them from the store, shows
//! what they do, and passes on what a person types.

mod conversation;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use posse_port::clock::{Clock as _, SystemClock};
use posse_port::store::{Page, SessionFilter, Store};
use posse_protocol::{AgentId, Event, Name, Team};
use posse_runtime::live::handle::AgentHandle;
use posse_runtime::session::team::host::{Hosted, Hosting, Members};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use self::conversation::{ConversationEnd, PaneConversation};
use super::input::stdin;
use super::output_item::OutputItem;
use super::rule_keeper::RuleKeeper;
use super::sending::{Sending, sent};
use super::stop;
use super::view_socket::ViewSocket;
use super::writer::OutputWriter;
use crate::assemble::open::{self, SessionContext};
use crate::assemble::run_config::{ProcessPurpose, RunConfig};
use crate::config::search_paths::SearchPaths;
use crate::config::store_choice::in_store;
use crate::error::Advised;
use crate::output::say;
use crate::present::sessions::short;

/// Interval of checks if the lead's process is there.
const LOOK: Duration = Duration::from_secs(2);

/// Whom to host.
pub(crate) enum JoinTarget {
    /// One member.
    Member(AgentId),
    /// Every member of this team that no process hosts.
    Team(Name),
}

/// Hosts members of the session until they end, the person leaves, or nobody needs them any more.
pub(crate) async fn join(config: RunConfig, target: JoinTarget) -> anyhow::Result<ExitCode> {
    let store = config.store.clone();
    let context = open::session_context(&RunConfig {
        purpose: ProcessPurpose::Host,
        ..config
    })
    .await?;
    let Some(session) = context.found.clone() else {
        anyhow::bail!(Advised {
            what: "no session given".into(),
            advice: "`posse team list --all` shows the sessions of teams".into(),
        })
    };
    let team = team_of(context.store.store.as_ref(), &session, &target).await?;
    let (members, only) = match target {
        JoinTarget::Member(member) => (Members::One(member), Some(member)),
        JoinTarget::Team(_) => (Members::Free { most: None }, None),
    };
    let hosting = Hosting {
        session: session.agent,
        members,
    };
    let Hosted {
        handle,
        events,
        agents,
    } = context.runtime.host(hosting, context.setup.clone()).await?;
    // Read again: members may have joined before the ones here were taken.
    let team = team_of(
        context.store.store.as_ref(),
        &session,
        &JoinTarget::Team(team.name.clone()),
    )
    .await
    .unwrap_or(team);
    let again = format!(
        "posse team run {} --resume {}",
        team.name,
        short(session.agent)
    );
    let again = in_store(again, &store);
    let facts = context.facts(session.agent, Vec::new(), again);
    let rules = RuleKeeper::new(SearchPaths::at(&facts.cwd));
    let conversation = PaneConversation::new(team, facts, &agents, only);
    let SessionContext {
        runtime,
        store,
        live,
        skills,
        memory,
        hooks,
        slash,
        ..
    } = context;
    let hooks = hooks.watch_asking(runtime.hooks_of(session.agent));
    let _watching = [live.watch(), skills.watch(), memory.watch(), hooks];
    let _socket = ViewSocket::open(&store, &runtime, Some(slash));
    let stopping = stop::when_told(store.clone());
    tokio::pin!(stopping);
    let mut pane = PaneLoop {
        events,
        store: store.store.as_ref(),
        session: session.agent,
        rules,
    };
    let ended = tokio::select! {
        ended = pane.drive(conversation, handle) => ended,
        Err(error) = &mut stopping => Err(error),
    };
    // Members that are still here are released. Events are still read, so that nobody waits for
    // this process meanwhile.
    let drain = async { while pane.events.recv().await.is_some() {} };
    tokio::join!(runtime.shut_down(), drain);
    say(&ended?);
    Ok(ExitCode::SUCCESS)
}

/// Returns the team whose members are hosted.
async fn team_of(
    store: &dyn Store,
    session: &posse_port::store::AgentRecord,
    target: &JoinTarget,
) -> anyhow::Result<Team> {
    let teams = store.teams(Some(session.realm), Page::all()).await?;
    let is_meant = |team: &Team| match target {
        JoinTarget::Member(agent) => team.members.iter().any(|member| member.agent == *agent),
        JoinTarget::Team(name) => team.name == *name,
    };
    Ok(teams.into_iter().find(is_meant).ok_or_else(|| Advised {
        what: "the session no longer has this team or member".into(),
        advice: format!(
            "`posse team show --session {}` shows its teams",
            short(session.agent)
        ),
    })?)
}

/// The inputs of the loop.
struct PaneLoop<'a> {
    events: mpsc::Receiver<Event>,
    store: &'a dyn Store,
    session: AgentId,
    /// Keeps rules for later sessions.
    rules: RuleKeeper,
}

impl PaneLoop<'_> {
    /// Runs until it is over and returns the last line.
    async fn drive(
        &mut self,
        mut conversation: PaneConversation,
        handle: AgentHandle,
    ) -> io::Result<String> {
        let (mut interrupts, mut terminations) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        );
        let mut hangups = signal(SignalKind::hangup())?;
        let clock = SystemClock::default();
        let mut writer = OutputWriter::start()?;
        let mut lines = Some(stdin::lines());
        let mut sending: Option<Sending> = None;
        let mut look = clock.sleep(LOOK);
        writer.say(conversation.greet());
        while conversation.over().is_none() {
            if sending.is_none()
                && let Some(command) = conversation.next_command()
            {
                sending = Some(Sending::new(&handle, command));
            }
            let hears = writer.is_ready();
            tokio::select! {
                handed_on = writer.work() => handed_on?,
                _ = interrupts.recv() => writer.say(conversation.interrupt()),
                _ = terminations.recv() => conversation.hang_up(),
                _ = hangups.recv() => conversation.hang_up(),
                () = sent(&mut sending), if sending.is_some() => sending = None,
                () = &mut look => {
                    look = clock.sleep(LOOK);
                    conversation.passed(LOOK, self.lead_is_there().await);
                }
                event = self.events.recv(), if hears => match event {
                    Some(event) => writer.say(conversation.event(event)),
                    None => conversation.gone(),
                },
                line = next(&mut lines), if hears && lines.is_some() => {
                    if line.is_none() {
                        lines = None;
                    }
                    writer.say(conversation.line(line));
                    self.rules.add(conversation.take_kept());
                }
                note = self.rules.next(), if self.rules.is_busy() => {
                    writer.say(vec![OutputItem::Note(note)]);
                }
            }
        }
        while self.rules.is_busy() {
            let note = self.rules.next().await;
            writer.say(vec![OutputItem::Note(note)]);
        }
        // A person who leaves does not wait for output, and a closed terminal cannot show it.
        if conversation.over() == Some(ConversationEnd::Ended) {
            writer.finish().await?;
        }
        Ok(conversation.farewell())
    }

    /// Returns true if a process hosts the session's main agent, or if that cannot be determined.
    async fn lead_is_there(&self) -> bool {
        let filter = SessionFilter {
            cwd: None,
            id_prefix: Some(self.session.to_string()),
        };
        let found = self.store.sessions(filter, Page::first(1)).await;
        found.map_or(true, |found| {
            found
                .first()
                .is_some_and(|session| session.holder.is_some())
        })
    }
}

async fn next(lines: &mut Option<mpsc::Receiver<stdin::StdinLine>>) -> Option<stdin::StdinLine> {
    match lines {
        Some(lines) => lines.recv().await,
        None => None,
    }
}
