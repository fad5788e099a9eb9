//! Variables in entries, and what an entry comes to for an agent.

use std::path::Path;

use posse_port::servers::{ServerEntry, ServerSharing, ServerTransport, SignInEntry};

use crate::definition::server::secret::{is_secret_name, is_secret_url};
use crate::definition::server::{DeclaredServer, DeclaredTransport};

/// Names of the directory that the agent works in.
const CHECKOUT: [&str; 2] = ["CLAUDE_PROJECT_DIR", "POSSE_WORKTREE"];

/// What variables stand for.
#[derive(Clone, Copy)]
pub struct ServerVariables<'a> {
    /// The value of a variable of the environment.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The directory that the agent works in: its worktree, or the session's directory.
    pub checkout: &'a Path,
}

/// What an entry comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedServer {
    /// The entry.
    pub entry: ServerEntry,
    /// Variables that are not set and have no default. Their text stays.
    pub unset: Vec<String>,
}

impl DeclaredServer {
    /// Returns what the entry comes to for an agent. Agents for whom it comes to the same can share a
    /// server.
    pub fn resolve(&self, variables: &ServerVariables<'_>) -> ResolvedServer {
        let mut unset = Vec::new();
        let mut text = |text: &str| expanded(text, variables, &mut unset);
        let pairs = |pairs: &[(String, String)], text: &mut dyn FnMut(&str) -> String| {
            let pairs = pairs.iter();
            let pairs = pairs.map(|(name, value)| (name.clone(), text(value)));
            pairs.collect::<Vec<_>>()
        };
        let transport = match &self.transport {
            DeclaredTransport::Program { command, args, env } => ServerTransport::Program {
                words: [command]
                    .into_iter()
                    .chain(args)
                    .map(|it| text(it))
                    .collect(),
                variables: pairs(env, &mut text),
            },
            DeclaredTransport::Http {
                url,
                headers,
                sign_in,
            } => ServerTransport::Http {
                url: text(url),
                headers: pairs(headers, &mut text),
                sign_in: SignInEntry {
                    client_id: sign_in.client_id.as_deref().map(&mut text),
                    client_secret: sign_in.client_secret.as_deref().map(&mut text),
                    metadata_url: sign_in.metadata_url.as_deref().map(&mut text),
                    ..sign_in.clone()
                },
            },
        };
        unset.sort();
        unset.dedup();
        let sharing = match (self.is_shared, self.names_secret()) {
            (false, _) => ServerSharing::Agent,
            (true, true) => ServerSharing::Session,
            (true, false) => ServerSharing::Process,
        };
        let entry = ServerEntry {
            name: self.name.clone(),
            transport,
            call_limit: self.call_limit,
            sharing,
        };
        ResolvedServer { entry, unset }
    }

    /// Returns true if the entry names the directory that an agent works in, so that each worktree
    /// has a server of its own.
    pub fn names_worktree(&self) -> bool {
        self.variables().iter().any(|it| CHECKOUT.contains(&&**it))
    }

    /// Returns true if the entry has a secret in it, or a variable whose name tells of one.
    pub(crate) fn names_secret(&self) -> bool {
        let names = match &self.transport {
            DeclaredTransport::Program { env, .. } => env,
            DeclaredTransport::Http { url, .. } if is_secret_url(url) => return true,
            DeclaredTransport::Http { sign_in, .. } if sign_in.client_secret.is_some() => {
                return true;
            }
            DeclaredTransport::Http { headers, .. } => headers,
        };
        let names = names.iter().map(|(name, _)| name);
        let variables = self.variables();
        names.chain(&variables).any(|name| is_secret_name(name))
    }

    /// Returns the variables that the entry names.
    fn variables(&self) -> Vec<String> {
        let pieces = self.texts().into_iter().flat_map(pieces);
        let names = pieces.filter_map(|piece| match piece {
            Piece::Variable { name, .. } => Some(name.to_owned()),
            Piece::Text(_) => None,
        });
        names.collect()
    }

    /// Returns all texts of the entry in which variables are replaced.
    fn texts(&self) -> Vec<&str> {
        let (first, more, pairs, sign_in) = match &self.transport {
            DeclaredTransport::Program { command, args, env } => (command, &args[..], env, None),
            DeclaredTransport::Http {
                url,
                headers,
                sign_in,
            } => (url, &[][..], headers, Some(sign_in)),
        };
        let pairs = pairs.iter().map(|(_, value)| value);
        let sign_in = sign_in.into_iter();
        let sign_in = sign_in.flat_map(|it| [&it.client_id, &it.client_secret, &it.metadata_url]);
        let texts = [first].into_iter().chain(more).chain(pairs);
        let texts = texts.chain(sign_in.flatten());
        texts.map(String::as_str).collect()
    }
}

/// Replaces the variables in a text, once: a value with a variable in it stays as it is.
fn expanded(text: &str, variables: &ServerVariables<'_>, unset: &mut Vec<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        let (whole, name, default) = match piece {
            Piece::Text(text) => {
                out.push_str(text);
                continue;
            }
            Piece::Variable {
                whole,
                name,
                default,
            } => (whole, name, default),
        };
        if CHECKOUT.contains(&name) {
            out.push_str(&variables.checkout.to_string_lossy());
            continue;
        }
        match (variables.environment)(name) {
            Some(value) => out.push_str(&value),
            None => out.push_str(default.unwrap_or_else(|| {
                unset.push(name.to_owned());
                whole
            })),
        }
    }
    out
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    /// It stays.
    Text(&'a str),
    /// `${NAME}` or `${NAME:-default}`.
    Variable {
        whole: &'a str,
        name: &'a str,
        default: Option<&'a str>,
    },
}

/// Returns the parts of a text.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut rest, mut from) = (text, 0);
    while let Some(at) = rest[from..].find("${").map(|at| from + at) {
        match variable(&rest[at..]) {
            Some(variable @ Piece::Variable { whole, .. }) => {
                pieces.push(Piece::Text(&rest[..at]));
                rest = &rest[at + whole.len()..];
                from = 0;
                pieces.push(variable);
            }
            _ => from = at + 2,
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// Returns the variable that a text begins with.
fn variable(text: &str) -> Option<Piece<'_>> {
    let inside = text.strip_prefix("${")?;
    let end = inside.find('}')?;
    let (name, default) = match inside[..end].split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (&inside[..end], None),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins && name.chars().all(is_name)).then_some(Piece::Variable {
        whole: &text[..end + 3],
        name,
        default,
    })
}
