//! The model and the effort of a preamble that is encoded already.

use posse_port::model::{Effort, Encoded, ModelChoice};

use super::encode;
use crate::preamble;

/// What follows the effort. It occurs once outside of texts, where quotes are escaped, after the
/// tools.
const MESSAGES: &str = r#","messages":["#;

/// Returns the model and the effort that a preamble asks for.
pub(super) fn choice(encoded: &Encoded) -> Option<ModelChoice> {
    let (model, rest) = preamble::split(&encoded.bytes)?;
    let (before, _) = split_messages(rest)?;
    let effort = split_effort(before).1;
    Some(ModelChoice { model, effort })
}

/// Returns the same preamble with another model and effort.
pub(super) fn with_choice(encoded: &Encoded, choice: &ModelChoice) -> Option<Encoded> {
    let (_, rest) = preamble::split(&encoded.bytes)?;
    let (before, messages) = split_messages(rest)?;
    let mut bytes = preamble::begin(&choice.model);
    bytes.extend_from_slice(split_effort(before).0);
    let effort = choice.effort.map(Effort::as_str).map(encode::effort_field);
    bytes.extend(effort.unwrap_or_default().into_bytes());
    bytes.extend_from_slice(messages);
    Some(Encoded {
        bytes: bytes.into(),
        mark_at: None,
    })
}

/// Splits before the messages.
fn split_messages(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = std::str::from_utf8(rest).ok()?;
    Some(rest.split_at(text.rfind(MESSAGES)?))
}

/// Splits off the effort. Thinking that is switched off is no effort, and stays.
fn split_effort(before: &[u8]) -> (&[u8], Option<Effort>) {
    let mut found = Effort::ALL.into_iter().filter_map(|effort| {
        let field = encode::effort_field(effort.as_str());
        Some((before.strip_suffix(field.as_bytes())?, Some(effort)))
    });
    found.next().unwrap_or((before, None))
}

#[cfg(test)]
mod tests {
    use posse_port::model::{Preamble, Thinking};

    use super::*;

    fn words(model: &str, effort: Option<Effort>, thinking: Thinking) -> Encoded {
        let imitation = r#"He said ","reasoning_effort":"low","messages":[{"#;
        encode::preamble(&Preamble {
            model: model.into(),
            tools: Vec::new(),
            system: vec![imitation.into()],
            thinking,
            effort,
        })
    }

    #[test]
    fn another_choice_is_what_would_have_been_encoded_for_it() {
        let efforts = || Effort::ALL.into_iter().map(Some).chain([None]);
        for effort in efforts() {
            let encoded = words("a", effort, Thinking::Default);
            let model = "a".to_owned();
            assert_eq!(choice(&encoded), Some(ModelChoice { model, effort }));
            for other in efforts() {
                let wanted = ModelChoice {
                    model: "another".into(),
                    effort: other,
                };
                let expected = words("another", other, Thinking::Default);
                assert_eq!(with_choice(&encoded, &wanted), Some(expected));
            }
        }
        let wanted = ModelChoice {
            model: "another".into(),
            effort: None,
        };
        let off = |model| words(model, None, Thinking::Off);
        assert_eq!(with_choice(&off("a"), &wanted), Some(off("another")));
    }
}
