//! Shared test support: a controllable clock, a scripted model in the same process, a whole runtime
//! on a real store with real tools, the contract of every store, and a plain model of one.

pub mod bare;
pub mod clock;
pub mod deed;
pub mod faulty;
pub mod fleet;
pub mod model;
pub mod place;
pub mod postgres;
pub mod rig;
pub mod scripted;
pub mod store_contract;
pub mod test_runtime;

pub use clock::TestClock;
pub use faulty::{Faulty, StoreCall};
pub use rig::Rig;
