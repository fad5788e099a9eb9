//! Reasons of cache misses, for people and programs.

use posse_protocol::Missed;
use serde_json::{Map, Value};

use crate::output::{grouped, tame};

/// Returns tokens by reason, as an object.
pub(crate) fn of_reasons(missed: &[Missed]) -> Value {
    Value::Object(
        missed
            .iter()
            .map(|missed| (missed.why.clone(), missed.tokens.into()))
            .collect::<Map<_, _>>(),
    )
}

/// Returns the reasons in plain words, with numbers if there are several.
pub(crate) fn in_words(missed: &[Missed]) -> String {
    match missed {
        [only] => plain(&only.why),
        several => {
            let each = several
                .iter()
                .map(|missed| format!("{} ({})", plain(&missed.why), grouped(missed.tokens)));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns the meaning of a reason.
pub(crate) fn plain(why: &str) -> String {
    match why {
        "expired" => "they expired unused".into(),
        "model_changed" => "the model changed".into(),
        "tools_changed" => "the tools changed".into(),
        "system_changed" => "the system prompt changed".into(),
        "messages_changed" => "an earlier message changed".into(),
        "unknown" | "unavailable" | "previous_message_not_found" => "the reason is unknown".into(),
        "other" => "something else".into(),
        word => format!("the provider says {}", tame(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_reasons_have_a_figure_each() {
        let miss = |tokens, why: &str| Missed {
            tokens,
            why: why.into(),
        };
        assert_eq!(in_words(&[miss(1, "tools_changed")]), "the tools changed");
        assert_eq!(
            in_words(&[miss(7, "expired"), miss(5, "odd\u{1b}")]),
            "they expired unused (7), the provider says odd\\u{1b} (5)"
        );
        assert_eq!(
            of_reasons(&[miss(7, "expired"), miss(5, "odd")]).to_string(),
            r#"{"expired":7,"odd":5}"#
        );
    }
}
