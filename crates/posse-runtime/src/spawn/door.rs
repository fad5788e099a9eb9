//! The one door: every agent that another starts comes through here, and every limit is checked here.

use std::sync::Arc;

use posse_protocol::AgentId;

use super::house::{House, Resident};
use super::limits::{self, Situation};
use super::route::{AgentInput, Route, route};
use super::run::Run;
use crate::agent::Plan;
use crate::govern::{Account, Ask};
use crate::port::store::{CallKey, Origin};
use crate::tool::Workspace;

/// A call that wants an agent.
pub(crate) struct Wish {
    pub(crate) by: AgentId,
    pub(crate) key: CallKey,
    pub(crate) call: String,
    pub(crate) input: AgentInput,
}

/// A run that somebody waits for: dropped while it is held, the run is told to end.
pub(crate) struct Leash {
    house: Arc<House>,
    pub(crate) run: Arc<Run>,
    by: AgentId,
    held: bool,
}

impl Leash {
    /// The run goes its own way, or is over.
    pub(crate) fn off(mut self) {
        self.held = false;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if self.held {
            self.house.abandon(&self.run, self.by);
        }
    }
}

impl House {
    /// Starts an agent, or says why not. When this returns, the agent is durable.
    pub(crate) async fn spawn(self: &Arc<Self>, wish: Wish) -> Result<Leash, String> {
        let Wish { by, key, call, input } = wish;
        let parent = self.resident(by).ok_or("whoever starts it has ended")?;
        let (tree, spawning) = (Arc::clone(&parent.tree), &parent.tree.setup.spawning);
        let types = super::tool::startable(&tree.setup);
        let Route { definition, effort, background } = route(&input, &types, spawning.background)?;
        let depth = parent.depth + 1;
        let account = parent.account.open(spawning.budgets, self.ports.clock.now());
        let situation = Situation {
            frozen: self.is_frozen(by),
            depth,
            exhausted: self.exhausted(&account),
            memory: self.ports.memory.available(),
            live: self.population(tree.root),
        };
        limits::check(&situation, spawning)?;
        if let Some(name) = &input.name {
            self.name_is_free(&parent, name).await?;
        }
        let mode = definition.mode;
        let cwd = match input.cwd {
            Some(cwd) => resolved(parent.standing.workspace().cwd.join(cwd))?,
            None => parent.standing.workspace().cwd.clone(),
        };
        let workspace = Workspace { cwd, ..Workspace::clone(parent.standing.workspace()) };
        let standing = parent.standing.child(mode, workspace).map_err(|outside| format!("cwd: {outside}"))?;
        let label = input.name.as_ref().map_or(definition.name.as_str(), |name| name.as_str());
        let place =
            if key.ordinal == 0 { key.seq.to_string() } else { format!("{}.{}", key.seq, key.ordinal) };
        let plan = Plan {
            path: format!("{}/{label}-{place}", parent.path),
            origin: Origin {
                parent: by,
                call: key,
                call_id: call,
                agent_type: definition.name.clone(),
                name: input.name,
                description: input.description,
                terms: String::new(),
            },
            model: input.model.or(definition.model.clone()).unwrap_or_else(|| parent.model.clone()),
            account,
            prompt: input.prompt,
            tree,
            definition,
            depth,
            effort: effort.or(parent.effort),
            standing,
            background,
        };
        let run = self.bear(plan).ok_or("nothing is started any more: the agent is being stopped")?;
        let leash = Leash { house: Arc::clone(self), run: Arc::clone(&run), by, held: true };
        run.is_born().await?;
        Ok(leash)
    }

    /// Whether not even the smallest call could be paid for.
    fn exhausted(&self, account: &Account) -> Option<String> {
        let free = |_: u64, _: u32| Some(posse_protocol::Cost::default());
        let ask = Ask { input: 1, output: 1, least: 1, price: &free };
        match account.reserve(&ask, self.ports.clock.now()) {
            Err(exceeded) if !exceeded.may_pass() => Some(exceeded.to_string()),
            // Set aside and given back at once.
            Ok(_) | Err(_) => None,
        }
    }

    async fn name_is_free(&self, parent: &Resident, name: &posse_protocol::Name) -> Result<(), String> {
        let found = self.named(parent.tree.realm, name).await.map_err(|error| error.to_string())?;
        match found {
            Some(other) => Err(format!(
                "name: {name} is agent {} of this session, and stays so; write to it with SendMessage, or \
                 choose another name",
                other.agent
            )),
            None => Ok(()),
        }
    }
}

/// A directory without links in its path.
fn resolved(path: std::path::PathBuf) -> Result<std::path::PathBuf, String> {
    match path.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(path) => Err(format!("cwd: {} is no directory", path.display())),
        Err(error) => Err(format!("cwd: {}: {error}", path.display())),
    }
}
