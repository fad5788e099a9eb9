//! `posse team run`.

mod running;

use std::path::Path;
use std::process::ExitCode;

use posse_port::store::{AgentFilter, Page, Store, TaskFilter};
use posse_protocol::{AgentId, Name, PermissionMode, RealmId};
use posse_runtime::live::setup::Approver;
use posse_tui::board::Scope;

use crate::assemble::on_question::PATIENCE;
use crate::assemble::run_config::{LeadConfig, SessionChoice};
use crate::assemble::run_options::{OutputFormat, RunOptions};
use crate::assemble::store::OpenStore;
use crate::board::BoardPlace;
use crate::config::search_paths::SearchPaths;
use crate::config::store::StoreArgs;
use crate::definitions::teams::{TeamDeclaration, TeamSources, about};
use crate::definitions::{AgentSources, DefinitionEntry, DefinitionSource, InlineAgents, Severity};
use crate::error::Advised;
use crate::headless::event_loop::BoardShown;
use crate::headless::input::binary::BinaryInput;
use crate::headless::input::stdin;
use crate::headless::job::{self, FirstInput, OpenBoard, RunJob};
use crate::headless::terminal::{self, has_screen};
use crate::interactive;
use crate::output::{say, tame};
use crate::select::tasks::list_of;
use crate::select::{sessions, teams};
use posse_port::closest;

/// The command, for usage errors.
const PATH: [&str; 2] = ["team", "run"];

/// Run a declared team towards a goal, and print its lead's last answer.
///
/// `.posse/teams/NAME.toml` declares its members and its first tasks. While it works, a terminal
/// shows the board; with --plain, and without a terminal, stderr shows who does what.
#[derive(clap::Args)]
pub(super) struct RunTeam {
    /// Team to run
    name: Name,
    /// Goal of the team; without it, or with `-`, it is read from standard input
    goal: Option<String>,
    /// Continue the team of a session; a unique prefix of its ID is enough [default: the newest of
    /// this directory]
    #[arg(short, long, value_name = "ID", num_args = 0..=1)]
    resume: Option<Option<String>>,
    /// Start the team although one of this name already runs in this directory
    #[arg(long, conflicts_with = "resume")]
    another: bool,
    /// Print lines instead of showing the board
    #[arg(long, visible_alias = "screen-reader")]
    plain: bool,
    #[command(flatten)]
    options: RunOptions,
}

impl RunTeam {
    pub(super) fn run(self, store: StoreArgs) -> anyhow::Result<ExitCode> {
        // Before standard input is read: a person with a wrong flag need not type a goal first.
        self.options.check(&PATH)?;
        let given = self.options.given(&PATH)?;
        job::run(&self.options, || self.job(store, given))
    }

    /// Returns the job to run.
    fn job(&self, store: StoreArgs, given: InlineAgents) -> anyhow::Result<RunJob> {
        let resumed = match &self.resume {
            Some(id) => Some(self.resumed(&store, id.as_deref())?),
            None if self.another => None,
            None => {
                // Before standard input is read, too.
                crate::config::runtime()?.block_on(running::must_be_first(&store, &self.name))?;
                None
            }
        };
        // With lines, standard input is for later prompts.
        let goal = match (&self.goal, self.options.by_lines()) {
            (Some(goal), true) if !goal.trim().is_empty() => {
                Some(vec![posse_protocol::ContentBlock::text(goal.clone())])
            }
            (_, true) => None,
            (goal, false) => {
                stdin::prompt(goal.as_deref(), self.resume.is_none(), BinaryInput::Refused)?
            }
        };
        let mut starting = None;
        let (mut config, first) = match resumed {
            Some(ResumedTeam {
                left: true,
                alone: true,
                ..
            }) if goal.is_none() => {
                let name = &self.name;
                anyhow::bail!(Advised {
                    what: format!(
                        "the members of {name} have left, and some of its tasks are open"
                    ),
                    advice: format!("posse team run {name} \"…\" starts a new team"),
                });
            }
            Some(ResumedTeam { which, left, alone }) => {
                if alone && goal.is_some() {
                    let name = &self.name;
                    say(&format!(
                        "the members of {name} have left, and only its lead continues; `posse team \
                         run {name} \"…\"` starts a new team"
                    ));
                }
                let first = if goal.is_none() && left {
                    FirstInput::Rest
                } else {
                    FirstInput::Words(goal)
                };
                (self.options.run_config(Some(which), store, given), first)
            }
            None => {
                let words = goal.ok_or_else(|| Advised {
                    what: "there is no goal".into(),
                    advice: format!("posse team run {} \"fix the failing tests\"", self.name),
                })?;
                if !self.another {
                    // Again, since a goal may have been typed for a while.
                    let first = running::become_first(&store, &self.name);
                    starting = crate::config::runtime()?.block_on(first)?;
                }
                let known = self.declared(given.clone())?;
                let lead = self.lead(&known, &given)?;
                let TeamDeclaration { name, plan, .. } = known.definition;
                let mut config = self.options.run_config(None, store, given);
                config.lead = Some(lead);
                (
                    config,
                    FirstInput::Team {
                        name,
                        plan: Box::new(plan),
                        words,
                    },
                )
            }
        };
        config.team = Some(self.name.clone());
        if self.options.terms.on_question.is_none() && !self.options.by_lines() {
            config.approver = Approver::Anyone(PATIENCE);
        }
        let shows_board = !self.plain
            && !self.options.by_lines()
            && self.options.output_format() == OutputFormat::Text
            && has_screen()
            // Lines that were pasted behind the command are for the shell.
            && !terminal::is_typed_ahead();
        Ok(RunJob {
            config,
            first,
            starting,
            board: shows_board.then_some(show_board as OpenBoard),
        })
    }

    /// Returns the session to continue.
    fn resumed(&self, store: &StoreArgs, id: Option<&str>) -> anyhow::Result<ResumedTeam> {
        let is_id =
            |id: &str| !id.is_empty() && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        if let Some(id) = id.filter(|id| !is_id(id.trim())) {
            let (name, id) = (&self.name, tame(id));
            anyhow::bail!(Advised {
                what: format!("`{id}` is not a session id"),
                advice: format!(
                    "a goal needs an id before it: posse team run {name} --resume ID \"{id}\""
                ),
            });
        }
        crate::config::runtime()?.block_on(self.session(store, id))
    }

    /// Returns where definitions are looked for.
    fn places(&self) -> anyhow::Result<SearchPaths> {
        let cwd = crate::config::environment::working_directory()?;
        Ok(SearchPaths::at(&cwd).trusting_all_if(self.options.terms.trust))
    }

    /// Returns the team as it is declared here.
    fn declared(&self, given: InlineAgents) -> anyhow::Result<DefinitionEntry<TeamDeclaration>> {
        let sources = TeamSources::of(self.places()?, given);
        let (loaded, cwd) = (sources.load(), sources.cwd());
        let mine = |remark: &&_| about(remark) == Some(self.name.as_str());
        let of = |weight| {
            loaded
                .remarks
                .iter()
                .filter(mine)
                .filter(move |remark| remark.weight == weight)
        };
        if let Some(first) = of(Severity::Error).next() {
            anyhow::bail!(Advised {
                what: first.in_a_line(cwd),
                advice: format!(
                    "fix the file; `posse team check {}` lists all problems",
                    self.name
                ),
            });
        }
        for warning in of(Severity::Warning) {
            say(&format!("warning: {}", warning.in_a_line(cwd)));
        }
        let Some(known) = loaded.find(self.name.as_str()) else {
            if let Some(file) = sources.waiting(&self.name) {
                anyhow::bail!(Advised {
                    what: format!(
                        "{} is declared by {}, which you have not trusted",
                        self.name,
                        tame(&file.to_string_lossy())
                    ),
                    advice: "`posse trust` shows what is in this workspace, and asks".into(),
                });
            }
            let names: Vec<&str> = loaded
                .known
                .iter()
                .map(|known| known.definition.name.as_str())
                .collect();
            let meant =
                closest(self.name.as_str(), &names).map(|name| format!("did you mean {name}? "));
            anyhow::bail!(Advised {
                what: format!("no team {} is declared here", self.name),
                advice: format!(
                    "{}`posse team list --declared` shows all; .posse/teams/{}.toml declares one",
                    meant.unwrap_or_default(),
                    self.name
                ),
            });
        };
        Ok(known.clone())
    }

    async fn session(&self, store: &StoreArgs, id: Option<&str>) -> anyhow::Result<ResumedTeam> {
        let store = crate::assemble::store::look_into_store(store)?;
        let store = store.as_ref();
        let team = match id {
            Some(_) => {
                let session = teams::SessionArg {
                    session: id.map(str::to_owned),
                };
                teams::meant(store, Some(&self.name), &session).await?
            }
            None => {
                newest(
                    store,
                    &self.name,
                    &crate::config::environment::working_directory()?,
                )
                .await?
            }
        };
        let filter = AgentFilter {
            realm: Some(team.realm),
            ..AgentFilter::default()
        };
        let root = store
            .agents(filter, Page::all())
            .await?
            .into_iter()
            .find(|agent| agent.origin.is_none());
        let root = root.ok_or_else(|| Advised {
            what: format!(
                "team {} was imported: none of its members has ever worked here",
                self.name
            ),
            advice: format!("posse team run {} \"…\" starts a new one", self.name),
        })?;
        let tasks = store
            .tasks(list_of(&team), TaskFilter::default(), Page::all())
            .await?;
        let has_members = team.members.iter().any(|member| member.agent != team.lead);
        // Members that are idle with nothing to do are still to be dismissed: the process may have
        // died just before it did that.
        let left = has_members || tasks.iter().any(|task| !task.status.is_settled());
        let alone = !team.former.is_empty() && !has_members;
        Ok(ResumedTeam {
            which: SessionChoice::Id(root.agent.to_string()),
            left,
            alone,
        })
    }

    /// Returns the lead's configuration, from the file and the definition that it names. A
    /// repository may only tighten.
    fn lead(
        &self,
        known: &DefinitionEntry<TeamDeclaration>,
        given: &InlineAgents,
    ) -> anyhow::Result<LeadConfig> {
        let lead = &known.definition.lead;
        let found = match &lead.agent {
            Some(name) => AgentSources::new(self.places()?, given.clone())
                .load()
                .find(name)
                .cloned(),
            None => None,
        };
        let by_file = known.source == DefinitionSource::Project;
        // A file that names a definition is responsible for what is in it.
        let by_definition = by_file
            || found
                .as_ref()
                .is_some_and(|found| found.source == DefinitionSource::Project);
        let definition = found.map(|found| found.definition).unwrap_or_default();
        let said = |file: Option<PermissionMode>, defined| match file {
            Some(mode) => Some((mode, by_file)),
            None => Option::map(defined, |mode| (mode, by_definition)),
        };
        let (mode, strictest) = match said(lead.mode, definition.mode) {
            Some((mode, true)) => (None, Some(mode)),
            Some((mode, false)) => (Some(mode), None),
            None => (None, None),
        };
        let models = [
            (lead.model.clone(), by_file),
            (definition.model, by_definition),
        ];
        let model = models
            .into_iter()
            .find_map(|(model, is_theirs)| Some((model?, is_theirs)));
        if let Some((model, true)) = &model {
            let (model, team) = (tame(model), &self.name);
            say(&format!(
                "warning: ignored: model {model} of the lead of {team}: a repository does not choose your model; \
                 --model {model} does"
            ));
        }
        let prompts = [definition.prompt, lead.prompt.clone().unwrap_or_default()];
        Ok(LeadConfig {
            model: model
                .filter(|(_, is_theirs)| !is_theirs)
                .map(|(model, _)| model),
            effort: definition.effort,
            mode,
            strictest,
            prompt: prompts
                .into_iter()
                .filter(|prompt| !prompt.trim().is_empty())
                .collect(),
            plan: known.definition.plan.clone(),
        })
    }
}

/// Shows everybody of a session at work.
fn show_board(open: OpenStore, session: AgentId) -> BoardShown {
    Box::pin(async move {
        // A session is stored with its first prompt.
        let realm = RealmId::from(session.uuid());
        open.store.follow_feed(realm, 0, 1).await?;
        let session = sessions::by_prefix(&*open.store, &session.to_string()).await?;
        let place = BoardPlace {
            cwd: session.cwd.clone(),
            session: Some(session),
        };
        interactive::board::show(&open, place, Scope::Session).await?;
        Ok(())
    })
}

/// A session whose team continues.
struct ResumedTeam {
    which: SessionChoice,
    /// There are members, or open tasks.
    left: bool,
    /// Only the lead is left of it.
    alone: bool,
}

/// Returns the newest team of this name whose session works in this directory.
async fn newest(
    store: &dyn Store,
    name: &Name,
    cwd: &Path,
) -> anyhow::Result<posse_protocol::Team> {
    let teams = store.teams(None, Page::all()).await?;
    for team in teams.into_iter().filter(|team| team.name == *name) {
        let filter = AgentFilter {
            realm: Some(team.realm),
            ..AgentFilter::default()
        };
        let agents = store.agents(filter, Page::all()).await?;
        if agents
            .iter()
            .any(|agent| agent.origin.is_none() && agent.cwd == cwd)
        {
            return Ok(team);
        }
    }
    anyhow::bail!(Advised {
        what: format!("no session of {} has a team {name}", cwd.display()),
        advice: "`posse team list --all` shows all teams; name its session with --resume ID".into(),
    })
}
