//! `posse requests answer`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use posse_port::store::{
    AgentFilter, AgentRecord, Done, Op, OpenRequest, Page, QuestionRecord, Store,
};
use posse_protocol::{
    AcceptedRules, AgentId, Answer, Answerer, ChoiceAnswers, ChoiceQuestion, Choices, Elicitation,
    GivenAnswer, PermissionMode, Question, QuestionKind, RawJson, RealmId, RuleScope,
};
use posse_tui::question::choice::{self, NotChosen};
use serde_json::json;
use uuid::Uuid;

use super::meant::{self, Request};
use crate::config::kept_rules::NewRules;
use crate::config::search_paths::SearchPaths;
use crate::error::Advised;
use crate::headless::rule_keeper;
use crate::output::{json_line, print, tame};
use crate::present::question;
use crate::select::tasks::operate;

/// Answer a request: the first answer counts.
///
/// The agent continues with it, in whichever process it runs; one that nobody runs continues when
/// its session is resumed.
#[derive(clap::Args)]
pub(super) struct AnswerRequest {
    /// Request; a unique prefix of its ID is enough
    #[arg(value_name = "REQUEST")]
    id: String,
    /// Answer
    #[arg(value_enum, required_unless_present_any = ["always", "choose"])]
    answer: Option<Word>,
    /// With deny: what the agent is told; for a plan: what to change
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// With allow: run with this input instead of the agent's, as JSON
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Allow it, and do not ask about such calls again: in this session, or in later ones in its
    /// directory or everywhere, too
    #[arg(
        long,
        value_name = "SCOPE",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "session"
    )]
    always: Option<ScopeWord>,
    /// Answer a question with options: their numbers or labels (1 or 1,3), or your own words. Once for
    /// each question, in their order, or as HEADER=ANSWER
    #[arg(long, value_name = "ANSWER", conflicts_with = "always")]
    choose: Vec<String>,
    /// With --always: which of the suggestions that `posse requests show` numbers is accepted
    #[arg(long, value_name = "NUMBER", requires = "always", default_value_t = 1)]
    rule: usize,
    /// With allow, for a plan: permission mode to continue in; without it the mode before plan mode
    #[arg(long, value_name = "MODE")]
    mode: Option<PermissionMode>,
    /// With allow, for a plan: approve the plan in this file instead of the agent's
    #[arg(long, value_name = "FILE")]
    edit: Option<PathBuf>,
    /// With deny: stop the agent's run, too
    #[arg(long)]
    interrupt: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Word {
    Allow,
    Deny,
}

/// Where accepted rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScopeWord {
    Session,
    Directory,
    Everywhere,
}

impl From<ScopeWord> for RuleScope {
    fn from(word: ScopeWord) -> Self {
        match word {
            ScopeWord::Session => Self::Session,
            ScopeWord::Directory => Self::Directory,
            ScopeWord::Everywhere => Self::Everywhere,
        }
    }
}

impl AnswerRequest {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let (id, allow) = (self.id.clone(), self.word() == Word::Allow);
        if self.always.is_some() && !allow {
            return Err(advised(
                "--always is an allow, and not a deny",
                "posse requests answer ID --always",
            ));
        }
        if !self.choose.is_empty() && (!allow || self.input.is_some()) {
            return Err(advised(
                "--choose is an answer of its own, without deny and --input",
                "posse requests answer ID --choose 1",
            ));
        }
        let request = meant::meant(store, &id).await?;
        self.fits(&request)?;
        let (from, full) = (request.from(), request.id());
        let chooses = [QuestionKind::Choice, QuestionKind::Form]
            .iter()
            .any(|kind| request.kind() == kind.as_str());
        let (held, kept) = match request {
            Request::Question(record) => {
                let accepted = self.accepted(&record.question)?;
                let held = self.question(store, &record, accepted.clone()).await?;
                (held, keep(store, &record, accepted).await)
            }
            Request::Plan(realm, plan) => (self.plan(store, realm, &plan).await?, None),
        };
        let word = match allow {
            true if chooses => "answered",
            true => "allowed",
            false => "denied",
        };
        let line = match (self.json, &held) {
            (true, held) => json_line(&json!({
                "request_id": full, "answer": word, "from": from, "running": held.is_none(), "rules": kept,
            })),
            (false, None) => format!("{word}: {from} continues\n"),
            (false, Some(session)) => format!(
                "{word}: {from} is not running; it continues with: posse -p --resume {session}\n"
            ),
        };
        print(line.as_bytes())?;
        if let (Some(note), false) = (&kept, self.json) {
            print(format!("{}\n", tame(note)).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns what is answered.
    fn word(&self) -> Word {
        // Without a word there is `--always`, which clap has seen to.
        self.answer.unwrap_or(Word::Allow)
    }

    /// Returns the input that the answer brings: for a question with options, its answers.
    fn changed_input(&self, question: &Question) -> anyhow::Result<Option<RawJson>> {
        let given = self.input.as_deref().map(object).transpose()?;
        let id = question::short(question);
        match choice::of(question) {
            None if self.choose.is_empty() => Ok(given),
            None => Err(advised(
                "this question has no options to choose from",
                &format!("posse requests answer {id} allow"),
            )),
            Some(choices) => match given {
                Some(input) => {
                    let form = Elicitation::read(&question.input);
                    let form = form.filter(|_| question.kind == QuestionKind::Form);
                    let read = match form {
                        Some(form) => form.reply(Some(&input)).map(drop),
                        None => choices.answered(&input).map(drop),
                    };
                    read.map_err(|error| advised(&error.to_string(), &how(&choices, &id)))?;
                    Ok(Some(input))
                }
                None => {
                    // Which fields a form needs the asker knows, who asks again.
                    let all = question.kind != QuestionKind::Form;
                    let answers = answers(&choices, &self.choose, all);
                    let answers = answers
                        .map_err(|error| advised(&error.to_string(), &how(&choices, &id)))?;
                    Ok(Some(choices.with_answers(&answers)))
                }
            },
        }
    }

    /// Returns the rules of the question that are accepted.
    fn accepted(&self, question: &Question) -> anyhow::Result<Option<AcceptedRules>> {
        let Some(scope) = self.always else {
            return Ok(None);
        };
        let suggestions = &question.suggestions;
        let chosen = suggestions.get(self.rule.wrapping_sub(1)).ok_or_else(|| {
            let what = match suggestions.len() {
                0 => {
                    "no rule covers this call alone, so that it can only be allowed once".to_owned()
                }
                count => format!("there is no suggestion {}, only {count}", self.rule),
            };
            let id = question::short(question);
            let advice = match suggestions.len() {
                0 => format!("posse requests answer {id} allow"),
                _ => format!("`posse requests show {id}` shows what it suggests"),
            };
            advised(&what, &advice)
        })?;
        Ok(Some(AcceptedRules {
            rules: chosen.rules.clone(),
            scope: scope.into(),
        }))
    }

    /// Answers a question. Returns the session to resume if nobody runs the agent.
    async fn question(
        &self,
        store: &dyn Store,
        record: &QuestionRecord,
        always: Option<AcceptedRules>,
    ) -> anyhow::Result<Option<AgentId>> {
        let answer = match self.word() {
            Word::Allow if record.question.kind == QuestionKind::Plan => self.approval()?,
            Word::Allow => Answer::Allow {
                input: self.changed_input(&record.question)?,
                always,
            },
            Word::Deny => Answer::Deny {
                message: self
                    .message
                    .clone()
                    .unwrap_or_else(|| "the user said no".into()),
                interrupt: self.interrupt,
            },
        };
        let by = Answerer::Person;
        let op = Op::Answer {
            question: record.question.id,
            answer: Box::new(GivenAnswer { answer, by }),
        };
        let Done::Answered { agent, held } = operate(store, record.realm, op).await? else {
            anyhow::bail!("the store did something else");
        };
        if held {
            return Ok(None);
        }
        let session = session_of(store, record.realm, agent).await?;
        Ok(Some(session.map_or(agent, |session| session.agent)))
    }

    /// Refuses options that have no meaning for a request.
    fn fits(&self, request: &Request) -> anyhow::Result<()> {
        let is_plan = match request {
            Request::Question(record) => record.question.kind == QuestionKind::Plan,
            Request::Plan(..) => false,
        };
        let approves = is_plan && self.word() == Word::Allow;
        if approves || (self.mode.is_none() && self.edit.is_none()) {
            return Ok(());
        }
        let what = "--mode and --edit are for allowing a plan that is a question".into();
        let advice = match request {
            Request::Plan(..) => {
                "a member's plan is approved as it is; say what to change with: deny --message TEXT"
            }
            Request::Question(_) => "leave them out",
        };
        let advice = advice.into();
        Err(Advised { what, advice }.into())
    }

    /// Returns the approval of a plan.
    fn approval(&self) -> anyhow::Result<Answer> {
        if self.mode == Some(PermissionMode::BypassPermissions) {
            let what = "an answer cannot choose bypassPermissions".into();
            let advice =
                "leave out --mode: a session that was started with it continues with it".into();
            return Err(Advised { what, advice }.into());
        }
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).map_err(|error| Advised {
                what: format!("cannot read the plan in {}: {error}", path.display()),
                advice: "write the plan to a file, and name it with --edit".into(),
            })
        };
        let mode = self.mode;
        let plan = self.edit.as_ref().map(read).transpose()?;
        Ok(Answer::Approve { plan, mode })
    }

    /// Answers a plan.
    async fn plan(
        &self,
        store: &dyn Store,
        realm: RealmId,
        plan: &OpenRequest,
    ) -> anyhow::Result<Option<AgentId>> {
        if self.always.is_some() || !self.choose.is_empty() {
            return Err(advised(
                "--always and --choose are for questions, and this is a plan",
                "posse requests answer ID allow",
            ));
        }
        let op = Op::Respond {
            id: Uuid::now_v7().into(),
            request: plan.id,
            kind: plan.kind,
            approve: self.word() == Word::Allow,
            text: self.message.clone().unwrap_or_default(),
        };
        let Done::Responded(receipt) = operate(store, realm, op).await? else {
            anyhow::bail!("the store did something else");
        };
        Ok((!receipt.held).then(|| realm.uuid().into()))
    }
}

/// Returns the command that answers these questions.
fn how(choices: &Choices, id: &str) -> String {
    let each = choices.questions.iter().map(|_| " --choose 1");
    let each: String = each.collect();
    format!("posse requests answer {id}{each}")
}

/// Returns the answers that a person has chosen: named by their headers, and the others in order. If
/// `all`, no question may be left out.
fn answers(choices: &Choices, given: &[String], all: bool) -> anyhow::Result<ChoiceAnswers> {
    let mut answers = ChoiceAnswers::default();
    for words in given {
        let named = words.split_once('=').and_then(|(header, words)| {
            let mut asked = choices.questions.iter();
            let asked = asked.find(|asked| asked.header.eq_ignore_ascii_case(header.trim()));
            asked.map(|asked| (asked, words))
        });
        let (asked, words) = match named {
            Some(named) => named,
            None => {
                let is_open =
                    |asked: &&ChoiceQuestion| !answers.answers.contains_key(&asked.question);
                let next = choices.questions.iter().find(is_open);
                (
                    next.context("there are more answers than questions")?,
                    words.as_str(),
                )
            }
        };
        let wrong = |why: NotChosen| anyhow::anyhow!("{}: {why}", asked.header);
        let chosen = choice::chosen(asked, words).map_err(wrong)?;
        answers.answers.insert(asked.question.clone(), chosen);
    }
    let mut questions = choices.questions.iter();
    match questions.find(|asked| !answers.answers.contains_key(&asked.question)) {
        Some(asked) if all || answers.answers.is_empty() => Err(anyhow::anyhow!(
            "{} is not answered: {}",
            asked.header,
            asked.question
        )),
        _ => Ok(answers),
    }
}

/// Returns the main agent of an agent's session.
async fn session_of(
    store: &dyn Store,
    realm: RealmId,
    agent: AgentId,
) -> anyhow::Result<Option<AgentRecord>> {
    let found = async |id: AgentId| {
        let filter = AgentFilter {
            id: Some(id),
            ..AgentFilter::default()
        };
        let found = store.agents(filter, Page::first(1)).await?;
        anyhow::Ok(found.into_iter().next())
    };
    match found(agent).await? {
        Some(record) if record.origin.is_none() => Ok(Some(record)),
        _ => found(realm.uuid().into()).await,
    }
}

/// Keeps rules that hold in later sessions, and returns what is said about it. In the session itself
/// they hold once its process hears of the answer.
async fn keep(
    store: &dyn Store,
    record: &QuestionRecord,
    accepted: Option<AcceptedRules>,
) -> Option<String> {
    let accepted = accepted?;
    let rules = accepted.rules.join(", ");
    let Some(new) = NewRules::of_answer(&accepted) else {
        return Some(format!("allow: {rules} holds in this session"));
    };
    let session = session_of(store, record.realm, record.agent).await;
    let Some(session) = session.ok().flatten() else {
        return Some(format!(
            "allow: {rules} holds in this session only: its directory is not known"
        ));
    };
    Some(rule_keeper::kept(&SearchPaths::at(&session.cwd), &new))
}

fn advised(what: &str, advice: &str) -> anyhow::Error {
    let (what, advice) = (what.to_owned(), advice.to_owned());
    Advised { what, advice }.into()
}

/// Returns an input that a person gives.
fn object(text: &str) -> anyhow::Result<RawJson> {
    let parsed = RawJson::parse(text).ok().filter(|json| {
        let value: Result<serde_json::Value, _> = serde_json::from_str(json.get());
        value.is_ok_and(|value| value.is_object())
    });
    parsed.ok_or_else(|| {
        advised(
            "--input must be a JSON object",
            r#"posse requests answer ID allow --input '{"command":"ls"}'"#,
        )
    })
}
