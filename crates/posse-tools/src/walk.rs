//! Going through the files beneath a directory, as git would: what is ignored is left out, links are not
//! followed, and what rules deny is not looked at.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::WalkBuilder;
use ignore::overrides::Override;
use ignore::types::Types;
use posse_runtime::tool::{ToolContext, ToolError};

use crate::answer::{cannot, go_on};

/// What of the files is wanted.
#[derive(Default)]
pub(crate) struct Filter {
    /// By the globs of gitignore files.
    pub(crate) globs: Option<Override>,
    /// By what they are called for what they are.
    pub(crate) types: Option<Types>,
}

/// Calls `each` with the path of every regular file beneath `directory`, in the order of names, until it
/// says that this is enough.
pub(crate) fn walk(
    directory: &Path,
    filter: Filter,
    context: &ToolContext,
    mut each: impl FnMut(PathBuf) -> Enough,
) -> Result<(), ToolError> {
    if context.policy.denies_reading(directory) {
        return Err(cannot("search", directory, "a rule denies it"));
    }
    let mut builder = WalkBuilder::new(directory);
    // What git reads from the user's home is not looked for: the environment is not read here.
    builder.hidden(false).require_git(false).git_global(false).follow_links(false);
    builder.sort_by_file_name(Ord::cmp);
    if let Some(globs) = filter.globs {
        builder.overrides(globs);
    }
    if let Some(types) = filter.types {
        builder.types(types);
    }
    let policy = Arc::clone(&context.policy);
    builder.filter_entry(move |entry| entry.file_name() != ".git" && !policy.denies_reading(entry.path()));
    for entry in builder.build() {
        go_on(&context.cancel)?;
        // What cannot be looked at is left out, as is what vanished meanwhile.
        let Ok(entry) = entry else { continue };
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && each(entry.into_path()) == Enough::Yes {
            break;
        }
    }
    Ok(())
}

/// Whether a search has what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enough {
    /// It has.
    Yes,
    /// It goes on.
    No,
}
