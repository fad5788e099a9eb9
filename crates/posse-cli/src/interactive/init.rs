//! `/init`: asks the agent to write AGENTS.md, or to improve it.

use std::path::Path;

/// The file.
const FILE: &str = "AGENTS.md";

/// What the agent is asked for if there is no such file.
const WRITE: &str = "\
Write a file AGENTS.md in the root of this project, for coding agents that have never seen it.

First look: the README and other documents, the build files, the layout of the directories, the configuration of CI, of \
linters and formatters, and a few source files and tests that are typical. If there are instructions for other tools, \
such as CLAUDE.md or .cursor/rules, use what is true in them.

Then write what someone needs on the first day and cannot guess:
- what the project is, in one or two sentences;
- the exact commands to build it, to run all tests, to run a single test, and to lint and format it. Take them from the \
files that you have read, and try those that are quick and change nothing;
- the layout: which directory holds what, where the program starts, and which parts belong together;
- conventions that the code follows and a newcomer would break: names, errors, tests, commits.

Keep it short, at most a page. Write only what you have seen to be true; leave a section out rather than guess. No general \
advice that fits any project, and nothing that a glance at the directory shows. When you are done, say in two sentences what \
you wrote and what you could not find out.";

/// What it is asked for if there is one.
const IMPROVE: &str = "\
Improve AGENTS.md in the root of this project, which tells coding agents what they need to know about it.

Read it, and compare it with the project: are its commands right, does its layout exist, does the code follow the \
conventions it names? Correct what is wrong, remove what is out of date, general or plain to see, and add what is missing: \
the commands to build, to test (all tests and a single one) and to lint, the layout, and conventions that a newcomer would \
break. Keep its structure and its voice where they are good, and keep it at most a page. Write only what you have seen to be \
true. When you are done, list your changes and the reason for each.";

/// What `/init` does.
pub(super) enum InitStep {
    /// The agent is asked this.
    Ask(&'static str),
    /// The person is told this.
    Tell(&'static str),
}

/// Returns what is done in a directory; with `improves` a file that is there may be changed.
pub(super) fn step(cwd: &Path, improves: bool) -> InitStep {
    match (cwd.join(FILE).exists(), improves) {
        (false, _) => InitStep::Ask(WRITE),
        (true, true) => InitStep::Ask(IMPROVE),
        (true, false) => InitStep::Tell(
            "AGENTS.md is there already, and is left as it is; /init improve asks the agent to \
             improve it",
        ),
    }
}
