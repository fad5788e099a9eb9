//! What a type may be called.

/// Letters of a name.
const LONGEST: usize = 64;

/// Names that mean something else where a type is named: matched without case, as all of them are.
const RESERVED: [&str; 2] = ["fork", "main"];

/// Whether a name may be given to a type; else why not.
pub fn check_name(name: &str) -> Result<(), String> {
    let shown = crate::definition::front::value::quoted(name);
    if name.is_empty() {
        return Err("the name is empty".to_owned());
    }
    if name.chars().count() > LONGEST {
        return Err(format!(
            "the name `{shown}` has more than {LONGEST} characters"
        ));
    }
    if RESERVED.contains(&name.to_lowercase().as_str()) {
        return Err(format!("the name `{shown}` is reserved"));
    }
    if name.starts_with('-') {
        return Err(format!("the name `{shown}` begins with `-`"));
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
            return Err(format!(
                "the name `{shown}` contains white space; use `{joined}`"
            ));
        }
    }
    let what = if bad.is_control() || bad.is_whitespace() {
        format!("U+{:04X}", u32::from(bad))
    } else {
        format!("`{bad}`")
    };
    Err(format!(
        "the name `{shown}` contains {what}; use letters, digits, `-` and `_`"
    ))
}
