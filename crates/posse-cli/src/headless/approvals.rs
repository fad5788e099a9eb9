//! Requests for approval to the program that controls the session.

use std::collections::VecDeque;

use posse_protocol::{
    AgentId, Answer, Command, Elicitation, Question, QuestionId, QuestionKind, RawJson,
};
use serde_json::{Value, json};

use super::input::PeerError;
use super::permission_updates;
use super::render::shape;

/// Number of withdrawn requests that are remembered.
const REMEMBERED: usize = 64;

/// The open requests.
#[derive(Default)]
pub(crate) struct PendingApprovals {
    open: Vec<PendingApproval>,
    /// Ids of recently withdrawn requests, whose answers may be under way.
    withdrawn: VecDeque<String>,
}

/// An answer to a request that was never made, or is already answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownApproval;

/// A question that nobody has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenApproval {
    pub(crate) question: QuestionId,
    /// The agent that asked.
    pub(crate) agent: AgentId,
}

/// An open request.
struct PendingApproval {
    asked: OpenApproval,
    kind: QuestionKind,
    input: Value,
}

impl PendingApprovals {
    /// Returns the line that asks for approval.
    pub(crate) fn ask(&mut self, agent: AgentId, question: &Question) -> Value {
        let (id, input) = (question.id, shape::value(&question.input));
        let elicited = match question.kind {
            QuestionKind::Form => Elicitation::read(&question.input),
            _ => None,
        };
        let mut request = match elicited {
            Some(asked) => {
                let mut request = Value::Object(asked.to_programs());
                request["subtype"] = json!("elicitation");
                request
            }
            None => json!({
                "subtype": "can_use_tool", "tool_name": question.tool, "input": input,
                "tool_use_id": question.call, "decision_reason": question.why,
                "permission_suggestions": permission_updates::suggested(&question.suggestions),
            }),
        };
        if let Some(name) = &question.from {
            request["agent_id"] = json!(agent);
            request["agent_name"] = json!(name);
        }
        let line = json!({"type": "control_request", "request_id": id, "request": request});
        let asked = OpenApproval {
            question: id,
            agent,
        };
        let kind = question.kind;
        self.open.push(PendingApproval { asked, kind, input });
        line
    }

    /// Returns the line that withdraws a request; `None` if it was already answered.
    pub(crate) fn withdraw(&mut self, question: QuestionId) -> Option<Value> {
        let at = self
            .open
            .iter()
            .position(|open| open.asked.question == question)?;
        let id = self.open.remove(at).asked.question.to_string();
        self.withdrawn.truncate(REMEMBERED - 1);
        self.withdrawn.push_front(id.clone());
        Some(json!({"type": "control_cancel_request", "request_id": id}))
    }

    /// Returns the command for the agent. Everything but a clear yes is a no. An answer to a
    /// request that was just withdrawn has no effect.
    pub(crate) fn answer(
        &mut self,
        id: &str,
        response: Result<Value, PeerError>,
    ) -> Result<Option<Command>, UnknownApproval> {
        let asked = |open: &PendingApproval| open.asked.question.to_string() == id;
        let Some(at) = self.open.iter().position(asked) else {
            let at = self
                .withdrawn
                .iter()
                .position(|withdrawn| withdrawn == id)
                .ok_or(UnknownApproval)?;
            self.withdrawn.remove(at);
            return Ok(None);
        };
        let open = self.open.remove(at);
        let answer = match response {
            Ok(response) => read(&response, &open),
            Err(error) => deny(format!("the question could not be answered: {error}")),
        };
        Ok(Some(Command::Answer {
            agent: open.asked.agent,
            question: open.asked.question,
            answer,
        }))
    }

    /// Returns true if a request waits for its answer.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes all open requests, because nobody is there to answer them.
    pub(crate) fn give_up(&mut self) -> Vec<OpenApproval> {
        let open = std::mem::take(&mut self.open);
        open.into_iter().map(|open| open.asked).collect()
    }
}

/// Returns the denial for a request that nobody can answer.
pub(crate) fn unanswered(open: OpenApproval) -> Command {
    Command::Answer {
        agent: open.agent,
        question: open.question,
        answer: deny("no one is available to answer".into()),
    }
}

fn deny(message: String) -> Answer {
    Answer::Deny {
        message,
        interrupt: false,
    }
}

fn read(response: &Value, open: &PendingApproval) -> Answer {
    if open.kind == QuestionKind::Form && response.get("action").is_some() {
        return Answer::Allow {
            input: Some(RawJson::from(response)),
            always: None,
        };
    }
    match response["behavior"].as_str() {
        Some("allow") => {
            // Programs return the input even if they did not change it; then the model's own
            // bytes are kept.
            let changed = response
                .get("updatedInput")
                .filter(|input| !input.is_null() && **input != open.input);
            if open.kind == QuestionKind::Plan {
                let plan = changed.and_then(|input| input["plan"].as_str());
                return Answer::Approve {
                    plan: plan.map(str::to_owned),
                    mode: None,
                };
            }
            Answer::Allow {
                input: changed.map(RawJson::from),
                // A program sends rules as `updatedPermissions`.
                always: None,
            }
        }
        Some("deny") => Answer::Deny {
            message: response["message"].as_str().unwrap_or("denied").to_owned(),
            interrupt: response["interrupt"].as_bool().unwrap_or(false),
        },
        _ => deny("the answer was neither allow nor deny".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headless::fixtures::{question, question_id, run, session};

    fn asked(questions: &mut PendingApprovals) -> String {
        let line = questions.ask(session(), &question("t1", None));
        assert_eq!(line["request"]["subtype"], "can_use_tool");
        assert_eq!(line["request"]["input"], json!({"command": "ls"}));
        line["request_id"].as_str().unwrap().to_owned()
    }

    fn check(response: Result<Value, PeerError>, answer: Answer) {
        let mut questions = PendingApprovals::default();
        let id = asked(&mut questions);
        assert_eq!(
            questions.answer("other", Ok(json!({"behavior": "allow"}))),
            Err(UnknownApproval)
        );
        assert_eq!(
            questions.answer(&id, response.clone()),
            Ok(Some(Command::Answer {
                agent: session(),
                question: question_id("t1", None),
                answer
            }))
        );
        assert_eq!(
            questions.answer(&id, response),
            Err(UnknownApproval),
            "once is enough"
        );
        assert_eq!(
            questions.withdraw(question_id("t1", None)),
            None,
            "it is not open any more"
        );
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let no = |message: &str| Answer::Deny {
            message: message.into(),
            interrupt: false,
        };
        check(Ok(json!({"behavior": "allow"})), Answer::allow());
        let same = json!({"behavior": "allow", "updatedInput": {"command": "ls"}});
        check(Ok(same), Answer::allow());
        let other = json!({"behavior": "allow", "updatedInput": {"command": "ls -l"}});
        check(
            Ok(other),
            Answer::Allow {
                input: Some(RawJson::parse(r#"{"command":"ls -l"}"#).unwrap()),
                always: None,
            },
        );
        let stop = json!({"behavior": "deny", "message": "stop it", "interrupt": true});
        check(
            Ok(stop),
            Answer::Deny {
                message: "stop it".into(),
                interrupt: true,
            },
        );
        check(Ok(json!({})), no("the answer was neither allow nor deny"));
        check(
            Err(PeerError("gone".into())),
            no("the question could not be answered: gone"),
        );
    }

    // proves PE-05 (part: its name)
    #[test]
    fn a_childs_question_has_its_name_and_its_own_answer() {
        let mut questions = PendingApprovals::default();
        let (child, same) = (AgentId::from(run(1).task), "t1");
        let main = questions.ask(session(), &question(same, None));
        let line = questions.ask(child, &question(same, Some("scout")));
        let request = &line["request"];
        assert_eq!(
            (&request["agent_id"], &request["agent_name"]),
            (&json!(child), &json!("scout"))
        );
        assert_eq!(main["request"].get("agent_id"), None);
        let id = |line: &Value| line["request_id"].as_str().unwrap().to_owned();
        let allow = Command::Answer {
            agent: child,
            question: question_id(same, Some("scout")),
            answer: Answer::allow(),
        };
        assert_eq!(
            questions.answer(&id(&line), Ok(json!({"behavior": "allow"}))),
            Ok(Some(allow))
        );
        let answered = question_id(same, Some("scout"));
        assert_eq!(questions.withdraw(answered), None, "it is answered");
        let left = OpenApproval {
            question: question_id(same, None),
            agent: session(),
        };
        assert_eq!(questions.give_up(), [left]);
    }

    #[test]
    fn a_question_that_nobody_can_answer_is_a_no() {
        let mut questions = PendingApprovals::default();
        asked(&mut questions);
        let left = OpenApproval {
            question: question_id("t1", None),
            agent: session(),
        };
        assert_eq!(questions.give_up(), [left]);
        let id = asked(&mut questions);
        assert_eq!(
            questions.withdraw(question_id("t1", None)),
            Some(json!({"type": "control_cancel_request", "request_id": id}))
        );
        assert!(questions.give_up().is_empty());
        assert_eq!(
            questions.answer(&id, Err(PeerError("late".into()))),
            Ok(None),
            "it was under way"
        );
    }
}
