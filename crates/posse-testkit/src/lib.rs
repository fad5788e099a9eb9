//! What tests share: a clock that obeys, and a scripted model in the same process.

pub mod clock;
pub mod scripted;

pub use clock::TestClock;
