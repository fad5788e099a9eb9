//! `posse completions`.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::complete::CompletionShell;
use crate::output::print_exactly;

/// Print a completion script for your shell.
///
/// In bash, zsh and fish it completes values, too: sessions, teams, members, tasks, agent types,
/// skills, MCP servers and models. posse answers from its store and your files, without running
/// anything. Put the script where your shell looks for it, and start the shell again:
///
/// bash: ~/.local/share/bash-completion/completions/posse
///
/// zsh: a file _posse in a directory of $fpath, before compinit runs
///
/// fish: ~/.config/fish/completions/posse.fish
#[derive(clap::Args)]
pub(crate) struct CompletionsCommand {
    /// The shell.
    shell: Shell,
}

impl CompletionsCommand {
    /// Prints the script for `posse`, the whole command line.
    pub(crate) fn run(self, mut posse: clap::Command) -> anyhow::Result<ExitCode> {
        let asking = match self.shell {
            Shell::Bash => CompletionShell::Bash,
            Shell::Zsh => CompletionShell::Zsh,
            Shell::Fish => CompletionShell::Fish,
            shell => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut posse, "posse", &mut script);
                crate::output::print(&script)?;
                return Ok(ExitCode::SUCCESS);
            }
        };
        print_exactly(asking.script())?;
        Ok(ExitCode::SUCCESS)
    }
}
