//! Errors in a call of the Agent tool. Each message is shown to the model.

use posse_protocol::Name;

use crate::definition::output_schema::SchemaError;

/// Why a call of the Agent tool is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RouteError {
    #[error("description is empty: say in three to five words what the agent should do")]
    NoDescription,
    #[error("prompt is empty: it is all the agent is told")]
    NoPrompt,
    #[error("name: {0} is reserved; choose another name")]
    ReservedName(Name),
    #[error("run_in_background: background work is switched off; omit it, and the call waits")]
    NoBackground,
    #[error("cwd and isolation cannot be combined: an isolated agent has a directory of its own")]
    CwdAndIsolation,
    #[error(
        "cwd: {0} works in a checkout of its own, so the call cannot name a directory; omit cwd"
    )]
    CwdOfIsolated(String),
    #[error("isolation: remote agents are not supported yet; use worktree")]
    RemoteIsolation,
    #[error("isolation: {0} does not exist; use worktree")]
    UnknownIsolation(String),
    #[error("effort: there is no {word}; there are {known}")]
    UnknownEffort { word: String, known: String },
    #[error("output_schema: {0}")]
    Schema(#[from] SchemaError),
    #[error("subagent_type: there is no {0}, and no other type you may start")]
    NoTypes(String),
    #[error("subagent_type: there is no {wanted}; there are {known}")]
    UnknownType { wanted: String, known: String },
    #[error("subagent_type: forks are denied by a permission rule")]
    ForksDenied,
    #[error(
        "{0}: a fork has yours, because it continues from where you are; omit it, or start another type"
    )]
    ChosenForFork(&'static str),
    #[error("team_name, mode: a fork is not a teammate; omit them, or start another type")]
    ForkAsTeammate,
    #[error(
        "team_name: a teammate cannot start teammates; omit it to start a plain sub-agent, which may have a name"
    )]
    TeammateOfTeammate,
    #[error("name: a teammate needs one")]
    NamelessTeammate,
    #[error("team_name: you are not in a team {wanted}; {known}")]
    OtherTeam { wanted: String, known: String },
    #[error("team_name: say which team it joins; {0}")]
    SeveralTeams(String),
    #[error("mode is for teammates only; a sub-agent's type sets its mode")]
    ModeOfSubAgent,
    #[error("mode: {0} is not available for teammates; use plan")]
    UnknownMode(String),
    #[error("output_schema: a teammate answers by mail; omit it")]
    SchemaOfTeammate,
    #[error("run_in_background: a teammate always runs in the background; omit it")]
    BackgroundOfTeammate,
}
