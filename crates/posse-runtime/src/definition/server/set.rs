//! All servers that are declared, and which of them count.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::definition::server::{
    DeclaredServer, ResolvedServer, ServerAdmission, ServerPolicy, ServerSource, ServerVariables,
};

/// The servers of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSet {
    /// One of each name, by name.
    known: BTreeMap<String, Arc<DeclaredServer>>,
    /// Those that another one of the same name overrides, highest precedence first.
    overridden: Vec<Arc<DeclaredServer>>,
    policy: ServerPolicy,
    environment: Arc<BTreeMap<String, String>>,
    channels: Vec<String>,
}

impl ServerSet {
    /// Returns the set of what is declared, held to a policy. `checkout` is the session's directory.
    pub fn new(
        declared: Vec<DeclaredServer>,
        policy: ServerPolicy,
        environment: BTreeMap<String, String>,
        checkout: &Path,
    ) -> Self {
        let mut set = Self {
            policy,
            environment: Arc::new(environment),
            ..Self::default()
        };
        let mut declared: Vec<Arc<DeclaredServer>> = declared
            .into_iter()
            .map(|server| Arc::new(set.admitted(server, checkout)))
            .collect();
        // What may not start does not stand in the way of what may.
        declared.sort_by_key(|server| (!server.is_admitted(), server.origin.source));
        for server in declared {
            match set.known.contains_key(&server.name) {
                true => set.overridden.push(server),
                false => {
                    set.known.insert(server.name.clone(), server);
                }
            }
        }
        set.overridden.sort_by_key(|server| server.origin.source);
        set
    }

    /// Makes servers of these names channels: what they send unasked becomes a prompt.
    pub fn with_channels(self, channels: Vec<String>) -> Self {
        Self { channels, ..self }
    }

    /// Returns the names of the servers that are channels.
    pub fn channels(&self) -> &[String] {
        &self.channels
    }

    /// Returns a server that somebody declares, held to the policy of the set.
    fn admitted(&self, server: DeclaredServer, checkout: &Path) -> DeclaredServer {
        match self.refusal(&server, checkout) {
            Some(why) => DeclaredServer {
                admission: ServerAdmission::Refused { why },
                ..server
            },
            None => server,
        }
    }

    /// Returns true if a server that is not of the set may be started.
    pub fn admits(&self, server: &DeclaredServer, checkout: &Path) -> bool {
        server.is_admitted() && self.refusal(server, checkout).is_none()
    }

    /// Returns why the policy does not let a server start, if it does not.
    fn refusal(&self, server: &DeclaredServer, checkout: &Path) -> Option<String> {
        let is_managed = server.origin.source == ServerSource::Managed;
        let entry = self.resolve(server, checkout).entry;
        self.policy.refusal(&entry, is_managed)
    }

    /// Returns the servers, one of each name, by name. Some of them may not be started.
    pub fn all(&self) -> impl Iterator<Item = &Arc<DeclaredServer>> {
        self.known.values()
    }

    /// Returns those that may be started, by name.
    pub fn active(&self) -> impl Iterator<Item = &Arc<DeclaredServer>> {
        self.all().filter(|server| server.is_admitted())
    }

    /// Returns those that another one of the same name overrides.
    pub fn overridden(&self) -> &[Arc<DeclaredServer>] {
        &self.overridden
    }

    /// Returns the server of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<DeclaredServer>> {
        self.known.get(name)
    }

    /// Returns what a server's entry comes to for an agent that works in `checkout`.
    pub fn resolve(&self, server: &DeclaredServer, checkout: &Path) -> ResolvedServer {
        server.resolve(&ServerVariables {
            environment: &|name| self.environment.get(name).cloned(),
            checkout,
        })
    }
}
