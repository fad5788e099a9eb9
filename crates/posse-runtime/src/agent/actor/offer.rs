//! Keeps the model informed of the agent types it can start, the skills it can load and the servers
//! that bring it tools.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::agent::actor::{Actor, ToldInstructions};
use crate::definition::catalogue::{Listed, Types};
use crate::definition::instructions::Instruction;
use crate::definition::skill::Skill;
use crate::definition::tool_name::TOOL_SEARCH;
use crate::live::servers::{AgentServers, ToolsNow};
use crate::live::setup::{loadable, startable};
use crate::prompt;
use crate::prompt::advertised::Offer;
use posse_port::model::Preamble;

/// What the model was told of types, skills, servers and memory files.
#[derive(Default)]
pub(crate) struct Advertised {
    /// Fingerprint of what it was told last; none if it is offered nothing or it is unknown.
    pub(crate) told: Option<u64>,
    /// The offer itself, if this process knows it.
    offer: Option<Offer>,
    /// The offer it will know once the pending notice is stored.
    coming: Option<Offer>,
    /// Lists that were compared last.
    looked: Option<Lists>,
    /// Its servers.
    pub(crate) servers: Option<AgentServers>,
    /// Those that people know are not connected.
    warned: BTreeSet<String>,
    /// Memory files.
    pub(super) instructions: ToldInstructions,
}

/// Lists as of one moment. They are replaced when they change, so comparing pointers is enough.
struct Lists {
    types: Types,
    skills: Option<Listed<Skill>>,
    served: Option<Arc<ToolsNow>>,
}

impl Lists {
    fn is(&self, other: &Self) -> bool {
        fn same<T: ?Sized>(a: Option<&Arc<T>>, b: Option<&Arc<T>>) -> bool {
            match (a, b) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                (a, b) => a.is_none() && b.is_none(),
            }
        }
        Arc::ptr_eq(&self.types, &other.types)
            && same(self.skills.as_ref(), other.skills.as_ref())
            && same(self.served.as_ref(), other.served.as_ref())
    }
}

impl Advertised {
    /// Returns what an agent was told, its servers, and the memory files that it begins with.
    pub(crate) fn new(
        (told, offer): (Option<u64>, Option<Offer>),
        servers: Option<AgentServers>,
        begins_with: Option<Listed<Instruction>>,
    ) -> Self {
        Self {
            told,
            offer,
            servers,
            instructions: ToldInstructions::at_start(begins_with),
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
    let servers = actor.advertised.servers.as_ref();
    let now = Lists {
        types: spawning.types.now(),
        skills: spawning.skills.as_ref().map(|skills| skills.now()),
        served: servers.map(|servers| servers.set.now()),
    };
    let looked = actor.advertised.looked.as_ref();
    if looked.is_some_and(|looked| looked.is(&now)) {
        return;
    }
    actor.advertised.looked = Some(now);
    warn_of_failures(actor);
    add_known_tools(actor);
    let offer = offer(actor);
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

/// Returns what an agent's model is offered now.
pub(super) fn offer(actor: &Actor) -> Offer {
    let setup = &actor.session.setup;
    let offer = Offer::of(&actor.setup.tools, &startable(setup), &loadable(setup));
    let searches = actor.setup.tools.get(TOOL_SEARCH).is_some();
    let servers = actor.advertised.servers.as_ref().filter(|_| searches);
    let policy = actor.session.rights.policy();
    offer.with_servers(servers.map(|servers| servers.listed(&policy)))
}

/// Tells people of servers that cannot be connected, once for each time.
fn warn_of_failures(actor: &mut Actor) {
    let servers = actor.advertised.servers.as_ref();
    let Some(servers) = servers.filter(|_| actor.role.is_main()) else {
        return;
    };
    let failures = servers.failures();
    let names = failures.iter().map(|(name, _)| name.clone()).collect();
    let before = std::mem::replace(&mut actor.advertised.warned, names);
    for (name, why) in failures {
        if !before.contains(&name) {
            actor.warn(prompt::served::not_connected(&name, &why));
        }
    }
}

/// Makes the preamble of a main agent anew that is not born yet: tools that their servers want to be
/// known from the beginning are part of it. What was sent once stays as it is.
fn add_known_tools(actor: &mut Actor) {
    let Some(birth) = actor.birth.as_mut() else {
        actor.prefix.unborn = None;
        return;
    };
    let (Some(made_from), Some(servers)) = (&actor.prefix.unborn, &actor.advertised.servers) else {
        return;
    };
    let known = servers.known(&actor.session.rights.policy());
    if known.is_empty() {
        return;
    }
    let mut preamble = Preamble::clone(made_from);
    preamble.tools.extend(known);
    let encoded = actor.ports.model.preamble(&preamble);
    birth.preamble = encoded.clone();
    actor.prefix.born = encoded.clone();
    actor.prefix.preamble = encoded;
}
