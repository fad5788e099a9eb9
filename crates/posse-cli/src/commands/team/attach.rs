//! `posse team attach`.

mod input;

use std::io::IsTerminal;
use std::process::ExitCode;

use posse_port::store::{AgentFilter, Op, OpenRequest, Page, Store, StoredEntry, TaskFilter};
use posse_protocol::{ContentBlock, MailKind, MemberState, RequestKind, Role, TaskStatus};
use posse_tui::conversation::Framed;
use serde_json::json;
use tokio::sync::mpsc;
use uuid::Uuid;

use self::input::AttachInput;
use super::{requests, signal};
use crate::error::{self, Advised};
use crate::headless::input::stdin::{self, StdinLine};
use crate::headless::signals::Signals;
use crate::output::paint::{color_in, painted, stained};
use crate::output::transcript::shortened;
use crate::output::{json_line, print, say, say_to_person, tame, width};
use crate::present::entries::{self, TranscriptView};
use crate::present::history;
use crate::present::history::EntryReader;
use crate::select::members::{ChosenMember, MemberArgs, called};
use crate::select::tasks::{list_of, operate};

/// Number of entries shown at first.
const TAIL: u64 = 12;

/// Watch a member work, and talk to it.
///
/// Shows the end of its transcript and follows it, from any terminal and whatever process hosts it.
/// `posse attach` also shows replies while they arrive. Lines you type go to it as messages from you.
/// `/interrupt`, `/stop`, `/approve [REQUEST] [TEXT]` and `/reject [REQUEST] TEXT` work like the
/// commands of these names. Ctrl-D or Ctrl-C detaches and changes nothing.
#[derive(clap::Args)]
pub(super) struct AttachMember {
    #[command(flatten)]
    who: MemberArgs,
    /// Show the transcript so far and exit; the default without a terminal
    #[arg(long)]
    once: bool,
    /// Print one JSON object per entry
    #[arg(long)]
    json: bool,
}

/// The state of a person's view of a member.
struct AttachedView<'a> {
    store: &'a dyn Store,
    meant: ChosenMember,
    json: bool,
    /// Number of entries that were shown.
    shown: u64,
    state: Option<(MemberState, bool)>,
    /// Requests that were shown.
    asked: Vec<OpenRequest>,
    /// The member has left.
    gone: bool,
}

impl AttachMember {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let meant = self.who.meant(store).await?;
        let mut visit = AttachedView {
            store,
            meant,
            json: self.json,
            shown: 0,
            state: None,
            asked: Vec::new(),
            gone: false,
        };
        visit.arrive().await?;
        if !self.once && std::io::stdin().is_terminal() {
            visit.stay().await?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl AttachedView<'_> {
    /// Shows the end of the transcript.
    async fn arrive(&mut self) -> anyhow::Result<()> {
        let member = &self.meant.member;
        if !self.json {
            let who = painted(&format!("● {}", self.meant.shown()), &member.color);
            print(
                format!(
                    "{who} · {} · {}\n",
                    tame(&member.agent_type),
                    tame(&member.model)
                )
                .as_bytes(),
            )?;
        }
        self.shown = match self.entries().await? {
            Some(count) if !self.json => count.saturating_sub(TAIL),
            _ => 0,
        };
        if self.shown > 0 {
            let all = format!(
                "{} earlier entries: posse team attach {} --json",
                self.shown,
                self.meant.shown()
            );
            print(format!("\x1b[2m({all})\x1b[0m\n").as_bytes())?;
        }
        self.look().await
    }

    /// Follows the member until the person detaches.
    async fn stay(&mut self) -> anyhow::Result<()> {
        say_to_person("type to talk to it; /interrupt, /stop, /approve, /reject; Ctrl-D detaches");
        let (mut lines, mut signals) = (stdin::lines(), Signals::new()?);
        let realm = self.meant.team.realm;
        let mut head = self.store.feed(realm, 0, 1).await?.head;
        self.look().await?;
        while !self.gone {
            tokio::select! {
                page = self.store.follow_feed(realm, head, 0) => {
                    head = page?.head;
                    self.look().await?;
                }
                () = signals.next() => return Ok(()),
                line = next(&mut lines) => match line {
                    None => return Ok(()),
                    Some(Err(why)) => say(why),
                    // A typing error must not end the view.
                    Some(Ok(line)) => match self.told(&line).await {
                        Ok("") => {}
                        Ok(done) => say_to_person(done),
                        Err(error) => error::tell(&format!("{error:#}"), error::hint(&error).as_deref()),
                    },
                },
            }
        }
        say(&format!("{} has left the team", self.meant.shown()));
        Ok(())
    }

    /// Shows what is new.
    async fn look(&mut self) -> anyhow::Result<()> {
        let teams = self
            .store
            .teams(Some(self.meant.team.realm), Page::all())
            .await?;
        let agent = self.meant.member.agent;
        let found = teams
            .into_iter()
            .find(|team| team.name == self.meant.team.name)
            .and_then(|team| {
                let name = team
                    .members
                    .iter()
                    .find(|member| member.agent == agent)?
                    .name
                    .to_string();
                called(team, &name).ok()
            });
        let Some(meant) = found else {
            self.gone = true;
            // What it said last comes before the note that it has left.
            return self.say_entries().await;
        };
        self.meant = meant;
        self.say_entries().await?;
        self.say_state().await?;
        self.say_requests().await
    }

    /// Returns the number of its entries; `None` if it has no transcript here.
    async fn entries(&self) -> anyhow::Result<Option<u64>> {
        let filter = AgentFilter {
            id: Some(self.meant.member.agent),
            ..AgentFilter::default()
        };
        let found = self.store.agents(filter, Page::first(1)).await?;
        Ok(found.first().map(|agent| agent.entries))
    }

    async fn say_entries(&mut self) -> anyhow::Result<()> {
        if self
            .entries()
            .await?
            .is_none_or(|count| count <= self.shown)
        {
            return Ok(());
        }
        let mut reader = EntryReader::new(self.meant.member.agent, self.shown);
        while let Some(page) = reader.read(self.store).await? {
            print(self.window(&page.entries)?.as_bytes())?;
            self.shown = reader.next;
        }
        Ok(())
    }

    fn window(&self, window: &[StoredEntry]) -> anyhow::Result<String> {
        if self.json {
            let line = |stored| {
                let entry = entries::value(stored)?;
                Ok(json_line(&json!({"type": "entry", "entry": entry})))
            };
            return window.iter().map(line).collect();
        }
        Ok(history::conversation(window, |role, block, at_ms| {
            let (columns, cwd) = (width(), self.meant.member.cwd.as_path());
            let shown = entries::paragraph(role, block, at_ms, TranscriptView { columns, cwd });
            match self.sender_color(role, block) {
                Some(color) => shown
                    .lines()
                    .map(|line| format!("{}\n", stained(line, color)))
                    .collect(),
                None => shown,
            }
        }))
    }

    /// Returns the colour of the member that sent a message; only prompts can contain one.
    fn sender_color(&self, role: Role, block: &ContentBlock) -> Option<&str> {
        match block {
            ContentBlock::Text { text } if role == Role::User => {
                color_in(&self.meant.team, &Framed::of(text)?.sender()?)
            }
            _ => None,
        }
    }

    async fn say_state(&mut self) -> anyhow::Result<()> {
        let member = &self.meant.member;
        let now = (member.state, member.held);
        if self.state.replace(now) == Some(now) {
            return Ok(());
        }
        let list = list_of(&self.meant.team);
        let filter = TaskFilter {
            status: Some(TaskStatus::InProgress),
            owner: Some(member.agent),
            ..TaskFilter::default()
        };
        let doing = self.store.tasks(list, filter, Page::first(1)).await?.pop();
        if self.json {
            let task = doing.as_ref().map(|task| task.id);
            let line = json!({
                "type": "state", "member": self.meant.shown(), "state": member.state, "held": member.held, "task": task,
            });
            return Ok(print(json_line(&line).as_bytes())?);
        }
        let doing =
            doing.map(|task| format!(" · #{} {}", task.id, tame(&shortened(&task.subject, 80))));
        let state = match member.held {
            true => member.state.as_str().to_owned(),
            // The stored state is that of the last process: without one nothing happens.
            false => format!("not running; its last state: {}", member.state.as_str()),
        };
        let line = format!("● {state}{}", doing.unwrap_or_default());
        Ok(print(
            format!("{}\n", painted(&line, &member.color)).as_bytes(),
        )?)
    }

    async fn say_requests(&mut self) -> anyhow::Result<()> {
        let open = self
            .store
            .requests(
                self.meant.team.realm,
                Some(self.meant.member.agent),
                Page::all(),
            )
            .await?;
        for request in open.iter().filter(|request| !self.asked.contains(request)) {
            if self.json {
                let mut line = requests::object(&self.meant.team, request);
                line["type"] = json!("request");
                print(json_line(&line).as_bytes())?;
            } else {
                let how = if request.kind == RequestKind::Plan {
                    ": /approve or /reject"
                } else {
                    ""
                };
                let line = format!("? {}{how}", requests::in_a_line(request));
                print(
                    format!(
                        "\x1b[1m{line}\x1b[0m\n  {}\n",
                        tame(&request.text).replace('\n', "\n  ")
                    )
                    .as_bytes(),
                )?;
            }
        }
        self.asked = open;
        Ok(())
    }

    /// Does what a line says, and returns a confirmation.
    async fn told(&self, line: &str) -> anyhow::Result<&'static str> {
        let (store, team) = (self.store, &self.meant.team);
        match input::read(line)? {
            AttachInput::Nothing => Ok(""),
            AttachInput::Words(body) => {
                let summary = shortened(body.lines().next().unwrap_or_default(), 80);
                let (id, to) = (Uuid::now_v7().into(), self.meant.address());
                operate(
                    store,
                    team.realm,
                    Op::Send {
                        id,
                        to,
                        kind: MailKind::Text,
                        summary,
                        body,
                    },
                )
                .await?;
                Ok("sent")
            }
            AttachInput::Interrupt => {
                signal::interrupt(store, &self.meant).await?;
                Ok("told to stop what it is doing")
            }
            AttachInput::Stop => {
                signal::dismiss(store, &self.meant).await?;
                Ok("told to end at once")
            }
            AttachInput::Answer {
                request,
                approve,
                text,
            } => {
                let open = store
                    .requests(team.realm, Some(self.meant.member.agent), Page::all())
                    .await?;
                // A first word that cannot be an id is part of the text.
                let named = request.as_deref().filter(|word| input::is_id(word));
                let text = match (named, request.as_deref()) {
                    (None, Some(first)) => format!("{first} {text}").trim().to_owned(),
                    _ => text,
                };
                let request = requests::plan(&open, named)?;
                if !approve && text.is_empty() {
                    anyhow::bail!(Advised {
                        what: "a rejection needs a reason".into(),
                        advice: "/reject leave the lexer as it is".into(),
                    });
                }
                requests::respond(store, team, request, approve, text).await?;
                Ok(if approve { "approved" } else { "rejected" })
            }
        }
    }
}

async fn next(lines: &mut mpsc::Receiver<StdinLine>) -> Option<Result<String, &'static str>> {
    lines.recv().await.map(|line| match line {
        StdinLine::Text(text) => Ok(text),
        StdinLine::Unreadable(why) => Err(why),
    })
}
