//! Asks a person one question: what is shown, what may be typed, and the answer that comes of it.
//! Nothing is answered by an empty line.

use posse_protocol::{
    AcceptedRules, AgentId, Answer, ChoiceAnswers, Choices, PermissionMode, Question, QuestionId,
    QuestionKind, RuleScope,
};

use super::{choice, suggestions};
use crate::text::tame;

/// What the model is told if a person gives no reason.
const NO: &str = "the user said no";
/// What the model is told if a person answers none of its questions.
const NO_ANSWER: &str = "the user does not want to answer";
/// What a person types who does not answer a question.
const SKIP: &str = "-";

/// A question that a person is asked.
pub struct QuestionDialog {
    /// Who asks.
    pub agent: AgentId,
    question: Question,
    stage: Stage,
}

/// What the person is asked next.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// Whether the call may run.
    Permission,
    /// Which of the suggested rules holds from now on.
    Rule,
    /// Where the rules hold.
    Scope(Vec<String>),
    /// Whether the plan is carried out, and how.
    Plan,
    /// Why not.
    Reason,
    /// Which options are chosen: the number of the question that is asked, and the answers so far.
    Choice(Choices, usize, ChoiceAnswers),
}

/// How a person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typing {
    /// With one key, which is not shown.
    Key,
    /// With a line.
    Line,
}

/// What comes of something typed.
#[derive(Debug, PartialEq, Eq)]
pub enum DialogStep {
    /// It is not answered yet; this is shown next.
    Ask(String),
    /// It is answered.
    Answered(Answer),
}

impl QuestionDialog {
    /// Asks a question.
    pub fn new(agent: AgentId, question: Question) -> Self {
        let stage = match choice::of(&question) {
            Some(choices) => Stage::Choice(choices, 0, ChoiceAnswers::default()),
            None => first_stage(&question),
        };
        Self {
            agent,
            question,
            stage,
        }
    }

    /// Returns the question's ID.
    pub fn id(&self) -> QuestionId {
        self.question.id
    }

    /// Returns how it is answered now, by a person whose keys are read.
    pub fn typing(&self) -> Typing {
        match &self.stage {
            Stage::Permission | Stage::Rule | Stage::Scope(_) | Stage::Plan => Typing::Key,
            Stage::Reason | Stage::Choice(..) => Typing::Line,
        }
    }

    /// Returns the name of the agent that asks, if it is not the main agent.
    pub fn from(&self) -> Option<&str> {
        self.question.from.as_deref()
    }

    /// Returns the question.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// Returns true if options are chosen from.
    pub fn is_choice(&self) -> bool {
        matches!(self.stage, Stage::Choice(..))
    }

    /// Asks from the beginning. Options that were chosen stay chosen.
    pub fn restart(&mut self) {
        if !self.is_choice() {
            self.stage = first_stage(&self.question);
        }
    }

    /// Returns what may be typed now.
    pub fn prompt(&self) -> String {
        match &self.stage {
            Stage::Permission if self.question.suggestions.is_empty() => {
                "  y allow once · n deny · r deny with a reason".into()
            }
            Stage::Permission => "  y allow once · a always · n deny · r deny with a reason".into(),
            Stage::Plan => {
                "  y approve · e approve, and edit without asking · n no · r send back with words"
                    .into()
            }
            Stage::Reason => "  what shall it do instead? · b back".into(),
            Stage::Rule => format!(
                "  always allow:\n{}  number · b back",
                suggestions(&self.question)
            ),
            Stage::Choice(choices, number, _) => {
                let Some(asked) = choices.questions.get(*number) else {
                    return String::new();
                };
                let wanted = match asked.multi_select {
                    _ if asked.options.is_empty() => "your words",
                    true => "numbers (1,3), or your own words",
                    false => "number, or your own words",
                };
                let lines = choice::lines(asked);
                format!(
                    "  │ {}\n  {wanted} · {SKIP} no answer",
                    lines.trim_end().replace('\n', "\n  │ ")
                )
            }
            Stage::Scope(rules) => format!(
                "  always allow {}:\n  s in this session · d in this directory, later too · e everywhere, later \
                 too · b back",
                tame(&rules.join(", "))
            ),
        }
    }

    /// Returns what may be typed now in few words, one for each key: for screens that have no room
    /// for all of [`prompt`](Self::prompt).
    pub fn short_prompt(&self) -> Vec<String> {
        let words: &[&str] = match &self.stage {
            Stage::Permission if self.question.suggestions.is_empty() => {
                &["y yes", "n no", "r reason"]
            }
            Stage::Permission => &["y yes", "a always", "n no", "r reason"],
            Stage::Plan => &["y yes", "e yes, edit", "n no", "r reason"],
            Stage::Reason => &["what instead? b back"],
            Stage::Rule => &["b back"],
            Stage::Choice(..) => &["number, words or -"],
            Stage::Scope(_) => &["s session", "d here", "e all", "b back"],
        };
        let numbers = match &self.stage {
            Stage::Rule => Some(format!("1 to {}", self.question.suggestions.len())),
            _ => None,
        };
        let words = words.iter().map(|word| (*word).to_owned());
        numbers.into_iter().chain(words).collect()
    }

    /// Handles something typed.
    pub fn typed(&mut self, words: &str) -> DialogStep {
        let words = words.trim();
        if let Stage::Choice(..) = &self.stage {
            return self.chosen(words);
        }
        let (word, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        match (&self.stage, word.to_ascii_lowercase().as_str()) {
            (Stage::Permission, "y" | "yes") if rest.is_empty() => {
                return DialogStep::Answered(Answer::allow());
            }
            (Stage::Plan, "y" | "yes") if rest.is_empty() => return approved(None),
            (Stage::Plan, "e" | "edit") if rest.is_empty() => {
                return approved(Some(PermissionMode::AcceptEdits));
            }
            (Stage::Permission | Stage::Plan, "n" | "no") => match rest.trim() {
                "" => return denied(NO),
                reason => return denied(reason),
            },
            (Stage::Permission | Stage::Plan, "r") if rest.is_empty() => {
                self.stage = Stage::Reason;
            }
            (Stage::Reason, "b") if rest.is_empty() => self.stage = first_stage(&self.question),
            (Stage::Reason, "") => {}
            (Stage::Reason, _) => return denied(words),
            (Stage::Permission, "a" | "always") if rest.is_empty() => self.choose_rule(),
            (Stage::Rule, number) => {
                let chosen = number.parse().ok().and_then(|number: usize| {
                    let suggestions = &self.question.suggestions;
                    suggestions.get(number.checked_sub(1)?)
                });
                match chosen {
                    Some(suggestion) => self.stage = Stage::Scope(suggestion.rules.clone()),
                    None if number == "b" => self.stage = Stage::Permission,
                    None => {}
                }
            }
            (Stage::Scope(_), "b") => self.stage = Stage::Permission,
            (Stage::Scope(rules), word) => {
                let scope = match word {
                    "s" | "session" => Some(RuleScope::Session),
                    "d" | "directory" => Some(RuleScope::Directory),
                    "e" | "everywhere" => Some(RuleScope::Everywhere),
                    _ => None,
                };
                if let Some(scope) = scope {
                    let rules = rules.clone();
                    return DialogStep::Answered(Answer::Allow {
                        input: None,
                        always: Some(AcceptedRules { rules, scope }),
                    });
                }
            }
            (Stage::Permission | Stage::Plan | Stage::Choice(..), _) => {}
        }
        DialogStep::Ask(self.prompt())
    }

    /// Handles what is typed about a question with options; the next one is asked then.
    fn chosen(&mut self, words: &str) -> DialogStep {
        let Stage::Choice(choices, number, given) = &mut self.stage else {
            return DialogStep::Ask(self.prompt());
        };
        let Some(asked) = choices.questions.get(*number) else {
            return DialogStep::Ask(String::new());
        };
        if words != SKIP {
            match choice::chosen(asked, words) {
                Ok(answer) => given.answers.insert(asked.question.clone(), answer),
                Err(why) => return DialogStep::Ask(format!("  {why}\n{}", self.prompt())),
            };
        }
        *number += 1;
        if *number < choices.questions.len() {
            return DialogStep::Ask(self.prompt());
        }
        match given.answers.is_empty() {
            true => denied(NO_ANSWER),
            false => DialogStep::Answered(Answer::Allow {
                input: Some(choices.with_answers(given)),
                always: None,
            }),
        }
    }

    /// Asks for a rule, if there is more than one.
    fn choose_rule(&mut self) {
        match &self.question.suggestions[..] {
            [] => {}
            [only] => self.stage = Stage::Scope(only.rules.clone()),
            _ => self.stage = Stage::Rule,
        }
    }
}

/// Returns what is asked first about a call.
fn first_stage(question: &Question) -> Stage {
    match question.kind {
        QuestionKind::Plan => Stage::Plan,
        QuestionKind::Permission | QuestionKind::Choice | QuestionKind::Form => Stage::Permission,
    }
}

fn approved(mode: Option<PermissionMode>) -> DialogStep {
    DialogStep::Answered(Answer::Approve { plan: None, mode })
}

fn denied(message: &str) -> DialogStep {
    DialogStep::Answered(Answer::Deny {
        message: message.to_owned(),
        interrupt: false,
    })
}

#[cfg(test)]
mod tests;
