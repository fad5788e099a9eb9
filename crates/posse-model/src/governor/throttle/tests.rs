//! The throttle on a simulated clock, against a provider that knows nothing of it.

mod provider;
mod rules;
mod simulation;
mod storms;
