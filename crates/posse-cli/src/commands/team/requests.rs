//! `posse team requests`, `posse team approve` and `posse team reject`: requests for approval.

use std::process::ExitCode;

use posse_port::store::{Done, Op, OpenRequest, Page, Store};
use posse_protocol::{MailId, RequestKind, Sender, Team};
use serde_json::{Value, json};
use uuid::Uuid;

use super::signal::told;
use crate::error::Advised;
use crate::output::table::{Column, needed, spare, table};
use crate::output::time::{age, moment, now_ms};
use crate::output::{json_line, print, say_to_person, tame, width};
use crate::select::members::TeamArgs;
use crate::select::tasks::operate;
use crate::select::teams;

const COLUMNS: [Column; 6] = [
    needed("REQUEST"),
    needed("KIND"),
    needed("FROM"),
    spare("TO", 1),
    spare("AGE", 2).right(),
    needed("TEXT"),
];

/// List open requests of a team: plans and shutdowns.
#[derive(clap::Args)]
pub(super) struct ListRequests {
    #[command(flatten)]
    place: TeamArgs,
    /// Show the texts, such as plans
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON object per request
    #[arg(long)]
    json: bool,
}

/// Approve a plan: the member carries it out.
///
/// Only the member itself answers a shutdown request; `posse team stop MEMBER --force` does not
/// ask.
#[derive(clap::Args)]
pub(super) struct ApproveRequest {
    #[command(flatten)]
    answer: AnswerArgs,
}

/// Reject a plan, and say what to change.
#[derive(clap::Args)]
pub(super) struct RejectRequest {
    #[command(flatten)]
    answer: AnswerArgs,
}

#[derive(clap::Args)]
struct AnswerArgs {
    /// Request; a unique prefix of its ID is enough
    #[arg(value_name = "REQUEST")]
    id: String,
    /// Reason, or what to change
    text: Option<String>,
    #[command(flatten)]
    place: TeamArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl ListRequests {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let team = teams::meant(store, self.place.team.as_ref(), &self.place.session).await?;
        let open = open(store, &team).await?;
        if self.json {
            for request in &open {
                print(json_line(&object(&team, request)).as_bytes())?;
            }
        } else if open.is_empty() {
            say_to_person("nothing waits for an answer");
        } else if self.verbose {
            print(
                open.iter()
                    .map(|request| at_length(&team, request))
                    .collect::<String>()
                    .as_bytes(),
            )?;
        } else {
            print(rows(&team, &open, width()).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl ApproveRequest {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        self.answer.run(store, true).await
    }
}

impl RejectRequest {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        if self
            .answer
            .text
            .as_deref()
            .is_none_or(|text| text.trim().is_empty())
        {
            anyhow::bail!(Advised {
                what: "a rejection needs a reason".into(),
                advice: format!(
                    "posse team reject {} \"leave the lexer as it is\"",
                    tame(&self.answer.id)
                ),
            });
        }
        self.answer.run(store, false).await
    }
}

impl AnswerArgs {
    async fn run(self, store: &dyn Store, approve: bool) -> anyhow::Result<ExitCode> {
        let team = teams::meant(store, self.place.team.as_ref(), &self.place.session).await?;
        let open = open(store, &team).await?;
        let request = plan(&open, Some(&self.id))?;
        respond(
            store,
            &team,
            request,
            approve,
            self.text.unwrap_or_default(),
        )
        .await?;
        let (who, word) = (
            requester(request),
            if approve { "approved" } else { "rejected" },
        );
        let line = format!("{word}: the {} of {who}\n", request.kind.as_str());
        told(
            self.json,
            json!({"request_id": request.id, "approved": approve, "member": who}),
            &line,
        )
    }
}

/// Returns the open requests of a team's members.
pub(super) async fn open(store: &dyn Store, team: &Team) -> anyhow::Result<Vec<OpenRequest>> {
    let all = store.requests(team.realm, None, Page::all()).await?;
    let belongs = |request: &OpenRequest| {
        let is_of = |id| team.members.iter().any(|member| member.agent == id);
        is_of(request.to) || matches!(&request.from, Sender::Agent { id, .. } if is_of(*id))
    };
    Ok(all.into_iter().filter(belongs).collect())
}

/// Returns the only plan whose request begins with `id`, or the only one if no id is given.
pub(super) fn plan<'a>(
    open: &'a [OpenRequest],
    id: Option<&str>,
) -> Result<&'a OpenRequest, Advised> {
    let request = only(open, id)?;
    match request.kind {
        RequestKind::Plan => Ok(request),
        RequestKind::Shutdown => Err(Advised {
            what: "only the member itself answers a shutdown request".into(),
            advice: "`posse team stop MEMBER --force` does not ask".into(),
        }),
    }
}

/// Returns the only request whose id begins with `id`, or the only one if no id is given.
fn only<'a>(open: &'a [OpenRequest], id: Option<&str>) -> Result<&'a OpenRequest, Advised> {
    let begins = id.unwrap_or_default().trim().to_ascii_lowercase();
    let found: Vec<&OpenRequest> = open
        .iter()
        .filter(|request| request.id.to_string().starts_with(&begins))
        .collect();
    if let [one] = found[..] {
        return Ok(one);
    }
    let what = match (found.is_empty(), id) {
        (true, None) => "nothing waits for an answer".to_owned(),
        (true, Some(_)) => format!("no request {} is open", tame(&begins)),
        (false, None) => "several requests are open".to_owned(),
        (false, Some(_)) => format!("several request ids begin with `{}`", tame(&begins)),
    };
    let list = open
        .iter()
        .map(|it| format!("\n  {}  {} of {}", it.id, it.kind.as_str(), requester(it)));
    let advice = match open.is_empty() {
        true => "`posse team requests` shows open requests; a request is answered once".into(),
        false => format!("give more of the id:{}", list.collect::<String>()),
    };
    Err(Advised { what, advice })
}

/// Answers a request for the person.
pub(super) async fn respond(
    store: &dyn Store,
    team: &Team,
    request: &OpenRequest,
    approve: bool,
    text: String,
) -> anyhow::Result<()> {
    let id: MailId = Uuid::now_v7().into();
    let op = Op::Respond {
        id,
        request: request.id,
        kind: request.kind,
        approve,
        text,
    };
    match operate(store, team.realm, op).await? {
        Done::Responded(_) => Ok(()),
        _ => anyhow::bail!("the store did something else"),
    }
}

/// Returns a request, in a line.
pub(super) fn in_a_line(request: &OpenRequest) -> String {
    let what = match request.kind {
        RequestKind::Plan => "requests approval of its plan",
        RequestKind::Shutdown => "asks it to stop",
    };
    format!("{} {what} (request {})", requester(request), short(request))
}

/// Returns as much of its id as makes it unique.
fn short(request: &OpenRequest) -> String {
    let id = request.id.to_string();
    id.get(..18).unwrap_or(&id).to_owned()
}

/// Returns who asks.
fn requester(request: &OpenRequest) -> String {
    tame(request.from.name())
}

/// Returns what an agent is called in the team.
fn name(team: &Team, request: &OpenRequest) -> String {
    let member = team
        .members
        .iter()
        .find(|member| member.agent == request.to);
    member.map_or_else(|| request.to.to_string(), |member| member.name.to_string())
}

/// Requests as a table.
pub(super) fn rows(team: &Team, open: &[OpenRequest], columns: Option<usize>) -> String {
    let now = now_ms();
    let row = |request: &OpenRequest| {
        vec![
            short(request),
            request.kind.as_str().to_owned(),
            requester(request),
            name(team, request),
            age(now.saturating_sub(request.asked_ms)),
            tame(request.text.lines().next().unwrap_or_default()),
        ]
    };
    table(&COLUMNS, &open.iter().map(row).collect::<Vec<_>>(), columns)
}

/// Returns a request for programs.
pub(super) fn object(team: &Team, request: &OpenRequest) -> Value {
    json!({
        "request_id": request.id, "kind": request.kind.as_str(), "from": request.from.name(),
        "to": name(team, request), "text": request.text, "asked_at": moment(request.asked_ms),
    })
}

fn at_length(team: &Team, request: &OpenRequest) -> String {
    let head = format!(
        "{} {} → {}",
        request.kind.as_str(),
        requester(request),
        name(team, request)
    );
    let text = tame(request.text.trim_end()).replace('\n', "\n  ");
    format!("\x1b[1m{head}\x1b[0m · {}\n  {text}\n\n", request.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: u128) -> OpenRequest {
        OpenRequest {
            id: Uuid::from_u128(id).into(),
            kind: RequestKind::Plan,
            from: Sender::Agent {
                id: Uuid::from_u128(9).into(),
                name: "dev".into(),
            },
            to: Uuid::from_u128(1).into(),
            text: "first this".into(),
            asked_ms: 0,
        }
    }

    #[test]
    fn one_request_is_meant_or_the_answer_goes_nowhere() {
        let (one, other) = (request(1 << 120), request(2 << 120));
        let both = [one.clone(), other.clone()];
        assert_eq!(only(&both, Some("01")).unwrap(), &one);
        assert_eq!(only(&both[1..], None).unwrap(), &other);
        assert!(
            only(&both, None)
                .unwrap_err()
                .advice
                .contains("plan of dev")
        );
        assert!(only(&both, Some("0")).unwrap_err().what.contains("several"));
        assert!(
            only(&both, Some("ff"))
                .unwrap_err()
                .what
                .contains("no request ff")
        );
        assert!(
            only(&[], None)
                .unwrap_err()
                .advice
                .contains("posse team requests")
        );
    }
}
