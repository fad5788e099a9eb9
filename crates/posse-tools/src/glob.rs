//! The Glob tool: finds files by name.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use posse_port::tool::{
    FoundFiles, Intent, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::answer::{blocking, cannot, shown, tell};
use crate::rooted_fs::{Access, RootedPath};
use crate::walk::{self, Enough, Filter, LeftOut, walk};

/// Number of paths that are shown.
const MOST_PATHS: usize = 100;

/// When a file was changed last, and its path.
type Dated = ((i64, i64), PathBuf);

/// Finds files by name.
pub struct Glob;

/// Input of Glob.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobInput {
    /// The pattern, such as `src/**/*.rs` or `*.{ts,tsx}`; one without `/` matches names in every
    /// directory.
    pub pattern: String,
    /// The directory to search; the working directory if absent.
    pub path: Option<String>,
}

impl TypedTool for Glob {
    type Input = GlobInput;

    const NAME: &'static str = "Glob";

    fn description(&self) -> Cow<'static, str> {
        "Finds files whose path matches a pattern, most recently changed first, at most 100. Skips \
         files ignored by .gitignore; does not follow links. To search in files, use Grep."
            .into()
    }

    fn intent(&self, input: &GlobInput, workspace: &Workspace) -> Result<Intent, ToolError> {
        walk::intent(
            &format!("Glob {}", input.pattern),
            input.path.as_deref(),
            workspace,
        )
    }

    async fn run(&self, input: GlobInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        blocking(context, move |context| glob(&input, context)).await
    }

    async fn find_files(
        &self,
        part: String,
        context: ToolContext,
    ) -> Result<FoundFiles, ToolError> {
        blocking(context, move |context| find(&part, context)).await
    }
}

fn glob(input: &GlobInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let begun = context.clock.now();
    let place = RootedPath::judged(walk::start(input.path.as_deref()), Access::Read, context)?;
    let fits = matcher(&input.pattern, &place)?;
    let (found, left_out) = matching(&place, context, |path| fits.is_match(path))?;
    let told = told(&found, &context.workspace);
    let output = ToolOutput::text(left_out.add_to(told));
    Ok(output.with_answer(context, || {
        let paths = found.iter().take(MOST_PATHS).map(|(_, path)| path);
        let names: Vec<_> = paths.map(|path| path.to_string_lossy()).collect();
        json!({
            "filenames": names,
            "numFiles": names.len(),
            "truncated": found.len() > MOST_PATHS,
            "durationMs": context.clock.now().saturating_sub(begun).as_millis() as u64,
        })
    }))
}

/// Returns the files of the working directory whose paths have this part, in any case.
fn find(part: &str, context: &ToolContext) -> Result<FoundFiles, ToolError> {
    let place = RootedPath::judged(walk::start(None), Access::Read, context)?;
    let part = part.to_lowercase();
    let has = |path: &Path| path.to_string_lossy().to_lowercase().contains(&part);
    let (found, _) = matching(&place, context, has)?;
    let paths = found.iter().take(MOST_PATHS);
    Ok(FoundFiles {
        paths: paths
            .map(|(_, path)| shown(path, &context.workspace))
            .collect(),
        left_out: found.len().saturating_sub(MOST_PATHS) as u64,
    })
}

/// Returns the files of a directory that fit by their path in it, most recently changed first, and
/// what was left out.
fn matching(
    place: &RootedPath,
    context: &ToolContext,
    fits: impl Fn(&Path) -> bool,
) -> Result<(Vec<Dated>, LeftOut), ToolError> {
    let root = place.root()?;
    let stat = root
        .stat(&place.resolved)
        .map_err(|error| cannot("search", &place.named, error))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(cannot("search", &place.named, "it is not a directory"));
    }
    let mut found: Vec<Dated> = Vec::new();
    let left_out = walk(&place.resolved, Filter::default(), context, |path| {
        let within = path.strip_prefix(&place.resolved).unwrap_or(&path);
        // Read through the root's handle, so that a link that was swapped meanwhile reveals
        // nothing.
        if fits(within)
            && let Ok(stat) = root.stat(&path)
        {
            found.push(((stat.st_mtime, stat.st_mtime_nsec as i64), path));
        }
        Enough::No
    })?;
    found.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.cmp(b)));
    Ok((found, left_out))
}

/// Returns the matcher for paths relative to the searched directory.
fn matcher(pattern: &str, place: &RootedPath) -> Result<GlobMatcher, ToolError> {
    let outside =
        || tell("the pattern is relative to the searched directory; give that directory as path");
    let within = match pattern.strip_prefix('/') {
        Some(_) => {
            let directory = [&place.named, &place.resolved];
            let rest = directory
                .iter()
                .find_map(|base| Path::new(pattern).strip_prefix(base).ok());
            rest.and_then(Path::to_str).ok_or_else(outside)?.to_owned()
        }
        None if pattern.starts_with("~/") || pattern.split('/').any(|step| step == "..") => {
            return Err(outside());
        }
        None if pattern.contains('/') => pattern.strip_prefix("./").unwrap_or(pattern).to_owned(),
        None => format!("**/{pattern}"),
    };
    let glob = GlobBuilder::new(&within).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| tell(format!("invalid pattern: {error}")))
}

fn told(found: &[Dated], workspace: &Workspace) -> String {
    if found.is_empty() {
        return "no file matches".into();
    }
    let mut lines: Vec<_> = found
        .iter()
        .take(MOST_PATHS)
        .map(|(_, path)| shown(path, workspace))
        .collect();
    if found.len() > MOST_PATHS {
        lines.push(format!(
            "({MOST_PATHS} of {}; a narrower pattern or path shows the rest)",
            found.len()
        ));
    }
    lines.join("\n")
}
