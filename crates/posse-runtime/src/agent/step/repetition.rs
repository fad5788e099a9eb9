//! Notices calls that fail in the same way again and again.

use posse_port::store::CallOutcome;
use posse_protocol::RawJson;

use crate::agent::step::open_calls::{CallPhase, OpenToolCall};
use crate::live::setup::Repeats;
use crate::prompt;

/// Tools that wait: that the same question has the same answer means nothing.
const WAITING: [&str; 2] = ["Wait", "TaskOutput"];

/// Calls that failed in the last reply, each with the number of times in a row.
#[derive(Debug, Default)]
pub(super) struct Repetition {
    rows: Vec<Row>,
}

/// A call that failed, with the same input and the same result each time.
#[derive(Debug)]
struct Row {
    tool: String,
    input: RawJson,
    outcome: CallOutcome,
    count: u32,
    /// True if the reply at hand made it, too.
    again: bool,
}

/// What follows from the calls of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Repeated {
    /// Nothing.
    No,
    /// The model is told.
    Notice(String),
    /// The run ends for this reason.
    Stop(String),
}

impl Repetition {
    /// Forgets all calls: something new was said.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Counts the calls of a reply, all of which are answered. Other calls of the reply do not end
    /// a row; a reply without the call does, and so does its success.
    pub(super) fn count(&mut self, calls: &[OpenToolCall], limits: Repeats) -> Repeated {
        let mut repeated = Repeated::No;
        self.rows.iter_mut().for_each(|row| row.again = false);
        for call in calls {
            let CallPhase::Done(outcome) = &call.phase else {
                continue;
            };
            if WAITING.contains(&call.tool.as_str()) {
                continue;
            }
            if !outcome.is_error {
                let same = |row: &Row| row.tool == call.tool && row.input == call.input;
                self.rows.retain(|row| !same(row));
                continue;
            }
            let row = self.row(call, outcome);
            // Once for each reply: the model has not seen the result of another call in it.
            if std::mem::replace(&mut row.again, true) {
                continue;
            }
            row.count += 1;
            if row.count >= limits.stop {
                let (tool, count) = (&row.tool, row.count);
                let reason = format!(
                    "{tool} was called {count} times in a row with the same input and the same error"
                );
                repeated = Repeated::Stop(reason);
            } else if row.count == limits.notice && repeated == Repeated::No {
                repeated = Repeated::Notice(prompt::repeated(&row.tool, row.count));
            }
        }
        self.rows.retain(|row| row.again);
        repeated
    }

    /// Returns the row of a failed call.
    fn row(&mut self, call: &OpenToolCall, outcome: &CallOutcome) -> &mut Row {
        let same =
            |row: &Row| row.tool == call.tool && row.input == call.input && row.outcome == *outcome;
        let at = self.rows.iter().position(same).unwrap_or_else(|| {
            self.rows.push(Row {
                tool: call.tool.clone(),
                input: call.input.clone(),
                outcome: outcome.clone(),
                count: 0,
                again: false,
            });
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }
}
