//! Who may do what without asking. [`decide`] is pure: rules, a mode and an intent in, a verdict
//! out.
//!
//! Nothing here reads the disk: tools resolve paths before they ask, and check again when they
//! open a file. Rules decide when to ask; the sandbox is the boundary.

mod call_pattern;
#[cfg(test)]
mod corpus;
mod decide;
mod host;
mod mirror;
mod path;
mod pattern;
mod rights;
mod rule;
mod rule_problem;
mod shell;
mod suggest;

pub use call_pattern::CallPattern;
pub use decide::{Verdict, decide};
pub use path::{behind_proc, guarded_names, may_be_guarded};
pub use rights::{Consent, Outside, Rights};
pub use rule::{ListedRule, Policy, RuleError, RuleList, Source};
pub use rule_problem::RuleProblem;
pub use shell::{CommandWords, words};
