//! Output formats of a run: text, one JSON object, or JSON lines.

pub(crate) mod denials;
mod held_notes;
pub(crate) mod json_lines;
pub(crate) mod live_line;
pub(crate) mod live_reply;
pub(crate) mod members;
pub(crate) mod partial;
pub(crate) mod progress;
pub(crate) mod result;
pub(crate) mod shape;
pub(crate) mod tasks;
pub(crate) mod text;

use std::io::IsTerminal;
use std::time::Duration;

use posse_protocol::{
    AgentId, Command, Cost, EventKind, Limit, MemberUpdate, Outcome, RunChange, RunEnd, RunFacts,
    RunStatus,
};
use serde_json::json;
use uuid::Uuid;

use self::denials::Denials;
use self::json_lines::JsonLines;
use self::live_line::Work;
use self::live_reply::ReplyView;
use self::text::TextRenderer;
use super::output_item::{OutputItem, line};
use super::runs::{Runs, called};
use super::team_snapshot::{TaskProgress, TeamSnapshot};
use crate::assemble::facts::SessionFacts;
use crate::assemble::run_options::{OutputFormat, RunOptions};
use crate::output::{one_line, tame};

/// Number of runs that are named in a line for people.
const NAMED: usize = 4;

/// How everything has ended.
#[derive(Clone, Copy)]
pub(crate) struct FinalEnd<'a> {
    /// The end of the last run, with the sums of all runs.
    pub(crate) all: &'a RunEnd,
    /// Stopped because nobody waits any longer.
    pub(crate) left: &'a [RunFacts],
    /// The progress of a team.
    pub(crate) progress: Option<&'a TaskProgress>,
    /// A team was interrupted.
    pub(crate) broken_off: bool,
    /// The highest cost of calls in flight; `None` if a price is unknown.
    pub(crate) uncertain: Option<Cost>,
}

/// An output format.
pub(crate) enum Renderer {
    Text(TextRenderer),
    Json(SessionFacts, Denials),
    Lines(JsonLines),
}

impl Renderer {
    /// Returns the renderer that the options ask for. A team's lead is shown at the end only,
    /// because its members have something to show until then.
    pub(crate) fn new(options: &RunOptions, facts: SessionFacts, team: bool) -> Self {
        let person = std::io::stderr().is_terminal();
        match options.output_format() {
            OutputFormat::Text => {
                let view = match std::io::stdout().is_terminal() {
                    false => ReplyView::Plain,
                    true if team => ReplyView::Last,
                    true => ReplyView::Arriving,
                };
                Self::Text(TextRenderer::new(facts, view, person || options.verbose))
            }
            OutputFormat::Json => Self::Json(facts, Denials::default()),
            OutputFormat::StreamJson => {
                let mut lines = JsonLines::new(facts, options.lines.include_partial_messages);
                lines.include_hooks(options.lines.include_hook_events);
                Self::Lines(lines)
            }
        }
    }

    /// Waits until the first output can be made.
    pub(crate) async fn ready(&self) {
        if let Self::Lines(lines) = self {
            lines.ready().await;
        }
    }

    /// Returns the first output.
    pub(crate) fn greet(&self) -> Vec<OutputItem> {
        match self {
            Self::Lines(lines) => vec![line(&lines.init())],
            Self::Text(_) | Self::Json(..) => Vec::new(),
        }
    }

    /// Notes a command that the agent will get.
    pub(crate) fn told(&mut self, command: &Command) {
        if let (
            Self::Lines(lines),
            Command::Prompt(content)
            | Command::Skill { words: content, .. }
            | Command::Team { words: content, .. },
        ) = (self, command)
        {
            lines.told(content.clone());
        }
    }

    /// Returns the output for an event of the main agent.
    pub(crate) fn event(&mut self, event: &EventKind, runs: &Runs) -> Vec<OutputItem> {
        match (self, event) {
            (Self::Text(text), event) => text.event(event, runs),
            (Self::Lines(lines), EventKind::Warning(what)) => {
                vec![warning(what), line(&lines.warning(what))]
            }
            (Self::Lines(lines), event) => lines.event(event).iter().map(line).collect(),
            (Self::Json(..), EventKind::Retry(retry)) => {
                vec![OutputItem::Note(text::failed_attempt(retry, ""))]
            }
            (Self::Json(..), EventKind::Warning(what)) => vec![warning(what)],
            (Self::Json(..), EventKind::Run(news)) => match &news.what {
                // A pause is not an end, and the person who pays should know of it.
                RunChange::Ended(end) if end.status == RunStatus::Paused => {
                    vec![OutputItem::Note(one_line(&progress::ended(&news.run, end)))]
                }
                _ => Vec::new(),
            },
            (Self::Json(..), _) => Vec::new(),
        }
    }

    /// Returns the output for a change of a team's member.
    pub(crate) fn member(&mut self, agent: AgentId, news: &MemberUpdate) -> Vec<OutputItem> {
        match self {
            Self::Text(text) => {
                members::note(news).map_or_else(Vec::new, |note| text.trouble(note))
            }
            Self::Json(..) => Vec::new(),
            Self::Lines(lines) => vec![line(&lines.member(agent, news))],
        }
    }

    /// Returns the output for the state of the team.
    pub(crate) fn seen(&mut self, seen: &TeamSnapshot, elapsed: Duration) -> Vec<OutputItem> {
        let mut items = match self {
            Self::Text(text) => text.tasks(seen),
            Self::Json(..) => Vec::new(),
            Self::Lines(lines) => {
                let team = seen.team.name.as_str();
                seen.changed
                    .iter()
                    .map(|task| line(&lines.task(team, task)))
                    .collect()
            }
        };
        items.push(OutputItem::Panel(Box::new(seen.panel(elapsed))));
        items
    }

    /// Returns the output for an event of a sub-agent.
    pub(crate) fn event_below(
        &mut self,
        agent: AgentId,
        event: &EventKind,
        runs: &Runs,
    ) -> Vec<OutputItem> {
        match event {
            EventKind::Run(_) | EventKind::Warning(_) => self.event(event, runs),
            EventKind::Denied(denial) => {
                let name = runs.called(agent);
                match self {
                    Self::Lines(lines) => vec![line(&lines.denied_below(agent, &name, denial))],
                    Self::Text(text) => text.denied_below(&name, denial),
                    // The result lists only denials of the main agent.
                    Self::Json(_, denials) => {
                        let note = denials.add(denial, Some(&name));
                        note.into_iter().map(OutputItem::Note).collect()
                    }
                }
            }
            _ => Vec::new(),
        }
    }

    /// Returns the final output.
    pub(crate) fn finish(&mut self, end: &FinalEnd<'_>) -> Vec<OutputItem> {
        let FinalEnd {
            all,
            left,
            progress,
            ..
        } = *end;
        match self {
            Self::Text(text) => text.finish(end),
            Self::Json(facts, denials) => {
                let counted = denials.untold().into_iter().map(OutputItem::Note);
                let mut items: Vec<OutputItem> = counted.collect();
                let mut result = result::result(facts, all);
                result["uuid"] = json!(Uuid::now_v7());
                if !left.is_empty() {
                    result["left_running"] = tasks::list(left);
                }
                if end.uncertain != Some(Cost::ZERO) {
                    result["uncertain_cost_usd"] = json!(end.uncertain.map(Cost::usd));
                }
                if let Some(progress) = progress {
                    result["tasks"] = progress.object();
                }
                items.push(line(&result));
                items
            }
            // Each run already had its line. That of the lead said that it ended its turn; what
            // it leaves undone is known only now.
            Self::Lines(lines) => match progress {
                Some(progress) if all.outcome == Outcome::Partial(Limit::Tasks) => {
                    vec![line(&lines.open_tasks(all, progress))]
                }
                _ => Vec::new(),
            },
        }
    }

    /// Returns the output while background runs are waited for.
    pub(crate) fn waiting(&mut self, live: usize, runs: &Runs) -> Vec<OutputItem> {
        let known: Vec<&RunFacts> = runs.background().collect();
        let what = format!(
            "waiting for {}{}; Ctrl-C stops",
            counted(live),
            listed(&known)
        );
        let note = one_line(&what);
        match self {
            Self::Text(text) => text.waiting(note),
            Self::Json(..) | Self::Lines(_) => vec![OutputItem::TerminalNote(note)],
        }
    }

    /// Returns the output when waiting for them timed out.
    pub(crate) fn left_running(
        &mut self,
        live: usize,
        left: &[RunFacts],
        seconds: u64,
    ) -> Vec<OutputItem> {
        let known: Vec<&RunFacts> = left.iter().collect();
        let long = if seconds == 0 {
            String::new()
        } else {
            format!(" none ended within {seconds} s;")
        };
        let what = format!(
            "left running:{long} {} will be stopped{}",
            counted(live),
            listed(&known)
        );
        let note = one_line(&what);
        match self {
            Self::Text(text) => text.trouble(note),
            Self::Json(..) => vec![OutputItem::Note(note)],
            Self::Lines(lines) => vec![
                OutputItem::Note(note),
                line(&lines.left_running(left, seconds)),
            ],
        }
    }

    /// Returns true if people read the output while it is made.
    pub(crate) fn has_live_line(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// Returns the output for a time at which this is at work.
    pub(crate) fn pulse(&mut self, now: Duration, work: Work) -> Vec<OutputItem> {
        match self {
            Self::Text(text) => text.pulse(now, work),
            Self::Json(..) | Self::Lines(_) => Vec::new(),
        }
    }

    /// Returns a note for people.
    pub(crate) fn note(&mut self, note: String) -> Vec<OutputItem> {
        match self {
            Self::Text(text) => text.trouble(note),
            Self::Json(..) | Self::Lines(_) => vec![OutputItem::Note(note)],
        }
    }

    /// Returns a question to the person at the terminal, with the call that it is about.
    pub(crate) fn ask(&mut self, question: String, call: &str) -> Vec<OutputItem> {
        if let Self::Text(text) = self {
            text.asked(call);
        }
        vec![OutputItem::Ask(question)]
    }

    /// Returns the line about the session's state, for programs.
    pub(crate) fn state(&self, state: &str) -> Option<OutputItem> {
        match self {
            Self::Lines(lines) => Some(line(&lines.state(state))),
            Self::Text(_) | Self::Json(..) => None,
        }
    }

    /// Returns the output for invalid input.
    pub(crate) fn not_understood(&self, what: &str) -> Vec<OutputItem> {
        let note = OutputItem::Note(format!("input: {}", tame(what)));
        match self {
            Self::Lines(lines) => vec![note, line(&lines.not_understood(what))],
            Self::Text(_) | Self::Json(..) => vec![note],
        }
    }
}

fn warning(what: &str) -> OutputItem {
    OutputItem::Note(text::warning(what))
}

fn counted(runs: usize) -> String {
    if runs == 1 {
        "1 background run".into()
    } else {
        format!("{runs} background runs")
    }
}

/// Returns the names of runs after a colon; of many only the first ones.
fn listed(runs: &[&RunFacts]) -> String {
    let named: Vec<String> = runs.iter().take(NAMED).map(|run| called(run)).collect();
    let more = runs.len() - named.len();
    match (named.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(": {}", named.join(", ")),
        (false, more) => format!(": {} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headless::fixtures::run;

    #[test]
    fn of_many_runs_the_first_are_named() {
        let runs: Vec<RunFacts> = (1..=6).map(run).collect();
        let names = |count: usize| listed(&runs.iter().take(count).collect::<Vec<_>>());
        let one = "Explore (find callers)";
        assert_eq!((names(0), names(1)), (String::new(), format!(": {one}")));
        assert_eq!(names(6), format!(": {one}, {one}, {one}, {one} and 2 more"));
    }
}
