//! Tells a client how far a call has come, if it wants to know.

use serde_json::Value;
use tokio::sync::mpsc;

use super::protocol;

/// Number of messages about progress that may wait to be written.
pub(super) const WAITING: usize = 64;

/// Where the progress of a call is told.
pub(super) struct CallProgress {
    /// What the client calls it; `None` if it does not want to know.
    token: Option<Value>,
    lines: mpsc::Sender<Value>,
    number: u64,
}

impl CallProgress {
    /// Returns where the progress of a call with these parameters is told.
    pub(super) fn new(params: &Value, lines: mpsc::Sender<Value>) -> Self {
        let token = &params["_meta"]["progressToken"];
        Self {
            token: (!token.is_null()).then(|| token.clone()),
            lines,
            number: 0,
        }
    }

    /// Tells what happens now. It is left out while the client does not read.
    pub(super) fn tell(&mut self, message: &str) {
        if let Some(token) = &self.token {
            self.number += 1;
            // What is full has newer messages than the client knows.
            let _ = self
                .lines
                .try_send(protocol::progress(token, self.number, message));
        }
    }
}
