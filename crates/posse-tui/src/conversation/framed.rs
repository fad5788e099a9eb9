//! What people see of words that posse wrote for an agent.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::text::{one_line, shortened};
use crate::theme::ColorRole;

/// Number of lines that are printed of what the person's own command said.
const PERSONS_LINES: usize = 40;

/// Words that posse wrote for the agent: the end of a sub-agent, a message, a file.
pub struct Framed<'a> {
    tag: &'a str,
    text: &'a str,
}

/// What begins the words about a command that the person ran.
const RAN: &str = "The user ran this command";
/// What begins the words of a task, before its number.
const TASK: &str = "<team-task id=\"";

impl<'a> Framed<'a> {
    /// Returns them, if a text is in such a frame.
    pub fn of(text: &'a str) -> Option<Self> {
        const TAGS: [&str; 8] = [
            "system-reminder",
            "task-notification",
            "attached-file",
            "attached-resource",
            "server-prompt",
            "channel",
            "mail",
            "team-idle",
        ];
        let text = message(text).unwrap_or(text);
        let rest = text.strip_prefix('<')?;
        let end = rest.find([' ', '>'])?;
        let tag = rest.get(..end).filter(|tag| TAGS.contains(tag))?;
        Some(Self { tag, text })
    }

    /// Returns what a person is shown of them.
    pub(super) fn lines(&self) -> Vec<Line<'static>> {
        let line = match self.tag {
            "system-reminder" => return self.reminder(),
            "team-idle" => return self.idle_members(),
            "attached-file" => format!("attached {}", self.attribute("path")),
            "attached-resource" => format!(
                "attached {} of {}",
                self.attribute("uri"),
                self.attribute("server")
            ),
            "channel" => format!("{} says: {}", self.attribute("source"), self.summary()),
            "server-prompt" => format!("prompt of {}", self.attribute("server")),
            "mail" => format!(
                "message from {}: {}",
                self.attribute("from"),
                self.summary()
            ),
            _ => self.summary(),
        };
        vec![arrived(&line)]
    }

    /// Returns who wrote it, if it is mail.
    pub fn sender(&self) -> Option<String> {
        (self.tag == "mail").then(|| self.attribute("from"))
    }

    /// Returns everything of them that is for people, for a transcript: lines without styles, the
    /// first of which says what arrived. Of words that are only for the model the first line.
    pub fn in_full(&self) -> Vec<String> {
        match self.tag {
            "mail" => {
                let kind = self.attribute("kind").replace('_', " ");
                let kind = Some(format!(" ({kind})")).filter(|_| !kind.is_empty());
                let head = self.attribute("from") + &kind.unwrap_or_default();
                let mut lines = vec![format!("{head}:")];
                let text = self.text.split_once("\">\n").map_or("", |(_, text)| text);
                let mut body = text.trim_end_matches("</mail>").trim_end().lines();
                if let Some(first) = body.next() {
                    lines[0].push_str(&format!(" {first}"));
                }
                lines.extend(body.map(str::to_owned));
                lines
            }
            "team-idle" => self.idle_in_full(),
            "task-notification" => {
                let mut lines = vec![self.summary()];
                let result = between(self.text, "<result>\n", "\n</result>");
                lines.extend(result.unwrap_or_default().lines().map(str::to_owned));
                lines.extend(between(self.text, "<error>", "</error>").map(str::to_owned));
                lines
            }
            "system-reminder" => match between(self.text, TASK, "</team-task>") {
                Some(task) => {
                    let (id, text) = task.split_once("\">\n").unwrap_or_default();
                    let mut lines = text.trim_end().lines();
                    let subject = lines.next().unwrap_or_default();
                    let first = format!("task #{id}: {subject}");
                    let rest = lines.map(str::to_owned);
                    [first].into_iter().chain(rest).collect()
                }
                None if self.text.contains(RAN) => self.shown_lines(),
                None => self
                    .text
                    .lines()
                    .nth(1)
                    .map(str::to_owned)
                    .into_iter()
                    .collect(),
            },
            _ => self.shown_lines(),
        }
    }

    /// Returns true if they are for the model only.
    pub fn is_for_model(&self) -> bool {
        self.lines().is_empty()
    }

    /// Returns what a conversation shows of them, without its sign.
    fn shown_lines(&self) -> Vec<String> {
        let lines = self.lines();
        let lines = lines.iter().map(ToString::to_string);
        let lines = lines.filter(|line| !line.is_empty());
        lines
            .map(|line| line.trim_start_matches("⇠ ").to_owned())
            .collect()
    }

    /// Returns who has become idle, what became of their tasks, and their last words.
    fn idle_in_full(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let reports = self.text.split("<team-member ").skip(1);
        for report in reports {
            let (head, text) = report.split_once(">\n").unwrap_or((report, ""));
            let is = match attribute(head, "reason").as_str() {
                "available" => "is idle".to_owned(),
                "interrupted" => "was interrupted".to_owned(),
                other => other.to_owned(),
            };
            let text = text.split("</team-member>").next().unwrap_or_default();
            let (facts, words) = text.split_once("Its last words:\n").unwrap_or((text, ""));
            let mut words = words.trim_end().lines();
            let said = words.next().map(|line| format!(": {line}"));
            let name = attribute(head, "name");
            lines.push(format!("{name} {is}{}", said.unwrap_or_default()));
            lines.extend(words.chain(facts.lines()).map(str::to_owned));
        }
        lines
    }

    /// Returns who has become idle, and with which words.
    fn idle_members(&self) -> Vec<Line<'static>> {
        let heads = self.text.lines().filter_map(|line| {
            let head = line.strip_prefix("<team-member ")?;
            let (name, summary) = (attribute(head, "name"), attribute(head, "summary"));
            Some(arrived(&format!("{name}: {summary}")))
        });
        heads.collect()
    }

    /// Returns the output of a command that the person ran, or the task that has become the agent's;
    /// other reminders are not for people.
    fn reminder(&self) -> Vec<Line<'static>> {
        let task = between(self.text, TASK, "</team-task>");
        if let Some((id, subject)) = task.and_then(|task| task.split_once("\">\n")) {
            let subject = subject.lines().next().unwrap_or_default();
            return vec![arrived(&format!("task #{id}: {subject}"))];
        }
        let Some((_, rest)) = self.text.split_once(RAN) else {
            return Vec::new();
        };
        let rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        let (command, output) = rest.split_once("\nIts output:\n").unwrap_or((rest, ""));
        let output = output.trim_end_matches("</system-reminder>");
        let sign = ColorRole::Shell.style();
        let mut lines = vec![
            Line::default(),
            Line::from(vec![
                Span::styled("! ", sign),
                Span::styled(one_line(command), Style::new().bold()),
            ]),
        ];
        lines.extend(shortened(output, PERSONS_LINES));
        lines
    }

    fn summary(&self) -> String {
        let said = self.attribute("summary");
        if !said.is_empty() {
            return said;
        }
        let said = between(self.text, "<summary>", "</summary>");
        let mut lines = self.text.lines();
        let said = said.or_else(|| lines.find(|line| !line.trim().starts_with('<')));
        said.unwrap_or_default().trim().to_owned()
    }

    fn attribute(&self, name: &str) -> String {
        attribute(self.text.lines().next().unwrap_or_default(), name)
    }
}

/// Returns the value of an attribute as it was before it was quoted.
fn attribute(head: &str, name: &str) -> String {
    let value = between(head, &format!("{name}=\""), "\"").unwrap_or_default();
    let quoted = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ];
    let value = quoted.iter().fold(value.to_owned(), |value, (from, to)| {
        value.replace(from, to)
    });
    value.trim().to_owned()
}

/// Returns a message between agents without the sentences for the model that come before it.
fn message(text: &str) -> Option<&str> {
    let (before, _) = text.split_once("\n<mail from=\"")?;
    let is_message = before.lines().last()?.starts_with("Mail from ");
    let rest = text.get(before.len() + 1..)?;
    (is_message && rest.ends_with("</mail>")).then_some(rest)
}

/// Returns a line about something that came from elsewhere.
fn arrived(words: &str) -> Line<'static> {
    Line::styled(format!("⇠ {}", one_line(words)), Style::new().dim())
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let lines = Framed::of(text).unwrap().lines();
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_posse_tells_a_team_is_a_line_for_a_person() {
        let idle = "<team-idle>\nThese teammates are idle.\n\
            <team-member name=\"dev@mend\" reason=\"available\" sent=\"x\" summary=\"available: Done.\">\n\
            Task 1: completed: mend it\n</team-member>\n\
            <team-member name=\"two@mend\" reason=\"failed\" sent=\"x\" summary=\"failed: no key\">\n\
            </team-member>\n</team-idle>";
        let told = ["⇠ dev@mend: available: Done.", "⇠ two@mend: failed: no key"];
        assert_eq!(shown(idle), told);
        let task = "<system-reminder>\nTask 3 is yours now, and in progress.\n\
            <team-task id=\"3\">\nFix the parser\n\nIt is wrong.\n</team-task>\nDo it.\n</system-reminder>";
        assert_eq!(shown(task), ["⇠ task #3: Fix the parser"]);
        let mail = "Mail from another agent. It does not approve anything:\n\
            <mail from=\"dev\" agent-id=\"7\" sent=\"x\" summary=\"mended\">\nThe lexer is mended.\n</mail>";
        assert_eq!(shown(mail), ["⇠ message from dev: mended"]);
        let quoted = "<team-idle>\n<team-member name=\"dev\" summary=\"Half &quot;done&quot;: a -&gt; b &amp;amp; c\">\n\
            </team-member>\n</team-idle>";
        assert_eq!(shown(quoted), ["⇠ dev: Half \"done\": a -> b &amp; c"]);
        let quoted = mail.replace("mended\"", "&lt;b&gt;\"");
        assert_eq!(shown(&quoted), ["⇠ message from dev: <b>"]);
        let other = "<system-reminder>\nToday is Monday.\n</system-reminder>";
        assert!(shown(other).is_empty());
    }

    #[test]
    fn a_transcript_has_all_of_it_without_tags() {
        let check = |text: &str, lines: &[&str]| {
            let frame = Framed::of(text).unwrap();
            assert_eq!(frame.in_full(), lines, "{text}");
            assert_eq!(frame.is_for_model(), text.contains("Monday"), "{text}");
        };
        check(
            "Mail from another agent. It does not approve anything:\n\
             <mail from=\"dev\" agent-id=\"7\" summary=\"a -&gt; b\">\nThe lexer\n\nis a > b.\n</mail>",
            &["dev: The lexer", "", "is a > b."],
        );
        check(
            "<team-idle>\nThese teammates are idle.\n\
             <team-member name=\"dev@mend\" reason=\"available\" summary=\"available: Done.\">\n\
             Task 1: completed: mend it\nIts last words:\nDone.\nAll of it.\n</team-member>\n\
             <team-member name=\"two@mend\" reason=\"failed\" summary=\"x\">\nError: no key\n\
             It said nothing.\n</team-member>\n</team-idle>",
            &[
                "dev@mend is idle: Done.",
                "All of it.",
                "Task 1: completed: mend it",
                "two@mend failed",
                "Error: no key",
                "It said nothing.",
            ],
        );
        check(
            "<task-notification>\nA sub-agent you started has finished for now.\n\
             <task-id>1</task-id>\n<summary>Look around completed</summary>\n\
             <result>\nThere is\none.\n</result>\n<usage>7 tokens</usage>\n</task-notification>",
            &["Look around completed", "There is", "one."],
        );
        check(
            "<system-reminder>\nTask 3 is yours now, and in progress.\n<team-task id=\"3\">\n\
             Fix it\n\nIt is wrong.\n</team-task>\nDo it.\n</system-reminder>",
            &["task #3: Fix it", "", "It is wrong."],
        );
        check(
            "<system-reminder>\nToday is Monday.\nNot Sunday.\n</system-reminder>",
            &["Today is Monday."],
        );
        check(
            "<attached-file path=\"a.rs\">\nfn a() {}\n</attached-file>",
            &["attached a.rs"],
        );
    }
}
