//! The library behind posse: agents, their tools and permissions, and the ports through which they
//! reach models, stores and clocks. Adapters implement the ports; the runtime never names one.
//!
//! Front ends send `Command`s to an [`AgentHandle`] and read `Event`s; there is no other way in or out.

pub mod agent;
mod front;
pub mod govern;
pub mod skill;
pub mod spawn;
mod supervise;
pub mod team;

pub use agent::{Agent, AgentHandle, Asker, Character, Limits, Runtime, Setup, StartError};
pub use govern::{Budget, Budgets};
pub use spawn::{Background, Definition, Spawning};
pub use team::host::{Hosted, Hosting, Members};
