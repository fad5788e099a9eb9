//! Entries of `mcpServers`. What is wrong or unknown is reported with its place, and the rest counts.

use std::path::PathBuf;
use std::time::Duration;

use posse_port::closest;
use serde_json::{Map, Value};

use crate::definition::server::problem::ServerProblem;
use crate::definition::server::{
    DeclaredServer, DeclaredTransport, ServerAdmission, ServerOrigin, ServerSource, sign_in,
};
use crate::hook::PathStep;

/// The keys that entries of each kind have.
const COMMON: [&str; 4] = ["type", "timeout", "alwaysLoad", "shared"];
/// Those of programs.
const OF_PROGRAM: [&str; 3] = ["command", "args", "env"];
/// Those of addresses.
const OF_ADDRESS: [&str; 4] = ["url", "headers", "headersHelper", "oauth"];
/// Keys that posse knows and does not use.
const NOT_USED: [&str; 1] = ["headersHelper"];
/// The shortest time limit of a call in milliseconds.
const SHORTEST: u64 = 1_000;

/// The file that entries are read from.
#[derive(Clone, Debug)]
pub struct ServerFile {
    /// Who declares them.
    pub source: ServerSource,
    /// The file, or the flag.
    pub path: PathBuf,
    /// True if the repository declares them.
    pub of_repository: bool,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadServers {
    /// The servers, in order.
    pub servers: Vec<DeclaredServer>,
    /// What is wrong or unknown.
    pub remarks: Vec<ServerRemark>,
}

/// Something that is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRemark {
    /// Where, below `mcpServers`.
    pub path: Vec<PathStep>,
    /// What.
    pub what: ServerProblem,
}

/// Returns true if a server can have this name.
pub fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.chars().all(is_allowed)
}

/// Reads the value of the key `mcpServers`.
pub fn read(servers: &Value, file: &ServerFile) -> ReadServers {
    let mut read = ReadServers::default();
    let entries = match servers {
        Value::Null => return read,
        Value::Object(entries) => entries,
        _ => {
            let what = ServerProblem::Expected {
                key: "mcpServers".into(),
                expected: "an object of servers by name",
            };
            read.remarks.push(ServerRemark {
                path: Vec::new(),
                what,
            });
            return read;
        }
    };
    for (name, entry) in entries {
        let (server, remarks) = read_entry(name, entry, file);
        read.servers.extend(server);
        read.remarks.extend(remarks);
    }
    read
}

/// Reads one entry. There is no server if it does not say what to start.
pub fn read_entry(
    name: &str,
    entry: &Value,
    file: &ServerFile,
) -> (Option<DeclaredServer>, Vec<ServerRemark>) {
    let mut reader = EntryReader {
        name,
        remarks: Vec::new(),
    };
    let server = reader.server(entry, file);
    let server = server.map_err(|problem| reader.report(problem)).ok();
    (server, reader.remarks)
}

struct EntryReader<'a> {
    name: &'a str,
    remarks: Vec<ServerRemark>,
}

/// Text values by their names.
type NamedTexts = Vec<(String, String)>;

impl EntryReader<'_> {
    fn report(&mut self, what: ServerProblem) {
        let key = match &what {
            ServerProblem::UnknownKey { key, .. } | ServerProblem::Expected { key, .. } => {
                Some(key.clone())
            }
            ServerProblem::NotUsed(key) | ServerProblem::Ignored { key, .. } => {
                Some((*key).to_owned())
            }
            ServerProblem::UrlWithoutType => Some("url".to_owned()),
            ServerProblem::NotSpoken(_) | ServerProblem::UnknownKind(_) => Some("type".to_owned()),
            ServerProblem::Name(_) | ServerProblem::Missing(_) => None,
        };
        let path = [Some(self.name.to_owned()), key].into_iter().flatten();
        self.remarks.push(ServerRemark {
            path: path.map(PathStep::Key).collect(),
            what,
        });
    }

    fn server(
        &mut self,
        entry: &Value,
        file: &ServerFile,
    ) -> Result<DeclaredServer, ServerProblem> {
        if !is_name(self.name) {
            return Err(ServerProblem::Name(self.name.to_owned()));
        }
        let Some(entry) = entry.as_object() else {
            return Err(ServerProblem::Expected {
                key: self.name.to_owned(),
                expected: "an object",
            });
        };
        let transport = self.transport(entry)?;
        let own: &[&str] = match transport {
            DeclaredTransport::Program { .. } => &OF_PROGRAM,
            DeclaredTransport::Http { .. } => &OF_ADDRESS,
        };
        self.other_keys(entry, own);
        Ok(DeclaredServer {
            name: self.name.to_owned(),
            transport,
            call_limit: self.call_limit(entry),
            always_load: self.truth(entry, "alwaysLoad").unwrap_or(false),
            is_shared: self.truth(entry, "shared").unwrap_or(true),
            origin: ServerOrigin {
                source: file.source,
                file: file.path.clone(),
                line: None,
                of_repository: file.of_repository,
            },
            admission: ServerAdmission::Admitted,
        })
    }

    fn transport(
        &mut self,
        entry: &Map<String, Value>,
    ) -> Result<DeclaredTransport, ServerProblem> {
        match entry.get("type").filter(|kind| !kind.is_null()) {
            None if entry.contains_key("command") => program(entry),
            None if entry.contains_key("url") => Err(ServerProblem::UrlWithoutType),
            None => Err(ServerProblem::Missing("command")),
            Some(Value::String(kind)) => match kind.as_str() {
                "stdio" => program(entry),
                "http" | "streamable-http" => self.address(entry),
                "sse" | "ws" => Err(ServerProblem::NotSpoken(kind.clone())),
                _ => Err(ServerProblem::UnknownKind(kind.clone())),
            },
            Some(_) => Err(expected("type", "a text")),
        }
    }

    fn address(&mut self, entry: &Map<String, Value>) -> Result<DeclaredTransport, ServerProblem> {
        let url = needed(entry, "url")?;
        let begins = ["http://", "https://", "${"];
        if !begins.iter().any(|it| url.starts_with(it)) {
            let what = "an address that begins with http:// or https://";
            return Err(expected("url", what));
        }
        let headers = pairs(entry, "headers")?;
        let (sign_in, problems) = sign_in::read(entry.get("oauth"));
        for what in problems {
            self.remarks.push(ServerRemark {
                path: [self.name, "oauth"]
                    .map(|it| PathStep::Key(it.to_owned()))
                    .to_vec(),
                what,
            });
        }
        Ok(DeclaredTransport::Http {
            url,
            headers,
            sign_in,
        })
    }

    fn call_limit(&mut self, entry: &Map<String, Value>) -> Option<Duration> {
        let value = entry.get("timeout").filter(|value| !value.is_null())?;
        let limit = value.as_u64().filter(|limit| *limit >= SHORTEST);
        if limit.is_none() {
            let expected = "a whole number of milliseconds, at least 1000";
            self.report(ServerProblem::Ignored {
                key: "timeout",
                expected,
            });
        }
        limit.map(Duration::from_millis)
    }

    fn truth(&mut self, entry: &Map<String, Value>, key: &'static str) -> Option<bool> {
        let value = entry.get(key).filter(|value| !value.is_null())?;
        let truth = value.as_bool();
        if truth.is_none() {
            let expected = "true or false";
            self.report(ServerProblem::Ignored { key, expected });
        }
        truth
    }

    fn other_keys(&mut self, entry: &Map<String, Value>, own: &[&str]) {
        let known: Vec<&str> = COMMON.iter().chain(own).copied().collect();
        for (key, value) in entry {
            let not_used = NOT_USED.iter().find(|it| *it == key);
            match not_used.filter(|it| known.contains(it)) {
                Some(key) if !value.is_null() => self.report(ServerProblem::NotUsed(key)),
                Some(_) => {}
                None if known.contains(&key.as_str()) => {}
                None => self.report(ServerProblem::UnknownKey {
                    key: key.clone(),
                    closest: closest(key, &known).map(str::to_owned),
                }),
            }
        }
    }
}

fn program(entry: &Map<String, Value>) -> Result<DeclaredTransport, ServerProblem> {
    let args = match entry.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(args)) if args.iter().all(Value::is_string) => {
            let args = args.iter().filter_map(Value::as_str);
            args.map(str::to_owned).collect()
        }
        Some(_) => return Err(expected("args", "a list of texts")),
    };
    Ok(DeclaredTransport::Program {
        command: needed(entry, "command")?,
        args,
        env: pairs(entry, "env")?,
    })
}

/// Returns a text that must be there.
fn needed(entry: &Map<String, Value>, key: &'static str) -> Result<String, ServerProblem> {
    match entry.get(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        None | Some(Value::Null) => Err(ServerProblem::Missing(key)),
        Some(_) => Err(expected(key, "a text that is not empty")),
    }
}

fn pairs(entry: &Map<String, Value>, key: &str) -> Result<NamedTexts, ServerProblem> {
    let pair = |(name, value): (&String, &Value)| {
        let value = value.as_str()?;
        Some((name.clone(), value.to_owned()))
    };
    let pairs = match entry.get(key) {
        None | Some(Value::Null) => Some(NamedTexts::new()),
        Some(Value::Object(pairs)) => pairs.iter().map(pair).collect(),
        Some(_) => None,
    };
    pairs.ok_or_else(|| expected(key, "an object of texts"))
}

fn expected(key: &str, expected: &'static str) -> ServerProblem {
    ServerProblem::Expected {
        key: key.to_owned(),
        expected,
    }
}
