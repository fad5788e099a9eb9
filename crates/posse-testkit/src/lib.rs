//! What tests share: a clock that obeys, a scripted model in the same process, a whole runtime on a
//! real store with real tools, and the contract of every store.

pub mod bare;
pub mod clock;
pub mod deed;
pub mod faulty;
pub mod rig;
pub mod scripted;
pub mod store_contract;

pub use clock::TestClock;
pub use faulty::Faulty;
pub use rig::Rig;
