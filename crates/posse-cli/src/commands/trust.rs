//! `posse trust`.

mod list;
mod remove;

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::config::search_paths::SearchPaths;
use crate::config::{caller, environment};
use crate::definitions::trustable::{Extent, Trustable};
use crate::error::Advised;
use crate::output::{print, say, tame};
use crate::present::trust;

/// Show what a workspace's files would have posse do, and trust them.
///
/// They are trusted as they are now. Before that, nothing of a workspace is run or obeyed: no
/// agents, skills, commands, teams or instructions of its repository count, and posse runs no git
/// there. Files that change later wait until you trust them again.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TrustCommand {
    #[command(subcommand)]
    command: Option<TrustSubcommand>,
    /// Directory in the workspace [default: the current one]
    dir: Option<PathBuf>,
    /// Trust without being asked
    #[arg(short, long)]
    yes: bool,
}

#[derive(clap::Subcommand)]
enum TrustSubcommand {
    List(list::ListTrusted),
    Remove(remove::RemoveTrust),
}

impl TrustCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Some(TrustSubcommand::List(command)) => command.run(),
            Some(TrustSubcommand::Remove(command)) => command.run(),
            None => give(self.dir.as_deref(), self.yes),
        }
    }
}

/// Shows what waits, asks, and keeps the answer.
fn give(dir: Option<&Path>, yes: bool) -> anyhow::Result<ExitCode> {
    caller::only_a_person_can("trust a workspace")?;
    let found = Trustable::at(&SearchPaths::at(&meant(dir)?), Extent::Whole);
    if let Some(problem) = found.trust.problem() {
        anyhow::bail!(Advised {
            what: problem.to_owned(),
            advice: "remove the file, and trust your workspaces again".into(),
        });
    }
    let root = tame(&found.trust.root().to_string_lossy());
    if !found.trust.can_be_kept() {
        anyhow::bail!(Advised {
            what: format!("trust in {root} is not kept: it would hold for everything below"),
            advice: "make it a project of its own in a directory below, or use --trust for one run"
                .into(),
        });
    }
    if found.trust.is_trusted() && found.waiting().next().is_none() {
        say(&format!("{root} is trusted as it is"));
        return Ok(ExitCode::SUCCESS);
    }
    print(trust::introduction(&found).as_bytes())?;
    if !yes && !is_confirmed()? {
        say("nothing was changed");
        return Ok(ExitCode::from(crate::error::FAILED));
    }
    found.accept()?;
    say(&format!(
        "{root} is trusted; `posse trust remove` takes it back"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Asks the person.
fn is_confirmed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        anyhow::bail!(Advised {
            what: "nobody is there to be asked".into(),
            advice: "add --yes if you have read these files".into(),
        });
    }
    let mut out = std::io::stdout().lock();
    out.write_all(b"Trust these files as they are now? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Returns the directory that is meant, with links resolved.
fn meant(dir: Option<&Path>) -> anyhow::Result<PathBuf> {
    let here = environment::working_directory()?;
    let Some(dir) = dir else {
        return Ok(here);
    };
    here.join(dir).canonicalize().map_err(|error| {
        anyhow::Error::new(Advised {
            what: format!("{} cannot be used: {error}", tame(&dir.to_string_lossy())),
            advice: "name an existing directory".into(),
        })
    })
}
