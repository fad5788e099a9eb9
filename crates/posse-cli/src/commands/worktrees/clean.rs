//! `posse worktrees clean`.

use std::process::ExitCode;

use posse_tools::{Found, GitWorktrees, Swept};
use serde_json::{Value, json};

use super::object;
use crate::error::Advised;
use crate::output::{json_line, print, tame};
use crate::present::sessions::short;

/// Number of candidates listed for an ambiguous id.
const NAMED: usize = 8;

/// Remove worktrees whose agents have ended.
///
/// Without IDs, removes all that hold no work and reports what the others hold. With IDs, removes
/// those unless work would be lost. The worktree of a running agent is never removed.
#[derive(clap::Args)]
pub(super) struct CleanWorktrees {
    /// Worktrees to remove; a unique prefix of each agent's ID is enough
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Discard all work in them, committed or not
    #[arg(long, requires = "ids")]
    discard: bool,
    /// Print one JSON object per worktree
    #[arg(long)]
    json: bool,
}

impl CleanWorktrees {
    pub(super) fn run(self, worktrees: &GitWorktrees) -> anyhow::Result<ExitCode> {
        if self.ids.is_empty() {
            self.sweep(worktrees)?;
        } else {
            // All are checked before any is removed, so that a wrong id removes nothing.
            let meant = meant(&super::all(worktrees)?, &self.ids)?;
            meant
                .iter()
                .try_for_each(|found| allowed(found, self.discard))?;
            for found in meant {
                if self.discard {
                    self.discard(worktrees, &found)?
                } else {
                    self.remove(worktrees, &found)?
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Removes all worktrees that hold no work.
    fn sweep(&self, worktrees: &GitWorktrees) -> anyhow::Result<()> {
        let mut swept = worktrees.sweep();
        swept.sort_by_key(|swept| swept.found.agent);
        if swept.is_empty() && !self.json {
            print(b"nothing to remove\n")?;
        }
        swept.iter().try_for_each(|swept| self.tell(swept))
    }

    /// Removes one worktree that holds no work.
    fn remove(&self, worktrees: &GitWorktrees, found: &Found) -> anyhow::Result<()> {
        let swept = worktrees
            .clean(found)
            .map_err(|why| stuck(found, &why.to_string()))?;
        if !swept.removed {
            // Somebody has worked in it since it was checked.
            allowed(&swept.found, false)?;
            anyhow::bail!(stuck(&swept.found, "there is something in its way"));
        }
        self.tell(&swept)
    }

    /// Removes one worktree with everything in it.
    fn discard(&self, worktrees: &GitWorktrees, found: &Found) -> anyhow::Result<()> {
        // Before it is removed: afterwards nothing names them any more.
        let commits = worktrees.commits(found);
        worktrees
            .discard(found)
            .map_err(|why| stuck(found, &why.to_string()))?;
        print(
            if self.json {
                json_line(&done(found, true, &commits))
            } else {
                gone(found, &commits)
            }
            .as_bytes(),
        )?;
        Ok(())
    }

    /// Prints what became of a worktree.
    fn tell(&self, swept: &Swept) -> anyhow::Result<()> {
        let Swept { found, removed } = swept;
        let told = match (self.json, removed) {
            (true, _) => json_line(&done(found, *removed, &[])),
            (false, true) => format!("removed {}\n", place(found)),
            (false, false) => {
                let why = found
                    .keeps
                    .as_deref()
                    .map_or_else(|| "it could not be removed".to_owned(), tame);
                format!("kept {}: {why}\n", place(found))
            }
        };
        print(told.as_bytes())?;
        Ok(())
    }
}

/// Checks that a worktree may be removed.
fn allowed(found: &Found, discard: bool) -> Result<(), Advised> {
    let id = short(found.agent);
    if found.live {
        return Err(Advised {
            what: format!("{} belongs to a running agent", place(found)),
            advice:
                "stop the process that hosts it (`posse agents ps` shows which), then try again"
                    .into(),
        });
    }
    match &found.keeps {
        Some(_) if !discard => Err(Advised {
            what: format!("{} would be lost with {}", holds(found), place(found)),
            advice: format!(
                "`posse worktrees list` says how to save it; `posse worktrees clean {id} \
                 --discard` deletes it"
            ),
        }),
        _ => Ok(()),
    }
}

/// Returns the error for a worktree that may be removed but cannot be.
fn stuck(found: &Found, why: &str) -> Advised {
    Advised {
        what: format!("{} cannot be removed: {}", place(found), tame(why)),
        advice: "fix that and try again; `posse worktrees list` shows the current state".into(),
    }
}

/// Returns the worktrees whose agents' ids begin with `ids`.
fn meant(all: &[Found], ids: &[String]) -> Result<Vec<Found>, Advised> {
    let mut meant: Vec<Found> = Vec::new();
    for prefix in ids {
        let prefix = prefix.trim().to_ascii_lowercase();
        let begins = |found: &&Found| found.agent.to_string().starts_with(&prefix);
        let matching: Vec<&Found> = all.iter().filter(begins).collect();
        match matching[..] {
            [one] if meant.contains(one) => {}
            [one] => meant.push(one.clone()),
            [] => {
                return Err(Advised {
                    what: format!("there is no worktree of an agent {}", tame(&prefix)),
                    advice: "`posse worktrees list` shows all worktrees".into(),
                });
            }
            [..] => {
                let named = matching
                    .iter()
                    .take(NAMED)
                    .map(|it| format!("\n  {}  {}", it.agent, holds(it)));
                let more = if matching.len() > NAMED {
                    "\n  and more"
                } else {
                    ""
                };
                return Err(Advised {
                    what: format!("several ids begin with `{}`", tame(&prefix)),
                    advice: format!("give more of the id:{}{more}", named.collect::<String>()),
                });
            }
        }
    }
    Ok(meant)
}

fn place(found: &Found) -> String {
    tame(&found.path.to_string_lossy())
}

fn holds(found: &Found) -> String {
    found
        .keeps
        .as_deref()
        .map_or_else(|| "nothing".to_owned(), tame)
}

/// Returns what became of a worktree, for programs.
fn done(found: &Found, removed: bool, commits: &[String]) -> Value {
    let mut told = object(found);
    told["removed"] = json!(removed);
    told["commits"] = json!(commits);
    told
}

/// Returns what was discarded, and how committed work can be restored.
fn gone(found: &Found, commits: &[String]) -> String {
    let mut told = format!("discarded {}: {}\n", place(found), holds(found));
    for commit in commits {
        told.push_str(&format!(
            "  its commits stay until git prunes them: git branch NAME {commit}\n"
        ));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::super::made::found;
    use super::*;

    #[test]
    fn beginnings_of_ids_will_do_if_they_are_clear() {
        let all = [
            found(1, false, None),
            found(12, false, Some("1 commit")),
            found(2, false, None),
        ];
        let meant = |ids: &[&str]| {
            meant(
                &all,
                &ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>(),
            )
        };
        let [one, twelve, two] = all.clone().map(|found| found.agent.to_string());
        assert_eq!(
            meant(&[&two, &one, &two[..]]).unwrap(),
            [all[2].clone(), all[0].clone()]
        );
        assert_eq!(meant(&[&one.to_uppercase()]).unwrap(), all[..1]);
        let several = meant(&[&one, "0197f0aa"]).unwrap_err();
        assert!(
            several.advice.contains(&format!("{twelve}  1 commit")),
            "{}",
            several.advice
        );
        assert!(
            meant(&["ffff"])
                .unwrap_err()
                .what
                .contains("no worktree of an agent ffff")
        );
    }

    #[test]
    fn what_holds_something_is_removed_by_those_who_say_so_and_what_is_live_by_nobody() {
        assert!(allowed(&found(1, false, None), false).is_ok());
        let kept = found(1, false, Some("1 commit"));
        assert!(
            allowed(&kept, false)
                .unwrap_err()
                .advice
                .contains("--discard")
        );
        assert!(allowed(&kept, true).is_ok());
        let live = found(1, true, None);
        assert!(
            allowed(&live, true)
                .unwrap_err()
                .what
                .contains("a running agent")
        );
    }
}
