//! The tools by which agents start, watch, stop and write to each other.

mod agent;
mod send_message;
mod task_output;
mod task_stop;
mod wait;
mod watch;

use std::sync::Arc;

use posse_protocol::AgentId;

use self::agent::AgentTool;
use self::send_message::SendMessage;
use self::task_output::TaskOutput;
use self::task_stop::TaskStop;
use self::wait::Wait;
use super::house::House;
use super::tree::Tree;
use super::words::Reader;
use super::{Background, Definition};
use crate::agent::Setup;
use crate::tool::{Tool, Toolbox, typed};

/// The tool that starts agents.
pub(crate) const AGENT: &str = "Agent";

/// Tools that no sub-agent has: they are for whoever speaks with the person.
const WITHHELD: [&str; 5] = ["TeamCreate", "TeamDelete", "EnterPlanMode", "ExitPlanMode", "AskUser"];

/// Who calls.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) house: Arc<House>,
    pub(crate) agent: AgentId,
    pub(crate) reader: Reader,
}

/// What an agent with these tools can be told to do.
pub(crate) fn reader(tools: &Toolbox) -> Reader {
    Reader { reads: tools.get("Read").is_some(), sends: tools.get("SendMessage").is_some() }
}

/// The types that may be started: those that no rule denies.
pub(crate) fn startable(setup: &Setup) -> Vec<Definition> {
    let allowed = |kind: &&Definition| !setup.policy.forbids_agent(&kind.name);
    setup.spawning.types.now().iter().filter(allowed).cloned().collect()
}

impl House {
    /// What a main agent has: what it was given, and the ways to others.
    pub(crate) fn tools_of_root(self: &Arc<Self>, agent: AgentId, setup: &Setup) -> Toolbox {
        let mut tools = setup.tools.clone();
        let may_start = setup.spawning.depth > 0;
        tools.extend(self.ways(agent, setup, may_start, reader(&tools).reads));
        tools.retain(|name| setup.tools.get(name).is_some() || !setup.policy.forbids_tool(name));
        tools
    }

    /// What a sub-agent has: what its type has of what the main agent was given.
    pub(crate) fn tools_of_sub(
        self: &Arc<Self>,
        agent: AgentId,
        tree: &Tree,
        definition: &Definition,
        depth: u32,
    ) -> Toolbox {
        let setup = &tree.setup;
        let mut tools = setup.tools.clone();
        let may_start = depth < setup.spawning.depth;
        let kept = |name: &str| {
            !WITHHELD.contains(&name)
                && definition.tools.as_ref().is_none_or(|only| only.iter().any(|tool| tool == name))
        };
        tools.retain(kept);
        let reads = reader(&tools).reads;
        tools.extend(self.ways(agent, setup, may_start, reads));
        tools.retain(|name| kept(name) && !setup.policy.forbids_tool(name));
        tools
    }

    /// The tools of this room.
    fn ways(
        self: &Arc<Self>,
        agent: AgentId,
        setup: &Setup,
        may_start: bool,
        reads: bool,
    ) -> Vec<Arc<dyn Tool>> {
        let types = startable(setup);
        let (any, background) = (!setup.spawning.types.now().is_empty(), setup.spawning.background);
        let reader = Reader { reads, sends: any };
        let caller = Caller { house: Arc::clone(self), agent, reader };
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        if may_start && !types.is_empty() {
            tools.push(Arc::new(AgentTool::new(caller.clone(), types, background)));
        }
        if any {
            tools.push(typed(SendMessage(caller.clone())));
        }
        if background != Background::Off {
            tools.push(typed(TaskOutput(caller.clone())));
            tools.push(typed(TaskStop(caller.clone())));
            tools.push(typed(Wait(caller)));
        }
        tools
    }
}
