//! Looks for memory files and follows their imports, within limits: a repository may contain
//! anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use posse_port::tool::{FileGuard as _, Workspace};
use posse_runtime::definition::instructions::imports::{
    DEPTH, imports, is_file_name, only_imports, target,
};
use posse_runtime::definition::instructions::rule::{self, PathGlobs};
use posse_runtime::definition::instructions::{Instruction, Kept, MemoryRoom, PER_FILE, Standing};

use super::super::scan::{self, ScanKind};
use super::{Fate, FoundFile, InstructionSources, Reason};
use crate::config::trust::FileKind;
use crate::config::trust::fingerprint::Fingerprint;

/// Files of a directory in the project, in order.
const PROJECT: [&str; 3] = ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md"];
/// The user's own file in a directory of the project.
const LOCAL: &str = "CLAUDE.local.md";
/// Rules in a directory of the project or of the user.
const RULES: &str = ".claude/rules";
/// Maximum number of imports that are followed in all.
const IMPORTS: usize = 1_000;

/// A survey in progress.
pub(super) struct Survey<'a> {
    sources: &'a InstructionSources,
    workspace: &'a Workspace,
    /// The project's files must be in one of these: a repository could link to private files.
    bounds: Vec<PathBuf>,
    pub(super) found: Vec<FoundFile>,
    /// Files and directories that were looked for.
    looked: BTreeSet<PathBuf>,
    /// Directories of files that were read, and of rules.
    pub(super) directories: BTreeSet<PathBuf>,
    /// Resolved paths of files that were read.
    seen: BTreeSet<PathBuf>,
    /// Imports that were followed: the path, for whom, and if too many others lead to it.
    imported: BTreeSet<(PathBuf, Author, bool)>,
    /// True once an import was left out because there are too many.
    is_cut: bool,
    room: MemoryRoom,
}

/// Who wrote a file, which decides what it may import.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Author {
    /// The administrator: anything, whatever the rules say.
    Managed,
    /// The user: anything that no rule denies.
    User,
    /// Anyone: files of the project that no rule denies.
    Project,
}

/// A file that was read.
struct Contents {
    resolved: PathBuf,
    text: String,
    bytes: u64,
    standing: Standing,
}

/// Why a file was not read.
enum Unread {
    Missing,
    Refused(String),
}

/// A text that comes from a file.
struct Page {
    path: PathBuf,
    reason: Reason,
    author: Author,
    contents: Contents,
    globs: Option<PathGlobs>,
    /// Number of imports that led to it.
    depth: usize,
}

impl<'a> Survey<'a> {
    /// Returns an empty survey of the project at `top`.
    pub(super) fn new(
        sources: &'a InstructionSources,
        top: &Path,
        workspace: &'a Workspace,
    ) -> Self {
        let roots = workspace.roots.iter().cloned();
        Self {
            sources,
            workspace,
            bounds: std::iter::once(top.to_owned()).chain(roots).collect(),
            found: Vec::new(),
            looked: BTreeSet::new(),
            directories: BTreeSet::new(),
            seen: BTreeSet::new(),
            imported: BTreeSet::new(),
            is_cut: false,
            room: MemoryRoom::default(),
        }
    }

    /// Returns the paths whose change can change what is found.
    pub(super) fn candidates(&self) -> Vec<PathBuf> {
        // A watcher names a file by its directory's own path, an import maybe by `../`: watching
        // both names of a directory would lose the events of one.
        let real = |path: &Path| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
        let found = self.found.iter().map(|file| &file.path);
        let found = found.map(|path| real(path).unwrap_or_else(|| path.clone()));
        let all = found.chain(self.looked.iter().cloned());
        all.chain(self.seen.iter().cloned()).collect()
    }

    /// Adds the administrator's files.
    pub(super) fn add_managed(&mut self, directory: &Path) {
        for name in ["AGENTS.md", "CLAUDE.md"] {
            self.add(directory.join(name), Reason::Managed, Author::Managed);
        }
    }

    /// Adds the user's files.
    pub(super) fn add_user(&mut self, posse_home: Option<&Path>, home: Option<&Path>) {
        let own = posse_home.map(|directory| directory.join("AGENTS.md"));
        let other = home.map(|home| home.join(".claude/CLAUDE.md"));
        for path in own.into_iter().chain(other) {
            self.add(path, Reason::User, Author::User);
        }
        if let Some(home) = home {
            self.add_rules(home, Author::User);
        }
    }

    /// Adds the files of these directories, as far as the settings' sources allow.
    pub(super) fn add_directories(&mut self, directories: &[&Path]) {
        let sources = self.sources.places.sources;
        if sources.project {
            self.add_project(directories);
        }
        if sources.local {
            self.add_local(directories);
        }
    }

    /// Adds the files of these directories of the project.
    fn add_project(&mut self, directories: &[&Path]) {
        for directory in directories {
            for name in PROJECT {
                self.add(directory.join(name), Reason::Project, Author::Project);
            }
            self.add_rules(directory, Author::Project);
        }
    }

    /// Adds the user's own files in these directories of the project.
    fn add_local(&mut self, directories: &[&Path]) {
        for directory in directories {
            self.add(directory.join(LOCAL), Reason::Local, Author::Project);
        }
    }

    /// Adds a file, if it exists, and what it imports.
    fn add(&mut self, path: PathBuf, reason: Reason, author: Author) {
        self.looked.insert(path.clone());
        match self.read(&path, author) {
            Ok(contents) => {
                let (globs, depth) = (None, 0);
                self.take(Page {
                    path,
                    reason,
                    author,
                    contents,
                    globs,
                    depth,
                });
            }
            Err(Unread::Missing) => {}
            Err(Unread::Refused(why)) => self.note(path, reason, Fate::Refused(why)),
        }
    }

    /// Adds the rules of a directory. Those of the project are about files in that directory.
    fn add_rules(&mut self, owner: &Path, author: Author) {
        let directory = &owner.join(RULES);
        let top = self.bounds.first().filter(|_| author == Author::Project);
        let within = top.and_then(|top| owner.strip_prefix(top).ok());
        let within = within.unwrap_or(Path::new("")).to_owned();
        let bounds = self.bounds.first().filter(|_| author == Author::Project);
        self.looked.insert(directory.to_owned());
        let mut left = scan::ALL;
        let scanned = scan::scan(
            directory,
            bounds.map(PathBuf::as_path),
            &ScanKind::FILES,
            &mut left,
        );
        self.directories.extend(scanned.directories);
        for remark in scanned.remarks {
            self.note(remark.path, Reason::Rule, Fate::Refused(remark.reason));
        }
        for (path, text) in scanned.files {
            let Ok(resolved) = path.canonicalize() else {
                continue;
            };
            if let Some(why) = self.denied(&resolved, author) {
                self.note(path, Reason::Rule, Fate::Refused(why));
                continue;
            }
            let bytes = text.len() as u64;
            let standing = self.standing(&resolved, &text, author);
            let rule = match rule::read(&text) {
                Ok(rule) => rule,
                Err(problem) => {
                    let why = format!("line {}: {}", problem.line, problem.reason);
                    self.note(path, Reason::Rule, Fate::Refused(why));
                    continue;
                }
            };
            let contents = Contents {
                resolved,
                text: rule.text,
                bytes,
                standing,
            };
            self.take(Page {
                path,
                reason: Reason::Rule,
                author,
                contents,
                globs: rule.globs.map(|globs| globs.within(&within)),
                depth: 0,
            });
        }
    }

    /// Adds a text and what it imports.
    fn take(&mut self, page: Page) {
        let Page {
            path,
            reason,
            author,
            contents,
            globs,
            depth,
        } = page;
        // A file that another one was a link to, or imported, is known already.
        if !self.seen.insert(contents.resolved.clone()) {
            return;
        }
        self.directories
            .extend(contents.resolved.parent().map(Path::to_owned));
        let text = contents.text.trim();
        if text.is_empty() {
            return;
        }
        let (fate, kept) = match self.weigh(text, contents.bytes, globs.as_ref()) {
            (Fate::Used, kept) if contents.standing == Standing::Information => {
                (Fate::Information, kept)
            }
            weighed => weighed,
        };
        let used = kept.map(|text| Instruction {
            path: path.clone(),
            text,
            globs: globs.clone(),
            standing: contents.standing,
        });
        self.found.push(FoundFile {
            path: path.clone(),
            reason,
            bytes: Some(contents.bytes),
            fate,
            used,
        });
        let author = match self.is_within(&contents.resolved) {
            // The user's file may import one of the project, which may not import everything.
            true if depth > 0 => Author::Project,
            _ => author,
        };
        for name in imports(text) {
            self.import(&name, (&path, author), globs.clone(), depth + 1);
        }
    }

    /// Returns what becomes of a text, and the part that is used.
    fn weigh(
        &mut self,
        text: &str,
        bytes: u64,
        globs: Option<&PathGlobs>,
    ) -> (Fate, Option<String>) {
        if only_imports(text) {
            return (Fate::OnlyImports, None);
        }
        let same = self.found.iter().find(|file| {
            let used = file.used.as_ref();
            used.is_some_and(|used| used.text == text && used.globs.as_ref() == globs)
        });
        if let Some(same) = same {
            return (Fate::SameAs(same.path.clone()), None);
        }
        // What is shown later does not take room from what is shown at the start.
        let mut later = MemoryRoom::default();
        let room = match globs {
            Some(_) => &mut later,
            None => &mut self.room,
        };
        match room.take(text, bytes) {
            Kept::Whole(text) => (Fate::Used, Some(text)),
            Kept::Start { text, bytes } => (Fate::Cut(bytes), Some(text)),
            Kept::Nothing => (Fate::LeftOut, None),
        }
    }

    /// Adds the file that another one imports.
    fn import(
        &mut self,
        name: &str,
        (importer, author): (&Path, Author),
        globs: Option<PathGlobs>,
        depth: usize,
    ) {
        let directory = importer.parent().unwrap_or(Path::new("/"));
        let home = self.sources.places.home.as_deref();
        let Some(path) = target(name, directory, home) else {
            return;
        };
        let reason = Reason::ImportOf(importer.to_owned());
        let import = (path.clone(), author, depth > DEPTH);
        if self.imported.contains(&import) {
            return;
        }
        // A few small files can import each other's neighbours by the million.
        if self.imported.len() >= IMPORTS {
            if !std::mem::replace(&mut self.is_cut, true) {
                let why = format!("{IMPORTS} files are imported; this and all others are left out");
                self.note(path, reason, Fate::Refused(why));
            }
            return;
        }
        self.imported.insert(import);
        match self.read(&path, author) {
            Ok(contents) if self.seen.contains(&contents.resolved) => {}
            Ok(_) if depth > DEPTH => {
                let why = format!("more than {DEPTH} imports lead to it");
                self.note(path, reason, Fate::Refused(why));
            }
            Ok(contents) => self.take(Page {
                path,
                reason,
                author,
                contents,
                globs,
                depth,
            }),
            // `@someone` is rarely meant as a file.
            Err(_) if !is_file_name(name) => {}
            Err(Unread::Missing) => self.note(path, reason, Fate::Missing),
            Err(Unread::Refused(why)) => self.note(path, reason, Fate::Refused(why)),
        }
    }

    /// Records a file that is not used.
    fn note(&mut self, path: PathBuf, reason: Reason, fate: Fate) {
        let is_known = |file: &FoundFile| file.path == path && file.fate == fate;
        if !self.found.iter().any(is_known) {
            self.found.push(FoundFile {
                path,
                reason,
                bytes: None,
                fate,
                used: None,
            });
        }
    }

    /// Reads the beginning of a file.
    fn read(&self, path: &Path, author: Author) -> Result<Contents, Unread> {
        let resolved = path.canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Unread::Missing,
            _ => Unread::Refused(format!("cannot be read: {error}")),
        })?;
        if let Some(why) = self.denied(&resolved, author) {
            return Err(Unread::Refused(why));
        }
        let (text, bytes) = scan::read_start(&resolved, PER_FILE)
            .map_err(|error| Unread::Refused(error.to_string()))?;
        Ok(Contents {
            standing: self.standing(&resolved, &text, author),
            resolved,
            text,
            bytes,
        })
    }

    /// Returns whose words a file has. Those of a repository are instructions only if the person
    /// has accepted the file.
    fn standing(&self, resolved: &Path, text: &str, author: Author) -> Standing {
        let (trust, kind) = (&self.sources.places.trust, FileKind::Memory);
        let top = self.bounds.first().map_or(trust.root(), PathBuf::as_path);
        let print = || Some(Fingerprint::of(kind, text));
        match author != Author::Project || trust.admits(kind, (resolved, top), print()) {
            true => Standing::Instructions,
            false => Standing::Information,
        }
    }

    /// Returns why a file may not be read; none if it may.
    fn denied(&self, resolved: &Path, author: Author) -> Option<String> {
        if author == Author::Project && !self.is_within(resolved) {
            let top = self.bounds.first().map(|top| top.display().to_string());
            let top = top.unwrap_or_default();
            return Some(format!("it is outside {top}, and nobody approved it"));
        }
        let denies = || self.sources.policy.denies_reading(resolved, self.workspace);
        (author != Author::Managed && denies())
            .then(|| "a permission rule denies reading it".to_owned())
    }

    /// Returns true if a resolved path is the project's.
    fn is_within(&self, resolved: &Path) -> bool {
        let real = |bounds: &PathBuf| bounds.canonicalize().unwrap_or_else(|_| bounds.clone());
        self.bounds
            .iter()
            .any(|bounds| resolved.starts_with(real(bounds)))
    }
}
