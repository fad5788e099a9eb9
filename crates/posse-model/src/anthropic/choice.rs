//! The model and the effort of a preamble that is encoded already.

use posse_port::model::{Effort, Encoded, ModelChoice};

use super::encode;
use crate::preamble;

/// Returns the model and the effort that a preamble asks for.
pub(super) fn choice(encoded: &Encoded) -> Option<ModelChoice> {
    let (model, rest) = preamble::split(&encoded.bytes)?;
    let effort = split_effort(rest).1;
    Some(ModelChoice { model, effort })
}

/// Returns the same preamble with another model and effort.
pub(super) fn with_choice(encoded: &Encoded, choice: &ModelChoice) -> Option<Encoded> {
    let (_, rest) = preamble::split(&encoded.bytes)?;
    let before = encoded.bytes.len() - rest.len();
    let mut bytes = preamble::begin(&choice.model);
    let mark_at = encoded.mark_at.map(|at| at - before + bytes.len());
    bytes.extend_from_slice(split_effort(rest).0);
    let effort = choice.effort.map(encode::effort_field);
    bytes.extend(effort.unwrap_or_default().into_bytes());
    Some(Encoded {
        bytes: bytes.into(),
        mark_at,
    })
}

/// Splits off the effort, which is the last field. No text can end like it: quotes in a text are
/// escaped.
fn split_effort(rest: &[u8]) -> (&[u8], Option<Effort>) {
    let mut found = Effort::ALL.into_iter().filter_map(|effort| {
        let field = encode::effort_field(effort);
        Some((rest.strip_suffix(field.as_bytes())?, Some(effort)))
    });
    found.next().unwrap_or((rest, None))
}

#[cfg(test)]
mod tests {
    use posse_port::model::{Preamble, Thinking};
    use posse_protocol::{RawJson, ToolSpec};

    use super::*;

    fn words(model: &str, effort: Option<Effort>) -> Encoded {
        let imitation = r#"He said ","output_config":{"effort":"low"}"#;
        encode::preamble(&Preamble {
            model: model.into(),
            tools: vec![ToolSpec {
                name: "Bash".into(),
                description: "Runs.".into(),
                input_schema: RawJson::parse(r#"{"type": "object"}"#).unwrap(),
            }],
            system: vec![imitation.into()],
            thinking: Thinking::Adaptive,
            effort,
        })
    }

    #[test]
    fn another_choice_is_what_would_have_been_encoded_for_it() {
        let efforts = || Effort::ALL.into_iter().map(Some).chain([None]);
        for effort in efforts() {
            let encoded = words("a \"model\"", effort);
            let model = "a \"model\"".to_owned();
            assert_eq!(choice(&encoded), Some(ModelChoice { model, effort }));
            for other in efforts() {
                let wanted = ModelChoice {
                    model: "another".into(),
                    effort: other,
                };
                assert_eq!(
                    with_choice(&encoded, &wanted),
                    Some(words("another", other))
                );
            }
        }
        let strange = Encoded {
            bytes: "{}".into(),
            mark_at: None,
        };
        assert_eq!(choice(&strange), None);
    }
}
