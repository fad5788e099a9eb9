//! What agents work with: files, search, shell, web.
//!
//! Each tool is a file; what several of them stand on is a file named after it. File tools reach
//! nothing but what lies beneath the workspace's roots (`beneath`), nothing that the shell starts
//! outlives its call (`processes`), and the web is reached at public addresses only (`address`).

mod address;
mod answer;
mod bash;
mod beneath;
mod capture;
mod edit;
mod glob;
mod grep;
mod markdown;
mod processes;
mod read;
mod replace;
mod shell;
mod walk;
mod web_fetch;
mod write;

use posse_runtime::tool::{Toolbox, typed};

pub use address::Reach;
pub use bash::{Bash, BashInput};
pub use edit::{Edit, EditInput};
pub use glob::{Glob, GlobInput};
pub use grep::{Grep, GrepInput, OutputMode};
pub use read::{Read, ReadInput};
pub use web_fetch::{WebFetch, WebFetchInput};
pub use write::{Write, WriteInput};

/// All tools, by name. Makes nothing that costs time: the HTTP client is built at the first fetch.
pub fn all(reach: Reach) -> Toolbox {
    Toolbox::from_iter([
        typed(Bash),
        typed(Edit),
        typed(Glob),
        typed(Grep),
        typed(Read),
        typed(WebFetch::new(reach)),
        typed(Write),
    ])
}
