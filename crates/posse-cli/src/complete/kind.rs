//! Which values an argument takes that only this machine knows, or that are files.

/// A kind of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Session,
    /// A session, or a named agent of the last one.
    Agent,
    Team,
    DeclaredTeam,
    Member,
    Recipient,
    Task,
    Request,
    AgentType,
    Skill,
    Server,
    Worktree,
    Model,
    Mode,
    HookEvent,
    /// A page or a command.
    Topic,
    /// One of a few words.
    Words(&'static [&'static str]),
    File,
    Directory,
    /// Words of the person's own.
    Free,
}

/// Returns the kind of an argument's values; `None` if nobody has said. A command is named by its
/// words without the program, an argument by its id.
pub(super) fn kind(command: &str, argument: &str) -> Option<ValueKind> {
    let (room, _) = command.split_once(' ').unwrap_or((command, ""));
    Some(match (command, argument) {
        ("sessions show" | "sessions export", "id") | ("attach", "agent") | ("ask", "session") => {
            ValueKind::Agent
        }
        ("sessions tree", "id") | (_, "resume" | "session") => ValueKind::Session,
        ("team run" | "team check", "name") => ValueKind::DeclaredTeam,
        ("team show" | "team delete", "name") | (_, "team") => ValueKind::Team,
        ("team join", "member") => ValueKind::Free,
        ("task update", "owner") | (_, "member") => ValueKind::Member,
        (_, "to") => ValueKind::Recipient,
        ("task show" | "task update", "id") | (_, "blocked_by" | "not_blocked_by") => {
            ValueKind::Task
        }
        ("team approve" | "team reject" | "requests show" | "requests answer", "id") => {
            ValueKind::Request
        }
        ("agents show", "name") => ValueKind::AgentType,
        ("skills show", "name") => ValueKind::Skill,
        ("mcp add" | "mcp add-json", "name") => ValueKind::Free,
        ("mcp call", "server") | (_, "channels") => ValueKind::Server,
        (_, "name") if room == "mcp" => ValueKind::Server,
        ("worktrees clean", "ids") => ValueKind::Worktree,
        (_, "model" | "fallback_model") => ValueKind::Model,
        (_, "permission_mode" | "mode") => ValueKind::Mode,
        ("hooks try", "event") => ValueKind::HookEvent,
        ("help", "words") => ValueKind::Topic,
        (_, "on_question") => ValueKind::Words(&["wait", "wait=10m", "deny"]),
        (_, "setting_sources") => ValueKind::Words(&["user", "project", "local"]),
        (_, "settings" | "mcp_config" | "script" | "edit" | "file" | "output" | "paths") => {
            ValueKind::File
        }
        (_, "dir" | "directory" | "add_dir") => ValueKind::Directory,
        _ if FREE.contains(&argument) => ValueKind::Free,
        _ => return None,
    })
}

/// Arguments whose values nobody can know.
const FREE: &[&str] = &[
    "active_form",
    "agent",
    "agents",
    "allowed_tools",
    "append_system_prompt",
    "at",
    "auto_background",
    "background_wait",
    "base_url",
    "check",
    "choose",
    "conformance",
    "description",
    "disallowed_tools",
    "env",
    "goal",
    "header",
    "if_version",
    "input",
    "json",
    "json_schema",
    "limit",
    "max",
    "max_agents",
    "max_budget_tokens",
    "max_budget_usd",
    "max_depth",
    "max_runs",
    "max_thinking_tokens",
    "max_time",
    "max_tokens",
    "max_turns",
    "message",
    "metadata",
    "name",
    "number",
    "older_than",
    "port",
    "prompt",
    "question",
    "reason",
    "rest",
    "role",
    "rule",
    "session_id",
    "store",
    "subject",
    "summary",
    "system",
    "system_prompt",
    "text",
    "tool",
    "tools",
    "words",
];
