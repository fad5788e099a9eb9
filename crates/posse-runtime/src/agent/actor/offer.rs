//! What a model knows of the types of agents that it can start and of the skills that it can load, and how it
//! hears of others.

use std::sync::Arc;

use crate::agent::actor::Actor;
use crate::definition::catalogue::{Listed, Types};
use crate::definition::skill::Skill;
use crate::live::setup::{loadable, startable};
use crate::prompt::advertised::Offer;

/// What the model knows.
#[derive(Default)]
pub(crate) struct Advertised {
    /// A fingerprint of what it was told last; none if it is offered nothing, or nobody remembers.
    pub(crate) told: Option<u64>,
    /// The same in words, if this process knows.
    offer: Option<Offer>,
    /// What it will know when the news is told.
    coming: Option<Offer>,
    /// What was looked at last.
    looked: Option<(Types, Option<Listed<Skill>>)>,
}

impl Advertised {
    pub(crate) fn told(told: Option<u64>) -> Self {
        Self {
            told,
            ..Self::default()
        }
    }

    /// The model has been told of this; none if of nothing new.
    pub(super) fn tell(&mut self, print: Option<u64>) {
        if print.is_some() {
            self.told = print;
            self.offer = self.coming.take().or(self.offer.take());
        }
    }
}

/// Looks at types and skills as they are now. Others than the model knows are told with the next entry:
/// what was sent before does not change.
pub(super) fn check_offer(actor: &mut Actor) {
    let spawning = &actor.session.setup.spawning;
    let now = (
        spawning.types.now(),
        spawning.skills.as_ref().map(|skills| skills.now()),
    );
    let same = |looked: &(Types, Option<Listed<Skill>>)| {
        let skills = match (&looked.1, &now.1) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        skills && Arc::ptr_eq(&looked.0, &now.0)
    };
    if actor.known.looked.as_ref().is_some_and(same) {
        return;
    }
    actor.known.looked = Some(now);
    let setup = &actor.session.setup;
    let offer = Offer::of(&actor.setup.tools, &startable(setup), &loadable(setup));
    let print = offer.fingerprint();
    let news = print.filter(|print| Some(*print) != actor.known.told);
    actor
        .machine
        .offer(news.map(|print| (print, offer.news(actor.known.offer.as_ref()))));
    match news {
        Some(_) => actor.known.coming = Some(offer),
        None => actor.known.offer = Some(offer),
    }
}
