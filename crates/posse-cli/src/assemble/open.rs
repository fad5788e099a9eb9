//! Which agent works, and with what: a new one, one that goes on, or a copy.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_model::RetryPolicy;
use posse_model::price::PriceList;
use posse_port::Ports;
use posse_port::clock::SystemClock;
use posse_port::memory::SystemMemory;
use posse_port::model::Thinking;
use posse_port::price::Prices;
use posse_port::store::{AgentRecord, Store};
use posse_port::tool::Workspace;
use posse_protocol::{AgentId, PermissionMode, Usage};
use posse_runtime::definition::spawning::Spawning;
use posse_runtime::definition::spawning::{TeamBackend, Teaming};
use posse_runtime::govern::budget::Budget;
use posse_runtime::live::handle::Agent;
use posse_runtime::live::setup::{AgentProfile, Limits, Setup};
use posse_runtime::runtime::Runtime;
use posse_tools::GitWorktrees;
use tokio::sync::oneshot;

use super::facts::SessionFacts;
use super::provider::{self, ChosenModel, ModelFallback};
use super::run_config::{RunConfig, SessionChoice};
use super::{directories, store, tools};
use super::{launch, panes, prompt, worktree_sweep};
use crate::config::environment;
use crate::config::settings::agents::ImplicitFork;
use crate::config::settings::{FlagSettings, Settings};
use crate::config::store_choice;
use crate::definitions::instructions;
use crate::definitions::skills::SkillSources;
use crate::definitions::slash::SlashCommands;
use crate::definitions::{AgentSources, LiveDefinitions, WatchedSources};
use crate::error::Advised;
use crate::output::say;
use crate::select::sessions;

/// The mode that a session does not keep: it is asked for anew each time.
const BYPASS: PermissionMode = PermissionMode::BypassPermissions;

/// No agent is started if the machine has less memory left than this, in bytes.
const LEAST_MEMORY: u64 = 256 << 20;

/// How many warnings about definitions of agents are told.
const MOST_WARNINGS: usize = 5;

/// An agent that is ready to be told something.
pub(crate) struct Started {
    pub(crate) runtime: Runtime,
    pub(crate) agent: Agent,
    pub(crate) facts: SessionFacts,
    pub(crate) store: store::OpenStore,
    /// The types that it can start, as they change.
    pub(crate) live: LiveDefinitions<AgentSources>,
    /// The skills, as they change.
    pub(crate) skills: LiveDefinitions<SkillSources>,
    /// What can be called by a slash.
    pub(crate) slash: SlashCommands,
    /// Comes if somebody should look at worktrees.
    pub(crate) swept: oneshot::Receiver<String>,
}

/// What an agent stands on, before there is one.
pub(crate) struct SessionContext {
    pub(crate) runtime: Runtime,
    pub(crate) setup: Setup,
    pub(crate) store: store::OpenStore,
    pub(crate) live: LiveDefinitions<AgentSources>,
    pub(crate) skills: LiveDefinitions<SkillSources>,
    pub(crate) slash: SlashCommands,
    pub(crate) cwd: PathBuf,
    settings: Settings,
    /// The session that goes on.
    pub(crate) found: Option<AgentRecord>,
    worktrees: GitWorktrees,
    model: String,
    key_source: Option<&'static str>,
    retries: u32,
}

impl SessionContext {
    /// Returns what can be said of an agent on them.
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
            cwd: self.cwd.clone(),
            tools,
            agents: names.filter(|name| !policy.forbids_agent(name)).collect(),
            skills: loadable.map(|skill| skill.name.clone()).collect(),
            commands: self.slash.names(),
            mode: self.settings.mode,
            key_source: self.key_source,
            retries: self.retries,
        }
    }
}

/// Makes or finds the agent that was asked for.
pub(crate) async fn open(config: RunConfig) -> anyhow::Result<Started> {
    let context = session_context(&config).await?;
    let (runtime, setup, mode) = (
        &context.runtime,
        context.setup.clone(),
        context.settings.mode,
    );
    let changed = context
        .found
        .as_ref()
        .and_then(|session| (session.mode != mode).then_some(mode));
    let agent = match &context.found {
        Some(session) if config.fork => runtime.fork_session(session.agent, changed, setup).await?,
        Some(session) => runtime.resume(session.agent, changed, setup).await?,
        None => runtime.start(
            &character(&config, &context.model, mode, &context.cwd),
            setup,
        ),
    };
    let swept = worktree_sweep::start(context.worktrees.clone(), &directories::worktrees()?);
    let short = crate::present::sessions::short(agent.id);
    let again = match &config.team {
        Some(team) => format!("posse team run {team} --resume {short}"),
        None => format!("posse -p --resume {short}"),
    };
    let again = store_choice::in_store(again, &config.store);
    let facts = context.facts(agent.id, agent.tools.clone(), again);
    let SessionContext {
        runtime,
        store,
        live,
        skills,
        slash,
        ..
    } = context;
    Ok(Started {
        runtime,
        agent,
        facts,
        store,
        live,
        skills,
        slash,
        swept,
    })
}

/// Makes what an agent stands on.
pub(crate) async fn session_context(config: &RunConfig) -> anyhow::Result<SessionContext> {
    let here = environment::working_directory()?;
    let store = store::OpenStore::at(&store_choice::meant_store(&config.store)?.place)?;
    let found = match &config.which {
        None => None,
        Some(which) => Some(find_session(store.store.as_ref(), which, &here, config).await?),
    };
    let cwd = found.as_ref().map_or(here, |session| session.cwd.clone());
    let settings = settings(config, found.as_ref(), &cwd)?;
    let fallback = match &found {
        // The prompt cache that the session has paid for is that model's alone.
        Some(session) => ModelFallback::AgentRecord(session.model.clone()),
        None => ModelFallback::Settings(settings.model.clone()),
    };
    let RuntimeParts {
        runtime,
        prices,
        worktrees,
        model,
        key_source,
        retries,
    } = runtime_parts(config, Arc::clone(&store.store), fallback)?;
    let budgets = settings.agents.budgets;
    affordable(
        &*prices,
        &model,
        &[config.limits.budget, budgets.alone, budgets.subtree],
    )?;
    let SessionParts {
        setup,
        live,
        skills,
    } = session_parts(config, &settings, cwd.clone())?;
    let slash = SlashCommands::new(skills.catalogue.clone(), Arc::new(settings.policy.clone()));
    Ok(SessionContext {
        runtime,
        setup,
        store,
        live,
        skills,
        slash,
        cwd,
        settings,
        found,
        worktrees,
        model,
        key_source,
        retries,
    })
}

/// What all agents of a process stand on, whatever session they are of.
pub(crate) struct RuntimeParts {
    pub(crate) runtime: Runtime,
    prices: Arc<PriceList>,
    worktrees: GitWorktrees,
    model: String,
    key_source: Option<&'static str>,
    retries: u32,
}

/// Makes a runtime on a store, with the model that flags, settings or the session name.
pub(crate) fn runtime_parts(
    config: &RunConfig,
    store: Arc<dyn Store>,
    fallback: ModelFallback,
) -> anyhow::Result<RuntimeParts> {
    let chosen = config
        .provider
        .choose_or(RetryPolicy::default(), fallback)?;
    RuntimeParts::new(chosen, store)
}

impl RuntimeParts {
    /// Makes a runtime on a store, with a model that is chosen.
    pub(crate) fn new(chosen: ChosenModel, store: Arc<dyn Store>) -> anyhow::Result<Self> {
        let prices = Arc::new(provider::prices()?);
        let worktrees = GitWorktrees::new(directories::worktrees()?);
        let ports = Ports {
            model: Arc::from(chosen.model),
            store,
            clock: Arc::new(SystemClock::default()),
            prices: prices.clone(),
            memory: Arc::new(SystemMemory),
            worktrees: Arc::new(worktrees.clone()),
        };
        Ok(Self {
            runtime: Runtime::new(ports),
            prices,
            worktrees,
            model: chosen.name,
            key_source: chosen.key_source,
            retries: chosen.retries,
        })
    }
}

/// What agents of one session get.
pub(crate) struct SessionParts {
    pub(crate) setup: Setup,
    pub(crate) live: LiveDefinitions<AgentSources>,
    pub(crate) skills: LiveDefinitions<SkillSources>,
}

impl SessionParts {
    /// For members of a session that others lead, which works in `cwd`.
    pub(crate) fn of(config: &RunConfig, cwd: &Path) -> anyhow::Result<Self> {
        session_parts(config, &settings(config, None, cwd)?, cwd.to_owned())
    }
}

fn session_parts(
    config: &RunConfig,
    settings: &Settings,
    cwd: PathBuf,
) -> anyhow::Result<SessionParts> {
    let live = LiveDefinitions::new(AgentSources::at(&cwd, config.given.clone()));
    let skills = LiveDefinitions::new(SkillSources::at(&cwd));
    warn(&live);
    warn(&skills);
    let mut setup = setup(config, settings, cwd, &live)?;
    setup.spawning.skills = Some(skills.catalogue.clone());
    Ok(SessionParts {
        setup,
        live,
        skills,
    })
}

/// Returns the settings that hold, with what is to be said about them.
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
    let kept = found
        .map(|session| session.mode)
        .filter(|mode| *mode != BYPASS);
    let flags = FlagSettings {
        allow: config.allow.clone(),
        deny: config.deny.clone(),
        mode: config.mode,
        kept_mode: kept.or(usual),
        strictest,
        model: config
            .provider
            .named()
            .or_else(|| config.lead.as_ref().and_then(|lead| lead.model.clone())),
        additional_directories: config.add_dir.clone(),
        agents: config.agents,
        backend: config.backend,
    };
    let settings = Settings::at(cwd, flags)?;
    let details = settings.details.iter().filter(|_| config.verbose);
    for warning in settings.warnings.iter().chain(details) {
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

async fn find_session(
    store: &dyn Store,
    which: &SessionChoice,
    here: &Path,
    config: &RunConfig,
) -> anyhow::Result<AgentRecord> {
    if config.system_prompt.is_some() || config.append_system_prompt.is_some() {
        anyhow::bail!(Advised {
            what: "a session keeps the system prompt it started with".into(),
            advice: "omit --system-prompt and --append-system-prompt, or start a new session"
                .into(),
        });
    }
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
    Ok(session)
}

/// Returns what is said of a session whose mode is no longer what it was, unasked.
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

/// Refuses a budget in money where the price of the model is not known: it could not be kept.
fn affordable(prices: &dyn Prices, model: &str, budgets: &[Budget]) -> anyhow::Result<()> {
    let wanted = budgets.iter().any(|budget| budget.cost.is_some());
    if wanted && prices.cost(model, &Usage::default()).is_none() {
        anyhow::bail!(Advised {
            what: format!("the price of {model} is unknown, so a budget cannot be enforced"),
            advice:
                "add it to prices.toml in posse's home (docs/models.md), or limit turns or tokens instead"
                    .into(),
        });
    }
    Ok(())
}

fn setup(
    config: &RunConfig,
    settings: &Settings,
    cwd: PathBuf,
    live: &LiveDefinitions<AgentSources>,
) -> anyhow::Result<Setup> {
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
    let mut spawning = spawning(settings, &cwd, live);
    // Who leads a team in front of somebody may have its members seen.
    let leads = config.team.is_some();
    let pane_context = panes::PaneContext {
        attended: leads && std::io::stderr().is_terminal(),
        leads,
        counts_tokens: config.limits.budget.tokens.is_some(),
    };
    let team_backend = match config.is_host {
        true => TeamBackend::Here,
        false => panes::choose(&settings.teams, pane_context, || launch::launch(config))?,
    };
    spawning.teams = Teaming {
        team_backend,
        deadline: settings.teams.deadline,
    };
    let workspace = Workspace {
        cwd,
        roots,
        spill: directories::spill()?,
        home,
        mirror: None,
        notes: None,
    };
    Ok(Setup {
        tools: match config.which {
            None if !config.is_host => tools::tools(&settings.policy),
            // The model knows what it was told of; rules deny each call. And what a forbidden tool left
            // running when its process died must be ended by that tool.
            _ => tools::all_tools(),
        },
        policy: Arc::new(settings.policy.clone()),
        workspace: Arc::new(workspace),
        limits: Limits {
            compact_at: settings.compact_at,
            ..config.limits
        },
        approver: config.approver,
        spawning,
        // Who sends several prompts waits for as many results.
        joins: false,
    })
}

fn spawning(settings: &Settings, cwd: &Path, live: &LiveDefinitions<AgentSources>) -> Spawning {
    let agents = &settings.agents;
    let (instead, more, day) = (None, None, today());
    let instructions = instructions::at(cwd);
    Spawning {
        // Nobody sits in front of it: only if it is wanted everywhere.
        implicit_fork: agents.implicit_fork == ImplicitFork::Always,
        types: live.catalogue.clone(),
        skills: None,
        forced_model: environment::variable("POSSE_SUBAGENT_MODEL_FORCE"),
        usual_model: environment::variable("POSSE_SUBAGENT_MODEL"),
        base: agents.base,
        dirty: agents.dirty,
        context: prompt::surroundings(prompt::PromptParts {
            instead,
            more,
            cwd,
            instructions,
            day: &day,
        })
        .into(),
        depth: agents.depth,
        running: agents.running,
        background: agents.background,
        auto_background: agents.auto_background,
        budgets: agents.budgets,
        least_memory: LEAST_MEMORY,
        teams: Teaming::default(),
    }
}

/// Says what is wrong with definitions, as far as one reads that before something else.
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
        let word = S::WORD;
        say(&format!(
            "warning: and {more} more about {word}: `posse {word} check` lists all"
        ));
    }
}

fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

fn character(config: &RunConfig, model: &str, mode: PermissionMode, cwd: &Path) -> AgentProfile {
    let of_lead = config
        .lead
        .iter()
        .flat_map(|lead| lead.prompt.iter().map(String::as_str));
    let more: Vec<&str> = of_lead
        .chain(config.append_system_prompt.as_deref())
        .collect();
    let more = (!more.is_empty()).then(|| more.join("\n\n"));
    let system = prompt::system(prompt::PromptParts {
        instead: config.system_prompt.as_deref(),
        more: more.as_deref(),
        cwd,
        instructions: instructions::at(cwd),
        day: &today(),
    });
    let effort = config.lead.as_ref().and_then(|lead| lead.effort);
    AgentProfile {
        model: model.to_owned(),
        system,
        thinking: Thinking::Default,
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
