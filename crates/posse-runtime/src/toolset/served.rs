//! Tools that servers have, and the tool by which models call them that cannot load definitions.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use posse_protocol::{AgentId, RawJson, ToolContent, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::definition::tool_name::CALL_TOOL;
use crate::prompt;
use crate::toolset::Caller;
use crate::toolset::server_asker::CallAsker;
use crate::toolset::watch::tell;
use posse_port::BoxFuture;
use posse_port::servers::{Server, ServerAnswer, ServerCall};
use posse_port::tool::{
    FollowUp, Intent, MoreTools, Subject, Tool, ToolContext, ToolError, ToolOutput, TypedTool,
    Workspace,
};

/// The tools of servers that an agent has.
pub(super) struct ServedTools(pub(super) Caller);

impl MoreTools for ServedTools {
    fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let here = self.0.here().ok()?;
        let servers = here.servers.as_ref()?;
        if !servers.may_have(name, &here.rights.policy()) {
            return None;
        }
        let now = servers.set.now();
        let (tool, server) = now.tool(name)?;
        let served = tool.served()?;
        Some(Arc::new(ServedTool {
            spec: tool.spec()?,
            name: served.name.clone(),
            says_read_only: served.says_read_only,
            server: Arc::clone(server),
            session: here.session.root,
            path: here.path.clone(),
            caller: self.0.clone(),
        }))
    }
}

/// A tool of a server.
struct ServedTool {
    /// Its definition for models.
    spec: ToolSpec,
    /// Its name at the server.
    name: String,
    says_read_only: bool,
    server: Arc<dyn Server>,
    /// The main agent of the caller's session.
    session: AgentId,
    /// Who calls.
    path: String,
    caller: Caller,
}

impl Tool for ServedTool {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn intent(&self, input: &RawJson, _: &Workspace) -> Result<Intent, ToolError> {
        let object = serde_json::from_str::<Map<String, Value>>(input.get());
        object.map_err(|_| tell("the input must be an object"))?;
        Ok(Intent {
            // What a server says of its tools is not believed: the call is recorded before it begins.
            read_only: false,
            beside_others: self.says_read_only,
            subject: Subject::Nothing,
            waits: false,
            title: self.spec.name.clone(),
        })
    }

    fn run(
        &self,
        input: RawJson,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let call = self.server.call(ServerCall {
            tool: self.name.clone(),
            input,
            session: self.session,
            path: self.path.clone(),
            asker: Arc::new(CallAsker::new(&self.caller, &self.spec.name, &context)),
            output: context.output.clone(),
            overflow: Some(overflow(&context)),
            cancel: context.cancel.clone(),
        });
        Box::pin(async move {
            let answer = call.await.map_err(|failure| tell(failure.to_string()))?;
            told(answer, &context)
        })
    }
}

/// Returns the file that takes an answer which is too long.
fn overflow(context: &ToolContext) -> PathBuf {
    context
        .workspace
        .spill
        .join(format!("{}.txt", context.marker))
}

/// Returns what the model reads of an answer.
fn told(answer: ServerAnswer, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let ServerAnswer {
        mut content,
        structured,
        is_error,
        restarted,
    } = answer;
    if restarted {
        content.insert(0, ToolContent::text(prompt::served::RESTARTED));
    }
    if is_error {
        let texts = content.iter().filter_map(|part| match part {
            ToolContent::Text { text } => Some(text.as_str()),
            _ => None,
        });
        return Err(tell(texts.collect::<Vec<_>>().join("\n")));
    }
    let output = ToolOutput {
        content,
        answer: None,
        then: FollowUp::Nothing,
    };
    let answer = context
        .wants_answer
        .then(|| structured.unwrap_or_else(|| json!(output.content)));
    Ok(ToolOutput { answer, ..output })
}

/// Calls tools for models that cannot load definitions.
pub(super) struct CallTool;

/// Input of CallTool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallToolInput {
    /// The tool's name, as ToolSearch has told it.
    tool: String,
    /// The tool's input, by its schema.
    #[schemars(with = "Map<String, Value>")]
    input: Value,
}

impl TypedTool for CallTool {
    type Input = CallToolInput;

    const NAME: &'static str = CALL_TOOL;

    fn description(&self) -> Cow<'static, str> {
        "Calls a tool that ToolSearch has brought. Its input must be as the tool's schema says."
            .into()
    }

    fn intent(&self, input: &CallToolInput, _: &Workspace) -> Result<Intent, ToolError> {
        Err(tell(prompt::served::not_served(&input.tool)))
    }

    async fn run(&self, input: CallToolInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        drop(input.input);
        Err(tell(prompt::served::not_served(&input.tool)))
    }
}
