//! Reads mail, and sends it for the person.

use posse_port::store::{Address, Done, MailFilter, Op, Page, Receipt, Refusal, Store};
use posse_protocol::{Mail, MailKind, Name};

use super::recipients::{ALL, MailRecipient, Recipients};
use super::tasks::operate;
use crate::error::Advised;
use crate::output::transcript::shortened;

/// Maximum length of a summary that is made from the text.
const SUMMARY: usize = 80;

/// Returns the newest `most` messages to recipients with their names, oldest first, and true if there
/// are more. With `waiting` only unread ones.
pub(crate) async fn newest(
    store: &dyn Store,
    circle: &Recipients,
    recipients: &[MailRecipient],
    (waiting, most): (bool, usize),
) -> anyhow::Result<(Vec<(String, Mail)>, bool)> {
    let mut found: Vec<(String, Mail)> = Vec::new();
    for recipient in recipients {
        // One more than is asked for tells whether there are more.
        let page = Page::last(most.saturating_add(1));
        let filter = MailFilter { waiting };
        let newest = store.mail(circle.realm, recipient.agent, filter, page);
        let named = newest.await?.into_iter();
        found.extend(named.map(|mail| (recipient.name.clone(), mail)));
    }
    // A stable sort: messages of one inbox with the same time keep their order.
    found.sort_by_key(|(_, mail)| mail.sent_ms);
    let left_out = found.len() > most;
    found.drain(..found.len().saturating_sub(most));
    Ok((found, left_out))
}

/// A message that is not sent yet.
pub(crate) struct NewMail {
    pub(crate) body: String,
    /// Its summary; its first line, if there is none.
    pub(crate) summary: Option<String>,
}

/// Sends mail from the person to those whom `to` means.
pub(crate) async fn send(
    store: &dyn Store,
    circle: &Recipients,
    to: &str,
    mail: NewMail,
) -> anyhow::Result<Vec<Receipt>> {
    let to = match (&circle.meant(to)?[..], &circle.team) {
        (_, Some(team)) if to == ALL => Address::Others { team: team.clone() },
        ([found], team) => match (team, found.name.parse::<Name>()) {
            (Some(team), Ok(name)) => Address::Member {
                team: team.clone(),
                name,
            },
            _ => Address::Agent(found.agent),
        },
        _ => anyhow::bail!("there is no recipient"),
    };
    let NewMail { body, summary } = mail;
    let op = Op::Send {
        id: uuid::Uuid::now_v7().into(),
        to,
        kind: MailKind::Text,
        summary: summary.unwrap_or_else(|| first_line(&body)),
        body,
    };
    match operate(store, circle.realm, op).await.map_err(explained)? {
        Done::Sent(receipts) => Ok(receipts),
        _ => anyhow::bail!("the store did something else"),
    }
}

fn first_line(text: &str) -> String {
    shortened(
        text.lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default(),
        SUMMARY,
    )
}

/// Replaces the error for a text that is too long by one that counts the summary, too.
fn explained(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(Refusal::TooLong { bytes, most }) => anyhow::Error::new(Advised {
            what: format!("text and summary have {bytes} bytes together; the limit is {most}"),
            advice: "shorten it, or put it into a file and name the file".into(),
        }),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_the_first_line() {
        assert_eq!(first_line("\n  look here\nand there"), "look here");
        assert_eq!(first_line(&"x".repeat(200)).chars().count(), SUMMARY);
    }
}
