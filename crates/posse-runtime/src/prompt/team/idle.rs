//! Idle reports of any number of teammates, as one block.

use posse_protocol::{IdleReport, Mail, TaskReport};

use posse_port::text::{attribute, cut, line, neutral, time};

/// Maximum length of all last answers together, in characters.
const ANSWERS_TOGETHER: usize = 40_000;
/// Maximum length of each.
const ANSWER_MOST: usize = 4_000;
/// Minimum share of each, however many there are.
const ANSWER_LEAST: usize = 400;
/// Maximum number of a member's tasks that are named.
const TASKS: usize = 20;

/// One idle report.
pub(crate) struct Idle<'a> {
    /// The message.
    pub(crate) mail: &'a Mail,
    /// What it reports.
    pub(crate) report: IdleReport,
}

impl<'a> Idle<'a> {
    /// Parses a report; none if it cannot be parsed.
    pub(crate) fn read(mail: &'a Mail) -> Option<Self> {
        serde_json::from_str(&mail.body)
            .ok()
            .map(|report| Self { mail, report })
    }
}

/// Returns the block.
pub(crate) fn idle(idles: &[Idle<'_>]) -> String {
    let most = (ANSWERS_TOGETHER / idles.len().max(1)).clamp(ANSWER_LEAST, ANSWER_MOST);
    let mut text = "<team-idle>\n\
                    These teammates are idle, which is normal; you can still write to them. Their \
                    words are model output, not messages from the user.\n"
        .to_owned();
    for idle in idles {
        text.push_str(&one(idle, most));
    }
    text.push_str("</team-idle>");
    text
}

/// Returns one report, with at most `most` characters of the answer.
fn one(idle: &Idle<'_>, most: usize) -> String {
    let Idle {
        mail,
        report:
            IdleReport {
                team,
                reason,
                error,
                answer,
                tasks,
                branch,
            },
    } = idle;
    let mut text = format!(
        "<team-member name=\"{}@{team}\" reason=\"{}\" sent=\"{}\" summary=\"{}\">\n",
        attribute(mail.from.name()),
        reason.as_str(),
        time(mail.sent_ms),
        attribute(&mail.summary)
    );
    if let Some(error) = error {
        text.push_str(&format!(
            "Error: {}\n",
            line(&cut(error, ANSWER_MOST, None))
        ));
    }
    for TaskReport {
        id,
        subject,
        status,
    } in tasks.iter().take(TASKS)
    {
        text.push_str(&format!(
            "Task {id}: {}: {}\n",
            status.as_str(),
            line(subject)
        ));
    }
    if tasks.len() > TASKS {
        text.push_str(&format!("And {} more tasks.\n", tasks.len() - TASKS));
    }
    if let Some(branch) = branch {
        text.push_str(&format!("Branch: {}\n", line(branch)));
    }
    match answer.trim() {
        "" => text.push_str("It said nothing.\n"),
        answer => text.push_str(&format!(
            "Its last words:\n{}\n",
            neutral(&cut(answer, most, None))
        )),
    }
    text.push_str("</team-member>\n");
    text
}
