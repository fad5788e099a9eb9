//! Looks for what posse has left, and removes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use posse_port::store::{Page, SessionFilter, Store};
use posse_tools::GitWorktrees;

use super::item::{LeftItem, LeftThing, Outcome};
use crate::assemble::maintenance::{self, Unused};
use crate::assemble::own_worktrees::own_worktrees;
use crate::assemble::store::look_into_store;
use crate::config::environment::{posse_home, working_directory};
use crate::config::search_paths::SearchPaths;
use crate::config::store::{StoreArgs, StoreLocation};
use crate::config::store_choice::meant_store;
use crate::output::time::now_ms;
use crate::select::repository;

/// Age from which the output of a session that is in no store counts: before, its first step may not
/// be stored yet.
const SETTLED: Duration = Duration::from_secs(24 * 3600);

/// Where is looked, and for what.
pub(super) struct Survey {
    /// The directory that is meant; none for all.
    here: Option<PathBuf>,
    /// A session that was used since is kept.
    before_ms: i64,
    worktrees: GitWorktrees,
    home: Option<PathBuf>,
    store: Arc<dyn Store>,
    /// Where the store is, if there is one.
    location: Option<StoreLocation>,
    /// The store was named: other sessions may be in another one.
    is_named: bool,
}

/// What is known of a session.
struct KnownSession {
    cwd: PathBuf,
    is_open: bool,
}

impl Survey {
    pub(super) fn new(store: &StoreArgs, all: bool, older_than: i64) -> anyhow::Result<Self> {
        let meant = meant_store(store)?;
        let is_there = meant.place.file().is_none_or(|path| path.exists());
        Ok(Self {
            here: if all {
                None
            } else {
                Some(working_directory()?)
            },
            before_ms: now_ms().saturating_sub(older_than),
            worktrees: own_worktrees()?,
            home: posse_home(),
            store: look_into_store(store)?,
            location: is_there.then_some(meant.place),
            is_named: meant.named,
        })
    }

    /// Returns everything that was found, and the number of sessions that stay.
    pub(super) async fn items(&self) -> anyhow::Result<(Vec<LeftItem>, usize)> {
        let everything = (SessionFilter::default(), Page::all());
        let sessions = self.store.sessions(everything.0, everything.1).await?;
        let known = sessions.into_iter().map(|session| {
            let is_open = session.holder.is_some();
            let cwd = session.cwd;
            (session.agent.to_string(), KnownSession { cwd, is_open })
        });
        let known: BTreeMap<String, KnownSession> = known.collect();
        let mut items = self.worktrees()?;
        items.extend(self.branches(&items, &known));
        let unused = self.sessions()?;
        let old = unused.iter().map(|item| match &item.thing {
            LeftThing::Session(unused) => unused.sessions as usize,
            _ => 0,
        });
        let here = known.values().filter(|session| self.is_meant(&session.cwd));
        let stay = here.count().saturating_sub(old.sum());
        items.extend(unused);
        items.extend(self.outputs(&known));
        items.extend(self.files());
        Ok((items, stay))
    }

    /// Returns true if a directory is the one that is meant.
    fn is_meant(&self, directory: &Path) -> bool {
        self.here.as_ref().is_none_or(|here| here == directory)
    }

    /// Returns worktrees, those of this repository or all.
    fn worktrees(&self) -> anyhow::Result<Vec<LeftItem>> {
        let shared = self.here.as_deref().map(repository::around);
        let mut found = self.worktrees.list()?;
        found.retain(|found| match &shared {
            Some(here) => here.is_some() && repository::shared(found) == *here,
            None => true,
        });
        found.sort_by_key(|found| found.agent);
        let item = |found: posse_tools::Found| {
            let bytes = bytes_of(&found.path);
            let kept = match found.live {
                true => Some("its agent runs".to_owned()),
                false => found.keeps.clone(),
            };
            LeftItem::new(LeftThing::Worktree(found), bytes, kept)
        };
        Ok(found.into_iter().map(item).collect())
    }

    /// Returns branches without a worktree, of this repository or of all in which agents have worked.
    /// Git runs only in repositories that the person has trusted.
    fn branches(
        &self,
        worktrees: &[LeftItem],
        sessions: &BTreeMap<String, KnownSession>,
    ) -> Vec<LeftItem> {
        let of_worktrees = worktrees.iter().filter_map(|item| match &item.thing {
            LeftThing::Worktree(found) => found.origin.as_deref(),
            _ => None,
        });
        let of_sessions = sessions.values().map(|session| session.cwd.as_path());
        let checkouts: Vec<&Path> = match &self.here {
            Some(here) => vec![here],
            None => of_worktrees.chain(of_sessions).collect(),
        };
        let mut repositories: BTreeMap<PathBuf, &Path> = BTreeMap::new();
        for checkout in checkouts {
            if let Some(shared) = repository::around(checkout) {
                repositories.entry(shared).or_insert(checkout);
            }
        }
        let trusted = repositories
            .into_values()
            .filter(|checkout| SearchPaths::at(checkout).trust.is_trusted());
        // Where git cannot be asked, nothing is removed.
        let found = trusted.flat_map(|it| self.worktrees.branches(it).unwrap_or_default());
        let item = |found: posse_tools::FoundBranch| {
            let kept = found.keeps.clone();
            LeftItem::new(LeftThing::Branch(found), 0, kept)
        };
        found.map(item).collect()
    }

    /// Returns sessions that were not used for long and are open nowhere.
    fn sessions(&self) -> anyhow::Result<Vec<LeftItem>> {
        let Some(location) = &self.location else {
            return Ok(Vec::new());
        };
        let unused = maintenance::unused(location, self.before_ms)?;
        let meant = |it: &Unused| match &it.cwd {
            Some(cwd) => self.is_meant(cwd),
            None => self.here.is_none(),
        };
        let item = |it: Unused| {
            let bytes = it.bytes;
            LeftItem::new(LeftThing::Session(it), bytes, None)
        };
        Ok(unused.into_iter().filter(meant).map(item).collect())
    }

    /// Returns the output of sessions that is old, and with all directories that of sessions that are
    /// gone.
    fn outputs(&self, known: &BTreeMap<String, KnownSession>) -> Vec<LeftItem> {
        let Some(home) = &self.home else {
            return Vec::new();
        };
        let mut items = Vec::new();
        for entry in fs::read_dir(home.join("spill"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            let (path, written_ms) = (entry.path(), written_ms(&entry.path()));
            let session = known.get(&name);
            let is_old = match session {
                Some(session) if !self.is_meant(&session.cwd) => continue,
                Some(_) => written_ms < self.before_ms,
                None if self.here.is_some() || self.is_named => continue,
                None => written_ms < now_ms() - SETTLED.as_millis() as i64,
            };
            if !is_old {
                continue;
            }
            let open = session.is_some_and(|session| session.is_open);
            let kept = open.then(|| "its session is open".to_owned());
            let bytes = bytes_of(&path);
            items.push(LeftItem::new(LeftThing::Output(path), bytes, kept));
        }
        items
    }

    /// Returns files in posse's home that processes were writing when they died.
    fn files(&self) -> Vec<LeftItem> {
        let home = self.home.iter().filter(|_| self.here.is_none());
        let entries = home.flat_map(|home| fs::read_dir(home).into_iter().flatten().flatten());
        let unfinished = entries.filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let named = name.strip_suffix(".new");
            let pid = named.and_then(|name| name.rsplit_once('.')?.1.parse().ok());
            pid.is_some_and(|pid: u32| !Path::new(&format!("/proc/{pid}")).exists())
        });
        let item = |entry: fs::DirEntry| {
            let bytes = bytes_of(&entry.path());
            LeftItem::new(LeftThing::File(entry.path()), bytes, None)
        };
        unfinished.map(item).collect()
    }

    /// Removes everything that goes, in order: a branch counts only when its worktree is gone.
    pub(super) fn remove_all(&self, items: &mut [LeftItem]) {
        for item in items {
            self.remove(item);
        }
    }

    /// Removes a thing if it goes; everything that could be lost is looked at again.
    fn remove(&self, item: &mut LeftItem) {
        if !item.goes() {
            return;
        }
        let failed = |why: String| Outcome::Failed(why);
        item.outcome = match &item.thing {
            LeftThing::Worktree(found) => match self.worktrees.clean(found) {
                Ok(swept) if swept.removed => Outcome::Removed,
                Ok(swept) => Outcome::Kept(swept.found.keeps.unwrap_or_else(|| "in use".into())),
                Err(error) => failed(error.to_string()),
            },
            LeftThing::Branch(found) => match self.worktrees.remove_branch(found) {
                Ok(()) => Outcome::Removed,
                Err(error) => failed(error.to_string()),
            },
            LeftThing::Session(unused) => match self.collect(unused) {
                Ok(true) => Outcome::Removed,
                Ok(false) => Outcome::Kept("it was used meanwhile".into()),
                Err(error) => failed(format!("{error:#}")),
            },
            LeftThing::Output(path) => removed(fs::remove_dir_all(path)),
            LeftThing::File(path) => removed(fs::remove_file(path)),
        };
    }

    /// Removes a session, if it still is unused.
    fn collect(&self, unused: &Unused) -> anyhow::Result<bool> {
        let Some(location) = &self.location else {
            return Ok(false);
        };
        let is_it = |it: &Unused| it.id == unused.id;
        let gone = maintenance::collect_those(location, self.before_ms, &is_it, &mut |_| {})?;
        Ok(gone.sessions + gone.teams > 0 || unused.agents == 0)
    }
}

fn removed(result: std::io::Result<()>) -> Outcome {
    match result {
        Ok(()) => Outcome::Removed,
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// Returns the size of a file, or of all files below a directory. Links are not followed.
fn bytes_of(path: &Path) -> u64 {
    let (mut bytes, mut waiting) = (0, vec![path.to_owned()]);
    while let Some(path) = waiting.pop() {
        let Ok(about) = fs::symlink_metadata(&path) else {
            continue;
        };
        if about.is_dir() {
            let below = fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(below.map(|entry| entry.path()));
        } else {
            bytes += about.len();
        }
    }
    bytes
}

/// Returns when something in a directory was last written, in milliseconds of Unix time.
fn written_ms(directory: &Path) -> i64 {
    let below = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = below
        .map(|entry| entry.path())
        .chain([directory.to_owned()]);
    let times = paths.filter_map(|path| {
        let written = fs::symlink_metadata(path)
            .and_then(|about| about.modified())
            .ok()?;
        let since = written.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    });
    // What cannot be read is taken for new.
    times.max().unwrap_or(i64::MAX)
}
