//! The decisions of the headless front end, made without waiting for anything.
//!
//! An event, an input line, a signal or the end of a wait goes in; items to write and commands to
//! send come out. So every order of events can be tested without an agent.

pub(crate) mod live_line;
pub(crate) mod terminal;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use posse_protocol::{
    AgentId, Answer, Command, Cost, Event, EventKind, Fault, FaultClass, Limit, MemberUpdate,
    Outcome, PermissionMode, QuestionId, RunChange, RunEnd, RunFacts,
};
use posse_runtime::govern::Account;
use serde_json::{Value, json};
use uuid::Uuid;

use super::approvals::{OpenApproval, PendingApprovals, UnknownApproval, unanswered};
use super::callbacks::OpenCallbacks;
use super::input::stdin::StdinLine;
use super::input::{self, ControlRequest, InputError, RequestError, StdinMessage};
use super::output_item::{OutputItem, line};
use super::permission_updates::PermissionUpdates;
use super::question_queue::QuestionQueue;
use super::render::{FinalEnd, Renderer, result};
use super::run_so_far::RunSoFar;
use super::runs::Runs;
use super::session_spending::{SessionSpent, together, without};
use super::team_snapshot::{TaskProgress, TeamSnapshot};
use crate::config::kept_rules::NewRules;
use crate::definitions::slash::SlashCommands;
use crate::present::question;

/// Number of commands that may wait for the agent before input is no longer read.
const WAITING: usize = 16;
/// Time to wait for what was told to stop, if some of it may never answer: members of a team that
/// another process hosts.
const LAST: Duration = Duration::from_secs(3);
/// The number of that wait. It never changes, so that nothing restarts it.
const LAST_WAIT: u64 = u64::MAX;

/// The state of a session in which nothing happens and nothing will.
const IDLE: &str = "idle";

/// What is known at the start.
pub(crate) struct RunPlan {
    /// The main agent.
    pub(crate) main: AgentId,
    /// The first command, before any input.
    pub(crate) first: Option<Command>,
    /// Input lines can come, so that somebody is there to answer.
    pub(crate) listening: bool,
    /// Questions wait for whoever answers them, from any process.
    pub(crate) waits_for_answers: bool,
    /// The person at the terminal answers questions.
    pub(crate) terminal: Option<QuestionQueue>,
    /// Time to wait for background runs while none of them ends.
    pub(crate) patience: Duration,
    /// What this process spends on the session.
    pub(crate) account: Account,
    /// The slash commands.
    pub(crate) slash: SlashCommands,
    /// The agent leads a declared team.
    pub(crate) led: bool,
    pub(crate) program: ProgramTerms,
}

/// What is known about a program that sends lines.
#[derive(Default)]
pub(crate) struct ProgramTerms {
    /// Its first line is an `initialize` that is applied and not answered yet.
    pub(crate) initialized: bool,
    /// It wants to know whether the session works or is idle.
    pub(crate) tells_state: bool,
    /// The agent types that can be started.
    pub(crate) agents: Vec<Value>,
    /// It may choose bypassPermissions later.
    pub(crate) may_bypass: bool,
    /// Its hooks that it was asked about.
    pub(crate) callbacks: OpenCallbacks,
}

/// The state of the front end.
pub(crate) struct Controller {
    renderer: Renderer,
    /// What was known at the start. `listening` becomes false when the input ends.
    plan: RunPlan,
    /// Commands that are not sent yet.
    pending: VecDeque<Command>,
    /// Number of runs that were asked for and have not begun.
    asked: u32,
    /// A run is under way.
    running: bool,
    /// What is known of the run under way.
    so_far: RunSoFar,
    /// Number of background runs since the last run ended. The end of each begins another run,
    /// unless all are stopped together.
    live: usize,
    /// All background runs were told to stop, so that their ends begin no run.
    all_stopped: bool,
    /// The background runs that are known, for messages.
    runs: Runs,
    /// The number of the current wait; a new number restarts it.
    wait: u64,
    /// Set while background runs are being stopped.
    stopping: Option<StopState>,
    questions: PendingApprovals,
    /// Questions that wait for a person, here or elsewhere.
    waiting: BTreeSet<QuestionId>,
    /// Number of questions that were put on the terminal.
    shown: u64,
    /// What the whole session has spent in the time of this process, if that may be more than what
    /// this process has counted.
    spent: Option<SessionSpent>,
    /// Rules that are not written yet.
    to_keep: Vec<NewRules>,
    /// Why the store does not answer, if it does not.
    silence: Option<String>,
    /// The state that the program was told last.
    told_state: &'static str,
    /// The final output was written.
    finished: bool,
    ending: RunResult,
}

/// Background runs are being stopped; afterwards the front end ends.
struct StopState {
    /// Number of ends still to come.
    ends: usize,
    /// The current run began afterwards: nobody asked for its result.
    stray: bool,
    /// Waited for no longer than [`LAST`].
    bounded: bool,
}

/// How often a signal has asked to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Interruption {
    #[default]
    Never,
    /// Everything is stopped and waited for.
    Once,
    /// Nothing is waited for.
    Twice,
}

/// How the front end ended.
#[derive(Default)]
pub(crate) struct RunResult {
    /// The end of the last run, with the sums of all runs; `None` if there was no run.
    pub(crate) last: Option<RunEnd>,
    /// Background runs that were stopped because nobody waits any longer.
    pub(crate) left: Vec<RunFacts>,
    /// Waiting for them timed out.
    pub(crate) gave_up: bool,
    /// How often a signal interrupted it.
    pub(crate) interruption: Interruption,
    /// The store does not answer, so that no agent can end in order.
    pub(crate) without_store: bool,
    /// Some input was invalid.
    pub(crate) not_understood: bool,
    /// How far the team has come, if there is one.
    pub(crate) progress: Option<TaskProgress>,
}

impl RunResult {
    /// Returns true if a signal interrupted it.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interruption != Interruption::Never
    }

    /// Returns true after a second signal, or without a store: nothing is waited for any more.
    pub(crate) fn leaves_at_once(&self) -> bool {
        self.interruption == Interruption::Twice || self.without_store
    }
}

impl Controller {
    /// Returns the state at the start, with the first command pending.
    pub(crate) fn new(mut renderer: Renderer, mut plan: RunPlan) -> Self {
        let first = plan.first.take();
        first.iter().for_each(|first| renderer.told(first));
        Self {
            renderer,
            plan,
            asked: u32::from(first.is_some()),
            pending: first.into_iter().collect(),
            running: false,
            so_far: RunSoFar::default(),
            live: 0,
            all_stopped: false,
            runs: Runs::default(),
            wait: 0,
            stopping: None,
            questions: PendingApprovals::default(),
            waiting: BTreeSet::new(),
            shown: 0,
            spent: None,
            to_keep: Vec::new(),
            silence: None,
            told_state: IDLE,
            finished: false,
            ending: RunResult::default(),
        }
    }

    /// Waits until the first output can be made.
    pub(crate) async fn ready(&self) {
        self.renderer.ready().await;
    }

    /// Returns the first output.
    pub(crate) fn greet(&self) -> Vec<OutputItem> {
        self.renderer.greet()
    }

    /// Returns a note that is not about agents.
    pub(crate) fn note(&mut self, note: String) -> Vec<OutputItem> {
        self.renderer.note(note)
    }

    /// Returns the line about the session's state, if it has changed and the program wants it.
    pub(crate) fn state(&mut self) -> Option<OutputItem> {
        let state = match () {
            () if self.questions.is_open() => "requires_action",
            () if self.is_busy() || self.live > 0 => "running",
            () => IDLE,
        };
        if !self.plan.program.tells_state || std::mem::replace(&mut self.told_state, state) == state
        {
            return None;
        }
        self.renderer.state(state)
    }

    /// Returns the state of the team after `elapsed`. The final output is the last, and it tells the
    /// state on which it depends.
    pub(crate) fn seen(&mut self, seen: &TeamSnapshot, elapsed: Duration) -> Vec<OutputItem> {
        if self.finished {
            return Vec::new();
        }
        self.ending.progress = Some(seen.progress());
        match self.plan.led {
            true => self.renderer.seen(seen, elapsed),
            false => Vec::new(),
        }
    }

    /// Returns true if members of a team may work in other processes.
    pub(crate) fn has_members(&self) -> bool {
        self.plan.led || self.runs.has_members()
    }

    /// Notes what the whole session has spent in the time of this process; `None` if that is what
    /// this process has counted.
    pub(crate) fn spent(&mut self, spent: Option<SessionSpent>) {
        self.spent = spent;
    }

    /// Makes the costs of a run whole: everything that was spent since the end of the run before.
    fn complete(&self, end: &mut RunEnd) {
        if let Some(all) = self.spent.as_ref().filter(|_| self.has_members()) {
            let before = self.ending.last.iter();
            let before = before.flat_map(|last| last.spent.iter().chain(&last.below));
            let known = together(before.chain(&end.spent).cloned());
            end.below = without(&all.spent, &known);
        }
    }

    /// Handles a check of the store: the first one that fails is reported, and the first one after
    /// that succeeds.
    pub(crate) fn store(&mut self, silence: Option<&str>) -> Vec<OutputItem> {
        let before = std::mem::replace(&mut self.silence, silence.map(str::to_owned));
        match (before, &self.silence) {
            (None, Some(why)) => {
                // Another wait, which nothing but the store's answer ends.
                self.wait += 1;
                let note = format!("the store does not answer ({why}); waiting for it");
                self.renderer.note(note)
            }
            (Some(_), None) => {
                self.wait += 1;
                self.renderer.note("the store answers again".into())
            }
            _ => Vec::new(),
        }
    }

    /// Takes the rules that are to be kept for later sessions.
    pub(crate) fn take_kept(&mut self) -> Vec<NewRules> {
        std::mem::take(&mut self.to_keep)
    }

    /// Returns the next command to send.
    pub(crate) fn next_command(&mut self) -> Option<Command> {
        self.pending.pop_front()
    }

    /// Returns true if another input line may be read.
    pub(crate) fn takes_lines(&self) -> bool {
        // A program that writes faster than the agent works waits in its own pipe.
        self.plan.listening && self.pending.len() < WAITING
    }

    /// Returns true if the agent has finished and will be sent nothing more.
    pub(crate) fn is_done(&self) -> bool {
        self.is_over() && self.pending.is_empty()
    }

    /// Returns true if it is time to leave: after a signal, or when what was waited for in vain
    /// is stopped.
    pub(crate) fn must_leave(&self) -> bool {
        let stopped = self.stopping.as_ref().is_none_or(|stopping| {
            stopping.ends == 0 && (stopping.bounded || self.runs.background().next().is_none())
        });
        self.ending.leaves_at_once()
            || (self.ending.is_interrupted() && !self.is_busy() && stopped)
            || (self.ending.gave_up && stopped)
    }

    /// Returns how long to wait before [`Controller::waited`], and the number of this wait;
    /// another number restarts it. `None` if only the agent is waited for.
    pub(crate) fn waits(&self) -> Option<(u64, Duration)> {
        if self.silence.is_some() && self.stopping.is_none() && !self.plan.listening {
            return Some((self.wait, self.plan.patience));
        }
        // What waits for a person has a time of its own.
        if self.is_busy() || self.stopping.is_none() && !self.waiting.is_empty() {
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

    /// Handles the end of the agent's events. An agent that owes a result has failed.
    pub(crate) fn gone(&mut self) -> Vec<OutputItem> {
        self.live = 0;
        if self.is_busy() && !self.ending.is_interrupted() {
            let message = "the agent ended without a result".to_owned();
            // An agent always reports how a run ended, so this is a bug in posse.
            let fault = Fault {
                class: FaultClass::Internal,
                status: None,
                message,
            };
            let kind = EventKind::Ended(Box::new(RunEnd::of(Outcome::Failed(fault))));
            // Handled like the end of a run under way; what was asked for will not begin any more.
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

    /// Returns true if a second signal has come.
    pub(crate) fn is_interrupted_twice(&self) -> bool {
        self.ending.interruption == Interruption::Twice
    }

    /// Handles a signal: the first one stops the work, the second one leaves at once.
    pub(crate) fn signal(&mut self) -> Vec<OutputItem> {
        if self.ending.is_interrupted() {
            self.ending.interruption = Interruption::Twice;
            return Vec::new();
        }
        self.ending.interruption = Interruption::Once;
        // It is no answer: what is asked is withdrawn with the call.
        let terminal = self.plan.terminal.as_mut();
        terminal.into_iter().for_each(QuestionQueue::clear);
        // Without a run there is nothing to interrupt, and the command would hit the next one.
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

    /// Handles the end of a wait for background runs.
    pub(crate) fn waited(&mut self) -> Vec<OutputItem> {
        if let Some(stopping) = &mut self.stopping {
            stopping.ends = 0;
            let mut items = Vec::new();
            self.settle(&mut items);
            return items;
        }
        self.ending.gave_up = true;
        if self.silence.is_some() {
            return self.pause(self.end_so_far());
        }
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

    /// Handles an event that came while the store did not answer, after it was waited for in vain.
    pub(crate) fn give_up_on_store(&mut self, event: Event) -> Vec<OutputItem> {
        self.ending.gave_up = true;
        match event.kind {
            EventKind::Ended(end) if event.agent == self.plan.main => self.pause(*end),
            _ => self.pause(self.end_so_far()),
        }
    }

    /// Ends as paused, because the store does not answer: nothing else has kept what the run has said
    /// and spent.
    fn pause(&mut self, end: RunEnd) -> Vec<OutputItem> {
        let why = self.silence.take().unwrap_or_default();
        let fault = Fault {
            class: FaultClass::Store,
            status: None,
            message: format!("the store does not answer: {why}"),
        };
        let outcome = Outcome::Paused(fault);
        let end = RunEnd { outcome, ..end };
        let ended = EventKind::Ended(Box::new(end.clone()));
        let mut items = self.renderer.event(&ended, &self.runs);
        self.ending.without_store = true;
        self.ending.last = Some(result::added(self.ending.last.take(), end));
        self.finish(&mut items);
        items
    }

    /// Returns the end of the run under way, as far as it is known; without one, that of the last.
    fn end_so_far(&self) -> RunEnd {
        let before = self.ending.last.as_ref();
        let (text, turns) = match before {
            Some(before) if !self.running => (before.text.clone(), 0),
            _ => (self.so_far.text.clone(), self.so_far.turns),
        };
        let (own, all) = (self.plan.account.own(), self.plan.account.subtree());
        let below = without(&all, &own);
        RunEnd {
            text,
            turns,
            spent: before.map_or(own.clone(), |before| without(&own, &before.spent)),
            below: before.map_or(below.clone(), |before| without(&below, &before.below)),
            // Replaced by the reason for which it is asked.
            ..RunEnd::of(Outcome::Interrupted)
        }
    }

    /// Handles an event of an agent.
    pub(crate) fn event(&mut self, event: Event) -> Vec<OutputItem> {
        let Event { agent, mut kind } = event;
        if agent == self.plan.main {
            self.so_far.event(&kind);
        }
        if let EventKind::Ended(end) = &mut kind
            && agent == self.plan.main
        {
            self.complete(end);
        }
        if let EventKind::Run(news) = &kind {
            // A member is not a run: it is reported as a member of its team, and its end is not
            // waited for.
            if self.runs.is_member(news.run.task) {
                return Vec::new();
            }
            self.runs.news(news);
            if let (RunChange::Ended(_), true) = (&news.what, news.run.starter == self.plan.main) {
                // Something ended, so the wait for the others starts again.
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
            EventKind::ApprovalRequested(question) if self.plan.terminal.is_some() => {
                items.extend(terminal::asked(self, agent, *question));
            }
            EventKind::ApprovalRequested(question) if self.plan.waits_for_answers => {
                items.push(OutputItem::Note(question::note(&question)));
                self.waiting.insert(question.id);
            }
            EventKind::ApprovalRequested(question) => {
                let question = question.id;
                self.pending
                    .push_back(unanswered(OpenApproval { agent, question }))
            }
            EventKind::ApprovalWithdrawn { question } => {
                self.waiting.remove(&question);
                items.extend(self.questions.withdraw(question).iter().map(line));
                items.extend(terminal::withdrawn(self, question));
            }
            EventKind::Started if agent == self.plan.main => self.begun(),
            EventKind::Ended(end) if agent == self.plan.main => self.ended(*end, &mut items),
            EventKind::AllIdle => self.live = 0,
            _ => {}
        }
        self.settle(&mut items);
        items
    }

    /// Handles a change of a team's member, which restarts the wait.
    fn member(&mut self, agent: AgentId, news: &MemberUpdate) -> Vec<OutputItem> {
        self.wait += 1;
        self.runs.member(agent, news);
        self.renderer.member(agent, news)
    }

    /// Handles an input line; `None` is the end of the input.
    pub(crate) fn line(&mut self, came: Option<StdinLine>) -> Vec<OutputItem> {
        let told = match came {
            None => {
                self.plan.listening = false;
                self.plan.program.callbacks.give_up();
                // Nobody can answer here any more: agents must not wait for approval forever.
                let left = self.questions.give_up();
                match self.plan.waits_for_answers {
                    true => self.waiting.extend(left.iter().map(|open| open.question)),
                    false => self.pending.extend(left.into_iter().map(unanswered)),
                }
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
                Ok(read) => {
                    let command = read.reported();
                    // During a run the history is compacted within it, which is not a run of its
                    // own.
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
                let response = match self.plan.program.callbacks.answer(&id, response) {
                    Ok(()) => return Vec::new(),
                    Err(response) => response,
                };
                let updates = response.as_ref().map(PermissionUpdates::read);
                let mut updates = updates.unwrap_or_default();
                match self.questions.answer(&id, response) {
                    Ok(None) => Vec::new(),
                    // The rules first: the call that was asked about may be one of many.
                    Ok(Some(mut command)) => {
                        if let Command::Answer {
                            answer: Answer::Approve { mode, .. },
                            ..
                        } = &mut command
                        {
                            *mode = updates.take_mode();
                        }
                        let items = self.update(updates);
                        self.pending.push_back(command);
                        items
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

    /// Returns true if a run is under way or will begin.
    fn is_busy(&self) -> bool {
        self.running || self.asked > 0
    }

    /// Returns true if nothing more will happen.
    fn is_over(&self) -> bool {
        !self.plan.listening && !self.is_busy() && self.live == 0
    }

    /// Handles the beginning of a run: one that was asked for, or one that the end of a
    /// background run begins.
    fn begun(&mut self) {
        self.asked = self.asked.saturating_sub(1);
        (self.running, self.all_stopped) = (true, false);
        if let Some(stopping) = &mut self.stopping {
            // Nobody will read its result.
            stopping.stray = true;
            self.pending.push_back(Command::Interrupt);
        }
    }

    /// Handles the end of a run.
    fn ended(&mut self, end: RunEnd, items: &mut Vec<OutputItem>) {
        if !std::mem::take(&mut self.running) {
            // A run that ends without having begun was still one of those asked for.
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
            // Only its cost counts: the result is that of the run before.
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
            // Runs whose end could not be delivered are gone all the same.
            Some(stopping) if self.live == 0 => {
                stopping.ends = 0;
                self.runs = Runs::default();
            }
            Some(stopping) => stopping.ends = stopping.ends.min(self.live),
            // What was started while the run was being stopped must be stopped, too.
            None if self.ending.is_interrupted() => self.stop_runs(),
            None => items.extend(self.say_what_is_waited_for()),
        }
    }

    /// Stops all background runs, if there are any. Members of a team are not stopped: they are
    /// released when this process ends and continue another time. Those in other processes are
    /// left alone.
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
            // Not `StopRuns`, which would interrupt the members of the team, too.
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
            // Ends that are counted but not known may be those of members elsewhere.
            let bounded = self.runs.has_members() || ends > count;
            self.stopping = Some(StopState {
                ends,
                stray: false,
                bounded,
            });
        }
    }

    /// Returns a note about the background runs that are waited for.
    fn say_what_is_waited_for(&mut self) -> Vec<OutputItem> {
        match self.waits() {
            Some((_, patience)) if !patience.is_zero() && self.waited_for() > 0 => {
                self.renderer.waiting(self.waited_for(), &self.runs)
            }
            _ => Vec::new(),
        }
    }

    /// Returns the number of background runs. Working members are counted in `live`, too, but
    /// reported separately.
    fn waited_for(&self) -> usize {
        if self.has_members() {
            self.runs.background().count()
        } else {
            self.live
        }
    }

    /// Writes the final output once nothing more will happen.
    fn settle(&mut self, items: &mut Vec<OutputItem>) {
        if self.is_over() || self.must_leave() {
            self.finish(items);
        }
    }

    /// Writes the final output, once.
    fn finish(&mut self, items: &mut Vec<OutputItem>) {
        let broken_off = self.plan.led && self.ending.is_interrupted();
        let has_members = self.has_members();
        if let (Some(last), false) = (&mut self.ending.last, self.finished) {
            self.finished = true;
            let progress = self.ending.progress.as_ref();
            // The lead has ended its turn, but a team that did not do its work did not succeed.
            let is_open = progress.is_some_and(TaskProgress::is_open);
            if is_open && last.outcome == Outcome::Completed {
                last.outcome = Outcome::Partial(Limit::Tasks);
            }
            // Members may have worked after the lead's last run. A store that is lost has told what
            // was spent before.
            let is_known = has_members && !self.ending.without_store;
            if let (Some(all), true) = (&self.spent, is_known) {
                last.below = without(&all.spent, &last.spent);
            }
            let end = FinalEnd {
                all: last,
                left: &self.ending.left,
                progress,
                broken_off,
                uncertain: self
                    .spent
                    .as_ref()
                    .map_or(Some(Cost::ZERO), |all| all.uncertain),
            };
            items.extend(self.renderer.finish(&end));
        }
    }

    /// Reports invalid input.
    fn not_understood(&mut self, what: &str) -> Vec<OutputItem> {
        self.ending.not_understood = true;
        self.renderer.not_understood(what)
    }

    /// Applies what an answer changes besides its call, and reports what it cannot change.
    fn update(&mut self, updates: PermissionUpdates) -> Vec<OutputItem> {
        let PermissionUpdates {
            commands,
            kept,
            mut refused,
        } = updates;
        self.to_keep.extend(kept);
        let bypass = Command::SetMode(PermissionMode::BypassPermissions);
        for command in commands {
            if command == bypass && !self.plan.program.may_bypass {
                refused.push(RequestError::Bypass.to_string());
            } else {
                self.pending.push_back(command);
            }
        }
        let told = refused.into_iter().map(EventKind::Warning);
        told.flat_map(|event| self.renderer.event(&event, &self.runs))
            .collect()
    }

    /// Handles a control request and returns its answer.
    fn request(&mut self, request: ControlRequest) -> Result<Value, RequestError> {
        match request {
            ControlRequest::Initialize(asked) => {
                if !std::mem::take(&mut self.plan.program.initialized) && asked.shapes_session() {
                    return Err(RequestError::Late);
                }
                return Ok(json!({
                    "agents": self.plan.program.agents, "account": {}, "unused": asked.unused, "hook_on_failure_supported": true,
                    "claude_code_version": env!("CARGO_PKG_VERSION"), "commands": self.plan.slash.list(), "output_style": "default", "available_output_styles": ["default"],
                    "models": [], "capabilities": [
                        "interrupt", "set_permission_mode", "set_model", "can_use_tool", "stop_task", "stop_all_tasks",
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
                if !self.plan.program.may_bypass =>
            {
                return Err(RequestError::Bypass);
            }
            ControlRequest::SetMode(mode) => {
                self.pending.push_back(Command::SetMode(mode));
                return Ok(json!({"mode": mode}));
            }
            ControlRequest::SetModel { model, effort } => {
                let model = Some(model);
                self.pending.push_back(Command::SetModel { model, effort });
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

/// Addresses a command to another agent of the session.
fn to(agent: AgentId, command: Command) -> Command {
    Command::To {
        agent,
        command: Box::new(command),
    }
}

#[cfg(test)]
mod tests;
