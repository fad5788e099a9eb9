//! Where values come from: the store, files of definitions, posse itself.

use std::path::{Path, PathBuf};

use clap::Command;
use posse_protocol::{AgentId, PermissionMode};
use posse_runtime::hook::HookEvent;

use super::Candidate;
use super::kind::ValueKind;
use super::request::CompletionRequest;
use crate::assemble::directories;
use crate::assemble::provider::ProviderArgs;
use crate::assemble::stored_names::{NamedSession, StoredName, StoredNames, stored_names};
use crate::config::environment;
use crate::config::search_paths::SearchPaths;
use crate::config::settings::{FlagSettings, Settings};
use crate::config::store::{StoreArgs, parse};
use crate::definitions::servers::{ServerFlags, ServerSources};
use crate::definitions::skills::SkillSources;
use crate::definitions::teams::TeamSources;
use crate::definitions::{AgentSources, InlineAgents};
use crate::help::topics;
use crate::output::one_line;
use crate::output::time::{age, now_ms};
use crate::output::transcript::shortened;
use crate::present::history::first_line;

/// Most sessions that are offered at once.
const SESSIONS: usize = 50;

/// Most characters of a first prompt.
const PROMPT: usize = 100;

/// Names of models that stand for the newest of a family.
const FAMILIES: [(&str, &str); 4] = [
    ("opus", "the newest Opus"),
    ("sonnet", "the newest Sonnet"),
    ("haiku", "the newest Haiku"),
    ("opusplan", "Opus in plan mode, else Sonnet"),
];

/// Where values are looked for: what the line says so far.
pub(super) struct ValueSources {
    cwd: PathBuf,
    store: StoreArgs,
    team: Option<String>,
    /// The commands that `posse help` can be asked about with the words so far.
    commands: Vec<Candidate>,
    /// The words so far name nothing: a page can follow.
    takes_page: bool,
}

impl ValueSources {
    pub(super) fn new(request: &CompletionRequest, cwd: Option<&Path>, posse: &Command) -> Self {
        let before = request.words.get(2..request.words.len() - 1);
        let before = before.unwrap_or_default();
        Self {
            cwd: cwd.map_or_else(|| PathBuf::from("/"), Path::to_owned),
            store: StoreArgs {
                store: request.flag("--store").and_then(|text| parse(text).ok()),
            },
            team: request.flag("--team").map(str::to_owned),
            commands: commands(posse, before),
            takes_page: before.is_empty(),
        }
    }

    /// Returns values of a kind. Those that do not begin with what is typed may be among them.
    pub(super) fn find(&self, kind: ValueKind, typed: &str) -> Vec<Candidate> {
        match kind {
            ValueKind::Session => self.sessions(typed),
            ValueKind::Agent => {
                let mut found = self.sessions(typed);
                found.extend(self.stored(|names| names.agents(&self.cwd)));
                found
            }
            ValueKind::Team => self.stored(|names| names.teams()),
            ValueKind::Member => self.members(typed),
            ValueKind::Recipient => {
                let mut found = self.members(typed);
                found.extend(self.stored(|names| names.agents(&self.cwd)));
                found
            }
            ValueKind::Task => self.stored(|names| names.tasks(&self.cwd, self.team.as_deref())),
            ValueKind::Request => self.stored(|names| names.requests()),
            ValueKind::Worktree => worktrees(),
            ValueKind::DeclaredTeam => {
                let loaded = TeamSources::at(&self.cwd, InlineAgents::default()).load();
                let declared = loaded.known.into_iter().map(|it| it.definition);
                declared
                    .map(|it| one(it.name.as_str(), &it.plan.description))
                    .collect()
            }
            ValueKind::AgentType => {
                let loaded = AgentSources::at(&self.cwd, InlineAgents::default()).load();
                let types = loaded.known.into_iter().map(|it| it.definition);
                types.map(|it| one(&it.name, &it.description)).collect()
            }
            ValueKind::Skill => {
                let loaded = SkillSources::at(&self.cwd).load();
                let skills = loaded.known.into_iter().map(|it| it.definition);
                skills.map(|it| one(&it.name, &it.description)).collect()
            }
            ValueKind::Server => self.servers(),
            ValueKind::Model => models(),
            ValueKind::Mode => words(PermissionMode::ALL.map(PermissionMode::as_str)),
            ValueKind::HookEvent => words(HookEvent::ALL.map(HookEvent::as_str)),
            ValueKind::Words(known) => words(known.iter().copied()),
            ValueKind::Topic => {
                let pages = topics::all().filter(|_| self.takes_page);
                let mut found: Vec<_> = pages.map(|it| one(it.name, it.about)).collect();
                let is_new = |it: &&Candidate| topics::named(&it.value).is_none();
                found.extend(self.commands.iter().filter(is_new).cloned());
                found
            }
            ValueKind::File | ValueKind::Directory | ValueKind::Free => Vec::new(),
        }
    }

    fn stored(&self, read: impl FnOnce(&StoredNames) -> Vec<StoredName>) -> Vec<Candidate> {
        let found = stored_names(&self.store).map(|names| read(&names));
        let found = found.unwrap_or_default();
        found.iter().map(|it| one(&it.name, &it.about)).collect()
    }

    fn sessions(&self, typed: &str) -> Vec<Candidate> {
        let names = stored_names(&self.store);
        let found = names.map(|names| names.sessions(&self.cwd, typed, SESSIONS));
        found.unwrap_or_default().iter().map(session).collect()
    }

    /// Returns members by name, or as name@team once there is an `@`.
    fn members(&self, typed: &str) -> Vec<Candidate> {
        let Some((_, team)) = typed.split_once('@') else {
            return self.stored(|names| names.members(self.team.as_deref()));
        };
        let teams = self.stored(|names| names.teams());
        let teams = teams.into_iter().filter(|it| it.value.starts_with(team));
        let members = teams.flat_map(|team| {
            let members = self.stored(|names| names.members(Some(&team.value)));
            members.into_iter().map(move |it| Candidate {
                value: format!("{}@{}", it.value, team.value),
                ..it
            })
        });
        members.collect()
    }

    fn servers(&self) -> Vec<Candidate> {
        let places = SearchPaths::at(&self.cwd);
        let Ok(settings) = Settings::load(&places, FlagSettings::default()) else {
            return Vec::new();
        };
        let sources = ServerSources {
            places: &places,
            settings: &settings.servers,
            flags: &ServerFlags::default(),
            environment: environment::texts(),
        };
        let set = sources.load().set;
        set.all().map(|it| one(&it.name, &it.title())).collect()
    }
}

/// Returns the commands below the one with these words.
fn commands(posse: &Command, words: &[String]) -> Vec<Candidate> {
    let below = |it: Option<_>, word| it.and_then(|it: &Command| it.find_subcommand(word));
    let room = words.iter().fold(Some(posse), below);
    let commands = room.into_iter().flat_map(Command::get_subcommands);
    let about = |it: &Command| it.get_about().map(ToString::to_string);
    commands
        .filter(|it| !it.is_hide_set())
        .map(|it| one(it.get_name(), &about(it).unwrap_or_default()))
        .collect()
}

fn one(name: &str, about: &str) -> Candidate {
    Candidate {
        value: name.to_owned(),
        about: one_line(about.lines().next().unwrap_or_default()),
    }
}

fn words(words: impl IntoIterator<Item = &'static str>) -> Vec<Candidate> {
    words.into_iter().map(|word| one(word, "")).collect()
}

/// Returns a session with its age and the beginning of its first prompt.
fn session(session: &NamedSession) -> Candidate {
    let words = session.first_prompt.as_deref().and_then(first_line);
    let age = age(now_ms().saturating_sub(session.used_ms));
    // A prompt can be long, and fifty of them are measured.
    let words = shortened(&words.unwrap_or_default(), PROMPT);
    let about = format!("{age} ago: {words}");
    one(&session.agent.to_string(), about.trim_end_matches(": "))
}

/// Returns families and models with a price.
fn models() -> Vec<Candidate> {
    let priced = ProviderArgs::default().known_models().unwrap_or_default();
    let families = FAMILIES.into_iter().map(|(name, about)| one(name, about));
    families
        .chain(priced.iter().map(|name| one(name, "")))
        .collect()
}

/// Returns the agents whose worktrees are there.
fn worktrees() -> Vec<Candidate> {
    let place = directories::worktrees().ok();
    let files = place.and_then(|place| std::fs::read_dir(place).ok());
    let names = files.into_iter().flatten().flatten();
    names
        .filter_map(|file| file.file_name().to_str()?.parse::<AgentId>().ok())
        .map(|agent| one(&agent.to_string(), ""))
        .collect()
}
