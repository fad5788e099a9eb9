//! What must always hold, and what must be possible.

use posse_port::store::{AgentState, Wake};
use posse_protocol::{TaskId, TaskStatus};
use posse_testkit::model::{Agent, Fate, HostNumber, Life};
use stateright::Property;

use super::words::{agent, list, realm, words};
use super::world::{Actor, Deed, State, View, World};

pub(super) fn all(world: &World) -> Vec<Property<World>> {
    let mut properties = vec![
        Property::always("a task has one doer", one_doer),
        Property::always("who is fenced changes nothing", fenced_changes_nothing),
        Property::always(
            "each message is shown once or waits",
            no_message_is_lost_or_doubled,
        ),
        Property::always(
            "whom mail waits for is awake or will be woken",
            nobody_sleeps_through_mail,
        ),
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
fn zombies(state: &State) -> impl Iterator<Item = (Actor, View)> {
    state
        .views()
        .filter(|(actor, view)| !state.is_current(*actor, *view))
}

/// Of those who believe that they have a task, one at most can say that it is done.
fn one_doer(_: &World, state: &State) -> bool {
    let doers = state
        .views()
        .filter(|(actor, view)| view.task.is_some() && state.is_current(*actor, *view));
    let mut taken = 0_u8;
    doers.filter_map(|(_, view)| view.task).all(|task| {
        let first = taken & 1 << task.0 == 0;
        taken |= 1 << task.0;
        first
    })
}

fn fenced_changes_nothing(world: &World, state: &State) -> bool {
    zombies(state).all(|(actor, view)| {
        let tasks = (1..=world.tasks).map(TaskId);
        let deeds = [
            Deed::ClaimNext,
            Deed::Complete,
            Deed::Send,
            Deed::Show,
            Deed::Idle,
            Deed::End,
        ];
        let mut deeds = deeds.into_iter().chain(tasks.map(Deed::Claim));
        let mut after = state.model.clone();
        let refused =
            |deed| world.commit(state, &mut after, (actor, view), deed) == Err(Fate::Fenced);
        deeds.all(refused) && after == state.model
    })
}

/// How often the message of an agent was shown to whom it was sent.
fn shown(world: &World, state: &State, sender: usize) -> usize {
    let own = state
        .model
        .agent(agent(world.recipient(sender)))
        .map_or(&[][..], |agent| &agent.own);
    own.iter()
        .filter(|entry| entry.bytes.ends_with(words(sender).as_bytes()))
        .count()
}

fn all_is_done(world: &World, state: &State) -> bool {
    u64::from(state.done.count_ones()) == world.tasks
        && (0..world.agents).all(|sender| shown(world, state, sender) == 1)
}

fn shown_late(_: &World, state: &State) -> bool {
    let late = |known: &Agent| {
        known
            .own
            .iter()
            .any(|entry| !entry.bytes.starts_with(b"in epoch 1:"))
    };
    state.model.agents().any(|(_, known)| late(known))
}

fn no_message_is_lost_or_doubled(world: &World, state: &State) -> bool {
    (0..world.agents)
        .filter(|sender| state.sent[*sender])
        .all(|sender| {
            let waiting = state.model.waiting(realm(), agent(world.recipient(sender)));
            shown(world, state, sender) + waiting.filter(|mail| mail.body == words(sender)).count()
                == 1
        })
}

fn nobody_sleeps_through_mail(world: &World, state: &State) -> bool {
    (0..world.agents).all(|at| {
        let Some(known) = state.model.agent(agent(at)) else {
            return false;
        };
        let Some(HostNumber(host)) = known.holder else {
            return true;
        };
        let sleeps = known.state.0 == AgentState::Idle
            && state.model.waiting(realm(), agent(at)).next().is_some();
        let told = || {
            state
                .model
                .news(HostNumber(host))
                .any(|wake| *wake == Wake::Mail(agent(at)))
        };
        let view = state.views[host as usize][at];
        !sleeps || told() || view.is_some_and(|view| view.epoch == known.epoch && !view.asleep)
    })
}

fn doers_are_held(_: &World, state: &State) -> bool {
    state
        .model
        .rights(&list())
        .filter(|(status, _)| *status == TaskStatus::InProgress)
        .all(|(_, owner)| {
            let owner = owner.and_then(|owner| state.model.agent(owner.agent?));
            let host = owner.and_then(|agent| agent.holder);
            host.is_some_and(|host| matches!(state.model.life(host), Life::Alive | Life::Stalled))
        })
}

fn completed_for_good(_: &World, state: &State) -> bool {
    let rights = (1..).zip(state.model.rights(&list()));
    rights
        .filter(|(id, _)| state.done & 1 << id != 0)
        .all(|(_, (status, _))| status == TaskStatus::Completed)
}

/// The third task waits for the first.
fn no_task_before_its_time(_: &World, state: &State) -> bool {
    let begun: Vec<TaskStatus> = state
        .model
        .rights(&list())
        .map(|(status, _)| status)
        .collect();
    let waits = begun.len() >= 3 && begun[0] != TaskStatus::Completed;
    !waits || begun[2] == TaskStatus::Pending
}
