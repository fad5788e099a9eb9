//! The line that shows that an agent is at work, redrawn in place at the foot of a terminal.

use std::time::Duration;

use posse_protocol::{Delta, EntryKind, EventKind};

use crate::headless::output_item::OutputItem;
use crate::headless::panel::lasted;
use crate::output::{count, grouped, one_line};
use crate::present::usage::TOKEN_BYTES;

/// How long text may stop arriving before the line is shown below it.
const SILENCE: Duration = Duration::from_secs(1);
/// Time between two drawings.
pub(crate) const PULSE: Duration = Duration::from_millis(200);
/// What turns, one sign for each drawing.
const SIGNS: [char; 4] = ['◐', '◓', '◑', '◒'];

/// Who is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Nobody,
    /// The main agent.
    Main,
    /// Background runs only, this many.
    Background(usize),
    /// Everything is being stopped.
    Stopping,
}

/// What the main agent does now.
#[derive(Default)]
pub(super) struct LiveLine {
    doing: Doing,
    /// When that began; `None` until it is drawn.
    since: Option<Duration>,
    /// Bytes of the reply that arrives.
    bytes: u64,
    /// Titles of the calls that run, by id.
    calls: Vec<(String, String)>,
    is_shown: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Doing {
    #[default]
    Working,
    Thinking,
    /// Its text is shown while it arrives.
    Speaking,
    PreparingCall,
    Compacting,
    WaitingToRetry,
}

impl LiveLine {
    /// Notes an event of the main agent.
    pub(super) fn event(&mut self, event: &EventKind) {
        match event {
            EventKind::Delta(delta) => self.delta(delta),
            EventKind::CallStarted { call, title, .. } => {
                self.calls.push((call.clone(), one_line(title)));
                self.begin(Doing::Working);
            }
            EventKind::CallDone { call, .. } => {
                self.calls.retain(|(id, _)| id != call);
                self.begin(Doing::Working);
            }
            EventKind::Entry(entry) if entry.kind == EntryKind::Results => self.rest(),
            EventKind::Entry(_) => {
                self.bytes = 0;
                self.begin(Doing::Working);
            }
            EventKind::Retry(_) => {
                self.bytes = 0;
                self.begin(Doing::WaitingToRetry);
            }
            EventKind::Compacting { .. } => self.begin(Doing::Compacting),
            EventKind::Started | EventKind::Ended(_) => self.rest(),
            _ => {}
        }
    }

    fn delta(&mut self, delta: &Delta) {
        let (doing, bytes) = match delta {
            Delta::Text(text) => {
                // What is counted is the silence after it.
                self.since = None;
                (Doing::Speaking, text.len())
            }
            Delta::Thinking(text) => (Doing::Thinking, text.len()),
            Delta::ToolInput(text) => (Doing::PreparingCall, text.len()),
            Delta::ToolUse { .. } => (Doing::PreparingCall, 0),
            Delta::Started { .. } | Delta::BlockDone => return,
        };
        self.bytes += bytes as u64;
        if self.doing != doing {
            self.begin(doing);
        }
    }

    fn begin(&mut self, doing: Doing) {
        (self.doing, self.since) = (doing, None);
    }

    fn rest(&mut self) {
        *self = Self {
            is_shown: self.is_shown,
            ..Self::default()
        };
    }

    /// Returns the change of what is shown at a time, with what was denied again and again.
    pub(super) fn item(
        &mut self,
        now: Duration,
        work: Work,
        denied: Option<&str>,
    ) -> Option<OutputItem> {
        let line = self.at(now, work, denied);
        let was_shown = std::mem::replace(&mut self.is_shown, line.is_some());
        (was_shown || self.is_shown).then(|| OutputItem::LiveLine(line.unwrap_or_default()))
    }

    /// Returns what takes the line away.
    pub(super) fn end(&mut self) -> Option<OutputItem> {
        self.item(Duration::ZERO, Work::Nobody, None)
    }

    /// Returns the line at a time; `None` if something else shows that work goes on.
    fn at(&mut self, now: Duration, work: Work, denied: Option<&str>) -> Option<String> {
        if work == Work::Nobody {
            return None;
        }
        let elapsed = now.saturating_sub(*self.since.get_or_insert(now));
        let what = match work {
            Work::Nobody => return None,
            Work::Stopping => "stopping".to_owned(),
            Work::Background(runs) => format!("waiting for {}", count(runs, "background run")),
            Work::Main => self.doing(elapsed)?,
        };
        let mut parts = vec![what, lasted(elapsed)];
        let tokens = self.bytes / TOKEN_BYTES;
        if tokens > 0 && work == Work::Main {
            parts.push(format!("about {} tokens", grouped(tokens)));
        }
        parts.extend(denied.map(str::to_owned));
        let drawings = now.as_millis() / PULSE.as_millis();
        let sign = SIGNS.iter().cycle().nth((drawings % 4) as usize);
        Some(format!("{} {}", sign.unwrap_or(&'●'), parts.join(" · ")))
    }

    fn doing(&self, elapsed: Duration) -> Option<String> {
        if let Some((_, first)) = self.calls.first() {
            return Some(match self.calls.len() - 1 {
                0 => first.clone(),
                more => format!("{first} and {more} more"),
            });
        }
        let what = match self.doing {
            Doing::Speaking if elapsed < SILENCE => return None,
            Doing::Speaking | Doing::Working => "working",
            Doing::Thinking => "thinking",
            Doing::PreparingCall => "preparing a call",
            Doing::Compacting => "compacting the history",
            Doing::WaitingToRetry => "waiting for the next attempt",
        };
        Some(what.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use posse_protocol::Outcome;

    use super::*;
    use crate::headless::fixtures::end;

    fn at(line: &mut LiveLine, ms: u64) -> Option<String> {
        line.at(Duration::from_millis(ms), Work::Main, None)
    }

    fn text(text: &str) -> EventKind {
        EventKind::Delta(Delta::Text(text.into()))
    }

    #[test]
    fn it_says_what_is_done_and_for_how_long() {
        let mut line = LiveLine::default();
        let started = |call: &str, title: &str| EventKind::CallStarted {
            call: call.into(),
            tool: "Bash".into(),
            title: title.into(),
        };
        line.event(&EventKind::Started);
        assert_eq!(at(&mut line, 0).as_deref(), Some("◐ working · 0s"));
        assert_eq!(at(&mut line, 4200).as_deref(), Some("◓ working · 4s"));
        line.event(&EventKind::Delta(Delta::Thinking("t".repeat(4800))));
        assert_eq!(
            at(&mut line, 4400).as_deref(),
            Some("◑ thinking · 0s · about 1,200 tokens")
        );
        line.event(&started("t1", "$ make\ntest"));
        line.event(&started("t2", "Read a"));
        at(&mut line, 8000);
        let told = at(&mut line, 9000).unwrap();
        assert!(told.contains("$ make test and 1 more · 1s"), "{told}");
        for call in ["t1", "t2"] {
            line.event(&EventKind::CallDone {
                call: call.into(),
                is_error: false,
            });
        }
        assert!(at(&mut line, 9200).unwrap().contains("working · 0s"));
    }

    #[test]
    fn text_that_arrives_needs_no_line_until_it_stops() {
        let mut line = LiveLine::default();
        line.event(&text("I look"));
        assert_eq!((at(&mut line, 0), at(&mut line, 999)), (None, None));
        assert!(at(&mut line, 1000).is_some());
        line.event(&text(" here"));
        assert_eq!(at(&mut line, 1200), None);
        line.event(&EventKind::Ended(Box::new(end(Outcome::Completed))));
        let now = Duration::from_secs(9);
        assert_eq!(line.at(now, Work::Nobody, None), None);
        let waits = line.at(now, Work::Background(2), None).unwrap();
        assert!(
            waits.ends_with(" waiting for 2 background runs · 0s"),
            "{waits}"
        );
        let shown = |item| matches!(item, Some(OutputItem::LiveLine(line)) if !line.is_empty());
        assert_eq!(line.end(), None, "there is none to take away");
        assert!(shown(line.item(now, Work::Main, None)));
        assert_eq!(line.end(), Some(OutputItem::LiveLine(String::new())));
        assert!(
            line.at(now, Work::Stopping, Some("✗ Bash denied ×3"))
                .unwrap()
                .ends_with("✗ Bash denied ×3")
        );
    }
}
