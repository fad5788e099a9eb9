//! What happens, for people: the reply on stdout, progress and trouble on stderr.

use std::collections::HashMap;

use posse_protocol::{Delta, EntryKind, EventKind, Outcome, Retry, RunEnd};

use super::face::Said;
use super::result;
use crate::output::{in_words, tame};
use crate::session::Facts;
use crate::transcript::shortened;

/// The longest reason of a failure that is told, in characters.
const LONGEST_REASON: usize = 200;

/// Turns events into text.
pub(super) struct Text {
    facts: Facts,
    /// Whether a person sees stdout: then replies show while they arrive. A pipe gets the last one,
    /// whole, once it is certain.
    live: bool,
    /// Whether progress is told.
    notes: bool,
    at_line_start: bool,
    /// Whether the present attempt has shown anything.
    anything: bool,
    titles: HashMap<String, String>,
}

impl Text {
    pub(super) fn new(facts: Facts, live: bool, notes: bool) -> Self {
        Self { facts, live, notes, at_line_start: true, anything: false, titles: HashMap::new() }
    }

    pub(super) fn event(&mut self, event: &EventKind) -> Vec<Said> {
        let mut said = Vec::new();
        match event {
            EventKind::Delta(Delta::Started { .. }) => self.anything = false,
            EventKind::Delta(Delta::Text(text)) if self.live && !text.is_empty() => {
                self.anything = true;
                self.at_line_start = text.ends_with('\n');
                said.push(Said::Out(tame(text)));
            }
            EventKind::Entry(entry) if entry.kind == EntryKind::Reply => self.end_line(&mut said),
            EventKind::Retry(retry) => {
                let void =
                    if std::mem::take(&mut self.anything) { ", and what it had said is void" } else { "" };
                self.tell(&mut said, failed_attempt(retry, void));
            }
            EventKind::CallStarted { call, title, .. } => {
                self.titles.insert(call.clone(), title.clone());
                self.note(&mut said, &format!("→ {title}"));
            }
            EventKind::CallDone { call, is_error } => {
                if let Some(title) = self.titles.remove(call).filter(|_| *is_error) {
                    self.note(&mut said, &format!("✗ {title}"));
                }
            }
            EventKind::Denied(denial) => {
                // Who denied it may have said that word already.
                let why =
                    denial.why.strip_prefix("Denied").map_or(format!(": {}", denial.why), str::to_owned);
                self.tell(&mut said, one_line(&format!("✗ {} denied{why}", denial.tool)));
            }
            EventKind::Mode(mode) => self.note(&mut said, &format!("permission mode: {mode}")),
            EventKind::Ended(end) => self.end(end, &mut said),
            EventKind::Started
            | EventKind::Entry(_)
            | EventKind::Delta(_)
            | EventKind::Asked(_)
            | EventKind::Withdrawn { .. } => {}
        }
        said
    }

    fn end(&mut self, end: &RunEnd, said: &mut Vec<Said>) {
        self.end_line(said);
        let text = end.text.trim_end_matches('\n');
        let is_result = matches!(end.outcome, Outcome::Completed | Outcome::Partial(_) | Outcome::Refused);
        if !self.live && is_result && !text.is_empty() {
            said.push(Said::Out(format!("{}\n", tame(text))));
        }
        let (usage, cost, id) = (result::usage(end), in_words(result::cost(end)), &self.facts.short);
        let turns = if end.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", end.turns) };
        let (input, output) = (usage.prompt(), usage.output);
        self.note(
            said,
            &format!(
                "{turns} · {input} tokens in, {output} out · {cost} · go on with: posse -p --resume {id} …"
            ),
        );
    }

    /// Progress never stands in the middle of a line of the reply.
    fn note(&mut self, said: &mut Vec<Said>, note: &str) {
        if self.notes {
            self.tell(said, one_line(note));
        }
    }

    /// What is told also where no person looks on.
    fn tell(&mut self, said: &mut Vec<Said>, note: String) {
        self.end_line(said);
        said.push(Said::Note(note));
    }

    fn end_line(&mut self, said: &mut Vec<Said>) {
        if self.live && !std::mem::replace(&mut self.at_line_start, true) {
            said.push(Said::Out("\n".into()));
        }
    }
}

/// What is said of an attempt that failed.
pub(super) fn failed_attempt(retry: &Retry, void: &str) -> String {
    let (why, wait) = (shortened(&retry.fault.message, LONGEST_REASON), retry.wait_ms as f64 / 1000.0);
    one_line(&format!("attempt {} failed{void}: {why}; next in {wait:.1} s", retry.attempt))
}

/// A title or an error is a line for us, whatever is in it.
fn one_line(text: &str) -> String {
    tame(&text.replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use posse_protocol::{Denial, Fault, FaultClass};

    use super::super::made::{end, facts};
    use super::*;

    fn happened(outcome: Outcome) -> Vec<EventKind> {
        let fault = Fault { class: FaultClass::Busy, status: Some(529), message: "busy\x1b[2J".into() };
        let call = "t1".to_owned();
        vec![
            EventKind::Started,
            EventKind::Delta(Delta::Text("wrong".into())),
            EventKind::Retry(Retry { attempt: 1, wait_ms: 500, fault }),
            EventKind::Delta(Delta::Text("I look.\x1b[2J".into())),
            EventKind::CallStarted { call: call.clone(), tool: "Read".into(), title: "Read a\nb".into() },
            EventKind::CallDone { call, is_error: true },
            EventKind::Denied(end(Outcome::Completed).denials[0].clone()),
            EventKind::Denied(Denial {
                why: "Denied, since nobody is there".into(),
                ..end(Outcome::Completed).denials[0].clone()
            }),
            EventKind::Delta(Delta::Text("all done".into())),
            EventKind::Ended(Box::new(end(outcome))),
        ]
    }

    fn shown(live: bool, notes: bool, outcome: Outcome) -> (String, Vec<String>) {
        let (mut text, mut out, mut told) = (Text::new(facts(), live, notes), String::new(), Vec::new());
        for said in happened(outcome).iter().flat_map(|event| text.event(event)) {
            match said {
                Said::Out(text) => out.push_str(&text),
                Said::Note(note) => told.push(note),
            }
        }
        (out, told)
    }

    #[test]
    fn a_pipe_gets_the_last_reply_and_stderr_the_trouble() {
        let trouble = [
            "attempt 1 failed: busy\\u{1b}[2J; next in 0.5 s",
            "✗ Bash denied: a rule says so",
            "✗ Bash denied, since nobody is there",
        ];
        let fault = Fault { class: FaultClass::Provider, status: None, message: "gone".into() };
        for (outcome, out) in
            [(Outcome::Completed, "all done\n"), (Outcome::Paused(fault), ""), (Outcome::Interrupted, "")]
        {
            let (shown, told) = shown(false, false, outcome);
            assert_eq!((shown.as_str(), told), (out, trouble.map(str::to_owned).to_vec()));
        }
    }

    #[test]
    fn a_terminal_sees_it_arrive_with_a_line_per_call() {
        let (out, told) = shown(true, true, Outcome::Completed);
        assert_eq!(out, "wrong\nI look.\\u{1b}[2J\nall done\n");
        assert_eq!(
            told[..5],
            [
                "attempt 1 failed, and what it had said is void: busy\\u{1b}[2J; next in 0.5 s",
                "→ Read a b",
                "✗ Read a b",
                "✗ Bash denied: a rule says so",
                "✗ Bash denied, since nobody is there",
            ]
        );
        let end = "2 turns · 37 tokens in, 5 out · $0.5000 · go on with: posse -p --resume 0197f0aa-0000 …";
        assert_eq!(told[5], end);
    }
}
