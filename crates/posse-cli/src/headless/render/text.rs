//! Output for people: the reply on stdout, progress and problems on stderr.

use std::collections::HashMap;
use std::time::Duration;

use posse_protocol::{
    Denial, Entry, EntryKind, EventKind, Retry, RunChange, RunStatus, RunUpdate, Usage,
};
use posse_tui::terminal::styled_text;
use posse_tui::text::render;

use super::denials::Denials;
use super::held_notes::HeldNotes;
use super::live_line::{LiveLine, Work};
use super::live_reply::{LiveReply, ReplyView};
use super::progress::Progress;
use super::{FinalEnd, members, result};
use crate::assemble::facts::SessionFacts;
use crate::headless::output_item::OutputItem;
use crate::headless::runs::Runs;
use crate::headless::team_snapshot::TeamSnapshot;
use crate::output::transcript::{shortened, width_of};
use crate::output::{columns, grouped, in_words, one_line, tame};
use crate::present::costs::uncertain;
use crate::present::model;

/// Maximum length of a failure's reason, in characters.
const LONGEST_REASON: usize = 200;

/// Turns events into text.
pub(crate) struct TextRenderer {
    facts: SessionFacts,
    view: ReplyView,
    /// Set if replies are shown while they arrive.
    live: Option<LiveReply>,
    /// Progress is shown.
    notes: bool,
    /// Titles of open tool calls, by id.
    titles: HashMap<String, String>,
    progress: Progress,
    live_line: LiveLine,
    denials: Denials,
    held: HeldNotes,
}

impl TextRenderer {
    pub(crate) fn new(facts: SessionFacts, view: ReplyView, notes: bool) -> Self {
        let (titles, progress) = (HashMap::new(), Progress::default());
        Self {
            facts,
            view,
            live: LiveReply::new(view),
            notes,
            titles,
            progress,
            live_line: LiveLine::default(),
            denials: Denials::default(),
            held: HeldNotes::default(),
        }
    }

    /// Returns the output for an event.
    pub(crate) fn event(&mut self, event: &EventKind, runs: &Runs) -> Vec<OutputItem> {
        let was_between = self.live.as_ref().is_none_or(LiveReply::is_between_blocks);
        let items = self.event_items(event, runs);
        let mut items = self.after_denials(items);
        let ends_block = !was_between || items.iter().any(OutputItem::is_printed);
        let may_release =
            |live: &LiveReply| live.is_between_blocks() && (ends_block || !live.is_arriving());
        if self.live.as_ref().is_none_or(may_release) {
            self.release(&mut items);
        }
        items
    }

    fn event_items(&mut self, event: &EventKind, runs: &Runs) -> Vec<OutputItem> {
        let mut items = Vec::new();
        self.live_line.event(event);
        match event {
            EventKind::Delta(delta) => {
                items.extend(self.live.as_mut().and_then(|live| live.delta(delta)));
            }
            EventKind::Entry(entry) => self.entry(&mut items, entry),
            EventKind::Retry(retry) => {
                let is_shown = self.live.as_mut().is_some_and(LiveReply::cut_off);
                let void = if is_shown {
                    ", and its partial reply is discarded"
                } else {
                    ""
                };
                self.tell(&mut items, failed_attempt(retry, void));
            }
            EventKind::CallStarted { call, tool, title } => match &mut self.live {
                Some(live) if self.notes => items.extend(live.call_started(call, tool, title)),
                Some(_) => {}
                None => {
                    self.titles.insert(call.clone(), title.clone());
                    // A sub-agent is shown by its own lines.
                    if tool != "Agent" {
                        self.note(&mut items, &format!("→ {title}"));
                    }
                }
            },
            EventKind::CallDone { call, is_error } => {
                if let Some(title) = self.titles.remove(call).filter(|_| *is_error) {
                    self.note(&mut items, &format!("✗ {title}"));
                }
            }
            EventKind::Denied(denial) => {
                if let Some(note) = self.denials.add(denial, None) {
                    self.tell(&mut items, note);
                }
            }
            EventKind::Run(news) => self.run(news, runs, &mut items),
            EventKind::Warning(what) => self.tell(&mut items, warning(what)),
            EventKind::Mode(mode) => self.note(&mut items, &format!("permission mode: {mode}")),
            EventKind::Model(update) => self.note(&mut items, &tame(&model::in_words(update))),
            EventKind::Ended(end) => {
                self.end_reply(&mut items);
                let is_answer = result::has_text(&end.outcome);
                let text = if is_answer { end.text.as_str() } else { "" };
                items.extend(self.live.as_mut().and_then(|live| live.answer(text)));
            }
            EventKind::Compacting { auto, tokens } => {
                let why = if *auto {
                    "the context is nearly full"
                } else {
                    "as you asked"
                };
                self.note(
                    &mut items,
                    &format!(
                        "compacting the history ({} tokens): {why}",
                        grouped(*tokens)
                    ),
                );
            }
            EventKind::Started
            | EventKind::State(_)
            | EventKind::Spending(_)
            | EventKind::Queue(_)
            | EventKind::Task(_)
            | EventKind::Mail(_)
            | EventKind::Request(_)
            | EventKind::Output { .. }
            | EventKind::Member(_)
            | EventKind::AllIdle
            | EventKind::Noted { .. }
            | EventKind::Listed(_)
            | EventKind::Aside(_)
            | EventKind::Hook(_)
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalWithdrawn { .. } => {}
        }
        items
    }

    /// Returns the output for a denied call of another agent.
    pub(crate) fn denied_below(&mut self, name: &str, denial: &Denial) -> Vec<OutputItem> {
        match self.denials.add(denial, Some(name)) {
            Some(note) => self.trouble(note),
            None => Vec::new(),
        }
    }

    /// Returns items after the denials that were counted before them.
    fn after_denials(&mut self, items: Vec<OutputItem>) -> Vec<OutputItem> {
        if !items.iter().any(OutputItem::is_printed) {
            return items;
        }
        let counted = self.denials.untold().into_iter().map(OutputItem::Note);
        counted.chain(items).collect()
    }

    /// Returns the final output: the last reply and the totals. What the lead of an interrupted
    /// team said is not a result, and how to continue is printed later.
    pub(crate) fn finish(&mut self, end: &FinalEnd<'_>) -> Vec<OutputItem> {
        let mut items: Vec<OutputItem> = self.live_line.end().into_iter().collect();
        let rest = self.final_items(end);
        items.extend(self.denials.untold().into_iter().map(OutputItem::Note));
        items.extend(rest);
        items
    }

    fn final_items(&mut self, end: &FinalEnd<'_>) -> Vec<OutputItem> {
        let FinalEnd {
            all, broken_off, ..
        } = *end;
        let mut items = Vec::new();
        self.end_reply(&mut items);
        self.release(&mut items);
        let text = all.text.trim_end_matches('\n');
        let has_text = result::has_text(&all.outcome) && !broken_off && !text.is_empty();
        match self.view {
            ReplyView::Plain if has_text => {
                items.push(OutputItem::Out(format!("{}\n", tame(text))));
            }
            ReplyView::Last if has_text => {
                items.push(OutputItem::Out(styled_text(&render(text, columns()))));
            }
            _ => {}
        }
        if let Some(missed) = result::missed(&all.misses) {
            self.tell(&mut items, one_line(&missed));
        }
        let (usage, cost, again) = (
            result::main_usage(all),
            in_words(result::cost(all)),
            &self.facts.again,
        );
        let turns = if all.turns == 1 {
            "1 turn".to_owned()
        } else {
            format!("{} turns", all.turns)
        };
        let (input, output) = (grouped(usage.prompt()), grouped(usage.output));
        let below = all
            .below
            .iter()
            .fold(Usage::default(), |sum, spent| sum + spent.usage);
        let below = match below.prompt().saturating_add(below.output) {
            0 => String::new(),
            tokens => format!(" · sub-agents {} tokens", grouped(tokens)),
        };
        let more = uncertain(end.uncertain);
        let more = more.map_or_else(String::new, |more| format!(" and {more}"));
        let totals = format!("{turns} · {input} tokens in, {output} out{below} · {cost}{more}");
        let go_on = format!("continue with: {again}");
        let together = format!("{totals} · {go_on}");
        // A command that is broken into two lines cannot be copied.
        let fits = width_of(&together) <= usize::from(columns());
        match broken_off {
            true => self.note(&mut items, &totals),
            false if fits => self.note(&mut items, &together),
            false => {
                self.note(&mut items, &totals);
                let line = format!("\x1b[2m{}\x1b[0m\n", one_line(&go_on));
                items.extend(self.notes.then_some(OutputItem::Shown(line)));
            }
        }
        items
    }

    /// Returns the line that shows that work goes on.
    pub(crate) fn pulse(&mut self, now: Duration, work: Work) -> Vec<OutputItem> {
        let mut items = Vec::new();
        if self.held.is_due(now) {
            self.release(&mut items);
        }
        let denied = self.denials.summary();
        items.extend(self.live_line.item(now, work, denied.as_deref()));
        items
    }

    /// Returns lines about changed tasks of a team.
    pub(crate) fn tasks(&mut self, seen: &TeamSnapshot) -> Vec<OutputItem> {
        let mut items = Vec::new();
        for task in &seen.changed {
            let note = members::task_note(task, seen.color(task));
            note.into_iter()
                .for_each(|note| self.tell(&mut items, note));
        }
        items
    }

    /// Returns a note that is always shown.
    pub(crate) fn trouble(&mut self, note: String) -> Vec<OutputItem> {
        let mut items = Vec::new();
        self.aside(&mut items, note);
        self.after_denials(items)
    }

    /// Returns a note about what is waited for.
    pub(crate) fn waiting(&mut self, note: String) -> Vec<OutputItem> {
        let mut items = Vec::new();
        self.note(&mut items, &note);
        items
    }

    fn run(&mut self, news: &RunUpdate, runs: &Runs, items: &mut Vec<OutputItem>) {
        // A pause is not an end, and the person who pays should know of it.
        let is_paused =
            matches!(&news.what, RunChange::Ended(end) if end.status == RunStatus::Paused);
        match self.progress.note(news, runs.len()) {
            Some(note) if is_paused || self.notes => self.aside(items, one_line(&note)),
            _ => {}
        }
    }

    /// Adds a note about progress, on a line of its own.
    fn note(&mut self, items: &mut Vec<OutputItem>, note: &str) {
        if self.notes {
            self.tell(items, one_line(note));
        }
    }

    /// Adds a note about others, which waits while a block of the reply arrives.
    fn aside(&mut self, items: &mut Vec<OutputItem>, note: String) {
        let is_arriving = self.live.as_ref().is_some_and(LiveReply::is_arriving);
        match is_arriving && self.held.has_room() {
            true => self.held.add(note),
            false => {
                self.release(items);
                self.tell(items, note);
            }
        }
    }

    /// Adds the notes that have waited.
    fn release(&mut self, items: &mut Vec<OutputItem>) {
        for note in self.held.take() {
            self.tell(items, note);
        }
    }

    /// Adds a note that is shown even if no person watches.
    fn tell(&mut self, items: &mut Vec<OutputItem>, note: String) {
        self.interrupted();
        items.push(OutputItem::Note(note));
    }

    /// A person is asked about a call, and sees the change that it would make.
    pub(crate) fn asked(&mut self, call: &str) {
        self.live.iter_mut().for_each(|live| live.asked(call));
    }

    /// Something else is written.
    fn interrupted(&mut self) {
        self.live.iter_mut().for_each(LiveReply::interrupted);
    }

    /// Shows what an entry of the transcript adds to what is shown.
    fn entry(&mut self, items: &mut Vec<OutputItem>, entry: &Entry) {
        let Some(live) = &mut self.live else { return };
        match entry.kind {
            EntryKind::Reply => items.extend(live.reply(entry)),
            EntryKind::Results if self.notes => items.extend(live.results(entry)),
            _ => {}
        }
    }

    fn end_reply(&mut self, items: &mut Vec<OutputItem>) {
        items.extend(self.live.as_mut().and_then(LiveReply::end));
    }
}

/// Returns the message about a failed attempt.
pub(crate) fn failed_attempt(retry: &Retry, void: &str) -> String {
    let (why, wait) = (
        shortened(&retry.fault.message, LONGEST_REASON),
        retry.wait_ms as f64 / 1000.0,
    );
    one_line(&format!(
        "attempt {} failed{void}: {why}; next in {wait:.1} s",
        retry.attempt
    ))
}

/// Returns a warning.
pub(crate) fn warning(what: &str) -> String {
    one_line(&format!("warning: {what}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use posse_protocol::{
        ContentBlock, Cost, Delta, Fault, FaultClass, Message, Missed, Misses, Outcome, Role,
        RunEnd, Spent, ToolContent,
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::headless::fixtures::{end, facts, progress, run, run_ended, started};

    /// The end of everything that a run leads to.
    fn finished(all: &RunEnd) -> FinalEnd<'_> {
        FinalEnd {
            all,
            left: &[],
            progress: None,
            broken_off: false,
            uncertain: Some(Cost::ZERO),
        }
    }

    fn happened(outcome: Outcome) -> Vec<EventKind> {
        let fault = Fault {
            class: FaultClass::Busy,
            status: Some(529),
            message: "busy\x1b[2J".into(),
        };
        let call = "t1".to_owned();
        vec![
            EventKind::Started,
            EventKind::Delta(Delta::Text("wrong".into())),
            EventKind::Retry(Retry {
                attempt: 1,
                wait_ms: 500,
                fault,
            }),
            EventKind::Delta(Delta::Text("I look.\x1b[2J".into())),
            EventKind::CallStarted {
                call: call.clone(),
                tool: "Read".into(),
                title: "Read a\nb".into(),
            },
            EventKind::CallDone {
                call,
                is_error: true,
            },
            EventKind::Denied(end(Outcome::Completed).denials[0].clone()),
            EventKind::Denied(Denial {
                why: "Denied, since nobody is there".into(),
                ..end(Outcome::Completed).denials[0].clone()
            }),
            EventKind::Delta(Delta::Text("all done".into())),
            EventKind::Ended(Box::new(end(outcome))),
        ]
    }

    fn shown(view: ReplyView, notes: bool, outcome: Outcome) -> (String, Vec<String>) {
        let (mut text, runs) = (TextRenderer::new(facts(), view, notes), Runs::default());
        let mut items: Vec<OutputItem> = happened(outcome.clone())
            .iter()
            .flat_map(|event| text.event(event, &runs))
            .collect();
        items.extend(text.finish(&finished(&end(outcome))));
        written(items)
    }

    fn plain(lines: &str) -> String {
        anstream::adapter::strip_str(lines).to_string()
    }

    fn written(items: Vec<OutputItem>) -> (String, Vec<String>) {
        let (mut out, mut told) = (String::new(), Vec::new());
        for items in items {
            match items {
                OutputItem::Out(text) => out.push_str(&text),
                OutputItem::Reply { lines, .. } => out.push_str(&plain(&lines)),
                OutputItem::Note(note) | OutputItem::TerminalNote(note) => told.push(note),
                OutputItem::Shown(lines) => told.push(plain(&lines)),
                OutputItem::Ask(_) | OutputItem::LiveLine(_) | OutputItem::Panel(_) => {}
            }
        }
        (out, told)
    }

    // proves FC-06 (part: what was said)
    #[test]
    fn a_pipe_gets_the_last_reply_and_stderr_the_trouble() {
        let trouble = [
            "attempt 1 failed: busy\\u{1b}[2J; next in 0.5 s",
            "✗ Bash(rm) denied: a rule says so",
            "✗ Bash(rm) denied, since nobody is there",
        ];
        let fault = Fault {
            class: FaultClass::Provider,
            status: None,
            message: "gone".into(),
        };
        let store = Fault {
            class: FaultClass::Store,
            ..fault.clone()
        };
        for (outcome, out) in [
            (Outcome::Completed, "all done\n"),
            (Outcome::Paused(fault), ""),
            // It may be nowhere else.
            (Outcome::Paused(store), "all done\n"),
            (Outcome::Interrupted, ""),
        ] {
            let (shown, told) = shown(ReplyView::Plain, false, outcome);
            assert_eq!(
                (shown.as_str(), told),
                (out, trouble.map(str::to_owned).to_vec())
            );
        }
    }

    /// The events of a reply with a call, and of its result.
    fn called(seq: u64, text: &str, call: &str, input: Value, result: &str) -> Vec<EventKind> {
        let entry = |kind, role, content| {
            EventKind::Entry(Box::new(Entry {
                seq,
                kind,
                message: Arc::new(Message { role, content }),
                reply: None,
            }))
        };
        let tool = "Edit".to_owned();
        let asks = ContentBlock::ToolUse {
            id: call.into(),
            name: tool.clone(),
            input: serde_json::from_value(input).unwrap(),
        };
        let answers = ContentBlock::ToolResult {
            tool_use_id: call.into(),
            content: vec![ToolContent::text(result)],
            is_error: result.starts_with("no"),
        };
        vec![
            EventKind::Delta(Delta::Text(text.into())),
            entry(
                EntryKind::Reply,
                Role::Assistant,
                vec![ContentBlock::text(text), asks],
            ),
            EventKind::CallStarted {
                call: call.into(),
                tool,
                title: "Edit a\nb".into(),
            },
            entry(EntryKind::Results, Role::User, vec![answers]),
        ]
    }

    #[test]
    fn a_terminal_sees_replies_calls_and_changes() {
        let (mut text, runs) = (
            TextRenderer::new(facts(), ReplyView::Arriving, true),
            Runs::default(),
        );
        let mut items = Vec::new();
        let mut screen = String::new();
        let edit = json!({"file_path": "a", "old_string": "one\ntwo", "new_string": "one\n2"});
        for event in [
            called(0, "# I\x1b[2J\n\n**look** here", "t1", edit.clone(), "ok"),
            called(2, "Again.", "t2", edit, "no such file"),
            vec![
                EventKind::Delta(Delta::Text("all".into())),
                EventKind::Delta(Delta::Text(" done".into())),
                EventKind::Ended(Box::new(end(Outcome::Completed))),
            ],
        ]
        .concat()
        {
            items.extend(text.event(&event, &runs));
        }
        items.extend(text.finish(&finished(&end(Outcome::Completed))));
        let opens: Vec<&str> = (items.iter())
            .filter_map(|item| match item {
                OutputItem::Reply { open, .. } => Some(open.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(opens[opens.len() - 3..], ["\nall\n", "\nall done\n", ""]);
        for item in items {
            match item {
                OutputItem::Reply { lines, .. } | OutputItem::Shown(lines) => {
                    screen.push_str(&lines);
                }
                OutputItem::Note(note) => screen.push_str(&format!("[{note}]\n")),
                _ => {}
            }
        }
        assert!(screen.contains("\x1b[0;1mlook\x1b[0m here"), "{screen}");
        assert_eq!(
            plain(&screen),
            "I\\u{1b}[2J

look here

→ Edit a b
      one
     -two
     +2

Again.

→ Edit a b
✗ Edit a b
  no such file

all done
[2 turns · 37 tokens in, 5 out · $0.50]
continue with: posse -p --resume 0197f0aa-0000
"
        );
    }

    #[test]
    fn a_note_about_others_waits_for_the_block_that_arrives() {
        let mut text = TextRenderer::new(facts(), ReplyView::Arriving, true);
        let runs = Runs::default();
        let news = |news: RunUpdate| EventKind::Run(Box::new(news));
        let said = |text: &str| EventKind::Delta(Delta::Text(text.into()));
        let seconds = Duration::from_secs;
        text.pulse(seconds(0), Work::Main);
        let mut shown = String::new();
        let mut show = |items: Vec<OutputItem>| {
            for item in items {
                match item {
                    OutputItem::Reply { lines, .. } => shown.push_str(&plain(&lines)),
                    OutputItem::Note(note) => shown.push_str(&format!("[{note}]\n")),
                    _ => {}
                }
            }
        };
        for event in [
            said("```sh\none\n"),
            news(started(run(1), true)),
            said("two\n"),
            said("```\n\nA par"),
            news(run_ended(run(1))),
            said("agraph.\n\n```sh\nthree\n"),
            news(started(run(2), true)),
        ] {
            show(text.event(&event, &runs));
        }
        for now in [10, 12, 13] {
            show(text.pulse(seconds(now), Work::Main));
        }
        show(text.event(&said("four\n"), &runs));
        assert_eq!(
            shown,
            "one
two
[⇢ Explore: find callers (background)]

A paragraph.

three
[⇠ completed find callers · 3 tool uses · 12,345 tokens · 4.2 s]
[⇢ Explore: find callers (background)]
four
"
        );
    }

    #[test]
    fn denials_are_counted_until_something_else_is_printed() {
        let mut text = TextRenderer::new(facts(), ReplyView::Plain, false);
        let denial = end(Outcome::Completed).denials.remove(0);
        let mut items = Vec::new();
        for _ in 0..3 {
            for name in ["dev-1", "dev-2"] {
                items.extend(text.denied_below(name, &denial));
            }
        }
        items.extend(text.trouble("● dev-1 has left".into()));
        items.extend(text.denied_below("dev-2", &denial));
        items.extend(text.finish(&finished(&end(Outcome::Completed))));
        let (_, told) = written(items);
        let lines = [
            "✗ dev-1: Bash(rm) denied: a rule says so",
            "✗ dev-2: Bash(rm) denied: a rule says so",
            "✗ dev-1: Bash(rm) denied ×3",
            "✗ dev-2: Bash(rm) denied ×3",
            "● dev-1 has left",
            "✗ dev-2: Bash(rm) denied ×4",
        ];
        assert_eq!(told, lines);
    }

    #[test]
    fn what_a_failed_attempt_printed_is_void() {
        let told = |said: &str| {
            let (mut text, runs) = (
                TextRenderer::new(facts(), ReplyView::Printed, true),
                Runs::default(),
            );
            let retry = happened(Outcome::Completed).swap_remove(2);
            let events = [EventKind::Delta(Delta::Text(said.into())), retry];
            let items = events.iter().flat_map(|event| text.event(event, &runs));
            written(items.collect())
        };
        let (out, notes) = told("wrong");
        assert_eq!((out.as_str(), notes.len()), ("", 1), "it was not printed");
        assert!(notes[0].starts_with("attempt 1 failed: busy"), "{notes:?}");
        let (out, notes) = told("wrong\n\nagain");
        assert_eq!(out, "wrong\n");
        let void =
            "attempt 1 failed, and its partial reply is discarded: busy\\u{1b}[2J; next in 0.5 s";
        assert_eq!(notes, [void]);
    }

    #[test]
    fn a_terminal_shows_the_last_reply_of_a_team_as_markdown() {
        let all = RunEnd {
            text: "It is **done**.".into(),
            ..end(Outcome::Completed)
        };
        let shown = |view| {
            let items = TextRenderer::new(facts(), view, false).finish(&finished(&all));
            written(items).0
        };
        assert_eq!(shown(ReplyView::Plain), "It is **done**.\n");
        assert_eq!(shown(ReplyView::Last), "It is \x1b[0;1mdone\x1b[0m.\n");
    }

    #[test]
    fn sub_agents_are_told_of_where_somebody_looks_on() {
        let news = |news: RunUpdate| EventKind::Run(Box::new(news));
        let mut paused = run_ended(run(1));
        if let RunChange::Ended(end) = &mut paused.what {
            (end.status, end.summary) = (RunStatus::Paused, "its budget\x1b[2J is spent".into());
        }
        let happened = [
            EventKind::Delta(Delta::Text("I look".into())),
            EventKind::Delta(Delta::BlockDone),
            EventKind::CallStarted {
                call: "t1".into(),
                tool: "Agent".into(),
                title: "Explore: find callers".into(),
            },
            news(started(run(1), true)),
            news(progress(run(1), 1)),
            news(progress(run(1), 1)),
            news(run_ended(run(1))),
            news(paused),
            EventKind::Warning("an answer\nto nothing".into()),
        ];
        let told = |view, notes| {
            let (mut text, mut runs, mut items) = (
                TextRenderer::new(facts(), view, notes),
                Runs::default(),
                Vec::new(),
            );
            for event in &happened {
                if let EventKind::Run(news) = event {
                    runs.news(news);
                }
                items.extend(text.event(event, &runs));
            }
            written(items)
        };
        let (out, notes) = told(ReplyView::Arriving, true);
        assert_eq!(out, "I look\n");
        let end = "find callers · 3 tool uses · 12,345 tokens · 4.2 s";
        let paused = end.replace("callers", "callers · its budget\\u{1b}[2J is spent");
        let trouble = [
            format!("⇠ paused {paused}"),
            "warning: an answer to nothing".into(),
        ];
        assert_eq!(
            notes[..3],
            [
                "⇢ Explore: find callers (background)".to_owned(),
                "· find callers: Grep step".into(),
                format!("⇠ completed {end}")
            ]
        );
        assert_eq!(notes[3..], trouble);
        assert_eq!(
            told(ReplyView::Plain, false),
            (String::new(), trouble.to_vec())
        );
    }

    #[test]
    fn a_large_miss_is_told_wherever_it_is() {
        let missed = |tokens| {
            vec![Missed {
                tokens,
                why: "expired".into(),
            }]
        };
        let told = |tokens| {
            let misses = Misses {
                missed: missed(tokens),
                ..Misses::default()
            };
            let all = RunEnd {
                misses,
                ..end(Outcome::Completed)
            };
            written(TextRenderer::new(facts(), ReplyView::Plain, false).finish(&finished(&all))).1
        };
        assert_eq!(told(19_999), [""; 0]);
        assert!(
            told(20_000)[0].starts_with("20,000 tokens were no longer in the prompt cache"),
            "{:?}",
            told(20_000)
        );
    }

    #[test]
    fn what_sub_agents_used_is_in_the_last_line() {
        let usage = Usage {
            input: 12_000,
            output: 345,
            ..Usage::default()
        };
        let cost = Some(Cost::from_pico_usd(1_500_000_000_000));
        let below = vec![Spent {
            model: "m".into(),
            usage,
            cost,
        }];
        let all = RunEnd {
            below,
            ..end(Outcome::Completed)
        };
        let (_, notes) =
            written(TextRenderer::new(facts(), ReplyView::Plain, true).finish(&finished(&all)));
        let line = "2 turns · 37 tokens in, 5 out · sub-agents 12,345 tokens · $2.00";
        let go_on = "continue with: posse -p --resume 0197f0aa-0000\n";
        assert_eq!(notes, [line, go_on], "a command that can be pasted");
    }
}
