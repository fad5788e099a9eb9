//! `posse completions`.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

/// Print a completion script for your shell.
///
/// For bash: `posse completions bash > ~/.local/share/bash-completion/completions/posse`
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut crate::Args::command(),
            "posse",
            &mut script,
        );
        crate::output::print(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
