//! The tools that a server offers, and what calls of them ask for.

use posse_protocol::{Name, TaskId, TaskStatus};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What a call asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ToolRequest {
    Run(RunRequest),
    Sessions(SessionsRequest),
    Session(SessionRequest),
    Tasks(TasksRequest),
    AddTask(AddTaskRequest),
    UpdateTask(UpdateTaskRequest),
    Mail(MailRequest),
    SendMail(SendMailRequest),
}

/// Runs an agent.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct RunRequest {
    pub(super) prompt: String,
    pub(super) session: Option<String>,
    pub(super) budget_usd: Option<f64>,
    pub(super) max_turns: Option<u32>,
    #[serde(default)]
    pub(super) plan: bool,
}

/// Lists the sessions of the directory.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsRequest {
    pub(super) limit: Option<usize>,
}

/// Looks at a session.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionRequest {
    pub(super) session: Option<String>,
}

/// A session's own things, or those of a team.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub(super) struct PlaceRequest {
    pub(super) session: Option<String>,
    pub(super) team: Option<Name>,
}

/// Lists tasks.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(super) struct TasksRequest {
    #[serde(flatten)]
    pub(super) place: PlaceRequest,
    pub(super) status: Option<TaskStatus>,
}

/// Adds a task.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(super) struct AddTaskRequest {
    #[serde(flatten)]
    pub(super) place: PlaceRequest,
    pub(super) subject: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) blocked_by: Vec<TaskId>,
}

/// Changes a task.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(super) struct UpdateTaskRequest {
    #[serde(flatten)]
    pub(super) place: PlaceRequest,
    pub(super) id: TaskId,
    pub(super) status: Option<TaskStatus>,
    pub(super) owner: Option<String>,
}

/// Lists mail.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(super) struct MailRequest {
    #[serde(flatten)]
    pub(super) place: PlaceRequest,
    pub(super) to: Option<String>,
    #[serde(default)]
    pub(super) waiting: bool,
    pub(super) limit: Option<usize>,
}

/// Sends mail.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(super) struct SendMailRequest {
    #[serde(flatten)]
    pub(super) place: PlaceRequest,
    pub(super) to: String,
    pub(super) text: String,
    pub(super) summary: Option<String>,
}

/// Why a call cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ToolRequestError {
    #[error("there is no tool {0}")]
    Unknown(String),
    #[error("{0}")]
    Arguments(String),
}

/// Reads a call. What changes something is only known to a server that a person has started.
pub(super) fn read(
    name: &str,
    arguments: &Value,
    is_person: bool,
) -> Result<ToolRequest, ToolRequestError> {
    let tool = TOOLS.iter().find(|tool| tool.name == name);
    let Some(tool) = tool.filter(|tool| is_person || tool.only_reads) else {
        return Err(ToolRequestError::Unknown(name.to_owned()));
    };
    let empty = Value::Object(Map::new());
    let arguments = match arguments {
        Value::Null => &empty,
        given => given,
    };
    let schema = (tool.schema)();
    let unknown = arguments.as_object().into_iter().flatten();
    let unknown = unknown
        .map(|(name, _)| name)
        .find(|name| schema.get(name.as_str()).is_none());
    if let Some(unknown) = unknown {
        return Err(ToolRequestError::Arguments(format!(
            "{name} has no `{unknown}`"
        )));
    }
    (tool.read)(arguments).map_err(|error| ToolRequestError::Arguments(error.to_string()))
}

/// Returns the tools, as a client is told of them.
pub(super) fn list(is_person: bool) -> Vec<Value> {
    let offered = TOOLS.iter().filter(|tool| is_person || tool.only_reads);
    offered.map(Tool::told).collect()
}

struct Tool {
    name: &'static str,
    description: &'static str,
    only_reads: bool,
    /// Arguments that have to be given.
    required: &'static [&'static str],
    /// Its arguments.
    schema: fn() -> Value,
    read: fn(&Value) -> serde_json::Result<ToolRequest>,
}

impl Tool {
    fn told(&self) -> Value {
        json!({
            "name": self.name, "description": self.description,
            "inputSchema": {
                "type": "object", "properties": (self.schema)(), "required": self.required,
                "additionalProperties": false,
            },
            "annotations": { "readOnlyHint": self.only_reads, "openWorldHint": !self.only_reads },
        })
    }
}

/// Reads the arguments of a tool.
fn of<T: DeserializeOwned>(
    arguments: &Value,
    request: fn(T) -> ToolRequest,
) -> serde_json::Result<ToolRequest> {
    T::deserialize(arguments).map(request)
}

const TOOLS: [Tool; 8] = [
    Tool {
        name: "run",
        description: "Give a coding agent a task in this directory, and wait until it is done. It \
                      reads and changes files and runs commands, as far as the flags and settings \
                      allow that this server was started with; nobody is asked. The answer is its \
                      last message, with the ID of its session, what it cost and which calls were \
                      denied. Cancelling the call stops the agent; what it has done stays.",
        only_reads: false,
        required: &["prompt"],
        schema: || {
            json!({
                "prompt": { "type": "string", "description": "What to do. The agent knows nothing of your conversation" },
                "session": { "type": "string", "description": "Continue this session of the directory, by its ID or a unique prefix" },
                "budget_usd": { "type": "number", "exclusiveMinimum": 0, "description": "Maximum cost in dollars, including sub-agents; at most what the server has left" },
                "max_turns": { "type": "integer", "minimum": 1, "description": "Maximum number of model calls" },
                "plan": { "type": "boolean", "description": "Only read and plan; change nothing" },
            })
        },
        read: |arguments| of(arguments, ToolRequest::Run),
    },
    Tool {
        name: "sessions",
        description: "List the sessions of this directory, the last used first: state, cost and \
                      first words of each.",
        only_reads: true,
        required: &[],
        schema: || json!({ "limit": { "type": "integer", "minimum": 1, "maximum": 200, "description": "Maximum number to list [default: 20]" } }),
        read: |arguments| of(arguments, ToolRequest::Sessions),
    },
    Tool {
        name: "session",
        description: "Look at a session: its state, its last words and whether the agent was done with \
                      them, what it has cost, its teams, and the questions that wait for a person.",
        only_reads: true,
        required: &[],
        schema: || json!({ "session": session() }),
        read: |arguments| of(arguments, ToolRequest::Session),
    },
    Tool {
        name: "tasks",
        description: "List the tasks of a session or of one of its teams.",
        only_reads: true,
        required: &[],
        schema: || json!({ "session": session(), "team": team(), "status": status() }),
        read: |arguments| of(arguments, ToolRequest::Tasks),
    },
    Tool {
        name: "add_task",
        description: "Add a task to the list of a session or of one of its teams. An agent that \
                      works there takes it up; none is started for it.",
        only_reads: false,
        required: &["subject"],
        schema: || {
            json!({
                "session": session(), "team": team(),
                "subject": { "type": "string", "description": "What to do, in one line" },
                "description": { "type": "string", "description": "Full description" },
                "blocked_by": { "type": "array", "items": { "type": "integer", "minimum": 1 }, "description": "Tasks that must be done first" },
            })
        },
        read: |arguments| of(arguments, ToolRequest::AddTask),
    },
    Tool {
        name: "update_task",
        description: "Change the status or the owner of a task.",
        only_reads: false,
        required: &["id"],
        schema: || {
            json!({
                "session": session(), "team": team(),
                "id": { "type": "integer", "minimum": 1, "description": "Its number" },
                "status": status(),
                "owner": { "type": "string", "description": "Its owner; in a team one of its members" },
            })
        },
        read: |arguments| of(arguments, ToolRequest::UpdateTask),
    },
    Tool {
        name: "mail",
        description: "List mail of the agents of a session or of the members of a team, the newest \
                      last. Nobody's mail counts as read by that.",
        only_reads: true,
        required: &[],
        schema: || {
            json!({
                "session": session(), "team": team(),
                "to": { "type": "string", "description": "Only mail to this agent: a name, or a path like /main" },
                "waiting": { "type": "boolean", "description": "Only what was not read yet" },
                "limit": { "type": "integer", "minimum": 1, "maximum": 200, "description": "Maximum number to list [default: 20]" },
            })
        },
        read: |arguments| of(arguments, ToolRequest::Mail),
    },
    Tool {
        name: "send_mail",
        description: "Send mail to an agent, or to a whole team with `*`. It is read as the person's. \
                      A working agent reads it between two tool calls; for others it waits until their \
                      session continues.",
        only_reads: false,
        required: &["to", "text"],
        schema: || {
            json!({
                "session": session(), "team": team(),
                "to": { "type": "string", "description": "A member's name, a path like /main, or `*` for a whole team" },
                "text": { "type": "string" },
                "summary": { "type": "string", "description": "A few words for lists [default: the first line]" },
            })
        },
        read: |arguments| of(arguments, ToolRequest::SendMail),
    },
];

fn session() -> Value {
    json!({ "type": "string", "description": "A session of this directory, by its ID or a unique prefix [default: the last one used]" })
}

fn team() -> Value {
    json!({ "type": "string", "description": "One of its teams" })
}

fn status() -> Value {
    let words = TaskStatus::ALL.map(TaskStatus::as_str);
    json!({ "type": "string", "enum": words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_reads_what_its_schema_says() {
        let given = json!({
            "prompt": "p", "session": "s", "budget_usd": 0.5, "max_turns": 3, "plan": true, "limit": 3,
            "team": "t", "status": "pending", "subject": "s", "description": "d", "blocked_by": [1],
            "id": 1, "owner": "o", "to": "x", "waiting": true, "text": "t", "summary": "s",
        });
        for tool in &TOOLS {
            let schema = (tool.schema)();
            let all = schema.as_object().unwrap();
            let arguments: Map<_, _> = all
                .keys()
                .map(|name| (name.clone(), given[name].clone()))
                .collect();
            let read = read(tool.name, &arguments.into(), true);
            assert!(read.is_ok(), "{}: {read:?}", tool.name);
            let least: Map<_, _> = tool
                .required
                .iter()
                .map(|name| ((*name).to_owned(), given[*name].clone()))
                .collect();
            assert!((tool.read)(&least.into()).is_ok(), "{}", tool.name);
        }
    }

    // proves MC-13 (part: rights)
    #[test]
    fn a_session_of_posse_can_only_look() {
        let names: Vec<Value> = list(false)
            .iter()
            .map(|tool| tool["name"].clone())
            .collect();
        assert_eq!(names, ["sessions", "session", "tasks", "mail"]);
        let refused = read("run", &json!({"prompt": "x"}), false);
        assert_eq!(refused, Err(ToolRequestError::Unknown("run".into())));
    }

    #[test]
    fn wrong_arguments_are_named() {
        let error = |arguments| read("run", &arguments, true).unwrap_err().to_string();
        assert_eq!(
            error(json!({"prompt": "x", "mode": "y"})),
            "run has no `mode`"
        );
        assert!(error(json!({})).contains("prompt"));
        assert!(error(json!({"prompt": 7})).contains("string"));
        assert!(!error(json!([])).is_empty());
    }
}
