//! The Grep tool: finds files by content.

mod finds;

use std::borrow::Cow;
use std::io::{self, Read};
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use posse_port::tool::{Intent, ToolContext, ToolError, ToolOutput, TypedTool, Workspace};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::answer::{blocking, cannot, go_on, headline, shown, tell};
use crate::rooted_fs::{Access, Root, RootedPath};
use crate::walk::{self, Enough, Filter, walk};
use finds::{Finds, Report};

/// Maximum memory for a file: its longest line, or all of it for matches that span lines.
const MOST_HELD: usize = 64 << 20;

/// Finds files by content.
pub struct Grep;

/// Input of Grep.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepInput {
    /// A regular expression in Rust's syntax.
    pub pattern: String,
    /// The file or directory to search; the working directory if absent.
    pub path: Option<String>,
    /// Only files that match this pattern, such as `*.rs`; `!` before it means all others.
    pub glob: Option<String>,
    /// Only files of this type, such as `rust`, `py` or `js`.
    pub r#type: Option<String>,
    /// What to return; `files_with_matches` if absent.
    pub output_mode: Option<OutputMode>,
    /// Number of lines to show after each match, in content mode.
    #[serde(rename = "-A")]
    pub after: Option<usize>,
    /// Number of lines to show before each match, in content mode.
    #[serde(rename = "-B")]
    pub before: Option<usize>,
    /// Number of lines to show on both sides, in content mode.
    #[serde(rename = "-C")]
    pub around: Option<usize>,
    /// Whether to show line numbers in content mode; true if absent.
    #[serde(rename = "-n")]
    pub numbers: Option<bool>,
    /// Whether to ignore case.
    #[serde(rename = "-i")]
    pub ignore_case: Option<bool>,
    /// Whether a match may span lines; `.` then also matches line ends.
    pub multiline: Option<bool>,
    /// Maximum number of lines to return; 250 if absent.
    pub head_limit: Option<usize>,
}

/// What Grep returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputMode {
    /// The lines that match.
    Content,
    /// The paths of files with a match.
    #[default]
    FilesWithMatches,
    /// How many lines match in each file.
    Count,
}

impl TypedTool for Grep {
    type Input = GrepInput;

    const NAME: &'static str = "Grep";

    fn description(&self) -> Cow<'static, str> {
        "Searches files for a regular expression. Returns the paths of matching files, their \
         lines, or counts (output_mode). Skips binary files and those ignored by .gitignore; does \
         not follow links. Prefer it to grep or rg in Bash."
            .into()
    }

    fn intent(&self, input: &GrepInput, workspace: &Workspace) -> Result<Intent, ToolError> {
        walk::intent(
            &format!("Grep {}", headline(&input.pattern, 60)),
            input.path.as_deref(),
            workspace,
        )
    }

    async fn run(&self, input: GrepInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        blocking(context, move |context| grep(&input, context)).await
    }
}

fn grep(input: &GrepInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let place = RootedPath::judged(walk::start(input.path.as_deref()), Access::Read, context)?;
    let root = place.root()?;
    let stat = root
        .stat(&place.resolved)
        .map_err(|error| cannot("search", &place.named, error))?;
    let mut search = Search {
        matcher: matcher(input)?,
        searcher: searcher(input),
        report: Report::new(input),
        unread: 0,
        root,
        context,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {
            let filter = filter(input, &place.resolved)?;
            let left_out = walk(&place.resolved, filter, context, |path| search.file(&path))?;
            go_on(&context.cancel)?;
            return Ok(search.output(|told| left_out.add_to(told)));
        }
        FileType::RegularFile
            if context
                .files
                .denies_reading(&place.resolved, &context.workspace) =>
        {
            return Err(cannot("search", &place.named, "a rule denies it"));
        }
        FileType::RegularFile => {
            search.file(&place.resolved);
        }
        _ => {
            return Err(cannot(
                "search",
                &place.named,
                "it is neither a file nor a directory",
            ));
        }
    }
    go_on(&context.cancel)?;
    Ok(search.output(|told| told))
}

struct Search<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    report: Report,
    /// Number of files that could not be searched.
    unread: usize,
    root: Root,
    context: &'a ToolContext,
}

impl Search<'_> {
    /// Returns what was found, as text that is completed.
    fn output(self, completed: impl FnOnce(String) -> String) -> ToolOutput {
        let answer = self.context.wants_answer.then(|| self.report.answer());
        ToolOutput {
            answer,
            ..ToolOutput::text(completed(self.report.told(self.unread)))
        }
    }

    fn file(&mut self, path: &Path) -> Enough {
        // Opened through the root's handle, because the names of the walk may lead elsewhere by
        // now.
        let Ok((file, stat)) = self.root.open_file(path) else {
            self.unread += 1;
            return Enough::No;
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Enough::No;
        }
        let reader = Stoppable {
            inner: file,
            cancel: &self.context.cancel,
        };
        let mut finds = Finds::new(&self.report);
        match self
            .searcher
            .search_reader(&self.matcher, reader, &mut finds)
        {
            Ok(()) => self
                .report
                .add(&shown(path, &self.context.workspace), finds),
            Err(_) => {
                self.unread += 1;
                Enough::No
            }
        }
    }
}

fn matcher(input: &GrepInput) -> Result<RegexMatcher, ToolError> {
    let multiline = input.multiline == Some(true);
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(input.ignore_case == Some(true))
        .multi_line(true);
    if multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|error| {
        let hint = if !multiline && input.pattern.contains("\\n") {
            " (set multiline)"
        } else {
            ""
        };
        tell(format!("invalid regular expression{hint}: {error}"))
    })
}

fn searcher(input: &GrepInput) -> Searcher {
    let around = input.around.unwrap_or(0);
    let context = |lines: Option<usize>| match input.output_mode {
        Some(OutputMode::Content) => lines.unwrap_or(around),
        _ => 0,
    };
    SearcherBuilder::new()
        .line_number(true)
        .multi_line(input.multiline == Some(true))
        .before_context(context(input.before))
        .after_context(context(input.after))
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MOST_HELD))
        .build()
}

fn filter(input: &GrepInput, directory: &Path) -> Result<Filter, ToolError> {
    let mut filter = Filter::default();
    if let Some(glob) = &input.glob {
        let mut builder = OverrideBuilder::new(directory);
        let added = builder.add(glob).and_then(|builder| builder.build());
        filter.globs =
            Some(added.map_err(|error| tell(format!("glob is not a pattern: {error}")))?);
    }
    if let Some(name) = &input.r#type {
        let types = TypesBuilder::new().add_defaults().select(name).build();
        filter.types = Some(types.map_err(|error| tell(format!("unknown file type: {error}")))?);
    }
    Ok(filter)
}

/// A file that fails once the call is cancelled.
struct Stoppable<'a> {
    inner: std::fs::File,
    cancel: &'a CancellationToken,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.inner.read(buffer)
    }
}
