//! `posse worktrees list`.

use std::path::PathBuf;
use std::process::ExitCode;

use posse_tools::{Found, GitWorktrees};

use super::{object, state};
use crate::assemble::repository;
use crate::config::environment::working_directory;
use crate::error::Advised;
use crate::output::table::{Column, needed, spare, table};
use crate::output::{json_line, print, say_to_person, tame, width};
use crate::present::sessions::shown_ids;

/// Columns of the table.
const COLUMNS: [Column; 4] = [
    needed("ID"),
    needed("STATE"),
    spare("REPOSITORY", 1),
    needed("HOLDS"),
];

/// What to do next, printed below the list.
const ADVICE: &str = "\n\
                      to keep work, commit it in its directory, then, in the repository: git merge \
                      posse/ID\n\
                      to remove empty worktrees: posse worktrees clean; others: posse worktrees \
                      clean ID --discard\n";

/// List the worktrees of agents, newest last.
///
/// A worktree is live while its agent runs in it. When the agent ends, the worktree is removed if
/// nothing would be lost, and kept otherwise. A worktree that is left holds nothing, and its
/// process died: posse removes it at the next start.
#[derive(clap::Args)]
pub(super) struct ListWorktrees {
    /// List only worktrees of this directory's repository
    #[arg(long)]
    here: bool,
    /// Print one JSON object per worktree
    #[arg(long)]
    json: bool,
}

impl ListWorktrees {
    pub(super) fn run(self, worktrees: &GitWorktrees) -> anyhow::Result<ExitCode> {
        let mut found = super::all(worktrees)?;
        if self.here {
            let here = Some(here()?);
            found.retain(|found| repository::shared(found) == here);
        }
        if self.json {
            for found in &found {
                print(json_line(&object(found)).as_bytes())?;
            }
        } else if found.is_empty() {
            let elsewhere = if self.here { " of this repository" } else { "" };
            say_to_person(&format!("no agent has left a worktree{elsewhere}"));
        } else {
            print(readable(&found, width()).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the repository of the current directory.
fn here() -> anyhow::Result<PathBuf> {
    let directory = working_directory()?;
    Ok(repository::around(&directory).ok_or_else(|| Advised {
        what: format!("{} is not in a git repository", directory.display()),
        advice: "omit --here to list all worktrees".into(),
    })?)
}

/// Returns a row per worktree, and below it in full what people copy.
fn readable(found: &[Found], columns: Option<usize>) -> String {
    let ids = shown_ids(found.iter().map(|found| found.agent));
    let row = |(found, id): (&Found, &String)| {
        let repository = repository::of(found);
        vec![
            id.clone(),
            state(found).to_owned(),
            repository.map_or_else(|| "–".to_owned(), |it| tame(&it.to_string_lossy())),
            found
                .keeps
                .as_deref()
                .map_or_else(|| "nothing".to_owned(), tame),
        ]
    };
    let table = table(
        &COLUMNS,
        &found.iter().zip(&ids).map(row).collect::<Vec<_>>(),
        columns,
    );
    let mut rows = table.lines();
    let mut shown: String = rows
        .next()
        .map(|titles| format!("{titles}\n"))
        .unwrap_or_default();
    for (row, found) in rows.zip(found) {
        shown.push_str(&format!("{row}\n"));
        let place = tame(&found.path.to_string_lossy());
        let branch = found
            .branch
            .as_deref()
            .map_or_else(|| "no branch".to_owned(), tame);
        shown.push_str(&format!("  {branch}\n  {place}\n"));
    }
    shown + ADVICE
}

#[cfg(test)]
mod tests {
    use super::super::made::found;
    use super::*;

    #[test]
    fn each_is_told_with_what_can_be_copied() {
        let all = [
            found(1, false, Some("1 commit")),
            found(2, true, Some("a\x1b[2J")),
            found(3, false, None),
        ];
        let shown = readable(&all, None);
        let lines: Vec<&str> = shown.lines().collect();
        let id = |at: usize| all[at].agent.to_string();
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>(),
            ["ID", "STATE", "REPOSITORY", "HOLDS"]
        );
        assert!(lines[1].ends_with("kept   /work/app   1 commit"), "{shown}");
        assert_eq!(
            lines[2..4],
            [
                format!("  posse/{}", id(0)),
                format!("  {}", all[0].path.display())
            ]
        );
        assert!(
            lines[4].ends_with("live   /work/app   a\\u{1b}[2J"),
            "{shown}"
        );
        assert!(lines[7].ends_with("left   /work/app   nothing"), "{shown}");
        assert!(shown.ends_with(ADVICE));
    }

    #[test]
    fn a_narrow_terminal_does_without_the_repository() {
        let shown = readable(
            &[found(1, false, Some("1 commit, 2 changed files"))],
            Some(40),
        );
        assert!(
            !shown.contains("REPOSITORY") && shown.contains("kept   1 commit, "),
            "{shown}"
        );
    }
}
