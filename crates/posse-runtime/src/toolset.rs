//! The tools by which agents start, watch, stop and write to each other, and ask people.

mod agent;
mod ask_user_question;
mod enter_plan_mode;
mod resources;
mod send_message;
mod served;
mod server_asker;
pub(crate) mod skill;
mod task_output;
mod task_stop;
pub(crate) mod team;
mod tool_search;
mod wait;
mod watch;

use std::sync::Arc;

use crate::session::factory::Factory;
use posse_protocol::AgentId;

use crate::definition::agent_type::Definition;
use crate::definition::spawning::Background;
use crate::definition::terms::{ForkOf, Terms};
use crate::definition::tool_name::SKILL;
pub(crate) use crate::live::setup::{Setup, forking, loadable, reader};
use crate::prompt::Reader;
use crate::session::factory::{AgentTools, ToolsOf};
use crate::toolset::agent::AgentTool;
use crate::toolset::ask_user_question::AskUserQuestion;
use crate::toolset::enter_plan_mode::EnterPlanMode;
use crate::toolset::resources::{ListResources, ReadResource};
use crate::toolset::send_message::SendMessage;
use crate::toolset::served::{CallTool, ServedTools};
use crate::toolset::skill::SkillTool;
use crate::toolset::task_output::TaskOutput;
use crate::toolset::task_stop::TaskStop;
use crate::toolset::team::{ExitPlanMode, Holder, PlanApprover, tools as team_tools};
use crate::toolset::tool_search::ToolSearch;
use crate::toolset::wait::Wait;
pub(crate) use crate::toolset::watch::tell;
use posse_port::tool::{Tool, Toolbox, typed};

/// Tools that no sub-agent has: they are for the agent that talks to the person. A teammate in plan
/// mode has ExitPlanMode, to submit its plan, and so has a type in plan mode that names it.
const WITHHELD: [&str; 4] = ["TeamCreate", "TeamDelete", "EnterPlanMode", "ExitPlanMode"];

/// The agent that calls a tool.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Creates and finds agents.
    pub(crate) factory: Arc<Factory>,
    /// Its ID.
    pub(crate) agent: AgentId,
    /// What texts for it may tell it to do.
    pub(crate) reader: Reader,
}

/// Makes the toolboxes of agents.
pub(crate) struct Toolset;

impl AgentTools for Toolset {
    fn for_agent(
        &self,
        factory: &Arc<Factory>,
        agent: AgentId,
        setup: &Setup,
        of: ToolsOf<'_>,
    ) -> Toolbox {
        match of.terms {
            // The descriptions of tools are part of the preamble, which a fork sends unchanged.
            Some(terms) if terms.fork != Some(ForkOf::Main) => {
                tools_of_sub(factory, agent, setup, terms, of)
            }
            _ => tools_of_main(factory, agent, setup, of),
        }
    }
}

/// Returns the tools of a main agent: those of its setup, and those that reach other agents.
fn tools_of_main(
    factory: &Arc<Factory>,
    agent: AgentId,
    setup: &Setup,
    of: ToolsOf<'_>,
) -> Toolbox {
    let types = of.types.unwrap_or_default();
    let mut tools = setup.tools.clone();
    let may_start = setup.spawning.depth > 0;
    tools.extend(ways(
        factory,
        agent,
        setup,
        may_start.then_some(types),
        &tools,
    ));
    let holder = Holder::Main {
        teams: may_start && !types.is_empty(),
    };
    tools.extend(team_tools(&caller(factory, agent, &tools), holder, &tools));
    let planning = caller(factory, agent, &tools);
    tools.extend([
        typed(EnterPlanMode(planning.clone())),
        exit_plan_mode(planning),
    ]);
    add_servers(factory, agent, of, &mut tools);
    tools.retain(|name| setup.tools.get(name).is_some() || !setup.policy.forbids_tool(name));
    tools.extend(skill_tool(factory, agent, setup, &tools));
    tools
}

/// Returns the tools of a sub-agent: those of the main agent that its terms allow. A fork has all
/// that its parent has.
fn tools_of_sub(
    factory: &Arc<Factory>,
    agent: AgentId,
    setup: &Setup,
    terms: &Terms,
    of: ToolsOf<'_>,
) -> Toolbox {
    let types = of.types;
    let mut tools = setup.tools.clone();
    let holder = terms
        .teammate
        .as_ref()
        .map_or(Holder::Sub, |teammate| Holder::Teammate {
            plan: teammate.plan,
        });
    let plans = holder == Holder::Sub && terms.hands_in_plans();
    let withheld = |name: &str| {
        let submits = plans || holder == Holder::Teammate { plan: true };
        WITHHELD.contains(&name) && !(name == "ExitPlanMode" && submits)
    };
    let kept = |name: &str| !withheld(name) && terms.has(name);
    // Filtered before and after: the tools added below depend on those that are left.
    tools.retain(kept);
    tools.extend(ways(factory, agent, setup, types, &tools));
    tools.extend(team_tools(&caller(factory, agent, &tools), holder, &tools));
    if plans {
        let planning = caller(factory, agent, &tools);
        tools.extend([exit_plan_mode(planning)]);
    }
    add_servers(factory, agent, of, &mut tools);
    tools.retain(|name| kept(name) && !setup.policy.forbids_tool(name));
    tools.extend(skill_tool(factory, agent, setup, &tools).filter(|_| kept(SKILL)));
    tools
}

/// Returns the tools that reach other agents and people. `types` are those that it may start; none if it is
/// too deep.
fn ways(
    factory: &Arc<Factory>,
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
        factory: Arc::clone(factory),
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
    tools.push(typed(AskUserQuestion));
    tools
}

/// Adds the tools of servers, and those by which models reach them.
fn add_servers(factory: &Arc<Factory>, agent: AgentId, of: ToolsOf<'_>, tools: &mut Toolbox) {
    if !of.has_servers {
        return;
    }
    let caller = caller(factory, agent, tools);
    tools.extend([
        typed(ToolSearch(caller.clone())),
        typed(ListResources(caller.clone())),
        typed(ReadResource(caller.clone())),
    ]);
    if !factory.ports.model.loads_tools(of.model) {
        tools.extend([typed(CallTool)]);
    }
    tools.set_more(Arc::new(ServedTools(caller)));
}

/// Returns the tool that loads skills, for an agent with these other tools.
fn skill_tool(
    factory: &Arc<Factory>,
    agent: AgentId,
    setup: &Setup,
    tools: &Toolbox,
) -> Option<Arc<dyn Tool>> {
    if setup.spawning.skills.is_none() || setup.policy.forbids_tool(SKILL) {
        return None;
    }
    Some(Arc::new(SkillTool::new(
        caller(factory, agent, tools),
        &loadable(setup),
        tools,
    )))
}

/// Returns the tool by which an agent hands in a plan to a person.
fn exit_plan_mode(caller: Caller) -> Arc<dyn Tool> {
    typed(ExitPlanMode {
        caller,
        approver: PlanApprover::Person,
    })
}

/// Returns an agent with these tools as a caller.
fn caller(factory: &Arc<Factory>, agent: AgentId, tools: &Toolbox) -> Caller {
    Caller {
        factory: Arc::clone(factory),
        agent,
        reader: reader(tools),
    }
}
