//! Changes of an agent's model, for people and programs.

use posse_protocol::{Cost, ModelUpdate};
use serde_json::{Value, json};

use crate::output::grouped;

/// Returns a change as a line for programs.
pub(crate) fn line(update: &ModelUpdate) -> Value {
    json!({
        "type": "system", "subtype": "model", "model": update.model, "effort": update.effort,
        "reread_tokens": update.reread_tokens, "reread_cost_usd": update.cost.map(Cost::usd),
    })
}

/// Returns a change in words, with what it costs.
pub(crate) fn in_words(update: &ModelUpdate) -> String {
    let effort = update.effort.as_deref();
    let effort = effort.map(|effort| format!(", effort {effort}"));
    let price = match update.cost {
        Some(cost) => format!("for {cost}"),
        None => "at an unknown price".to_owned(),
    };
    let reread = match update.reread_tokens {
        0 => String::new(),
        tokens => format!("; up to {} tokens are read again, {price}", grouped(tokens)),
    };
    format!(
        "model: {}{}{reread}",
        update.model,
        effort.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves CV-04 (part: price)
    #[test]
    fn a_change_says_what_it_costs() {
        let mut update = ModelUpdate {
            model: "claude-haiku-5-5".into(),
            effort: Some("low".into()),
            reread_tokens: 1200,
            cost: Some(Cost::from_pico_usd(1_500_000_000)),
        };
        assert_eq!(
            in_words(&update),
            "model: claude-haiku-5-5, effort low; up to 1,200 tokens are read again, for $0.0015"
        );
        assert_eq!(line(&update)["reread_cost_usd"], json!(0.0015));
        update.cost = None;
        assert!(in_words(&update).ends_with("read again, at an unknown price"));
        (update.effort, update.reread_tokens) = (None, 0);
        assert_eq!(in_words(&update), "model: claude-haiku-5-5");
    }
}
