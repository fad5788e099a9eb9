//! `posse scripted-model`.

pub(crate) mod conformance;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use posse_scripted::{Mode, Script, Server, ServerOptions, SystemPace};

use crate::error::Advised;
use crate::output::{print, say};

/// Run a model server whose replies come from a script: no key, no network, no cost.
///
/// It listens on 127.0.0.1 and speaks the Anthropic Messages API and OpenAI Chat Completions, as
/// strictly as the real ones. Without SCRIPT it greets and echoes. `posse help
/// scripted-model` describes the script's format.
#[derive(clap::Args)]
pub(crate) struct ScriptedModelCommand {
    /// Script, a TOML file
    script: Option<PathBuf>,
    /// Port; 0 picks any free one
    #[arg(long, value_name = "N", default_value_t = 4141)]
    port: u16,
    /// Accept any request, hash its body and answer `ok`: for benchmarking clients
    #[arg(long, conflicts_with = "script")]
    sink: bool,
    /// Instead of serving, send the conformance requests to URL and compare the answers
    #[arg(long, value_name = "URL", conflicts_with_all = ["script", "sink"])]
    conformance: Option<String>,
    /// Model named in conformance requests
    #[arg(long, default_value = "claude-opus-5-5", requires = "conformance")]
    model: String,
    /// Print one JSON line at the start (the URL), or one per conformance request
    #[arg(long)]
    json: bool,
}

impl ScriptedModelCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(url) = &self.conformance {
            return crate::config::runtime()?.block_on(conformance::run(
                url,
                &self.model,
                self.json,
            ));
        }
        let mode = self.mode()?;
        crate::config::runtime()?.block_on(self.serve(mode))
    }

    /// Returns what the server plays.
    fn mode(&self) -> anyhow::Result<Mode> {
        let script = match &self.script {
            _ if self.sink => return Ok(Mode::Sink),
            None => Script::built_in()?,
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read the script {}", path.display()))?;
                Script::parse(&text).with_context(|| format!("the script {}", path.display()))?
            }
        };
        Ok(Mode::Play(script))
    }

    /// Serves until a signal ends it.
    async fn serve(&self, mode: Mode) -> anyhow::Result<ExitCode> {
        let options = ServerOptions {
            port: self.port,
            mode,
            pace: Arc::new(SystemPace::default()),
        };
        let server = Server::start(options).map_err(|error| Advised {
            what: format!("cannot listen on 127.0.0.1:{}: {error}", self.port),
            advice: "another server may be running there; choose another port with --port, 0 for \
                     any"
            .into(),
        })?;
        let url = server.url();
        if self.json {
            print(
                format!(
                    "{}\n",
                    serde_json::json!({"url": url, "pid": std::process::id()})
                )
                .as_bytes(),
            )?;
        } else {
            print(format!("scripted model on {url}\n").as_bytes())?;
            say(&format!(
                "try:   posse ask-model --base-url {url} \"hello\""
            ));
            say(&format!("look:  curl {url}/_scripted/requests"));
            say("stop:  Ctrl-C");
        }
        ended().await?;
        drop(server);
        Ok(ExitCode::SUCCESS)
    }
}

/// Waits for Ctrl-C or SIGTERM.
async fn ended() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
