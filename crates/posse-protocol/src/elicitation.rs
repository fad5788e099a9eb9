//! What a server asks a person while it works on a call: a form with fields, or to open an address.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::choice::{ChoiceAnswers, ChoiceOption, ChoiceQuestion, Choices};
use crate::{BadChoice, RawJson};

/// What is chosen to say that an address was opened, or that a form without fields is agreed to.
const DONE: &str = "Done";
/// The answers for a field that is true or false.
const YES: &str = "yes";
const NO: &str = "no";

/// What a server asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    /// The server's name.
    pub server: String,
    /// Its words.
    pub message: String,
    /// What it wants.
    #[serde(flatten)]
    pub wish: ElicitationWish,
}

/// What a server wants of a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum ElicitationWish {
    /// Values of the fields that a JSON Schema describes.
    Form {
        /// The schema, of a flat object.
        #[serde(rename = "requestedSchema")]
        schema: Value,
    },
    /// That an address is opened.
    Url {
        /// The address.
        url: String,
        /// By which the server will say that it is done.
        #[serde(
            rename = "elicitationId",
            default,
            skip_serializing_if = "Option::is_none"
        )]
        id: Option<String>,
    },
}

/// What a person answers a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", content = "content", rename_all = "lowercase")]
pub enum ElicitationReply {
    /// They agree, with the values of the fields of a form.
    Accept(Option<Value>),
    /// They do not.
    Decline,
    /// They want the whole thing to end.
    Cancel,
}

impl ElicitationReply {
    /// Returns the reply in these words; none if no reply is called so.
    pub fn read(action: &str, content: Option<Value>) -> Option<Self> {
        match action {
            "accept" => Some(Self::Accept(content)),
            "decline" => Some(Self::Decline),
            "cancel" => Some(Self::Cancel),
            _ => None,
        }
    }

    /// Returns the word for it.
    pub fn action(&self) -> &'static str {
        match self {
            Self::Accept(_) => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

/// A field of a form.
struct FormField<'a> {
    name: &'a str,
    schema: &'a Map<String, Value>,
}

impl Elicitation {
    /// Reads the input of a question.
    pub fn read(input: &RawJson) -> Option<Self> {
        serde_json::from_str(input.get()).ok()
    }

    /// Returns it as the input of a question.
    pub fn to_input(&self) -> RawJson {
        RawJson::from(&json!(self))
    }

    /// Returns it as hooks and programs read it.
    pub fn to_programs(&self) -> Map<String, Value> {
        let wish = match &self.wish {
            ElicitationWish::Form { schema } => {
                vec![
                    ("mode", json!("form")),
                    ("requested_schema", schema.clone()),
                ]
            }
            ElicitationWish::Url { url, id } => vec![
                ("mode", json!("url")),
                ("url", json!(url)),
                ("elicitation_id", json!(id)),
            ],
        };
        let said = [
            ("mcp_server_name", json!(self.server)),
            ("message", json!(self.message)),
        ];
        let fields = said.into_iter().chain(wish);
        fields.map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// Returns the questions that a person answers, one for each field.
    pub fn choices(&self) -> Choices {
        let mut questions: Vec<ChoiceQuestion> = match &self.wish {
            ElicitationWish::Form { .. } => self.fields().iter().map(FormField::question).collect(),
            ElicitationWish::Url { url, .. } => vec![ChoiceQuestion {
                question: format!("Open {url}"),
                header: "open".into(),
                options: vec![option(DONE)],
                multi_select: false,
            }],
        };
        if questions.is_empty() {
            questions.push(ChoiceQuestion {
                question: "Do you agree?".into(),
                header: "agree".into(),
                options: vec![option(YES)],
                multi_select: false,
            });
        }
        if let Some(first) = questions.first_mut() {
            let asks = format!("The server {} asks: {}", self.server, self.message);
            first.question = format!("{asks}\n{}", first.question);
        }
        Choices { questions }
    }

    /// Returns what a person has answered: the input of the answer to the question.
    pub fn reply(&self, input: Option<&RawJson>) -> Result<ElicitationReply, BadChoice> {
        let Some(input) = input else {
            return Ok(ElicitationReply::Accept(
                self.content(&ChoiceAnswers::default()),
            ));
        };
        // Programs answer as servers are answered.
        if let Ok(reply) = serde_json::from_str(input.get()) {
            return Ok(reply);
        }
        let answers = self.choices().answered(input)?;
        Ok(ElicitationReply::Accept(self.content(&answers)))
    }

    /// Returns the values that answers mean; none for an address.
    fn content(&self, answers: &ChoiceAnswers) -> Option<Value> {
        if let ElicitationWish::Url { .. } = self.wish {
            return None;
        }
        let mut content = Map::new();
        let choices = self.choices();
        for (field, asked) in self.fields().iter().zip(&choices.questions) {
            let value = match answers.answers.get(&asked.question) {
                Some(words) => Some(field.value(words)),
                None => field.schema.get("default").cloned(),
            };
            if let Some(value) = value {
                content.insert(field.name.to_owned(), value);
            }
        }
        Some(Value::Object(content))
    }

    fn fields(&self) -> Vec<FormField<'_>> {
        let ElicitationWish::Form { schema } = &self.wish else {
            return Vec::new();
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut fields = Vec::new();
        for (name, schema) in properties.into_iter().flatten() {
            fields.extend(schema.as_object().map(|schema| FormField { name, schema }));
        }
        fields
    }
}

impl FormField<'_> {
    fn question(&self) -> ChoiceQuestion {
        let options = self.options();
        let mut question = match self.text("title") {
            // The name tells fields apart whose titles are the same.
            Some(title) if title != self.name => format!("{title} ({})", self.name),
            _ => self.name.to_owned(),
        };
        if let Some(about) = self.text("description") {
            question = format!("{question}: {about}");
        }
        if options.is_empty() && !matches!(self.kind(), "string" | "") {
            question = format!("{question} [{}]", self.kind());
        }
        if let Some(default) = self.schema.get("default") {
            question = format!("{question} [{default} if you do not say]");
        }
        ChoiceQuestion {
            question,
            header: self.name.to_owned(),
            multi_select: self.kind() == "array",
            options: options
                .into_iter()
                .map(|(label, _)| option(&label))
                .collect(),
        }
    }

    fn kind(&self) -> &str {
        self.text("type").unwrap_or_default()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.schema.get(key).and_then(Value::as_str)
    }

    /// Returns what is chosen from: labels, and the values that they mean.
    fn options(&self) -> Vec<(String, Value)> {
        if self.kind() == "boolean" {
            return vec![(YES.into(), json!(true)), (NO.into(), json!(false))];
        }
        let of = match self.schema.get("items").and_then(Value::as_object) {
            Some(items) if self.kind() == "array" => items,
            _ => self.schema,
        };
        let list = |key: &str| of.get(key).and_then(Value::as_array);
        if let Some(titled) = list("oneOf").or_else(|| list("anyOf")) {
            let option = |it: &Value| {
                let value = it.get("const")?;
                let title = it.get("title").and_then(Value::as_str);
                let label = title.map_or_else(|| plain(value), str::to_owned);
                Some((label, value.clone()))
            };
            return titled.iter().filter_map(option).collect();
        }
        let names = list("enumNames");
        let values = list("enum").into_iter().flatten().enumerate();
        let label = |(number, value): (usize, &Value)| {
            let name = names.and_then(|names| names.get(number)?.as_str());
            let label = name.map_or_else(|| plain(value), str::to_owned);
            (label, value.clone())
        };
        values.map(label).collect()
    }

    /// Returns the value that a person's words mean. What means none is left as it is: the schema
    /// says what is wrong with it.
    fn value(&self, words: &str) -> Value {
        let options = self.options();
        let meant = |label: &str| {
            let found = options.iter().find(|(known, _)| known == label);
            found.map(|(_, value)| value.clone())
        };
        match self.kind() {
            "array" => {
                let mut rest = words;
                let mut values = Vec::new();
                while !rest.is_empty() {
                    // A label may have a comma.
                    let mut fits = options.iter().filter_map(|(label, value)| {
                        let rest = rest.strip_prefix(label.as_str())?;
                        let rest = match rest.is_empty() {
                            true => rest,
                            false => rest.strip_prefix(", ")?,
                        };
                        Some((value.clone(), rest))
                    });
                    let (value, left) = fits.next().unwrap_or_else(|| {
                        let (word, left) = rest.split_once(", ").unwrap_or((rest, ""));
                        (json!(word), left)
                    });
                    values.push(value);
                    rest = left;
                }
                Value::Array(values)
            }
            "number" | "integer" => {
                let number = serde_json::from_str::<Value>(words.trim()).ok();
                let number = number.filter(Value::is_number);
                number.unwrap_or_else(|| json!(words))
            }
            _ => meant(words).unwrap_or_else(|| json!(words)),
        }
    }
}

fn option(label: &str) -> ChoiceOption {
    ChoiceOption {
        label: label.to_owned(),
        description: String::new(),
        preview: None,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: Value) -> Elicitation {
        let schema = json!({"type": "object", "properties": properties});
        Elicitation {
            server: "s".into(),
            message: "Who?".into(),
            wish: ElicitationWish::Form { schema },
        }
    }

    /// What these answers come to, in the order of the fields; none for no answer.
    fn content(asked: &Elicitation, given: &[Option<&str>]) -> Value {
        let choices = asked.choices();
        assert_eq!(choices.questions.len(), given.len());
        let pairs = choices.questions.iter().zip(given);
        let answers =
            pairs.filter_map(|(asked, words)| Some((asked.question.clone(), (*words)?.into())));
        let answers = ChoiceAnswers {
            answers: answers.collect(),
            response: None,
        };
        let input = choices.with_answers(&answers);
        match asked.reply(Some(&input)).unwrap() {
            ElicitationReply::Accept(Some(content)) => content,
            other => panic!("{other:?}"),
        }
    }

    // proves MC-11 (part: fields)
    #[test]
    fn each_field_is_a_question_and_each_answer_a_value() {
        let asked = form(json!({
            "name": {"type": "string", "title": "Name", "description": "all of it"},
            "agree": {"type": "boolean"},
            "age": {"type": "integer", "default": 7},
            "color": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}]},
            "tags": {"type": "array", "items": {"enum": ["a", "b, c", "d"]}},
        }));
        let texts = asked.choices().questions;
        assert_eq!(
            texts[0].question,
            "The server s asks: Who?\nName (name): all of it"
        );
        assert_eq!(texts[2].question, "age [integer] [7 if you do not say]");
        assert!(texts[5].multi_select && !texts[3].multi_select);
        let labels = |at: usize| {
            let options = texts[at].options.iter();
            options.map(|it| it.label.as_str()).collect::<Vec<_>>()
        };
        assert_eq!((labels(0), labels(3)), (vec![], vec!["Red", "Green"]));
        assert_eq!(
            content(
                &asked,
                &[
                    Some("Ada"),
                    Some("no"),
                    None,
                    Some("Green"),
                    Some("Small"),
                    Some("b, c, a, x")
                ]
            ),
            json!({
                "name": "Ada", "agree": false, "age": 7, "color": "g", "size": "s",
                "tags": ["b, c", "a", "x"],
            })
        );
        let odd = content(
            &asked,
            &[Some("x"), Some("maybe"), Some("old"), None, None, None],
        );
        assert_eq!(odd, json!({"name": "x", "agree": "maybe", "age": "old"}));
    }

    #[test]
    fn an_address_and_an_empty_form_are_agreed_to() {
        let url = Elicitation {
            wish: ElicitationWish::Url {
                url: "https://example.org".into(),
                id: Some("1".into()),
            },
            ..form(json!({}))
        };
        assert_eq!(Elicitation::read(&url.to_input()), Some(url.clone()));
        let asked = &url.choices().questions[0].question;
        assert_eq!(asked, "The server s asks: Who?\nOpen https://example.org");
        assert_eq!(url.reply(None), Ok(ElicitationReply::Accept(None)));
        let empty = form(json!({}));
        assert_eq!(Elicitation::read(&empty.to_input()), Some(empty.clone()));
        assert_eq!(
            empty.reply(None),
            Ok(ElicitationReply::Accept(Some(json!({}))))
        );
        let given = RawJson::from(&json!({"action": "decline"}));
        assert_eq!(empty.reply(Some(&given)), Ok(ElicitationReply::Decline));
        let given = RawJson::from(&json!({"action": "accept", "content": {"a": 1}}));
        assert_eq!(
            empty.reply(Some(&given)),
            Ok(ElicitationReply::Accept(Some(json!({"a": 1}))))
        );
    }
}
