//! A teammate among others: what it looks for, what it tells its lead, and how it leaves. And what a lead does
//! about its team.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::live::lookup;
use crate::live::roster;
use crate::live::stop;
use posse_protocol::{
    ContentBlock, EventKind, IdleReason, IdleReport, ListId, Mail, MailId, MailKind, Member,
    MemberChange, Name, Outcome, Sender, Task, TaskId, TaskReport, TaskStatus, TeamPlan,
};
use uuid::Uuid;

use crate::agent::actor::runs::judged;
use crate::agent::actor::{Actor, Identity, Work};
use crate::agent::step::{Input, Resting};
use crate::definition::team_plan;
use crate::definition::teammate::Card;
use crate::live::registry::By;
use crate::live::roster::has;
use crate::live::wakeup::About;
use crate::prompt;
use crate::prompt::team::{Glance, Raised, Welcome};
use posse_port::store::{
    Address, AgentState, Done, Op, OpResult, Operation, Ready, StateChange, Step, StoreError,
    TaskFilter,
};
use posse_port::text;

/// So many of the tasks that an agent is doing are looked at.
const OWN: usize = 32;
/// So much of a last answer is told to a lead, in characters.
const ANSWER: usize = 8_000;

/// How often a main agent looks whether its teams still do something, if nobody tells it.
pub(crate) const HEAL: Duration = Duration::from_secs(5);

/// What makes an agent a teammate.
pub(crate) struct Mate {
    pub(crate) card: Arc<Card>,
    /// What the front ends are told of it when it begins to live here.
    pub(crate) arrival: Option<MemberChange>,
    /// What it tells its lead when it is idle.
    report: Option<IdleReport>,
    /// What it has been told of its team's notes.
    glance: Glance,
}

impl Mate {
    pub(crate) fn new(card: Arc<Card>, arrival: MemberChange) -> Self {
        Self {
            card,
            arrival: Some(arrival),
            report: None,
            glance: Glance::default(),
        }
    }
}

/// What a step does to tasks, and to the agent itself.
pub(crate) struct OwnTasks {
    /// The tasks, by the operation that touches them.
    touched: Vec<(usize, Option<Name>, TaskId)>,
    /// The operation that agrees to end.
    agrees: Option<usize>,
}

impl OwnTasks {
    pub(crate) fn of(operations: &[Operation]) -> Self {
        let touched =
            operations
                .iter()
                .enumerate()
                .filter_map(|(at, operation)| match &operation.op {
                    Op::UpdateTask {
                        team, id, change, ..
                    } if change.status.is_some() => Some((at, team.clone(), *id)),
                    Op::Claim { team, id } => Some((at, team.clone(), *id)),
                    _ => None,
                });
        let agrees = operations.iter().position(|operation| {
            let Op::Respond { kind, approve, .. } = &operation.op else {
                return false;
            };
            *kind == posse_protocol::RequestKind::Shutdown && *approve
        });
        Self {
            touched: touched.collect(),
            agrees,
        }
    }
}

impl Actor {
    /// Tells the front ends that a teammate is here.
    pub(crate) async fn arrive(&mut self) {
        let Some(mate) = &mut self.mate else { return };
        if let Some(arrival) = mate.arrival.take() {
            let news = mate.card.news(arrival);
            self.outlet.emit(EventKind::Member(news)).await;
        }
    }

    /// Tells a teammate that has done nothing yet who it is.
    pub(crate) async fn welcome(&mut self) -> Result<(), StoreError> {
        let Some(mate) = &mut self.mate else {
            return Ok(());
        };
        let card = &mate.card;
        let notes = self
            .ports
            .store
            .notes(self.identity.realm, card.team.clone())
            .await?;
        // Those it need not be told of when it wakes.
        mate.glance.look(&notes);
        let teams = roster::teams(&*self.ports.store, self.identity.realm).await?;
        if let Some(team) = teams.iter().find(|team| team.name == card.team) {
            let plan = self
                .terms
                .as_ref()
                .and_then(|terms| terms.mate.as_ref())
                .is_some_and(|mate| mate.plan);
            self.machine.tell(prompt::team::welcome(Welcome {
                team,
                me: &card.name,
                plan,
                notes: &notes,
            }));
        }
        Ok(())
    }

    /// Before it wakes, a teammate looks at its team's notes.
    pub(crate) async fn look_at_notes(&mut self, input: &Input) -> Result<(), StoreError> {
        let wakes = match input {
            Input::Mail(mail) => !mail.is_empty(),
            Input::Prompt(_)
            | Input::Found {
                claimed: Some(_), ..
            } => true,
            _ => false,
        };
        let Some(mate) = self.mate.as_mut().filter(|_| wakes && self.machine.rests()) else {
            return Ok(());
        };
        let notes = self
            .ports
            .store
            .notes(self.identity.realm, mate.card.team.clone())
            .await?;
        mate.glance
            .look(&notes)
            .into_iter()
            .for_each(|told| self.machine.tell(told));
        Ok(())
    }

    /// A teammate is back: it has the tasks again that it was at, and knows who it is if it has done nothing yet.
    pub(crate) async fn back_among_mates(&mut self, new: bool) -> Result<(), StoreError> {
        if self.mate.is_none() {
            return Ok(());
        }
        if self.machine.is_unanswered() {
            // Others are taken anew, with all that is to be known of them.
            self.reclaim().await?;
        }
        if new {
            self.welcome().await?;
        }
        // What it would have done next may be anything: it looks.
        self.nudge.raise(About::Settle);
        self.nudge.raise(About::Tasks);
        Ok(())
    }

    /// A teammate that was given up while it did tasks has them again, unless somebody else has.
    async fn reclaim(&mut self) -> Result<(), StoreError> {
        let Some(card) = self.mate.as_ref().map(|mate| Arc::clone(&mate.card)) else {
            return Ok(());
        };
        let team = Some(card.team.clone());
        let filter = TaskFilter {
            lost_by: Some(card.name.to_string()),
            ..TaskFilter::default()
        };
        let lost = self
            .ports
            .store
            .tasks(self.list(team.clone()), filter, OWN)
            .await?;
        if lost.is_empty() {
            return Ok(());
        }
        let claim = |task: &Task| Operation {
            call: None,
            op: Op::Claim {
                team: team.clone(),
                id: task.id,
            },
        };
        let operations: Vec<_> = lost.iter().map(claim).collect();
        let own = OwnTasks::of(&operations);
        let step = Step {
            operations,
            ..self.new_step()
        };
        let committed = self.ports.store.commit(step).await?;
        for result in &committed.results {
            // Its process may have ended after the claim and before the entry that tells of it.
            if let Ok(Done::Claimed(task)) = result
                && !self.history.contains(&prompt::team::opening(task.id))
            {
                self.machine.tell(prompt::team::claimed(task));
            }
        }
        self.own(own, &committed.results);
        Ok(())
    }

    /// A run begins.
    pub(crate) async fn at_work(&self) {
        if let Some(mate) = &self.mate {
            self.follow_main().await;
            self.outlet
                .emit(EventKind::Member(mate.card.news(MemberChange::Running)))
                .await;
        }
    }

    /// Whether it would take a task is known to those who tell of tasks.
    pub(crate) fn show_seeking(&self) {
        if self.mate.is_some() {
            self.registry
                .seeks(self.identity.agent, self.machine.seeks());
        }
    }

    /// There may be a task for it; if it cannot look now, somebody else may.
    pub(crate) fn hint(&self) -> Option<Input> {
        self.show_seeking();
        if self.machine.seeks() {
            return Some(Input::Look);
        }
        let list = self.list(self.mate.as_ref().map(|mate| mate.card.team.clone()));
        let (registry, store) = (Arc::clone(&self.registry), Arc::clone(&self.ports.store));
        self.supervisor
            .start_errand(async move { drop(roster::tasks_for(&registry, &*store, list).await) });
        None
    }

    /// Where the main agent lives elsewhere, its mode may have changed there.
    async fn follow_main(&self) {
        let root = self.tree.root;
        if self.registry.resident(root).is_some() {
            return;
        }
        // A store that fails is noticed by whoever commits next.
        if let Ok(Some(row)) = lookup::row(&*self.ports.store, root).await {
            self.tree.standing.set_mode(row.mode);
        }
    }

    /// A teammate is told to stop: for good, or because its process ends.
    pub(crate) fn told_to_stop(&mut self) {
        match self.stop.by() {
            _ if self.mate.is_none() => {}
            By::Shutdown => self.machine.suspend(),
            By::Person | By::Agent(_) | By::Above { .. } => self.machine.leave(),
        }
    }

    /// A dismissal among its mail ends a teammate at once; its model does not see it.
    pub(crate) fn heed_dismissal(&self, mail: &mut Vec<Mail>) {
        if self.mate.is_none() {
            return;
        }
        if let Some(dismissal) = mail.iter().find(|mail| mail.kind == MailKind::Dismissal) {
            self.stop.stop(match &dismissal.from {
                Sender::User => By::Person,
                Sender::Agent { id, .. } => By::Agent(*id),
            });
            mail.clear();
        }
    }

    /// Remembers which tasks the agent has had, and whether it has agreed to end.
    pub(crate) fn own(&mut self, own: OwnTasks, results: &[OpResult]) {
        let done = |at: &usize| results.get(*at).is_some_and(Result::is_ok);
        let touched = own.touched.into_iter().filter(|(at, ..)| done(at));
        self.tasks.extend(touched.map(|(_, team, id)| (team, id)));
        self.machine.set_owning(!self.tasks.is_empty());
        if self.mate.is_some() && own.agrees.as_ref().is_some_and(done) {
            self.machine.leave();
        }
    }

    fn list(&self, team: Option<Name>) -> ListId {
        ListId {
            realm: self.identity.realm,
            team,
        }
    }

    /// Looks which tasks the agent is doing; if it does none, and `claim`, takes the next one.
    pub(crate) async fn look(&mut self, claim: bool) -> Result<Input, StoreError> {
        let agent = self.identity.agent;
        let store = Arc::clone(&self.ports.store);
        // From here on it is nudged for tasks: what becomes ready after it has looked is not missed.
        self.registry.seeks(agent, claim);
        let mut lists: Vec<Option<Name>> =
            self.tasks.iter().map(|(team, _)| team.clone()).collect();
        lists.extend(self.mate.as_ref().map(|mate| Some(mate.card.team.clone())));
        lists.sort_unstable();
        lists.dedup();
        let mut open = Vec::new();
        for team in lists {
            let status = Some(TaskStatus::InProgress);
            let filter = TaskFilter {
                status,
                owner: Some(agent),
                ..TaskFilter::default()
            };
            open.extend(store.tasks(self.list(team), filter, OWN).await?);
        }
        let card = self.mate.as_ref().map(|mate| Arc::clone(&mate.card));
        let (Some(card), true) = (card, claim && open.is_empty()) else {
            return Ok(Input::Found {
                open,
                claimed: None,
            });
        };
        let (team, takes) = (Some(card.team.clone()), card.takes.clone());
        let ready = Some(Ready {
            agent: Some(agent),
            takes: takes.clone(),
        });
        let filter = TaskFilter {
            ready,
            ..TaskFilter::default()
        };
        if store
            .tasks(self.list(team.clone()), filter, 1)
            .await?
            .is_empty()
        {
            return Ok(Input::Found {
                open,
                claimed: None,
            });
        }
        let op = Op::ClaimNext {
            team: team.clone(),
            takes,
        };
        // Who takes one is at work from then on: a lead that looks meanwhile does not take it for idle.
        let (operations, state) = (
            vec![Operation { call: None, op }],
            StateChange::To(AgentState::Running),
        );
        let step = Step {
            operations,
            state: Some(state),
            ..self.new_step()
        };
        let committed = store.commit(step).await?;
        let claimed = committed
            .results
            .into_iter()
            .find_map(|result| match result {
                Ok(Done::Claimed(task)) => Some(task),
                _ => None,
            });
        match &claimed {
            Some(task) => drop(self.tasks.insert((team, task.id))),
            // Somebody was faster.
            None if !self.machine.has_run() => {
                self.tell_state(AgentState::Idle).await?;
                self.quiet_again();
            }
            None => {}
        }
        Ok(Input::Found { open, claimed })
    }

    /// What the step says by which a teammate becomes idle: its state, and what its lead is told.
    pub(crate) async fn rest(
        &mut self,
        resting: &Resting,
    ) -> Result<(StateChange, Option<Operation>), StoreError> {
        let paused = matches!(resting.outcome, Outcome::Paused(_));
        let state = if paused {
            AgentState::Paused
        } else {
            AgentState::Idle
        };
        let state = if resting.unless_mail {
            StateChange::UnlessMail(state)
        } else {
            StateChange::To(state)
        };
        let Some(card) = self.mate.as_ref().map(|mate| Arc::clone(&mate.card)) else {
            return Ok((state, None));
        };
        let mut tasks = Vec::new();
        for (team, id) in &self.tasks {
            if let Some(task) = self.ports.store.task(self.list(team.clone()), *id).await? {
                tasks.push(TaskReport {
                    id: task.id,
                    subject: task.subject,
                    status: task.status,
                });
            }
        }
        let (reason, error) = match &resting.outcome {
            Outcome::Completed => (IdleReason::Available, None),
            Outcome::Interrupted => (IdleReason::Interrupted, None),
            outcome => (IdleReason::Failed, judged(outcome, By::Shutdown).2),
        };
        let branch = self
            .sub
            .as_ref()
            .and_then(|sub| sub.worktree.as_ref())
            .map(|it| it.branch.clone());
        let answer = text::cut(&resting.text, ANSWER, None).into_owned();
        let report = IdleReport {
            team: card.team.clone(),
            reason,
            error,
            answer,
            tasks,
            branch,
        };
        let said = report.error.as_deref().unwrap_or(&report.answer);
        let summary = text::summary(&format!("{}: {said}", reason.as_str()));
        let body = serde_json::to_string(&report).unwrap_or_default();
        let Identity { realm, agent, .. } = self.identity;
        let leads = self.ports.store.membership(realm, agent).await?;
        let leads = leads
            .iter()
            .any(|mine| mine.team == card.team && mine.lead == agent);
        // A lead that is a teammate itself tells the main agent.
        let to = match leads {
            true => Address::Agent(self.tree.root),
            false => Address::Member {
                team: card.team.clone(),
                name: Name::lead(),
            },
        };
        if let Some(mate) = &mut self.mate {
            mate.report = Some(report);
        }
        let id = MailId::from(Uuid::now_v7());
        let op = Op::Send {
            id,
            to,
            kind: MailKind::Idle,
            summary,
            body,
        };
        Ok((state, Some(Operation { call: None, op })))
    }

    /// A teammate is idle now.
    pub(crate) async fn rested(&mut self) {
        self.tasks.clear();
        let Some(mate) = &mut self.mate else { return };
        if let Some(report) = mate.report.take() {
            let news = mate.card.news(MemberChange::Idle(Box::new(report)));
            self.outlet.emit(EventKind::Member(news)).await;
        }
    }

    /// What a teammate that ends does last.
    pub(crate) fn leaves(&self) -> Option<Operation> {
        let Card { team, name, .. } = (*self.mate.as_ref()?.card).clone();
        Some(Operation {
            call: None,
            op: Op::Leave { team, name },
        })
    }

    /// How many members of its teams do something, if it is the main agent.
    pub(crate) async fn busy_members(&self) -> Result<usize, StoreError> {
        let Identity { realm, agent, .. } = self.identity;
        if self.sub.is_some() || self.birth.is_some() {
            return Ok(0);
        }
        let raising = self.tree.raising.load(Ordering::Acquire);
        Ok(
            raising
                + roster::busy_members(&self.registry, &*self.ports.store, realm, agent).await?,
        )
    }

    /// The main agent's run is over, and its teams did something then. If they do not any more, and nothing has come
    /// of it that begins another run, that is told: whoever waits for the end of everything need not wait.
    pub(crate) async fn look_at_teams(&mut self, work: &mut Work) -> Result<(), StoreError> {
        work.heal = None;
        if !self.machine.is_idle() {
            return Ok(());
        }
        let busy = self.busy_members().await?;
        // What a member sent with its last breath is there by now.
        let mail = self.fetch_mail().await?;
        let came = matches!(&mail, Input::Mail(mail) if !mail.is_empty());
        work.inputs.push_back(mail);
        if came {
            return Ok(());
        }
        match busy + self.going_on() {
            0 => self.outlet.emit(EventKind::Quiet).await,
            _ => work.heal = Some(self.ports.clock.sleep(HEAL)),
        }
        Ok(())
    }

    /// A teammate does nothing though no mail says so: the main agent may wait for that.
    pub(crate) fn quiet_again(&self) {
        self.registry.nudge(self.tree.root, About::Settle);
    }

    /// A person's first words, with the team that is to be raised for them.
    pub(crate) fn make_team(
        &mut self,
        name: Name,
        declared: &TeamPlan,
        words: Vec<ContentBlock>,
    ) -> Input {
        let (model, cwd) = (self.model.clone(), self.setup.workspace.cwd.clone());
        let lead = self.identity.agent;
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

    /// What posse has to tell the main agent of its teams.
    pub(crate) fn hear_notices(&mut self) {
        if self.sub.is_none() {
            self.tree
                .take_notices()
                .into_iter()
                .for_each(|notice| self.machine.tell(notice));
        }
    }

    /// The main agent is done, and nothing is left to do: its teammates end with it.
    pub(crate) async fn dismiss(&mut self) {
        if self.sub.is_some() {
            return;
        }
        let done = self.completed && self.birth.is_none() && !self.stop.token.is_cancelled();
        if done {
            self.dismiss_idle().await;
        }
        // Who is left here goes on with the session, another time.
        stop::give_up_mates(&self.registry, &self.tree);
    }

    async fn dismiss_idle(&mut self) {
        let me = self.identity.agent;
        // Who is still at work goes on when somebody goes on with the session.
        if !self.busy_members().await.is_ok_and(|busy| busy == 0) {
            return;
        }
        // What cannot be written now is found by whoever goes on with the session.
        let Ok(teams) = roster::teams(&*self.ports.store, self.identity.realm).await else {
            return;
        };
        let mut operations = Vec::new();
        for team in teams.into_iter().filter(|team| has(team, me)) {
            let others = team.members.into_iter().filter(|member| member.agent != me);
            for Member {
                agent, name, held, ..
            } in others
            {
                if stop::stop(&self.registry, agent.uuid(), By::Above { person: false })
                    .await
                    .is_some()
                {
                    continue;
                }
                let id = MailId::from(Uuid::now_v7());
                let (to, kind) = (Address::Agent(agent), MailKind::Dismissal);
                let (summary, body) = (String::from("the session is over"), String::new());
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
                ..self.new_step()
            };
            let _ = self.ports.store.commit(step).await;
        }
    }
}
