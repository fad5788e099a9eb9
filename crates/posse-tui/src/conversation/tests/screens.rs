//! Every screen of a conversation, at several sizes, as text and styles, and as bytes without
//! colour.

mod lists;
mod scenes;

use std::fmt::Write as _;

use posse_protocol::{
    EventKind, Name, Notification, RunChange, RunFacts, RunKind, RunStatus, RunUpdate, RunUsage,
};

use super::*;
use crate::fixtures::style_runs;
use crate::terminal::InlineTerminal;

const SIZES: [(u16, u16); 4] = [(120, 40), (80, 24), (40, 12), (20, 5)];

/// Compares a screen at all sizes with how it looked when somebody last looked at it.
fn check(name: &str, scene: impl Fn(&mut Talk)) {
    let mut text = String::new();
    for (columns, rows) in SIZES {
        let mut talk = Talk::new(columns, rows);
        scene(&mut talk);
        let frame = talk.frame();
        let _ = writeln!(text, "── {columns} × {rows} ──");
        for line in &frame.printed {
            let _ = writeln!(text, "  {line}");
        }
        text.push_str(&drawn(&frame));
    }
    let mut talk = Talk::new(80, 24);
    scene(&mut talk);
    let _ = write!(
        text,
        "── styles at 80 ──\n{}",
        style_runs(&talk.frame().live)
    );
    compare(name, &text);
}

fn compare(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Returns a live region as text: the cursor's row is marked, its column is below it.
fn drawn(frame: &Frame) -> String {
    let mut text = String::new();
    for (row, line) in rows(&frame.live).iter().enumerate() {
        let is_caret = row == usize::from(frame.caret.y);
        let mark = if is_caret { '▸' } else { '│' };
        let column = match is_caret {
            true => format!("  ◂{}", frame.caret.x),
            false => String::new(),
        };
        let _ = writeln!(text, "{mark} {line}{column}");
    }
    text
}

/// Returns the event that a run has begun; without a name it is a command.
pub(super) fn run(id: u128, name: &str, description: &str) -> EventKind {
    let what = RunChange::Started {
        prompt: String::new(),
        background: true,
    };
    EventKind::Run(Box::new(RunUpdate {
        run: facts(id, name, description),
        what,
    }))
}

pub(super) fn run_end(id: u128, name: &str, summary: &str) -> EventKind {
    let run = facts(id, name, "");
    let end = Notification {
        task: run.task,
        run: run.task,
        call: String::new(),
        kind: run.kind,
        description: String::new(),
        output_file: "/tmp/out".into(),
        status: RunStatus::Completed,
        summary: summary.into(),
        result: String::new(),
        error: None,
        usage: RunUsage::default(),
        model: String::new(),
        value: None,
        worktree: None,
    };
    let what = RunChange::Ended(Box::new(end));
    EventKind::Run(Box::new(RunUpdate { run, what }))
}

fn facts(id: u128, name: &str, description: &str) -> RunFacts {
    RunFacts {
        task: uuid::Uuid::from_u128(id),
        kind: match name {
            "" => RunKind::Shell,
            _ => RunKind::Agent,
        },
        agent_type: String::new(),
        name: name.parse::<Name>().ok(),
        description: description.into(),
        call: String::new(),
        starter: session(),
        depth: 1,
        output_file: "/tmp/out".into(),
        place: None,
    }
}
