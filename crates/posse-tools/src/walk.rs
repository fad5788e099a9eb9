//! Going through the files beneath a directory, as git would: what is ignored is left out, links
//! are not followed, and what rules deny, or would have asked about, is not looked at.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ignore::WalkBuilder;
use ignore::overrides::Override;
use ignore::types::Types;
use posse_port::tool::{Intent, Subject, ToolContext, ToolError, Workspace};

use crate::answer::{cannot, go_on, shown};
use crate::rooted_fs::{Access, RootedPath};

/// What of the files is wanted.
#[derive(Default)]
pub(crate) struct Filter {
    /// By the globs of gitignore files.
    pub(crate) globs: Option<Override>,
    /// By what they are called for what they are.
    pub(crate) types: Option<Types>,
}

/// Returns what a search means to do; `what` is it in a line.
pub(crate) fn intent(
    what: &str,
    path: Option<&str>,
    workspace: &Workspace,
) -> Result<Intent, ToolError> {
    let place = RootedPath::find(start(path), Access::Read, workspace)?;
    let within = path.map_or_else(String::new, |_| {
        format!(" in {}", shown(&place.named, workspace))
    });
    Ok(Intent {
        read_only: true,
        beside_others: true,
        waits: false,
        title: format!("{what}{within}"),
        subject: Subject::Reads(place.paths()),
    })
}

/// Returns where a search starts if nothing is said.
pub(crate) fn start(path: Option<&str>) -> &str {
    path.unwrap_or(".")
}

/// Calls `each` with the path of every regular file beneath `directory`, in the order of names,
/// until it says that this is enough. Gives what it left out.
pub(crate) fn walk(
    directory: &Path,
    filter: Filter,
    context: &ToolContext,
    mut each: impl FnMut(PathBuf) -> Enough,
) -> Result<LeftOut, ToolError> {
    if context.files.denies_reading(directory, &context.workspace) {
        return Err(cannot("search", directory, "a rule denies it"));
    }
    let mut builder = WalkBuilder::new(directory);
    // What git reads from the user's home is not looked for: the environment is not read here.
    builder
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .follow_links(false);
    builder.sort_by_file_name(Ord::cmp);
    if let Some(globs) = filter.globs {
        builder.overrides(globs);
    }
    if let Some(types) = filter.types {
        builder.types(types);
    }
    let (files, workspace) = (Arc::clone(&context.files), Arc::clone(&context.workspace));
    let left_out = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&left_out);
    builder.filter_entry(move |entry| {
        let asks = files.asks_reading(entry.path(), &workspace);
        count.fetch_add(usize::from(asks), Ordering::Relaxed);
        entry.file_name() != ".git" && !asks && !files.denies_reading(entry.path(), &workspace)
    });
    for entry in builder.build() {
        go_on(&context.cancel)?;
        // What cannot be looked at is left out, as is what vanished meanwhile.
        let Ok(entry) = entry else { continue };
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && each(entry.into_path()) == Enough::Yes {
            break;
        }
    }
    Ok(LeftOut(left_out.load(Ordering::Relaxed)))
}

/// How much was not looked at because a rule asks before it is read.
#[must_use]
pub(crate) struct LeftOut(usize);

impl LeftOut {
    /// Adds that to what is told.
    pub(crate) fn add_to(self, mut told: String) -> String {
        if self.0 > 0 {
            told.push_str(&format!(
                "\n({} skipped: a rule requires approval before reading; use Read)",
                self.0
            ));
        }
        told
    }
}

/// Whether a search has what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enough {
    /// It has.
    Yes,
    /// It goes on.
    No,
}
