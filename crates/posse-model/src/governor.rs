//! The governor: one for all calls of a process. It lets requests pass in turn, account by account,
//! so that none is sent beside what the provider allows.
//!
//! `throttle` decides, purely; `account` waits. While calls of an account wait for a time, one task
//! keeps their timer.

mod account;
mod bucket;
mod buckets;
mod limits;
mod queue;
mod stop;
mod throttle;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderName, HeaderValue};
use posse_port::clock::Clock;

pub(crate) use self::account::{Account, Permit};
pub use self::limits::AccountLimits;
pub(crate) use self::throttle::Ask;
use crate::retry::RetryPolicy;

/// Lets the calls of a process pass in turn. Cheap to clone; all clones share the accounts.
#[derive(Clone)]
pub struct Governor(Arc<Accounts>);

/// What all clones share.
struct Accounts {
    clock: Arc<dyn Clock>,
    policy: RetryPolicy,
    limits: AccountLimits,
    known: Mutex<HashMap<AccountKey, Arc<Account>>>,
}

/// What has limits of its own: a model of an account.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct AccountKey {
    pub(crate) base_url: Arc<str>,
    pub(crate) auth: (HeaderName, HeaderValue),
    pub(crate) model: String,
}

impl Governor {
    /// Returns a governor that knows no limits yet: nothing waits until a provider tells some.
    pub fn new(clock: Arc<dyn Clock>, policy: RetryPolicy) -> Self {
        Self::with_limits(clock, policy, AccountLimits::default())
    }

    /// Returns a governor that keeps every account to `limits`, whatever its provider tells.
    pub fn with_limits(clock: Arc<dyn Clock>, policy: RetryPolicy, limits: AccountLimits) -> Self {
        Self(Arc::new(Accounts {
            clock,
            policy,
            limits,
            known: Mutex::default(),
        }))
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    pub(crate) fn policy(&self) -> &RetryPolicy {
        &self.0.policy
    }

    /// Returns the account to which calls with this key belong.
    pub(crate) fn account(&self, key: AccountKey) -> Arc<Account> {
        let shared = &*self.0;
        let mut accounts = shared.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Account::new(&shared.clock, shared.policy, &shared.limits);
        Arc::clone(accounts.entry(key).or_insert_with(new))
    }
}
