//! `posse schema`.

use std::process::ExitCode;

use posse_protocol::wire::schema::schema;

/// Print the JSON Schema of posse's protocol.
///
/// It describes the lines that posse exchanges with other programs: commands, events and answers.
#[derive(clap::Args)]
pub(crate) struct SchemaCommand {}

impl SchemaCommand {
    /// Prints the schema.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let text = format!("{:#}\n", schema());
        crate::output::print(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}
