//! Starts, resumes or forks the agent that was asked for, with everything it needs.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_model::price::PriceList;
use posse_port::Ports;
use posse_port::hooks::HookRunner;
use posse_port::price::Prices;
use posse_port::servers::Servers;
use posse_port::store::{AgentRecord, Store, StoreError};
use posse_port::tool::Workspace;
use posse_protocol::{AgentId, PermissionMode, Usage};
use posse_runtime::definition::instructions::SessionInstructions;
use posse_runtime::definition::output_schema::OutputSchema;
use posse_runtime::definition::spawning::Spawning;
use posse_runtime::definition::spawning::{TeamBackend, Teaming};
use posse_runtime::govern::budget::Budget;
use posse_runtime::live::handle::Agent;
use posse_runtime::live::servers::ServerWatch;
use posse_runtime::live::setup::{AgentProfile, Limits, Setup};
use posse_runtime::prompt::instructions::from_start;
use posse_runtime::runtime::Runtime;
use posse_tools::GitWorktrees;
use tokio::sync::oneshot;

use super::facts::SessionFacts;
use super::hook_watch::LiveHooks;
use super::provider::{self, ChosenModel, ModelFallback};
use super::run_config::{ProcessPurpose, RunConfig, SessionChoice};
use super::trust_gate::TrustGate;
use super::{directories, hooks, own_worktrees, sandbox, servers, store, team_terms, tools};
use super::{launch, panes, prompt, unsupported, waiting_files, worktree_sweep};
use crate::config::hook_programs::ProgramSearch;
use crate::config::search_paths::SearchPaths;
use crate::config::settings::account::AccountSettings;
use crate::config::settings::agents::ImplicitFork;
use crate::config::settings::sandbox::SandboxSettings;
use crate::config::settings::{FlagSettings, Settings};
use crate::config::store_choice;
use crate::config::{caller, environment};
use crate::definitions::attachments::Attachments;
use crate::definitions::instructions::{InstructionSources, MemoryKeeper, ProjectFinder};
use crate::definitions::skills::SkillSources;
use crate::definitions::slash::SlashCommands;
use crate::definitions::{AgentSources, LiveDefinitions, WatchedSources};
use crate::error::Advised;
use crate::output::say;
use crate::select::sessions;

/// The mode that a session does not keep: it must be asked for each time.
const BYPASS: PermissionMode = PermissionMode::BypassPermissions;

/// Number of warnings about definitions that are shown.
const MOST_WARNINGS: usize = 5;

/// An agent that is ready for its first prompt.
pub(crate) struct Started {
    pub(crate) runtime: Runtime,
    pub(crate) agent: Agent,
    pub(crate) facts: SessionFacts,
    pub(crate) store: store::OpenStore,
    /// The agent types that it can start, kept up to date.
    pub(crate) live: LiveDefinitions<AgentSources>,
    /// The skills, kept up to date.
    pub(crate) skills: LiveDefinitions<SkillSources>,
    /// The memory files, kept up to date.
    pub(crate) memory: LiveDefinitions<InstructionSources>,
    /// The hooks of settings, kept up to date.
    pub(crate) hooks: LiveHooks,
    /// The slash commands.
    pub(crate) slash: SlashCommands,
    /// Receives a line if worktrees of ended agents hold work.
    pub(crate) swept: oneshot::Receiver<String>,
    pub(crate) worktrees: GitWorktrees,
}

/// Everything an agent needs, before there is one.
pub(crate) struct SessionContext {
    pub(crate) runtime: Runtime,
    pub(crate) setup: Setup,
    pub(crate) store: store::OpenStore,
    pub(crate) live: LiveDefinitions<AgentSources>,
    pub(crate) skills: LiveDefinitions<SkillSources>,
    /// The memory files, kept up to date.
    pub(crate) memory: LiveDefinitions<InstructionSources>,
    /// The hooks of settings, kept up to date.
    pub(crate) hooks: LiveHooks,
    pub(crate) slash: SlashCommands,
    /// Where the agent works: the session's directory, or the current one.
    pub(crate) cwd: PathBuf,
    settings: Settings,
    /// The session to continue.
    pub(crate) found: Option<AgentRecord>,
    worktrees: GitWorktrees,
    model: String,
    window: Option<u64>,
    key_source: Option<&'static str>,
    retries: u32,
}

impl SessionContext {
    /// Returns the facts about an agent in this context.
    pub(crate) fn facts(
        &self,
        session: AgentId,
        tools: Vec<String>,
        again: String,
    ) -> SessionFacts {
        let policy = &self.settings.policy;
        let types = self.live.catalogue.now();
        let names = types.iter().map(|definition| definition.name.clone());
        let known = self.skills.catalogue.now();
        let loadable = known
            .iter()
            .filter(|skill| skill.for_model && !policy.forbids_skill(&skill.name));
        SessionFacts {
            session,
            again,
            model: self.model.clone(),
            window: self.window,
            cwd: self.cwd.clone(),
            tools,
            agents: names.filter(|name| !policy.forbids_agent(name)).collect(),
            skills: loadable.map(|skill| skill.name.clone()).collect(),
            commands: self.slash.names(),
            bypass_disabled: self.settings.bypass_disabled,
            servers: ServerWatch::default(),
            mode: self.settings.mode,
            key_source: self.key_source,
            retries: self.retries,
            missing_guards: self.settings.unsupported.guards.clone(),
        }
    }
}

/// Starts, resumes or forks the agent that was asked for.
pub(crate) async fn open(config: RunConfig) -> anyhow::Result<Started> {
    let context = session_context(&config).await?;
    let (runtime, setup, mode) = (
        &context.runtime,
        context.setup.clone(),
        context.settings.mode,
    );
    // Only a changed mode is passed on: the stored one needs no step that sets it.
    let changed = context
        .found
        .as_ref()
        .and_then(|session| (session.mode != mode).then_some(mode));
    let agent = match &context.found {
        Some(session) => match config.fork {
            Some(copied) => {
                runtime
                    .fork_session(session.agent, copied, changed, setup)
                    .await?
            }
            None => runtime.resume(session.agent, changed, setup).await?,
        },
        None => {
            let profile = character(&config, &context, mode);
            match config.flags.session_id {
                Some(id) => runtime.start_as(id, &profile, setup),
                None => runtime.start(&profile, setup),
            }
        }
    };
    let unknown = config.flags.tools.iter().flatten();
    let unknown: Vec<&str> = unknown
        // A server may bring its tools later.
        .filter(|name| !agent.tools.contains(name) && !name.starts_with("mcp__"))
        .map(String::as_str)
        .collect();
    if !unknown.is_empty() {
        let names = crate::output::tame(&unknown.join(", "));
        say(&format!("warning: --tools: there is no tool {names} here"));
    }
    let swept = worktree_sweep::start(context.worktrees.clone(), &directories::worktrees()?);
    let short = crate::present::sessions::short(agent.id);
    let again = match &config.team {
        Some(team) => format!("posse team run {team} --resume {short}"),
        None => format!("posse -p --resume {short}"),
    };
    let again = store_choice::in_store(again, &config.store);
    let facts = SessionFacts {
        servers: agent.servers.clone(),
        ..context.facts(agent.id, agent.tools.clone(), again)
    };
    let SessionContext {
        runtime,
        store,
        live,
        skills,
        memory,
        hooks,
        slash,
        worktrees,
        ..
    } = context;
    Ok(Started {
        runtime,
        agent,
        facts,
        store,
        live,
        skills,
        memory,
        hooks,
        slash,
        swept,
        worktrees,
    })
}

/// Opens the store, finds the session, and assembles everything an agent needs.
pub(crate) async fn session_context(config: &RunConfig) -> anyhow::Result<SessionContext> {
    if config.which.is_some() && config.fork.is_none() {
        caller::only_a_person_can("continue a session or host its members")?;
    }
    let here = environment::working_directory()?;
    let meant = store_choice::meant_store(&config.store)?;
    let store = store::OpenStore::at(&meant.place, meant.feed_age)?;
    let found = match &config.which {
        None => None,
        Some(which) => Some(find_session(store.store.as_ref(), which, &here, config).await?),
    };
    if let Some(id) = config.flags.session_id {
        must_be_new(store.store.as_ref(), id).await?;
    }
    let cwd = found.as_ref().map_or(here, |session| session.cwd.clone());
    let mut settings = settings(config, found.as_ref(), &cwd)?;
    let fallback = match &found {
        // The prompt cache that the session has paid for belongs to its model.
        Some(session) => ModelFallback::AgentRecord(session.model.clone()),
        None => {
            let named = settings.model.clone();
            ModelFallback::Settings(named.map(|name| provider::starting_in(settings.mode, name)))
        }
    };
    let RuntimeParts {
        runtime,
        prices,
        worktrees,
        model,
        window,
        key_source,
        retries,
    } = runtime_parts(
        config,
        &store,
        fallback,
        &settings.account,
        &settings.sandbox,
    )?;
    let budgets = settings.agents.budgets;
    // Before any agent exists: a budget that cannot be enforced must not look as if it were.
    affordable(
        &*prices,
        &model,
        &[config.limits.budget, budgets.alone, budgets.subtree],
    )?;
    let SessionParts {
        setup,
        live,
        skills,
        memory,
        hooks,
    } = session_parts(config, &mut settings, cwd.clone())?;
    if let Some(lead) = &config.lead {
        // Before anything is spent: a team without one of its roles would work in vain.
        let place = (cwd.as_path(), settings.agents.base);
        team_terms::startable(&lead.plan, &live.loaded, &worktrees, place)?;
        for told in team_terms::capped(&lead.plan, &settings, &setup.workspace) {
            say(&format!("warning: {told}"));
        }
    }
    let policy = Arc::new(settings.policy.clone());
    let attachments = Attachments::new(Arc::clone(&policy), Arc::clone(&setup.workspace));
    let slash = SlashCommands::new(skills.catalogue.clone(), policy).attaching(attachments);
    Ok(SessionContext {
        runtime,
        setup,
        store,
        live,
        skills,
        memory,
        hooks,
        slash,
        cwd,
        settings,
        found,
        worktrees,
        model,
        window,
        key_source,
        retries,
    })
}

/// What all agents of a process share, whatever their session.
pub(crate) struct RuntimeParts {
    pub(crate) runtime: Runtime,
    prices: Arc<PriceList>,
    worktrees: GitWorktrees,
    model: String,
    window: Option<u64>,
    key_source: Option<&'static str>,
    retries: u32,
}

/// Creates a runtime on a store, with the model that flags, settings or the session choose.
pub(crate) fn runtime_parts(
    config: &RunConfig,
    store: &store::OpenStore,
    fallback: ModelFallback,
    account: &AccountSettings,
    sandbox: &SandboxSettings,
) -> anyhow::Result<RuntimeParts> {
    let policy = provider::patient(account);
    let chosen = config.provider.choose_or(policy, account, fallback)?;
    let callbacks = config.flags.program_hooks.as_ref();
    let callbacks = callbacks.map(|program| Arc::clone(&program.runner));
    let meant = store_choice::meant_store(&config.store)?;
    let sandbox = sandbox::sandbox(sandbox, &[], meant.place.file());
    let processes = tools::processes(sandbox, Vec::new());
    let servers = super::servers::connector(processes.clone());
    let hooks = hooks::runner(processes, callbacks);
    let store = Arc::clone(&store.store);
    RuntimeParts::new(chosen, store, hooks, servers, config.flags.trusts)
}

impl RuntimeParts {
    /// Creates a runtime on a store, with a given model. If `trusts`, git may be run in every
    /// workspace.
    pub(crate) fn new(
        chosen: ChosenModel,
        store: Arc<dyn Store>,
        hooks: Arc<dyn HookRunner>,
        servers: Arc<dyn Servers>,
        trusts: bool,
    ) -> anyhow::Result<Self> {
        let prices = Arc::new(provider::prices()?);
        let window = chosen.model.window_of(&chosen.name);
        let gate = Arc::new(TrustGate { trusts });
        let worktrees = own_worktrees::own_worktrees()?.behind(gate);
        let ports = Ports {
            hooks,
            servers,
            prices: prices.clone(),
            worktrees: Arc::new(worktrees.clone()),
            ..Ports::new(Arc::from(chosen.model), store)
        };
        Ok(Self {
            runtime: Runtime::new(ports),
            prices,
            worktrees,
            window,
            model: chosen.name,
            key_source: chosen.key_source,
            retries: chosen.retries,
        })
    }
}

/// What the agents of one session share.
pub(crate) struct SessionParts {
    pub(crate) setup: Setup,
    pub(crate) live: LiveDefinitions<AgentSources>,
    pub(crate) skills: LiveDefinitions<SkillSources>,
    pub(crate) memory: LiveDefinitions<InstructionSources>,
    pub(crate) hooks: LiveHooks,
}

impl SessionParts {
    /// Returns the parts for members of a session that another process leads, which works in
    /// `cwd`.
    pub(crate) fn of(config: &RunConfig, cwd: &Path) -> anyhow::Result<Self> {
        session_parts(config, &mut settings(config, None, cwd)?, cwd.to_owned())
    }
}

/// Loads the definitions of `cwd` and assembles a session's parts. Guards that do not run are added
/// to what is not supported.
fn session_parts(
    config: &RunConfig,
    settings: &mut Settings,
    cwd: PathBuf,
) -> anyhow::Result<SessionParts> {
    let places = SearchPaths {
        trust: settings.trust.clone(),
        ..config.search_paths(&cwd)
    };
    let live = LiveDefinitions::new(AgentSources::new(places.clone(), config.given.clone()));
    let skills = LiveDefinitions::new(SkillSources::new(places.clone()));
    let declared = hooks::declared(&settings.hooks, &live.loaded, &skills.loaded);
    let search = ProgramSearch::new(&places);
    settings.unsupported.guards = hooks::missing_guards(&declared, &search);
    for told in hooks::missing_programs(&declared, &search) {
        say(&format!("warning: {}", crate::output::tame(&told)));
    }
    unsupported::tell(
        &settings.unsupported,
        &cwd,
        config.flags.without_guards,
        settings.sandbox.enabled,
    )?;
    let workspace = Arc::new(workspace(settings, cwd.clone())?);
    let memory = LiveDefinitions::new(InstructionSources::new(
        places.clone(),
        Arc::new(settings.policy.clone()),
        Arc::clone(&workspace),
    ));
    warn(&live);
    warn(&skills);
    warn(&memory);
    let servers = servers::load(&places, settings, &config.flags.servers);
    waiting_files::tell(&settings.trust);
    let mut setup = setup(config, settings, workspace)?;
    let flag = config.flags.settings.clone();
    let program = config.flags.program_hooks.as_ref();
    let program = program.map(|program| program.hooks.clone());
    let live_hooks = LiveHooks::new(
        settings,
        places.clone(),
        flag,
        program.unwrap_or_default(),
        config.flags.prepares,
    );
    setup.spawning.servers = Arc::new(servers);
    setup.spawning.hooks = Arc::clone(&live_hooks.book);
    setup.spawning.types = live.catalogue.clone();
    setup.spawning.skills = Some(skills.catalogue.clone());
    setup.spawning.context = prompt::surroundings(prompt::PromptParts {
        instead: None,
        more: None,
        cwd: &cwd,
        memory: remembered(&memory),
        day: &today(),
    })
    .into();
    setup.spawning.instructions = Some(Arc::new(SessionInstructions {
        files: memory.catalogue.clone(),
        at_start: memory.catalogue.now(),
        finder: Arc::new(ProjectFinder {
            sources: memory.sources.clone(),
            files: memory.catalogue.clone(),
        }),
        keeper: Arc::new(MemoryKeeper {
            sources: memory.sources.clone(),
        }),
    }));
    Ok(SessionParts {
        setup,
        live,
        skills,
        memory,
        hooks: live_hooks,
    })
}

/// Returns the effective settings, and prints warnings about them.
fn settings(
    config: &RunConfig,
    found: Option<&AgentRecord>,
    cwd: &Path,
) -> anyhow::Result<Settings> {
    let (strictest, usual) = config
        .lead
        .as_ref()
        .map(|lead| (lead.strictest, lead.mode))
        .unwrap_or_default();
    // Bypassing permissions is dropped when a session is resumed: it needs a person's word each
    // time.
    let kept = found
        .map(|session| session.mode)
        .filter(|mode| *mode != BYPASS);
    let flags = FlagSettings {
        allow: config.allow.clone(),
        deny: config.deny.clone(),
        mode: config.mode,
        foreign_mode: config.flags.foreign_mode,
        kept_mode: kept.or(usual),
        strictest,
        model: config
            .provider
            .named()
            .or_else(|| config.lead.as_ref().and_then(|lead| lead.model.clone())),
        additional_directories: config.add_dir.clone(),
        agents: config.agents,
        backend: config.backend,
        settings: config.flags.settings.clone(),
        tools: config.flags.tools.clone(),
    };
    if config.flags.trusts {
        caller::only_a_person_can("trust a workspace")?;
    }
    let mut settings = Settings::load(&config.search_paths(cwd), flags)?;
    if settings.mode == BYPASS {
        caller::only_a_person_can("choose bypassPermissions")?;
    }
    settings.bypass_disabled |= !caller::is_person();
    let details = settings.details.iter().filter(|_| config.verbose);
    let of_flags = config.warnings();
    for warning in of_flags.iter().chain(&settings.warnings).chain(details) {
        say(&format!("warning: {}", crate::output::tame(warning)));
    }
    let was = found
        .filter(|_| config.mode.is_none())
        .map(|session| session.mode);
    was.and_then(|was| changed_mode(was, settings.mode))
        .iter()
        .for_each(|note| say(note));
    Ok(settings)
}

/// Finds the session to continue. Fails if it cannot continue as asked for.
async fn find_session(
    store: &dyn Store,
    which: &SessionChoice,
    here: &Path,
    config: &RunConfig,
) -> anyhow::Result<AgentRecord> {
    let session = match which {
        SessionChoice::Newest => sessions::newest_to_continue(store, here).await?,
        SessionChoice::Id(prefix) => sessions::by_prefix(store, prefix).await?,
    };
    if !session.cwd.is_dir() {
        anyhow::bail!(Advised {
            what: format!(
                "the session's directory {} no longer exists",
                session.cwd.display()
            ),
            advice: "restore it, or start a new session".into(),
        });
    }
    let schema = config
        .flags
        .profile
        .json_schema
        .as_ref()
        .map(OutputSchema::asked);
    if let Some(text) = &schema
        && !has_in_prompt(store, session.agent, text).await?
    {
        anyhow::bail!(Advised {
            what: "a session keeps the JSON Schema it started with".into(),
            advice: "omit --json-schema, or start a new session with it".into(),
        });
    }
    let given = [&config.system_prompt, &config.append_system_prompt];
    for text in given.into_iter().flatten() {
        if !has_in_prompt(store, session.agent, text).await? {
            anyhow::bail!(Advised {
                what: "a session keeps the system prompt it started with".into(),
                advice: "omit --system-prompt and --append-system-prompt, or start a new session"
                    .into(),
            });
        }
    }
    Ok(session)
}

/// Refuses the ID of an existing session for a new one.
async fn must_be_new(store: &dyn Store, id: AgentId) -> anyhow::Result<()> {
    match store.read(id).await {
        Err(StoreError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => anyhow::bail!(Advised {
            what: format!("a session has the ID {id} already"),
            advice: format!("--resume {id} continues it"),
        }),
    }
}

/// Returns true if a text is a block of an agent's system prompt. A program that gives the same
/// text each time does not ask for a change.
async fn has_in_prompt(store: &dyn Store, agent: AgentId, text: &str) -> anyhow::Result<bool> {
    let text = text.trim_end();
    if text.is_empty() {
        return Ok(true);
    }
    let written = serde_json::to_string(text)?;
    let written = &written[1..written.len() - 1];
    let preamble = store.read(agent).await?.preamble;
    let preamble = String::from_utf8_lossy(&preamble.bytes);
    // Blocks are strings of their own, or paragraphs of one string.
    let is_block = |(at, _): (usize, &str)| {
        let (before, after) = (&preamble[..at], &preamble[at + written.len()..]);
        (before.ends_with('"') || before.ends_with("\\n"))
            && (after.starts_with('"') || after.starts_with("\\n"))
    };
    Ok(preamble.match_indices(written).any(is_block))
}

/// Returns a message if a session's mode has changed without being asked for.
fn changed_mode(was: PermissionMode, now: PermissionMode) -> Option<String> {
    if was == now {
        return None;
    }
    let rest = if was == BYPASS {
        "add --permission-mode bypassPermissions to continue in it".to_owned()
    } else {
        format!("the settings say {now}")
    };
    Some(format!("the session was in {was}; {rest}"))
}

/// Refuses a budget in dollars if the model's price is unknown: it could not be enforced.
fn affordable(prices: &dyn Prices, model: &str, budgets: &[Budget]) -> anyhow::Result<()> {
    let wanted = budgets.iter().any(|budget| budget.cost.is_some());
    if wanted && prices.cost(model, &Usage::default()).is_none() {
        anyhow::bail!(Advised {
            what: format!("the price of {model} is unknown, so a budget cannot be enforced"),
            advice:
                "add it to prices.toml in posse's home (`posse help models`), or limit turns or tokens instead"
                    .into(),
        });
    }
    Ok(())
}

/// Returns the memory files that a new agent begins with.
fn remembered(memory: &LiveDefinitions<InstructionSources>) -> Option<String> {
    from_start(&memory.catalogue.now(), memory.sources.managed())
}

/// Returns the directories that the session's agents work in, and warns of missing ones.
pub(crate) fn workspace(settings: &Settings, cwd: PathBuf) -> anyhow::Result<Workspace> {
    let mut roots = vec![cwd.clone()];
    for directory in &settings.additional_directories {
        match directory.canonicalize() {
            Ok(directory) => roots.push(directory),
            Err(error) => {
                let what = format!("warning: {} cannot be added: {error}", directory.display());
                say(&crate::output::tame(&what));
            }
        }
    }
    let home = environment::home().map(|home| home.canonicalize().unwrap_or(home));
    Ok(Workspace {
        roots,
        home,
        ..Workspace::new(cwd, directories::spill()?)
    })
}

/// Returns the setup of the session's agents.
fn setup(
    config: &RunConfig,
    settings: &Settings,
    workspace: Arc<Workspace>,
) -> anyhow::Result<Setup> {
    let mut spawning = spawning(settings);
    spawning.implicit_fork = match settings.agents.implicit_fork {
        ImplicitFork::Off => false,
        ImplicitFork::Interactive => config.purpose == ProcessPurpose::Conversation,
        ImplicitFork::Always => true,
    };
    // Panes are only for teams that a person watches.
    let leads = config.team.is_some();
    let pane_context = panes::PaneContext {
        attended: leads && std::io::stderr().is_terminal(),
        leads,
        counts_tokens: config.limits.budget.tokens.is_some(),
    };
    let team_backend = match config.purpose {
        ProcessPurpose::Host => TeamBackend::Here,
        _ => panes::choose(&settings.teams, pane_context, || launch::launch(config))?,
    };
    spawning.teams = Teaming {
        team_backend,
        deadline: settings.teams.deadline,
        message_notice: settings.teams.message_notice,
        message_limit: settings.teams.message_limit,
    };
    let store = store_choice::meant_store(&config.store)?.place;
    let sandbox = sandbox::sandbox(&settings.sandbox, &settings.env, store.file());
    Ok(Setup {
        tools: match config.which {
            None if config.purpose != ProcessPurpose::Host => {
                tools::tools(settings, sandbox, config.flags.trusts)
            }
            // A resumed model knows the tools it was offered; rules deny each call. A forbidden
            // tool is also needed to end what it left running when its process died.
            _ => tools::all_tools(settings, sandbox, config.flags.trusts),
        },
        policy: Arc::new(settings.policy.clone()),
        workspace,
        limits: Limits {
            compact_at: settings.compact_at,
            repeats: settings.agents.repeats,
            ..config.limits
        },
        approver: config.approver,
        spawning,
        // A front end that sends several prompts waits for as many results.
        joins: false,
        output_schema: config.flags.profile.json_schema.clone(),
    })
}

/// Returns how agents of the session start others. Definitions, context and what depends on the
/// person in front come later.
fn spawning(settings: &Settings) -> Spawning {
    let agents = &settings.agents;
    Spawning {
        forced_model: environment::variable("POSSE_SUBAGENT_MODEL_FORCE"),
        usual_model: environment::variable("POSSE_SUBAGENT_MODEL"),
        base: agents.base,
        dirty: agents.dirty,
        depth: agents.depth,
        running: agents.running,
        background: agents.background,
        auto_background: agents.auto_background,
        budgets: agents.budgets,
        ..Spawning::default()
    }
}

/// Prints the first problems of definitions, so that they do not bury the result.
fn warn<S: WatchedSources>(live: &LiveDefinitions<S>) {
    let trouble: Vec<_> = live.loaded.trouble().collect();
    for remark in trouble.iter().take(MOST_WARNINGS) {
        say(&format!(
            "warning: {}",
            remark.in_a_line(live.sources.cwd())
        ));
    }
    if let Some(more) = trouble
        .len()
        .checked_sub(MOST_WARNINGS)
        .filter(|more| *more > 0)
    {
        let (word, check) = (S::WORD, S::CHECK);
        say(&format!(
            "warning: and {more} more about {word}: `{check}` lists all"
        ));
    }
}

/// Returns the current day in UTC.
fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

/// Returns the profile of a new root agent.
fn character(config: &RunConfig, context: &SessionContext, mode: PermissionMode) -> AgentProfile {
    let of_lead = config
        .lead
        .iter()
        .flat_map(|lead| lead.prompt.iter().map(String::as_str));
    let schema = config
        .flags
        .profile
        .json_schema
        .as_ref()
        .map(OutputSchema::asked);
    let more: Vec<&str> = of_lead
        .chain(config.append_system_prompt.as_deref())
        .chain(schema.as_deref())
        .collect();
    let more = (!more.is_empty()).then(|| more.join("\n\n"));
    let system = prompt::system(prompt::PromptParts {
        instead: config.system_prompt.as_deref(),
        more: more.as_deref(),
        cwd: &context.cwd,
        memory: remembered(&context.memory),
        day: &today(),
    });
    let of_lead = config.lead.as_ref().and_then(|lead| lead.effort);
    let effort = config.flags.profile.effort.or(of_lead);
    AgentProfile {
        model: context.model.clone(),
        system,
        thinking: config.flags.profile.thinking(),
        effort,
        mode,
    }
}

#[cfg(test)]
mod tests {
    use posse_protocol::Cost;

    use super::*;

    #[test]
    fn a_budget_needs_a_price() {
        let prices = posse_model::price::PriceList::built_in().unwrap();
        let money = Budget {
            cost: Some(Cost::from_pico_usd(1)),
            ..Budget::default()
        };
        let tokens = Budget {
            tokens: Some(1),
            ..Budget::default()
        };
        assert!(affordable(&prices, "claude-opus-5-5", &[money]).is_ok());
        assert!(affordable(&prices, "homemade", &[tokens]).is_ok());
        let error = affordable(&prices, "homemade", &[tokens, money]).unwrap_err();
        assert!(
            error
                .downcast_ref::<Advised>()
                .unwrap()
                .advice
                .contains("prices.toml")
        );
    }
}
