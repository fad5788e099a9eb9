//! The governor: one for all calls of a process. It lets requests pass in turn, account by account,
//! so that none is sent beside what the provider allows.

mod bucket;
mod buckets;
mod limits;
mod queue;
mod stop;
mod throttle;
