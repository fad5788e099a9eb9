//! How agents may start others: the key `agents`. It is read only from posse's own files, since
//! another program may mean something else by it.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use posse_port::worktree::{Base, Dirty};
use posse_protocol::Cost;
use posse_runtime::definition::spawning::{Background, Spawning};
use posse_runtime::govern::budget::{Budget, Budgets};
use posse_runtime::live::setup::Repeats;
use serde::{Deserialize, Deserializer};

use super::{Layer, LayerAuthor};

/// Settings from flags.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AgentFlags {
    /// `--max-depth`.
    pub(crate) depth: Option<u32>,
    /// `--max-agents`.
    pub(crate) running: Option<usize>,
    /// `--no-background`.
    pub(crate) no_background: bool,
    /// `--auto-background`.
    pub(crate) auto_background: Option<Duration>,
}

/// The effective settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AgentSettings {
    pub(crate) depth: u32,
    pub(crate) running: usize,
    pub(crate) background: Background,
    pub(crate) auto_background: Option<Duration>,
    /// Budgets of each sub-agent.
    pub(crate) budgets: Budgets,
    /// The commit that worktrees start from.
    pub(crate) base: Base,
    /// How uncommitted work is treated when a worktree is created.
    pub(crate) dirty: Dirty,
    /// When a call without a type creates a fork.
    pub(crate) implicit_fork: ImplicitFork,
    /// How often a call may fail in the same way.
    pub(crate) repeats: Repeats,
}

/// When a call without a type creates a fork.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImplicitFork {
    /// Never.
    #[default]
    Off,
    /// If a person sits in front.
    Interactive,
    /// Everywhere.
    Always,
}

/// The keys of `agents`.
pub(super) const KEYS: [&str; 10] = [
    "maxDepth",
    "maxRunning",
    "background",
    "autoBackgroundSeconds",
    "budget",
    "subtreeBudget",
    "worktree",
    "implicitFork",
    "repeatedCallNotice",
    "repeatedCallLimit",
];
/// The keys of `worktree`.
pub(super) const WORKTREE_KEYS: [&str; 2] = ["base", "dirty"];
/// The keys of a budget.
pub(super) const BUDGET_KEYS: [&str; 4] = ["usd", "tokens", "turns", "seconds"];

/// The content of the key `agents` in a file.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentsFile {
    max_depth: Option<u32>,
    max_running: Option<NonZeroUsize>,
    #[serde(default, deserialize_with = "background")]
    background: Option<Background>,
    auto_background_seconds: Option<NonZeroU32>,
    #[serde(default)]
    budget: BudgetFile,
    #[serde(default)]
    subtree_budget: BudgetFile,
    #[serde(default)]
    worktree: WorktreeFile,
    implicit_fork: Option<ImplicitFork>,
    repeated_call_notice: Option<NonZeroU32>,
    repeated_call_limit: Option<NonZeroU32>,
}

/// The content of the key `worktree`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
struct WorktreeFile {
    base: Option<Base>,
    dirty: Option<Dirty>,
}

/// The content of a budget.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct BudgetFile {
    #[serde(default, deserialize_with = "usd")]
    usd: Option<Cost>,
    tokens: Option<NonZeroU64>,
    turns: Option<NonZeroU32>,
    seconds: Option<NonZeroU32>,
}

impl BudgetFile {
    fn budget(&self) -> Budget {
        Budget {
            cost: self.usd,
            tokens: self.tokens.map(NonZeroU64::get),
            turns: self.turns.map(NonZeroU32::get),
            time: self.seconds.map(seconds),
        }
    }
}

impl AgentsFile {
    fn running(&self) -> Option<usize> {
        self.max_running.map(NonZeroUsize::get)
    }

    /// Returns the keys in which a repository's file asks for more than the effective settings.
    pub(super) fn beyond(&self, holds: &AgentSettings) -> Vec<String> {
        let mut beyond = Vec::new();
        let mut note =
            |is_beyond: bool, what: &str| beyond.extend(is_beyond.then(|| what.to_owned()));
        note(
            self.max_depth.is_some_and(|depth| depth > holds.depth),
            "maxDepth",
        );
        note(
            self.running()
                .is_some_and(|running| running > holds.running),
            "maxRunning",
        );
        note(
            self.background
                .is_some_and(|background| background != holds.background),
            "background",
        );
        note(
            self.auto_background_seconds.is_some(),
            "autoBackgroundSeconds",
        );
        for (name, asked, holds) in [
            ("budget", self.budget.budget(), holds.budgets.alone),
            (
                "subtreeBudget",
                self.subtree_budget.budget(),
                holds.budgets.subtree,
            ),
        ] {
            note(
                asked != Budget::default() && least(asked, holds) != asked,
                name,
            );
        }
        // What agents see of uncommitted work is for the user to decide.
        note(self.worktree != WorktreeFile::default(), "worktree");
        note(
            self.implicit_fork
                .is_some_and(|when| when != holds.implicit_fork),
            "implicitFork",
        );
        let more =
            |asked: Option<NonZeroU32>, holds| asked.is_some_and(|asked| asked.get() > holds);
        let (notice, limit) = (self.repeated_call_notice, self.repeated_call_limit);
        note(more(notice, holds.repeats.notice), "repeatedCallNotice");
        note(more(limit, holds.repeats.stop), "repeatedCallLimit");
        beyond
    }
}

/// Merges the layers. The administrator's numbers are limits, then flags count, then the user's
/// files. A repository may lower the result, but not what a flag says.
pub(super) fn settle(layers: &[Layer], flags: &AgentFlags) -> AgentSettings {
    let of = |trust: LayerAuthor| {
        let of = layers.iter().filter(move |layer| layer.trust == trust);
        of.map(|layer| layer.content.agents).collect::<Vec<_>>()
    };
    let said = AgentsFiles {
        managed: of(LayerAuthor::Managed),
        user: of(LayerAuthor::User),
        repository: of(LayerAuthor::Repository),
    };
    let (usual, repeats) = (Spawning::default(), Repeats::default());
    AgentSettings {
        depth: said.number(flags.depth, usual.depth, |file| file.max_depth),
        running: said.number(flags.running, usual.running, AgentsFile::running),
        background: said.background(flags.no_background),
        auto_background: said.auto_background(flags.auto_background),
        budgets: Budgets {
            alone: said.budget(|file| file.budget.budget()),
            subtree: said.budget(|file| file.subtree_budget.budget()),
        },
        base: said.own(|file| file.worktree.base).unwrap_or_default(),
        dirty: said.own(|file| file.worktree.dirty).unwrap_or_default(),
        implicit_fork: said.own(|file| file.implicit_fork).unwrap_or_default(),
        repeats: Repeats {
            notice: said.number(None, repeats.notice, |file| {
                file.repeated_call_notice.map(NonZeroU32::get)
            }),
            stop: said.number(None, repeats.stop, |file| {
                file.repeated_call_limit.map(NonZeroU32::get)
            }),
        },
    }
}

/// The files by author, highest layer first.
struct AgentsFiles {
    managed: Vec<AgentsFile>,
    user: Vec<AgentsFile>,
    repository: Vec<AgentsFile>,
}

impl AgentsFiles {
    /// Returns a number, limited by the administrator and lowered by the repository.
    fn number<T: Ord + Copy>(
        &self,
        flag: Option<T>,
        default: T,
        key: impl Fn(&AgentsFile) -> Option<T>,
    ) -> T {
        let bound = self.managed.iter().find_map(&key);
        let own = flag.or_else(|| self.user.iter().find_map(&key));
        let own = lower(bound, own).unwrap_or(default);
        let repository = self
            .repository
            .iter()
            .filter_map(&key)
            .filter(|_| flag.is_none());
        repository.fold(own, T::min)
    }

    /// Returns a budget, limited by every author.
    fn budget(&self, key: impl Fn(&AgentsFile) -> Budget) -> Budget {
        let layer = |files: &[AgentsFile]| {
            files
                .iter()
                .map(&key)
                .fold(Budget::default(), |higher, file| Budget {
                    cost: higher.cost.or(file.cost),
                    tokens: higher.tokens.or(file.tokens),
                    turns: higher.turns.or(file.turns),
                    time: higher.time.or(file.time),
                })
        };
        let own = least(layer(&self.managed), layer(&self.user));
        self.repository.iter().map(&key).fold(own, least)
    }

    /// Returns when sub-agents run in the background. Everyone may turn it off.
    fn background(&self, off: bool) -> Background {
        let all = || self.managed.iter().chain(&self.repository);
        if off || all().any(|file| file.background == Some(Background::Off)) {
            return Background::Off;
        }
        let own = self.managed.iter().chain(&self.user);
        own.filter_map(|file| file.background)
            .next()
            .unwrap_or_default()
    }

    /// Returns a value that only the administrator and the user may set.
    fn own<T>(&self, key: impl Fn(&AgentsFile) -> Option<T>) -> Option<T> {
        self.managed.iter().chain(&self.user).find_map(key)
    }

    fn auto_background(&self, flag: Option<Duration>) -> Option<Duration> {
        let key = |file: &AgentsFile| file.auto_background_seconds.map(seconds);
        let managed = self.managed.iter().find_map(key);
        managed.or(flag).or_else(|| self.user.iter().find_map(key))
    }
}

/// Returns the lower limit of each kind.
fn least(one: Budget, other: Budget) -> Budget {
    Budget {
        cost: lower(one.cost, other.cost),
        tokens: lower(one.tokens, other.tokens),
        turns: lower(one.turns, other.turns),
        time: lower(one.time, other.time),
    }
}

/// Returns the lower of two limits, where `None` is no limit.
fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn seconds(seconds: NonZeroU32) -> Duration {
    Duration::from_secs(seconds.get().into())
}

/// Why an amount of money cannot be a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BudgetError {
    #[error("not a number")]
    NotANumber,
    #[error("a budget must be more than zero and at most a million")]
    OutOfRange,
}

/// Returns an amount in dollars that can be a budget.
pub(crate) fn dollars(dollars: f64) -> Result<Cost, BudgetError> {
    if !(dollars > 0.0 && dollars <= 1e6) {
        return Err(BudgetError::OutOfRange);
    }
    Ok(Cost::from_pico_usd((dollars * 1e12).round() as u64))
}

fn usd<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Cost>, D::Error> {
    let amount = Option::<f64>::deserialize(from)?;
    amount
        .map(|amount| dollars(amount).map_err(serde::de::Error::custom))
        .transpose()
}

fn background<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Background>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    let read = |word: String| match word.as_str() {
        "off" => Ok(Background::Off),
        "asked" => Ok(Background::Asked),
        "default" => Ok(Background::Default),
        "always" => Ok(Background::Always),
        _ => Err(serde::de::Error::custom(
            "`background` must be off, asked, default or always",
        )),
    };
    word.map(read).transpose()
}
