//! A scripted model in this process, for those who try posse without a key.

use std::sync::Arc;

use anyhow::Context;
use posse_scripted::{Mode, Script, Server, ServerOptions, SystemPace};

/// A model that greets and repeats what it is told, until this is dropped.
pub(crate) struct LocalModel(Server);

impl LocalModel {
    /// Starts it on any free port of this machine.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let options = ServerOptions {
            port: 0,
            mode: Mode::Play(Script::built_in()?),
            pace: Arc::new(SystemPace::default()),
        };
        let server = Server::start(options).context("the scripted model could not be started")?;
        Ok(Self(server))
    }

    /// Returns where it is.
    pub(crate) fn url(&self) -> String {
        self.0.url()
    }
}
