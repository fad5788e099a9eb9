//! Reads worktrees for a board: one reading at a time, away from the screen, since git is slow. Only
//! what is on the screen is read, and what changes all the time at most every two seconds.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use posse_port::clock::{Clock as _, SystemClock};
use posse_protocol::AgentId;
use posse_tui::board::{Board, BoardInput, BoardReview, BoardScreen, WorktreeChanges};
use tokio::task::JoinSet;

use crate::assemble::reviewed_worktrees::{ReviewedWorktrees, WorktreeSite, no_worktree};

/// Time between two readings of what has changed.
const PERIOD: Duration = Duration::from_secs(2);
/// Number of worktrees that one reading is about.
const TOGETHER: usize = 4;

/// Reads worktrees.
pub(super) struct WorktreeReader {
    worktrees: Option<ReviewedWorktrees>,
    sites: HashMap<AgentId, WorktreeSite>,
    /// At most one.
    reading: JoinSet<WorktreeReading>,
    /// What the person wants, in order.
    wanted: VecDeque<WantedReading>,
    /// Worktrees that were never read.
    unread: HashSet<AgentId>,
    /// Worktrees in which somebody has worked since they were read.
    changed: HashSet<AgentId>,
    /// True if there may be others than are known.
    is_stale: bool,
    /// True if something on the screen waits for its turn.
    has_waiting: bool,
    /// The time before which what has changed is not read.
    next_at: Duration,
}

/// What a person wants.
pub(super) enum WantedReading {
    /// All that differs in the worktree of an agent.
    Review(AgentId),
    /// What would be lost with it.
    Loss(AgentId),
    /// It is deleted; the person was told that this would be lost.
    Discard(AgentId, Option<String>),
}

/// What was read.
pub(super) enum WorktreeReading {
    Sites(anyhow::Result<Vec<WorktreeSite>>),
    Changes(Vec<(AgentId, WorktreeChanges)>),
    Review(anyhow::Result<BoardReview>),
    Loss(AgentId, anyhow::Result<Option<String>>),
    /// The commits of a worktree that was deleted.
    Discarded(anyhow::Result<Vec<String>>),
}

impl WorktreeReader {
    /// Returns a reader that has read nothing.
    pub(super) fn new() -> Self {
        // Without a home there are no worktrees.
        Self::of(ReviewedWorktrees::open().ok())
    }

    fn of(worktrees: Option<ReviewedWorktrees>) -> Self {
        Self {
            worktrees,
            sites: HashMap::new(),
            reading: JoinSet::new(),
            wanted: VecDeque::new(),
            unread: HashSet::new(),
            changed: HashSet::new(),
            is_stale: true,
            has_waiting: false,
            next_at: Duration::ZERO,
        }
    }

    /// Notes that agents have worked, come or ended.
    pub(super) fn add_changed(&mut self, agents: impl IntoIterator<Item = AgentId>) {
        for agent in agents {
            self.is_stale = true;
            if self.sites.contains_key(&agent) {
                self.changed.insert(agent);
            }
        }
    }

    /// Notes that everything is to be read again, as soon as it is on the screen.
    pub(super) fn add_all(&mut self) {
        self.is_stale = true;
        self.unread.extend(self.sites.keys());
        self.next_at = Duration::ZERO;
    }

    /// Notes what the person wants.
    pub(super) fn want(&mut self, wanted: WantedReading) {
        self.wanted.push_back(wanted);
    }

    /// Returns the directory of an agent's worktree.
    pub(super) fn path(&self, agent: AgentId) -> Option<PathBuf> {
        self.sites.get(&agent).map(WorktreeSite::path)
    }

    /// Begins the next reading, if something is to be read and nothing is being read. The board has
    /// these agents.
    pub(super) fn begin(
        &mut self,
        board: &Board,
        agents: impl Iterator<Item = AgentId>,
        now: Duration,
    ) {
        let visible = board.visible_worktrees();
        let is_shown = board.screen() == BoardScreen::Worktrees;
        let is_changed = visible.iter().any(|agent| self.changed.contains(agent));
        let Some(worktrees) = self.worktrees.clone() else {
            return;
        };
        self.has_waiting = is_shown && (self.is_stale || is_changed);
        if !self.reading.is_empty() {
            return;
        }
        if let Some(wanted) = self.wanted.pop_front() {
            self.begin_wanted(worktrees, wanted);
            return;
        }
        let is_time = now >= self.next_at;
        if is_shown && self.is_stale && is_time {
            self.is_stale = false;
            self.next_at = now + PERIOD;
            let agents: HashSet<AgentId> = agents.collect();
            self.reading
                .spawn_blocking(move || WorktreeReading::Sites(worktrees.of(&agents)));
            return;
        }
        let is_due = |agent: &&AgentId| {
            self.unread.contains(agent) || is_time && self.changed.contains(agent)
        };
        let due: Vec<AgentId> = visible
            .iter()
            .filter(is_due)
            .take(TOGETHER)
            .copied()
            .collect();
        let sites: Vec<WorktreeSite> = due
            .iter()
            .filter_map(|agent| self.sites.get(agent).cloned())
            .collect();
        if due.is_empty() {
            return;
        }
        for agent in &due {
            self.unread.remove(agent);
            if self.changed.remove(agent) {
                self.next_at = now + PERIOD;
            }
        }
        self.reading.spawn_blocking(move || {
            let read = |site: &WorktreeSite| (site.shown.agent, worktrees.changes(site));
            WorktreeReading::Changes(sites.iter().map(read).collect())
        });
    }

    fn begin_wanted(&mut self, worktrees: ReviewedWorktrees, wanted: WantedReading) {
        match wanted {
            WantedReading::Review(agent) => {
                let site = self.sites.get(&agent).cloned();
                self.reading.spawn_blocking(move || {
                    let site = site.ok_or_else(no_worktree);
                    WorktreeReading::Review(site.and_then(|site| worktrees.review(&site)))
                });
            }
            WantedReading::Loss(agent) => {
                self.reading
                    .spawn_blocking(move || WorktreeReading::Loss(agent, worktrees.loss(agent)));
            }
            WantedReading::Discard(agent, told) => {
                self.reading.spawn_blocking(move || {
                    WorktreeReading::Discarded(worktrees.discard(agent, told.as_deref()))
                });
            }
        }
    }

    /// Waits until something was read, or until it is time to read: then there is nothing. Dropping
    /// the future loses nothing.
    pub(super) async fn next(&mut self, clock: &SystemClock) -> Option<WorktreeReading> {
        if let Some(read) = self.reading.join_next().await {
            return read.ok();
        }
        if !self.has_waiting {
            std::future::pending::<()>().await;
        }
        clock.sleep(self.next_at.saturating_sub(clock.now())).await;
        None
    }

    /// Returns what a board is told of a reading.
    pub(super) fn on_read(&mut self, reading: WorktreeReading) -> BoardInput {
        let failed = |error: anyhow::Error| BoardInput::Notice(format!("{error:#}"));
        match reading {
            WorktreeReading::Sites(Ok(sites)) => {
                let shown = sites.iter().map(|site| site.shown.clone()).collect();
                let mut known = std::mem::take(&mut self.sites);
                for site in sites {
                    let agent = site.shown.agent;
                    if known.remove(&agent).is_none() {
                        self.unread.insert(agent);
                    }
                    self.sites.insert(agent, site);
                }
                for gone in known.keys() {
                    self.unread.remove(gone);
                    self.changed.remove(gone);
                }
                BoardInput::Worktrees(shown)
            }
            WorktreeReading::Changes(changes) => BoardInput::WorktreeChanges(changes),
            WorktreeReading::Review(Ok(review)) => BoardInput::Review(Box::new(review)),
            WorktreeReading::Loss(agent, Ok(loss)) => BoardInput::Loss { agent, loss },
            WorktreeReading::Discarded(Ok(commits)) => {
                self.is_stale = true;
                self.next_at = Duration::ZERO;
                let mut notice = "discarded the worktree".to_owned();
                if !commits.is_empty() {
                    let commits = commits.join(" or ");
                    notice += "; its commits stay until git prunes them: git branch NAME ";
                    notice += &commits;
                }
                BoardInput::Notice(notice)
            }
            WorktreeReading::Sites(Err(error))
            | WorktreeReading::Review(Err(error))
            | WorktreeReading::Loss(_, Err(error))
            | WorktreeReading::Discarded(Err(error)) => failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use posse_tui::board::{BoardBeginning, BoardKeys, Scope, update};
    use posse_tui::conversation::Size;

    use super::*;

    fn board(screen: BoardScreen) -> Board {
        Board::new(BoardBeginning {
            size: Size {
                columns: 80,
                rows: 24,
            },
            title: String::new(),
            scope: Scope::Store,
            screen,
            keys: BoardKeys::default(),
        })
    }

    fn agent() -> AgentId {
        uuid::Uuid::from_u128(1).into()
    }

    #[tokio::test]
    async fn one_reading_at_a_time_and_only_of_what_is_on_the_screen() {
        let nowhere = ReviewedWorktrees::at("/nowhere/at/all".into());
        let mut reader = WorktreeReader::of(Some(nowhere));
        let clock = SystemClock::default();
        let begin = |reader: &mut WorktreeReader, board: &Board, now: Duration| {
            reader.begin(board, [agent()].into_iter(), now);
            reader.reading.len()
        };
        assert_eq!(begin(&mut reader, &board(BoardScreen::Agents), PERIOD), 0);
        assert!(!reader.has_waiting);
        let mut shown = board(BoardScreen::Worktrees);
        assert_eq!(begin(&mut reader, &shown, PERIOD), 1);
        // What a person wants waits for what is being read.
        reader.want(WantedReading::Loss(agent()));
        assert_eq!(begin(&mut reader, &shown, PERIOD * 2), 1);
        let read = reader.next(&clock).await.unwrap();
        let input = reader.on_read(read);
        assert!(matches!(&input, BoardInput::Worktrees(all) if all.is_empty()));
        assert_eq!(update(&mut shown, input, 0), []);
        assert_eq!(begin(&mut reader, &shown, PERIOD), 1);
        let read = reader.next(&clock).await.unwrap();
        let input = reader.on_read(read);
        let told = "there is no such worktree any more";
        assert!(
            matches!(&input, BoardInput::Notice(why) if why == told),
            "{input:?}"
        );
        reader.want(WantedReading::Review(agent()));
        assert_eq!(begin(&mut reader, &shown, PERIOD), 1);
        let read = reader.next(&clock).await.unwrap();
        let input = reader.on_read(read);
        assert!(
            matches!(&input, BoardInput::Notice(why) if why == told),
            "{input:?}"
        );
        // Nothing changes, and nothing is read; then not before its time.
        assert_eq!(begin(&mut reader, &shown, PERIOD * 2), 0);
        assert!(!reader.has_waiting);
        reader.add_changed([agent()]);
        assert_eq!(begin(&mut reader, &shown, PERIOD + PERIOD / 2), 0);
        assert!(reader.has_waiting);
        assert_eq!(begin(&mut reader, &shown, PERIOD * 2), 1);
    }
}
