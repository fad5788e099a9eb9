//! Parses a `NAME.toml`. All errors are found at once, each with its line.

use std::collections::BTreeMap;

use posse_port::closest;
use posse_port::model::Effort;
use posse_protocol::{Cost, Name, PermissionMode, PlannedTask, TeamPlan, TeamRole};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::{DefinitionSource, Severity};
use super::{LeadDeclaration, TeamDeclaration};

/// Maximum number of members with the same role.
const MOST: u64 = 1_000;

/// Keys of the file.
const KEYS: [&str; 4] = ["description", "lead", "roles", "tasks"];
/// Keys of `[lead]`.
const LEAD_KEYS: [&str; 4] = ["agent", "model", "permission_mode", "prompt"];
/// Keys of `[roles.NAME]`.
const ROLE_KEYS: [&str; 9] = [
    "agent",
    "prompt",
    "model",
    "effort",
    "permission_mode",
    "worktree",
    "budget_usd",
    "count",
    "takes",
];
/// Keys of `[[tasks]]`.
const TASK_KEYS: [&str; 5] = ["subject", "description", "role", "blocked_by", "check"];
/// Keys that people may try for file ownership of roles, which does not exist.
const OWNERSHIP: [&str; 6] = [
    "owns",
    "own",
    "write",
    "writes",
    "ownership",
    "write_ownership",
];

/// A file and the remarks about it.
pub(super) struct TeamFileReader<'a> {
    text: &'a str,
    source: DefinitionSource,
    pub(super) remarks: Vec<(Severity, Option<usize>, String)>,
}

/// A table in the file.
struct TableReader<'t, 'a> {
    keys: Vec<(&'t str, usize, &'t Spanned<DeValue<'a>>)>,
    /// Its name for people.
    what: String,
    /// Where it begins, in bytes.
    at: usize,
}

impl TableReader<'_, '_> {
    fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(name, _, _)| *name == key)
    }
}

impl<'a> TeamFileReader<'a> {
    pub(super) fn new(text: &'a str, source: DefinitionSource) -> Self {
        Self {
            text,
            source,
            remarks: Vec::new(),
        }
    }

    /// Adds a remark about the whole file.
    pub(super) fn whole(&mut self, weight: Severity, reason: String) {
        self.remarks.push((weight, None, reason));
    }

    /// Returns the declared team; `None` if there are errors.
    pub(super) fn read(&mut self, name: Name, types: &[String]) -> Option<TeamDeclaration> {
        // Some editors write a byte order mark.
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(self.text);
        self.text = text;
        let document = match DeTable::parse(text) {
            Ok(document) => document,
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                self.error(at, error.message().to_owned());
                return None;
            }
        };
        let all = self.part(document.get_ref(), "the file".into(), 0, &KEYS);
        let lead = self.lead(&all, types);
        let roles = self.roles(&all, types);
        let tasks = self.tasks(&all);
        let plan = TeamPlan {
            description: self.text(&all, "description").unwrap_or_default(),
            roles,
            tasks,
        };
        self.taken(&all, &plan);
        let is_broken = self
            .remarks
            .iter()
            .any(|(weight, _, _)| *weight == Severity::Error);
        (!is_broken).then_some(TeamDeclaration { name, lead, plan })
    }

    /// Reads `[lead]`.
    fn lead(&mut self, all: &TableReader<'_, '_>, types: &[String]) -> LeadDeclaration {
        let Some((at, table)) = self.table(all, "lead") else {
            return LeadDeclaration::default();
        };
        let part = self.part(table, "[lead]".into(), at, &LEAD_KEYS);
        LeadDeclaration {
            agent: self.agent(&part, types),
            model: self.text(&part, "model"),
            mode: self.mode(&part),
            prompt: self.text(&part, "prompt"),
        }
    }

    /// Reads all `[roles.NAME]`.
    fn roles(&mut self, all: &TableReader<'_, '_>, types: &[String]) -> BTreeMap<Name, TeamRole> {
        let mut roles = BTreeMap::new();
        let Some((at, table)) = self.table(all, "roles") else {
            if !all.has("roles") {
                self.whole(
                    Severity::Error,
                    "it has no roles: `[roles.NAME]` says who is in the team".into(),
                );
            }
            return roles;
        };
        if table.is_empty() {
            self.error(
                at,
                "it has no roles: `[roles.NAME]` says who is in the team".into(),
            );
        }
        for (key, value) in table {
            let (word, at) = (key.get_ref().as_ref(), key.span().start);
            let name = match word.parse::<Name>() {
                Ok(name) if name.is_reserved() => {
                    self.error(at, format!("the name {name} is reserved"));
                    continue;
                }
                Ok(name) => name,
                Err(error) => {
                    self.error(at, error.to_string());
                    continue;
                }
            };
            let DeValue::Table(table) = value.get_ref() else {
                self.error(at, format!("a role must be a table: `[roles.{name}]`"));
                continue;
            };
            let role = self.role(&self.part_of(table, format!("[roles.{name}]"), at), types);
            roles.insert(name, role);
        }
        self.alike(at, &roles);
        roles
    }

    /// Reads one role.
    fn role(&mut self, part: &TableReader<'_, '_>, types: &[String]) -> TeamRole {
        self.known(part, &ROLE_KEYS);
        let efforts = Effort::ALL.map(Effort::as_str);
        let effort = self.text(part, "effort");
        if let Some(word) = effort.as_deref().filter(|word| !efforts.contains(word)) {
            let (at, all) = (self.at(part, "effort"), efforts.join(", "));
            self.error(at, format!("`{word}` is not an effort; use one of {all}"));
        }
        let takes = self.words(part, "takes");
        if takes
            .as_ref()
            .is_some_and(|takes| takes.iter().any(|word| word.trim().is_empty()))
        {
            let at = self.at(part, "takes");
            self.error(at, "`takes` contains an empty word".into());
        }
        TeamRole {
            agent: self.agent(part, types),
            prompt: self.text(part, "prompt").unwrap_or_default(),
            model: self.text(part, "model"),
            effort,
            mode: self.mode(part),
            worktree: self.flag(part, "worktree").unwrap_or_default(),
            budget: self.money(part, "budget_usd"),
            count: self.count(part),
            takes,
        }
    }

    /// Refuses roles whose members would have the same name.
    fn alike(&mut self, at: usize, roles: &BTreeMap<Name, TeamRole>) {
        for (name, role) in roles.iter().filter(|(_, role)| role.count > 1) {
            if let Err(error) = format!("{name}-{}", role.count).parse::<Name>() {
                self.error(
                    at,
                    format!("the last member of role {name} would have an invalid name: {error}"),
                );
            }
            let numbered = (1..=role.count).map(|number| format!("{name}-{number}"));
            for other in numbered.filter_map(|name| name.parse::<Name>().ok()) {
                if roles.get(&other).is_some_and(|role| role.count == 1) {
                    let what = format!(
                        "role {other} has the name of one of the {} of {name}",
                        role.count
                    );
                    self.error(at, format!("{what}: rename it"));
                }
            }
        }
    }

    /// Reads all `[[tasks]]`.
    fn tasks(&mut self, all: &TableReader<'_, '_>) -> Vec<PlannedTask> {
        let Some((_, at, value)) = all.keys.iter().find(|(key, _, _)| *key == "tasks") else {
            return Vec::new();
        };
        let DeValue::Array(array) = value.get_ref() else {
            self.error(
                *at,
                "tasks must be tables: write `[[tasks]]` before each".into(),
            );
            return Vec::new();
        };
        let mut tasks = Vec::new();
        for (index, value) in array.iter().enumerate() {
            let number = index as u64 + 1;
            let DeValue::Table(table) = value.get_ref() else {
                self.error(
                    value.span().start,
                    "tasks must be tables: write `[[tasks]]` before each".into(),
                );
                continue;
            };
            let part = self.part(
                table,
                format!("task {number}"),
                value.span().start,
                &TASK_KEYS,
            );
            tasks.push(self.task(&part, number));
        }
        tasks
    }

    /// Reads one task. It may only wait for earlier ones, so that there is no cycle.
    fn task(&mut self, part: &TableReader<'_, '_>, number: u64) -> PlannedTask {
        let subject = self.text(part, "subject");
        if subject
            .as_deref()
            .is_none_or(|subject| subject.trim().is_empty())
        {
            self.error(
                part.at,
                format!("task {number} has no `subject`: say what to do, in one line"),
            );
        }
        let blocked_by = self.numbers(part, "blocked_by");
        let at = self.at(part, "blocked_by");
        for other in &blocked_by {
            if *other == number {
                self.error(at, format!("task {number} waits for itself"));
            } else if *other == 0 || *other > number {
                let what = format!(
                    "task {number} waits for task {other}, which does not come \
                                    before it"
                );
                self.error(
                    at,
                    format!("{what}: tasks are numbered from 1 in the order of this file"),
                );
            }
        }
        PlannedTask {
            subject: subject.unwrap_or_default(),
            description: self.text(part, "description").unwrap_or_default(),
            role: self.text(part, "role"),
            blocked_by,
            check: self
                .text(part, "check")
                .filter(|check| !check.trim().is_empty()),
        }
    }

    /// Refuses a task that no role takes.
    fn taken(&mut self, all: &TableReader<'_, '_>, plan: &TeamPlan) {
        if plan.roles.is_empty() {
            return;
        }
        let own = |name: &Name| vec![name.to_string()];
        let words: Vec<String> = plan
            .roles
            .iter()
            .flat_map(|(name, role)| role.takes.clone().unwrap_or_else(|| own(name)))
            .collect();
        let takes_all = plan.roles.values().any(|role| role.takes.is_none());
        let places: Vec<usize> = all
            .keys
            .iter()
            .filter(|(key, _, _)| *key == "tasks")
            .filter_map(|(_, _, value)| value.get_ref().as_array())
            .flat_map(|array| array.iter().map(|value| value.span().start))
            .collect();
        for (index, task) in plan.tasks.iter().enumerate() {
            let (number, at) = (index + 1, places.get(index).copied().unwrap_or_default());
            match &task.role {
                Some(role) if !words.contains(role) => {
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    let meant = closest(role, &words);
                    let meant = meant.map_or_else(
                        || "name a role, or a word that a role has in `takes`".to_owned(),
                        |meant| format!("did you mean `{meant}`?"),
                    );
                    self.error(
                        at,
                        format!("no role takes task {number}: its role is `{role}`; {meant}"),
                    );
                }
                None if !takes_all => {
                    let why = "every role has a `takes`, so none takes a task without a `role`";
                    let what = format!(
                        "no member claims task {number} by itself: {why}; the lead must assign it"
                    );
                    let line = Some(self.line(at));
                    self.remarks.push((Severity::Warning, line, what));
                }
                _ => {}
            }
        }
    }

    /// Reads an agent type, which must be defined.
    fn agent(&mut self, part: &TableReader<'_, '_>, types: &[String]) -> Option<String> {
        let agent = self.text(part, "agent")?;
        if !types.iter().any(|known| super::super::same(known, &agent)) {
            let known: Vec<&str> = types.iter().map(String::as_str).collect();
            let meant = closest(&agent, &known).map(|meant| format!(" did you mean {meant}?"));
            let meant = meant.unwrap_or_default();
            let what =
                format!("there is no agent type `{agent}`;{meant} `posse agents list` shows them");
            let at = self.at(part, "agent");
            self.error(at, what);
        }
        Some(agent)
    }

    /// Reads a permission mode. A repository cannot bypass permissions.
    fn mode(&mut self, part: &TableReader<'_, '_>) -> Option<PermissionMode> {
        let (word, at) = (
            self.text(part, "permission_mode")?,
            self.at(part, "permission_mode"),
        );
        match word.parse() {
            Ok(PermissionMode::BypassPermissions) if self.source == DefinitionSource::Project => {
                let why = "a repository may only tighten permissions; --permission-mode \
                     bypassPermissions may allow it";
                let line = Some(self.line(at));
                self.remarks.push((
                    Severity::Warning,
                    line,
                    format!("ignored: `bypassPermissions`: {why}"),
                ));
                None
            }
            Ok(mode) => Some(mode),
            Err(error) => {
                self.error(at, format!("{error}"));
                None
            }
        }
    }

    fn count(&mut self, part: &TableReader<'_, '_>) -> u32 {
        let Some(value) = value(part, "count") else {
            return 1;
        };
        match whole(value) {
            Some(count @ 1..=MOST) => count as u32,
            _ => {
                let at = self.at(part, "count");
                self.error(
                    at,
                    format!("`count` must be a whole number from 1 to {MOST}"),
                );
                1
            }
        }
    }

    fn money(&mut self, part: &TableReader<'_, '_>, key: &str) -> Option<Cost> {
        let value = value(part, key)?;
        let amount = match value {
            DeValue::Float(amount) => amount.as_str().parse().ok(),
            DeValue::Integer(amount) => amount.as_str().parse().ok(),
            _ => None,
        };
        let why = match amount.map(crate::config::settings::agents::dollars) {
            Some(Ok(cost)) => return Some(cost),
            Some(Err(why)) => why.to_string(),
            None => "an amount in dollars, such as 2.5".to_owned(),
        };
        self.error(self.at(part, key), format!("`{key}`: {why}"));
        None
    }

    fn text(&mut self, part: &TableReader<'_, '_>, key: &str) -> Option<String> {
        match value(part, key)? {
            DeValue::String(text) => Some(text.clone().into_owned()),
            other => self.unlike(part, key, "a text in quotes", other),
        }
    }

    fn flag(&mut self, part: &TableReader<'_, '_>, key: &str) -> Option<bool> {
        match value(part, key)? {
            DeValue::Boolean(flag) => Some(*flag),
            other => self.unlike(part, key, "true or false", other),
        }
    }

    fn words(&mut self, part: &TableReader<'_, '_>, key: &str) -> Option<Vec<String>> {
        let value = value(part, key)?;
        let words = value.as_array().and_then(|words| {
            words
                .iter()
                .map(|word| word.get_ref().as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
        });
        if words.is_none() {
            self.unlike::<()>(part, key, "a list of words, such as [\"docs\"]", value);
        }
        words
    }

    fn numbers(&mut self, part: &TableReader<'_, '_>, key: &str) -> Vec<u64> {
        let Some(value) = value(part, key) else {
            return Vec::new();
        };
        let numbers = value.as_array().and_then(|numbers| {
            numbers
                .iter()
                .map(|number| whole(number.get_ref()))
                .collect::<Option<Vec<_>>>()
        });
        if numbers.is_none() {
            self.unlike::<()>(part, key, "a list of task numbers, such as [1, 2]", value);
        }
        numbers.unwrap_or_default()
    }

    /// Adds an error for a value of the wrong type.
    fn unlike<T>(
        &mut self,
        part: &TableReader<'_, '_>,
        key: &str,
        wanted: &str,
        found: &DeValue<'_>,
    ) -> Option<T> {
        let at = self.at(part, key);
        self.error(
            at,
            format!(
                "`{key}` of {} must be {wanted}, not a {}",
                part.what,
                found.type_str()
            ),
        );
        None
    }

    /// Returns the table under a key; anything else is an error.
    fn table<'t, 'd>(
        &mut self,
        part: &TableReader<'t, 'd>,
        key: &str,
    ) -> Option<(usize, &'t DeTable<'d>)> {
        let (_, at, value) = part.keys.iter().find(|(name, _, _)| *name == key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some((*at, table)),
            other => self.unlike(part, key, "a table", other),
        }
    }

    fn part<'t, 'd>(
        &mut self,
        table: &'t DeTable<'d>,
        what: String,
        at: usize,
        known: &[&str],
    ) -> TableReader<'t, 'd> {
        let part = self.part_of(table, what, at);
        self.known(&part, known);
        part
    }

    fn part_of<'t, 'd>(
        &self,
        table: &'t DeTable<'d>,
        what: String,
        at: usize,
    ) -> TableReader<'t, 'd> {
        let keys = table
            .iter()
            .map(|(key, value)| (key.get_ref().as_ref(), key.span().start, value));
        TableReader {
            keys: keys.collect(),
            what,
            at,
        }
    }

    /// Adds errors for unknown keys.
    fn known(&mut self, part: &TableReader<'_, '_>, known: &[&str]) {
        for (key, at, _) in part.keys.iter().filter(|(key, _, _)| !known.contains(key)) {
            let reason = if OWNERSHIP.contains(key) {
                let instead = "`worktree = true` keeps those who write apart";
                format!(
                    "`{key}`: roles cannot own files yet, so this would have no effect; {instead}"
                )
            } else {
                let meant = closest(key, known).map(|meant| format!("did you mean `{meant}`?"));
                let all = || format!("there are {}", known.join(", "));
                format!(
                    "{} has no field `{key}`: {}",
                    part.what,
                    meant.unwrap_or_else(all)
                )
            };
            self.error(*at, reason);
        }
    }

    /// Returns the position of a key, or of its table if it is missing.
    fn at(&self, part: &TableReader<'_, '_>, key: &str) -> usize {
        part.keys
            .iter()
            .find(|(name, _, _)| *name == key)
            .map_or(part.at, |(_, at, _)| *at)
    }

    fn error(&mut self, at: usize, reason: String) {
        let line = Some(self.line(at));
        self.remarks.push((Severity::Error, line, reason));
    }

    /// Returns the line of a position.
    fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

fn value<'t, 'd>(part: &TableReader<'t, 'd>, key: &str) -> Option<&'t DeValue<'d>> {
    part.keys
        .iter()
        .find(|(name, _, _)| *name == key)
        .map(|(_, _, value)| value.get_ref())
}

/// Returns a non-negative whole number.
fn whole(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer()?;
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}
