//! What the main agent does about its teams.

use std::sync::atomic::Ordering;
use std::time::Duration;

use posse_port::store::{Address, Op, Operation, Page, Step, StoreError, TaskFilter};
use posse_protocol::{
    ContentBlock, EventKind, ListId, MailId, MailKind, Member, Name, TaskStatus, TeamPlan,
};
use uuid::Uuid;

use crate::agent::actor::work::Work;
use crate::agent::actor::{Actor, Identity, Role, report};
use crate::agent::step::Input;
use crate::definition::team_plan;
use crate::live::registry::By;
use crate::live::roster::has;
use crate::live::wakeup::WakeReason;
use crate::live::{roster, stop};
use crate::prompt;
use crate::prompt::team::Raised;

/// Interval at which a main agent checks whether its teams still work, if nobody tells it.
pub(crate) const HEAL: Duration = Duration::from_secs(5);

/// Number of times that it looks for a moment in which nothing happens.
const LOOKS: usize = 4;

/// Returns the number of busy members of its teams; 0 if it is not the main agent.
pub(super) async fn busy_members(actor: &mut Actor) -> Result<usize, StoreError> {
    let Identity { realm, agent, .. } = actor.identity;
    let Role::Main { leads } = &mut actor.role else {
        return Ok(0);
    };
    if actor.birth.is_some() {
        return Ok(0);
    }
    // Teams that are being started have members that the roster does not know yet.
    let raising = actor.session.raising.load(Ordering::Acquire);
    if !*leads {
        return Ok(raising);
    }
    let store = &*actor.ports.store;
    for _ in 0..LOOKS {
        let head = store.feed(realm, 0, 0).await?.head;
        let mut teams = roster::teams(store, realm).await?;
        teams.retain(|team| has(team, agent));
        *leads = !teams.is_empty();
        let busy = roster::busy_members(&actor.registry, store, &teams, agent).await?;
        // Members and tasks are not read at once: a member that was idle may have taken the last
        // task in between. That nobody works is true only of a moment in which nothing happened.
        if raising + busy > 0 || store.feed(realm, 0, 0).await?.head == head {
            return Ok(raising + busy);
        }
    }
    // Something happens all the time, so somebody works.
    Ok(1)
}

/// Notes that it leads a team if it is about to create one. Nobody else makes it a lead.
pub(super) fn note_team(actor: &mut Actor, operations: &[Operation]) {
    if let Role::Main { leads } = &mut actor.role {
        *leads |= operations
            .iter()
            .any(|operation| matches!(operation.op, Op::CreateTeam { .. }));
    }
}

/// Checks, after the main agent's run, whether its teams have finished too. If they have and no
/// mail begins another run, it is reported: nobody need wait any longer.
pub(super) async fn check_teams(actor: &mut Actor, work: &mut Work) -> Result<(), StoreError> {
    work.timers.heal = None;
    if !actor.machine.is_idle() {
        return Ok(());
    }
    let busy = busy_members(actor).await?;
    // Asked after the members: what one sent when it became idle is there by now.
    let mail = actor.fetch_mail().await?;
    let came = matches!(&mail, Input::Mail(mail) if !mail.is_empty());
    work.inputs.push_back(mail);
    if came {
        return Ok(());
    }
    match busy + report::live_runs_and_mail(actor) {
        0 => actor.sink.emit(EventKind::AllIdle).await,
        _ => work.timers.heal = Some(actor.ports.clock.sleep(HEAL)),
    }
    Ok(())
}

/// Returns a person's first prompt, with the operations that create the team for it.
pub(super) fn make_team(
    actor: &mut Actor,
    name: Name,
    declared: &TeamPlan,
    words: Vec<ContentBlock>,
) -> Input {
    let (model, cwd) = (
        actor.spending.model.clone(),
        actor.setup.workspace.cwd.clone(),
    );
    let lead = actor.identity.agent;
    let ops = team_plan::founding(&name, declared, &words, (lead, model, cwd));
    let told = prompt::team::raised(&Raised {
        team: &team_plan::expected(&name, declared, lead),
        tasks: declared.tasks.len(),
        missing: &[],
    });
    let words = words
        .into_iter()
        .chain([ContentBlock::text(told)])
        .collect();
    Input::Team { words, ops }
}

/// Adds notices about its teams to the main agent's next message.
pub(super) fn take_notices(actor: &mut Actor) {
    if actor.role.is_main() {
        actor
            .session
            .take_notices()
            .into_iter()
            .for_each(|notice| actor.machine.tell(notice));
    }
}

/// Ends the teammates together with the main agent.
pub(super) async fn dismiss(actor: &mut Actor, completed: bool) {
    if !actor.role.is_main() {
        return;
    }
    let done = completed && actor.birth.is_none() && !actor.stop.token.is_cancelled();
    if done {
        dismiss_idle(actor).await;
    }
    // Those that remain continue when the session is resumed.
    stop::give_up_mates(&actor.registry, &actor.session);
}

/// Dismisses the teammates of teams whose tasks are all done, if none of them works.
pub(super) async fn dismiss_idle(actor: &mut Actor) {
    let me = actor.identity.agent;
    // Members at work continue when the session is resumed.
    if !busy_members(actor).await.is_ok_and(|busy| busy == 0) {
        return;
    }
    // The error is dropped: a resumed session finds the members as they are.
    let Ok(teams) = roster::teams(&*actor.ports.store, actor.identity.realm).await else {
        return;
    };
    let mut operations = Vec::new();
    for team in teams.into_iter().filter(|team| has(team, me)) {
        // Members of a team with open tasks continue when the session is resumed.
        if has_open_tasks(actor, &team.name).await {
            continue;
        }
        let others = team.members.into_iter().filter(|member| member.agent != me);
        for Member {
            agent, name, held, ..
        } in others
        {
            // A member of this process leaves its team with its own last step.
            if stop::stop(&actor.registry, agent.uuid(), By::Above { person: false })
                .await
                .is_some()
            {
                continue;
            }
            let id = MailId::from(Uuid::now_v7());
            let (to, kind) = (Address::Agent(agent), MailKind::Dismissal);
            let (summary, body) = (String::from("the session has ended"), String::new());
            // A member of another process is told by mail. One that no process has cannot read it,
            // and is taken off the roster.
            let op = match held {
                true => Op::Send {
                    id,
                    to,
                    kind,
                    summary,
                    body,
                },
                false => Op::Leave {
                    team: team.name.clone(),
                    name,
                },
            };
            operations.push(Operation { call: None, op });
        }
    }
    if !operations.is_empty() {
        let step = Step {
            operations,
            ..actor.new_step()
        };
        // As above: what fails now is found when the session is resumed.
        let _ = actor.ports.store.commit(step).await;
    }
}

/// Returns true if a team has tasks that are neither completed nor deleted, or may have.
async fn has_open_tasks(actor: &Actor, team: &Name) -> bool {
    for status in [TaskStatus::Pending, TaskStatus::InProgress] {
        let list = ListId {
            realm: actor.identity.realm,
            team: Some(team.clone()),
        };
        let filter = TaskFilter {
            status: Some(status),
            ..TaskFilter::default()
        };
        let found = actor.ports.store.tasks(list, filter, Page::first(1)).await;
        if !found.is_ok_and(|tasks| tasks.is_empty()) {
            return true;
        }
    }
    false
}

/// Wakes the main agent when a teammate became idle without a message: it may wait for that.
pub(super) fn wake_main(actor: &Actor) {
    actor.registry.wake(actor.session.root, WakeReason::Settle);
}
