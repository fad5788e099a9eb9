//! `posse uninstall`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::assemble::own_worktrees::{GitWorktrees, own_worktrees};
use crate::assemble::repository;
use crate::config::environment::{home, posse_home};
use crate::config::store_choice::quoted;
use crate::error::Advised;
use crate::output::print_exactly;

/// Where completions, man pages and the texts of a release are usually put, below the user's home and
/// on the whole machine.
const OF_SHELLS: [&str; 11] = [
    "~/.local/share/bash-completion/completions/posse",
    "~/.local/share/zsh/site-functions/_posse",
    "~/.local/share/fish/vendor_completions.d/posse.fish",
    "~/.bash_completion.d/posse",
    "~/.zfunc/_posse",
    "~/.config/fish/completions/posse.fish",
    "/usr/share/bash-completion/completions/posse",
    "/usr/share/zsh/site-functions/_posse",
    "/usr/local/share/zsh/site-functions/_posse",
    "/usr/share/fish/vendor_completions.d/posse.fish",
    // What `install.sh` puts beside them.
    "~/.local/share/doc/posse",
];
const MANUALS: [&str; 3] = [
    "~/.local/share/man/man1",
    "/usr/local/share/man/man1",
    "/usr/share/man/man1",
];

/// Print the commands that remove posse.
///
/// They remove its home with settings, sessions and keys, its worktrees and branches in repositories,
/// completions, man pages, and the binary. Nothing is run: read them, leave out what you want to
/// keep, and run the rest. `posse worktrees list` shows which worktrees hold work.
#[derive(clap::Args)]
pub(crate) struct UninstallCommand {
    /// Print the commands; without it nothing is done
    #[arg(long)]
    print: bool,
}

impl UninstallCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if !self.print {
            anyhow::bail!(Advised {
                what: "posse does not remove itself".into(),
                advice: "`posse uninstall --print` prints the commands that do; read and run them"
                    .into(),
            });
        }
        let worktrees = own_worktrees()?;
        let mut script = Script::default();
        script
            .note("Removes posse, with everything that it has kept. Nothing of this has been run.");
        of_repositories(&mut script, &worktrees)?;
        of_home(&mut script);
        of_shells(&mut script);
        of_program(&mut script);
        script.note(
            "The directories .posse and .claude of your repositories are yours, and stay. So does \
             /etc/posse.",
        );
        print_exactly(&script.0)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Commands for a shell.
#[derive(Default)]
struct Script(String);

impl Script {
    fn note(&mut self, words: &str) {
        // A line break in a name must not begin a command.
        self.0
            .push_str(&format!("# {}\n", words.replace('\n', " ")));
    }

    fn command(&mut self, words: &[&str]) {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        self.0.push_str(&format!("{}\n", words.join(" ")));
    }

    fn remove(&mut self, path: &Path) {
        self.command(&["rm", "-rf", "--", &path.to_string_lossy()]);
    }
}

/// Worktrees and branches, by repository.
fn of_repositories(script: &mut Script, worktrees: &GitWorktrees) -> anyhow::Result<()> {
    let mut found = worktrees.list()?;
    found.sort_by_key(|found| (repository::of(found), found.agent));
    let mut last = None;
    for found in found {
        let Some(repository) = repository::of(&found) else {
            continue;
        };
        let at = repository.to_string_lossy().into_owned();
        if last.replace(repository.clone()) != Some(repository) {
            script.note(&format!("worktrees and branches of {at}"));
        }
        if let Some(keeps) = &found.keeps {
            script.note(&format!("this one holds work: {keeps}"));
        }
        let path = found.path.to_string_lossy();
        // Twice, since posse locks them.
        script.command(&["git", "-C", &at, "worktree", "remove", "-f", "-f", &path]);
        if let Some(branch) = &found.branch {
            script.command(&["git", "-C", &at, "branch", "-D", branch]);
        }
    }
    script.note("other branches of agents: in each of your repositories");
    script.note("  git branch --list 'posse/*' | xargs -r git branch -D");
    Ok(())
}

/// Settings, sessions, keys, output.
fn of_home(script: &mut Script) {
    if let Some(home) = posse_home().filter(|home| home.exists()) {
        script
            .note("settings, sessions, keys and output; `posse store backup FILE` copies sessions");
        script.remove(&home);
    }
}

/// Completions and man pages that are there.
fn of_shells(script: &mut Script) {
    let below_home = |path: &str| match path.strip_prefix("~/") {
        Some(rest) => home().map(|home| home.join(rest)),
        None => Some(PathBuf::from(path)),
    };
    let completions = OF_SHELLS.iter().filter_map(|path| below_home(path));
    let manuals = MANUALS.iter().filter_map(|path| below_home(path));
    let pages = manuals.flat_map(|directory| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| is_page(path))
    });
    let there: Vec<PathBuf> = completions
        .filter(|path| path.symlink_metadata().is_ok())
        .chain(pages)
        .collect();
    if !there.is_empty() {
        script.note("completions and man pages");
    }
    for path in &there {
        script.remove(path);
    }
}

/// Returns true for a man page of posse or of one of its commands.
fn is_page(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("posse.1") || name.starts_with("posse-")
}

/// The binary.
fn of_program(script: &mut Script) {
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    script.note("the program");
    match program.parent() {
        Some(place) if place.ends_with(".cargo/bin") => {
            script.command(&["cargo", "uninstall", "posse-cli"]);
        }
        _ => script.remove(&program),
    }
}
