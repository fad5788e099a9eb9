//! `posse sessions export`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::config::store::StoreArgs;
use crate::output::print_exactly;
use crate::present::entries;
use crate::select::sessions;

/// Write the transcript of a session or of any of its agents as JSON, one line per entry.
///
/// Messages are written as they were sent to the model, byte for byte.
#[derive(clap::Args)]
pub(super) struct ExportSession {
    /// Session or agent, as in `posse sessions show` [default: the last session used in this
    /// directory]
    id: Option<String>,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ExportSession {
    pub(super) async fn run(self, store: &StoreArgs) -> anyhow::Result<ExitCode> {
        let store = crate::assemble::store::look_into_store(store)?;
        let agent = sessions::any_agent(store.as_ref(), self.id.as_deref()).await?;
        let transcript = store.read(agent.agent).await?;
        let mut file = match &self.output {
            Some(path) => Some(
                std::fs::File::create(path)
                    .map(std::io::BufWriter::new)
                    .with_context(|| format!("cannot write {}", path.display()))?,
            ),
            None => None,
        };
        let unwritten = || {
            format!(
                "cannot write {}",
                self.output.as_deref().unwrap_or(Path::new("")).display()
            )
        };
        for entry in &transcript.entries {
            let line = format!("{}\n", entries::line(entry)?);
            match &mut file {
                Some(file) => file.write_all(line.as_bytes()).with_context(unwritten)?,
                None => print_exactly(&line)?,
            }
        }
        if let Some(mut file) = file {
            file.flush()
                .and_then(|()| file.get_ref().sync_all())
                .with_context(unwritten)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
