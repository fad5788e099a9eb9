//! The hooks of a case: scripts and servers that keep their input and say what the case says.

use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// One hook of cases.json.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CaseHook {
    pub(super) event: Option<String>,
    pub(super) matcher: Option<String>,
    stdout: String,
    json: Option<Value>,
    stderr: String,
    code: i32,
    run: Option<String>,
    once: bool,
    pub(super) handler: Map<String, Value>,
    /// It is an HTTP hook, and this is the status of the answer.
    http: Option<u16>,
}

impl CaseHook {
    /// Makes what the hook runs. Returns its handler in settings, and the server if it is one.
    pub(super) fn make(&self, base: &Path, number: usize) -> (Value, Option<HookServer>) {
        let (mut handler, server) = match self.http {
            Some(status) => {
                let server = HookServer::start(base.join("inputs"), number, status, self.words());
                let url = format!("http://{}/", server.address);
                (json!({"type": "http", "url": url}), Some(server))
            }
            None => (self.program(base, number), None),
        };
        let fields = handler.as_object_mut().unwrap();
        fields.extend(self.handler.clone());
        (handler, server)
    }

    fn words(&self) -> String {
        match &self.json {
            Some(json) => json.to_string(),
            None => self.stdout.clone(),
        }
    }

    fn program(&self, base: &Path, number: usize) -> Value {
        let path = base.join(match number {
            0 => "hook".to_owned(),
            more => format!("hook{more}"),
        });
        let name = path.display();
        fs::write(path.with_extension("stdout"), self.words()).unwrap();
        fs::write(path.with_extension("stderr"), &self.stderr).unwrap();
        let once = match self.once {
            true => format!("[ -e {name}.said ] && exit 0; touch {name}.said"),
            false => ":".into(),
        };
        let inputs = base.join("inputs");
        let text = format!(
            "#!/bin/sh\ninput=$(cat); printf '%s\\n' \"{number} $input\" >> {}\n{once}\n{}\n\
             cat {name}.stdout; cat {name}.stderr >&2; exit {}\n",
            inputs.display(),
            self.run.as_deref().unwrap_or(":"),
            self.code,
        );
        let script = path.with_extension("sh");
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        json!({"type": "command", "command": script})
    }
}

/// A server that answers all requests alike. It ends when this is dropped.
pub(super) struct HookServer {
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl HookServer {
    fn start(inputs: PathBuf, number: usize, status: u16, body: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Some(input) = read(stream.as_ref().unwrap()) else {
                    break;
                };
                let mut file = fs::File::options().append(true).create(true).open(&inputs);
                writeln!(file.as_mut().unwrap(), "{number} {input}").unwrap();
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                let _ = stream.unwrap().write_all((head + &body).as_bytes());
            }
        });
        Self {
            address,
            thread: Some(thread),
        }
    }
}

impl Drop for HookServer {
    fn drop(&mut self) {
        // A connection that says nothing ends it.
        drop(TcpStream::connect(self.address));
        let _ = self.thread.take().unwrap().join();
    }
}

/// Reads the body of a request. Returns nothing if there is no request.
fn read(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut length = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
        }
    }
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}
