//! From flags and settings to a runtime with an agent.
//!
//! This is the only room that names adapters: everything else knows ports.

pub(crate) mod agent_args;
mod config_value;
pub(crate) mod directories;
pub(crate) mod facts;
pub(crate) mod file_watch;
pub(crate) mod hook_watch;
pub(crate) mod hooks;
pub(crate) mod images;
pub(crate) mod kept_work;
pub(crate) mod launch;
pub(crate) mod local_model;
pub(crate) mod maintenance;
pub(crate) mod on_question;
pub(crate) mod open;
pub(crate) mod own_worktrees;
pub(crate) mod panes;
pub(crate) mod privacy;
pub(crate) mod profile_args;
pub(crate) mod program_hooks;
pub(crate) mod prompt;
pub(crate) mod provider;
pub(crate) mod repository;
pub(crate) mod reviewed_worktrees;
pub(crate) mod rules;
pub(crate) mod run_config;
pub(crate) mod run_options;
pub(crate) mod sandbox;
pub(crate) mod servers;
pub(crate) mod sign_in;
pub(crate) mod store;
pub(crate) mod stored_names;
pub(crate) mod team_terms;
pub(crate) mod tools;
pub(crate) mod trust_gate;
pub(crate) mod unsupported;
pub(crate) mod waiting_files;
pub(crate) mod worktree_sweep;
