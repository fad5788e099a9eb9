//! Messages as lines between posse and a program.

use std::io;
use std::sync::{Arc, OnceLock};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::tail::LogTail;
use crate::answer::clip;

/// The longest line that is read.
const MOST_LINE: usize = 16 << 20;
/// How much space for lines is kept once a long one was read.
const KEPT_SPACE: usize = 1 << 20;
/// How much is told of a line that is no message.
const TOLD_BYTES: usize = 200;

/// Why nothing comes from a program any more.
#[derive(Clone, Debug, Default)]
pub(super) struct Loss {
    why: Arc<OnceLock<&'static str>>,
    is_lost: CancellationToken,
}

impl Loss {
    fn tell(&self, why: &'static str) {
        let _ = self.why.set(why);
        self.is_lost.cancel();
    }

    /// Waits until nothing comes any more, and returns why.
    pub(super) async fn wait(&self) -> &'static str {
        self.is_lost.cancelled().await;
        self.why.get().copied().unwrap_or_default()
    }
}

/// A program's input and output. A line is a message; other lines are told in its log.
pub(super) struct LineTransport {
    output: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    line: Vec<u8>,
    input: Arc<Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>>,
    closed: CancellationToken,
    log: Arc<LogTail>,
    loss: Loss,
}

impl LineTransport {
    pub(super) fn new(
        input: Box<dyn AsyncWrite + Send + Unpin>,
        output: Box<dyn AsyncRead + Send + Unpin>,
        log: Arc<LogTail>,
    ) -> Self {
        Self {
            output: BufReader::with_capacity(64 << 10, output),
            line: Vec::new(),
            input: Arc::new(Mutex::new(Some(input))),
            closed: CancellationToken::new(),
            log,
            loss: Loss::default(),
        }
    }

    /// Returns what tells that nothing comes any more.
    pub(super) fn loss(&self) -> Loss {
        self.loss.clone()
    }

    /// Reads a line without its end. Dropping the future loses nothing.
    async fn read_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let Ok(available) = self.output.fill_buf().await else {
                self.loss.tell("its output cannot be read");
                return None;
            };
            if available.is_empty() {
                self.loss.tell("it has closed its output");
                return None;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            self.line.extend_from_slice(&available[..taken]);
            self.output.consume(taken);
            if self.line.len() > MOST_LINE {
                self.line = Vec::new();
                self.loss.tell("it printed a line longer than 16 MiB");
                return None;
            }
            if end.is_some() {
                let space = self.line.len().min(KEPT_SPACE);
                return Some(std::mem::replace(&mut self.line, Vec::with_capacity(space)));
            }
        }
    }
}

impl Transport<RoleClient> for LineTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (input, closed) = (Arc::clone(&self.input), self.closed.clone());
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let write = async {
                match &mut *input.lock().await {
                    Some(input) => input.write_all(&line).await,
                    None => Err(io::ErrorKind::NotConnected.into()),
                }
            };
            tokio::select! {
                biased;
                written = write => written,
                () = closed.cancelled() => Err(io::ErrorKind::NotConnected.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let line = self.read_line().await?;
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(message) => return Some(message),
                Err(error) => {
                    let text = String::from_utf8_lossy(&line[..line.len().min(TOLD_BYTES)]);
                    let text = clip(&text, TOLD_BYTES);
                    self.log
                        .note(&format!("a line that is no message ({error}): {text}"));
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A program that does not read may hold up whoever writes.
        self.closed.cancel();
        self.input.lock().await.take();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PONG: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    fn transport(output: Vec<u8>) -> LineTransport {
        LineTransport::new(
            Box::new(tokio::io::sink()),
            Box::new(io::Cursor::new(output)),
            Arc::default(),
        )
    }

    #[tokio::test]
    async fn lines_that_are_no_messages_are_skipped_and_told() {
        let mut output = b"Server listening!\r\n\n{\"half\": \n[]\n".to_vec();
        output.extend_from_slice(PONG);
        output.extend_from_slice(b"\r\n{\"jsonrpc\":\"2.0\"");
        let mut transport = transport(output);
        let message = transport.receive().await.unwrap();
        assert!(matches!(message, ServerJsonRpcMessage::Response(_)));
        let log = transport.log.text();
        assert!(log.contains("Server listening!"), "{log}");
        assert_eq!(log.lines().count(), 3, "{log}");
        assert!(transport.receive().await.is_none());
        assert_eq!(transport.loss().wait().await, "it has closed its output");
    }

    #[tokio::test]
    async fn a_line_that_does_not_end_takes_no_memory() {
        let mut transport = transport(vec![b'x'; MOST_LINE + (1 << 20)]);
        assert!(transport.receive().await.is_none());
        assert!(transport.line.capacity() <= KEPT_SPACE);
        let why = transport.loss().wait().await;
        assert_eq!(why, "it printed a line longer than 16 MiB");
    }
}
