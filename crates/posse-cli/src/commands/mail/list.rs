//! `posse mail list`.

use std::collections::HashMap;
use std::process::ExitCode;

use posse_port::store::{Page, Store};
use posse_protocol::{AgentId, Mail, RealmId, Sender};

use crate::output::paint::painted;
use crate::output::table::{Column, needed, spare, table};
use crate::output::time::{age, minute, now_ms};
use crate::output::{json_line, print, say, say_to_person, tame, width};
use crate::present::agents::shown_name;
use crate::present::mail::{body, object, state};
use crate::select::mail::newest;
use crate::select::recipients::RecipientArgs;
use crate::select::recipients::{Recipients, address};

/// Number of messages shown to people by default.
const SHOWN: usize = 20;

/// Columns of the table.
const COLUMNS: [Column; 6] = [
    needed("TO"),
    spare("NO", 3).right(),
    needed("FROM"),
    spare("AGE", 2).right(),
    spare("STATE", 1),
    needed("SUMMARY"),
];

/// List mail, newest last: a team's, or that of a session's agents.
///
/// Includes the mail of members that have left. Mail waits until its agent has read it. Listing
/// changes nothing. Each message has the colour of its sender.
#[derive(clap::Args)]
pub(super) struct ListMail {
    /// List only mail to this recipient: a name, name@team, a prefix of an agent's ID, or a path
    /// like /main
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
    /// List only unread mail
    #[arg(long)]
    waiting: bool,
    /// Maximum number to list, the newest [default: 20; with --json all]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
    /// Show the texts
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON object per message, with its text
    #[arg(long)]
    json: bool,
}

impl ListMail {
    pub(super) async fn run(
        self,
        store: &dyn Store,
        mut place: RecipientArgs,
    ) -> anyhow::Result<ExitCode> {
        let (to, team) = self.to.as_deref().map(address).transpose()?.unzip();
        place.team = team.flatten().or(place.team);
        let circle = Recipients::of(store, &place).await?;
        let circle = circle.with_former(store).await?;
        let meant = match &to {
            Some(name) => circle.meant(name)?,
            None => circle.all.clone(),
        };
        let most = self
            .limit
            .unwrap_or(if self.json { usize::MAX } else { SHOWN });
        let (found, left_out) = newest(store, &circle, &meant, (self.waiting, most)).await?;
        if self.json {
            for (name, mail) in &found {
                print(json_line(&object(name, mail)).as_bytes())?;
            }
        } else if found.is_empty() {
            say_to_person(if self.waiting {
                "no mail waits"
            } else {
                "there is no mail"
            });
        } else if self.verbose {
            let colors = colors(store, circle.realm).await?;
            print(
                found
                    .iter()
                    .map(|mail| at_length(mail, &colors))
                    .collect::<String>()
                    .as_bytes(),
            )?;
        } else {
            let colors = colors(store, circle.realm).await?;
            print(readable(&found, &colors, now_ms(), width()).as_bytes())?;
        }
        if left_out && !self.json {
            say(&format!(
                "there is more; see it with -n {}",
                most.max(SHOWN).saturating_mul(5)
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Colours of team members.
type Colors = HashMap<AgentId, String>;

/// Reads the colours of all members in a realm.
async fn colors(store: &dyn Store, realm: RealmId) -> anyhow::Result<Colors> {
    let members = store
        .teams(Some(realm), Page::all())
        .await?
        .into_iter()
        .flat_map(|team| team.members);
    Ok(members.map(|member| (member.agent, member.color)).collect())
}

/// Returns the colour of the sender; empty if it has none.
fn color<'a>(mail: &Mail, colors: &'a Colors) -> &'a str {
    match &mail.from {
        Sender::Agent { id, .. } => colors.get(id).map(String::as_str).unwrap_or_default(),
        _ => "",
    }
}

/// Returns a message with its text, indented so that no line can be mistaken for the head of the
/// next message.
fn at_length((to, mail): &(String, Mail), colors: &Colors) -> String {
    let (from, to) = (shown_name(mail.from.name()), shown_name(to));
    let head = format!("{} → {} {}", tame(from), tame(to), mail.number);
    let lines = body(mail);
    let lines = lines
        .trim_end()
        .split('\n')
        .map(|line| format!("  {}\n", painted(line, color(mail, colors))));
    let head = painted(&head, color(mail, colors));
    let text: String = lines.collect();
    format!(
        "\x1b[1m{head}\x1b[0m · {} · {}\n{text}\n",
        minute(mail.sent_ms),
        state(mail)
    )
}

/// Returns a line per message, in the colour of its sender.
fn readable(found: &[(String, Mail)], colors: &Colors, now: i64, columns: Option<usize>) -> String {
    let row = |(to, mail): &(String, Mail)| {
        vec![
            tame(shown_name(to)),
            mail.number.to_string(),
            tame(shown_name(mail.from.name())),
            age(now.saturating_sub(mail.sent_ms)),
            state(mail).to_owned(),
            tame(mail.summary.lines().next().unwrap_or_default()),
        ]
    };
    let table = table(
        &COLUMNS,
        &found.iter().map(row).collect::<Vec<_>>(),
        columns,
    );
    let of_rows = found.iter().map(|(_, mail)| color(mail, colors));
    let lines = table.lines().zip([""].into_iter().chain(of_rows));
    lines
        .map(|(line, color)| format!("{}\n", painted(line, color)))
        .collect()
}
