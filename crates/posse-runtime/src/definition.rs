//! What people declare: agent types, skills, teams, and the terms that follow from them. Pure.

pub mod agent_type;
pub mod catalogue;
mod front;
pub mod instructions;
pub(crate) mod model_choice;
pub mod output_schema;
pub mod server;
pub mod skill;
pub mod spawning;
pub mod team_plan;
pub(crate) mod teammate;
pub(crate) mod terms;
pub(crate) mod tool_name;
