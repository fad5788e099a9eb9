//! The modules of a crate, and what a path in one of them means.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::graph::Edge;
use super::parse::{self, Parsed};

/// No import leads through more re-exports than this; one that does leads round in a ring.
const MOST_STEPS: usize = 32;

/// A crate without what only tests see.
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) files: Vec<SourceFile>,
    pub(crate) modules: Vec<Module>,
    /// Lines of its sources that only tests see.
    pub(crate) test_lines: usize,
}

/// A file of a crate.
pub(crate) struct SourceFile {
    /// Its path below the root of the checkout.
    pub(crate) name: String,
    /// The module that it is.
    pub(crate) module: usize,
    pub(crate) parsed: Parsed,
}

/// A module: a file's own, or one inline.
#[derive(Default)]
pub(crate) struct Module {
    /// Its names from the crate's root on.
    pub(crate) path: Vec<String>,
    pub(crate) file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    names: BTreeSet<String>,
    /// What it imports: what it is called here, and the path.
    imports: Vec<(Option<String>, Vec<String>)>,
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The module that defines it, or that it is.
    pub(crate) module: usize,
    /// The name that the module defines; none if the module itself is meant.
    pub(crate) name: Option<String>,
}

impl Module {
    /// Returns true if the module itself defines this name.
    pub(crate) fn defines(&self, name: &str) -> bool {
        self.names.contains(name) || self.children.contains_key(name)
    }
}

impl Crate {
    /// Reads `directory/src` from its roots on.
    pub(super) fn read(root: &Path, directory: &Path, name: &str) -> Result<Self> {
        let mut read = Self {
            name: name.to_owned(),
            files: Vec::new(),
            modules: Vec::new(),
            test_lines: 0,
        };
        let src = directory.join("src");
        for file in ["lib.rs", "main.rs"] {
            let path = src.join(file);
            if path.is_file() {
                read.file(root, &path, &src, Vec::new(), None)?;
            }
        }
        let known: BTreeSet<_> = read
            .files
            .iter()
            .map(|file| root.join(&file.name))
            .collect();
        for path in super::files_below(&src)? {
            if !known.contains(&path) {
                read.test_lines += super::text_of(&path)?.lines().count();
            }
        }
        Ok(read)
    }

    /// Reads a file and those of its modules; `below` is the directory of its children.
    fn file(
        &mut self,
        root: &Path,
        path: &Path,
        below: &Path,
        module_path: Vec<String>,
        parent: Option<usize>,
    ) -> Result<usize> {
        let parsed = parse::parse(&super::text_of(path)?);
        self.test_lines += parsed.test_lines;
        let file = self.files.len();
        let module = self.module(file, module_path, parent);
        let mut scopes = BTreeMap::from([(Vec::new(), module)]);
        let mut children: Vec<(usize, String, PathBuf)> = Vec::new();
        for item in &parsed.modules {
            let Some(&within) = scopes.get(&item.scope) else {
                continue;
            };
            if item.inline {
                let mut scope = item.scope.clone();
                scope.push(item.name.clone());
                let mut path = self.modules[within].path.clone();
                path.push(item.name.clone());
                let inline = self.module(file, path, Some(within));
                self.modules[within]
                    .children
                    .insert(item.name.clone(), inline);
                scopes.insert(scope, inline);
            } else {
                let directory = item
                    .scope
                    .iter()
                    .fold(below.to_owned(), |at, name| at.join(name));
                children.push((within, item.name.clone(), directory));
            }
        }
        for (scope, name) in &parsed.names {
            if let Some(module) = scopes.get(scope) {
                self.modules[*module].names.insert(name.clone());
            }
        }
        for import in parsed.imports.iter().filter(|import| import.of_module) {
            if let Some(module) = scopes.get(&import.scope) {
                let import = (import.name.clone(), import.path.clone());
                self.modules[*module].imports.push(import);
            }
        }
        self.files.push(SourceFile {
            name: path
                .strip_prefix(root)
                .unwrap_or(path)
                .display()
                .to_string(),
            module,
            parsed,
        });
        for (within, name, directory) in children {
            let plain = directory.join(format!("{name}.rs"));
            let nested = directory.join(&name).join("mod.rs");
            let path = if plain.is_file() { plain } else { nested };
            let mut names = self.modules[within].path.clone();
            names.push(name.clone());
            let child = self.file(root, &path, &directory.join(&name), names, Some(within))?;
            self.modules[within].children.insert(name, child);
        }
        Ok(module)
    }

    fn module(&mut self, file: usize, path: Vec<String>, parent: Option<usize>) -> usize {
        self.modules.push(Module {
            path,
            file,
            parent,
            ..Module::default()
        });
        self.modules.len() - 1
    }

    /// The module of a file's inline scope.
    pub(crate) fn module_in(&self, file: &SourceFile, scope: &[String]) -> usize {
        let mut module = file.module;
        for name in scope {
            module = self.modules[module]
                .children
                .get(name)
                .copied()
                .unwrap_or(module);
        }
        module
    }

    /// Follows a path from a module on, through re-exports, to what defines it. None if it leaves the crate.
    pub(crate) fn resolve(&self, from: usize, path: &[String]) -> Option<Target> {
        self.resolve_within(from, path, 0)
    }

    fn resolve_within(&self, from: usize, path: &[String], steps: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        let steps = steps + 1;
        match first.as_str() {
            _ if steps > MOST_STEPS => None,
            "crate" => self.walk(self.root_of(from), rest, steps),
            "self" => self.walk(from, rest, steps),
            "super" => {
                let mut module = self.modules[from].parent?;
                let mut rest = rest;
                while let Some(("super", more)) = rest.split_first().map(|(a, b)| (a.as_str(), b)) {
                    (module, rest) = (self.modules[module].parent?, more);
                }
                self.walk(module, rest, steps)
            }
            _ => self.walk(from, path, steps),
        }
    }

    fn root_of(&self, module: usize) -> usize {
        self.modules[module]
            .parent
            .map_or(module, |parent| self.root_of(parent))
    }

    /// Looks for the names of `path` one after another, beginning in `module`.
    fn walk(&self, module: usize, path: &[String], steps: usize) -> Option<Target> {
        let Some((name, rest)) = path.split_first() else {
            return Some(Target { module, name: None });
        };
        let here = &self.modules[module];
        if let Some(child) = here.children.get(name) {
            // A function may have the name of a module: then what follows decides.
            if rest.is_empty() && here.names.contains(name) {
                return Some(Target {
                    module,
                    name: Some(name.clone()),
                });
            }
            return self.walk(*child, rest, steps);
        }
        if here.names.contains(name) {
            return Some(Target {
                module,
                name: Some(name.clone()),
            });
        }
        let named = here
            .imports
            .iter()
            .filter(|(known, _)| known.as_ref() == Some(name));
        for (_, path) in named {
            let found = self.resolve_within(module, path, steps);
            if let Some(found) = found {
                return match found.name {
                    None => self.walk(found.module, rest, steps),
                    Some(_) => Some(found),
                };
            }
        }
        for (_, path) in here.imports.iter().filter(|(known, _)| known.is_none()) {
            let within = self
                .resolve_within(module, path, steps)
                .filter(|found| found.name.is_none());
            let found = within
                .filter(|found| found.module != module && steps < MOST_STEPS)
                .and_then(|found| {
                    self.walk(found.module, path_of(name, rest).as_slice(), steps + 1)
                });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// What the files of this crate name in one another: imports and paths in place, each pair of files once.
    pub(crate) fn edges(&self) -> Vec<Edge> {
        let mut found: BTreeMap<(usize, usize), Edge> = BTreeMap::new();
        for (from, file) in self.files.iter().enumerate() {
            for (scope, path, line) in file.parsed.references() {
                let target = self.resolve(self.module_in(file, scope), path);
                let Some(to) = target.map(|target| self.modules[target.module].file) else {
                    continue;
                };
                if from != to {
                    let edge = Edge {
                        from,
                        to,
                        line,
                        path: path.join("::"),
                    };
                    found.entry((from, to)).or_insert(edge);
                }
            }
        }
        found.into_values().collect()
    }

    /// Returns true if the first file is a module around the second.
    pub(crate) fn is_around(&self, outer: usize, inner: usize) -> bool {
        let path = |file: usize| &self.modules[self.files[file].module].path;
        path(inner).starts_with(path(outer))
    }
}

fn path_of(name: &str, rest: &[String]) -> Vec<String> {
    std::iter::once(name.to_owned())
        .chain(rest.iter().cloned())
        .collect()
}

impl Parsed {
    /// Every import and every path in place: the inline module it stands in, the path, and its line.
    pub(crate) fn references(&self) -> impl Iterator<Item = (&[String], &[String], usize)> {
        let imports = self.imports.iter();
        let imports = imports.map(|one| (one.scope.as_slice(), one.path.as_slice(), one.line));
        let paths = self.paths.iter();
        imports.chain(paths.map(|one| (one.scope.as_slice(), one.path.as_slice(), one.line)))
    }
}
