//! Keeps the model informed of the agent types it can start and the skills it can load.

use std::sync::Arc;

use crate::agent::actor::{Actor, ToldInstructions};
use crate::definition::catalogue::{Listed, Types};
use crate::definition::skill::Skill;
use crate::live::setup::{loadable, startable};
use crate::prompt::advertised::Offer;

/// What the model was told of types, skills and memory files.
#[derive(Default)]
pub(crate) struct Advertised {
    /// Fingerprint of what it was told last; none if it is offered nothing or it is unknown.
    pub(crate) told: Option<u64>,
    /// The offer itself, if this process knows it.
    offer: Option<Offer>,
    /// The offer it will know once the pending notice is stored.
    coming: Option<Offer>,
    /// Lists that were compared last.
    looked: Option<(Types, Option<Listed<Skill>>)>,
    /// Memory files.
    pub(super) instructions: ToldInstructions,
}

impl Advertised {
    /// Returns what an agent was told, and the memory files that it begins with.
    pub(crate) fn told(told: Option<u64>, instructions: ToldInstructions) -> Self {
        Self {
            told,
            instructions,
            ..Self::default()
        }
    }

    /// Notes that the model was told of an offer; none if of nothing new.
    pub(super) fn tell(&mut self, print: Option<u64>) {
        if print.is_some() {
            self.told = print;
            self.offer = self.coming.take().or(self.offer.take());
        }
    }
}

/// Compares types and skills with what the model knows. Changes are told with the next entry: what
/// was sent before stays as it is, and so stays cached.
pub(super) fn check_offer(actor: &mut Actor) {
    let spawning = &actor.session.setup.spawning;
    let now = (
        spawning.types.now(),
        spawning.skills.as_ref().map(|skills| skills.now()),
    );
    // The lists are replaced when they change, so comparing pointers is enough.
    let same = |looked: &(Types, Option<Listed<Skill>>)| {
        let skills = match (&looked.1, &now.1) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        skills && Arc::ptr_eq(&looked.0, &now.0)
    };
    if actor.advertised.looked.as_ref().is_some_and(same) {
        return;
    }
    actor.advertised.looked = Some(now);
    let setup = &actor.session.setup;
    let offer = Offer::of(&actor.setup.tools, &startable(setup), &loadable(setup));
    let print = offer.fingerprint();
    let news = print.filter(|print| Some(*print) != actor.advertised.told);
    actor
        .machine
        .offer(news.map(|print| (print, offer.news(actor.advertised.offer.as_ref()))));
    match news {
        Some(_) => actor.advertised.coming = Some(offer),
        None => actor.advertised.offer = Some(offer),
    }
}
