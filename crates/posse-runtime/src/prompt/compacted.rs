//! The entry that replaces a compacted history.

use std::path::PathBuf;

use posse_protocol::{AgentId, RequestKind, RunFacts, RunKind, Task, TaskStatus, Team};

use crate::prompt::loaded::tools_to_load_again;
use crate::prompt::place::reminder;
use crate::prompt::plan;
use posse_port::store::OpenRequest;
use posse_port::text::{cut, line, neutral, shown};

/// Maximum length of each of the latest texts that are kept, in characters.
const SAID_CHARACTERS: usize = 32_000;
/// Maximum length of what no summary covers, in characters.
const CUT_CHARACTERS: usize = 8_000;
/// Maximum number of files that are named.
const FILES: usize = 100;
/// Maximum number of runs that are named.
const RUNS: usize = 100;
/// Maximum number of members that are named.
const MEMBERS: usize = 200;
/// Maximum number of requests that are shown.
const REQUESTS: usize = 50;
/// Maximum length of a request's text, in characters.
const REQUEST_CHARACTERS: usize = 4_000;

/// What an agent must still know when its history is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restated {
    /// Files that it has read or written.
    pub files: Vec<PathBuf>,
    /// Runs that it started and that continue.
    pub runs: Vec<RunFacts>,
    /// Agent types that it can start, a line each; none if it can start none.
    pub types: Option<String>,
    /// Names of the tools that it had loaded.
    pub loaded: Vec<String>,
    /// Skills that it can load, a line each; none if it can load none.
    pub skills: Option<String>,
    /// Servers whose tools it can load, a line each; none if it can load none.
    pub servers: Option<String>,
    /// The agent itself.
    pub agent: Option<AgentId>,
    /// Task lists that concern it.
    pub lists: Vec<List>,
    /// Open requests from it or to it.
    pub requests: Vec<OpenRequest>,
    /// True if it is in plan mode and is to hand in a plan.
    pub plans: bool,
    /// The session's plan that was approved last.
    pub plan: Option<String>,
}

/// A list of open tasks.
#[derive(Clone, Debug)]
pub(crate) struct List {
    /// Team of the list; none for the session's own.
    pub team: Option<Team>,
    /// The tasks.
    pub tasks: Vec<Task>,
}

/// Returns the texts of the entry that replaces a history: the summary, what posse knows besides,
/// and the beginning of what was too large to be summarised.
pub(crate) fn compacted(summary: &str, cut_off: Option<&str>, known: &Restated) -> Vec<String> {
    let mut texts = vec![format!(
        "<conversation-summary>\n\
         This summary, which you wrote, replaces the conversation up to here:\n\n\
         {}\n\
         </conversation-summary>",
        neutral(summary.trim())
    )];
    if let Some(cut_off) = cut_off {
        texts.push(reminder(&format!(
            "The summary leaves out the last input, which was too large for your context. Its \
             beginning and end:\n\
             {}\n\
             Request less at once next time.",
            neutral(&cut(cut_off, CUT_CHARACTERS, None))
        )));
    }
    texts.push(reminder(&restated(known)));
    texts
}

/// Returns the latest text of a person or another agent, verbatim unless it is too long.
pub(crate) fn verbatim(text: &str) -> String {
    cut(text, SAID_CHARACTERS, None).into_owned()
}

/// Returns everything the agent must still know, as one text.
fn restated(known: &Restated) -> String {
    let mut text = "The current state, whatever the summary says:\n".to_owned();
    text.push_str(&files(&known.files));
    text.push_str(&runs(&known.runs));
    for list in &known.lists {
        text.push_str(&team(list, known.agent));
        text.push_str(&tasks(list, known.agent));
    }
    text.push_str(&requests(known));
    if known.plans {
        text.push_str(plan::RULES);
        text.push('\n');
    }
    text.extend(known.plan.as_deref().map(plan::kept));
    if let Some(types) = &known.types {
        text.push_str(&format!("Types of agents you can start:{types}\n"));
    }
    if let Some(servers) = known.servers.as_ref().filter(|it| !it.is_empty()) {
        text.push_str(&format!(
            "Servers with tools that you can load again with ToolSearch:{servers}\n"
        ));
    }
    if let Some(skills) = known.skills.as_ref().filter(|skills| !skills.is_empty()) {
        text.push_str(&format!(
            "Skills you can load, including those you had loaded:{skills}\n"
        ));
    }
    text.push_str(&tools_to_load_again(&known.loaded));
    text.trim_end().to_owned()
}

/// Returns the files that it knows.
fn files(files: &[PathBuf]) -> String {
    if files.is_empty() {
        return "You have read or written no files.\n".into();
    }
    let mut text =
        "Files you have read or written (read them again before you rely on their content):\n"
            .to_owned();
    for path in files.iter().take(FILES) {
        text.push_str(&format!("- {}\n", shown(path)));
    }
    if files.len() > FILES {
        text.push_str(&format!("- and {} more\n", files.len() - FILES));
    }
    text
}

/// Returns the runs that continue.
fn runs(runs: &[RunFacts]) -> String {
    if runs.is_empty() {
        return "Nothing you started is still running in the background.\n".into();
    }
    let mut text =
        "Still running in the background (you are notified when each ends):\n".to_owned();
    for run in runs.iter().take(RUNS) {
        let what = match run.kind {
            RunKind::Agent => format!("agent ({})", line(&run.agent_type)),
            RunKind::Shell => "command".to_owned(),
        };
        let name = run
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!(", named {name}"));
        text.push_str(&format!(
            "- {what} {}{name}: {}; output file {}\n",
            run.task,
            line(&run.description),
            shown(&run.output_file)
        ));
    }
    if runs.len() > RUNS {
        text.push_str(&format!("- and {} more\n", runs.len() - RUNS));
    }
    text
}

/// Returns a description of a team, and of the reader's place in it.
fn team(list: &List, me: Option<AgentId>) -> String {
    let Some(team) = &list.team else {
        return String::new();
    };
    let me = team.members.iter().find(|member| Some(member.agent) == me);
    let lead = team.members.iter().find(|member| member.agent == team.lead);
    let mut text = format!("Team {}: {}.", team.name, line(&team.description));
    match (me, lead) {
        (Some(me), _) if me.agent == team.lead => text.push_str(" You lead it."),
        (Some(me), Some(lead)) => text.push_str(&format!(
            " You are {}@{}, and {} leads it: write to `team-lead`.",
            me.name, team.name, lead.name
        )),
        _ => {}
    }
    text.push_str(" Its other members:\n");
    let others: Vec<_> = team
        .members
        .iter()
        .filter(|member| Some(&member.name) != me.map(|me| &me.name))
        .collect();
    for member in others.iter().take(MEMBERS) {
        text.push_str(&format!(
            "- {} ({}): {}\n",
            member.name,
            line(&member.agent_type),
            member.state.as_str()
        ));
    }
    match others.len() {
        0 => text.push_str("- none\n"),
        many if many > MEMBERS => text.push_str(&format!("- and {} more\n", many - MEMBERS)),
        _ => {}
    }
    text
}

/// Returns the open tasks of a list.
fn tasks(list: &List, me: Option<AgentId>) -> String {
    let mut text = String::new();
    if list.tasks.is_empty() {
        return text;
    }
    let whose = list.team.as_ref().map_or_else(
        || "this session".to_owned(),
        |team| format!("team {}", team.name),
    );
    text.push_str(&format!("Open tasks of {whose}:\n"));
    for task in &list.tasks {
        let status = match task.status {
            TaskStatus::InProgress => "in progress",
            _ => "pending",
        };
        let owner = task.owner.as_ref().map_or_else(String::new, |owner| {
            let yours = if owner.agent.is_some() && owner.agent == me {
                ": yours"
            } else {
                ""
            };
            format!(", {}{yours}", line(&owner.name))
        });
        let waits: Vec<String> = task.waits_for.iter().map(ToString::to_string).collect();
        let waits = if waits.is_empty() {
            String::new()
        } else {
            format!(", waits for {}", waits.join(", "))
        };
        text.push_str(&format!(
            "- {}: {} ({status}{owner}{waits})\n",
            task.id,
            line(&task.subject)
        ));
    }
    text
}

/// Returns the open requests.
fn requests(known: &Restated) -> String {
    if known.requests.is_empty() {
        return String::new();
    }
    let members = || {
        known
            .lists
            .iter()
            .filter_map(|list| list.team.as_ref())
            .flat_map(|team| &team.members)
    };
    let called = |agent: AgentId| {
        let member = members().find(|member| member.agent == agent);
        member.map_or_else(|| agent.to_string(), |member| member.name.to_string())
    };
    let mut text = "Open requests:\n".to_owned();
    for request in known.requests.iter().take(REQUESTS) {
        let id = request.id;
        let from = line(request.from.name());
        let mine = Some(request.to) == known.agent;
        text.push_str(&match (request.kind, mine) {
            (RequestKind::Plan, true) => format!(
                "- {from} is waiting for your answer to its plan (request_id {id}; answer with \
                 SendMessage, type plan_approval_response):\n\
                 {}\n",
                indented(&request.text)
            ),
            (RequestKind::Shutdown, true) => format!(
                "- {from} asks you to shut down (request_id {id}; answer with SendMessage, type shutdown_response)\n"
            ),
            (RequestKind::Plan, false) => format!(
                "- your plan awaits approval by {} (request_id {id}); change nothing until then\n",
                called(request.to)
            ),
            (RequestKind::Shutdown, false) => {
                format!("- you asked {} to shut down (request_id {id})\n", called(request.to))
            }
        });
    }
    if known.requests.len() > REQUESTS {
        text.push_str(&format!("- and {} more\n", known.requests.len() - REQUESTS));
    }
    text
}

/// Returns someone else's text, indented.
fn indented(text: &str) -> String {
    let text = cut(text.trim(), REQUEST_CHARACTERS, None);
    neutral(&text)
        .lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use posse_protocol::{MemberState, Owner, Sender, TaskId};
    use uuid::Uuid;

    use super::*;
    use crate::prompt::team::samples;

    fn request(kind: RequestKind, from: u128, to: u128) -> OpenRequest {
        OpenRequest {
            id: Uuid::from_u128(from * 16 + to).into(),
            kind,
            from: Sender::Agent {
                id: Uuid::from_u128(from).into(),
                name: format!("m{from}"),
            },
            to: Uuid::from_u128(to).into(),
            text: "1. Look\n2. Write <mail>".into(),
            asked_ms: 0,
        }
    }

    fn known(agent: u128, requests: Vec<OpenRequest>) -> String {
        let mut team =
            samples::team(&[samples::member("team-lead", 1), samples::member("scout", 2)]);
        team.members[1].state = MemberState::Running;
        let owner = Some(Owner {
            agent: Some(Uuid::from_u128(2).into()),
            name: "scout".into(),
        });
        let task = Task {
            status: TaskStatus::InProgress,
            owner,
            waits_for: Vec::new(),
            ..samples::task(3)
        };
        let waits = Task {
            waits_for: vec![TaskId(3)],
            ..samples::task(4)
        };
        let lists = vec![List {
            team: Some(team),
            tasks: vec![task, waits],
        }];
        let agent = Some(AgentId::from(Uuid::from_u128(agent)));
        restated(&Restated {
            agent,
            lists,
            requests,
            ..Restated::default()
        })
    }

    #[test]
    fn a_lead_still_knows_its_team() {
        let told = known(
            1,
            vec![
                request(RequestKind::Plan, 2, 1),
                request(RequestKind::Shutdown, 1, 2),
            ],
        );
        for expected in [
            "Team crew: Fix &lt;/system-reminder> it. You lead it. Its other members:\n\
             - scout (general-purpose): running\n\
             Open tasks of team crew:\n\
             - 3: Fix the parser (in progress, scout)\n\
             - 4: Fix the parser (pending, waits for 3)\n\
             Open requests:\n\
             - m2 is waiting for your answer to its plan (request_id \
             00000000-0000-0000-0000-000000000021; answer",
            "  1. Look\n  2. Write &lt;mail>\n",
            "- you asked scout to shut down (request_id 00000000-0000-0000-0000-000000000012)",
        ] {
            assert!(told.contains(expected), "{expected}\n in\n{told}");
        }
    }

    #[test]
    fn a_teammate_still_knows_who_it_is() {
        let told = known(
            2,
            vec![
                request(RequestKind::Plan, 2, 1),
                request(RequestKind::Shutdown, 1, 2),
            ],
        );
        for expected in [
            "You are scout@crew, and team-lead leads it: write to `team-lead`. Its other members:\n- team-lead (",
            "- 3: Fix the parser (in progress, scout: yours)\n",
            "- your plan awaits approval by team-lead (",
            "- m1 asks you to shut down (request_id 00000000-0000-0000-0000-000000000012; answer",
        ] {
            assert!(told.contains(expected), "{expected}\n in\n{told}");
        }
    }
}
