//! What must always hold, and what must be possible.

use std::collections::BTreeSet;

use posse_protocol::{TaskId, TaskStatus};
use posse_runtime::port::store::{AgentState, MailFilter, TaskFilter, Wake};
use posse_testkit::model::{Agent, Fate, Life};
use posse_testkit::store_contract::{agent, realm};
use stateright::Property;

use super::world::{Actor, Deed, State, View, World, list, recipient, words};

pub(super) fn all(world: &World) -> Vec<Property<World>> {
    let mut properties = vec![
        Property::always("a task has one doer", one_doer),
        Property::always("who is fenced changes nothing", fenced_changes_nothing),
        Property::always("each message is shown once or waits", no_message_is_lost_or_doubled),
        Property::always("whom mail waits for is awake or will be woken", nobody_sleeps_through_mail),
        Property::always("who does a task is held", doers_are_held),
        Property::always("what is completed stays completed", completed_for_good),
        Property::always("what waits is not begun", no_task_before_its_time),
        Property::sometimes("all is done and all was read", all_is_done),
        Property::sometimes("mail is shown after a take-over", shown_late),
    ];
    // Who is killed has nobody left to be fenced.
    if world.stalls > 0 {
        let fenced = |_: &World, state: &State| zombies(state).next().is_some();
        properties.push(Property::sometimes("somebody is fenced", fenced));
    }
    properties
}

/// What processes believe whose agents were taken from them.
fn zombies(state: &State) -> impl Iterator<Item = (&Actor, &View)> {
    let current = |actor: &Actor| state.model.agent(agent(actor.agent)).map(|agent| agent.epoch);
    state.views.iter().filter(move |(actor, view)| current(actor) != Some(view.epoch))
}

/// Of those who believe that they have a task, one at most can say that it is done.
fn one_doer(_: &World, state: &State) -> bool {
    let fenced: BTreeSet<&Actor> = zombies(state).map(|(actor, _)| actor).collect();
    let doers = state.views.iter().filter(|(actor, _)| !fenced.contains(actor));
    let mut taken = BTreeSet::new();
    doers.filter_map(|(_, view)| view.task).all(|task| taken.insert(task))
}

fn fenced_changes_nothing(world: &World, state: &State) -> bool {
    zombies(state).all(|(actor, view)| {
        let mut deeds = world.deeds(state, *actor, view);
        deeds.extend([Deed::ClaimNext, Deed::Send, Deed::Idle]);
        deeds.into_iter().all(|deed| {
            let mut after = state.clone();
            world.commit(&mut after, *actor, deed) == Some(Err(Fate::Fenced)) && after == *state
        })
    })
}

fn all_is_done(world: &World, state: &State) -> bool {
    let shown = |sender| {
        let to = state.model.agent(agent(recipient(sender, world.agents)));
        to.is_some_and(|to| to.own.iter().any(|entry| entry.bytes.ends_with(words(sender).as_bytes())))
    };
    state.done.len() as u64 == world.tasks && (1..=world.agents).all(shown)
}

fn shown_late(_: &World, state: &State) -> bool {
    let late = |known: &Agent| known.own.iter().any(|entry| !entry.bytes.starts_with(b"in epoch 1:"));
    state.model.agents().any(|(_, known)| late(known))
}

fn no_message_is_lost_or_doubled(world: &World, state: &State) -> bool {
    state.sent.iter().all(|sender| {
        let to = agent(recipient(*sender, world.agents));
        let words = words(*sender);
        let own = state.model.agent(to).map_or(&[][..], |agent| &agent.own);
        let shown = own.iter().filter(|entry| entry.bytes.ends_with(words.as_bytes())).count();
        let waiting = state.model.mail(realm(), to, MailFilter { waiting: true, after: 0 });
        shown + waiting.iter().filter(|mail| mail.body == words).count() == 1
    })
}

fn nobody_sleeps_through_mail(_: &World, state: &State) -> bool {
    state.model.agents().all(|(id, known)| {
        let Some(host) = known.holder else { return true };
        let sleeps = known.state.0 == AgentState::Idle && state.model.mail_waiting(realm(), id) > 0;
        let told = || state.model.news(host).any(|wake| *wake == Wake::Mail(id));
        let awake = |(actor, view): (&Actor, &View)| {
            actor.host == host && agent(actor.agent) == id && view.epoch == known.epoch && !view.asleep
        };
        !sleeps || told() || state.views.iter().any(awake)
    })
}

fn doers_are_held(_: &World, state: &State) -> bool {
    let begun = TaskFilter { status: Some(TaskStatus::InProgress), after: 0 };
    state.model.tasks(&list(), begun).iter().all(|task| {
        let owner = task.owner.as_ref().and_then(|owner| state.model.agent(owner.agent?));
        let host = owner.and_then(|agent| agent.holder);
        host.is_some_and(|host| matches!(state.model.life(host), Life::Alive | Life::Stalled))
    })
}

fn completed_for_good(_: &World, state: &State) -> bool {
    let status = |id: &TaskId| state.model.task(&list(), *id).map(|task| task.status);
    state.done.iter().all(|id| status(id) == Some(TaskStatus::Completed))
}

fn no_task_before_its_time(_: &World, state: &State) -> bool {
    let tasks = state.model.tasks(&list(), TaskFilter::default());
    tasks.iter().all(|task| task.status == TaskStatus::Pending || task.waits_for.is_empty())
}
