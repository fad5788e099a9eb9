//! Creates sub-agents and teammates from a plan that has passed every check.
//!
//! The two differ in what makes them durable. A sub-agent is stored with its first step, which its
//! own actor commits; until then nobody is told of it. A teammate is stored by the step that adds
//! it to the roster, together with its prompt as mail, because another process may run it.

use std::sync::Arc;

use posse_permission::Rights;
use posse_port::model::{Preamble, Thinking};
use posse_port::panes::NewPane;
use posse_port::store::{
    AgentState, Birth, Done, Epoch, Greeting, Joining, Op, Operation, Origin, StateChange, Step,
};
use posse_port::text;
use posse_port::tool::Toolbox;
use posse_protocol::{
    AgentId, AgentPlace, Command, ContentBlock, Cost, Event, EventKind, MailId, MemberChange, Name,
    RunFacts, RunKind, Takes,
};
use uuid::Uuid;

use crate::agent::actor::{Identity, SubAgent, Teammate, depart, sub_agent, teammate, wall_ms};
use crate::agent::output::Output;
use crate::definition::agent_type::{Definition, GENERAL_PURPOSE};
use crate::definition::output_schema::OutputSchema;
use crate::definition::skill::{Skill, Values};
use crate::definition::spawning::TeamBackend;
use crate::definition::teammate::TeamIdentity;
use crate::definition::terms::Terms;
use crate::govern::Account;
use crate::history::fork_point::ForkPoint;
use crate::live::run::Run;
use crate::live::servers::AgentServers;
use crate::live::session::{Common, Session};
use crate::live::setup::{loadable, startable_at};
use crate::prompt;
use crate::prompt::advertised::Offer;
use crate::session::assemble;
use crate::session::assemble::{AgentParts, Seed, SubAgentParts};
use crate::session::error::SpawnError;
use crate::session::factory::{Factory, ToolsOf};
use crate::session::team::{panes, workers};
use crate::session::worktree_guard::WorktreeGuard;

/// A sub-agent that is about to be created.
pub(crate) struct Plan {
    /// Its ID.
    pub(crate) agent: AgentId,
    /// Session that it belongs to.
    pub(crate) session: Arc<Session>,
    /// Who started it and by which call, as the store keeps it.
    pub(crate) origin: Origin,
    /// Its type.
    pub(crate) definition: Arc<Definition>,
    /// The parent's fork point, if it is a fork.
    pub(crate) fork_point: Option<Arc<ForkPoint>>,
    /// Terms that hold for its whole life.
    pub(crate) terms: Terms,
    /// Position in the session.
    pub(crate) path: String,
    /// Number of agents above it.
    pub(crate) depth: u32,
    /// Name of its model.
    pub(crate) model: String,
    /// Its rights, derived from its parent's.
    pub(crate) rights: Rights,
    /// Its account, below its parent's.
    pub(crate) account: Account,
    /// Texts placed before its prompt; those that its siblings share come first.
    pub(crate) told: Vec<String>,
    /// Notes that agents of its type kept in earlier sessions.
    pub(crate) notes: Option<String>,
    /// Its task.
    pub(crate) prompt: String,
    /// Schema of its answer.
    pub(crate) output_schema: Option<OutputSchema>,
    /// True if no call waits for it.
    pub(crate) background: bool,
    /// The team that it joins, if it is a teammate.
    pub(crate) joins: Option<Box<Joins>>,
    /// Its servers.
    pub(crate) servers: Option<AgentServers>,
}

/// How a new teammate joins a team.
pub(crate) struct Joins {
    /// Team to join.
    pub(crate) team: Name,
    /// Requested name. The store adds a number if the name is taken.
    pub(crate) name: Name,
    /// Role, if one is declared.
    pub(crate) role: Option<String>,
    /// Roles whose tasks it takes.
    pub(crate) takes: Takes,
    /// Budget, if one is declared.
    pub(crate) budget: Option<Cost>,
}

impl Plan {
    /// Returns the first message. The prompt comes last: siblings share everything before it, and
    /// shared bytes are read from the prompt cache.
    fn first_message(&self) -> Vec<ContentBlock> {
        if self.fork_point.is_some() {
            let directive = prompt::directive(&self.prompt, &self.told);
            return vec![ContentBlock::text(directive)];
        }
        self.told
            .iter()
            .chain([&self.prompt])
            .map(ContentBlock::text)
            .collect()
    }

    /// Returns where a teammate runs. Only this process adds its spending to the session's budget,
    /// so a teammate without a budget of its own stays here if the session has one.
    fn team_backend(&self) -> TeamBackend {
        let team_backend = &self.session.setup.spawning.teams.team_backend;
        let budgeted = self.session.setup.limits.budget.cost.is_some();
        match team_backend {
            TeamBackend::Workers if budgeted && self.budget().is_none() => TeamBackend::Here,
            team_backend => team_backend.clone(),
        }
    }

    /// Returns a teammate's budget, if one is declared.
    fn budget(&self) -> Option<Cost> {
        self.joins.as_ref().and_then(|joins| joins.budget)
    }

    /// Returns the pane to open for a teammate.
    fn pane(&self, team_identity: &TeamIdentity) -> NewPane {
        NewPane {
            session: self.session.root,
            member: self.agent,
            title: team_identity.address(),
            color: team_identity.color.clone(),
            cwd: self.rights.workspace().cwd.clone(),
            budget: self.budget(),
        }
    }

    /// Returns what is known of its run before it begins.
    fn facts(&self) -> RunFacts {
        let Origin {
            parent,
            call_id,
            agent_type,
            name,
            description,
            ..
        } = &self.origin;
        RunFacts {
            task: self.agent.uuid(),
            kind: RunKind::Agent,
            agent_type: agent_type.clone(),
            name: name.clone(),
            description: description.clone(),
            call: call_id.clone(),
            starter: *parent,
            depth: self.depth,
            output_file: self.session.output(self.agent),
            place: Some(Box::new(AgentPlace {
                path: self.path.clone(),
                model: self.model.clone(),
                mode: self.rights.mode(),
                cwd: self.rights.workspace().cwd.clone(),
                branch: self.terms.branch(),
            })),
        }
    }
}

/// Starts a new sub-agent and returns its run; none if its parent may start nothing. The sub-agent
/// is durable with its first step, for which [`Run::is_born`] waits.
pub(crate) fn create_sub_agent(
    factory: &Arc<Factory>,
    plan: Plan,
    worktree_guard: WorktreeGuard,
) -> Option<Arc<Run>> {
    let (agent, depth, mode) = (plan.agent, plan.depth, plan.rights.mode());
    let types = startable_at(depth, &plan.session.setup, &plan.terms);
    let tools = factory.tools.for_agent(
        factory,
        agent,
        &plan.session.setup,
        ToolsOf {
            terms: Some(&plan.terms),
            types: types.as_deref(),
            model: &plan.model,
            has_servers: plan.servers.is_some(),
        },
    );
    let (preamble, warmup, told, offer, segments) = match &plan.fork_point {
        Some(fork_point) => (
            // A fork sends its parent's bytes unchanged: only so are they read from the cache.
            fork_point.preamble.clone(),
            Some(fork_point.warmup()),
            fork_point.told,
            None,
            fork_point.segments.clone(),
        ),
        None => {
            let (types, skills) = (
                types.as_deref().unwrap_or_default(),
                loadable(&plan.session.setup),
            );
            let offer = Offer::of(&tools, types, &skills);
            let told = offer.fingerprint();
            let Common { encoded, warmup } = preamble(factory, &plan, &tools, told);
            (encoded, warmup, told, Some(offer), Vec::new())
        }
    };
    let run = Arc::new(Run::new(plan.facts(), Uuid::now_v7(), plan.background));
    let first = Command::Prompt(plan.first_message());
    let Plan {
        session,
        origin,
        fork_point,
        terms,
        path,
        model,
        rights,
        account,
        prompt,
        output_schema,
        servers,
        ..
    } = plan;
    let name = origin
        .name
        .as_ref()
        .map_or_else(|| path.clone(), ToString::to_string);
    let parent = origin.parent;
    let birth = Birth {
        origin: Some(Box::new(origin)),
        path: path.clone(),
        model: model.clone(),
        dialect: factory.ports.model.dialect().to_owned(),
        mode,
        cwd: rights.workspace().cwd.clone(),
        preamble: preamble.clone(),
        segments: segments.clone(),
    };
    let seed = fork_point.map_or_else(Seed::default, |fork_point| {
        Seed::grown(fork_point, terms.worktree.is_some())
    });
    let turns = terms.turns;
    let identity = Identity {
        realm: session.realm,
        agent,
        epoch: Epoch(1),
    };
    let parts = AgentParts {
        effort: terms.effort,
        told,
        offer,
        terms: Some(Box::new(terms)),
        ..AgentParts::born(identity, birth, factory.supervisor.room_for(agent))
    };
    let output = Output::new(run.facts.output_file.clone());
    let sub = SubAgent::new(Arc::clone(&run), parent, output, prompt);
    let below = SubAgentParts {
        session,
        sub,
        depth,
        rights,
        account,
        tools,
        turns,
        output_schema,
        name,
        teammate: None,
        servers,
    };
    let (mut actor, commands) = assemble::assemble_sub(factory, parts, seed, below)?;
    // Only now does the worktree belong to an agent; on every earlier return the guard gives it
    // back.
    sub_agent::set_worktree(&mut actor, worktree_guard.take());
    actor.spending.warmup = warmup;
    // Cannot fail: nobody else knows the agent yet, so its channel is empty.
    let _ = factory.registry.tell(agent, first);
    assemble::start(factory, (actor, commands));
    Some(run)
}

/// Creates a teammate that runs in this process, in a pane or in a worker. When this returns, it
/// is in the roster, with its prompt in its inbox.
pub(crate) async fn create_teammate(
    factory: &Arc<Factory>,
    plan: Plan,
    worktree_guard: WorktreeGuard,
) -> Result<(Arc<Run>, Arc<TeamIdentity>), SpawnError> {
    let (agent, depth, mode) = (plan.agent, plan.depth, plan.rights.mode());
    let types = startable_at(depth, &plan.session.setup, &plan.terms);
    let tools = factory.tools.for_agent(
        factory,
        agent,
        &plan.session.setup,
        ToolsOf {
            terms: Some(&plan.terms),
            types: types.as_deref(),
            model: &plan.model,
            has_servers: plan.servers.is_some(),
        },
    );
    let (known, skills) = (
        types.as_deref().unwrap_or_default(),
        loadable(&plan.session.setup),
    );
    let offer = Offer::of(&tools, known, &skills);
    let told = offer.fingerprint();
    let Common {
        encoded: preamble,
        warmup,
    } = preamble(factory, &plan, &tools, told);
    // Its prompt is mail. With this guard held, the hint of that mail cannot make this process
    // revive the teammate while it is being created.
    let alive = factory.supervisor.room_for(agent);
    let team_backend = plan.team_backend();
    let team_identity = Arc::new(join(factory, &plan, preamble.clone(), told).await?);
    let run = Arc::new(Run::new(
        RunFacts {
            name: Some(team_identity.name.clone()),
            ..plan.facts()
        },
        Uuid::now_v7(),
        true,
    ));
    let arrival = MemberChange::Joined {
        agent_type: plan.origin.agent_type.clone(),
        model: plan.model.clone(),
        backend: team_identity.backend.clone(),
    };
    let identity = Identity {
        realm: plan.session.realm,
        agent,
        epoch: Epoch(1),
    };
    if !matches!(team_backend, TeamBackend::Here) {
        // The join has made it durable. Another process runs it, so its worktree stays as well.
        run.born();
        worktree_guard.keep();
        let event = Event {
            agent,
            kind: EventKind::Member(team_identity.news(arrival)),
        };
        // Waits for a slow front end, as every start does.
        plan.session.events.send(event).await;
        match &team_backend {
            TeamBackend::Panes(panes) => {
                panes::give_pane(
                    factory,
                    (plan.pane(&team_identity), panes.as_ref()),
                    &plan.session,
                    alive,
                )
                .await;
            }
            _ => workers::leave_to_workers(factory, agent, &plan.session).await,
        }
        return Ok((run, team_identity));
    }
    let Plan {
        session,
        origin,
        terms,
        path,
        model,
        rights,
        account,
        prompt,
        servers,
        ..
    } = plan;
    let turns = terms.turns;
    let parts = AgentParts {
        identity,
        model,
        mode,
        effort: terms.effort,
        path,
        alive,
        born: preamble.clone(),
        preamble,
        segments: Vec::new(),
        birth: None,
        told,
        offer: Some(offer),
        unborn: None,
        terms: Some(Box::new(terms)),
    };
    let output = Output::new(run.facts.output_file.clone());
    let sub = SubAgent::new(Arc::clone(&run), origin.parent, output, prompt);
    let teammate = Some(Teammate::new(Arc::clone(&team_identity), arrival));
    let (name, output_schema) = (team_identity.address(), None);
    let below = SubAgentParts {
        session,
        sub,
        depth,
        rights,
        account,
        tools,
        turns,
        output_schema,
        name,
        teammate,
        servers,
    };
    let (mut actor, commands) = assemble::assemble_sub(factory, parts, Seed::default(), below)
        .ok_or(SpawnError::Stopped)?;
    sub_agent::set_worktree(&mut actor, worktree_guard.take());
    actor.spending.warmup = warmup;
    // It is durable by now: the process that takes it next finds its prompt in the inbox.
    if let Err(error) = teammate::welcome(&mut actor).await {
        depart::give_back(actor).await;
        return Err(error.into());
    }
    // The hint of its prompt came while it was not registered, and was dropped.
    actor.expect_mail();
    assemble::start(factory, (actor, commands));
    Ok((run, team_identity))
}

/// Stores a teammate, its place in the roster and the prompt in its inbox in one transaction, so
/// that a crash cannot leave a member that has nothing to do.
async fn join(
    factory: &Arc<Factory>,
    plan: &Plan,
    preamble: posse_port::model::Encoded,
    told: Option<u64>,
) -> Result<TeamIdentity, SpawnError> {
    let Some(Joins {
        team,
        name,
        role,
        takes,
        ..
    }) = plan.joins.as_deref()
    else {
        return Err(SpawnError::NoTeam);
    };
    let cwd = plan.rights.workspace().cwd.clone();
    let backend = plan.team_backend().name().to_owned();
    let member = Joining {
        agent: plan.agent,
        agent_type: plan.origin.agent_type.clone(),
        model: plan.model.clone(),
        prompt: plan
            .told
            .iter()
            .chain([&plan.prompt])
            .cloned()
            .collect::<Vec<_>>()
            .join("\n\n"),
        color: plan.definition.color.clone(),
        backend: backend.clone(),
        cwd: cwd.clone(),
        role: role.clone(),
        takes: takes.clone(),
    };
    let birth = Birth {
        origin: Some(Box::new(plan.origin.clone())),
        path: plan.path.clone(),
        model: plan.model.clone(),
        dialect: factory.ports.model.dialect().to_owned(),
        mode: plan.rights.mode(),
        cwd,
        preamble,
        segments: Vec::new(),
    };
    let greeting = Some(Greeting {
        id: MailId::from(Uuid::now_v7()),
        summary: text::summary(&member.prompt),
    });
    let op = Op::Join {
        team: team.clone(),
        name: name.clone(),
        member: Box::new(member),
        greeting,
    };
    let at_ms = wall_ms(&*factory.ports.clock);
    let step = Step {
        birth: Some(Box::new(birth)),
        operations: vec![Operation { call: None, op }],
        state: Some(StateChange::To(AgentState::Created)),
        starter: Some(plan.origin.parent),
        types: told,
        ..Step::new(plan.session.realm, plan.agent, Epoch(1), at_ms)
    };
    let committed = factory.ports.store.commit(step).await?;
    match committed.results.into_iter().next() {
        Some(Ok(Done::Joined { name, color })) => Ok(TeamIdentity {
            team: team.clone(),
            name,
            color,
            takes: takes.clone(),
            backend,
        }),
        Some(Err(refusal)) => {
            // The team refused it after its row was made: the row must not look like an agent at
            // work.
            let state = Some(StateChange::To(AgentState::Killed));
            let step = Step {
                state,
                ..Step::new(plan.session.realm, plan.agent, Epoch(1), at_ms)
            };
            // If this fails too, the refusal is still what the caller needs to know.
            let _ = factory.ports.store.commit(step).await;
            Err(SpawnError::Refused(refusal))
        }
        _ => Err(SpawnError::Unreported),
    }
}

/// Returns the preamble of a new sub-agent. Siblings share it.
fn preamble(factory: &Arc<Factory>, plan: &Plan, tools: &Toolbox, told: Option<u64>) -> Common {
    let Plan {
        definition,
        model,
        terms,
        session,
        notes,
        ..
    } = plan;
    // A tool that its server wants to be known from the beginning is part of the birth.
    let known = plan
        .servers
        .as_ref()
        .map(|servers| servers.known(&session.setup.policy));
    let known = known.unwrap_or_default();
    let names = tools
        .names()
        .into_iter()
        .chain(known.iter().map(|tool| &*tool.name));
    let (effort, names) = (terms.effort, names.collect::<Vec<_>>().join(","));
    let known_print = xxhash_rust::xxh3::xxh3_64(format!("{known:?}").as_bytes());
    let skills = skills_of(definition, session);
    let said = [
        Some(definition.prompt.as_str()),
        notes.as_deref(),
        skills.as_deref(),
    ];
    // Hashed, not copied: the texts may be long, and the key only has to tell them apart.
    let said = said.map(|text| xxhash_rust::xxh3::xxh3_64(text.unwrap_or_default().as_bytes()));
    let team = plan.joins.is_some();
    let key = format!(
        "{}\n{model}\n{effort:?}\n{names}\n{told:?}\n{said:?}\n{team}\n{known_print}",
        definition.name
    );
    session.preamble(key, || {
        let mut system = Vec::new();
        if team {
            let general = session
                .definition(GENERAL_PURPOSE)
                .filter(|_| definition.name != GENERAL_PURPOSE);
            system.extend(general.map(|general| general.prompt.trim_end().to_owned()));
            system.push(prompt::team::rules());
        }
        system.push(definition.prompt.trim_end().to_owned());
        system.extend(skills);
        system.extend(session.setup.spawning.context.iter().cloned());
        system.extend(notes.clone());
        let (model, mut tools, thinking) = (model.clone(), tools.specs(), Thinking::Default);
        tools.extend(known);
        factory.ports.model.preamble(&Preamble {
            model,
            tools,
            system,
            thinking,
            effort,
        })
    })
}

/// Returns the skills that agents of a type begin with. They are the session's, wherever the agent
/// works: all agents of a type share one preamble.
fn skills_of(definition: &Definition, session: &Session) -> Option<String> {
    let skills = session
        .setup
        .spawning
        .skills
        .as_ref()
        .map(|skills| skills.now())
        .unwrap_or_default();
    let forbidden = |skill: &&Arc<Skill>| session.setup.policy.forbids_skill(&skill.name);
    let skills: Vec<_> = skills
        .iter()
        .filter(|skill| !forbidden(skill))
        .cloned()
        .collect();
    let (session, project) = (session.root.to_string(), &session.rights.workspace().cwd);
    let values = Values {
        arguments: "",
        session: &session,
        directory: project,
        project,
        effort: None,
    };
    prompt::skill::preloaded(&definition.skills, &skills, &values)
}
