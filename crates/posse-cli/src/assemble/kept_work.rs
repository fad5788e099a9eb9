//! Tells where work of a session lies that is not in the checkout.

use std::collections::BTreeMap;
use std::path::Path;

use posse_port::store::{AgentFilter, Page, Store};
use posse_protocol::{AgentId, RealmId};
use posse_tools::{Found, GitWorktrees};

use crate::config::store_choice::quoted;
use crate::output::one_line;

/// Returns two lines for each worktree of the session that holds work: what and where it is, and
/// the command that brings it home. What cannot be found out is left to `posse worktrees list`.
pub(crate) async fn lines(
    store: &dyn Store,
    worktrees: GitWorktrees,
    home: &Path,
    realm: RealmId,
) -> Vec<String> {
    if !home.is_dir() {
        return Vec::new();
    }
    let filter = AgentFilter {
        realm: Some(realm),
        ..AgentFilter::default()
    };
    let agents = store.agents(filter, Page::all()).await.unwrap_or_default();
    let named = agents.into_iter().map(|agent| {
        let name = agent.path.rsplit('/').next().unwrap_or_default();
        (agent.agent, name.to_owned())
    });
    let names: BTreeMap<AgentId, String> = named.collect();
    let look = move || {
        let found = worktrees.list_of(|agent| names.contains_key(&agent));
        let found = found.unwrap_or_default();
        let told = |found: &Found| told(found, names.get(&found.agent)?);
        found.iter().filter_map(told).flatten().collect()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// Returns the lines about one worktree; `None` if it holds nothing.
fn told(found: &Found, name: &str) -> Option<[String; 2]> {
    let (keeps, branch) = (found.keeps.as_ref()?, found.branch.as_ref()?);
    let path = quoted(&found.path.to_string_lossy());
    // What is committed is named as commits alone.
    let commit = match keeps.contains("file") {
        true => format!("(cd {path} && git add -A && git commit -m \"{name}\"); "),
        false => String::new(),
    };
    let what = format!("not in this checkout: work of {name} ({keeps}) in {path}");
    let home = format!("bring it home: {commit}git merge {branch}");
    Some([one_line(&what), one_line(&home)])
}
