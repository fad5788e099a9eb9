//! `posse cache`.

mod requests;

use std::process::ExitCode;
use std::rc::Rc;

use posse_model::blocks::Shared;
use posse_port::store::{AgentRecord, Store, StoreError};
use posse_protocol::{AgentId, Missed, Usage, misses};
use serde_json::{Value, json};

use self::requests::{AgentRequests, Relatives};
use crate::config::store::StoreArgs;
use crate::error::Advised;
use crate::output::table::{Column, needed, spare, table};
use crate::output::time::{age, minute, moment};
use crate::output::{count, grouped, json_line, print, tame, width};
use crate::present::cache_misses::{in_words, of_reasons};
use crate::present::costs::{AgentCost, about, called, tree};
use crate::present::usage::usage;
use crate::select::sessions;

/// Columns of the table of agents.
const AGENTS: [Column; 8] = [
    spare("FIRST", 4).right(),
    needed("PARENT").right(),
    needed("SIBLING").right(),
    spare("READ", 3).right(),
    spare("WRITTEN", 3).right(),
    needed("MISSED").right(),
    spare("DIFFERS AT", 1),
    needed("AGENT"),
];
/// Columns of the table of requests.
const REQUESTS: [Column; 7] = [
    spare("WHEN", 2),
    spare("AFTER", 3).right(),
    spare("READ", 4).right(),
    needed("MISSED").right(),
    needed("AGENT"),
    needed("WHY"),
    needed("DIFFERS AT"),
];

/// Number of siblings' first requests that are kept to compare others with.
const ELDERS: usize = 8;

/// Show what a session read from the prompt cache, and why it missed the rest.
///
/// For each agent: the size of its first request, how much of it repeats its parent's previous
/// request, how much it shares with an earlier sibling, and the block where it first differs from
/// its parent's. Then each request that missed something that had been in the cache: when, how
/// much, why, and the block where it differs from the agent's previous request, if it does.
#[derive(clap::Args)]
pub(crate) struct CacheCommand {
    /// Session; a unique prefix of its ID is enough [default: the last one used in this directory]
    session: Option<String>,
    /// Show only this agent; a unique prefix of its ID is enough
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Show all requests, not only those that missed something
    #[arg(long)]
    all: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl CacheCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        crate::config::runtime()?.block_on(async {
            let store = crate::assemble::store::look_into_store(&self.store)?;
            let (root, agents) =
                sessions::meant_with_agents(store.as_ref(), self.session.as_deref()).await?;
            let lines = tree(root.agent, &agents);
            let only = self
                .agent
                .as_deref()
                .map(|id| alone(id, &lines))
                .transpose()?;
            let report = CacheReport::of(store.as_ref(), &lines, only, self.all).await?;
            let shown = if self.json {
                json_line(&report.object(root.agent))
            } else {
                report.readable(width())
            };
            print(shown.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Returns the only agent whose id begins with `prefix`.
fn alone<'a>(prefix: &str, lines: &[AgentCost<'a>]) -> Result<&'a AgentRecord, Advised> {
    let wanted = prefix.trim().to_ascii_lowercase();
    let mut found = lines
        .iter()
        .map(|line| line.agent)
        .filter(|agent| agent.agent.to_string().starts_with(&wanted));
    let wrong = |what: String| Advised {
        what,
        advice: "`posse cache SESSION --json` lists the ids of all".into(),
    };
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(wrong(format!("the session has no agent {}", tame(prefix)))),
        (Some(_), Some(_)) => Err(wrong(format!(
            "several of its agents have ids that begin with `{}`",
            tame(prefix)
        ))),
    }
}

/// An agent, and what its requests have in common with others.
struct CacheRow<'a> {
    line: &'a AgentCost<'a>,
    /// Size of its first request; `None` if it has sent none.
    first: Option<u64>,
    /// Size of its parent's previous request, and what its first request shares with it.
    parent: Option<(u64, Shared)>,
    /// The elder sibling it shares most with.
    sibling: Option<(AgentId, Shared)>,
    /// The requests that missed something, or all.
    requests: Vec<CacheRequest>,
    missed: Vec<Missed>,
}

/// A request.
struct CacheRequest {
    at_ms: i64,
    /// Time since the agent's previous request.
    after_ms: Option<i64>,
    /// It asked for a summary.
    compacts: bool,
    usage: Usage,
    missed: Option<Missed>,
    /// Where it differs from the previous one.
    differs: Option<String>,
}

/// An ancestor of the current agent, and the first requests of its children so far.
struct Ancestor {
    depth: usize,
    looked: Rc<AgentRequests>,
    children: Vec<Rc<AgentRequests>>,
}

/// The report of a session.
struct CacheReport<'a> {
    rows: Vec<CacheRow<'a>>,
    requests: usize,
    missed: Vec<Missed>,
}

impl<'a> CacheReport<'a> {
    /// Reads the transcripts of all agents and compares their requests.
    async fn of(
        store: &dyn Store,
        lines: &'a [AgentCost<'a>],
        only: Option<&AgentRecord>,
        all: bool,
    ) -> anyhow::Result<Self> {
        let mut report = Self {
            rows: Vec::new(),
            requests: 0,
            missed: Vec::new(),
        };
        // The path from the root to the current agent: agents come in depth-first order.
        let mut above: Vec<Ancestor> = Vec::new();
        for line in lines {
            while above.pop_if(|above| above.depth >= line.depth).is_some() {}
            if only.is_some_and(|only| !concerns(only, line)) {
                continue;
            }
            let looked = Rc::new(AgentRequests::at(store, line.agent.agent).await?);
            let other = match above.last() {
                Some(above) => Some(Rc::clone(&above.looked)),
                None => source(store, &looked).await?,
            };
            let kin = Relatives {
                parent: other.as_deref(),
                elders: above.last().map_or(&[], |above| &above.children),
            };
            if only.is_none_or(|only| only.agent == line.agent.agent) {
                report.add(looked.compared(line, &kin), all);
            }
            if let Some(Ancestor { children, .. }) = above.last_mut()
                && children.len() < ELDERS
                // Siblings with the same preamble add nothing to compare with, and would use up
                // the limit.
                && !children.iter().any(|elder| elder.begins_like(&looked))
            {
                children.push(Rc::clone(&looked));
            }
            above.push(Ancestor {
                depth: line.depth,
                looked,
                children: Vec::new(),
            });
        }
        Ok(report)
    }

    /// Adds an agent's row and its misses.
    fn add(&mut self, mut row: CacheRow<'a>, all: bool) {
        self.requests += row.requests.len();
        for missed in row
            .requests
            .iter()
            .filter_map(|request| request.missed.as_ref())
        {
            misses::add(&mut row.missed, missed);
            misses::add(&mut self.missed, missed);
        }
        if !all {
            row.requests.retain(|request| request.missed.is_some());
        }
        self.rows.push(row);
    }

    fn readable(&self, columns: Option<usize>) -> String {
        let rows: Vec<_> = self.rows.iter().map(CacheRow::cells).collect();
        let mut shown = table(&AGENTS, &rows, columns);
        let requests: Vec<_> = self.rows.iter().flat_map(CacheRow::request_cells).collect();
        if !requests.is_empty() {
            shown.push_str(&format!("\n{}", table(&REQUESTS, &requests, columns)));
        }
        let requests = count(self.requests, "request");
        let tokens = total(&self.missed);
        shown.push_str(&match tokens {
            0 => format!("\n{requests}: everything that had been in the cache was found there\n"),
            _ => format!(
                "\n{requests}: {} tokens had been in the cache and were not found there: {}\n",
                grouped(tokens),
                in_words(&self.missed)
            ),
        });
        shown
    }

    fn object(&self, session: AgentId) -> Value {
        json!({
            "session_id": session, "requests": self.requests, "missed_tokens": total(&self.missed),
            "missed_why": of_reasons(&self.missed),
            "agents": self.rows.iter().map(CacheRow::object).collect::<Vec<_>>(),
        })
    }
}

/// Returns true if an agent is needed to report on `only`: itself, its parent and its siblings.
fn concerns(only: &AgentRecord, line: &AgentCost<'_>) -> bool {
    let parent = only.origin.as_ref().map(|origin| origin.parent);
    let its_parent = line.agent.origin.as_ref().map(|origin| origin.parent);
    only.agent == line.agent.agent
        || parent.is_some_and(|parent| parent == line.agent.agent || its_parent == Some(parent))
}

/// Returns the agent whose history a root continues, if it was forked from another session that
/// still exists.
async fn source(
    store: &dyn Store,
    looked: &AgentRequests,
) -> anyhow::Result<Option<Rc<AgentRequests>>> {
    let Some(segment) = looked.segment() else {
        return Ok(None);
    };
    match AgentRequests::at(store, segment.agent).await {
        Ok(source) => Ok(Some(Rc::new(source))),
        Err(error) if matches!(error.downcast_ref(), Some(StoreError::NotFound { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

fn total(missed: &[Missed]) -> u64 {
    missed
        .iter()
        .fold(0, |sum, missed| sum.saturating_add(missed.tokens))
}

/// Returns a share in percent; "all" only if it is everything.
fn share(part: u64, whole: u64) -> String {
    match (part, whole) {
        _ if part >= whole => "all".into(),
        (0, _) => "none".into(),
        // Rounded down, so that almost everything does not look like 100.0%.
        _ => format!(
            "{:.1}%",
            ((part as f64 / whole as f64) * 1000.0).floor() / 10.0
        ),
    }
}

impl CacheRow<'_> {
    fn cells(&self) -> Vec<String> {
        let Usage {
            cache_read,
            cache_write_5m,
            cache_write_1h,
            ..
        } = self.line.own.usage;
        let parent = self.parent.as_ref();
        let own = self.first.unwrap_or_default();
        vec![
            self.first
                .map_or_else(String::new, |first| format!("{} B", grouped(first))),
            parent.map_or_else(String::new, |(size, shared)| share(shared.bytes, *size)),
            self.sibling
                .as_ref()
                .map_or_else(String::new, |(_, shared)| share(shared.bytes, own)),
            grouped(cache_read),
            grouped(cache_write_5m.saturating_add(cache_write_1h)),
            grouped(total(&self.missed)),
            parent
                .and_then(|(_, shared)| differs(shared))
                .map_or_else(String::new, |at| tame(&at)),
            called(self.line),
        ]
    }

    fn request_cells(&self) -> impl Iterator<Item = Vec<String>> {
        self.requests.iter().map(|request| {
            let why = match &request.missed {
                Some(missed) => tame(&missed.why),
                None => String::new(),
            };
            let compared = request.after_ms.is_some() || self.parent.is_some();
            let at = match &request.differs {
                Some(at) => tame(at),
                None if compared => "the same bytes".into(),
                None => String::new(),
            };
            vec![
                minute(request.at_ms),
                request.after_ms.map_or_else(String::new, age),
                grouped(request.usage.cache_read),
                grouped(request.missed.as_ref().map_or(0, |missed| missed.tokens)),
                tame(&self.line.agent.path),
                if request.compacts {
                    format!("{why} (compaction)").trim_start().to_owned()
                } else {
                    why
                },
                at,
            ]
        })
    }

    fn object(&self) -> Value {
        let mut object = about(self.line.agent);
        let requests = self.requests.iter().map(|request| {
            json!({
                "at": moment(request.at_ms), "after_ms": request.after_ms,
                "for": if request.compacts { "compaction" } else { "work" }, "usage": usage(&request.usage),
                "missed_tokens": request.missed.as_ref().map_or(0, |missed| missed.tokens),
                "missed_why": request.missed.as_ref().map(|missed| &missed.why),
                "differs_at": request.differs,
            })
        });
        object["usage"] = usage(&self.line.own.usage);
        object["missed_tokens"] = total(&self.missed).into();
        object["missed_why"] = of_reasons(&self.missed);
        object["first_request_bytes"] = json!(self.first);
        object["with_parent"] = json!(self.parent.as_ref().map(|(size, shared)| json!({
            "request_bytes": size, "shared_bytes": shared.bytes, "differs_at": differs(shared),
        })));
        object["with_sibling"] = json!(self.sibling.as_ref().map(|(agent, shared)| json!({
            "agent_id": agent, "shared_bytes": shared.bytes, "differs_at": differs(shared),
        })));
        object["requests"] = requests.collect();
        object
    }
}

fn differs(shared: &Shared) -> Option<String> {
    shared.differs.as_ref().map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use posse_tui::text;

    use super::*;
    use crate::present::fixtures::session;

    #[test]
    fn no_line_is_wider_than_the_window_and_what_was_missed_is_always_there() {
        let agents = [session()];
        let lines = tree(agents[0].agent, &agents);
        let missed = vec![Missed {
            tokens: 31_234,
            why: "expired".into(),
        }];
        let request = CacheRequest {
            at_ms: 0,
            after_ms: Some(420_000),
            compacts: false,
            usage: Usage::default(),
            missed: missed.first().cloned(),
            differs: Some("messages[12].content[3] (tool_result toolu_1)".into()),
        };
        let (first, parent, sibling) = (Some(123_456), None, None);
        let row = CacheRow {
            line: &lines[0],
            first,
            parent,
            sibling,
            requests: vec![request],
            missed: Vec::new(),
        };
        let mut report = CacheReport {
            rows: Vec::new(),
            requests: 0,
            missed: Vec::new(),
        };
        report.add(row, false);
        assert_eq!(report.missed, missed);
        for width in 60..160 {
            let shown = report.readable(Some(width));
            let (tables, _) = shown.rsplit_once("\n\n").unwrap();
            assert!(
                tables.lines().all(|line| text::columns(line) <= width),
                "{shown}"
            );
            assert_eq!(tables.matches("31,234").count(), 2, "{shown}");
            assert!(tables.contains("messages[12]"), "{shown}");
        }
    }

    #[test]
    fn a_share_is_all_only_if_it_is() {
        let check = |part, whole, told: &str| assert_eq!(share(part, whole), told);
        check(10, 10, "all");
        check(0, 0, "all");
        check(0, 7, "none");
        check(999_999, 1_000_000, "99.9%");
        check(1, 3, "33.3%");
    }
}
