//! Spawning: every agent that another one starts comes through here, and every limit is checked
//! here.
//!
//! A spawn goes through these steps:
//! 1. [`route()`](crate::session::route::route) decides which agent the call asks for.
//! 2. The limits are checked: depth, budget, memory, number of live agents.
//! 3. Hooks may refuse it, or add to what it is told. If the agent is isolated, its worktree is made, under a guard that gives it back on failure.
//! 4. Terms, rights and model are derived from the parent's; a child never has more rights.
//! 5. The limits are checked again, because making a worktree takes time.
//! 6. The agent is created and its first step committed. Only then does the call get an answer.

use std::sync::Arc;

use posse_port::store::{CallKey, Origin};
use posse_port::tool::Workspace;
use posse_port::worktree::Wanted;
use posse_protocol::{AgentId, Cost, Name, Notification, PermissionMode, Takes, Team};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::hooked_worktree::WorktreeHooks;
use crate::definition::agent_type::{Definition, Isolation};
use crate::definition::model_choice as model;
use crate::definition::model_choice::ModelPreference;
use crate::definition::output_schema::OutputSchema;
use crate::definition::spawning::Spawning;
use crate::definition::teammate::{TeamIdentity, TeammateTerms};
use crate::definition::terms::{Granted, Terms};
use crate::govern::{Account, Ask};
use crate::live::registry::{By, LiveAgent, Registry};
use crate::live::run::Run;
use crate::live::session::Session;
use crate::live::{lookup, roster, setup, stop};
use crate::prompt;
use crate::prompt::agent_tool::AgentInput;
use crate::session::create::{Joins, Plan};
use crate::session::error::SpawnError;
use crate::session::factory::Factory;
use crate::session::limits::Situation;
use crate::session::memory::Loaded;
use crate::session::route::{Teams, Teamwork, route};
use crate::session::servers;
use crate::session::workspace::workspace;
use crate::session::worktree_guard::WorktreeGuard;
use crate::session::{create, limits, memory, start_hooks};

/// A request to start an agent.
pub(crate) struct SpawnRequest {
    /// The agent that starts it.
    pub(crate) by: AgentId,
    /// The call by which it is started: after a crash, the child is found by it.
    pub(crate) key: CallKey,
    /// The model's id of that call.
    pub(crate) call: String,
    /// Input of the Agent tool, or what stands in for it.
    pub(crate) input: AgentInput,
    /// Rules that a skill adds to its rights.
    pub(crate) granted: Granted,
    /// Settings of a declared teammate.
    pub(crate) role: Option<RoleOptions>,
}

/// Settings of a declared teammate that a call of the Agent tool cannot express.
pub(crate) struct RoleOptions {
    /// Role in the declared team.
    pub(crate) role: String,
    /// Roles whose tasks it takes; none for its own role and tasks without a role.
    pub(crate) takes: Option<Vec<String>>,
    /// Permission mode, if it is not the type's.
    pub(crate) mode: Option<PermissionMode>,
    /// Budget for it and all that it starts.
    pub(crate) budget: Option<Cost>,
}

/// A run that a call waits for. Dropped while it is held, it tells the run to end.
pub(crate) struct RunGuard {
    registry: Arc<Registry>,
    /// Its run.
    pub(crate) run: Arc<Run>,
    /// True if nobody can write to it after its answer.
    pub(crate) one_shot: bool,
    /// Its identity in its team, if it is a teammate.
    pub(crate) teammate: Option<Arc<TeamIdentity>>,
    /// True if it submits a plan first.
    pub(crate) plan: bool,
    /// The agent that waits.
    by: AgentId,
    /// False once the run may outlive the guard.
    held: bool,
}

impl RunGuard {
    /// Releases the run: it continues in the background, or is over.
    pub(crate) fn off(mut self) {
        self.held = false;
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        if self.held {
            stop::abandon(&self.registry, &self.run, self.by);
        }
    }
}

/// Starts an agent, or returns why not. When this returns, the agent is durable.
pub(crate) async fn spawn(
    factory: &Arc<Factory>,
    request: SpawnRequest,
) -> Result<RunGuard, SpawnError> {
    let by = request.by;
    let parent = factory
        .registry
        .live_agent(by)
        .ok_or(SpawnError::StarterEnded)?;
    let (plan, worktree_guard, situation) = plan(factory, request, &parent).await?;
    let (registry, one_shot) = (Arc::clone(&factory.registry), plan.terms.one_shot);
    // Checked again: others may have been started while its worktree was made.
    let live = factory.registry.population(plan.session.root);
    limits::check(
        &Situation { live, ..situation },
        &parent.session.setup.spawning,
    )?;
    if plan.joins.is_some() {
        let plans = plan
            .terms
            .teammate
            .as_ref()
            .is_some_and(|teammate| teammate.plan);
        let (run, team_identity) = create::create_teammate(factory, plan, worktree_guard).await?;
        return Ok(RunGuard {
            registry,
            run,
            one_shot,
            teammate: Some(team_identity),
            plan: plans,
            by,
            // A teammate outlives the call that started it.
            held: false,
        });
    }
    let run = create::create_sub_agent(factory, plan, worktree_guard).ok_or(SpawnError::Stopped)?;
    let guard = RunGuard {
        registry,
        run: Arc::clone(&run),
        one_shot,
        teammate: None,
        plan: false,
        by,
        held: true,
    };
    // The guard exists before the wait: if the call is dropped meanwhile, the child is stopped.
    run.is_born()
        .await
        .map_err(|end| SpawnError::Unborn(end.error.clone().unwrap_or_default()))?;
    Ok(guard)
}

/// Plans the agent that a request asks for, if the limits allow it.
async fn plan(
    factory: &Arc<Factory>,
    request: SpawnRequest,
    parent: &LiveAgent,
) -> Result<(Plan, WorktreeGuard, Situation), SpawnError> {
    let SpawnRequest {
        by,
        key,
        call,
        input,
        granted,
        role,
    } = request;
    let (session, spawning) = (Arc::clone(&parent.session), &parent.session.setup.spawning);
    if parent.fork {
        return Err(SpawnError::Fork);
    }
    let types = setup::startable(&session.setup);
    let teams = teams_for(factory, parent, by, &input).await?;
    let route = route(
        &input,
        &types,
        spawning.background,
        setup::forking(&session.setup),
        &teams,
    )?;
    // Read once: when the parent's reply ends, the fork point is gone.
    let fork_point = factory.registry.fork_point(by).filter(|_| route.fork);
    if fork_point
        .as_ref()
        .is_some_and(|fork_point| fork_point.is_fork())
    {
        return Err(SpawnError::Fork);
    }
    let depth = parent.depth + 1;
    let account = parent.account.open(
        limits::budgets(spawning, role.as_ref().and_then(|role| role.budget)),
        factory.ports.clock.now(),
    );
    let situation = Situation {
        frozen: factory.registry.is_frozen(by),
        depth,
        exhausted: exhausted(factory, &account),
        memory: factory.ports.memory.available(),
        live: factory.registry.population(session.root),
    };
    // Before the name and the worktree: what cannot be started must not leave a checkout to remove.
    limits::check(&situation, spawning)?;
    if let Some(name) = input.name.as_ref().filter(|_| route.team.is_none()) {
        name_is_free(factory, parent, name).await?;
    }
    let agent = AgentId::within(parent.session.realm, Uuid::now_v7());
    let of_hooks = start_hooks::run(factory, parent, agent, &route.definition.name).await?;
    let worktree_guard = worktree_guard(factory, agent, parent, route.isolation).await?;
    let mut terms = match &fork_point {
        Some(fork_point) => fork_point.terms(),
        None if route.fork => return Err(SpawnError::ReplyEnded),
        None => Terms::of(&route.definition),
    };
    terms.effort = route.effort.or(parent.effort);
    let joins = route
        .team
        .map(|work| teammate(work, &mut terms, &route.definition, role));
    terms.grant(granted);
    terms.schema = route
        .output_schema
        .as_ref()
        .map(|output_schema| Arc::new(output_schema.schema().clone()));
    let notes = remembered(&route.definition, &mut terms).await;
    let workspace = workspace(parent, input.cwd.as_deref(), &worktree_guard, &mut terms)?;
    let place = place(&session, &worktree_guard, &workspace, route.fork);
    let asked = route.output_schema.as_ref().map(OutputSchema::asked);
    let rights = parent
        .rights
        .child(terms.mode, workspace)
        .map_err(|outside| SpawnError::Outside(outside.to_string()))?;
    terms.give(&rights)?;
    let with = (Some(&terms), Some(&*route.definition));
    let servers = servers::connect(factory, &session, agent, &rights, with);
    servers::ready(factory, servers.as_ref(), &route.definition).await?;
    let preference = ModelPreference {
        forced: spawning.forced_model.as_deref(),
        call: input.model.as_deref(),
        definition: route.definition.model.as_deref(),
        usual: spawning.usual_model.as_deref(),
    };
    let model = match &fork_point {
        Some(_) => parent.model.clone(),
        None => model::resolve(
            &preference,
            &parent.model,
            rights.mode(),
            &*factory.ports.model,
        ),
    };
    let label = input
        .name
        .as_ref()
        .map_or_else(|| route.definition.label(), ToString::to_string);
    let plan = Plan {
        agent,
        path: path(&parent.path, &label, key),
        origin: Origin {
            parent: by,
            call: key,
            call_id: call,
            agent_type: route.definition.name.clone(),
            // The roster has a teammate's name; the store may have added a number to it.
            name: input.name.filter(|_| joins.is_none()),
            description: input.description,
            terms: terms.to_keep()?,
        },
        told: [
            route.definition.initial_prompt.clone(),
            asked,
            place,
            of_hooks,
        ]
        .into_iter()
        .flatten()
        .collect(),
        notes,
        output_schema: route.output_schema,
        definition: route.definition,
        fork_point,
        background: route.background,
        prompt: input.prompt,
        model,
        account,
        session,
        depth,
        rights,
        terms,
        joins: joins.map(Box::new),
        servers,
    };
    Ok((plan, worktree_guard, situation))
}

/// Returns the teams of the agent that starts a named agent. The store is not asked for plain
/// sub-agents.
async fn teams_for(
    factory: &Arc<Factory>,
    parent: &LiveAgent,
    by: AgentId,
    input: &AgentInput,
) -> Result<Teams, SpawnError> {
    let teammate = parent.teammate.is_some();
    if input.name.is_none() && input.team_name.is_none() && input.mode.is_none() {
        return Ok(Teams {
            of: Vec::new(),
            teammate,
        });
    }
    let mine = factory
        .ports
        .store
        .membership(parent.session.realm, by)
        .await?;
    let mut of: Vec<Name> = mine.into_iter().map(|membership| membership.team).collect();
    of.dedup();
    Ok(Teams { of, teammate })
}

/// Makes a worktree for an agent that needs one.
async fn worktree_guard(
    factory: &Arc<Factory>,
    agent: AgentId,
    parent: &LiveAgent,
    isolation: Option<Isolation>,
) -> Result<WorktreeGuard, SpawnError> {
    let made = match isolation {
        None => None,
        Some(Isolation::Worktree) => {
            let Spawning { base, dirty, .. } = parent.session.setup.spawning;
            let from = parent.rights.workspace().cwd.clone();
            let hooks = WorktreeHooks {
                ports: &factory.ports,
                session: &parent.session,
                rights: &parent.rights,
                agent,
            };
            let made = match hooks.make(&from, parent.stop.token.child_token()).await {
                Some(made) => made.map_err(|why| SpawnError::Worktree(why.to_string()))?,
                None => {
                    let wanted = Wanted {
                        agent,
                        from,
                        base,
                        dirty,
                    };
                    let made = factory.ports.worktrees.make(wanted).await;
                    made.map_err(SpawnError::Worktree)?
                }
            };
            Some(made)
        }
    };
    Ok(WorktreeGuard {
        factory: Arc::clone(factory),
        made,
        agent,
        session: Arc::clone(&parent.session),
        rights: parent.rights.clone(),
    })
}

/// Returns which budget is exhausted: one that could not pay even the smallest call.
fn exhausted(factory: &Arc<Factory>, account: &Account) -> Option<String> {
    let free = |_: u64, _: u32| Some(posse_protocol::Cost::default());
    let ask = Ask {
        input: 1,
        output: 1,
        least: 1,
        price: &free,
    };
    match account.reserve(&ask, factory.ports.clock.now()) {
        // If only calls in progress are in the way, the new agent waits for them like any other.
        Err(exceeded) if !exceeded.may_pass() => Some(exceeded.to_string()),
        // The reservation is dropped, and so given back, at once.
        Ok(_) | Err(_) => None,
    }
}

/// Checks that no agent of the realm has a name and no teammate has or had it. A name is given
/// once: mail for its first bearer must reach nobody else.
async fn name_is_free(
    factory: &Arc<Factory>,
    parent: &LiveAgent,
    name: &Name,
) -> Result<(), SpawnError> {
    let found = lookup::named(&*factory.ports.store, parent.session.realm, name).await?;
    if let Some(other) = found {
        return Err(SpawnError::NameOfAgent {
            name: name.clone(),
            agent: other.agent,
        });
    }
    let teams = roster::teams(&*factory.ports.store, parent.session.realm).await?;
    match teams.iter().find(|team| has_or_had(team, name)) {
        Some(team) => Err(SpawnError::NameOfMember {
            name: name.clone(),
            team: team.name.clone(),
        }),
        None => Ok(()),
    }
}

/// Returns true if a member has or had a name.
fn has_or_had(team: &Team, name: &Name) -> bool {
    team.former.contains(name) || team.members.iter().any(|member| member.name == *name)
}

/// Returns how a teammate joins, and writes the same into its terms.
fn teammate(
    work: Teamwork,
    terms: &mut Terms,
    kind: &Definition,
    role: Option<RoleOptions>,
) -> Joins {
    let declared = role.as_ref().and_then(|role| role.mode);
    let Teamwork { team, name, plan } = work;
    let then = declared
        .or(terms.mode)
        .filter(|mode| *mode != PermissionMode::Plan);
    let budget = role.as_ref().and_then(|role| role.budget);
    terms.teammate = Some(TeammateTerms {
        team: team.clone(),
        plan,
        then,
        budget,
    });
    terms.mode = if plan {
        Some(PermissionMode::Plan)
    } else {
        declared.or(terms.mode)
    };
    // Others write to a teammate as long as it lives.
    terms.one_shot = false;
    let word = role
        .as_ref()
        .map_or_else(|| kind.name.clone(), |role| role.role.clone());
    let takes = role.as_ref().and_then(|role| role.takes.clone());
    let takes = match takes {
        Some(roles) => Takes::Only {
            unmarked: false,
            roles,
        },
        None => Takes::Only {
            unmarked: true,
            roles: vec![word],
        },
    };
    Joins {
        team,
        name,
        role: role.map(|role| role.role),
        takes,
        budget,
    }
}

/// Loads the notes that agents of a type keep, if they keep any.
async fn remembered(kind: &Definition, terms: &mut Terms) -> Option<String> {
    let memory = kind.memory.clone()?;
    let look = move || memory::load(&memory);
    // Loading blocks on files. If it panics, the agent starts without notes.
    let Loaded { text, directory } = tokio::task::spawn_blocking(look).await.ok()?;
    directory
        .into_iter()
        .for_each(|directory| terms.keep_notes(directory));
    Some(text)
}

/// Returns what an agent is told about its directory, if it is not the session's. A fork knows what
/// its parent knows.
fn place(
    session: &Session,
    worktree_guard: &WorktreeGuard,
    workspace: &Workspace,
    fork: bool,
) -> Option<String> {
    match &worktree_guard.made {
        Some(made) if fork => Some(prompt::moved(made, &workspace.cwd)),
        None if fork => None,
        Some(made) => Some(prompt::worktree(made, &workspace.cwd)),
        None => (workspace.cwd != session.rights.workspace().cwd)
            .then(|| prompt::elsewhere(&workspace.cwd)),
    }
}

/// Returns the agent's path in the session. The call's position makes it unique below its parent.
fn path(above: &str, label: &str, key: CallKey) -> String {
    let CallKey { seq, ordinal } = key;
    if ordinal == 0 {
        format!("{above}/{label}-{seq}")
    } else {
        format!("{above}/{label}-{seq}.{ordinal}")
    }
}

/// Waits for a run; none if it continues in the background. If the call is cancelled, the run is
/// stopped.
pub(crate) async fn follow(
    factory: &Arc<Factory>,
    by: AgentId,
    guard: RunGuard,
    cancel: &CancellationToken,
) -> Option<Arc<Notification>> {
    let run = Arc::clone(&guard.run);
    if run.is_background() {
        guard.off();
        return None;
    }
    let parent = factory.registry.live_agent(by);
    let patience = parent.and_then(|parent| parent.session.setup.spawning.auto_background);
    let auto = async {
        match patience {
            Some(patience) => factory.ports.clock.sleep(patience).await,
            None => std::future::pending().await,
        }
    };
    let end = tokio::select! {
        // Cancellation first: a call that must end stops its run even if that has just detached.
        biased;
        () = cancel.cancelled() => {
            stop::stop(&factory.registry, run.facts.task, By::Agent(by)).await;
            Some(run.ended().await)
        }
        end = run.let_go() => end,
        () = auto => {
            factory.registry.detach(&run);
            // The run may have ended at this moment instead; then there is a result after all.
            run.let_go().await
        }
    };
    guard.off();
    end
}
