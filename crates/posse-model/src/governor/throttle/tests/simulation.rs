//! Agents that call through the throttle, on a simulated clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use posse_port::model::{CallPriority, Lineage, Standing};
use posse_protocol::Usage;

use super::provider::{Answer, Provider};
use crate::governor::limits::AccountLimits;
use crate::governor::queue::Ticket;
use crate::governor::throttle::{Ask, Head, Throttle};
use crate::retry::RetryPolicy;

pub(super) const SECOND: u64 = 1_000_000;
pub(super) const MINUTE: u64 = 60 * SECOND;

/// Numbers that only look random.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + self.0 % (high - low + 1)
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Ask(usize),
    Arrive(Ticket),
    Head(Ticket, Answer),
    Done(Ticket),
    Look,
}

pub(super) struct Agent {
    standing: Standing,
    pub(super) subtree: usize,
    /// Its calls are over at once: it asks once.
    once: bool,
    asked_at: u64,
    place: Option<u64>,
    demoted: bool,
    pub(super) accepted: u64,
    pub(super) first_wait: Option<u64>,
}

pub(super) struct Simulation {
    throttle: Throttle,
    pub(super) provider: Provider,
    pub(super) agents: Vec<Agent>,
    dice: Dice,
    /// Uncached tokens of a request.
    pub(super) tokens: (u64, u64),
    /// Time between a reply and the next request.
    pub(super) think: (u64, u64),
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    what: HashMap<u64, Event>,
    next: u64,
    whose: HashMap<Ticket, (usize, u64)>,
    look_at: Option<u64>,
    held_until: u64,
    /// Requests that were sent while a `retry-after` held.
    pub(super) violations: u64,
    pub(super) refused: u64,
    /// Sent requests with their times.
    pub(super) sent: Vec<u64>,
}

impl Simulation {
    pub(super) fn new(seed: u64, provider: Provider, limits: &AccountLimits) -> Self {
        let policy = RetryPolicy {
            random: || 0.5,
            ..RetryPolicy::default()
        };
        Self {
            throttle: Throttle::new(policy, limits),
            provider,
            agents: Vec::new(),
            dice: Dice(seed | 1),
            tokens: (1_000, 3_000),
            think: (SECOND / 2, SECOND),
            now: 0,
            events: BinaryHeap::new(),
            what: HashMap::new(),
            next: 0,
            whose: HashMap::new(),
            look_at: None,
            held_until: 0,
            violations: 0,
            refused: 0,
            sent: Vec::new(),
        }
    }

    /// Adds an agent that asks at a time, again and again unless `once`.
    pub(super) fn agent(
        &mut self,
        at: u64,
        session: &str,
        subtree: usize,
        priority: CallPriority,
        once: bool,
    ) -> usize {
        self.agents.push(Agent {
            standing: Standing {
                lineage: Lineage {
                    session: session.to_owned(),
                    team: None,
                    subtree: subtree.to_string(),
                },
                priority,
                prompt: None,
                cached: 0,
            },
            subtree,
            once,
            asked_at: 0,
            place: None,
            demoted: false,
            accepted: 0,
            first_wait: None,
        });
        let number = self.agents.len() - 1;
        self.at(at, Event::Ask(number));
        number
    }

    fn at(&mut self, time: u64, event: Event) {
        self.next += 1;
        self.what.insert(self.next, event);
        self.events.push(Reverse((time, self.next)));
    }

    /// Runs until a time.
    pub(super) fn run(&mut self, until: u64) {
        while let Some(Reverse((time, number))) = self.events.peek().copied()
            && time <= until
        {
            self.events.pop();
            self.now = time;
            let event = self.what.remove(&number).unwrap();
            if let Event::Look = event {
                // One that was set later counts instead.
                if self.look_at != Some(time) {
                    continue;
                }
                self.look_at = None;
            }
            self.handle(event);
            self.look();
        }
        self.now = until;
    }

    fn clock(&self) -> Duration {
        Duration::from_micros(self.now)
    }

    fn look(&mut self) {
        let now = self.clock();
        let turn = self.throttle.poll(now);
        self.refused += turn.refused.len() as u64;
        for ticket in turn.admitted {
            self.violations += u64::from(self.now < self.held_until);
            self.sent.push(self.now);
            self.at(self.now + 50_000, Event::Arrive(ticket));
        }
        if let Some(next) = turn.next {
            assert!(next > now, "it looks again and again at {now:?}");
            let next = next.as_micros() as u64 + 1;
            if self.look_at != Some(next) {
                self.look_at = Some(next);
                self.at(next, Event::Look);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.clock();
        match event {
            Event::Look => {}
            Event::Ask(number) => {
                let tokens = self.dice.between(self.tokens.0, self.tokens.1);
                // The size of the body says little.
                let guess = tokens * self.dice.between(80, 150) / 100;
                let agent = &mut self.agents[number];
                let place = agent.place.take();
                if place.is_none() {
                    agent.asked_at = self.now;
                }
                let ticket = self.throttle.ask(
                    now,
                    Ask {
                        standing: &agent.standing,
                        prompt: guess,
                        wait: Duration::ZERO,
                        place,
                        demoted: agent.demoted,
                        limits_cached: false,
                    },
                );
                self.whose.insert(ticket, (number, tokens));
            }
            Event::Arrive(ticket) => {
                let answer = self.provider.receive(self.now, self.whose[&ticket].1);
                let after = match answer.status {
                    200 => self.dice.between(SECOND / 2, 2 * SECOND),
                    _ => 50_000,
                };
                self.at(self.now + after, Event::Head(ticket, answer));
            }
            Event::Head(ticket, answer) => self.head(ticket, answer),
            Event::Done(ticket) => {
                let (number, tokens) = self.whose.remove(&ticket).unwrap();
                let usage = Usage {
                    input: tokens,
                    output: 500,
                    ..Usage::default()
                };
                self.throttle.done(now, ticket, &usage);
                self.agents[number].demoted = false;
                if !self.agents[number].once {
                    let think = self.dice.between(self.think.0, self.think.1);
                    self.at(self.now + think, Event::Ask(number));
                }
            }
        }
    }

    fn head(&mut self, ticket: Ticket, answer: Answer) {
        let now = self.clock();
        let head = Head {
            status: answer.status,
            limits: &answer.limits,
            retry_after: answer.retry_after,
        };
        self.throttle.head(now, ticket, &head);
        if answer.status == 200 {
            let agent = &mut self.agents[self.whose[&ticket].0];
            agent.accepted += 1;
            agent.first_wait.get_or_insert(self.now - agent.asked_at);
            let reply = self.dice.between(SECOND, 4 * SECOND);
            return self.at(self.now + reply, Event::Done(ticket));
        }
        if let Some(asked) = answer.retry_after {
            self.held_until = self.held_until.max(self.now + asked.as_micros() as u64);
        }
        let met = self.throttle.failed(now, ticket, &Usage::default(), true);
        let (number, _) = self.whose.remove(&ticket).unwrap();
        let (agent, met) = (&mut self.agents[number], met.unwrap());
        agent.place = met.place;
        agent.demoted |= met.probed;
        self.at(self.now, Event::Ask(number));
    }
}

/// Jain's index: 1 if all get the same, 1/n if one gets everything.
pub(super) fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    sum * sum / (shares.len() as f64 * squares)
}
