//! The Skill tool: loads the instructions of a skill, or runs it in a sub-agent.

use std::sync::Arc;

use posse_protocol::{RawJson, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::agent::lifecycle::Delegation;
use crate::agent::skill::{Gate, SHELL, Unready, find, instructions, prepare};
use crate::definition::skill::Skill;
use crate::definition::skill::body::MOST_COMMANDS;
use crate::definition::skill::followable;
use crate::definition::spawning::Background;
use crate::definition::tool_name::{AGENT, SKILL};
use crate::live::setup::loadable;
use crate::prompt;
use crate::session::skill::delegate;
use crate::toolset::Caller;
use posse_port::BoxFuture;
use posse_port::tool::{
    Intent, Subject, Tool, ToolContext, ToolError, ToolOutput, Toolbox, Workspace,
};

/// Input of Skill.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SkillInput {
    /// The skill's name.
    skill: String,
    /// Its arguments, if it takes any: words as after a command.
    args: Option<String>,
}

/// Loads skills.
pub(crate) struct SkillTool {
    caller: Caller,
    /// Runs the commands in instructions; none if the agent has no shell.
    shell: Option<Arc<dyn Tool>>,
    /// True if the agent may start others.
    starts: bool,
    /// Description as the model was first told. What can be loaded may change later.
    spec: ToolSpec,
}

impl SkillTool {
    /// Returns the tool for an agent with these other tools.
    pub(crate) fn new(caller: Caller, skills: &[Arc<Skill>], tools: &Toolbox) -> Self {
        let schema = posse_port::tool::schema::<SkillInput>();
        let listing = prompt::skill::listing(&followable(skills, tools));
        let listing = if listing.is_empty() {
            " none yet"
        } else {
            listing.as_str()
        };
        let description = format!(
            "Loads a skill: the user's instructions for a kind of work, from a file. Load it once \
             before you do such work; then follow it. The user calls one as /name. Skills:{listing}"
        );
        let input_schema = RawJson::from(schema.as_value());
        let (shell, starts) = (tools.get(SHELL), tools.get(AGENT).is_some());
        Self {
            caller,
            shell,
            starts,
            spec: ToolSpec {
                name: SKILL.to_owned(),
                description,
                input_schema,
            },
        }
    }

    /// Returns the skills that can be loaded now.
    fn skills(&self) -> Vec<Arc<Skill>> {
        let here = self.caller.factory.registry.live_agent(self.caller.agent);
        here.map(|here| loadable(&here.session.setup))
            .unwrap_or_default()
    }

    /// Returns true if a skill runs in the background.
    fn in_background(&self, skill: &Skill) -> bool {
        let here = self.caller.factory.registry.live_agent(self.caller.agent);
        let possible =
            here.is_some_and(|here| here.session.setup.spawning.background != Background::Off);
        possible && skill.fork.as_ref().is_some_and(|fork| fork.background)
    }
}

impl Tool for SkillTool {
    fn name(&self) -> &str {
        SKILL
    }

    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn intent(&self, input: &RawJson, _: &Workspace) -> Result<Intent, ToolError> {
        let input = read(input)?;
        let skill = find(&self.skills(), &input.skill)
            .map_err(|error| ToolError::Tell(error.to_string()))?;
        if skill.fork.is_some() && !self.starts {
            let why = format!(
                "{} runs in a separate agent, and you cannot start agents",
                skill.name
            );
            return Err(ToolError::Tell(why));
        }
        Ok(Intent {
            // The skill itself changes nothing: its commands, and what its instructions lead to,
            // are judged when they are done.
            read_only: true,
            beside_others: !skill.body.has_commands(),
            title: format!(
                "/{} {}",
                skill.name,
                input.args.as_deref().unwrap_or_default()
            )
            .trim_end()
            .to_owned(),
            waits: skill.fork.is_some() && !self.in_background(&skill),
            subject: Subject::Follows {
                skill: skill.name.clone(),
            },
        })
    }

    fn run(
        &self,
        input: RawJson,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (caller, shell, skills) = (self.caller.clone(), self.shell.clone(), self.skills());
        Box::pin(async move { run(caller, shell, &skills, read(&input)?, context).await })
    }

    fn abandon(&self, marker: String) -> BoxFuture<'static, ()> {
        let shell = self.shell.clone();
        Box::pin(async move {
            // How many commands had been started is not known after a crash, so all markers are
            // tried.
            for number in 0..MOST_COMMANDS {
                if let Some(shell) = &shell {
                    shell.abandon(format!("{marker}.{number}")).await;
                }
            }
        })
    }
}

fn read(input: &RawJson) -> Result<SkillInput, ToolError> {
    posse_port::tool::read(SKILL, input)
}

/// Prepares the skill, and returns its instructions or the answer of its sub-agent.
async fn run(
    caller: Caller,
    shell: Option<Arc<dyn Tool>>,
    skills: &[Arc<Skill>],
    input: SkillInput,
    context: ToolContext,
) -> Result<ToolOutput, ToolError> {
    let skill = find(skills, &input.skill).map_err(|error| ToolError::Tell(error.to_string()))?;
    let (key, call, cancel) = (context.key, context.call.clone(), context.cancel.clone());
    let gate = Gate {
        registry: Arc::clone(&caller.factory.registry),
        agent: caller.agent,
        shell,
        context,
    };
    let prepared = prepare(&gate, skill, input.args.as_deref().unwrap_or_default()).await;
    let ready = prepared.map_err(|unready| match unready {
        Unready::Failed(why) => ToolError::Tell(why),
        Unready::Stopped(why) => ToolError::Stop(why),
    })?;
    if let Some(fork) = ready.skill.fork.clone() {
        let delegation = Delegation {
            key,
            call,
            ready,
            fork,
        };
        return delegate(
            &caller.factory,
            (caller.agent, caller.reader),
            delegation,
            &cancel,
        )
        .await
        .map_err(|error| ToolError::Tell(error.to_string()))?
        .told;
    }
    if let (Some(rules), Some(who)) = (
        &ready.rules,
        caller.factory.registry.live_agent(caller.agent),
    ) {
        // Until the end of the run, which withdraws what skills have granted.
        who.rights.grant(Arc::clone(rules));
    }
    if let Some(who) = caller.factory.registry.live_agent(caller.agent) {
        who.skill_hooks.load(&ready.skill.hooks);
    }
    Ok(ToolOutput::text(instructions(&ready)))
}
