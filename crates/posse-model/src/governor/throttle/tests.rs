//! The throttle on a simulated clock, against a provider that knows nothing of it.

mod rules;
