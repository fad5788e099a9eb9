//! The decisions of a pane, between the members it hosts and the person in front, made without
//! waiting for anything.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use posse_protocol::{
    AgentId, Command, ContentBlock, EntryKind, Event, EventKind, MemberChange, MemberUpdate,
    Question, QuestionId, Team,
};

use crate::assemble::facts::SessionFacts;
use crate::config::kept_rules::NewRules;
use crate::headless::input::stdin::StdinLine;
use crate::headless::output_item::OutputItem;
use crate::headless::question_queue::{QuestionQueue, QueueStep};
use crate::headless::render::denials::Denials;
use crate::headless::render::live_reply::ReplyView;
use crate::headless::render::text::{self, TextRenderer};
use crate::headless::runs::Runs;
use crate::output::paint::{color_in, painted};
use crate::output::transcript::shortened;
use crate::output::{one_line, tame};
use crate::present::question;

/// Time an idle member stays hosted after the lead's process is gone.
const GRACE: Duration = Duration::from_secs(10);
/// Maximum length of a line about a prompt or a request, in characters.
const LONGEST: usize = 160;

/// A member that is hosted here.
struct HostedMember {
    /// Its name, in its colour.
    name: String,
    text: TextRenderer,
    running: bool,
}

/// Why it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConversationEnd {
    /// All members have ended or were taken elsewhere.
    Ended,
    /// The person leaves.
    Left,
    /// The lead's process is gone, and no member has work.
    Abandoned,
}

/// The state of a pane.
pub(super) struct PaneConversation {
    team: Team,
    facts: SessionFacts,
    hosted: HashMap<AgentId, HostedMember>,
    /// The member that typed text is for, if the pane is for one member.
    only: Option<AgentId>,
    /// Sub-agents of the members here.
    runs: Runs,
    /// Their denials.
    denials: Denials,
    pending: VecDeque<Command>,
    /// Questions that wait for the person; the first one is shown.
    questions: QuestionQueue,
    /// Rules that are not written yet.
    to_keep: Vec<NewRules>,
    /// The next Ctrl-C leaves.
    leaving: bool,
    /// How long the lead has been gone while no member worked.
    alone: Duration,
    over: Option<ConversationEnd>,
}

impl PaneConversation {
    /// Returns the state with the members that are hosted here.
    pub(super) fn new(
        team: Team,
        facts: SessionFacts,
        agents: &[AgentId],
        only: Option<AgentId>,
    ) -> Self {
        let mut talk = Self {
            team,
            facts,
            hosted: HashMap::new(),
            only,
            runs: Runs::default(),
            denials: Denials::default(),
            pending: VecDeque::new(),
            questions: QuestionQueue::default(),
            to_keep: Vec::new(),
            leaving: false,
            alone: Duration::ZERO,
            over: None,
        };
        for agent in agents {
            talk.host(*agent);
        }
        talk
    }

    /// Adds a member.
    fn host(&mut self, agent: AgentId) -> &mut HostedMember {
        let member = self
            .team
            .members
            .iter()
            .find(|member| member.agent == agent);
        let name = match member {
            Some(member) => painted(
                &format!("{}@{}", member.name, self.team.name),
                &member.color,
            ),
            None => agent.to_string(),
        };
        let view = match self.only {
            Some(_) => ReplyView::Printed,
            None => ReplyView::Plain,
        };
        let (facts, running) = (
            self.facts.clone(),
            member.is_some_and(|member| member.state.is_busy()),
        );
        self.hosted.entry(agent).or_insert_with(|| HostedMember {
            name,
            text: TextRenderer::new(facts, view, true),
            running,
        })
    }

    /// Returns the first output.
    pub(super) fn greet(&self) -> Vec<OutputItem> {
        let mut items = Vec::new();
        for member in self
            .team
            .members
            .iter()
            .filter(|member| self.hosted.contains_key(&member.agent))
        {
            let title = painted(
                &format!("{}@{}", member.name, self.team.name),
                &member.color,
            );
            let about = format!("{} · {}", member.agent_type, member.model);
            items.push(OutputItem::Out(format!(
                "\x1b[1m{title}\x1b[22m  {}\n",
                tame(&about)
            )));
        }
        items.push(OutputItem::Note(
            match (self.hosted.is_empty(), self.only) {
                (true, _) => format!(
                    "no member of {} is free; this process hosts the next one that is",
                    self.team.name
                ),
                (false, Some(_)) => {
                    "type to talk to it; Ctrl-C interrupts it, twice leaves it to the lead".into()
                }
                (false, None) => "Ctrl-C twice releases them".into(),
            },
        ));
        items
    }

    pub(super) fn next_command(&mut self) -> Option<Command> {
        self.pending.pop_front()
    }

    /// Takes the rules that are to be kept for later sessions.
    pub(super) fn take_kept(&mut self) -> Vec<NewRules> {
        std::mem::take(&mut self.to_keep)
    }

    pub(super) fn over(&self) -> Option<ConversationEnd> {
        self.over
    }

    /// Notes that there are no more events.
    pub(super) fn gone(&mut self) {
        self.over.get_or_insert(ConversationEnd::Ended);
    }

    /// Handles an event of an agent.
    pub(super) fn event(&mut self, event: Event) -> Vec<OutputItem> {
        let Event { agent, kind } = event;
        if let EventKind::Run(news) = &kind {
            // A member that is hosted here is shown by its own output.
            if self
                .hosted
                .keys()
                .any(|hosted| hosted.uuid() == news.run.task)
            {
                return Vec::new();
            }
            self.runs.news(news);
        }
        match kind {
            EventKind::Member(news) => return self.news(agent, &news),
            EventKind::ApprovalRequested(question) => return self.asked(agent, *question),
            EventKind::ApprovalWithdrawn { question: id } => return self.withdrawn(id),
            _ => {}
        }
        let alone = self.only.is_some();
        let Some(hosted) = self.hosted.get_mut(&agent) else {
            return self.below(agent, &kind);
        };
        match &kind {
            EventKind::Started => {
                hosted.running = true;
                self.leaving = false;
            }
            EventKind::Ended(_) => hosted.running = false,
            _ => {}
        }
        let mut items = Vec::new();
        if let EventKind::Entry(entry) = &kind
            && entry.kind == EntryKind::Prompt
        {
            items.extend(
                told(&entry.message.content, &self.team)
                    .map(|line| hosted.text.trouble(line))
                    .unwrap_or_default(),
            );
        }
        items.extend(hosted.text.event(&kind, &self.runs));
        if let (EventKind::Ended(end), false) = (&kind, alone)
            && let Some(line) = first_line(&end.text)
        {
            items.push(OutputItem::Note(tame(&shortened(line, LONGEST))));
        }
        if alone {
            items
        } else {
            named(&hosted.name, items)
        }
    }

    /// Handles an event of a sub-agent.
    fn below(&mut self, agent: AgentId, kind: &EventKind) -> Vec<OutputItem> {
        let note = match kind {
            EventKind::Denied(denial) => {
                match self.denials.add(denial, Some(&self.runs.called(agent))) {
                    Some(note) => note,
                    None => return Vec::new(),
                }
            }
            EventKind::Warning(what) => text::warning(what),
            _ => return Vec::new(),
        };
        vec![OutputItem::Note(note)]
    }

    /// Handles a change of a member.
    fn news(&mut self, agent: AgentId, news: &MemberUpdate) -> Vec<OutputItem> {
        let name = painted(&format!("{}@{}", news.name, news.team), &news.color);
        let mut note = |what: &str| match self.hosted.get_mut(&agent) {
            Some(hosted) => hosted.text.trouble(format!("{name} {what}")),
            None => vec![OutputItem::Note(format!("{name} {what}"))],
        };
        match &news.what {
            // That is what this process was started for.
            MemberChange::TakenOver if self.only == Some(agent) => Vec::new(),
            MemberChange::TakenOver => {
                let items = note("is now hosted here");
                self.host(agent);
                items
            }
            MemberChange::Idle(report) => {
                let why = report
                    .error
                    .as_deref()
                    .map(|error| format!(": {}", shortened(error, LONGEST)));
                let items = note(&tame(&format!("is idle{}", why.unwrap_or_default())));
                self.host(agent).running = false;
                items
            }
            MemberChange::Left => {
                let items = note("has left the team");
                self.hosted.remove(&agent);
                if self.only == Some(agent) {
                    self.over.get_or_insert(ConversationEnd::Ended);
                }
                items
            }
            MemberChange::Joined { .. } | MemberChange::Running => Vec::new(),
        }
    }

    /// Queues a request for approval, and asks if it is the only one.
    fn asked(&mut self, agent: AgentId, question: Question) -> Vec<OutputItem> {
        match self.questions.ask(agent, question) {
            true => self.ask(),
            false => Vec::new(),
        }
    }

    /// Drops a request that needs no answer any more, and asks the next if it was shown.
    fn withdrawn(&mut self, id: QuestionId) -> Vec<OutputItem> {
        match self.questions.withdraw(id) {
            true => self.ask(),
            false => Vec::new(),
        }
    }

    /// Shows the first open request.
    fn ask(&mut self) -> Vec<OutputItem> {
        let Some(dialog) = self.questions.first() else {
            return Vec::new();
        };
        let who = match (self.hosted.get(&dialog.agent), self.only) {
            (Some(_), Some(_)) => None,
            (Some(hosted), None) => Some(hosted.name.clone()),
            (None, _) => Some(tame(dialog.from().unwrap_or("a sub-agent"))),
        };
        let (agent, shown) = (dialog.agent, question::shown(dialog, who.as_deref()));
        self.tell_of(agent, shown)
    }

    /// Returns a note about an agent's question.
    fn tell_of(&mut self, agent: AgentId, note: String) -> Vec<OutputItem> {
        match self.hosted.get_mut(&agent) {
            Some(hosted) => hosted.text.trouble(note),
            None => vec![OutputItem::Note(note)],
        }
    }

    /// Handles a typed line; `None` is the end of the input.
    pub(super) fn line(&mut self, came: Option<StdinLine>) -> Vec<OutputItem> {
        let words = match came {
            None => return Vec::new(),
            Some(StdinLine::Unreadable(what)) => {
                return vec![OutputItem::Note(format!("warning: {what}"))];
            }
            Some(StdinLine::Text(words)) => words.trim().to_owned(),
        };
        self.leaving = false;
        if self.questions.first().is_some() {
            return self.answered(&words);
        }
        match (words.is_empty(), self.only) {
            (true, _) => Vec::new(),
            (false, Some(agent)) => {
                self.tell(agent, Command::Prompt(vec![ContentBlock::text(words)]));
                Vec::new()
            }
            (false, None) => {
                let how = format!(
                    "talk to one of them with `posse team attach MEMBER@{}`",
                    self.team.name
                );
                vec![OutputItem::Note(how)]
            }
        }
    }

    /// Handles what is typed about the question that is shown.
    fn answered(&mut self, words: &str) -> Vec<OutputItem> {
        let asker = self.questions.first().map(|dialog| dialog.agent);
        match (asker, self.questions.typed(words)) {
            (Some(agent), Some(QueueStep::Ask(next))) => self.tell_of(agent, next),
            (_, Some(QueueStep::Answered { command, rules, .. })) => {
                self.to_keep.extend(rules);
                self.pending.push_back(command);
                self.ask()
            }
            _ => Vec::new(),
        }
    }

    fn tell(&mut self, agent: AgentId, command: Command) {
        self.pending.push_back(Command::To {
            agent,
            command: Box::new(command),
        });
    }

    /// Handles Ctrl-C: interrupts a working member; the second one leaves.
    pub(super) fn interrupt(&mut self) -> Vec<OutputItem> {
        if std::mem::replace(&mut self.leaving, true) {
            self.over.get_or_insert(ConversationEnd::Left);
            return Vec::new();
        }
        let busy = self
            .only
            .filter(|only| self.hosted.get(only).is_some_and(|hosted| hosted.running));
        if let Some(agent) = busy {
            self.tell(agent, Command::Interrupt);
            return vec![OutputItem::Note(
                "interrupting; press Ctrl-C again to leave it to the lead".into(),
            )];
        }
        vec![OutputItem::Note(
            "press Ctrl-C again to leave; the lead's process takes over the members here".into(),
        )]
    }

    /// Handles the end of the terminal or of the process.
    pub(super) fn hang_up(&mut self) {
        self.over.get_or_insert(ConversationEnd::Left);
    }

    /// Handles the passing of time and the check for the lead's process.
    pub(super) fn passed(&mut self, time: Duration, lead_is_there: bool) {
        let idle = self.hosted.values().all(|hosted| !hosted.running);
        self.alone = if lead_is_there || !idle {
            Duration::ZERO
        } else {
            self.alone + time
        };
        if self.alone >= GRACE {
            self.over.get_or_insert(ConversationEnd::Abandoned);
        }
    }

    /// Returns the last line.
    pub(super) fn farewell(&self) -> String {
        let (team, again) = (&self.team.name, &self.facts.again);
        match self.over {
            Some(ConversationEnd::Left) => {
                format!("left; the lead's process takes it over, or {again} does")
            }
            Some(ConversationEnd::Abandoned) => {
                format!(
                    "the process that leads {team} is gone, and there is nothing to do; continue \
                     with: {again}"
                )
            }
            Some(ConversationEnd::Ended) | None => format!("done for {team}"),
        }
    }
}

/// Returns a prompt in one line: for mail its sender and first line, in the sender's colour.
fn told(content: &[ContentBlock], team: &Team) -> Option<String> {
    let shown = |line: &str| one_line(&shortened(line, LONGEST));
    content.iter().rev().find_map(|block| match block {
        ContentBlock::Text { text, .. } => match mail(text) {
            Some((from, line)) => {
                let color = color_in(team, from).unwrap_or_default();
                Some(format!(
                    "» {}",
                    painted(&shown(&format!("{from}: {line}")), color)
                ))
            }
            None => first_line(text).map(|line| format!("» {}", shown(line))),
        },
        _ => None,
    })
}

/// Returns the newest mail in a text: its sender and first line.
fn mail(text: &str) -> Option<(&str, &str)> {
    let (_, mail) = text.rsplit_once("<mail from=\"")?;
    let (from, rest) = mail.split_once('"')?;
    let (_, body) = rest.split_once(">\n")?;
    Some((from, first_line(body)?))
}

/// Returns the first line that is not a tag.
fn first_line(text: &str) -> Option<&str> {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('<'))
}

/// Adds a member's name to lines.
fn named(name: &str, items: Vec<OutputItem>) -> Vec<OutputItem> {
    let with = |items| match items {
        OutputItem::Note(note) => OutputItem::Note(format!("{name}: {note}")),
        items => items,
    };
    items.into_iter().map(with).collect()
}

#[cfg(test)]
mod tests;
