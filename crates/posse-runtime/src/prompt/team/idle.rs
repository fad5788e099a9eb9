//! That teammates have nothing to do: of any number of them in one block.

use posse_protocol::{IdleReport, Mail, TaskReport};

use posse_port::text::{attribute, cut, line, neutral, time};

/// How much of all last words is told together, and of each at most and at least.
const ANSWERS_TOGETHER: usize = 40_000;
const ANSWER_MOST: usize = 4_000;
const ANSWER_LEAST: usize = 400;
/// So many of a member's tasks are named.
const TASKS: usize = 20;

/// A message that says so.
pub(crate) struct Idle<'a> {
    pub(crate) mail: &'a Mail,
    pub(crate) report: IdleReport,
}

impl<'a> Idle<'a> {
    /// What a message reports, if it can be read.
    pub(crate) fn read(mail: &'a Mail) -> Option<Self> {
        serde_json::from_str(&mail.body)
            .ok()
            .map(|report| Self { mail, report })
    }
}

/// The block.
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
