//! A transcript in which something was searched for.

use posse_protocol::{ContentBlock, Entry, EntryKind};
use posse_tui::pager::{Pager, PagerBeginning, PagerEffect, PagerInput, update, view};
use posse_tui::terminal::FullScreen;
use posse_tui::theme::Theme;
use serde_json::json;

use crate::words::{call, entry, keys, result};
use crate::{Failed, SIZE};

/// Returns the bytes of a pager.
pub(crate) fn searched() -> Result<Vec<u8>, Failed> {
    let entries = entries();
    let (mut pager, effects) = Pager::open(PagerBeginning {
        size: SIZE,
        title: "dev-1@parser".into(),
        total: entries.len() as u64,
    });
    answer(&mut pager, effects, &entries);
    for key in keys("g/sign\r") {
        let effects = update(&mut pager, PagerInput::Key(key));
        answer(&mut pager, effects, &entries);
    }
    let frame = view(&mut pager);
    let mut screen = FullScreen::new(Theme::ansi());
    let entered = screen.enter();
    Ok([entered, screen.draw(frame.cells, frame.caret)].concat())
}

/// Reads what the pager wants.
fn answer(pager: &mut Pager, effects: Vec<PagerEffect>, entries: &[Entry]) {
    for effect in effects {
        let input = match effect {
            PagerEffect::Read { from, count } => PagerInput::Entries {
                from,
                entries: entries
                    .iter()
                    .skip(from as usize)
                    .take(count as usize)
                    .cloned()
                    .collect(),
            },
            // The first entry has it.
            PagerEffect::Search { .. } => PagerInput::Found { entry: Some(0) },
            _ => continue,
        };
        let effects = update(pager, input);
        answer(pager, effects, entries);
    }
}

fn entries() -> Vec<Entry> {
    let text = |text: &str| vec![ContentBlock::text(text)];
    let output: Vec<String> = (1..=40)
        .map(|line| format!("test lexer::case_{line} ... ok"))
        .collect();
    vec![
        entry(
            0,
            EntryKind::Prompt,
            text("Numbers with a sign are not read: mend the lexer."),
        ),
        entry(
            1,
            EntryKind::Reply,
            vec![
                ContentBlock::text(
                    "`number` takes digits only. A **sign** belongs to it if nothing stands before it:\n\n\
                     ```rust\nfn number(&mut self) -> Option<i64> {\n    let sign = self.take_sign();\n    \
                     Some(sign * self.digits()?)\n}\n```\n",
                ),
                call("1", "Bash", &json!({"command": "cargo test -p lexer"})),
            ],
        ),
        entry(2, EntryKind::Results, vec![result("1", &output.join("\n"))]),
        entry(
            3,
            EntryKind::Reply,
            text(
                "All 40 cases pass:\n\n- a sign before a number\n- a sign between two numbers\n- *no* number after a sign",
            ),
        ),
        entry(
            4,
            EntryKind::Prompt,
            text(
                "<mail from=\"reviewer\" kind=\"message\">\n<summary>the lexer looks good</summary>\n</mail>",
            ),
        ),
        entry(
            5,
            EntryKind::Reply,
            text("Then task #2 is done. I take the next one."),
        ),
    ]
}
