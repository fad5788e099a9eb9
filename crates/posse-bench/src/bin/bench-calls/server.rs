//! A server of hooks in threads of its own, which counts what it was asked.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::Failed;

/// What every request is answered with.
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

/// The calls that a server was asked about.
pub(crate) struct HookServer {
    pub(crate) port: u16,
    asked: Arc<Mutex<HashSet<String>>>,
}

impl HookServer {
    pub(crate) fn start() -> Result<Self, Failed> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let asked = Arc::<Mutex<HashSet<String>>>::default();
        let all = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let asked = Arc::clone(&all);
                // It ends with its connection.
                std::thread::spawn(move || serve(stream, &asked).ok());
            }
        });
        Ok(Self { port, asked })
    }

    /// Returns the number of calls that it was asked about.
    pub(crate) fn asked(&self) -> usize {
        let asked = self.asked.lock();
        asked.unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Serves a connection until its end.
fn serve(stream: TcpStream, asked: &Mutex<HashSet<String>>) -> Result<(), Failed> {
    stream.set_nodelay(true)?;
    let mut output = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        let told: Value = serde_json::from_slice(&body)?;
        let call = told["tool_use_id"].as_str().unwrap_or_default().to_owned();
        let mut all = asked.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(call);
        drop(all);
        output.write_all(ANSWER)?;
    }
}
