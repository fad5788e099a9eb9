//! What passes between an agent and the outside, decided without waiting for anything: an event, a line or
//! the end of a wait in, things to be written and commands to be sent out.

use std::collections::VecDeque;
use std::time::Duration;

use posse_protocol::{
    AgentId, Command, Event, EventKind, Fault, FaultClass, MemberUpdate, Outcome, PermissionMode,
    RunChange, RunEnd, RunFacts,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::approvals::{PendingApprovals, UnknownApproval, unanswered};
use super::input::stdin::StdinLine;
use super::input::{self, ControlRequest, InputError, RequestError, StdinMessage};
use super::output_item::{OutputItem, line};
use super::render::{Renderer, result};
use super::runs::Runs;
use super::team_snapshot::TeamSnapshot;
use crate::definitions::slash::SlashCommands;

/// How many commands wait for the agent before no more lines are read.
const WAITING: usize = 16;
/// How long it is waited for what has been told to stop, where somebody may be counted who will not: members of
/// a team that another process has.
const LAST: Duration = Duration::from_secs(3);
/// The number of that wait: nothing that happens begins it anew.
const LAST_WAIT: u64 = u64::MAX;

/// What is known at the start.
pub(crate) struct RunPlan {
    /// The main agent.
    pub(crate) main: AgentId,
    /// What it is told before any line.
    pub(crate) first: Option<Command>,
    /// Whether lines can come; then somebody is there to answer.
    pub(crate) listening: bool,
    /// The mode the person started the session in.
    pub(crate) started_in: PermissionMode,
    /// How long background runs are waited for while none of them ends.
    pub(crate) patience: Duration,
    /// What can be called by a slash.
    pub(crate) slash: SlashCommands,
    /// Whether it leads a declared team.
    pub(crate) led: bool,
}

/// Where things stand.
pub(crate) struct Controller {
    renderer: Renderer,
    /// What was known at the start. Lines can end before all else does.
    plan: RunPlan,
    /// What the agent has still to be told.
    pending: VecDeque<Command>,
    /// Runs that have been asked for and have not begun.
    asked: u32,
    /// Whether a run goes on.
    running: bool,
    /// How many background runs have gone on since the last run ended. The end of each begins another run,
    /// unless all of them are stopped together.
    live: usize,
    all_stopped: bool,
    runs: Runs,
    /// Which wait it is, if it is one: another end makes it another.
    wait: u64,
    stopping: Option<StopState>,
    questions: PendingApprovals,
    /// Whether the last word has been said.
    finished: bool,
    ending: RunResult,
}

/// Background runs are being stopped, and then it is over.
struct StopState {
    /// How many ends are still to come.
    ends: usize,
    /// Whether the run that goes on was begun since: it is no result of anything that was asked for.
    stray: bool,
    /// Whether it is waited for no longer than [`LAST`].
    bounded: bool,
}

/// How often a signal has asked to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Interruption {
    #[default]
    Never,
    /// What goes on is stopped, and waited for.
    Once,
    /// Nothing is waited for.
    Twice,
}

/// How it ended.
#[derive(Default)]
pub(crate) struct RunResult {
    /// The last run's end, with what all runs took; none if there was none.
    pub(crate) last: Option<RunEnd>,
    /// Background runs that were stopped because nobody waits any longer.
    pub(crate) left: Vec<RunFacts>,
    /// Whether they were waited for in vain.
    pub(crate) gave_up: bool,
    /// Whether signals ended it.
    pub(crate) interruption: Interruption,
    /// Whether there was input that could not be understood.
    pub(crate) not_understood: bool,
}

impl RunResult {
    /// Returns true if a signal ended it.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interruption != Interruption::Never
    }

    /// Returns true if a second signal did: then nothing is waited for.
    pub(crate) fn leaves_at_once(&self) -> bool {
        self.interruption == Interruption::Twice
    }
}

impl Controller {
    pub(crate) fn new(mut renderer: Renderer, mut plan: RunPlan) -> Self {
        let first = plan.first.take();
        first.iter().for_each(|first| renderer.told(first));
        Self {
            renderer,
            plan,
            asked: u32::from(first.is_some()),
            pending: first.into_iter().collect(),
            running: false,
            live: 0,
            all_stopped: false,
            runs: Runs::default(),
            wait: 0,
            stopping: None,
            questions: PendingApprovals::default(),
            finished: false,
            ending: RunResult::default(),
        }
    }

    /// Returns what is written before anything happens.
    pub(crate) fn greet(&self) -> Vec<OutputItem> {
        self.renderer.greet()
    }

    /// Something that has nothing to do with what agents do.
    pub(crate) fn note(&mut self, note: String) -> Vec<OutputItem> {
        self.renderer.note(note)
    }

    /// Returns how the team stands, so long after it has begun.
    pub(crate) fn seen(&mut self, seen: &TeamSnapshot, elapsed: Duration) -> Vec<OutputItem> {
        self.renderer.seen(seen, elapsed)
    }

    /// Returns what the agent is to be told next.
    pub(crate) fn next_command(&mut self) -> Option<Command> {
        self.pending.pop_front()
    }

    /// Returns true if another line may be read.
    pub(crate) fn takes_lines(&self) -> bool {
        // Who writes faster than the agent works waits in its own pipe.
        self.plan.listening && self.pending.len() < WAITING
    }

    /// Returns true if the agent has done all that it was told, and will be told nothing more.
    pub(crate) fn is_done(&self) -> bool {
        self.is_over() && self.pending.is_empty()
    }

    /// Returns true if it is time to leave: a signal said so, or what was waited for in vain is
    /// stopped.
    pub(crate) fn must_leave(&self) -> bool {
        let stopped = self.stopping.as_ref().is_none_or(|stopping| {
            stopping.ends == 0 && (stopping.bounded || self.runs.background().next().is_none())
        });
        self.ending.leaves_at_once()
            || (self.ending.is_interrupted() && !self.is_busy() && stopped)
            || (self.ending.gave_up && stopped)
    }

    /// Returns how long to wait before [`Controller::waited`], and by which number this wait goes:
    /// another number is a wait that begins anew. None if nothing is waited for but what an agent
    /// does.
    pub(crate) fn waits(&self) -> Option<(u64, Duration)> {
        if self.is_busy() {
            return None;
        }
        match &self.stopping {
            Some(stopping) => stopping.bounded.then_some((LAST_WAIT, LAST)),
            None => {
                (!self.plan.listening && self.live > 0).then_some((self.wait, self.plan.patience))
            }
        }
    }

    /// Returns how it ended.
    pub(crate) fn end(self) -> RunResult {
        self.ending
    }

    /// Takes note that the agent is gone. If it owed an end, that is a failure.
    pub(crate) fn gone(&mut self) -> Vec<OutputItem> {
        self.live = 0;
        if self.is_busy() && !self.ending.is_interrupted() {
            let message = "the agent ended without a result".to_owned();
            // An agent always says how a run ended, so this is posse's own mistake.
            let fault = Fault {
                class: FaultClass::Internal,
                status: None,
                message,
            };
            let kind = EventKind::Ended(Box::new(RunEnd::of(Outcome::Failed(fault))));
            (self.asked, self.running) = (0, true);
            return self.event(Event {
                agent: self.plan.main,
                kind,
            });
        }
        let mut items = Vec::new();
        self.finish(&mut items);
        items
    }

    /// Returns true if a signal has come.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.ending.is_interrupted()
    }

    /// Takes a signal: the first stops what goes on, the second everything.
    pub(crate) fn signal(&mut self) -> Vec<OutputItem> {
        if self.ending.is_interrupted() {
            self.ending.interruption = Interruption::Twice;
            return Vec::new();
        }
        self.ending.interruption = Interruption::Once;
        if self.is_busy() {
            self.pending.push_back(Command::Interrupt);
        }
        self.stop_runs();
        let mut items = vec![OutputItem::TerminalNote(
            "stopping; press Ctrl-C again to exit now".into(),
        )];
        self.settle(&mut items);
        items
    }

    /// Background runs were waited for long enough.
    pub(crate) fn waited(&mut self) -> Vec<OutputItem> {
        if let Some(stopping) = &mut self.stopping {
            stopping.ends = 0;
            let mut items = Vec::new();
            self.settle(&mut items);
            return items;
        }
        self.ending.gave_up = true;
        self.stop_runs();
        let (live, seconds) = (self.waited_for(), self.plan.patience.as_secs());
        let mut items = match live {
            0 => self.renderer.note(format!(
                "no sign of the team for {seconds} s; leaving it as it is"
            )),
            live => self.renderer.left_running(live, &self.ending.left, seconds),
        };
        self.settle(&mut items);
        items
    }

    /// Something happened to an agent.
    pub(crate) fn event(&mut self, event: Event) -> Vec<OutputItem> {
        let Event { agent, kind } = event;
        if let EventKind::Run(news) = &kind {
            // A member is no run: it is told of as one of its team, and has no end that is waited for.
            if self.runs.is_member(news.run.task) {
                return Vec::new();
            }
            self.runs.news(news);
            if let (RunChange::Ended(_), true) = (&news.what, news.run.starter == self.plan.main) {
                self.wait += 1;
                if self.all_stopped && !self.running {
                    self.live = self.live.saturating_sub(1);
                }
                if let Some(stopping) = &mut self.stopping {
                    stopping.ends = stopping.ends.saturating_sub(1);
                }
            }
        }
        let mut items = if let EventKind::Member(news) = &kind {
            self.member(agent, news)
        } else if agent == self.plan.main {
            self.renderer.event(&kind, &self.runs)
        } else {
            self.renderer.event_below(agent, &kind, &self.runs)
        };
        match kind {
            EventKind::ApprovalRequested(question) if self.plan.listening => {
                items.push(line(&self.questions.ask(agent, &question)));
            }
            EventKind::ApprovalRequested(question) => {
                self.pending.push_back(unanswered(agent, question.call))
            }
            EventKind::ApprovalWithdrawn { call } => {
                items.extend(self.questions.withdraw(agent, &call).iter().map(line));
            }
            EventKind::Started if agent == self.plan.main => self.begun(),
            EventKind::Ended(end) if agent == self.plan.main => self.ended(*end, &mut items),
            EventKind::AllIdle => self.live = 0,
            _ => {}
        }
        self.settle(&mut items);
        items
    }

    /// Something happened to a member of a team: whoever waits has not waited in vain.
    fn member(&mut self, agent: AgentId, news: &MemberUpdate) -> Vec<OutputItem> {
        self.wait += 1;
        self.runs.member(agent, news);
        self.renderer.member(agent, news)
    }

    /// Takes a line of input; none is the end of them.
    pub(crate) fn line(&mut self, came: Option<StdinLine>) -> Vec<OutputItem> {
        let told = match came {
            None => {
                self.plan.listening = false;
                self.pending.extend(self.questions.give_up());
                let mut items = self.say_what_is_waited_for();
                self.settle(&mut items);
                return items;
            }
            Some(StdinLine::Unreadable(what)) => Err(InputError {
                id: None,
                what: what.to_owned(),
            }),
            Some(StdinLine::Text(text)) => input::read(&text),
        };
        match told {
            Ok(StdinMessage::Prompt {
                to: Some(agent),
                words,
            }) if agent != self.plan.main => {
                self.pending.push_back(to(agent, Command::Prompt(words)));
                Vec::new()
            }
            Ok(StdinMessage::Prompt { words, .. }) => match self.plan.slash.read(words) {
                Ok(command) => {
                    // While a run goes on, the history is compacted within it.
                    let within = matches!(command, Command::Compact { .. }) && self.is_busy();
                    self.asked += u32::from(!within);
                    self.renderer.told(&command);
                    self.pending.push_back(command);
                    Vec::new()
                }
                Err(error) => self.not_understood(&error.to_string()),
            },
            Ok(StdinMessage::Request { id, request }) => {
                let answer = self.request(request);
                vec![line(&input::response(&id, answer))]
            }
            Ok(StdinMessage::Response { id, response }) => {
                match self.questions.answer(&id, response) {
                    Ok(command) => {
                        self.pending.extend(command);
                        Vec::new()
                    }
                    Err(UnknownApproval) => {
                        self.not_understood(&format!("no question has the id {id}"))
                    }
                }
            }
            Ok(StdinMessage::Nothing) => Vec::new(),
            Err(InputError { id: Some(id), what }) => {
                vec![line(&input::response(&id, Err(what)))]
            }
            Err(InputError { id: None, what }) => self.not_understood(&what),
        }
    }

    /// Returns true if a run goes on or is to come.
    fn is_busy(&self) -> bool {
        self.running || self.asked > 0
    }

    /// Returns true if nothing more will happen.
    fn is_over(&self) -> bool {
        !self.plan.listening && !self.is_busy() && self.live == 0
    }

    /// A run has begun: one that was asked for, or one that the end of a background run begins.
    fn begun(&mut self) {
        self.asked = self.asked.saturating_sub(1);
        (self.running, self.all_stopped) = (true, false);
        if let Some(stopping) = &mut self.stopping {
            // Nobody will read what it says.
            stopping.stray = true;
            self.pending.push_back(Command::Interrupt);
        }
    }

    fn ended(&mut self, end: RunEnd, items: &mut Vec<OutputItem>) {
        if !std::mem::take(&mut self.running) {
            self.asked = self.asked.saturating_sub(1);
        }
        if self.ending.is_interrupted() {
            // After a signal nothing that still waits is begun.
            self.asked = 0;
        }
        self.live = end.live;
        self.wait += 1;
        let is_stray = self
            .stopping
            .as_mut()
            .is_some_and(|stopping| std::mem::take(&mut stopping.stray));
        self.ending.last = Some(match self.ending.last.take() {
            // It counts for what it took only.
            Some(before) if is_stray => {
                let (outcome, text, stop) = (
                    before.outcome.clone(),
                    before.text.clone(),
                    before.stop.clone(),
                );
                RunEnd {
                    outcome,
                    text,
                    stop,
                    ..result::added(Some(before), end)
                }
            }
            before => result::added(before, end),
        });
        match &mut self.stopping {
            // Who had no room to say that it has ended is gone all the same.
            Some(stopping) if self.live == 0 => {
                stopping.ends = 0;
                self.runs = Runs::default();
            }
            Some(stopping) => stopping.ends = stopping.ends.min(self.live),
            // What was started while the run was being stopped has to go too.
            None if self.ending.is_interrupted() => self.stop_runs(),
            None => items.extend(self.say_what_is_waited_for()),
        }
    }

    /// Has all that goes on in the background stopped, if there is anything. Members of a team are not stopped:
    /// they are put aside when this process ends, what they have started with them, and go on another time; those
    /// in other processes are left to these.
    fn stop_runs(&mut self) {
        if self.stopping.is_some() {
            return;
        }
        let known: Vec<RunFacts> = self.runs.background().cloned().collect();
        let of_main: Vec<Uuid> = known
            .iter()
            .filter(|facts| facts.starter == self.plan.main)
            .map(|facts| facts.task)
            .collect();
        let count = of_main.len();
        let ends = if self.runs.has_members() {
            self.pending
                .extend(of_main.into_iter().map(Command::StopRun));
            count
        } else if known.is_empty() && self.live == 0 {
            0
        } else {
            self.pending.push_back(Command::StopRuns);
            self.all_stopped = true;
            self.live.max(count)
        };
        self.ending.left = known;
        if ends > 0 {
            let bounded = self.runs.has_members() || ends > count;
            self.stopping = Some(StopState {
                ends,
                stray: false,
                bounded,
            });
        }
    }

    fn say_what_is_waited_for(&mut self) -> Vec<OutputItem> {
        match self.waits() {
            Some((_, patience)) if !patience.is_zero() && self.waited_for() > 0 => {
                self.renderer.waiting(self.waited_for(), &self.runs)
            }
            _ => Vec::new(),
        }
    }

    /// Returns how many background runs go on. Members of a team that work are counted with them,
    /// and told of by themselves.
    fn waited_for(&self) -> usize {
        let with_members = self.plan.led || self.runs.has_members();
        if with_members {
            self.runs.background().count()
        } else {
            self.live
        }
    }

    /// Says the last word once nothing more will happen.
    fn settle(&mut self, items: &mut Vec<OutputItem>) {
        if self.is_over() || self.must_leave() {
            self.finish(items);
        }
    }

    fn finish(&mut self, items: &mut Vec<OutputItem>) {
        if let (Some(last), false) = (&self.ending.last, self.finished) {
            self.finished = true;
            let broken_off = self.plan.led && self.ending.is_interrupted();
            items.extend(self.renderer.finish(last, &self.ending.left, broken_off));
        }
    }

    fn not_understood(&mut self, what: &str) -> Vec<OutputItem> {
        self.ending.not_understood = true;
        self.renderer.not_understood(what)
    }

    fn request(&mut self, request: ControlRequest) -> Result<Value, RequestError> {
        match request {
            ControlRequest::Initialize => {
                return Ok(json!({
                    "commands": self.plan.slash.list(), "output_style": "default", "available_output_styles": ["default"],
                    "models": [], "capabilities": [
                        "interrupt", "set_permission_mode", "can_use_tool", "stop_task", "stop_all_tasks",
                        "background_tasks",
                    ],
                }));
            }
            ControlRequest::Interrupt(Some(agent)) if agent != self.plan.main => {
                self.pending.push_back(to(agent, Command::Interrupt));
            }
            ControlRequest::Interrupt(_) if self.is_busy() => {
                self.pending.push_back(Command::Interrupt)
            }
            ControlRequest::Interrupt(_) => {}
            // A program that controls a session must not grant itself what the person did not.
            ControlRequest::SetMode(PermissionMode::BypassPermissions)
                if self.plan.started_in != PermissionMode::BypassPermissions =>
            {
                return Err(RequestError::Bypass);
            }
            ControlRequest::SetMode(mode) => {
                self.pending.push_back(Command::SetMode(mode));
                return Ok(json!({"mode": mode}));
            }
            ControlRequest::StopTask(task) => self.pending.push_back(Command::StopRun(task)),
            ControlRequest::StopAllTasks => {
                self.pending.push_back(Command::StopRuns);
                self.all_stopped = true;
            }
            ControlRequest::BackgroundTasks => self.pending.push_back(Command::Detach),
        }
        Ok(json!({}))
    }
}

/// For another agent of the session.
fn to(agent: AgentId, command: Command) -> Command {
    Command::To {
        agent,
        command: Box::new(command),
    }
}

#[cfg(test)]
mod tests;
