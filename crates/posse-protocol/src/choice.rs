//! Questions with options, which an agent asks a person: how they are asked, and how they are
//! answered.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Number of questions that can be asked at once.
const QUESTIONS: std::ops::RangeInclusive<usize> = 1..=4;
/// Number of options of a question.
const OPTIONS: std::ops::RangeInclusive<usize> = 2..=4;
/// Maximum length of a header, in characters.
const HEADER: usize = 12;
/// Maximum length of a question and of what is said about an option, in bytes.
const TEXT: usize = 4 << 10;
/// Maximum length of an answer, in bytes.
const ANSWER: usize = 16 << 10;

/// The input of AskUserQuestion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choices {
    /// The questions.
    #[schemars(length(min = 1, max = 4))]
    pub questions: Vec<ChoiceQuestion>,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChoiceQuestion {
    /// The whole question, understandable on its own.
    pub question: String,
    /// A label for it: at most 12 characters.
    #[schemars(length(max = 12))]
    pub header: String,
    /// The answers to choose from. Do not add an "other": own words are always possible.
    #[schemars(length(min = 2, max = 4))]
    pub options: Vec<ChoiceOption>,
    /// True if several options can be chosen together.
    #[serde(rename = "multiSelect", default)]
    pub multi_select: bool,
}

/// An answer to choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChoiceOption {
    /// The answer, in a few words.
    pub label: String,
    /// What it means, or what follows from it.
    pub description: String,
    /// Something to look at before it is chosen: code, a mockup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// What is wrong with questions or answers, with the field that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadChoice(String);

impl fmt::Display for BadChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadChoice {}

/// Answers to questions with options, by the text of the question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChoiceAnswers {
    /// A label, several of them, or a person's own words.
    pub answers: BTreeMap<String, String>,
    /// Words about all of it.
    pub response: Option<String>,
}

impl Choices {
    /// Reads and checks the questions in a tool's input.
    pub fn read(input: &RawJson) -> Result<Self, BadChoice> {
        let choices: Self = serde_json::from_str(input.get()).map_err(|error| {
            let what = error.to_string();
            let what = what.split(" at line ").next().unwrap_or(&what);
            BadChoice(what.to_owned())
        })?;
        choices.check()?;
        Ok(choices)
    }

    /// Checks what the types do not say.
    pub fn check(&self) -> Result<(), BadChoice> {
        count("questions", self.questions.len(), QUESTIONS)?;
        for (number, asked) in self.questions.iter().enumerate() {
            let at = format!("questions[{number}]");
            text(&format!("{at}.question"), &asked.question, TEXT)?;
            let same = |other: &ChoiceQuestion| other.question == asked.question;
            if self.questions[..number].iter().any(same) {
                return Err(wrong(&format!("{at}.question"), "is asked twice"));
            }
            let header = format!("{at}.header");
            text(&header, &asked.header, TEXT)?;
            if asked.header.chars().count() > HEADER {
                return Err(wrong(&header, "has more than 12 characters"));
            }
            count(&format!("{at}.options"), asked.options.len(), OPTIONS)?;
            for (number, option) in asked.options.iter().enumerate() {
                let at = format!("{at}.options[{number}]");
                text(&format!("{at}.label"), &option.label, TEXT)?;
                let same = |other: &ChoiceOption| other.label == option.label;
                if asked.options[..number].iter().any(same) {
                    return Err(wrong(&format!("{at}.label"), "is offered twice"));
                }
                let more = [
                    ("description", Some(&option.description)),
                    ("preview", option.preview.as_ref()),
                ];
                for (field, said) in more {
                    if said.is_some_and(|said| said.len() > TEXT) {
                        return Err(wrong(&format!("{at}.{field}"), "is longer than 4 KB"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the answers in the input that an answer brings: these questions, and `answers` by their
    /// texts. At least one question must be answered.
    pub fn answered(&self, input: &RawJson) -> Result<ChoiceAnswers, BadChoice> {
        #[derive(Deserialize)]
        struct Answered {
            #[serde(default)]
            answers: BTreeMap<String, AnswerText>,
            response: Option<String>,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum AnswerText {
            One(String),
            Several(Vec<String>),
        }
        let Answered { answers, response } = serde_json::from_str(input.get())
            .map_err(|error| wrong("answers", &error.to_string()))?;
        let mut read = ChoiceAnswers::default();
        for (question, answer) in answers {
            if !self.questions.iter().any(|it| it.question == question) {
                return Err(wrong("answers", "has a question that was not asked"));
            }
            let answer = match answer {
                AnswerText::One(answer) => answer,
                AnswerText::Several(answers) => answers.join(", "),
            };
            if !answer.trim().is_empty() {
                text("answers", &answer, ANSWER)?;
                read.answers.insert(question, answer);
            }
        }
        read.response = response.filter(|words| !words.trim().is_empty());
        if let Some(words) = &read.response {
            text("response", words, ANSWER)?;
        }
        match read.answers.is_empty() && read.response.is_none() {
            true => Err(wrong("answers", "has no answer")),
            false => Ok(read),
        }
    }

    /// Returns the input that brings answers.
    pub fn with_answers(&self, answers: &ChoiceAnswers) -> RawJson {
        let mut input =
            serde_json::json!({"questions": self.questions, "answers": answers.answers});
        if let Some(response) = &answers.response {
            input["response"] = serde_json::json!(response);
        }
        RawJson::from(&input)
    }
}

fn wrong(field: &str, what: &str) -> BadChoice {
    BadChoice(format!("`{field}` {what}"))
}

/// Checks the length of a list.
fn count(
    field: &str,
    count: usize,
    fits: std::ops::RangeInclusive<usize>,
) -> Result<(), BadChoice> {
    match fits.contains(&count) {
        true => Ok(()),
        false => {
            let (least, most) = (fits.start(), fits.end());
            Err(wrong(field, &format!("has {count} of {least} to {most}")))
        }
    }
}

/// Checks a text that must be there.
fn text(field: &str, text: &str, most: usize) -> Result<(), BadChoice> {
    match text.len() {
        _ if text.trim().is_empty() => Err(wrong(field, "is empty")),
        length if length > most => Err(wrong(field, &format!("is longer than {} KB", most >> 10))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn option(label: &str) -> Value {
        json!({"label": label, "description": "d"})
    }

    fn question(text: &str) -> Value {
        json!({"question": text, "header": "h", "options": [option("a"), option("b")], "multiSelect": false})
    }

    fn read(questions: &[Value]) -> Result<Choices, String> {
        let input = RawJson::from(&json!({"questions": questions}));
        Choices::read(&input).map_err(|error| error.to_string())
    }

    // proves PE-08 (part: the input)
    #[test]
    fn a_wrong_input_is_named_by_its_field() {
        assert!(read(&[question("one?"), question("two?")]).is_ok());
        let with = |field: &str, value: Value| {
            let mut question = question("one?");
            question[field] = value;
            read(&[question])
        };
        let five = || ["a", "b", "c", "d", "e"].map(option).to_vec();
        for (found, expected) in [
            (read(&[]), "`questions` has 0 of 1 to 4"),
            (
                read(&[question("?"), question("?")]),
                "`questions[1].question` is asked twice",
            ),
            (
                with("question", json!(" ")),
                "`questions[0].question` is empty",
            ),
            (
                with("header", json!("a long header")),
                "`questions[0].header` has more than 12 characters",
            ),
            (
                with("options", json!([option("a")])),
                "`questions[0].options` has 1 of 2 to 4",
            ),
            (
                with("options", json!(five())),
                "`questions[0].options` has 5 of 2 to 4",
            ),
            (
                with("options", json!([option("a"), option("a")])),
                "`questions[0].options[1].label` is offered twice",
            ),
            (with("answers", json!({})), "unknown field `answers`"),
            (
                with("multiSelect", json!("no")),
                "invalid type: string \"no\"",
            ),
        ] {
            let error = found.unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let input = RawJson::from(&json!({"questions": [question("?")], "answers": {"?": "a"}}));
        let error = Choices::read(&input).unwrap_err().to_string();
        assert!(error.starts_with("unknown field `answers`"), "{error}");
    }

    #[test]
    fn answers_are_read_as_they_were_given() {
        let choices = read(&[question("one?"), question("two?")]).unwrap();
        let answered = |answers: Value| {
            let input = RawJson::from(&json!({"questions": [], "answers": answers}));
            choices.answered(&input).map_err(|error| error.to_string())
        };
        let both = answered(json!({"one?": ["a", "b"], "two?": "my own words"})).unwrap();
        assert_eq!(both.answers["one?"], "a, b");
        assert_eq!(both.answers["two?"], "my own words");
        assert_eq!(choices.answered(&choices.with_answers(&both)), Ok(both));
        assert_eq!(
            answered(json!({"one?": "a", "two?": " "}))
                .unwrap()
                .answers
                .len(),
            1
        );
        assert_eq!(answered(json!({})).unwrap_err(), "`answers` has no answer");
        assert_eq!(
            answered(json!({"one?": ""})).unwrap_err(),
            "`answers` has no answer"
        );
        let odd = answered(json!({"three?": "a"})).unwrap_err();
        assert_eq!(odd, "`answers` has a question that was not asked");
    }
}
