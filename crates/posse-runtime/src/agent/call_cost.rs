//! Budget for one model call: reserved before it, again before each retry, settled afterwards.

use posse_protocol::{Cost, Missed, Purpose, Usage};
use tokio_util::sync::CancellationToken;

use crate::govern::{Account, Ask, Exceeded, Reservation};
use posse_port::Ports;
use posse_port::model::{Attribution, Failure, Reply, Ttl};
use posse_port::price::Prices;
use posse_port::store::Charge;

/// Lowest useful cap on a reply, in tokens.
const LEAST_OUTPUT: u32 = 1024;

/// Reserves the worst case of a call of `model`.
pub(crate) fn reserve(
    ports: &Ports,
    account: &Account,
    model: &str,
    (input, ttl): (u64, Ttl),
    max_tokens: u32,
) -> Result<Reservation, Exceeded> {
    let price = |input: u64, output: u32| -> Option<Cost> {
        // The worst case: writing to the cache costs more than any other kind of input.
        let (cache_write_5m, cache_write_1h) = if ttl == Ttl::OneHour {
            (0, input)
        } else {
            (input, 0)
        };
        let output = output.into();
        ports.prices.cost(
            model,
            &Usage {
                cache_write_5m,
                cache_write_1h,
                output,
                ..Usage::default()
            },
        )
    };
    let ask = Ask {
        input,
        output: max_tokens,
        least: LEAST_OUTPUT.min(max_tokens),
        price: &price,
    };
    account.reserve(&ask, ports.clock.now())
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
