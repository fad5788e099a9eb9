//! posse as an MCP server: `posse mcp serve`.
//!
//! [`protocol`] reads lines and makes answers, [`tools`] says what can be called, [`calls`] keeps
//! those that are open, and [`rights`] what they may do.

mod allowance;
mod answer;
mod calls;
mod changes;
mod looks;
mod place;
mod progress;
mod protocol;
pub(crate) mod rights;
mod run;
mod tools;

use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use self::calls::OpenCalls;
use self::protocol::{ClientMessage, ClientRequest, RequestFault};
use self::rights::ServerRights;
use crate::headless::input::stdin::{StdinLine, StdinLines};
use crate::headless::output_item::line;
use crate::headless::signals::Signals;
use crate::headless::writer::OutputWriter;

/// Time that runs have to stop in order when the client has gone.
const TO_STOP: Duration = Duration::from_millis(1200);
/// Time for what cannot be stopped in order.
const TO_LEAVE: Duration = Duration::from_millis(300);
/// Time that the client has to read the last answers.
const TO_WRITE: Duration = Duration::from_millis(200);

/// Serves the client on standard input and output until it closes the input, or a signal comes. At
/// most `most_runs` runs work at once.
pub(crate) async fn serve(rights: ServerRights, most_runs: usize) -> io::Result<()> {
    let mut signals = Signals::new()?;
    let mut writer = OutputWriter::start()?;
    let mut lines = StdinLines::start();
    let mut server = McpServer {
        is_initialized: false,
        calls: OpenCalls::new(rights, most_runs),
    };
    let ended = loop {
        // A client that does not read is not read from either.
        let reads = writer.is_ready();
        let said: Option<Value> = tokio::select! {
            written = writer.work() => match written {
                Ok(()) => None,
                Err(error) => break Err(error),
            },
            () = signals.next() => break Ok(()),
            told = server.calls.next(), if reads => told,
            came = lines.next(), if reads => match came {
                Some(came) => server.read(came),
                None => break Ok(()),
            },
        };
        writer.say(said.iter().map(line).collect());
    };
    for patience in [TO_STOP, TO_LEAVE] {
        server.calls.stop();
        let last = last_answers(&mut server.calls, &mut writer);
        if tokio::time::timeout(patience, last).await.is_ok() {
            break;
        }
    }
    // A client that does not read is not waited for, and one that has gone has nothing to read.
    let _ = tokio::time::timeout(TO_WRITE, writer.finish()).await;
    ended
}

/// Tells how the open calls end: who has closed the input may still read.
async fn last_answers(calls: &mut OpenCalls, writer: &mut OutputWriter) {
    let mut reads = true;
    while calls.is_open() {
        tokio::select! {
            told = calls.next() => writer.say(told.iter().map(line).collect()),
            written = writer.work(), if reads => reads = written.is_ok(),
        }
    }
}

/// The state of a server.
struct McpServer {
    /// The client has sent `initialize`.
    is_initialized: bool,
    calls: OpenCalls,
}

impl McpServer {
    /// Takes a line, and returns the answer to it if there is one now.
    fn read(&mut self, came: StdinLine) -> Option<Value> {
        let text = match came {
            StdinLine::Text(text) => text,
            StdinLine::Unreadable(what) => return Some(protocol::unreadable(what)),
        };
        match protocol::read(&text) {
            Ok(ClientMessage::Request(request)) => {
                let id = request.id.clone();
                let answer = self.answer(request).transpose()?;
                Some(answer.unwrap_or_else(|fault| protocol::failure(&id, &fault)))
            }
            Ok(ClientMessage::Cancelled(id)) => {
                self.calls.cancel(&id);
                None
            }
            Ok(ClientMessage::Nothing) => None,
            Err(answer) => Some(answer),
        }
    }

    /// Answers a request; a call is answered later.
    fn answer(&mut self, request: ClientRequest) -> Result<Option<Value>, RequestFault> {
        let era = protocol::era_of(&request, self.is_initialized)?;
        let result = match request.method.as_str() {
            "initialize" => {
                self.is_initialized = true;
                protocol::initialized(&request.params)
            }
            "server/discover" => protocol::discovered(),
            "ping" => json!({}),
            "tools/list" => protocol::listed(self.calls.tools(), era),
            "tools/call" => return self.calls.begin(request, era).map(|()| None),
            method => return Err(RequestFault::NoMethod(method.to_owned())),
        };
        Ok(Some(protocol::success(&request.id, result, era)))
    }
}
