//! `posse clean`.

mod item;
mod search;

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use self::item::{LeftItem, Outcome};
use self::search::LeftoverSearch;
use crate::config::age::milliseconds;
use crate::config::caller;
use crate::config::store::StoreArgs;
use crate::error::FAILED;
use crate::output::table::{Column, needed, table};
use crate::output::{count, json_line, print, say, size, width};

const COLUMNS: [Column; 3] = [needed("KIND"), needed("SIZE").right(), needed("WHAT")];

/// Show what posse has left, and remove what nobody needs.
///
/// That is: worktrees that hold nothing of their own, branches `posse/…` whose commits other branches
/// have, sessions that were not used for a long time, output of background runs, and files of
/// processes that died. Nothing is removed without --yes or, on a terminal, your answer. Uncommitted
/// work, commits that no other branch has, and what runs are always kept, and the reason is shown.
#[derive(clap::Args)]
pub(crate) struct CleanCommand {
    /// Look at all directories, not only at this one and its repository
    #[arg(long)]
    all: bool,
    /// Time since a session was last used, in minutes, hours, days or weeks: 90m, 12h, 30d, 8w
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = milliseconds)]
    older_than: i64,
    /// Remove what is listed without asking
    #[arg(short, long)]
    yes: bool,
    /// Print one JSON object for each thing
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl CleanCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if self.yes {
            caller::only_a_person_can("remove what others may need")?;
        }
        let search = LeftoverSearch::new(&self.store, self.all, self.older_than)?;
        let (mut items, stay) = crate::config::runtime()?.block_on(search.items())?;
        if self.json {
            if self.yes {
                search.remove_all(&mut items);
            }
            for item in &items {
                print(json_line(&item.object()).as_bytes())?;
            }
            return Ok(exit(&items));
        }
        print(listed(&items, stay, width()).as_bytes())?;
        if !items.iter().any(LeftItem::goes) {
            return Ok(ExitCode::SUCCESS);
        }
        if self.yes || is_confirmed()? {
            search.remove_all(&mut items);
            return removed(&items);
        }
        say("nothing was removed; `posse clean --yes` removes these");
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns what goes, and below it what stays and why.
fn listed(items: &[LeftItem], stay: usize, columns: Option<usize>) -> String {
    let rows = |goes: bool| -> Vec<Vec<String>> {
        let items = items.iter().filter(|item| item.goes() == goes);
        items.map(LeftItem::row).collect()
    };
    let (going, staying) = (rows(true), rows(false));
    let bytes = items.iter().filter(|item| item.goes());
    let bytes = bytes.map(|item| item.bytes).sum();
    let mut shown = match going.len() {
        0 => "there is nothing to remove\n".to_owned(),
        number => format!(
            "{}\n{} in all: {}\n",
            table(&COLUMNS, &going, columns),
            count(number, "thing"),
            size(bytes)
        ),
    };
    if stay > 0 {
        let sessions = count(stay, "session");
        shown.push_str(&format!(
            "kept: {sessions}: open, or used since (--older-than)\n"
        ));
    }
    if !staying.is_empty() {
        shown.push_str(&format!("\nkept\n{}", table(&COLUMNS, &staying, columns)));
    }
    shown
}

/// Asks a person; without one nothing is confirmed.
fn is_confirmed() -> anyhow::Result<bool> {
    let (stdin, mut out) = (std::io::stdin(), std::io::stdout());
    if !stdin.is_terminal() || !out.is_terminal() || !caller::is_person() {
        return Ok(false);
    }
    out.write_all(b"\nRemove these for good? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    stdin.lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Says what was removed, and what could not be.
fn removed(items: &[LeftItem]) -> anyhow::Result<ExitCode> {
    let gone = items.iter().filter(|item| item.outcome == Outcome::Removed);
    let bytes = gone.clone().map(|item| item.bytes).sum();
    let line = format!(
        "removed {}, {}\n",
        count(gone.count(), "thing"),
        size(bytes)
    );
    print(line.as_bytes())?;
    for item in items {
        if let Outcome::Failed(why) = &item.outcome {
            say(&format!("warning: not removed: {}: {why}", item.what()));
        }
    }
    Ok(exit(items))
}

fn exit(items: &[LeftItem]) -> ExitCode {
    let failed = |item: &LeftItem| matches!(item.outcome, Outcome::Failed(_));
    match items.iter().any(failed) {
        true => ExitCode::from(FAILED),
        false => ExitCode::SUCCESS,
    }
}
