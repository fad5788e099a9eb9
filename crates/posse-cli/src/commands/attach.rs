//! `posse attach`.

mod arriving_text;
mod lines;

use std::process::ExitCode;

use posse_port::store::{AgentRecord, Store};
use posse_protocol::wire::ServerMessage;
use posse_protocol::{Event, EventKind};
use posse_tui::terminal::TerminalInput;

use self::lines::{PlainView, TAIL};
use crate::assemble::store::OpenStore;
use crate::config::environment::working_directory;
use crate::config::store::StoreArgs;
use crate::config::store_choice::{meant_store, there};
use crate::error::Advised;
use crate::headless::signals::Signals;
use crate::headless::terminal;
use crate::headless::view_socket::client::{LiveAgent, Told};
use crate::interactive::attached;
use crate::output::{print, say, say_to_person};
use crate::present::history::{EntryReader, decoded};
use crate::select::sessions;

/// Watch an agent work and talk to it, from any terminal.
///
/// Opens the conversation of an agent that another process runs, as that process shows it: what it
/// says and does while it happens, its questions, its sub-agents. What you type reaches it there.
/// Any number of people can attach; attaching and leaving (Ctrl-D) change nothing. Not on a
/// terminal, with --plain, or if no process of this machine runs the agent, it only shows what
/// happens, in lines, until Ctrl-C.
#[derive(clap::Args)]
pub(crate) struct AttachCommand {
    /// Session or agent; a unique prefix of its ID is enough [default: the last used session of
    /// this directory]
    #[arg(value_name = "SESSION|AGENT")]
    agent: Option<String>,
    /// Print the last entries and what happens from then on as JSON lines (see `posse help protocol`)
    #[arg(long)]
    json: bool,
    /// Only show what happens, in lines
    #[arg(long, visible_alias = "screen-reader")]
    plain: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl AttachCommand {
    /// Watches until the agent is gone or the person detaches.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = crate::config::runtime()?;
        let watched = runtime.block_on(self.watch());
        runtime.shutdown_background();
        watched
    }

    async fn watch(self) -> anyhow::Result<ExitCode> {
        let meant = meant_store(&self.store)?;
        let open = OpenStore::at(&there(meant.place)?, meant.feed_age)?;
        let store = open.store.as_ref();
        let agent = match &self.agent {
            Some(prefix) => sessions::agent_by_prefix(store, prefix).await?,
            None => sessions::newest(store, &working_directory()?).await?,
        };
        let mut signals = Signals::new()?;
        // Before the transcript is read, so that nothing is missed in between.
        let live = LiveAgent::find(open.sockets.as_deref(), &agent).await;
        if self.json {
            let live = live.map_err(|why| Advised {
                what: format!("{why}, and JSON lines come only from that"),
                advice: format!("`posse sessions export {}` prints its entries", agent.agent),
            })?;
            print_lines(&agent, live, store, &mut signals).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let live = match live {
            Ok(live) if !self.plain && terminal::has_screen() => {
                let ended = attached::attach(open, &agent, live).await;
                // What is typed from now on is for the shell.
                TerminalInput::stop();
                return ended;
            }
            live => live,
        };
        let mut view = PlainView::new(&agent, store).await?;
        match live {
            Ok(live) => follow(live, &mut view, store, &mut signals).await?,
            Err(why) => {
                say(&format!("{why}; this shows what reaches the store"));
                follow_store(&agent, &mut view, store, &mut signals).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints the last entries, and then the messages of the process that runs the agent, as they come.
async fn print_lines(
    agent: &AgentRecord,
    mut live: LiveAgent,
    store: &dyn Store,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    let (read, page) = EntryReader::tail(store, agent.agent, TAIL).await?;
    for stored in &page.entries {
        let event = Event {
            agent: stored.agent,
            kind: EventKind::Entry(Box::new(decoded(stored)?)),
        };
        let at_ms = stored.at_ms;
        print(ServerMessage::Event { at_ms, event }.encode()?.as_bytes())?;
    }
    let is_read = |message: &ServerMessage| match message {
        ServerMessage::Event { event, .. } if event.agent == agent.agent => match &event.kind {
            EventKind::Entry(entry) => read.compare(entry).is_lt(),
            _ => false,
        },
        _ => false,
    };
    loop {
        let told = tokio::select! {
            told = live.next() => told?,
            () = signals.next() => return Ok(()),
        };
        for message in &told {
            if let Told::Message(message) = message
                && !is_read(message)
            {
                print(message.clone().encode()?.as_bytes())?;
            }
        }
        if told.iter().any(Told::is_end) {
            return Ok(());
        }
    }
}

/// Shows what the process that runs the agent tells.
async fn follow(
    mut live: LiveAgent,
    view: &mut PlainView,
    store: &dyn Store,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    say_to_person("you are watching; Ctrl-C detaches");
    loop {
        let told = tokio::select! {
            told = live.next() => told?,
            () = signals.next() => return Ok(()),
        };
        for told in told {
            match told {
                Told::Message(message) => view.told(message, store).await?,
                Told::End => {
                    // What it said last may have reached the store only.
                    view.read(store).await?;
                    say("no longer running in that process");
                    return Ok(());
                }
            }
        }
    }
}

/// Shows what reaches the store.
async fn follow_store(
    agent: &AgentRecord,
    view: &mut PlainView,
    store: &dyn Store,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    let mut head = store.feed(agent.realm, 0, 1).await?.head;
    loop {
        view.read(store).await?;
        tokio::select! {
            page = store.follow_feed(agent.realm, head, 0) => head = page?.head,
            () = signals.next() => return Ok(()),
        }
    }
}
