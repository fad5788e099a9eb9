//! `posse mcp add`.

use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::ServerScope;
use super::file::{Replacing, ScopeFile};
use crate::error::Advised;

/// Declare an MCP server: a program, or an address.
#[derive(clap::Args)]
pub(super) struct AddServer {
    /// Name of the server: letters, digits, `_` and `-`
    name: String,
    /// The program and its arguments, after `--`; or the address
    #[arg(required = true, value_name = "COMMAND or URL")]
    words: Vec<String>,
    /// How the server is reached [default: stdio]
    #[arg(short, long, value_enum)]
    transport: Option<Transport>,
    /// Whom it is for
    #[arg(short, long, value_enum, default_value = "local")]
    scope: ServerScope,
    /// Variable of the program; can be repeated
    #[arg(short, long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Header of each request, such as `Authorization: Bearer ${TOKEN}`; can be repeated
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Replace a server of this name
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// A program that talks by its input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
    #[value(hide = true)]
    Sse,
}

impl AddServer {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let entry = self.entry()?;
        let replacing = match self.force {
            true => Replacing::Allowed,
            false => Replacing::Refused,
        };
        ScopeFile::of(self.scope)?.add(&self.name, &entry, replacing)?;
        Ok(ExitCode::SUCCESS)
    }

    fn entry(&self) -> anyhow::Result<Value> {
        let (first, args) = self
            .words
            .split_first()
            .map_or(("", &[][..]), |(first, args)| (first.as_str(), args));
        let is_address = first.starts_with("http://") || first.starts_with("https://");
        match self.transport {
            None if is_address => Err(odd(
                "an address needs --transport",
                "add --transport http, or write `--` before a command",
            )),
            None | Some(Transport::Stdio) if !self.header.is_empty() => Err(odd(
                "--header is for servers over HTTP",
                "add --transport http, or use --env for a program",
            )),
            None | Some(Transport::Stdio) => {
                let env = pairs(&self.env, '=', "--env", "NAME=VALUE")?;
                Ok(json!({ "type": "stdio", "command": first, "args": args, "env": env }))
            }
            Some(Transport::Http) if !args.is_empty() => Err(odd(
                "an address has no arguments",
                "use --header for headers",
            )),
            Some(Transport::Http) if !self.env.is_empty() => Err(odd(
                "--env is for programs",
                "use --header for headers of requests",
            )),
            Some(Transport::Http) => {
                let headers = pairs(&self.header, ':', "--header", "NAME: VALUE")?;
                Ok(json!({ "type": "http", "url": first, "headers": headers }))
            }
            // Said as for an entry in a file.
            Some(Transport::Sse) => Ok(json!({ "type": "sse", "url": first })),
        }
    }
}

/// Returns names and values.
fn pairs(
    words: &[String],
    between: char,
    flag: &str,
    form: &str,
) -> anyhow::Result<Map<String, Value>> {
    let mut pairs = Map::new();
    for word in words {
        let pair = word.split_once(between);
        let Some((name, value)) = pair.filter(|(name, _)| !name.trim().is_empty()) else {
            return Err(odd(
                &format!("{flag}: there is no `{between}` after a name"),
                &format!("write {flag} '{form}'"),
            ));
        };
        // A variable's value is what it is, and space around a header's means nothing.
        let value = match between {
            ':' => value.trim(),
            _ => value,
        };
        pairs.insert(name.trim().to_owned(), value.into());
    }
    Ok(pairs)
}

fn odd(what: &str, advice: &str) -> anyhow::Error {
    anyhow::Error::new(Advised {
        what: what.to_owned(),
        advice: advice.to_owned(),
    })
}
