//! Sub-agents that are born, and where they are found again.

use std::sync::Arc;

use posse_protocol::{AgentId, Command, ContentBlock, Name, RealmId, RunFacts, RunKind};
use uuid::Uuid;

use super::Setup;
use super::actor::{Identity, Sub};
use super::build::{About, Below, Seed};
use crate::govern::Account;
use crate::permission::Standing;
use crate::port::model::{Piece, Preamble, Thinking};
use crate::port::store::{AgentFilter, Birth, Epoch, Origin, Session, StoreError};
use crate::spawn::Definition;
use crate::spawn::contract::Contract;
use crate::spawn::door::Lease;
use crate::spawn::house::House;
use crate::spawn::output::Output;
use crate::spawn::run::Run;
use crate::spawn::terms::Terms;
use crate::spawn::tool::{fingerprint, startable};
use crate::spawn::tree::Tree;
use crate::tool::Toolbox;

/// A sub-agent that is to be born.
pub(crate) struct Plan {
    pub(crate) agent: AgentId,
    pub(crate) tree: Arc<Tree>,
    pub(crate) origin: Origin,
    pub(crate) definition: Arc<Definition>,
    pub(crate) terms: Terms,
    pub(crate) path: String,
    pub(crate) depth: u32,
    pub(crate) model: String,
    pub(crate) standing: Standing,
    pub(crate) account: Account,
    /// What it is told before its prompt.
    pub(crate) told: Vec<String>,
    /// What it has written down in earlier lives.
    pub(crate) notes: Option<String>,
    pub(crate) prompt: String,
    pub(crate) contract: Option<Contract>,
    pub(crate) background: bool,
}

impl Plan {
    /// Its first message: its prompt, with what posse and its type say around it.
    fn first_message(&self) -> Vec<ContentBlock> {
        let asked = self.contract.as_ref().map(Contract::asked);
        let texts = self.told.iter().cloned().chain([self.prompt.clone()]).chain(asked);
        texts.map(ContentBlock::text).collect()
    }

    fn facts(&self) -> RunFacts {
        let Origin { parent, call_id, agent_type, name, description, .. } = &self.origin;
        RunFacts {
            task: self.agent.uuid(),
            kind: RunKind::Agent,
            agent_type: agent_type.clone(),
            name: name.clone(),
            description: description.clone(),
            call: call_id.clone(),
            starter: *parent,
            depth: self.depth,
            output_file: self.tree.output(self.agent),
        }
    }
}

impl House {
    /// Brings a new sub-agent to life, and gives its run; none if its parent may start nothing any more.
    pub(crate) fn bear(self: &Arc<Self>, plan: Plan, lease: Lease) -> Option<Arc<Run>> {
        let (agent, depth, mode) = (plan.agent, plan.depth, plan.standing.mode());
        let types = startable_at(depth, &plan.tree.setup);
        let tools = self.tools_of_sub(agent, &plan.tree.setup, &plan.terms, types.as_deref());
        let told = fingerprint(&tools, types.as_deref().unwrap_or_default());
        let preamble = self.preamble(&plan, &tools, told);
        let run = Arc::new(Run::new(plan.facts(), Uuid::now_v7(), plan.background));
        let first = Command::Prompt(plan.first_message());
        let Plan { tree, origin, terms, path, model, standing, account, prompt, contract, .. } = plan;
        let name = origin.name.as_ref().map_or_else(|| path.clone(), ToString::to_string);
        let parent = origin.parent;
        let birth = Birth {
            origin: Some(Box::new(origin)),
            path: path.clone(),
            model: model.clone(),
            dialect: self.ports.model.dialect().to_owned(),
            mode,
            cwd: standing.workspace().cwd.clone(),
            preamble: preamble.clone(),
            segments: Vec::new(),
        };
        let about = About {
            identity: Identity { realm: tree.realm, agent, epoch: Epoch(1) },
            model,
            mode,
            effort: terms.effort,
            path,
            living: self.supervisor.room_for(agent),
            preamble,
            birth: Some(Box::new(birth)),
            told,
        };
        let output = Output::new(run.facts.output_file.clone());
        let sub = Sub::new(Arc::clone(&run), parent, output, prompt);
        let below = Below { tree, sub, depth, standing, account, tools, turns: terms.turns, contract, name };
        let (mut actor, commands) = self.assemble_sub(about, Seed::default(), below)?;
        actor.has_worktree(lease.take());
        // Nobody else knows it yet, so there is room.
        let _ = self.pass_on(agent, first);
        self.animate((actor, commands));
        Some(run)
    }

    /// What stays the same for a new sub-agent. Siblings share it.
    fn preamble(&self, plan: &Plan, tools: &Toolbox, told: Option<u64>) -> Piece {
        let Plan { definition, model, terms, tree, notes, .. } = plan;
        let (effort, names) = (terms.effort, tools.names().join(","));
        let said = [definition.prompt.as_str(), notes.as_deref().unwrap_or_default()];
        let said = said.map(|text| xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
        let key = format!("{}\n{model}\n{effort:?}\n{names}\n{told:?}\n{said:?}", definition.name);
        tree.preamble(key, || {
            let mut system = vec![definition.prompt.trim_end().to_owned()];
            system.extend(tree.setup.spawning.context.iter().cloned());
            system.extend(notes.clone());
            let (model, tools, thinking) = (model.clone(), tools.specs(), Thinking::Default);
            self.ports.model.preamble(&Preamble { model, tools, system, thinking, effort })
        })
    }

    /// An agent as the store has it, without its history.
    pub(crate) async fn row(&self, agent: AgentId) -> Result<Option<Session>, StoreError> {
        let filter = AgentFilter { id: Some(agent), ..AgentFilter::default() };
        Ok(self.ports.store.agents(filter, 1).await?.pop())
    }

    /// The agent of a realm that is registered under a name.
    pub(crate) async fn named(&self, realm: RealmId, name: &Name) -> Result<Option<Session>, StoreError> {
        let (realm, name) = (Some(realm), Some(name.clone()));
        let filter = AgentFilter { realm, name, ..AgentFilter::default() };
        Ok(self.ports.store.agents(filter, 1).await?.pop())
    }

    /// The session that an agent belongs to, if that lives here.
    pub(super) async fn tree_of(&self, session: &Session) -> Result<Option<Arc<Tree>>, StoreError> {
        let mut origin = session.origin.clone();
        while let Some(from) = origin {
            if let Some(above) = self.resident(from.parent) {
                return Ok(Some(Arc::clone(&above.tree)));
            }
            origin = self.row(from.parent).await?.and_then(|parent| parent.origin);
        }
        Ok(None)
    }
}

/// The types that an agent at this depth may start.
pub(super) fn startable_at(depth: u32, setup: &Setup) -> Option<Vec<Arc<Definition>>> {
    (depth < setup.spawning.depth).then(|| startable(setup))
}
