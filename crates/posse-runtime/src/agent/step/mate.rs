//! What a teammate does when its turn is over: it looks for work, rests, and wakes again.

use posse_protocol::{
    ContentBlock, EntryKind, EventKind, Fault, FaultClass, Mail, MailKind, Message, Outcome,
    ReplyFacts, Response, Role, StopReason, Task, Usage,
};

use crate::agent::step::{Decision, Effect, Ended, Life, Machine, Resting, State};
use crate::prompt;
use posse_port::store::{AgentState, Op};

impl Machine {
    /// It has, or may have, tasks that it is doing.
    pub(crate) fn set_owning(&mut self, owning: bool) {
        self.owning = owning;
    }

    /// It ends for good, as soon as what it does is done.
    pub(crate) fn leave(&mut self) {
        self.leaving = true;
    }

    /// Whether it ends for good.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Its process ends: what it does goes on elsewhere, or another time.
    pub(crate) fn suspend(&mut self) {
        self.suspended = true;
    }

    /// Whether it would take a task.
    pub(crate) fn seeks(&self) -> bool {
        let free = matches!(
            self.state,
            State::Idle | State::Looking { .. } | State::Ending(_)
        );
        free && self.is_mate() && self.awake && !self.leaving && !self.suspended
    }

    /// Whether a run is open.
    pub(crate) fn has_run(&self) -> bool {
        !matches!(self.state, State::Idle | State::Looking { open: false })
    }

    /// Whether it does nothing, and what comes now would wake it.
    pub(crate) fn rests(&self) -> bool {
        matches!(self.state, State::Idle | State::Looking { .. })
    }

    /// A person interrupts it: it does nothing until it is told more.
    pub(super) fn calm(&mut self) {
        if self.is_mate() {
            self.awake = false;
        }
    }

    /// Whether the last entry waits for a reply.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.unanswered
    }

    fn is_mate(&self) -> bool {
        matches!(self.life, Life::Mate { .. })
    }

    /// Whether it is interrupted, and nothing but a new word wakes it.
    pub(super) fn is_hushed(&self) -> bool {
        self.is_mate() && !self.awake
    }

    /// Whether it must look for tasks before its turn is over: a teammate always, others if they may have some.
    pub(super) fn must_look(&self) -> bool {
        !self.leaving && (self.is_mate() && self.live == 0 || self.owning && !self.run.reminded)
    }

    pub(super) fn look(&mut self, decision: &mut Decision) {
        self.state = State::Looking { open: true };
        decision.after.push(Effect::Look {
            claim: self.is_mate() && self.awake,
        });
    }

    /// There may be a task for one who does nothing.
    pub(super) fn look_again(&mut self, decision: &mut Decision) {
        let free =
            matches!(self.state, State::Idle) && self.awake && !self.leaving && !self.suspended;
        if free && self.is_mate() && !self.queue.has_mail() && !self.queue.has_prompts() {
            self.state = State::Looking { open: false };
            decision.after.push(Effect::Look { claim: true });
        }
    }

    /// What it found: a task begins a run of its own; of one that it left undone it is reminded once.
    pub(super) fn found(
        &mut self,
        decision: &mut Decision,
        open: &[Task],
        claimed: Option<Box<Task>>,
    ) {
        let State::Looking { open: run_open } = self.state else {
            return;
        };
        self.owning = !open.is_empty() || claimed.is_some();
        if let Some(task) = claimed {
            if run_open {
                let run = std::mem::take(&mut self.run);
                decision.after.push(Effect::End(Box::new(Ended {
                    outcome: Outcome::Completed,
                    run,
                })));
            }
            return self.begin(
                decision,
                vec![ContentBlock::text(prompt::team::claimed(&task))],
            );
        }
        if !run_open {
            self.state = State::Idle;
            if self.begins_by_mail() {
                self.begin(decision, Vec::new());
            }
            return;
        }
        if self.begins_by_mail() && !self.queue.has_prompts() {
            return self.go_on(decision, Vec::new());
        }
        if !open.is_empty() && !self.run.reminded {
            self.run.reminded = true;
            return self.go_on(
                decision,
                vec![ContentBlock::text(prompt::team::unfinished(open))],
            );
        }
        self.conclude(decision);
    }

    /// A teammate has nothing to do: it becomes idle, unless mail has come.
    pub(super) fn rest(&mut self, decision: &mut Decision) {
        if self.queue.has_prompts() {
            let words = self.queue.all_prompts();
            return self.go_on(decision, words);
        }
        self.state = State::Ending(Outcome::Completed);
        let text = self.run.text.clone();
        decision.commit.resting = Some(Resting {
            outcome: Outcome::Completed,
            unless_mail: true,
            text,
        });
    }

    /// A teammate's run has ended otherwise than by itself: it is idle, and waits to be told more.
    pub(super) fn rest_after(&mut self, decision: &mut Decision, outcome: &Outcome) {
        if self.suspended {
            return;
        }
        match outcome {
            Outcome::Interrupted if self.awake => {}
            Outcome::Completed => self.awake = true,
            _ => {
                // What it could not answer it has read when it is written to again.
                self.awake = false;
                self.show_silently(decision);
            }
        }
        let (outcome, text) = (outcome.clone(), self.run.text.clone());
        decision.commit.resting = Some(Resting {
            outcome,
            unless_mail: false,
            text,
        });
    }

    /// Whether among the mail is an interruption; what was written after it wakes one who was interrupted.
    pub(super) fn heed_signals(&mut self, mail: &[Mail]) -> bool {
        if !self.is_mate() || mail.is_empty() {
            return false;
        }
        let signal = |mail: &Mail| mail.kind == MailKind::Interruption;
        self.awake = !mail.last().is_some_and(signal) && !self.leaving;
        mail.iter().any(signal)
    }

    /// It was interrupted by mail: what it does ends. What waits to be read is in its history, and begins nothing.
    pub(super) fn hush(&mut self, decision: &mut Decision) {
        match self.state {
            State::Idle if self.begins_by_mail() => self.begin(decision, Vec::new()),
            State::Idle => {
                self.show_silently(decision);
                decision.commit.state = Some(AgentState::Idle);
            }
            _ => self.interrupt(decision),
        }
    }

    /// Puts what waits into the history, without asking the model for anything.
    fn show_silently(&mut self, decision: &mut Decision) {
        while self.queue.has_mail() {
            let content = self.show_news(decision);
            let (usage, stop) = (Usage::default(), Some(StopReason::EndTurn));
            let facts = ReplyFacts {
                id: String::new(),
                model: String::new(),
                stop,
                usage,
                missed: None,
            };
            self.add(
                decision,
                EntryKind::Prompt,
                Message {
                    role: Role::User,
                    content,
                },
                Some(facts),
            );
        }
    }

    /// A plan that is approved changes the mode with the entry that says so.
    pub(super) fn heed_plan(&mut self, decision: &mut Decision, mail: &[Mail]) {
        let Life::Mate { then } = self.life else {
            return;
        };
        let approves = |mail: &Mail| {
            let said = serde_json::from_str::<Response>(&mail.body);
            mail.kind == MailKind::PlanApprovalResponse && said.is_ok_and(|said| said.approve)
        };
        if mail.iter().any(approves) {
            let mode = then.unwrap_or_else(|| self.rights.standing.mode_above());
            self.rights.standing.set_mode(mode);
            decision.commit.mode = Some(mode);
            decision.after.push(Effect::Emit(EventKind::Mode(mode)));
        }
    }

    /// A person's first words, with the team that is made for them.
    pub(super) fn raise(
        &mut self,
        decision: &mut Decision,
        words: Vec<ContentBlock>,
        ops: Vec<Op>,
    ) {
        if !matches!(self.state, State::Idle) || self.next_seq > 0 {
            let message = "a declared team is raised by the first words of a session".to_owned();
            let fault = Fault {
                class: FaultClass::Busy,
                status: None,
                message,
            };
            return decision.after.push(Effect::Refuse(Outcome::Failed(fault)));
        }
        self.begin(decision, words);
        let operation = |op| posse_port::store::Operation { call: None, op };
        decision
            .commit
            .operations
            .extend(ops.into_iter().map(operation));
        decision.after.push(Effect::Raise);
    }
}
