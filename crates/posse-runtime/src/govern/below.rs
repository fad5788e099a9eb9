//! Collects what agents below the main agent used and missed in the cache, until the main agent
//! reports it.

use std::mem::take;

use posse_protocol::{AgentId, AgentMisses, Missed, Misses, Spent, Usage, misses};

use crate::govern::ledger::add;
use posse_port::store::Charge;

/// What one agent used and missed in the cache since the last report.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Number of reports before; differs from [`Below`]'s if this is out of date.
    told: u64,
    usage: Usage,
    /// Its line in the report, if it missed anything.
    line: Option<AgentMisses>,
}

/// What all agents below the main agent used and missed since the last report.
#[derive(Debug, Default)]
pub(super) struct Below {
    told: u64,
    spent: Vec<Spent>,
    misses: Misses,
}

impl Below {
    /// Takes everything for a report.
    pub(super) fn take(&mut self) -> (Vec<Spent>, Misses) {
        // Invalidates the `Recent` of every agent without visiting them.
        self.told += 1;
        (take(&mut self.spent), take(&mut self.misses))
    }

    /// Books a call of an agent below.
    pub(super) fn book(&mut self, recent: &mut Recent, charges: &[Charge], miss: Option<Miss>) {
        add(&mut self.spent, charges);
        if recent.told != self.told {
            *recent = Recent {
                told: self.told,
                ..Recent::default()
            };
        }
        recent.usage = charges
            .iter()
            .fold(recent.usage, |sum, charge| sum + charge.usage);
        let again = recent.line.is_some();
        if let Some(line) = &mut recent.line {
            line.usage = recent.usage;
        }
        match miss {
            Some(Miss {
                agent,
                path,
                missed,
            }) => {
                let (usage, fresh) = (recent.usage, Vec::new());
                let line = recent.line.get_or_insert(AgentMisses {
                    agent,
                    path,
                    usage,
                    missed: fresh,
                });
                misses::add(&mut line.missed, &missed);
                self.misses.count(&missed, line, again);
            }
            None => recent
                .line
                .iter()
                .for_each(|line| self.misses.update(line, again)),
        }
    }
}

/// What a call missed in the cache, and which agent made it.
#[derive(Debug)]
pub(super) struct Miss {
    pub(super) agent: AgentId,
    pub(super) path: String,
    pub(super) missed: Missed,
}
