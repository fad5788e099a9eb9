//! Carries out a decision: first the commit, then the effects.
//!
//! After a crash between the two, the store has the step and nothing of the effects happened; the
//! process that resumes the agent settles what they would have done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use posse_port::model::Encoded;
use posse_port::store::{
    AgentState, CallKey, Committed, Done, OpResult, StateChange, Step, StoreError,
};
use posse_port::tool::{Subject, ToolContext, ToolError};
use posse_protocol::{Entry, EntryKind, EventKind, Message, Outcome, RunEnd};

use crate::agent::actor::lead::HEAL;
use crate::agent::actor::tasks::OwnTasks;
use crate::agent::actor::work::{RanTool, RunTime, Work};
use crate::agent::actor::{
    Actor, GRACE, Identity, LONG_GRACE, SubAgent, answered, call, fork, hooks, instructions, lead,
    marker, model, questions, report, shells, skills, sub_agent, tasks, teammate, wall_ms,
};
use crate::agent::host_gate::{CallHosts, HostsOf};
use crate::agent::step::{Commit, Decision, Draft, Effect, Input, OpenCalls, ToolRun, place};
use crate::definition::agent_type::FORK;
use crate::govern;
use crate::history::Part;
use crate::history::loaded;
use crate::history::loaded::LoadedTools;
use crate::hook::HookEvent;

/// What follows a commit.
#[derive(Clone, Copy)]
enum Following {
    /// A model call, whose worst case is part of the step.
    ModelCall,
    /// Anything else.
    Other,
}

impl Actor {
    /// Commits a decision and carries out its effects. If the commit fails, no effect happens.
    pub(super) async fn carry_out(
        &mut self,
        decision: Decision,
        work: &mut Work,
    ) -> Result<(), StoreError> {
        let (ends, calls_model) = (decision.ends_run(), decision.calls_model());
        let Decision { mut commit, after } = decision;
        commit.charges.append(&mut self.spending.owed);
        if self.machine.waits() {
            // An agent that waits for others must not keep the permit that they may need.
            self.spending.permit = None;
        }
        if call::needs_permit(self) && calls_model {
            call::try_take_permit(self, work);
            if self.spending.permit.is_none() {
                // Part of the same commit, so that people see who waits for a permit without
                // another write.
                commit.state = Some(call::queued_state(self));
                self.spending.told_queued = true;
            }
        }
        let resting = commit.resting.is_some();
        let unless_mail = commit
            .closing
            .as_ref()
            .is_some_and(|closing| closing.unless_mail)
            || commit
                .resting
                .as_ref()
                .is_some_and(|resting| resting.unless_mail);
        let own = OwnTasks::of(&commit.operations);
        // Asked before the commit: what a member sends when it becomes idle is then found by the
        // commit as mail.
        let busy = if ends {
            lead::busy_members(self).await?
        } else {
            0
        };
        lead::note_team(self, &commit.operations);
        let calls: Vec<Option<CallKey>> = commit
            .operations
            .iter()
            .map(|operation| operation.call)
            .collect();
        let following = match calls_model {
            true => Following::ModelCall,
            false => Following::Other,
        };
        let asked = questions::complete(self, &mut commit).await?;
        let entries = match hooks::has_any(self, work) {
            true => commit.entries.clone(),
            false => Vec::new(),
        };
        let committed = self.commit(commit, work.time.began, following).await?;
        hooks::on_entries(self, &entries, work);
        questions::on_asked(self, asked, work).await;
        tasks::note_tasks(self, own, &committed.results);
        self.tell_operated(&calls, committed.results, work);
        if resting && !committed.mail_waits {
            teammate::on_idle(self).await;
        }
        // Mail that came with the end of a main agent's run begins another, so it must not seem
        // done.
        self.inbox.waits = self.role.is_main() && committed.mail_waits;
        if self.inbox.waits {
            self.expect_mail();
        }
        if unless_mail {
            work.inputs.push_back(Input::Settled {
                mail_waits: committed.mail_waits,
            });
            if committed.mail_waits {
                // The wake-up for this mail may have been handled before the commit found it.
                let mail = self.fetch_mail().await?;
                work.inputs.push_back(mail);
            }
        }
        // Only now, in order: everything before was durable first.
        for effect in after {
            self.effect(effect, busy, work).await?;
        }
        Ok(())
    }

    /// Carries out one effect.
    async fn effect(
        &mut self,
        effect: Effect,
        busy: usize,
        work: &mut Work,
    ) -> Result<(), StoreError> {
        match effect {
            Effect::Look { claim } => {
                let found = tasks::check_tasks(self, claim).await?;
                // Before all other inputs: until it is handled, the machine counts as looking.
                work.inputs.push_front(found);
            }
            Effect::Raise => Arc::clone(&self.lifecycle).start_declared_members(&self.session),
            Effect::SetMode(mode) => self.machine.rights().set_mode(mode),
            Effect::AskAgain(left) => questions::ask_again(self, left, work).await?,
            Effect::Emit(kind) => {
                sub_agent::note_call(self, &kind, work.time.began);
                self.sink.emit(kind).await;
            }
            Effect::Begin => {
                work.timers.heal = None;
                work.timers.quiet = None;
                self.machine.book(&std::mem::take(&mut work.hooks.before));
                work.time = RunTime::since(self.ports.clock.now());
                self.sink.emit(EventKind::Started).await;
                teammate::on_run_started(self).await;
            }
            Effect::CallModel => call::admit(self, work).await,
            Effect::Compact(compaction_request) => {
                work.compaction_request = Some(compaction_request);
                call::admit(self, work).await;
            }
            Effect::AbortModel => call::abort(self, work),
            Effect::Run(run) => {
                work.hosts.retain(|key, _| key.seq == run.key.seq);
                if matches!(&run.subject, Subject::Starts { agent } if agent == FORK) {
                    // Registered before the tool runs, which looks for it when it spawns.
                    let branch = fork::fork_point(self);
                    self.registry
                        .set_fork_point(self.identity.agent, Some(branch));
                }
                self.run_tool(work, run);
            }
            Effect::Hook(request) => hooks::run(self, *request, work),
            Effect::AbortHooks => work.hooks.running.cancel(),
            Effect::StartRun(id) => shells::start(self, id, work),
            Effect::Delegate(key) => skills::delegate(self, key, work),
            Effect::AbortDelegate => work.skills.stop(),
            Effect::AbortCalls => {
                let grace = if self
                    .machine
                    .open_calls()
                    .is_some_and(OpenCalls::awaits_others)
                {
                    LONG_GRACE
                } else {
                    GRACE
                };
                work.calls.cancel();
                work.timers.grace = Some(self.ports.clock.sleep(grace));
            }
            Effect::End(ended) => {
                // A sub-agent has one run. Its result is reported when nothing of the run is left.
                work.open &=
                    self.role.is_main() || self.role.is_teammate() && !self.machine.is_leaving();
                self.spending.permit = None;
                self.machine.rights().withdraw();
                work.completed = ended.outcome == Outcome::Completed;
                hooks::on_run_ended(self, &ended.outcome, &ended.run.text, work);
                hooks::wait_for_quiet(self, work);
                work.timers.heal = (busy > 0).then(|| self.ports.clock.sleep(HEAL));
                let event = report::run_ended(self, *ended, work, busy);
                self.sink.emit(event).await;
            }
            Effect::Refuse(outcome) => {
                let mut spent = Vec::new();
                govern::add(&mut spent, &std::mem::take(&mut work.hooks.before));
                let end = RunEnd {
                    spent,
                    live: report::live_runs_and_mail(self),
                    ..RunEnd::of(outcome)
                };
                self.sink.emit(EventKind::Ended(Box::new(end))).await;
            }
        }
        Ok(())
    }

    /// Tells tools the results of their operations, and revives agents that got mail and live
    /// nowhere.
    fn tell_operated(&self, calls: &[Option<CallKey>], results: Vec<OpResult>, work: &mut Work) {
        let mut by_call: BTreeMap<CallKey, Vec<OpResult>> = BTreeMap::new();
        for (call, result) in calls.iter().zip(results) {
            if let Ok(Done::Sent(receipts)) = &result {
                for receipt in receipts.iter().filter(|receipt| !receipt.held) {
                    Arc::clone(&self.lifecycle).mail_for(receipt.to);
                }
            }
            if let Some(key) = call {
                by_call.entry(*key).or_default().push(result);
            }
        }
        for (key, results) in by_call {
            let tool = self
                .machine
                .open_calls()
                .and_then(|calls| calls.tool(key))
                .and_then(|tool| self.setup.tools.get(tool));
            let told = match tool {
                Some(tool) => tool.operated(&results),
                None => Err(ToolError::Tell("the tool is gone".into())),
            };
            let call = self.call_id(key);
            let result = Some(told.map(|output| answered(output, call, work)));
            work.inputs.push_back(Input::CallDone { key, result });
        }
    }

    /// Encodes a commit, stores it, and reports its entries.
    async fn commit(
        &mut self,
        commit: Commit,
        began: Duration,
        following: Following,
    ) -> Result<Committed, StoreError> {
        let unborn = self.birth.is_some() && commit.entries.is_empty();
        if unborn && commit.closing.is_none() {
            // An agent without an entry is not in the store yet: a session that was only opened
            // leaves nothing behind.
            if let (Some(birth), Some(mode)) = (&mut self.birth, commit.mode) {
                birth.mode = mode;
            }
            // Hooks have cost this; it is stored with the first entry.
            self.spending.owed = commit.charges;
            return Ok(Committed::default());
        }
        if unborn || commit.is_empty() {
            return Ok(Committed::default());
        }
        // Looked at before the last step: the fate of its worktree is stored together with its end.
        let closing = match &commit.closing {
            Some(closing) => Some(sub_agent::close_run(self, closing, began).await),
            None => None,
        };
        let rest = match &commit.resting {
            Some(resting) => Some(teammate::idle_report(self, resting).await?),
            None => None,
        };
        let mut messages = Vec::with_capacity(commit.entries.len());
        let mut parts = Vec::with_capacity(commit.entries.len());
        let mut loaded = self.prefix.history.loaded().clone();
        for draft in commit.entries {
            let Draft {
                kind,
                mut message,
                reply,
            } = draft;
            if kind == EntryKind::Compaction {
                loaded = LoadedTools::default();
            }
            let mut brought = None;
            if let Some(loading) = loaded.take(&message) {
                (message, brought) = (Arc::new(loading.message), loading.stored);
            }
            let (head, encoded) = match kind {
                EntryKind::Model => {
                    let next = self.prefix.switch.as_ref().map(|switch| &switch.preamble);
                    let preamble = next.unwrap_or(&self.prefix.preamble).clone();
                    (Some(preamble), self.ports.model.entry(&message))
                }
                _ => self.encode(&message),
            };
            parts.push(Part {
                kind,
                head,
                loaded: brought,
                encoded,
                reply,
            });
            messages.push(message);
        }
        let entries = self.prefix.history.draft(parts);
        // A file counts as read once the model has been told its content.
        let told = entries.iter().any(|entry| entry.kind == EntryKind::Results);
        let seen = if told {
            self.known_files.take_fresh()
        } else {
            Vec::new()
        };
        let born = self.birth.is_some();
        if let Some(servers) = self.advertised.servers.as_ref().filter(|_| born) {
            servers.begin_with(&self.prefix.born.bytes);
        }
        let switches = entries.iter().any(|entry| entry.kind == EntryKind::Model);
        let types = commit.types.or(self.advertised.told.filter(|_| born));
        let worst = match following {
            Following::ModelCall if !entries.is_empty() => call::worst_case(self, &entries),
            _ => None,
        };
        let (reserved, output_cap) = worst.unzip();
        let mut step = Step {
            birth: self.birth.take(),
            entries: entries.clone(),
            calls: commit.calls,
            charges: commit.charges,
            reserved: reserved.map(Box::new),
            seen,
            mail: commit.mail,
            operations: commit.operations,
            runs: commit.runs,
            questions: commit.questions,
            state: commit.state.map(|state| self.state_change(state)),
            mode: commit.mode,
            types,
            ..self.new_step()
        };
        let mut tells = false;
        if let Some(closing) = closing {
            tells = closing.notification.is_some();
            step.state = Some(closing.state);
            step.ended = closing.ended;
            step.operations.extend(teammate::leave_op(self));
            step.operations.extend(closing.notification);
        }
        if let Some((state, report)) = rest {
            step.state = Some(state);
            step.operations.extend(report);
        }
        // Nothing in memory changes before this: if it fails, the agent is what the store says.
        let committed = self.ports.store.commit(step).await?;
        if matches!(following, Following::ModelCall) {
            self.spending.output_cap = output_cap;
        }
        if let Some(Err(refused)) = committed
            .results
            .last()
            .filter(|_| tells && !committed.mail_waits)
        {
            // An end that its starter never hears of would leave it waiting for ever.
            return Err(StoreError::BadStep(format!(
                "its end could not be reported: {refused}"
            )));
        }
        self.advertised.tell(types);
        sub_agent::on_committed(self, committed.mail_waits).await;
        if told && self.prefix.fork_point.take().is_some() {
            self.registry.set_fork_point(self.identity.agent, None);
        }
        for (entry, message) in entries.into_iter().zip(messages) {
            let (seq, kind) = (entry.seq, entry.kind);
            self.prefix.history.push(&entry);
            if kind == EntryKind::Compaction {
                self.prefix.cache_ttl.forget();
                instructions::on_compacted(self);
            }
            let told = Entry {
                seq,
                kind,
                message,
                reply: entry.reply,
            };
            sub_agent::note_entry(self, &told, began);
            self.sink.emit(EventKind::Entry(Box::new(told))).await;
        }
        if switches {
            model::on_stored(self).await?;
        }
        Ok(committed)
    }

    /// Encodes a message. A fork's first entry begins with a head that all siblings share; events
    /// show only the fork's own part, because each of a thousand siblings has an answer to each of
    /// their thousand calls.
    fn encode(&mut self, message: &Message) -> (Option<Encoded>, Encoded) {
        let model = &*self.ports.model;
        let message = loaded::readable(message, model, &self.spending.model);
        match self.prefix.opening.take() {
            Some(branch) => (
                Some(branch.head.clone()),
                model.encode_tail(&message.content),
            ),
            None => (None, model.entry(&message)),
        }
    }

    /// Returns the state change. A main agent becomes idle unless mail waits that begins another
    /// run.
    fn state_change(&self, state: AgentState) -> StateChange {
        if self.role.is_main() && state == AgentState::Idle && self.machine.is_awake() {
            StateChange::UnlessMail(state)
        } else {
            StateChange::To(state)
        }
    }

    /// Returns a step of this agent with the fields that every step has.
    pub(super) fn new_step(&mut self) -> Step {
        let Identity {
            realm,
            agent,
            epoch,
        } = self.identity;
        let starter = self.role.sub_agent_mut().and_then(SubAgent::untold_starter);
        Step {
            starter,
            ..Step::new(realm, agent, epoch, wall_ms(&*self.ports.clock))
        }
    }

    /// Stores a state that does not come from a decision.
    pub(super) async fn tell_state(&mut self, state: AgentState) -> Result<(), StoreError> {
        if self.birth.is_some() {
            return Ok(());
        }
        let step = Step {
            state: Some(StateChange::To(state)),
            ..self.new_step()
        };
        self.ports.store.commit(step).await.map(drop)
    }

    /// Stores what settles a dead process's open calls, before the agent starts. Their results are
    /// what its next call sends: continuing it adds no entry that could keep the reservation.
    pub(crate) async fn settle(&mut self, decision: Decision) -> Result<(), StoreError> {
        let (began, following) = (self.ports.clock.now(), Following::ModelCall);
        self.commit(decision.commit, began, following)
            .await
            .map(drop)
    }

    /// Starts a tool call. It gets copies, because it runs beside the actor.
    fn run_tool(&self, work: &mut Work, run: ToolRun) {
        let ToolRun {
            key,
            call,
            tool: name,
            input,
            subject,
            consent,
            first,
        } = run;
        let act = self.session.message_row.act(&name);
        let tool = self.setup.tools.get(&name);
        let marker = marker(self.identity.agent, key);
        let (workspace, policy) = (
            Arc::clone(&self.setup.workspace),
            self.machine.rights().policy(),
        );
        let place = place(&self.machine, &subject, &consent);
        let of = HostsOf {
            agent: self.identity.agent,
            key,
            marker: &marker,
            subject: &subject,
        };
        let hosts = work.hosts.entry(key).or_insert_with(|| {
            let hosts = CallHosts::new(&self.registry, &self.ports.clock, &of);
            Arc::new(hosts)
        });
        let hosts = Arc::clone(hosts);
        let wants_answer = hooks::has(self, work, HookEvent::PostToolUse);
        let (seen, clock) = (self.known_files.clone(), Arc::clone(&self.ports.clock));
        let files = self.session.setup.spawning.instructions.clone();
        let (touched, near) = (subject.clone(), Arc::clone(&workspace));
        let output = self.sink.output_of(&call);
        work.calls.start(key, move |cancel| async move {
            let _act = act;
            let Some(tool) = tool else {
                return Err(ToolError::Tell(format!("there is no tool {name}")));
            };
            let context = ToolContext {
                key,
                call,
                marker,
                subject,
                workspace,
                seen,
                files: policy,
                hosts,
                place,
                clock,
                first,
                output,
                wants_answer,
                cancel,
            };
            let watch = Arc::clone(&context.clock);
            let begun = watch.now();
            let output = tool.run(input, context).await?;
            let took = watch.now().saturating_sub(begun);
            let about = instructions::about(files, touched, near).await;
            Ok(RanTool {
                output,
                about,
                took,
            })
        });
    }
}
