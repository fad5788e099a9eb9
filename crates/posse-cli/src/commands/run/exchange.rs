//! What passes between an agent and the outside, decided without waiting for anything: an event or a
//! line in, things to be written and commands to be sent out.

use std::collections::VecDeque;

use posse_protocol::{Command, EventKind, Fault, FaultClass, Outcome, PermissionMode, RunEnd};
use serde_json::{Value, json};

use super::face::{Face, Said, line};
use super::input::{self, NotUnderstood, Request, Told};
use super::question::{NeverAsked, Questions, unanswered};
use super::stdin::Line;

/// How many commands wait for the agent before no more lines are read.
const WAITING: usize = 16;

/// Where things stand.
pub(super) struct Exchange {
    face: Face,
    /// Whether lines can still come; then somebody is there to answer.
    listening: bool,
    /// The mode the person started the session in.
    started_in: PermissionMode,
    /// What the agent has still to be told.
    pending: VecDeque<Command>,
    /// Runs that have been asked for and have not ended.
    runs: u32,
    questions: Questions,
    ending: Ending,
}

/// How it ended.
#[derive(Default)]
pub(super) struct Ending {
    /// The last run's end; none if there was none.
    pub(super) last: Option<RunEnd>,
    /// Whether a signal ended it.
    pub(super) interrupted: bool,
    /// Whether a second one did: then nothing is waited for.
    pub(super) at_once: bool,
    /// Whether there was input that could not be understood.
    pub(super) not_understood: bool,
}

impl Exchange {
    /// `first` is what the agent is told before any line.
    pub(super) fn new(
        face: Face,
        first: Option<Command>,
        listening: bool,
        started_in: PermissionMode,
    ) -> Self {
        Self {
            face,
            listening,
            started_in,
            runs: u32::from(first.is_some()),
            pending: first.into_iter().collect(),
            questions: Questions::default(),
            ending: Ending::default(),
        }
    }

    /// What is written before anything happens.
    pub(super) fn greet(&self) -> Vec<Said> {
        self.face.greet()
    }

    /// What the agent is to be told next.
    pub(super) fn next_command(&mut self) -> Option<Command> {
        self.pending.pop_front()
    }

    /// Whether another line may be read.
    pub(super) fn takes_lines(&self) -> bool {
        self.listening && self.pending.len() < WAITING
    }

    /// Whether the agent has done all that it was told, and will be told nothing more.
    pub(super) fn is_done(&self) -> bool {
        !self.listening && self.runs == 0 && self.pending.is_empty()
    }

    /// Whether it is time to leave because a signal said so.
    pub(super) fn must_leave(&self) -> bool {
        self.ending.at_once || (self.ending.interrupted && self.runs == 0)
    }

    /// How it ended.
    pub(super) fn end(self) -> Ending {
        self.ending
    }

    /// The agent is gone. If it owed an end, that is a failure.
    pub(super) fn gone(&mut self) -> Vec<Said> {
        if self.runs == 0 || self.ending.interrupted {
            return Vec::new();
        }
        let message = "the agent ended without a word".to_owned();
        let fault = Fault { class: FaultClass::Internal, status: None, message };
        self.event(EventKind::Ended(Box::new(RunEnd::of(Outcome::Failed(fault)))))
    }

    /// Whether a signal has come.
    pub(super) fn is_interrupted(&self) -> bool {
        self.ending.interrupted
    }

    /// A signal: the first stops the run, the second everything. What it gives is for a person only.
    pub(super) fn signal(&mut self) -> Vec<Said> {
        self.ending.at_once = std::mem::replace(&mut self.ending.interrupted, true);
        if self.runs > 0 && !self.ending.at_once {
            self.pending.push_back(Command::Interrupt);
        }
        let again = (!self.ending.at_once).then(|| Said::Note("stopping; once more to leave at once".into()));
        again.into_iter().collect()
    }

    /// Something happened to the agent.
    pub(super) fn event(&mut self, event: EventKind) -> Vec<Said> {
        let mut said = self.face.event(&event);
        match event {
            EventKind::Asked(question) if self.listening => said.push(line(&self.questions.ask(&question))),
            EventKind::Asked(question) => self.pending.push_back(unanswered(question.call)),
            EventKind::Withdrawn { call } => said.extend(self.questions.withdraw(&call).iter().map(line)),
            EventKind::Ended(end) => {
                // After a signal nothing that still waits is begun.
                self.runs = if self.ending.interrupted { 0 } else { self.runs.saturating_sub(1) };
                self.ending.last = Some(*end);
            }
            _ => {}
        }
        said
    }

    /// A line came, or the end of all lines.
    pub(super) fn line(&mut self, came: Option<Line>) -> Vec<Said> {
        let told = match came {
            None => {
                self.listening = false;
                self.pending.extend(self.questions.give_up());
                return Vec::new();
            }
            Some(Line::Unreadable(what)) => Err(NotUnderstood { id: None, what: what.to_owned() }),
            Some(Line::Text(text)) => input::read(&text),
        };
        match told {
            Ok(Told::Prompt(content)) => {
                self.runs += 1;
                self.pending.push_back(Command::Prompt(content));
                Vec::new()
            }
            Ok(Told::Request { id, request }) => {
                let answer = self.request(request);
                vec![line(&input::response(&id, answer))]
            }
            Ok(Told::Response { id, response }) => match self.questions.answer(&id, response) {
                Ok(command) => {
                    self.pending.extend(command);
                    Vec::new()
                }
                Err(NeverAsked) => self.not_understood(&format!("nothing is asked under the id {id}")),
            },
            Ok(Told::Nothing) => Vec::new(),
            Err(NotUnderstood { id: Some(id), what }) => vec![line(&input::response(&id, Err(what)))],
            Err(NotUnderstood { id: None, what }) => self.not_understood(&what),
        }
    }

    fn not_understood(&mut self, what: &str) -> Vec<Said> {
        self.ending.not_understood = true;
        self.face.not_understood(what)
    }

    fn request(&mut self, request: Request) -> Result<Value, String> {
        match request {
            Request::Initialize => Ok(json!({
                "commands": [], "output_style": "default", "available_output_styles": ["default"],
                "models": [], "capabilities": ["interrupt", "set_permission_mode", "can_use_tool"],
            })),
            Request::Interrupt => {
                if self.runs > 0 {
                    self.pending.push_back(Command::Interrupt);
                }
                Ok(json!({}))
            }
            Request::SetMode(PermissionMode::BypassPermissions)
                if self.started_in != PermissionMode::BypassPermissions =>
            {
                Err("bypassPermissions must be asked for when posse is started".into())
            }
            Request::SetMode(mode) => {
                self.pending.push_back(Command::SetMode(mode));
                Ok(json!({"mode": mode}))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use posse_protocol::{Answer, ContentBlock, Outcome, Question, RawJson};

    use super::super::lines::Lines;
    use super::super::made::{end, facts};
    use super::*;

    fn exchange() -> Exchange {
        Exchange::new(Face::Lines(Lines::new(facts(), false)), None, true, PermissionMode::Default)
    }

    fn tell(exchange: &mut Exchange, line: Value) -> Vec<Value> {
        values(exchange.line(Some(Line::Text(line.to_string()))))
    }

    fn values(said: Vec<Said>) -> Vec<Value> {
        let out = said.into_iter().filter_map(|said| match said {
            Said::Out(text) => Some(serde_json::from_str(&text).unwrap()),
            Said::Note(_) => None,
        });
        out.collect()
    }

    fn request(subtype: &str, mode: &str) -> Value {
        json!({"type": "control_request", "request_id": "r", "request": {"subtype": subtype, "mode": mode}})
    }

    fn prompt(text: &str) -> Value {
        json!({"type": "user", "message": {"role": "user", "content": text}})
    }

    fn asked() -> EventKind {
        EventKind::Asked(Question {
            call: "t1".into(),
            tool: "Bash".into(),
            input: RawJson::empty_object(),
            why: "no rule allows it".into(),
        })
    }

    fn ended() -> EventKind {
        EventKind::Ended(Box::new(end(Outcome::Completed)))
    }

    #[test]
    fn what_was_told_is_finished_before_it_ends() {
        let mut exchange = exchange();
        tell(&mut exchange, prompt("one"));
        tell(&mut exchange, prompt("two"));
        assert_eq!(exchange.next_command(), Some(Command::Prompt(vec![ContentBlock::text("one")])));
        assert_eq!(exchange.next_command(), Some(Command::Prompt(vec![ContentBlock::text("two")])));
        exchange.line(None);
        exchange.event(ended());
        assert!(!exchange.is_done(), "the second run is still to come");
        exchange.event(ended());
        assert!(exchange.is_done());
    }

    #[test]
    fn questions_are_answered_by_a_line_or_by_the_end_of_lines() {
        let mut exchange = exchange();
        let line = values(exchange.event(asked())).remove(0);
        let response = json!({"subtype": "success", "request_id": line["request_id"], "response": {"behavior": "allow"}});
        tell(&mut exchange, json!({"type": "control_response", "response": response}));
        let allow = Answer::Allow { input: None };
        assert_eq!(exchange.next_command(), Some(Command::Answer { call: "t1".into(), answer: allow }));
        exchange.event(asked());
        exchange.line(None);
        assert_eq!(exchange.next_command(), Some(unanswered("t1".into())));
        assert!(values(exchange.event(asked())).is_empty(), "nobody is there to be asked");
        assert_eq!(exchange.next_command(), Some(unanswered("t1".into())));
    }

    // proves PE-04 (open: children)
    #[test]
    fn rights_that_were_not_given_at_the_start_are_not_given_later() {
        let mut exchange = exchange();
        let told = tell(&mut exchange, request("set_permission_mode", "bypassPermissions"));
        assert_eq!(told[0]["response"]["subtype"], "error");
        assert_eq!(exchange.next_command(), None);
        let told = tell(&mut exchange, request("set_permission_mode", "plan"));
        assert_eq!(
            (&told[0]["response"]["subtype"], &told[0]["response"]["request_id"]),
            (&"success".into(), &"r".into())
        );
        assert_eq!(exchange.next_command(), Some(Command::SetMode(PermissionMode::Plan)));
    }

    #[test]
    fn rubbish_is_reported_and_it_goes_on() {
        let mut exchange = exchange();
        let told = values(exchange.line(Some(Line::Text("{".into()))));
        assert_eq!((&told[0]["type"], &told[0]["subtype"]), (&"system".into(), &"input_error".into()));
        let response = json!({"subtype": "success", "request_id": "q9", "response": {"behavior": "allow"}});
        let told = tell(&mut exchange, json!({"type": "control_response", "response": response}));
        assert_eq!(told[0]["subtype"], "input_error");
        assert!(told[0]["error"].as_str().unwrap().contains("q9"));
        assert_eq!(tell(&mut exchange, request("dance", ""))[0]["response"]["subtype"], "error");
        tell(&mut exchange, prompt("one"));
        assert!(exchange.next_command().is_some());
        assert!(exchange.end().not_understood);
    }

    #[test]
    fn the_first_signal_stops_the_run_and_the_second_everything() {
        let mut exchange = exchange();
        tell(&mut exchange, prompt("one"));
        tell(&mut exchange, prompt("two"));
        exchange.signal();
        assert!(!exchange.must_leave());
        exchange.event(ended());
        assert!(exchange.must_leave(), "what waits is not begun");
        let mut idle = self::exchange();
        idle.signal();
        assert!(idle.must_leave() && !idle.end().at_once);
        let mut stuck = self::exchange();
        tell(&mut stuck, prompt("one"));
        stuck.signal();
        stuck.signal();
        assert!(stuck.must_leave() && stuck.end().at_once);
    }

    #[test]
    fn an_interrupt_is_for_a_run() {
        let mut exchange = exchange();
        assert_eq!(tell(&mut exchange, request("interrupt", ""))[0]["response"]["subtype"], "success");
        assert_eq!(exchange.next_command(), None);
        tell(&mut exchange, prompt("one"));
        tell(&mut exchange, request("interrupt", ""));
        exchange.next_command();
        assert_eq!(exchange.next_command(), Some(Command::Interrupt));
    }
}
