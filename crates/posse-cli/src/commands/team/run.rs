//! `posse team run`.

use std::path::Path;
use std::process::ExitCode;

use posse_protocol::Name;
use posse_runtime::port::store::{AgentFilter, Store, TaskFilter};

use super::find;
use crate::commands::run::{Begin, Job, LeadWish, Options, Which, do_job, stdin_prompt};
use crate::commands::task::list_of;
use crate::definitions::teams::{Declared, about};
use crate::definitions::{Given, Known, Source, Weight};
use crate::hint::Advised;
use crate::output::say;
use crate::session;
use crate::store::StoreArgs;
use posse_runtime::spelling::closest;

/// The command, for complaints.
const PATH: [&str; 2] = ["team", "run"];

/// Have a declared team work towards a goal, and print what its lead says at last.
///
/// `.posse/teams/NAME.toml` says who is in it and what it begins with. While it works, stderr tells who does what.
#[derive(clap::Args)]
pub(super) struct Run {
    /// The team
    name: Name,
    /// What it is to reach; without it, or with `-`, it is read from standard input
    goal: Option<String>,
    /// Go on with the team of a session, whose id may be shortened [default: the newest of this directory]
    #[arg(short, long, value_name = "ID", num_args = 0..=1)]
    resume: Option<Option<String>>,
    #[command(flatten)]
    options: Options,
}

impl Run {
    pub(super) fn run(self, store: StoreArgs) -> anyhow::Result<ExitCode> {
        let checked = self.options.check(&PATH).and_then(|()| self.options.given(&PATH));
        let given = checked.unwrap_or_else(|error| error.exit());
        // With lines, standard input says what comes later.
        let goal = match (&self.goal, self.options.by_lines()) {
            (Some(goal), true) => Some(vec![posse_protocol::ContentBlock::text(goal.clone())]),
            (None, true) => None,
            (goal, false) => stdin_prompt(goal.as_deref(), self.resume.is_none())?,
        };
        let (mut wish, begin) = match &self.resume {
            Some(id) => {
                let (which, left) =
                    crate::commands::runtime()?.block_on(self.session(&store, id.as_deref()))?;
                let begin = if goal.is_none() && left { Begin::Rest } else { Begin::Words(goal) };
                (self.options.wish(Some(which), store, given), begin)
            }
            None => {
                let words = goal.ok_or_else(|| Advised {
                    what: "there is no goal".into(),
                    advice: format!("posse team run {} \"mend the failing tests\"", self.name),
                })?;
                let known = self.declared(given.clone())?;
                let lead = lead(&known, &given)?;
                let Declared { name, plan, .. } = known.definition;
                let mut wish = self.options.wish(None, store, given);
                wish.lead = Some(lead);
                (wish, Begin::Team { name, plan: Box::new(plan), words })
            }
        };
        wish.team = Some(self.name.clone());
        do_job(Job { options: &self.options, wish, begin })
    }

    /// The team as it is declared here.
    fn declared(&self, given: Given) -> anyhow::Result<Known<Declared>> {
        let sources = session::teams(&crate::environment::working_directory()?, given);
        let (loaded, cwd) = (sources.load(), sources.cwd());
        let mine = |remark: &&_| about(remark) == Some(self.name.as_str());
        let of = |weight| loaded.remarks.iter().filter(mine).filter(move |remark| remark.weight == weight);
        if let Some(first) = of(Weight::Error).next() {
            anyhow::bail!(Advised {
                what: first.in_a_line(cwd),
                advice: format!("mend the file; `posse team check {}` tells all that is wrong", self.name),
            });
        }
        for warning in of(Weight::Warning) {
            say(&format!("warning: {}", warning.in_a_line(cwd)));
        }
        let Some(known) = loaded.find(self.name.as_str()) else {
            let names: Vec<&str> = loaded.known.iter().map(|known| known.definition.name.as_str()).collect();
            let meant = closest(self.name.as_str(), &names).map(|name| format!("did you mean {name}? "));
            anyhow::bail!(Advised {
                what: format!("no team {} is declared here", self.name),
                advice: format!(
                    "{}`posse team list --declared` shows what there is; .posse/teams/{}.toml declares one",
                    meant.unwrap_or_default(),
                    self.name
                ),
            });
        };
        Ok(known.clone())
    }

    /// The session of the team that is to go on, and whether any member has something left to do.
    async fn session(&self, store: &StoreArgs, id: Option<&str>) -> anyhow::Result<(Which, bool)> {
        let store = session::look_into_store(store)?;
        let store = store.as_ref();
        let team = match id {
            Some(_) => {
                let session = find::SessionArg { session: id.map(str::to_owned) };
                find::meant(store, Some(&self.name), &session).await?
            }
            None => newest(store, &self.name, &crate::environment::working_directory()?).await?,
        };
        let filter = AgentFilter { realm: Some(team.realm), ..AgentFilter::default() };
        let root = store.agents(filter, usize::MAX).await?.into_iter().find(|agent| agent.origin.is_none());
        let root = root.ok_or_else(|| Advised {
            what: format!("team {} was imported: none of its members has ever worked here", self.name),
            advice: format!("posse team run {} \"…\" raises a new one", self.name),
        })?;
        let tasks = store.tasks(list_of(&team), TaskFilter::default(), usize::MAX).await?;
        let left = tasks.iter().any(|task| !task.status.is_settled())
            || team.members.iter().any(|member| member.state.is_busy() || member.waiting > 0);
        Ok((Which::Id(root.agent.to_string()), left))
    }
}

/// The newest team of this name whose session works in this directory.
async fn newest(store: &dyn Store, name: &Name, cwd: &Path) -> anyhow::Result<posse_protocol::Team> {
    let teams = store.teams(None, usize::MAX).await?;
    for team in teams.into_iter().filter(|team| team.name == *name) {
        let filter = AgentFilter { realm: Some(team.realm), ..AgentFilter::default() };
        let agents = store.agents(filter, usize::MAX).await?;
        if agents.iter().any(|agent| agent.origin.is_none() && agent.cwd == cwd) {
            return Ok(team);
        }
    }
    anyhow::bail!(Advised {
        what: format!("no session of {} has a team {name}", cwd.display()),
        advice: "`posse team list` shows what there is; name its session with --resume ID".into(),
    })
}

/// What the lead is, by the file and by the definition that it names.
fn lead(known: &Known<Declared>, given: &Given) -> anyhow::Result<LeadWish> {
    let lead = &known.definition.lead;
    let definition = match &lead.agent {
        Some(name) => {
            let cwd = crate::environment::working_directory()?;
            session::definitions(&cwd, given.clone()).load().find(name).map(|found| found.definition.clone())
        }
        None => None,
    };
    let definition = definition.unwrap_or_default();
    let prompts = [definition.prompt, lead.prompt.clone().unwrap_or_default()];
    Ok(LeadWish {
        model: lead.model.clone().or(definition.model),
        effort: definition.effort,
        mode: lead.mode.or(definition.mode),
        by_repository: known.source == Source::Project,
        prompt: prompts.into_iter().filter(|prompt| !prompt.trim().is_empty()).collect(),
    })
}
