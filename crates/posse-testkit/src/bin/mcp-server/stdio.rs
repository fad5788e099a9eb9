//! Messages by lines of input and output.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::Failed;
use crate::outbox::Outbox;
use crate::server::{Request, Server};

/// Answers the lines of the input until it ends.
pub(crate) async fn run(server: Arc<Server>) -> Result<(), Failed> {
    let (outbox, lines) = Outbox::new();
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    let mut work = Work::default();
    work.tasks.spawn(write(lines));
    while let Some(line) = input.next_line().await? {
        if let Ok(message) = serde_json::from_str(&line) {
            work.take(&server, message, &outbox)?;
        }
        while work.tasks.try_join_next().is_some() {}
    }
    server.log.write("end", json!({}))?;
    if server.options.has("--ignore-eof") {
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// What is being answered.
#[derive(Default)]
struct Work {
    tasks: JoinSet<()>,
    /// Requests by their numbers, so that they can be cancelled.
    requests: HashMap<String, AbortHandle>,
}

impl Work {
    fn take(
        &mut self,
        server: &Arc<Server>,
        message: Value,
        outbox: &Outbox,
    ) -> Result<(), Failed> {
        let Some(method) = message["method"].as_str() else {
            server.questions.answered(message);
            return Ok(());
        };
        let params = &message["params"];
        if message["id"].is_null() {
            if method == "notifications/cancelled" {
                let id = &params["requestId"];
                if let Some(request) = self.requests.remove(&id.to_string()) {
                    request.abort();
                }
                server.log.write("cancelled", json!({ "id": id }))?;
                return Ok(());
            }
            let (server, outbox) = (Arc::clone(server), outbox.clone());
            let method = method.to_owned();
            self.tasks
                .spawn(async move { server.notified(&method, outbox).await });
            return Ok(());
        }
        let request = Request {
            id: message["id"].clone(),
            method: method.to_owned(),
            params: params.clone(),
            outbox: outbox.clone(),
        };
        let id = request.id.to_string();
        let task = self.tasks.spawn(Arc::clone(server).answer(request));
        self.requests.retain(|_, request| !request.is_finished());
        self.requests.insert(id, task);
        Ok(())
    }
}

async fn write(mut lines: mpsc::Receiver<String>) {
    let mut output = tokio::io::stdout();
    while let Some(line) = lines.recv().await {
        let written = output.write_all(format!("{line}\n").as_bytes()).await;
        // The client has gone.
        if written.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}
