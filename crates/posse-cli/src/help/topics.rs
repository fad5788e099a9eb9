//! Pages of the manual, as an installed posse has them.

use posse_tui::terminal::styled_text;
use posse_tui::text::render;

/// A page of the manual.
pub(crate) struct Topic {
    /// The word that names it, which is the name of its file, too.
    pub(crate) name: &'static str,
    /// What it covers.
    pub(crate) about: &'static str,
    page: &'static str,
}

macro_rules! topics {
    ($($name:literal: $about:literal,)*) => {
        /// All pages, in the order in which they are listed.
        const TOPICS: &[Topic] = &[$(Topic {
            name: $name,
            about: $about,
            page: include_str!(concat!("../../../../docs/", $name, ".md")),
        },)*];
    };
}

topics! {
    "terminal": "The conversation: keys, commands, questions, the board",
    "cli": "Commands, flags, environment, exit codes",
    "coming-from": "Coming from Claude Code or Codex: what is read, what differs",
    "permissions": "Modes, rules and settings: what runs without asking",
    "security": "What commands can touch: the sandbox, and how to check it",
    "trust": "Which repositories you trust, and what waits until you do",
    "agents": "Sub-agents: your own types, worktrees, background work, budgets",
    "teams": "Teams: declaring, running, watching, resuming",
    "forks": "Forks, the prompt cache, compaction, side questions",
    "memory": "CLAUDE.md, AGENTS.md, rules and imports: what every agent is told",
    "skills": "Skills and slash commands",
    "hooks": "Programs of yours that see what agents do, and have a say in it",
    "mcp": "MCP servers: declaring, checking and sharing them",
    "headless": "posse in programs: JSON and stream-json",
    "protocol": "The protocol for programs that watch and command agents",
    "models": "Providers, retries, prices",
    "scripted-model": "A model with scripted replies: rules, faults, its cache",
    "store": "Where everything is stored, and what is guaranteed",
    "fleet": "Many machines, with PostgreSQL",
    "troubleshooting": "When something does not work; uninstalling",
}

/// Returns all pages.
pub(crate) fn all() -> impl Iterator<Item = &'static Topic> {
    TOPICS.iter()
}

/// Returns the page of this name.
pub(crate) fn named(name: &str) -> Option<&'static Topic> {
    all().find(|topic| topic.name == name)
}

impl Topic {
    /// Returns the page as Markdown. What it says of other pages names commands, since the reader
    /// may have no other files.
    pub(crate) fn markdown(&self) -> String {
        let mut page = String::with_capacity(self.page.len());
        let mut is_text = true;
        for line in self.page.split_inclusive('\n') {
            if line.trim_start().starts_with("```") {
                is_text = !is_text;
            }
            let is_note = line.starts_with("<!--") && line.trim_end().ends_with("-->");
            if is_text && is_note {
                continue;
            }
            match is_text {
                true => page.push_str(&with_commands(line)),
                false => page.push_str(line),
            }
        }
        page
    }

    /// Returns the page for a terminal of this width, or as Markdown.
    pub(crate) fn text(&self, width: Option<u16>) -> String {
        let markdown = self.markdown();
        match width {
            Some(width) => styled_text(&render(&markdown, width)),
            None => markdown,
        }
    }
}

/// Replaces links to pages, and their file names, by the commands that show them.
fn with_commands(line: &str) -> String {
    let mut line = line.to_owned();
    for Topic { name, .. } in all() {
        line = line.replace(&format!("docs/{name}.md"), &format!("posse help {name}"));
        line = without_links(&line, &format!("]({name}.md"), name);
    }
    line
}

/// Replaces `[words](NAME.md#place)`; `link` is the part from the bracket to the file's ending.
fn without_links(line: &str, link: &str, name: &str) -> String {
    let mut rest = line;
    let mut made = String::with_capacity(line.len());
    while let Some((before, after)) = rest.split_once(link) {
        let Some(((before, words), (_, after))) =
            before.rsplit_once('[').zip(after.split_once(')'))
        else {
            break;
        };
        made.push_str(&format!("{before}{words} (`posse help {name}`)"));
        rest = after;
    }
    made + rest
}

#[cfg(test)]
mod tests;
