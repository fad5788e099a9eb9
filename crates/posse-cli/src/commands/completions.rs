//! `posse completions`.

use std::process::ExitCode;

use clap_complete::Shell;

/// Print a completion script for your shell.
///
/// For bash: `posse completions bash > ~/.local/share/bash-completion/completions/posse`
#[derive(clap::Args)]
pub(crate) struct CompletionsCommand {
    /// The shell.
    shell: Shell,
}

impl CompletionsCommand {
    /// Prints the script for `posse`, the whole command line.
    pub(crate) fn run(self, mut posse: clap::Command) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut posse, "posse", &mut script);
        crate::output::print(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
