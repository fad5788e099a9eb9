//! The library behind posse: agents, their tools and permissions, and the ports through which they
//! reach models, stores and clocks. Adapters implement the ports; the runtime never names one.
//!
//! Front ends send `Command`s to an [`AgentHandle`] and read `Event`s; there is no other way in or
//! out.

pub mod agent;
pub mod definition;
pub mod govern;
pub(crate) mod history;
pub mod hook;
pub mod live;
pub mod prompt;
pub mod runtime;
pub mod session;
mod supervise;
pub(crate) mod toolset;

pub use crate::definition::agent_type::Definition;
pub use crate::definition::spawning::{Background, Spawning};
pub use crate::session::team::host::{Hosted, Hosting, Members};
pub use govern::{Budget, Budgets};
pub use live::handle::{Agent, AgentHandle};
pub use live::setup::{AgentProfile, Approver, Limits, Setup};
pub use runtime::Runtime;
pub use session::session_hooks::SessionHooks;
pub use session::start_error::StartError;
