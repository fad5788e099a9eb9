//! The tools by which agents start, watch, stop and write to each other.

mod agent;
mod send_message;
pub(crate) mod skill;
mod task_output;
mod task_stop;
pub(crate) mod team;
mod wait;
mod watch;

use std::sync::Arc;

use posse_protocol::AgentId;

use crate::definition::agent_type::Definition;
use crate::definition::agent_type::FORK;
use crate::definition::spawning::Background;
use crate::definition::terms::{ForkOf, Terms};
use crate::live::registry::House;
use crate::live::setup::Setup;
use crate::prompt::Reader;
use crate::prompt::agent_tool::Forking;
use crate::toolset::agent::AgentTool;
pub(crate) use crate::toolset::agent::follow;
use crate::toolset::send_message::SendMessage;
use crate::toolset::skill::call::loadable;
use crate::toolset::skill::{SKILL, SkillTool};
use crate::toolset::task_output::TaskOutput;
use crate::toolset::task_stop::TaskStop;
use crate::toolset::team::{Holder, tools as team_tools};
use crate::toolset::wait::Wait;
pub(crate) use crate::toolset::watch::tell;
use posse_port::tool::{Tool, Toolbox, typed};

/// The tool that starts agents.
pub(crate) const AGENT: &str = "Agent";

/// Tools that no sub-agent has: they are for whoever speaks with the person. A teammate that works by plan hands
/// that in.
const WITHHELD: [&str; 5] = [
    "TeamCreate",
    "TeamDelete",
    "EnterPlanMode",
    "ExitPlanMode",
    "AskUser",
];

/// Who calls.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) house: Arc<House>,
    pub(crate) agent: AgentId,
    pub(crate) reader: Reader,
}

/// What an agent with these tools can be told to do.
pub(crate) fn reader(tools: &Toolbox) -> Reader {
    Reader {
        reads: tools.get("Read").is_some(),
        sends: tools.get("SendMessage").is_some(),
    }
}

/// The types that may be started: those that no rule denies.
pub(crate) fn startable(setup: &Setup) -> Vec<Arc<Definition>> {
    let allowed = |kind: &&Arc<Definition>| !setup.policy.forbids_agent(&kind.name);
    setup
        .spawning
        .types
        .now()
        .iter()
        .filter(allowed)
        .cloned()
        .collect()
}

/// Whether agents of a session may make forks, and when.
pub(crate) fn forking(setup: &Setup) -> Forking {
    match setup.spawning.implicit_fork {
        _ if setup.policy.forbids_agent(FORK) => Forking::Denied,
        true => Forking::Implicit,
        false => Forking::Asked,
    }
}

impl House {
    /// What a main agent has: what it was given, and the ways to others.
    pub(crate) fn tools_of_root(
        self: &Arc<Self>,
        agent: AgentId,
        setup: &Setup,
        types: &[Arc<Definition>],
    ) -> Toolbox {
        let mut tools = setup.tools.clone();
        let may_start = setup.spawning.depth > 0;
        tools.extend(self.ways(agent, setup, may_start.then_some(types), &tools));
        let holder = Holder::Main {
            teams: may_start && !types.is_empty(),
        };
        tools.extend(team_tools(&self.caller(agent, &tools), holder, &tools));
        tools.retain(|name| setup.tools.get(name).is_some() || !setup.policy.forbids_tool(name));
        tools.extend(self.skill_tool(agent, setup, &tools));
        tools
    }

    /// What a sub-agent has: what its terms say of what the main agent was given. A fork has all that its
    /// parent has.
    pub(crate) fn tools_of_sub(
        self: &Arc<Self>,
        agent: AgentId,
        setup: &Setup,
        terms: &Terms,
        types: Option<&[Arc<Definition>]>,
    ) -> Toolbox {
        if terms.fork == Some(ForkOf::Main) {
            return self.tools_of_root(agent, setup, types.unwrap_or_default());
        }
        let mut tools = setup.tools.clone();
        let holder = terms
            .mate
            .as_ref()
            .map_or(Holder::Sub, |mate| Holder::Mate { plan: mate.plan });
        let withheld = |name: &str| {
            WITHHELD.contains(&name)
                && !(name == "ExitPlanMode" && holder == Holder::Mate { plan: true })
        };
        let kept = |name: &str| !withheld(name) && terms.has(name);
        tools.retain(kept);
        tools.extend(self.ways(agent, setup, types, &tools));
        tools.extend(team_tools(&self.caller(agent, &tools), holder, &tools));
        tools.retain(|name| kept(name) && !setup.policy.forbids_tool(name));
        tools.extend(
            self.skill_tool(agent, setup, &tools)
                .filter(|_| kept(SKILL)),
        );
        tools
    }

    /// The tools of this room. `types` are those that it may start; none if it is too deep for that.
    fn ways(
        self: &Arc<Self>,
        agent: AgentId,
        setup: &Setup,
        types: Option<&[Arc<Definition>]>,
        others: &Toolbox,
    ) -> Vec<Arc<dyn Tool>> {
        let (any, background) = (
            !setup.spawning.types.now().is_empty(),
            setup.spawning.background,
        );
        let reader = Reader {
            reads: reader(others).reads,
            sends: any,
        };
        let caller = Caller {
            house: Arc::clone(self),
            agent,
            reader,
        };
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        if let Some(types) = types.filter(|types| !types.is_empty()) {
            tools.push(Arc::new(AgentTool::new(
                caller.clone(),
                types,
                background,
                forking(setup),
            )));
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

    /// The tool that loads skills, for an agent that has these tools besides.
    fn skill_tool(
        self: &Arc<Self>,
        agent: AgentId,
        setup: &Setup,
        tools: &Toolbox,
    ) -> Option<Arc<dyn Tool>> {
        if setup.spawning.skills.is_none() || setup.policy.forbids_tool(SKILL) {
            return None;
        }
        Some(Arc::new(SkillTool::new(
            self.caller(agent, tools),
            &loadable(setup),
            tools,
        )))
    }

    /// An agent that has these tools, as one who calls them.
    fn caller(self: &Arc<Self>, agent: AgentId, tools: &Toolbox) -> Caller {
        Caller {
            house: Arc::clone(self),
            agent,
            reader: reader(tools),
        }
    }
}
