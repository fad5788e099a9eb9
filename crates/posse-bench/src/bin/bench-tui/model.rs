//! A model in this process, so that it is known when a piece of a reply was sent.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Failed;

/// Answers each request with the next of its replies. It ends with this process.
pub(crate) struct Model {
    pub(crate) url: String,
    replies: Arc<Mutex<VecDeque<Reply>>>,
}

/// A reply to be sent.
struct Reply {
    pieces: Vec<String>,
    gap: Duration,
    /// Tools that it calls after its text, with their inputs.
    calls: Vec<(&'static str, Value)>,
    sent: SyncSender<Vec<Instant>>,
}

impl Model {
    pub(crate) fn start() -> Result<Self, Failed> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let replies = Arc::<Mutex<VecDeque<Reply>>>::default();
        let waiting = Arc::clone(&replies);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let replies = Arc::clone(&waiting);
                // A client that has gone is not this one's concern.
                thread::spawn(move || drop(serve(stream, &replies)));
            }
        });
        Ok(Self { url, replies })
    }

    /// The next reply consists of these pieces, with a gap between two. When it is over, its
    /// receiver gets the time at which each was sent.
    pub(crate) fn will_say(&self, pieces: Vec<String>, gap: Duration) -> Receiver<Vec<Instant>> {
        let (sent, times) = sync_channel(1);
        self.will_send(Reply {
            pieces,
            gap,
            calls: Vec::new(),
            sent,
        });
        times
    }

    /// The next reply calls tools.
    pub(crate) fn will_call(&self, calls: Vec<(&'static str, Value)>) {
        let (sent, _) = sync_channel(1);
        self.will_send(Reply {
            pieces: Vec::new(),
            gap: Duration::ZERO,
            calls,
            sent,
        });
    }

    fn will_send(&self, reply: Reply) {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        replies.push_back(reply);
    }

    /// Returns the number of replies that nobody has asked for yet.
    pub(crate) fn waiting(&self) -> usize {
        let replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        replies.len()
    }
}

/// Answers the one request of a connection.
fn serve(stream: TcpStream, replies: &Mutex<VecDeque<Reply>>) -> Result<(), Failed> {
    stream.set_nodelay(true)?;
    let is_question = read_request(&stream)?;
    let next = || {
        let mut replies = replies.lock().unwrap_or_else(PoisonError::into_inner);
        replies.pop_front()
    };
    match is_question.then(next).flatten() {
        Some(reply) => reply.send(stream),
        None => {
            let mut stream = stream;
            stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")?;
            Ok(())
        }
    }
}

/// Reads a request to its end. Returns true if it asks for a reply.
fn read_request(stream: &TcpStream) -> Result<bool, Failed> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length, mut is_question) = (String::new(), 0, false);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        is_question |= line.starts_with("POST /v1/messages ");
        let head = line.trim_end().to_ascii_lowercase();
        if let Some(value) = head.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if head.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(is_question)
}

impl Reply {
    fn send(self, mut stream: TcpStream) -> Result<(), Failed> {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5",
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        });
        let start = event(&json!({"type": "message_start", "message": message}));
        let text = json!({"type": "text", "text": ""});
        let block = json!({"type": "content_block_start", "index": 0, "content_block": text});
        stream.write_all(format!("{head}{start}{}", event(&block)).as_bytes())?;
        let mut times = Vec::with_capacity(self.pieces.len());
        let begun = Instant::now();
        for (number, piece) in self.pieces.iter().enumerate() {
            let delta = json!({"type": "text_delta", "text": piece});
            let delta = event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}));
            let due = begun + self.gap * u32::try_from(number)?;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            times.push(Instant::now());
            stream.write_all(delta.as_bytes())?;
        }
        let usage = json!({"output_tokens": self.pieces.len()});
        let reason = match self.calls[..] {
            [] => "end_turn",
            _ => "tool_use",
        };
        let stop = json!({"stop_reason": reason, "stop_sequence": null});
        let mut end = vec![json!({"type": "content_block_stop", "index": 0})];
        for (index, (tool, input)) in (1..).zip(&self.calls) {
            end.extend(call(index, tool, input));
        }
        end.push(json!({"type": "message_delta", "delta": stop, "usage": usage}));
        end.push(json!({"type": "message_stop"}));
        let end: String = end.iter().map(event).collect();
        stream.write_all(end.as_bytes())?;
        // Nobody waits for the times if the measurement is over.
        let _ = self.sent.send(times);
        Ok(())
    }
}

/// Returns the events of a call.
fn call(index: usize, tool: &str, input: &Value) -> [Value; 3] {
    let id = format!("toolu_{index}");
    let block = json!({"type": "tool_use", "id": id, "name": tool, "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
    [
        json!({"type": "content_block_start", "index": index, "content_block": block}),
        json!({"type": "content_block_delta", "index": index, "delta": delta}),
        json!({"type": "content_block_stop", "index": index}),
    ]
}

/// Returns an event of the stream.
fn event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
