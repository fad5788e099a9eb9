//! What all agents of a session share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use posse_protocol::{AgentId, Event, RealmId};
use tokio::sync::mpsc;

use crate::definition::agent_type::Definition;
use crate::definition::spawning::TeamBackend;
use crate::govern::{Account, CacheWarmup, RunSlots};
use crate::live::setup::{Approver, Setup};
use posse_permission::Rights;
use posse_port::model::Encoded;

/// So many preambles are kept.
const PREAMBLES: usize = 64;

/// A preamble of fewer bytes is not worth waiting for: no provider caches so little.
const WORTH_WAITING: usize = 4 << 10;

/// A preamble that siblings share.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) piece: Encoded,
    /// Whether it can be read from the cache, if it is large enough to be there.
    pub(crate) warmup: Option<Arc<CacheWarmup>>,
}

/// A session: its main agent and all that comes from it.
pub(crate) struct Session {
    pub(crate) root: AgentId,
    pub(crate) realm: RealmId,
    /// What the main agent was given; sub-agents get a part of it.
    pub(crate) setup: Setup,
    /// Where events of all its agents go.
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) account: Account,
    /// The main agent's rights: nobody below has more.
    pub(crate) rights: Rights,
    pub(crate) slots: RunSlots,
    /// Preambles of sub-agents by what they are made from: siblings share their bytes.
    pub(crate) preambles: Mutex<HashMap<String, Common>>,
    /// Whether somebody can still answer.
    pub(crate) attended: AtomicBool,
    /// The teammate whose every event is told, if this process is there for it alone.
    pub(crate) shown: Option<AgentId>,
    /// How many teams are being raised.
    pub(crate) raising: AtomicUsize,
    /// What the main agent is told of its teams with its next words.
    pub(crate) notices: Mutex<Vec<String>>,
    /// So many members of its teams are taken up here, if nobody has them.
    pub(crate) takes_over: usize,
    /// Whether this process only takes up members that were raised for workers.
    pub(crate) is_worker: bool,
    /// Whether it is looked whether workers take what is left to them.
    pub(crate) expects: AtomicBool,
}

impl Session {
    /// Returns true if its teammates are left to workers.
    pub(crate) fn leaves_to_workers(&self) -> bool {
        matches!(self.setup.spawning.teams.team_backend, TeamBackend::Workers)
    }

    /// Where the output of an agent's runs goes.
    pub(crate) fn output(&self, agent: AgentId) -> PathBuf {
        self.rights
            .workspace()
            .spill
            .join(format!("{agent}.output"))
    }

    /// Has the main agent told something with its next words.
    pub(crate) fn notice(&self, text: String) {
        self.notices
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(text);
    }

    /// What it is to be told.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who answers when a rule says ask.
    pub(crate) fn approver(&self) -> Approver {
        if self.attended.load(Ordering::Acquire) {
            self.setup.approver
        } else {
            Approver::Nobody
        }
    }

    /// The type of this name.
    pub(crate) fn definition(&self, name: &str) -> Option<Arc<Definition>> {
        self.setup
            .spawning
            .types
            .now()
            .iter()
            .find(|kind| kind.name == name)
            .cloned()
    }

    /// The preamble with this key, made at most once.
    pub(crate) fn preamble(&self, key: String, make: impl FnOnce() -> Encoded) -> Common {
        let mut preambles = self
            .preambles
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if preambles.len() >= PREAMBLES && !preambles.contains_key(&key) {
            // Models write what they like into a call, and types and notes change: the usual few come back.
            preambles.clear();
        }
        let common = || {
            let piece = make();
            let warmup = (piece.bytes.len() >= WORTH_WAITING).then(Arc::default);
            Common { piece, warmup }
        };
        preambles.entry(key).or_insert_with(common).clone()
    }
}
