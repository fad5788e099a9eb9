//! What all agents of a session share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use posse_protocol::{AgentId, Outcome, RealmId};
use uuid::Uuid;

use crate::definition::agent_type::Definition;
use crate::definition::spawning::TeamBackend;
use crate::govern::{Account, CacheWarmup, RunSlots};
use crate::live::message_row::MessageRow;
use crate::live::servers::SessionServers;
use crate::live::session_events::SessionEvents;
use crate::live::setup::{Approver, Setup};
use posse_permission::Rights;
use posse_port::model::Encoded;

/// Maximum number of preambles that are kept.
const PREAMBLES: usize = 64;

/// Preambles of fewer bytes are not worth waiting for: no provider caches so little.
const WORTH_WAITING: usize = 4 << 10;

/// A preamble that siblings share.
#[derive(Clone)]
pub(crate) struct Common {
    /// The encoded preamble.
    pub(crate) encoded: Encoded,
    /// Coordinates who writes it to the prompt cache; none if it is too small to be cached.
    pub(crate) warmup: Option<Arc<CacheWarmup>>,
}

/// A session: its main agent and all agents that come from it.
pub(crate) struct Session {
    /// Its main agent, whose ID is the session's.
    pub(crate) root: AgentId,
    /// Realm that it shares with sessions forked from it.
    pub(crate) realm: RealmId,
    /// Setup of the main agent; sub-agents get a part of it.
    pub(crate) setup: Setup,
    /// Accepts the events of all its agents.
    pub(crate) events: SessionEvents,
    /// Its account, which is also the main agent's.
    pub(crate) account: Account,
    /// Rights of the main agent: no agent below has more.
    pub(crate) rights: Rights,
    /// Limits how many of its sub-agents call the model at once.
    pub(crate) slots: RunSlots,
    /// Preambles of sub-agents by what they are made from: siblings share the bytes.
    pub(crate) preambles: Mutex<HashMap<String, Common>>,
    /// True while a front end can answer questions.
    pub(crate) attended: AtomicBool,
    /// The teammate all of whose events are shown, if this process hosts it alone.
    pub(crate) shown: Option<AgentId>,
    /// Number of declared teams that are being started.
    pub(crate) raising: AtomicUsize,
    /// Notices about its teams for the main agent's next message.
    pub(crate) notices: Mutex<Vec<String>>,
    /// Maximum number of members of its teams that are taken up here if no process has them.
    pub(crate) takes_over: usize,
    /// True if this process only takes up members that were created for workers.
    pub(crate) is_worker: bool,
    /// True while a task watches whether workers take what is left to them.
    pub(crate) expects: AtomicBool,
    /// How its main agent's run ends, once something has halted the session.
    pub(crate) halted: OnceLock<Outcome>,
    /// Messages between its teammates.
    pub(crate) message_row: Arc<MessageRow>,
    /// Servers that its agents use.
    pub(crate) servers: SessionServers,
    /// The prompt that is worked on, by which hooks know what belongs together.
    pub(crate) prompt: Mutex<Option<Uuid>>,
}

impl Session {
    /// Returns true if its teammates are left to workers.
    pub(crate) fn leaves_to_workers(&self) -> bool {
        matches!(self.setup.spawning.teams.team_backend, TeamBackend::Workers)
    }

    /// Returns the file for the output of an agent's runs.
    pub(crate) fn output(&self, agent: AgentId) -> PathBuf {
        self.rights
            .workspace()
            .spill
            .join(format!("{agent}.output"))
    }

    /// Returns the file with what an agent and its model have said, for hooks.
    pub(crate) fn transcript(&self, agent: AgentId) -> PathBuf {
        self.rights.workspace().spill.join(format!("{agent}.jsonl"))
    }

    /// Notes that another prompt is worked on.
    pub(crate) fn next_prompt(&self) {
        *self.prompt.lock().unwrap_or_else(PoisonError::into_inner) = Some(Uuid::now_v7());
    }

    /// Returns the prompt that is worked on; none before the first.
    pub(crate) fn prompt(&self) -> Option<Uuid> {
        *self.prompt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a notice to the main agent's next message.
    pub(crate) fn notice(&self, text: String) {
        self.notices
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(text);
    }

    /// Takes the notices that the main agent was not told yet.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns who answers when a rule says ask.
    pub(crate) fn approver(&self) -> Approver {
        match self.setup.approver {
            Approver::FrontEnd if !self.attended.load(Ordering::Acquire) => Approver::Nobody,
            approver => approver,
        }
    }

    /// Returns the type with this name.
    pub(crate) fn definition(&self, name: &str) -> Option<Arc<Definition>> {
        self.setup
            .spawning
            .types
            .now()
            .iter()
            .find(|kind| kind.name == name)
            .cloned()
    }

    /// Returns the preamble with this key, made at most once.
    pub(crate) fn preamble(&self, key: String, make: impl FnOnce() -> Encoded) -> Common {
        let mut preambles = self
            .preambles
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if preambles.len() >= PREAMBLES && !preambles.contains_key(&key) {
            // Everything is dropped instead of the oldest: keys vary with what models write into
            // calls, and the few that are in use come back at once.
            preambles.clear();
        }
        let common = || {
            let encoded = make();
            let warmup = (encoded.bytes.len() >= WORTH_WAITING).then(Arc::default);
            Common { encoded, warmup }
        };
        preambles.entry(key).or_insert_with(common).clone()
    }
}
