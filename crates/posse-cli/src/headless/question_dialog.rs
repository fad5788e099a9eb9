//! Asks a person one question: what is shown, what may be typed, and the answer that comes of it.
//! Nothing is answered by an empty line.

use posse_protocol::{AcceptedRules, AgentId, Answer, Question, QuestionId, RuleScope};

use crate::output::transcript::shortened;
use crate::output::{one_line, tame};
use crate::present::question;

/// Maximum length of the reason for a question, in characters.
const LONGEST: usize = 160;
/// What the model is told if a person gives no reason.
const NO: &str = "the user said no";

/// A question that a person is asked.
pub(crate) struct QuestionDialog {
    pub(crate) agent: AgentId,
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
}

/// What comes of something typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DialogStep {
    /// It is not answered yet; this is shown next.
    Ask(String),
    Answered(Answer),
}

impl QuestionDialog {
    pub(crate) fn new(agent: AgentId, question: Question) -> Self {
        Self {
            agent,
            question,
            stage: Stage::Permission,
        }
    }

    pub(crate) fn id(&self) -> QuestionId {
        self.question.id
    }

    /// Returns the name of the agent that asks, if it is not the main agent.
    pub(crate) fn from(&self) -> Option<&str> {
        self.question.from.as_deref()
    }

    /// Returns the question in full, from `who`: a person must not allow what they do not see.
    pub(crate) fn shown(&self, who: Option<&str>) -> String {
        let who = who.map(|who| format!("{who}: ")).unwrap_or_default();
        let content = question::content(&self.question);
        format!(
            "? {who}{}\n  │ {}\n  ({})\n{}",
            one_line(&self.question.tool),
            content.trim_end().replace('\n', "\n  │ "),
            one_line(&shortened(&self.question.why, LONGEST)),
            self.prompt(),
        )
    }

    /// Returns what may be typed now.
    fn prompt(&self) -> String {
        match &self.stage {
            Stage::Permission if self.question.suggestions.is_empty() => {
                "  y allow once · n deny".into()
            }
            Stage::Permission => "  y allow once · a always · n deny".into(),
            Stage::Rule => format!(
                "  always allow:\n{}  number · b back",
                question::suggestions(&self.question)
            ),
            Stage::Scope(rules) => format!(
                "  always allow {}:\n  s in this session · d in this directory, later too · e everywhere, later \
                 too · b back",
                tame(&rules.join(", "))
            ),
        }
    }

    /// Handles something typed.
    pub(crate) fn typed(&mut self, words: &str) -> DialogStep {
        let words = words.trim();
        let (word, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        match (&self.stage, word.to_ascii_lowercase().as_str()) {
            (Stage::Permission, "y" | "yes") if rest.is_empty() => {
                return DialogStep::Answered(Answer::allow());
            }
            (Stage::Permission, "n" | "no") => {
                let message = match rest.trim() {
                    "" => NO.into(),
                    reason => reason.to_owned(),
                };
                return DialogStep::Answered(Answer::Deny {
                    message,
                    interrupt: false,
                });
            }
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
            (Stage::Permission, _) => {}
        }
        DialogStep::Ask(self.prompt())
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

#[cfg(test)]
mod tests {
    use posse_protocol::Suggestion;

    use super::*;
    use crate::headless::fixtures::{self, session};

    /// A question with these suggestions.
    fn dialog(rules: &[&str]) -> QuestionDialog {
        let suggestion = |rule: &&str| Suggestion {
            rules: vec![(*rule).to_owned()],
        };
        let question = Question {
            suggestions: rules.iter().map(suggestion).collect(),
            ..fixtures::question("a", None)
        };
        QuestionDialog::new(session(), question)
    }

    /// What comes of these words, the last of which answers.
    fn answer(dialog: &mut QuestionDialog, words: &[&str]) -> Answer {
        let (last, before) = words.split_last().unwrap();
        for words in before {
            let step = dialog.typed(words);
            assert!(matches!(step, DialogStep::Ask(_)), "{words}: {step:?}");
        }
        match dialog.typed(last) {
            DialogStep::Answered(answer) => answer,
            DialogStep::Ask(prompt) => panic!("{last}: {prompt}"),
        }
    }

    #[test]
    fn only_a_clear_word_answers() {
        for odd in ["", " ", "why?", "yy", "y please", "a", "1", "s", "b"] {
            let step = dialog(&[]).typed(odd);
            let prompt = "  y allow once · n deny";
            assert_eq!(step, DialogStep::Ask(prompt.into()), "{odd}");
        }
        assert_eq!(answer(&mut dialog(&[]), &["", "Y"]), Answer::allow());
        let no = |message: &str| Answer::Deny {
            message: message.into(),
            interrupt: false,
        };
        assert_eq!(answer(&mut dialog(&[]), &["n"]), no("the user said no"));
        assert_eq!(answer(&mut dialog(&[]), &["n not now"]), no("not now"));
    }

    // proves QU-07 (part: a pane)
    #[test]
    fn always_asks_for_the_rule_and_for_where_it_holds() {
        let always = |rule: &str, scope| Answer::Allow {
            input: None,
            always: Some(AcceptedRules {
                rules: vec![rule.into()],
                scope,
            }),
        };
        let two = || dialog(&["Bash(ls)", "Bash(ls *)"]);
        let shown = two().shown(Some("scout"));
        assert!(
            shown.starts_with("? scout: Bash\n  │ ls\n") && shown.contains("a always"),
            "{shown}"
        );
        let DialogStep::Ask(rules) = two().typed("a") else {
            panic!()
        };
        assert!(
            rules.contains("  1  Bash(ls)\n  2  Bash(ls *)\n"),
            "{rules}"
        );
        let words = ["a", "", "0", "3", "2", "", "x", "d"];
        let expected = always("Bash(ls *)", RuleScope::Directory);
        assert_eq!(answer(&mut two(), &words), expected);
        let words = ["a", "1", "s"];
        let expected = always("Bash(ls)", RuleScope::Session);
        assert_eq!(answer(&mut two(), &words), expected);
        let words = ["a", "b", "a", "1", "b", "y"];
        assert_eq!(answer(&mut two(), &words), Answer::allow());
        let expected = always("Bash(ls)", RuleScope::Everywhere);
        assert_eq!(answer(&mut dialog(&["Bash(ls)"]), &["a", "e"]), expected);
    }
}
