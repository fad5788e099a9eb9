//! Who may do what without asking. [`decide`] is pure: rules, a mode and a question in, a verdict out.

#[cfg(test)]
mod corpus;
mod decide;
mod mirror;
mod path;
mod pattern;
mod rights;
mod rule;
mod rule_problem;
mod shell;

pub use decide::{Verdict, decide};
pub use rights::{Outside, Rights};
pub use rule::{Policy, RuleError, RuleList, Source};
pub use rule_problem::RuleProblem;
