//! The Agent tool: starts another agent, and waits for it unless it runs in the background.

use std::sync::Arc;

use crate::session::spawn;
use posse_protocol::{AgentId, Notification, RawJson, RunFacts, ToolSpec};
use serde_json::{Value, json};

use crate::definition::agent_type::Definition;
use crate::definition::spawning::Background;
use crate::definition::teammate::TeamIdentity;
use crate::definition::terms::Granted;
use crate::definition::tool_name::AGENT;
use crate::live::setup::startable;
use crate::prompt;
use crate::prompt::Returned;
use crate::prompt::agent_tool::{AgentInput, Forking, spec};
use crate::prompt::team::Spawned;
use crate::session::route::{named, wanted};
use crate::session::spawn::SpawnRequest;
use crate::toolset::Caller;
use posse_port::BoxFuture;
use posse_port::text;
use posse_port::tool::{Intent, Subject, Tool, ToolContext, ToolError, ToolOutput, Workspace};

/// Starts agents.
pub(super) struct AgentTool {
    caller: Caller,
    /// Types in the tool's description. What can be started may change later.
    types: Vec<Arc<Definition>>,
    background: Background,
    forking: Forking,
}

impl AgentTool {
    pub(super) fn new(
        caller: Caller,
        types: &[Arc<Definition>],
        background: Background,
        forking: Forking,
    ) -> Self {
        Self {
            caller,
            types: types.to_vec(),
            background,
            forking,
        }
    }

    /// Returns the real name of a type, whatever its case in the call.
    fn name_of(&self, wanted: &str) -> String {
        let here = self.caller.factory.registry.live_agent(self.caller.agent);
        let types = here
            .map(|here| startable(&here.session.setup))
            .unwrap_or_default();
        named(&types, wanted).map_or_else(|| wanted.to_owned(), |kind| kind.name.clone())
    }
}

impl Tool for AgentTool {
    fn name(&self) -> &str {
        AGENT
    }

    fn spec(&self) -> ToolSpec {
        spec(self.background, self.forking, &self.types)
    }

    fn intent(&self, input: &RawJson, _: &Workspace) -> Result<Intent, ToolError> {
        let input = read(input)?;
        let wanted = wanted(&input, self.forking);
        // Rules name the type as it is defined, so they are asked about that name.
        let agent = self.name_of(wanted);
        let in_background =
            self.background == Background::Always || input.run_in_background == Some(true);
        Ok(Intent {
            read_only: true,
            beside_others: true,
            title: format!("{agent}: {}", text::summary(&input.description)),
            subject: Subject::Starts { agent },
            waits: !in_background,
        })
    }

    fn run(
        &self,
        input: RawJson,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let caller = self.caller.clone();
        Box::pin(async move { run(caller, read(&input)?, context).await })
    }
}

fn read(input: &RawJson) -> Result<AgentInput, ToolError> {
    posse_port::tool::read(AGENT, input)
}

/// Spawns the agent and returns its answer, or that it works in the background.
async fn run(
    caller: Caller,
    input: AgentInput,
    context: ToolContext,
) -> Result<ToolOutput, ToolError> {
    let prompt = input.prompt.clone();
    let wants_answer = context.wants_answer;
    let granted = Granted::default();
    let wished = input.name.clone();
    let request = SpawnRequest {
        by: caller.agent,
        key: context.key,
        call: context.call,
        input,
        granted,
        role: None,
    };
    let guard = spawn::spawn(&caller.factory, request)
        .await
        .map_err(|error| ToolError::Tell(error.to_string()))?;
    if let Some(team_identity) = guard.teammate.clone() {
        let (run, plan) = (Arc::clone(&guard.run), guard.plan);
        guard.off();
        let (agent, agent_type) = (AgentId::from(run.facts.task), run.facts.agent_type.as_str());
        let TeamIdentity {
            name, team, color, ..
        } = &*team_identity;
        let wished = wished.as_ref().unwrap_or(name);
        let spawned = Spawned {
            agent,
            agent_type,
            wished,
            name,
            team,
            color,
            plan,
        };
        return Ok(ToolOutput::text(prompt::team::spawned(&spawned)));
    }
    let (run, one_shot) = (Arc::clone(&guard.run), guard.one_shot);
    match spawn::follow(&caller.factory, caller.agent, guard, &context.cancel).await {
        Some(end) => {
            let of = Returned {
                agent_type: &run.facts.agent_type,
                one_shot,
                model: &end.model,
            };
            let answer = wants_answer.then(|| ended(&end, &run.facts, &prompt));
            let output = prompt::result(&end, of, caller.reader)?;
            Ok(ToolOutput { answer, ..output })
        }
        None => Ok(ToolOutput {
            answer: wants_answer.then(|| started(&run.facts, &prompt)),
            ..ToolOutput::text(prompt::launched(&run.facts, &prompt, caller.reader))
        }),
    }
}

/// Returns the end of an agent as hooks read it.
fn ended(end: &Notification, run: &RunFacts, prompt: &str) -> Value {
    json!({
        "status": end.status.as_str(),
        "agentId": end.task,
        "agentType": run.agent_type,
        "prompt": prompt,
        "content": [{ "type": "text", "text": end.result }],
        "resolvedModel": end.model,
        "totalDurationMs": end.usage.duration_ms,
        "totalTokens": end.usage.total_tokens,
        "totalToolUseCount": end.usage.tool_uses,
    })
}

/// Returns what hooks read of an agent that works in the background.
fn started(run: &RunFacts, prompt: &str) -> Value {
    json!({
        "status": "async_launched",
        "isAsync": true,
        "agentId": run.task,
        "description": run.description,
        "prompt": prompt,
        "outputFile": run.output_file,
    })
}
