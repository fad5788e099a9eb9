//! Where messages of the server go.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

/// Number of messages that wait to be written.
const WAITING: usize = 64;

/// A way to the client: the output, or the answer of a request over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    lines: mpsc::Sender<String>,
}

impl Outbox {
    /// Returns a way, and its end.
    pub(crate) fn new() -> (Self, mpsc::Receiver<String>) {
        let (lines, end) = mpsc::channel(WAITING);
        (Self { lines }, end)
    }

    /// Sends a message. If nobody reads it, it is lost.
    pub(crate) async fn send(&self, message: &Value) {
        self.send_text(message.to_string()).await;
    }

    /// Sends a line, whatever it is.
    pub(crate) async fn send_text(&self, line: String) {
        // The client has gone: its request ends soon, too.
        let _ = self.lines.send(line).await;
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send(&message).await;
    }

    /// Returns true if nobody reads it any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.lines.is_closed()
    }
}

/// Questions of the server that the client has not answered.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    asked: AtomicUsize,
    open: Mutex<HashMap<String, oneshot::Sender<Value>>>,
}

impl Questions {
    /// Asks the client, and returns its whole answer; none if it never comes.
    pub(crate) async fn ask(&self, outbox: &Outbox, method: &str, params: Value) -> Option<Value> {
        let (sender, answer) = oneshot::channel();
        let id = format!("question-{}", self.asked.fetch_add(1, Ordering::SeqCst));
        let lock = || self.open.lock().unwrap_or_else(PoisonError::into_inner);
        lock().insert(id.clone(), sender);
        let question = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        outbox.send(&question).await;
        answer.await.ok()
    }

    /// Takes the answer to a question.
    pub(crate) fn answered(&self, answer: Value) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = answer["id"].as_str().and_then(|id| open.remove(id));
        if let Some(asked) = asked {
            // Whoever asked may have gone.
            let _ = asked.send(answer);
        }
    }
}
