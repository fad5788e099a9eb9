//! Budget for one model call: reserved before it, again before each retry, settled afterwards.

use std::time::Duration;

use posse_protocol::{Missed, Purpose, Usage};
use tokio_util::sync::CancellationToken;

use crate::govern::{Account, Ask, Exceeded, Reservation};
use posse_port::Ports;
use posse_port::model::{Attribution, Failure, Reply, Ttl};
use posse_port::price::Prices;
use posse_port::store::Charge;

/// Lowest useful cap on a reply, in tokens.
const LEAST_OUTPUT: u32 = 1024;

/// A call of `model` before it is made.
#[derive(Clone, Copy)]
pub(crate) struct NextCall<'a> {
    pub(crate) model: &'a str,
    /// Maximum number of input tokens.
    pub(crate) input: u64,
    pub(crate) ttl: Ttl,
    /// Requested cap on the output.
    pub(crate) max_tokens: u32,
}

impl NextCall<'_> {
    /// Returns its worst usage: writing to the cache costs more than any other kind of input.
    fn worst(&self, input: u64, output: u32) -> Usage {
        let (cache_write_5m, cache_write_1h) = if self.ttl == Ttl::OneHour {
            (0, input)
        } else {
            (input, 0)
        };
        Usage {
            cache_write_5m,
            cache_write_1h,
            output: output.into(),
            ..Usage::default()
        }
    }

    /// Asks an account with the worst case.
    fn ask<T>(&self, ports: &Ports, account: impl FnOnce(&Ask<'_>, Duration) -> T) -> T {
        let price = |input, output| ports.prices.cost(self.model, &self.worst(input, output));
        let ask = Ask {
            input: self.input,
            output: self.max_tokens,
            least: LEAST_OUTPUT.min(self.max_tokens),
            price: &price,
        };
        account(&ask, ports.clock.now())
    }

    /// Reserves the worst case.
    pub(crate) fn reserve(
        &self,
        ports: &Ports,
        account: &Account,
    ) -> Result<Reservation, Exceeded> {
        self.ask(ports, |ask, now| account.reserve(ask, now))
    }

    /// Returns the worst case as a charge, and the cap on the output that it allows for; `None` if
    /// a budget does not allow the call. Reserves nothing.
    pub(crate) fn worst_case(&self, ports: &Ports, account: &Account) -> Option<(Charge, u32)> {
        let output = match self.ask(ports, |ask, now| account.affords(ask, now)) {
            Ok(output) => output,
            // It is made as soon as other calls are settled.
            Err(exceeded) if exceeded.may_pass() => self.max_tokens,
            Err(_) => return None,
        };
        let usage = self.worst(self.input, output);
        let charge = Charge {
            model: self.model.to_owned(),
            usage,
            cost: ports.prices.cost(self.model, &usage),
            purpose: Purpose::InFlight,
            missed: 0,
        };
        Some((charge, output))
    }
}

/// Returns the charges of a call, including failed attempts.
pub(crate) fn charges(
    prices: &dyn Prices,
    asked: &str,
    purpose: Purpose,
    result: &Result<Reply, Failure>,
) -> Vec<Charge> {
    let (model, spent): (&str, Vec<Usage>) = match result {
        Ok(reply) => {
            let model = if reply.model.is_empty() {
                asked
            } else {
                &reply.model
            };
            (
                model,
                reply.wasted.iter().copied().chain([reply.usage]).collect(),
            )
        }
        Err(failure) => (asked, failure.spent.clone()),
    };
    let charge = |usage: Usage| Charge {
        model: model.to_owned(),
        usage,
        // A gateway may use a model name of its own, which has no price here.
        cost: prices
            .cost(model, &usage)
            .or_else(|| prices.cost(asked, &usage)),
        purpose,
        missed: 0,
    };
    spent.into_iter().map(charge).collect()
}

/// Reservation of a call in progress.
pub(crate) struct CallReservation {
    reservation: Reservation,
    /// True if another attempt could not be paid for.
    broke: bool,
    cancel: CancellationToken,
}

impl CallReservation {
    /// `cancel` ends the call if another attempt cannot be paid for.
    pub(crate) fn new(reservation: Reservation, cancel: CancellationToken) -> Self {
        Self {
            reservation,
            broke: false,
            cancel,
        }
    }

    /// Reserves another attempt after one failed: both may have to be paid for. Cancels the call if
    /// the budget has no room.
    pub(crate) fn retried(&mut self) {
        if !self.reservation.again() {
            self.broke = true;
            self.cancel.cancel();
        }
    }

    /// Returns the cap on the output that is paid for.
    pub(crate) fn output(&self) -> u32 {
        self.reservation.output
    }

    /// Returns why the call was ended, if another attempt could not be paid for.
    pub(crate) fn broke(&self) -> Option<String> {
        self.broke
            .then(|| "the attempt failed, and the budget does not allow another".to_owned())
    }

    /// Notes what the call missed in the cache: booked with the call, and stored with the charge of
    /// its reply.
    pub(crate) fn miss(&mut self, who: &Attribution, missed: &Missed, charges: &mut [Charge]) {
        charges
            .iter_mut()
            .next_back()
            .into_iter()
            .for_each(|charge| charge.missed = missed.tokens);
        if let Ok(agent) = who.agent.parse() {
            self.reservation.miss(agent, &who.path, missed.clone());
        }
    }

    /// Ends the call and books its charges.
    pub(crate) fn settle(self, charges: &[Charge]) {
        self.reservation.settle(charges);
    }
}
