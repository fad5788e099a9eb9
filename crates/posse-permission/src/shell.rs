//! Shell commands and the rules. Every command in a line counts for denying; for allowing, every
//! one must be plain and allowed.

mod free;
#[cfg(test)]
mod fuzz;
mod lexical;
mod named;
mod options;
mod recursive;
mod script;
mod suggested;
mod within;
mod word;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use self::script::{File, Script, Simple};
use self::word::Word;
use super::Policy;
use super::decide::{forbidden_edit, is_protected, unallowed};
use super::path::{absolute, may_be_protected, watched};
use super::pattern::{BETWEEN, CommandPattern};
use super::rule::{About, Rule};
use crate::mirror::RulePaths;
use posse_port::tool::{CommandDisk, LeadKind, PathLead, Subject, Workspace};

/// Maximum length of a command that rules can allow: nobody thinks of longer ones when writing a
/// rule.
const LONGEST: usize = 10_000;

/// Maximum number of directories that are followed.
const MOST_PLACES: usize = 16;
/// Maximum number of paths that are compared.
const MOST_PATHS: usize = 50_000;

/// Variables that may be set for an allowed command.
const HARMLESS: &[&str] = &[
    "CI",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "NODE_ENV",
    "NO_COLOR",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TZ",
];

/// Commands that do not write to files named by their arguments.
const READERS: &[&str] = &[
    "cat", "cd", "diff", "du", "echo", "egrep", "fgrep", "file", "find", "grep", "head", "ls",
    "printf", "rg", "sed", "stat", "tail", "test", "wc", "[",
];

/// Subcommands of git that do not write to files named by their arguments. Git itself is not a
/// reader: most of its 150 subcommands write.
const GIT_READERS: &[&str] = &[
    "blame",
    "describe",
    "diff",
    "grep",
    "log",
    "ls-files",
    "rev-parse",
    "shortlog",
    "show",
    "status",
];

/// The program that speaks for the person: with it an agent could answer the person's questions.
const POSSE: &str = "posse";

/// Returns the result of a parser; `None` if it fails or panics (brush-parser does at
/// `~99999999999`).
fn parsed<T>(parse: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(parse)).ok().flatten()
}

/// What a command's words tell.
pub struct CommandWords {
    /// The paths that it could name, absolute and with their `.` and `..`: what the disk has there
    /// counts for the verdict.
    pub paths: BTreeSet<PathBuf>,
    /// True if it only reads.
    pub only_reads: bool,
}

/// Returns what a command's words tell. `has_plain_git` as in [`CommandDisk`].
pub fn words(command: &str, workspace: &Workspace, has_plain_git: bool) -> CommandWords {
    let disk = CommandDisk {
        has_plain_git,
        ..CommandDisk::default()
    };
    let line = Line::read(command, &disk, workspace);
    let files = line.script.files.iter().map(|file| &file.name);
    let words = line.arguments().chain(files);
    let values = words.flat_map(named::values);
    let named = |value: std::borrow::Cow<'_, str>| {
        let places = line.places.iter();
        let paths = places.map(|place| line.named(place, &value));
        paths.collect::<Vec<_>>()
    };
    CommandWords {
        paths: values.flat_map(named).collect(),
        only_reads: line.only_reads(&Policy::default()),
    }
}

/// The rules that a command is compared with.
#[derive(Clone, Copy)]
pub(super) enum CommandRules {
    /// Those of commands in general.
    Inside,
    /// Those of commands outside the sandbox.
    Outside,
}

/// A parsed command line.
pub(super) struct Line<'a> {
    command: &'a str,
    /// What the disk has at the paths that it names.
    disk: &'a CommandDisk,
    workspace: &'a Workspace,
    script: Script,
    /// The texts that deny and ask rules are compared with.
    texts: Vec<String>,
    /// Every directory in which a command of the line could run, as far as can be determined.
    places: Vec<PathBuf>,
    /// There are too many of them, so that every path could be meant.
    lost: bool,
}

impl<'a> Line<'a> {
    /// Parses the command of a call, if it runs one.
    pub(super) fn of(subject: &'a Subject, workspace: &'a Workspace) -> Option<Self> {
        match subject {
            Subject::Runs { command, disk, .. } => Some(Self::read(command, disk, workspace)),
            _ => None,
        }
    }

    /// Parses a command line.
    pub(super) fn read(command: &'a str, disk: &'a CommandDisk, workspace: &'a Workspace) -> Self {
        let script = script::read(command, workspace);
        let mut texts = vec![command.trim().to_owned()];
        let mut places = vec![workspace.cwd.clone()];
        let mut here = workspace.cwd.clone();
        let mut lost = false;
        for Simple { words, .. } in &script.commands {
            let Some((first, arguments)) = words.split_first() else {
                continue;
            };
            let name = within::name(words);
            let rest: String = arguments
                .iter()
                .flat_map(|word| [" ", word.text.as_str()])
                .collect();
            if name != first.text {
                texts.push(format!("{}{rest}", first.text));
            }
            texts.push(format!("{name}{rest}"));
            // Whether the `cd` succeeds is unknown, so that both directories count from here on.
            if matches!(name, "cd" | "pushd") && !lost {
                let home = workspace
                    .home
                    .as_deref()
                    .and_then(Path::to_str)
                    .unwrap_or("/");
                let to = arguments.iter().find(|word| !word.text.starts_with('-'));
                // With -P, `..` counts from where a link leads.
                let is_option = |word: &Word| word.text.starts_with('-');
                lost |= arguments.iter().any(is_option)
                    && to.is_some_and(|word| word.text.contains(".."));
                here = absolute(&here, to.map_or(home, |word| word.text.as_str()));
                if !places.contains(&here) {
                    places.push(here.clone());
                }
                lost |= places.len() > MOST_PLACES;
            }
        }
        let words: usize = script
            .commands
            .iter()
            .map(|command| command.words.len())
            .sum();
        let copies = workspace
            .mirror
            .as_ref()
            .map_or(0, |mirror| mirror.of.len());
        lost |= words
            .saturating_mul(places.len())
            .saturating_mul(copies + 1)
            > MOST_PATHS;
        Self {
            command,
            disk,
            workspace,
            script,
            texts,
            places,
            lost,
        }
    }

    /// Returns true if a deny or ask rule applies to something in the line.
    pub(super) fn touched_by(&self, about: &About) -> bool {
        match about {
            About::Command(pattern) => self.texts.iter().any(|text| pattern.touches(text)),
            About::Read(_) | About::Edit(_) if self.lost => true,
            About::Read(pattern) => {
                let named = |word: &Word| {
                    self.paths(word).any(|path| {
                        pattern.touches(&path, self.workspace)
                            || (word.glob && pattern.may_be(&path, self.workspace))
                    })
                };
                self.arguments().any(named)
                    || self.script.files.iter().any(|file| named(&file.name))
            }
            About::Edit(pattern) => {
                let named = |file: &File| {
                    self.paths(&file.name)
                        .any(|path| pattern.touches(&path, self.workspace))
                };
                self.written().any(named)
            }
            // A redirection does what the tool would do.
            About::Editing => self.opens(true),
            About::Reading => self.opens(false),
            About::Tools(name) => {
                ((name.matches("Edit") || name.matches("Write")) && self.opens(true))
                    || (name.matches("Read") && self.opens(false))
            }
            _ => false,
        }
    }

    /// Returns true if a deny or ask rule could apply to what the line's wildcards match.
    pub(super) fn perhaps_touched_by(&self, about: &About) -> bool {
        let globs = |word: &&Word| word.glob;
        match about {
            // A wildcard in the name of a program.
            About::Command(pattern) => {
                let commands = self.script.commands.iter();
                let names = commands.filter_map(|command| command.words.first());
                let mut names = names.filter(globs);
                names.any(|name| within::may_be(name, pattern.program()))
            }
            About::Read(pattern) => {
                let mut words = self
                    .arguments()
                    .chain(self.script.files.iter().map(|file| &file.name));
                let meets = |word: &Word| {
                    self.paths(word)
                        .any(|path| pattern.may_meet(&path, self.workspace))
                };
                words.by_ref().filter(globs).any(meets)
            }
            About::Edit(pattern) => {
                let may = |path: PathBuf| {
                    pattern.may_be(&path, self.workspace) || pattern.may_meet(&path, self.workspace)
                };
                let names = self.written().map(|file| &file.name);
                names.filter(globs).any(|word| self.paths(word).any(may))
            }
            _ => false,
        }
    }

    /// Returns true if parts of it cannot be told apart surely.
    pub(super) fn is_opaque(&self) -> bool {
        self.script.opaque.is_some()
    }

    /// Returns true if a redirection opens a file for writing, or for reading.
    fn opens(&self, writes: bool) -> bool {
        self.script
            .files
            .iter()
            .any(|file| file.writes == writes && !file.is_free())
    }

    /// Returns the reason if no rule can allow the line: it writes something protected, or
    /// removes everything.
    pub(super) fn untouchable(&self) -> Option<String> {
        let forbidden = |file: &File| {
            self.paths(&file.name)
                .find_map(|path| self.forbidden(&file.name, &path))
        };
        self.written().find_map(forbidden).or_else(|| {
            self.script.commands.iter().any(|command| self.removes_all(command)).then(|| {
                "this would remove the whole workspace, the home directory or more; name what to \
                 remove"
                    .into()
            })
        })
    }

    /// Returns the reason why a path, which the word could be, is not written.
    fn forbidden(&self, word: &Word, path: &Path) -> Option<String> {
        let perhaps = || {
            let is_glob = word.glob.then_some(path);
            let name = is_glob.and_then(|glob| may_be_protected(glob, self.workspace));
            name.map(|name| is_protected(path, name))
        };
        forbidden_edit(path, self.workspace).or_else(perhaps)
    }

    /// Returns true if a sandbox that holds it is enough: it could not act in the person's name.
    pub(super) fn can_be_held(&self) -> bool {
        self.unnamed_posse(&[]).is_none()
    }

    /// Returns true if rules allow all of it outside the sandbox.
    pub(super) fn outside_allowed(&self, policy: &Policy) -> bool {
        let is_outside = |rule: &Rule| matches!(rule.about, About::Outside(_));
        // What only reads needs no rule, and need not be outside.
        !policy.is_kept_inside
            && policy.allow.iter().any(is_outside)
            && !self.only_reads(policy)
            && self.allowed(policy, CommandRules::Outside).is_ok()
    }

    /// Returns `Ok` if rules allow all of it, or it only reads what may be read; else the reason.
    pub(super) fn allowed(&self, policy: &Policy, rules: CommandRules) -> Result<(), String> {
        fn chosen(rule: &Rule, rules: CommandRules) -> Option<&CommandPattern> {
            match (rules, &rule.about) {
                (CommandRules::Inside, About::Command(pattern))
                | (CommandRules::Outside, About::Outside(pattern)) => Some(pattern),
                _ => None,
            }
        }
        let patterns = || policy.allow.iter().filter_map(|rule| chosen(rule, rules));
        if patterns().any(|pattern| pattern.is_written(self.command)) {
            return Ok(());
        }
        let exact: Vec<_> = patterns().filter(|pattern| pattern.is_exact()).collect();
        if let Some(text) = self.unnamed_posse(&exact) {
            return Err(format!(
                "posse could act in the person's name, so a rule with `*` does not cover `{text}`: {}",
                unallowed(&format!("Bash({text})"))
            ));
        }
        if patterns().any(CommandPattern::is_everything) {
            return Ok(());
        }
        if let Some(why) = self.beyond_rules() {
            return Err(format!(
                "no rule can allow this command because {why}; use plain commands"
            ));
        }
        self.script
            .files
            .iter()
            .try_for_each(|file| self.file_allowed(file, policy))?;
        let allowing: Vec<&CommandPattern> = patterns().collect();
        let mut commands = self.script.commands.iter().filter(|it| !it.within);
        commands.try_for_each(|command| self.command_allowed(command, &allowing, policy))
    }

    /// Returns why no rule can allow the line, whatever its commands are.
    fn beyond_rules(&self) -> Option<&'static str> {
        if self.command.len() > LONGEST {
            return Some("it is longer than 10 kB");
        }
        if self.command.chars().any(is_invisible) {
            return Some("it contains invisible characters");
        }
        let is_lost = self.lost || self.disk.is_cut;
        let lost = is_lost.then_some("it involves too many directories or files");
        self.script.opaque.or(lost)
    }

    /// Returns true if it only reads: no rule is needed for it, and nothing that it does is lost if
    /// it is done again.
    pub(super) fn only_reads(&self, policy: &Policy) -> bool {
        let reads = |file: &File| file.is_free() || !file.writes;
        let is_free = |command: &Simple| self.command_allowed(command, &[], policy).is_ok();
        let mut commands = self.script.commands.iter().filter(|it| !it.within);
        self.beyond_rules().is_none()
            && self.unnamed_posse(&[]).is_none()
            && self
                .script
                .files
                .iter()
                .all(|file| reads(file) && self.file_allowed(file, policy).is_ok())
            && commands.all(is_free)
    }

    /// Returns the first command that could run posse and that none of these rules names in full.
    fn unnamed_posse(&self, exact: &[&CommandPattern]) -> Option<String> {
        let named = |words: &[Word]| {
            let joined = joined(words);
            words.iter().all(|word| word.literal && !word.glob)
                && exact.iter().any(|pattern| pattern.allows(&joined))
        };
        let runs_posse = |command: &&Simple| {
            let inner = within::innermost(&command.words);
            within::could_run(inner, POSSE) && !named(&command.words) && !named(inner)
        };
        let mut commands = self.script.commands.iter();
        let command = commands.by_ref().filter(|it| !it.within).find(runs_posse)?;
        Some(texts(&command.words).join(" "))
    }

    /// Returns `Ok` if rules allow one command of the line.
    fn command_allowed(
        &self,
        command: &Simple,
        allowing: &[&CommandPattern],
        policy: &Policy,
    ) -> Result<(), String> {
        let harmless = |name: &str| HARMLESS.contains(&name) || name.starts_with("LC_");
        if let Some((name, _)) = command
            .variables
            .iter()
            .find(|(name, known)| !known || !harmless(name))
        {
            return Err(format!(
                "no rule can allow setting {name} for a command; omit it"
            ));
        }
        let text = texts(&command.words).join(" ");
        let Some((pattern, words)) = fitting(&command.words, allowing, self.disk)? else {
            return Err(unallowed(&format!("Bash({text})")));
        };
        if pattern.is_exact() {
            let is_elsewhere = self.places.len() > 1 && !changes_directory(words);
            return match is_elsewhere {
                true => Err(format!(
                    "the rule that names `{text}` is not about other directories: {}",
                    unallowed(&format!("Bash({})", self.command.trim()))
                )),
                false => Ok(()),
            };
        }
        let beyond = |why: String| {
            Err(format!(
                "`{text}` does more than a rule with `*` covers: {why}"
            ))
        };
        if let Some(option) = options::reach(words, |start| pattern.begins_with(start)) {
            return beyond(format!("`{option}` can run or write something else"));
        }
        if self.places.len() > 1 && within::name(words) == "git" {
            return beyond("git in another directory uses that directory's settings".into());
        }
        let hides = policy
            .deny
            .iter()
            .any(|rule| matches!(rule.about, About::Read(_)));
        if hides && (recursive::is_recursive(words) || self.compares_directories(words)) {
            return beyond("it reads whole directories, and some files may not be read".into());
        }
        if hides && let Some(path) = self.shared(words) {
            let path = path.display();
            return beyond(format!(
                "{path} has other names, and some files may not be read"
            ));
        }
        if let Some(path) = self.written_to(words, policy) {
            return beyond(format!(
                "it could write {}, which is protected",
                path.display()
            ));
        }
        match self.outside(words) {
            Some(path) => beyond(format!("{} is outside the workspace", path.display())),
            None => Ok(()),
        }
    }

    /// Returns `Ok` if rules allow a redirection.
    fn file_allowed(&self, file: &File, policy: &Policy) -> Result<(), String> {
        let name = file.name.text.as_str();
        if file.is_free() {
            return Ok(());
        }
        // After a `cd`, and through links, a path may be another one: a rule must name the very
        // file.
        let path = absolute(&self.workspace.cwd, name);
        let lead = self.lead(&self.named(&self.workspace.cwd, name));
        let leads_elsewhere =
            lead.is_some_and(|lead| lead.real != path || lead.kind == LeadKind::SharedFile);
        let fixed = !file.name.glob && self.places.len() == 1;
        let inside = fixed
            && self.workspace.holds(&path)
            && lead.is_none_or(|lead| self.workspace.holds(&lead.real));
        let fixed = fixed && !(file.writes && leads_elsewhere);
        let named = |about: &About| match about {
            About::Edit(pattern) => pattern.is_just(&path, self.workspace),
            _ => false,
        };
        let free = match file.writes {
            false => inside,
            true if self.workspace.is_original(&path) => false,
            true => fixed && policy.allow.iter().any(|rule| named(&rule.about)),
        };
        let verb = if file.writes { "writes" } else { "reads" };
        let rule = format!("Edit(/{})", self.workspace.lasting(&path).display());
        match free {
            true => Ok(()),
            false if file.writes && fixed => {
                Err(format!("the command {verb} {name}: {}", unallowed(&rule)))
            }
            false => Err(format!(
                "the command {verb} {name}, which cannot be checked or is outside the workspace"
            )),
        }
    }

    /// Returns all words that could be paths.
    fn arguments(&self) -> impl Iterator<Item = &Word> {
        self.script.commands.iter().flat_map(|command| {
            let is_path = |at: usize, word: &Word| at > 0 || word.text.contains('/');
            command
                .words
                .iter()
                .enumerate()
                .filter(move |(at, word)| is_path(*at, word))
                .map(|(_, word)| word)
        })
    }

    fn written(&self) -> impl Iterator<Item = &File> {
        self.script.files.iter().filter(|file| file.writes)
    }

    /// Returns every path that the word, or a value in it, could be, and where these lead.
    fn paths(&self, word: &Word) -> impl Iterator<Item = PathBuf> {
        named::values(word).flat_map(move |value| {
            self.places.iter().flat_map(move |place| {
                let named = self.named(place, &value);
                let lead = self.lead(&named).map(|lead| lead.real.clone());
                let text = absolute(&self.workspace.cwd, &named.to_string_lossy());
                std::iter::once(text).chain(lead)
            })
        })
    }

    /// Returns a path as it is named in a directory.
    fn named(&self, place: &Path, value: &str) -> PathBuf {
        named::path(place, value, self.workspace.home.as_deref())
    }

    /// Returns what the disk has at a path that is more than its text says.
    fn lead(&self, named: &Path) -> Option<&PathLead> {
        let leads = &self.disk.leads;
        let at = leads.binary_search_by(|lead| lead.named.as_path().cmp(named));
        leads.get(at.ok()?)
    }

    /// Returns what the disk has at the paths that a word names.
    fn leads(&self, word: &Word) -> impl Iterator<Item = &PathLead> {
        named::values(word).flat_map(move |value| {
            let places = self.places.iter();
            places.filter_map(move |place| self.lead(&self.named(place, &value)))
        })
    }

    /// Returns a file that has other names, too.
    fn shared(&self, words: &[Word]) -> Option<&Path> {
        let mut leads = words.iter().skip(1).flat_map(|word| self.leads(word));
        let shared = leads.find(|lead| lead.kind == LeadKind::SharedFile)?;
        Some(&shared.named)
    }

    /// Returns true if directories are compared, which reads what is in them.
    fn compares_directories(&self, words: &[Word]) -> bool {
        let is_directory = |lead: &PathLead| lead.kind == LeadKind::Directory;
        let mut arguments = words.iter().skip(1);
        within::name(words) == "diff" && arguments.any(|word| self.leads(word).any(is_directory))
    }

    /// Returns a path that must not be edited and that the command could write.
    fn written_to(&self, words: &[Word], policy: &Policy) -> Option<PathBuf> {
        if is_reader(words) {
            return None;
        }
        let denied = |word: &Word, path: &Path| {
            policy.deny.iter().any(|rule| {
                let About::Edit(pattern) = &rule.about else {
                    return false;
                };
                let may = || {
                    pattern.may_be(path, self.workspace) || pattern.may_meet(path, self.workspace)
                };
                pattern.touches(path, self.workspace) || (word.glob && may())
            })
        };
        let forbidden = |word: &Word| {
            self.paths(word).find(|path| {
                denied(word, path)
                    || self.forbidden(word, path).is_some()
                    || watched(path, self.workspace).is_some()
            })
        };
        words.iter().skip(1).find_map(forbidden)
    }

    /// Returns the first path that leads out of the workspace.
    fn outside(&self, words: &[Word]) -> Option<PathBuf> {
        let name = within::name(words);
        let skipped = match name {
            "echo" | "printf" => return None,
            // The search pattern is not a path.
            "grep" | "egrep" | "fgrep" | "rg" if !words.iter().skip(1).any(names_pattern) => words
                .iter()
                .skip(1)
                .position(|word| !word.text.starts_with('-')),
            _ => None,
        };
        let leads = |word: &Word| {
            let is_far = |value: &str| {
                value.starts_with(['/', '~']) || value.split('/').any(|part| part == "..")
            };
            named::values(word).any(|value| is_far(&value)) || self.leads(word).next().is_some()
        };
        let moved = self.places.len() > 1;
        let arguments = words
            .iter()
            .skip(1)
            .enumerate()
            .filter(|(at, _)| Some(*at) != skipped);
        arguments
            .filter(|(_, word)| moved || leads(word))
            .find_map(|(_, word)| {
                let free = |path: &PathBuf| {
                    self.workspace.holds(path)
                        || path.starts_with(&self.workspace.spill)
                        || path == Path::new("/dev/null")
                };
                self.paths(word).find(|path| !free(path))
            })
    }

    /// Returns true for `rm -r` of a root, of what it is a copy of, of the home directory, or of
    /// a directory that contains one.
    fn removes_all(&self, command: &Simple) -> bool {
        let words = command.words.as_slice();
        let option = |text: &str| {
            // getopt accepts any beginning of a long option, `--r` for one.
            text.len() > 2 && "--recursive".starts_with(text)
                || text.starts_with('-') && !text.starts_with("--") && text.contains(['r', 'R'])
        };
        if within::name(words) != "rm" || !words.iter().any(|word| option(&word.text)) {
            return false;
        }
        let originals = self.workspace.mirror.iter().flat_map(|mirror| &mirror.of);
        let kept = self
            .workspace
            .home
            .iter()
            .chain(originals)
            .map(PathBuf::as_path);
        let kept: Vec<_> = self.workspace.tops().chain(kept).collect();
        let gone = |word: &Word| {
            let text = word.text.as_str();
            // `*` at the end means everything in the directory.
            let directory = text
                .strip_suffix('*')
                .filter(|rest| rest.is_empty() || rest.ends_with('/'));
            let directory = directory.map_or(text, |rest| if rest.is_empty() { "." } else { rest });
            self.places.iter().any(|place| {
                let path = absolute(place, directory);
                kept.iter().any(|kept| kept.starts_with(&path))
            })
        };
        words
            .iter()
            .skip(1)
            .filter(|word| !word.text.starts_with('-') && !word.text.is_empty())
            .any(gone)
    }
}

/// Returns the rule that allows a command, one of these or that of a command that only reads, and
/// the words that it applies to. A wrapper is not enough: if a rule with `*` matches one, the rule
/// must spell out what it runs, or that must be allowed itself.
fn fitting<'w, 'p>(
    words: &'w [Word],
    allowing: &[&'p CommandPattern],
    disk: &CommandDisk,
) -> Result<Option<(&'p CommandPattern, &'w [Word])>, String> {
    let mut words = words;
    loop {
        // A single bracket is a program.
        let is_plain = |first: &Word| !first.glob || first.text == "[";
        if !words.first().is_some_and(is_plain) {
            return Err("no rule can allow a command whose name is not plain".into());
        }
        let texts = texts(words);
        let joined = joined(words);
        let free = free::pattern(&texts, disk);
        let mut fitting: Vec<&CommandPattern> = allowing
            .iter()
            .copied()
            .chain(free)
            .filter(|pattern| pattern.allows(&joined))
            .collect();
        // A rule that names the command in full is preferred, because it is taken literally; then one
        // that says more.
        fitting.sort_by_key(|pattern| (!pattern.is_exact(), Reverse(pattern.length())));
        let inner = within::innermost(words);
        let spelled = texts
            .get(..=words.len() - inner.len())
            .unwrap_or_default()
            .join(" ");
        let covers = |pattern: &CommandPattern| {
            pattern.is_exact()
                || !within::wraps(words)
                || pattern.begins_with(&format!("{spelled} "))
        };
        let plain = !within::wraps(inner) && inner.first().is_some_and(is_plain);
        let found = fitting
            .iter()
            .find(|pattern| pattern.is_exact() || (plain && covers(pattern)));
        match (found, within::unwrapped(words)) {
            (Some(pattern), _) => return Ok(Some((pattern, inner))),
            (None, Some(inner)) => words = inner,
            (None, None) => return Ok(None),
        }
    }
}

/// Returns the values of words in one text, as rules are compared with it.
fn joined(words: &[Word]) -> String {
    texts(words).join(&BETWEEN.to_string())
}

/// Returns the values of words.
fn texts(words: &[Word]) -> Vec<&str> {
    words.iter().map(|word| word.text.as_str()).collect()
}

/// Returns true if this option gives the search pattern, so that every other word is a path.
fn names_pattern(word: &Word) -> bool {
    let text = word.text.as_str();
    match text.strip_prefix("--") {
        Some(long) => long.starts_with("reg") || long.starts_with('f'),
        None => text.starts_with('-') && text.contains(['e', 'f']),
    }
}

/// Returns true if the command changes the directory.
fn changes_directory(words: &[Word]) -> bool {
    matches!(within::name(words), "cd" | "pushd" | "popd")
}

/// Returns true if the command does not write to files named by its arguments.
fn is_reader(words: &[Word]) -> bool {
    let subcommand = words.get(1).map(|word| word.text.as_str());
    match within::name(words) {
        "git" => subcommand.is_some_and(|name| GIT_READERS.contains(&name)),
        name => READERS.contains(&name),
    }
}

/// Returns true for characters that a person does not see, or sees in another place.
fn is_invisible(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}
