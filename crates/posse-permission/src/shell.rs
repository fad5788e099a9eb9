//! Shell commands and the rules. Every command in a line counts for denying; for allowing, every
//! one must be plain and allowed.

mod lexical;
mod options;
mod script;
mod suggested;
mod within;
mod word;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use self::script::{File, Script, Simple};
use self::word::Word;
use super::Policy;
use super::decide::{forbidden_edit, is_protected, unallowed};
use super::path::{absolute, may_be_protected};
use super::pattern::CommandPattern;
use super::rule::About;
use crate::mirror::RulePaths;
use posse_port::tool::Workspace;

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
    "printf", "rg", "stat", "tail", "test", "wc", "[",
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

/// A parsed command line.
pub(super) struct Line<'a> {
    command: &'a str,
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
    /// Parses a command line.
    pub(super) fn read(command: &'a str, workspace: &'a Workspace) -> Self {
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
                here = absolute(&here, to.map_or(home, |word| word.text.as_str()));
                if !places.contains(&here) {
                    places.push(here.clone());
                }
                lost = places.len() > MOST_PLACES;
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
            let name = may_be_protected(path, self.workspace).filter(|_| word.glob);
            name.map(|name| is_protected(path, name))
        };
        forbidden_edit(path, self.workspace).or_else(perhaps)
    }

    /// Returns `Ok` if rules allow all of it; else the reason.
    pub(super) fn allowed(&self, policy: &Policy) -> Result<(), String> {
        let patterns = || {
            policy.allow.iter().filter_map(|rule| match &rule.about {
                About::Command(pattern) => Some(pattern),
                _ => None,
            })
        };
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
        let beyond =
            |why: &str| format!("no rule can allow this command because {why}; use plain commands");
        if self.command.len() > LONGEST {
            return Err(beyond("it is longer than 10 kB"));
        }
        if self.command.chars().any(is_invisible) {
            return Err(beyond("it contains invisible characters"));
        }
        if let Some(why) = self.script.opaque {
            return Err(beyond(why));
        }
        if self.lost {
            return Err(beyond("it involves too many directories"));
        }
        self.script
            .files
            .iter()
            .try_for_each(|file| self.file_allowed(file, policy))?;
        for command in self
            .script
            .commands
            .iter()
            .filter(|command| !command.within)
        {
            let allowing: Vec<_> = patterns().collect();
            self.command_allowed(command, &allowing, policy)?;
        }
        Ok(())
    }

    /// Returns the first command that could run posse and that none of these rules names in full.
    fn unnamed_posse(&self, exact: &[&CommandPattern]) -> Option<String> {
        let named = |words: &[Word]| {
            words.iter().all(|word| word.literal && !word.glob)
                && exact.iter().any(|pattern| pattern.allows(&texts(words)))
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
        let Some((pattern, words)) = fitting(&command.words, allowing)? else {
            return Err(unallowed(&format!("Bash({text})")));
        };
        if pattern.is_exact() {
            return Ok(());
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
        if hides && is_recursive(words) {
            return beyond("it reads whole directories, and some files may not be read".into());
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
        let fixed = !file.name.glob && self.places.len() == 1;
        let inside = fixed && self.workspace.holds(&path);
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

    /// Returns every path that the word, or a value in it, could be.
    fn paths(&self, word: &Word) -> impl Iterator<Item = PathBuf> {
        values(word).flat_map(|value| self.places.iter().map(move |place| absolute(place, value)))
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
            self.paths(word)
                .find(|path| denied(word, path) || self.forbidden(word, path).is_some())
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
            values(word)
                .any(|value| value.starts_with('/') || value.split('/').any(|part| part == ".."))
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

/// Returns the rule that allows a command, and the words that it applies to. A wrapper is not
/// enough: if a rule with `*` matches one, the rule must spell out what it runs, or that must be
/// allowed itself.
fn fitting<'w, 'p>(
    words: &'w [Word],
    allowing: &[&'p CommandPattern],
) -> Result<Option<(&'p CommandPattern, &'w [Word])>, String> {
    let mut words = words;
    loop {
        if words.first().is_none_or(|first| first.glob) {
            return Err("no rule can allow a command whose name is not plain".into());
        }
        let texts = texts(words);
        let mut fitting: Vec<_> = allowing
            .iter()
            .filter(|pattern| pattern.allows(&texts))
            .collect();
        // A rule that names the command in full is preferred, because it is taken literally.
        fitting.sort_by_key(|pattern| !pattern.is_exact());
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
        let plain = !within::wraps(inner) && !inner.first().is_none_or(|first| first.glob);
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

/// Maximum number of letters before the value in a cluster of short options.
const MOST_LETTERS: usize = 8;

/// Returns the word, and what follows an option, a `=`, an `@` or a `:` in it.
fn values(word: &Word) -> impl Iterator<Item = &str> {
    let text = word.text.as_str();
    let short = text
        .strip_prefix('-')
        .filter(|rest| !rest.starts_with('-'))
        .unwrap_or_default();
    let attached = short
        .char_indices()
        .skip(1)
        .take(MOST_LETTERS)
        .filter_map(|(at, _)| short.get(at..));
    let after = |mark| text.split_once(mark).map(|(_, value)| value);
    // What follows the colon of a URL is not a path.
    let scoped = after(':').filter(|value| !value.starts_with("//"));
    [Some(text), after('='), after('@'), scoped]
        .into_iter()
        .flatten()
        .chain(attached)
        .filter(|value| !value.is_empty())
}

/// Returns true if the command does not write to files named by its arguments.
fn is_reader(words: &[Word]) -> bool {
    let subcommand = words.get(1).map(|word| word.text.as_str());
    match within::name(words) {
        "git" => subcommand.is_some_and(|name| GIT_READERS.contains(&name)),
        name => READERS.contains(&name),
    }
}

/// Returns true if the command reads everything below its arguments.
fn is_recursive(words: &[Word]) -> bool {
    let has = |letters: &[char], long: &[&str]| {
        words.iter().skip(1).any(|word| {
            let short = word
                .text
                .strip_prefix('-')
                .filter(|rest| !rest.starts_with('-'));
            short.is_some_and(|rest| rest.contains(letters))
                || long.iter().any(|long| word.text.starts_with(long))
        })
    };
    match within::name(words) {
        "grep" | "egrep" | "fgrep" => has(&['r', 'R', 'd'], &["--rec", "--dereference-r", "--dir"]),
        "diff" | "cp" | "scp" => has(&['r', 'R', 'a'], &["--rec", "--arch"]),
        "rg" | "rgrep" | "ag" | "ack" | "tar" | "zip" | "rsync" => true,
        _ => false,
    }
}

/// Returns true for characters that a person does not see, or sees in another place.
fn is_invisible(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}
