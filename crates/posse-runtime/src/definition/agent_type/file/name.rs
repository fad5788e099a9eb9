//! Names of types.

use crate::definition::front::error::NameError;

/// Maximum length of a name.
const LONGEST: usize = 64;

/// Names with another meaning where a type is named; case is ignored.
const RESERVED: [&str; 2] = ["fork", "main"];

/// Checks that a type may have a name.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let shown = crate::definition::front::value::quoted(name);
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.chars().count() > LONGEST {
        return Err(NameError::TooLong {
            name: shown,
            most: LONGEST,
        });
    }
    if RESERVED.contains(&name.to_lowercase().as_str()) {
        return Err(NameError::Reserved(shown));
    }
    if name.starts_with('-') {
        return Err(NameError::BeginsWithDash(shown));
    }
    let Some(bad) = name
        .chars()
        .find(|c| !(c.is_alphanumeric() || matches!(c, '-' | '_')))
    else {
        return Ok(());
    };
    if bad.is_whitespace() {
        let joined = name.split_whitespace().collect::<Vec<_>>().join("-");
        if check_name(&joined).is_ok() {
            return Err(NameError::Spaced {
                name: shown,
                joined,
            });
        }
    }
    let what = if bad.is_control() || bad.is_whitespace() {
        format!("U+{:04X}", u32::from(bad))
    } else {
        format!("`{bad}`")
    };
    Err(NameError::AgentProfile {
        name: shown,
        what,
        allowed: "letters, digits, `-` and `_`",
    })
}
