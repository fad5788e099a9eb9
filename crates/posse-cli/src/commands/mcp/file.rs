//! Changes of the files that servers are declared in. All else in them stays as it is.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use posse_runtime::definition::server::{DeclaredServer, ServerFile, ServerProblem, read_entry};
use serde_json::Value;

use super::ServerScope;
use crate::config::json_text::{with_member, without_comments, without_member};
use crate::config::replace::{Durability, FileMode, replace};
use crate::config::search_paths::SearchPaths;
use crate::config::text_file;
use crate::config::trust::FileKind;
use crate::config::{caller, environment};
use crate::definitions::servers::{
    OF_PROJECT, PROJECTS, SERVERS, approved_as, projects, user_file,
};
use crate::definitions::shown;
use crate::error::Advised;
use crate::output::{say, tame};

/// Where servers of a scope are declared.
pub(super) struct ScopeFile {
    scope: ServerScope,
    places: SearchPaths,
    path: PathBuf,
    /// The keys down to the servers. The user's file may know a project by several directories; the
    /// first one is written.
    below: Vec<Vec<String>>,
}

/// What an entry is written for.
pub(super) enum Replacing {
    /// A server that is there must not be replaced.
    Refused,
    /// It is replaced.
    Allowed,
}

impl ScopeFile {
    /// Returns the file of a scope, for a person who works in the current directory.
    pub(super) fn of(scope: ServerScope) -> anyhow::Result<Self> {
        caller::only_a_person_can("change which MCP servers are declared")?;
        let places = SearchPaths::at(&environment::working_directory()?);
        let servers = SERVERS.to_owned();
        let project = places.project().to_owned();
        let user = || {
            user_file(&places).ok_or_else(|| Advised {
                what: "there is no home directory".into(),
                advice: "set HOME, or use --scope project".into(),
            })
        };
        let (path, below) = match scope {
            ServerScope::Project => (project.join(OF_PROJECT), vec![vec![servers]]),
            ServerScope::User => (user()?, vec![vec![servers]]),
            ServerScope::Local => {
                let known = projects(&places).into_iter().rev();
                let below = known.map(|it| vec![PROJECTS.to_owned(), it, servers.clone()]);
                (user()?, below.collect())
            }
        };
        Ok(Self {
            scope,
            places,
            path,
            below,
        })
    }

    /// Returns the same scope with the file and the keys of a server that was read.
    pub(super) fn with(server: &DeclaredServer, scope: ServerScope) -> anyhow::Result<Self> {
        let file = Self::of(scope)?;
        Ok(match scope {
            // It may be declared in a directory below the project's.
            ServerScope::Project => Self {
                path: server.origin.file.clone(),
                ..file
            },
            ServerScope::Local | ServerScope::User => file,
        })
    }

    /// Declares a server.
    pub(super) fn add(
        &self,
        name: &str,
        entry: &Value,
        replacing: Replacing,
    ) -> anyhow::Result<()> {
        let server = self.checked(name, entry)?;
        let Some(below) = self.below.first() else {
            anyhow::bail!(Advised {
                what: "the project's path is not UTF-8".into(),
                advice: "use --scope user or --scope project".into(),
            });
        };
        let below: Vec<&str> = below.iter().map(String::as_str).collect();
        self.change(|text| {
            let is_there = value_at(text, &below)?.get(name).is_some();
            if is_there && matches!(replacing, Replacing::Refused) {
                anyhow::bail!(Advised {
                    what: format!("there is a {} MCP server {name} already", self.scope.word()),
                    advice: format!(
                        "`posse mcp remove {name} --scope {}` removes it; --force replaces it",
                        self.scope.word()
                    ),
                });
            }
            with_member(text, &below, name, &server.entry()).ok_or_else(|| self.odd())
        })?;
        if self.scope == ServerScope::Project {
            self.accept(&server)?;
        }
        let file = shown(&self.path, &self.places.cwd);
        say(&tame(&format!(
            "declared the {} MCP server {name} in {file}",
            self.scope.word()
        )));
        Ok(())
    }

    /// Removes a server. Returns false if it was not there.
    pub(super) fn remove(&self, name: &str) -> anyhow::Result<bool> {
        let mut was_there = false;
        self.change(|text| {
            was_there = false;
            let mut text = text.to_owned();
            for below in &self.below {
                let below: Vec<&str> = below.iter().map(String::as_str).collect();
                if value_at(&text, &below)?.get(name).is_some() {
                    was_there = true;
                    text = without_member(&text, &below, name).ok_or_else(|| self.odd())?;
                }
            }
            Ok(text)
        })?;
        Ok(was_there)
    }

    /// Returns the server of an entry. Remarks are printed.
    fn checked(&self, name: &str, entry: &Value) -> anyhow::Result<DeclaredServer> {
        let file = ServerFile {
            source: self.scope.source(),
            path: self.path.clone(),
            of_repository: self.scope == ServerScope::Project,
        };
        let (server, remarks) = read_entry(name, entry, &file);
        let mut problem: Option<ServerProblem> = None;
        for remark in remarks {
            match remark.what.is_note() {
                true => say(&tame(&format!("warning: {}", remark.what))),
                false => problem = Some(remark.what),
            }
        }
        server.ok_or_else(|| {
            let why = problem.map(|problem| problem.to_string());
            let what = format!(
                "the MCP server {name} cannot be declared: {}",
                why.unwrap_or_default()
            );
            anyhow::Error::new(Advised {
                what: tame(&what),
                advice: "`posse help mcp` says what an entry has".into(),
            })
        })
    }

    /// Accepts what the person has just written, if they trust the workspace.
    fn accept(&self, server: &DeclaredServer) -> anyhow::Result<()> {
        let path = approved_as(&self.path, &server.name);
        let trust = &self.places.trust;
        Ok(trust.accept(FileKind::Server, &path, &server.content())?)
    }

    /// Changes the file as a whole. What another program writes meanwhile is not lost.
    fn change(&self, mut edit: impl FnMut(&str) -> anyhow::Result<String>) -> anyhow::Result<()> {
        // A link leads to where people keep the file.
        let path = self
            .path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone());
        let context = || tame(&format!("cannot change {}", path.display()));
        let directory = path.parent().unwrap_or(Path::new("."));
        let lock = File::open(directory).with_context(context)?;
        lock.lock().with_context(context)?;
        for _ in 0..ATTEMPTS {
            let before = text_file::read(&path).with_context(context)?;
            let after = edit(before.as_deref().unwrap_or_default())?;
            if before.as_deref().unwrap_or_default() == after {
                return Ok(());
            }
            let mode = match (self.scope, fs::metadata(&path)) {
                (ServerScope::Project, Ok(about)) => FileMode::Like(about.permissions()),
                (ServerScope::Project, Err(_)) => FileMode::Usual,
                // It has secrets of other programs in it.
                (ServerScope::Local | ServerScope::User, _) => FileMode::Private,
            };
            if text_file::read(&path).with_context(context)? != before {
                continue;
            }
            return replace(&path, &after, mode, Durability::Synced).with_context(context);
        }
        anyhow::bail!(Advised {
            what: format!("{} changes all the time", tame(&path.to_string_lossy())),
            advice: "end the other program that writes it, and try again".into(),
        })
    }

    fn odd(&self) -> anyhow::Error {
        anyhow::Error::new(Advised {
            what: format!(
                "{} is not what it should be",
                shown(&self.path, &self.places.cwd)
            ),
            advice: format!("it must be a JSON object, and so must `{SERVERS}` in it"),
        })
    }
}

/// Number of times that a change is tried while another program writes the file.
const ATTEMPTS: usize = 5;

/// Returns the value below these keys.
fn value_at(text: &str, below: &[&str]) -> anyhow::Result<Value> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let plain = without_comments(text);
    let all: Value = serde_json::from_str(&plain).context("the file is not JSON")?;
    let value = below.iter().fold(&all, |value, key| &value[*key]);
    Ok(value.clone())
}
