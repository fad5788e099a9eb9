//! A command line, taken apart into the simple commands and files that are in it, wherever they stand.

use std::collections::BTreeSet;

use brush_parser::ast::{
    AndOr, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem, CompoundCommand,
    CompoundList, ExtendedTestExpr, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, Pipeline,
    RedirectList, SimpleCommand,
};
use brush_parser::{Parser, ParserOptions};

use super::lexical::{self, Trust};
use super::within;
use super::word::{self, Word};
use posse_port::tool::Workspace;

/// Braces make at most so many words of a command.
const MOST_WORDS: usize = 1024;

/// Scripts within scripts are followed this deep.
const DEEPEST: usize = 8;

/// The parser recurses: what is longer is not given to it.
const LONGEST: usize = 64 * 1024;

/// What stands between commands, roughly.
const SEPARATORS: &[char] = &['\n', ';', '|', '&', '(', ')', '`', '{', '}', '<', '>'];

/// What is in a command line.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Every simple command, also of scripts within.
    pub(super) commands: Vec<Simple>,
    /// Every file that is opened by a redirection.
    pub(super) files: Vec<File>,
    /// Why rules cannot allow it, whatever they say.
    pub(super) opaque: Option<&'static str>,
    /// Whether a here-document or here-string is in it, which no rule tells apart from another.
    pub(super) has_input: bool,
}

/// A simple command.
#[derive(Clone, Debug, Default)]
pub(super) struct Simple {
    /// `NAME=` before it, with whether the value is known.
    pub(super) variables: Vec<(String, bool)>,
    pub(super) words: Vec<Word>,
    /// Whether it stands in another command's words.
    pub(super) within: bool,
}

/// A redirection to or from a file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) writes: bool,
    pub(super) name: Word,
}

impl File {
    /// Whether opening it does nothing.
    pub(super) fn is_free(&self) -> bool {
        matches!(
            self.name.text.as_str(),
            "/dev/null" | "/dev/stdout" | "/dev/stderr"
        )
    }
}

/// Takes a command line apart.
pub(super) fn read(text: &str, workspace: &Workspace) -> Script {
    let mut walk = Walk {
        script: Script::default(),
        depth: 0,
        workspace,
        input: Vec::new(),
    };
    walk.text(text);
    walk.script
}

struct Walk<'a> {
    script: Script,
    depth: usize,
    workspace: &'a Workspace,
    /// What the command at hand is given to read.
    input: Vec<String>,
}

impl Walk<'_> {
    fn opaque(&mut self, why: &'static str) {
        self.script.opaque.get_or_insert(why);
    }

    fn text(&mut self, text: &str) {
        let options = ParserOptions::default();
        let trust = if text.len() > LONGEST {
            Trust::Separators
        } else {
            lexical::trust(text)
        };
        let program = match trust {
            Trust::Separators => None,
            _ => super::parsed(|| Parser::new(text.as_bytes(), &options).parse_program().ok()),
        };
        let Some(program) = program else {
            self.opaque("it cannot be parsed");
            return self.unparsed(text);
        };
        if trust == Trust::Both {
            self.opaque("bash may parse it differently");
            self.unparsed(text);
        }
        for list in &program.complete_commands {
            self.list(list);
        }
    }

    /// Takes apart by separators alone what is no shell, or none that we know.
    fn unparsed(&mut self, text: &str) {
        let mut before = ' ';
        for part in text.split_inclusive(SEPARATORS) {
            let (part, after) = match part.strip_suffix(SEPARATORS) {
                Some(rest) => (rest, part.chars().next_back().unwrap_or(' ')),
                None => (part, ' '),
            };
            let word = |word: &str| {
                let bare = brush_parser::unquote_str(word);
                Word {
                    literal: false,
                    ..Word::literal(bare.trim_matches(['\'', '"']))
                }
            };
            let words: Vec<_> = part.split_whitespace().map(word).collect();
            let Some(first) = words.first() else {
                // `>|` and `>&` write as `>` does.
                before = if before == '>' { before } else { after };
                continue;
            };
            if matches!(before, '<' | '>') && !is_descriptor(&first.text) {
                self.script.files.push(File {
                    writes: before == '>',
                    name: first.clone(),
                });
            }
            before = after;
            if part.contains(',') {
                let apart = part
                    .split(|c: char| c.is_whitespace() || c == ',')
                    .filter(|part| !part.is_empty());
                self.rests(Simple {
                    words: apart.map(word).collect(),
                    within: true,
                    ..Simple::default()
                });
            }
            self.rests(Simple {
                words,
                ..Simple::default()
            });
        }
    }

    fn rests(&mut self, command: Simple) {
        self.script.commands.extend(within::rests(&command));
        self.script.commands.push(command);
    }

    /// A script within: what it runs counts, and it makes the whole too clever for rules.
    fn inner(&mut self, text: &str, why: &'static str) {
        self.opaque(why);
        if self.depth < DEEPEST {
            self.depth += 1;
            self.text(text);
            self.depth -= 1;
        } else {
            self.unparsed(text);
        }
    }

    fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            self.pipeline(&item.0.first);
            for next in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
                self.pipeline(pipeline);
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        for command in &pipeline.seq {
            match command {
                Command::Simple(simple) => self.simple(simple),
                Command::Compound(compound, redirects) => {
                    self.compound(compound);
                    self.redirects(redirects.as_ref());
                }
                Command::Function(function) => {
                    self.opaque("it defines a function");
                    self.compound(&function.body.0);
                    self.redirects(function.body.1.as_ref());
                }
                Command::ExtendedTest(test, redirects) => {
                    self.opaque("`[[ ]]` can run commands");
                    self.test(&test.expr);
                    self.redirects(redirects.as_ref());
                }
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(arithmetic) => self.arithmetic(&arithmetic.expr.value),
            CompoundCommand::ArithmeticForClause(clause) => {
                for part in [&clause.initializer, &clause.condition, &clause.updater]
                    .into_iter()
                    .flatten()
                {
                    self.arithmetic(&part.value);
                }
                self.opaque("arithmetic can run commands");
                self.list(&clause.body.list);
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(group) => self.list(&group.list),
            CompoundCommand::ForClause(clause) => {
                // The variable can be any, PATH too.
                self.opaque("it sets a variable");
                for value in clause.values.iter().flatten() {
                    self.word(&value.value);
                }
                self.list(&clause.body.list);
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value.value);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.word(&pattern.value);
                    }
                    case.cmd.iter().for_each(|list| self.list(list));
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.list(&clause.then);
                for part in clause.elses.iter().flatten() {
                    part.condition.iter().for_each(|list| self.list(list));
                    self.list(&part.body);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0);
                self.list(&clause.1.list);
            }
            CompoundCommand::Coprocess(coprocess) => {
                self.opaque("it starts a coprocess");
                let first = (*coprocess.body).clone();
                self.pipeline(&Pipeline {
                    timed: None,
                    bang: false,
                    seq: vec![first],
                });
            }
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        let mut command = Simple::default();
        let items =
            |items: Option<&Vec<CommandPrefixOrSuffixItem>>| items.cloned().unwrap_or_default();
        for item in items(simple.prefix.as_ref().map(|prefix| &prefix.0)) {
            self.item(&item, &mut command);
        }
        if let Some(name) = &simple.word_or_name {
            let name = self.word(&name.value);
            command.words.push(name);
        }
        for item in items(simple.suffix.as_ref().map(|suffix| &suffix.0)) {
            self.item(&item, &mut command);
        }
        // Taken in any case: a here-document of this command is not input of the next one.
        let input = std::mem::take(&mut self.input);
        if within::reads_scripts(&command) {
            for script in input {
                self.inner(&script, "it passes a script to a shell");
            }
        }
        self.command(command);
    }

    fn item(&mut self, item: &CommandPrefixOrSuffixItem, command: &mut Simple) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect),
            CommandPrefixOrSuffixItem::Word(word) => {
                let word = self.word(&word.value);
                command.words.push(word);
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word)
                if command.words.is_empty() =>
            {
                let value = self.word(&word.value);
                let name = match (&assignment.name, &assignment.value) {
                    (AssignmentName::VariableName(name), AssignmentValue::Scalar(_)) => {
                        name.clone()
                    }
                    (
                        AssignmentName::VariableName(name)
                        | AssignmentName::ArrayElementName(name, _),
                        _,
                    ) => {
                        self.opaque("it fills an array");
                        name.clone()
                    }
                };
                command.variables.push((name, value.literal));
            }
            CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                let word = self.word(&word.value);
                command.words.push(word);
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, shell) => {
                self.opaque("it runs a nested command");
                self.list(&shell.list);
            }
        }
    }

    fn command(&mut self, command: Simple) {
        if command.words.iter().any(|word| !word.spread.is_empty()) {
            let words = command
                .words
                .iter()
                .flat_map(Word::words)
                .take(MOST_WORDS)
                .collect();
            self.command(Simple {
                words,
                within: true,
                ..Simple::default()
            });
        }
        let inner = within::commands(&command);
        // A set, because several readings of the words may find the same script.
        for script in inner
            .iter()
            .chain([&command])
            .flat_map(within::scripts)
            .collect::<BTreeSet<_>>()
        {
            self.inner(&script, "it passes a script to a shell");
        }
        self.script.commands.extend(inner);
        self.script.commands.push(command);
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>) {
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect);
        }
    }

    fn redirect(&mut self, redirect: &IoRedirect) {
        match redirect {
            IoRedirect::File(_, kind, target) => match target {
                IoFileRedirectTarget::Filename(name) => {
                    // All but `<` can create the file or change it, `<>` too.
                    let writes = !matches!(kind, IoFileRedirectKind::Read);
                    self.file(writes, &name.value);
                }
                IoFileRedirectTarget::Fd(_) => {}
                IoFileRedirectTarget::Duplicate(name) => {
                    // `>&2` and `2>&-` open nothing; `>&file` does.
                    if !is_descriptor(&name.value) {
                        self.file(true, &name.value);
                    }
                }
                IoFileRedirectTarget::ProcessSubstitution(_, shell) => {
                    self.opaque("it runs a nested command");
                    self.list(&shell.list);
                }
            },
            IoRedirect::HereDocument(_, document) => {
                self.script.has_input = true;
                if document.requires_expansion {
                    let read = word::read_document(&document.doc.value, self.workspace);
                    self.read(read);
                }
                self.input.push(document.doc.value.clone());
            }
            IoRedirect::HereString(_, word) => {
                self.script.has_input = true;
                let word = self.word(&word.value);
                self.input.push(word.text);
            }
            IoRedirect::OutputAndError(name, _) => {
                self.file(true, &name.value);
            }
        }
    }

    fn file(&mut self, writes: bool, raw: &str) {
        let name = self.word(raw);
        let spread = if name.spread.is_empty() {
            Vec::new()
        } else {
            name.words()
        };
        let files = spread
            .into_iter()
            .chain([name])
            .map(|name| File { writes, name });
        self.script.files.extend(files);
    }

    fn arithmetic(&mut self, expression: &str) {
        self.opaque("arithmetic can run commands");
        for script in word::substitutions(expression) {
            self.inner(&script, "arithmetic can run commands");
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr) {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.test(left);
                self.test(right);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner)
            }
            // An operand may have a subscript, in which bash runs substitutions.
            ExtendedTestExpr::UnaryTest(_, word) => self.arithmetic(&word.value),
            ExtendedTestExpr::BinaryTest(_, left, right) => {
                self.arithmetic(&left.value);
                self.arithmetic(&right.value);
            }
        }
    }

    fn word(&mut self, raw: &str) -> Word {
        let read = word::read(raw, self.workspace);
        self.read(read)
    }

    fn read(&mut self, read: word::Read) -> Word {
        for script in &read.scripts {
            self.inner(script, "it runs a nested command");
        }
        if !read.word.literal {
            self.opaque("parts of it are known only at run time");
        }
        read.word
    }
}

/// Whether a redirection's target opens nothing.
fn is_descriptor(target: &str) -> bool {
    !target.is_empty() && target.chars().all(|c| c.is_ascii_digit() || c == '-')
}
