//! Changes a settings file as text: comments, order and layout of the rest stay as they are.

use std::ops::Range;

use posse_runtime::hook::PathStep;
use serde_json::Value;

/// Returns the line of a place in a text, from 1; that of what is around it if it is not there.
pub(crate) fn line_of(text: &str, path: &[PathStep]) -> usize {
    let plain = without_comments(text);
    let mut value = plain.find('{').unwrap_or_default();
    let mut place = value;
    for step in path {
        let found = match step {
            PathStep::Key(key) => member(&plain, value, key).map(|it| (it.key, it.value.start)),
            PathStep::Index(index) => element(&plain, value, *index).map(|at| (at, at)),
        };
        let Some(found) = found else { break };
        (place, value) = found;
    }
    1 + plain[..place].matches('\n').count()
}

/// Returns the text with spaces in place of comments, so that every byte keeps its place.
pub(crate) fn without_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match &bytes[at..] {
            [b'"', ..] => {
                at = end_of_string(bytes, at);
                continue;
            }
            [b'/', b'/', ..] => find(bytes, at, b"\n"),
            [b'/', b'*', ..] => find(bytes, at + 2, b"*/") + 2,
            _ => {
                at += 1;
                continue;
            }
        };
        let end = end.min(bytes.len());
        let comment = plain[at..end].iter_mut().filter(|byte| **byte != b'\n');
        comment.for_each(|byte| *byte = b' ');
        at = end;
    }
    // Only whole comments were replaced, so that this is still UTF-8.
    String::from_utf8(plain).unwrap_or_else(|_| text.to_owned())
}

/// Returns the text with a rule added to a list of `permissions`, which is made if it is not there;
/// `None` if the text is not a JSON object with such a list.
pub(crate) fn with_rule(text: &str, list: &str, rule: &str) -> Option<String> {
    // Some editors write a byte order mark.
    if let Some(text) = text.strip_prefix('\u{feff}') {
        return with_rule(text, list, rule).map(|text| format!("\u{feff}{text}"));
    }
    let text = if text.trim().is_empty() {
        "{\n}\n"
    } else {
        text
    };
    let plain = without_comments(text);
    let has_rule = |text: &str| {
        let all: Value = serde_json::from_str(&without_comments(text)).ok()?;
        let rules = all["permissions"][list].as_array();
        Some(rules.is_some_and(|rules| rules.iter().any(|it| it == rule)))
    };
    if has_rule(text)? {
        return Some(text.to_owned());
    }
    let quoted = Value::from(rule).to_string();
    let top = plain.find('{')?;
    let added = match member(&plain, top, "permissions") {
        None => {
            let entry = format!("\"permissions\": {{\n    \"{list}\": [{quoted}]\n  }}");
            first(text, &plain, top, &entry)
        }
        Some(permissions) => match member(&plain, permissions.value.start, list) {
            None => first(
                text,
                &plain,
                permissions.value.start,
                &format!("\"{list}\": [{quoted}]"),
            ),
            Some(rules) => last(text, &plain, &rules.value, &quoted),
        },
    };
    has_rule(&added).filter(|has| *has).map(|_| added)
}

/// Adds a first entry to the object or list that begins at `at`.
fn first(text: &str, plain: &str, at: usize, entry: &str) -> String {
    let rest = &plain[at + 1..];
    let next = rest.trim_start();
    let is_empty = next.starts_with(['}', ']']);
    let space = &rest[..rest.len() - next.len()];
    // On a line of its own if its neighbour is.
    let (before, after) = match space.rfind('\n') {
        Some(line) if !is_empty => (space[line..].to_owned(), ","),
        Some(_) => ("\n  ".to_owned(), ""),
        None if is_empty => (String::new(), ""),
        None => (String::new(), ", "),
    };
    format!("{}{before}{entry}{after}{}", &text[..=at], &text[at + 1..])
}

/// Adds a last entry to a list.
fn last(text: &str, plain: &str, list: &Range<usize>, entry: &str) -> String {
    let inside = &plain[list.start + 1..list.end - 1];
    let end = list.start + 1 + inside.trim_end().len();
    if inside.trim().is_empty() {
        return first(text, plain, list.start, entry);
    }
    // As the entry before it: on a line of its own with the same indentation, or on the same line.
    let line = plain[..end].rfind('\n').map_or(0, |line| line + 1);
    let indentation: String = plain[line..]
        .chars()
        .take_while(|c| *c == ' ' || *c == '\t')
        .collect();
    let space = if line > list.start {
        format!("\n{indentation}")
    } else {
        " ".to_owned()
    };
    format!("{},{space}{entry}{}", &text[..end], &text[end..])
}

/// Returns the text with a member of an object set; the objects down to it are made if they are not
/// there. `None` if the text is not a JSON object with such objects.
pub(crate) fn with_member(text: &str, below: &[&str], key: &str, value: &Value) -> Option<String> {
    let text = if text.trim().is_empty() {
        "{\n}\n"
    } else {
        text
    };
    let plain = without_comments(text);
    let mut wanted: Value = serde_json::from_str(&plain).ok()?;
    let mut object = plain.find('{')?..end_of_value(plain.as_bytes(), plain.find('{')?);
    let mut missing = below;
    while let [name, rest @ ..] = missing {
        let Some(found) = member(&plain, object.start, name) else {
            break;
        };
        (object, missing) = (found.value, rest);
    }
    if !plain[object.clone()].starts_with('{') {
        return None;
    }
    let changed = match (missing, member(&plain, object.start, key)) {
        ([], Some(found)) => {
            let is_so = |it: Value| it == *value;
            let old = serde_json::from_str(&plain[found.value.clone()]);
            if old.is_ok_and(is_so) {
                return Some(text.to_owned());
            }
            let value = laid_out(value, indentation(&plain, found.key));
            let Range { start, end } = found.value;
            format!(
                "{}{value}{}",
                &text[..start],
                text[end..].trim_start_matches(' ')
            )
        }
        ([], None) => with_last(text, &plain, &object, key, value),
        ([name, rest @ ..], _) => {
            let mut inner = serde_json::json!({ key: value });
            for name in rest.iter().rev() {
                inner = serde_json::json!({ *name: inner });
            }
            with_last(text, &plain, &object, name, &inner)
        }
    };
    // That it says what it should is checked, since it was put together as text.
    let mut place = &mut wanted;
    for name in below {
        let object = place.as_object_mut()?;
        place = object
            .entry(*name)
            .or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    place.as_object_mut()?.insert(key.to_owned(), value.clone());
    let found: Value = serde_json::from_str(&without_comments(&changed)).ok()?;
    (found == wanted).then_some(changed)
}

/// Returns the text without a member of an object; `None` if it is not there.
pub(crate) fn without_member(text: &str, below: &[&str], key: &str) -> Option<String> {
    let plain = without_comments(text);
    let mut object = plain.find('{')?;
    for name in below {
        object = member(&plain, object, name)?.value.start;
    }
    let Member { key: start, value } = member(&plain, object, key)?;
    let end = object_end(&plain, value.end);
    let (before, after) = match plain[end..].strip_prefix(',') {
        // The next one takes its place.
        Some(_) => (text[..start].to_owned(), text[end + 1..].trim_start()),
        None => {
            let head = plain[..start].trim_end();
            let head = match head.strip_suffix(',') {
                // What is between the comma and the member is a comment.
                Some(rest) => format!("{}{}", &text[..rest.len()], &text[head.len()..start]),
                None => text[..start].to_owned(),
            };
            (head.trim_end().to_owned(), &text[value.end..])
        }
    };
    let mut wanted: Value = serde_json::from_str(&plain).ok()?;
    let place = below
        .iter()
        .fold(&mut wanted, |value, name| &mut value[*name]);
    place.as_object_mut()?.shift_remove(key);
    let changed = format!("{before}{after}");
    let found: Value = serde_json::from_str(&without_comments(&changed)).ok()?;
    (found == wanted).then_some(changed)
}

/// Returns the position of what comes after a value: a comma, or the end of the object.
fn object_end(plain: &str, at: usize) -> usize {
    skip_space(plain.as_bytes(), at)
}

/// Adds a last member to an object.
fn with_last(text: &str, plain: &str, object: &Range<usize>, key: &str, value: &Value) -> String {
    let outer = indentation(plain, object.start);
    let key = Value::from(key);
    let inside = &plain[object.start + 1..object.end - 1];
    let end = object.start + 1 + inside.trim_end().len();
    if !inside.trim().is_empty() {
        let line = plain[..end].rfind('\n').map_or(0, |line| line + 1);
        let entry = match line > object.start {
            true => format!("{key}: {}", laid_out(value, indentation(plain, end))),
            false => format!("{key}: {value}"),
        };
        return last(text, plain, object, &entry);
    }
    let inner = format!("{outer}  ");
    let entry = format!("{key}: {}", laid_out(value, &inner));
    let (head, tail) = (&text[..=object.start], &text[object.end - 1..]);
    // There may be a comment.
    let kept = text[object.start + 1..object.end - 1].trim_end();
    format!("{head}{kept}\n{inner}{entry}\n{outer}{tail}")
}

/// Returns the white space that a line begins with.
fn indentation(plain: &str, at: usize) -> &str {
    let line = plain[..at].rfind('\n').map_or(0, |line| line + 1);
    let rest = &plain[line..];
    &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
}

/// Returns a value on several lines, all but the first of which begin like this.
fn laid_out(value: &Value, indentation: &str) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    text.replace('\n', &format!("\n{indentation}"))
}

/// Where a member of an object is.
struct Member {
    key: usize,
    value: Range<usize>,
}

/// Returns the place of a member in the object that begins at `at`.
fn member(plain: &str, at: usize, key: &str) -> Option<Member> {
    let bytes = plain.as_bytes();
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    let mut at = skip_space(bytes, at + 1);
    while bytes.get(at) == Some(&b'"') {
        let end = end_of_string(bytes, at);
        let name: String = serde_json::from_str(plain.get(at..end)?).ok()?;
        let colon = skip_space(bytes, end);
        let start = skip_space(bytes, colon + 1);
        let end = end_of_value(bytes, start);
        if name == key {
            let value = start..end;
            return Some(Member { key: at, value });
        }
        at = skip_space(bytes, end);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
    }
    None
}

/// Returns where a value begins in the list that begins at `at`.
fn element(plain: &str, at: usize, index: usize) -> Option<usize> {
    let bytes = plain.as_bytes();
    if bytes.get(at) != Some(&b'[') {
        return None;
    }
    let mut at = skip_space(bytes, at + 1);
    for _ in 0..index {
        at = skip_space(bytes, end_of_value(bytes, at));
        if bytes.get(at) != Some(&b',') {
            return None;
        }
        at = skip_space(bytes, at + 1);
    }
    Some(at)
}

/// Returns the end of the value that begins at `at`.
fn end_of_value(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_u32;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Returns the position after the string that begins at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn skip_space(bytes: &[u8], at: usize) -> usize {
    let space = bytes
        .iter()
        .skip(at)
        .take_while(|it| it.is_ascii_whitespace());
    at + space.count()
}

/// Returns where `what` begins from `at` on, or the end.
fn find(bytes: &[u8], at: usize, what: &[u8]) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let found = rest.windows(what.len()).position(|it| it == what);
    found.map_or(bytes.len(), |found| at + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_added_and_the_rest_stays() {
        let files = [
            (
                "",
                "{\n  \"permissions\": {\n    \"allow\": [\"Edit\"]\n  }\n}\n",
            ),
            (
                "\u{feff}{\"permissions\": {\"allow\": []}}",
                "\u{feff}{\"permissions\": {\"allow\": [\"Edit\"]}}",
            ),
            (
                "{\"model\": \"m\"}",
                "{\"permissions\": {\n    \"allow\": [\"Edit\"]\n  }, \"model\": \"m\"}",
            ),
            (
                "{\n  // mine\n  \"permissions\": { \"deny\": [\"Bash\"] }\n}",
                "{\n  // mine\n  \"permissions\": {\"allow\": [\"Edit\"],  \"deny\": [\"Bash\"] }\n}",
            ),
            (
                "{\"permissions\": {\"allow\": [\"Read\" /* all, \"of\" it */]}, \"z\": 1}",
                "{\"permissions\": {\"allow\": [\"Read\", \"Edit\" /* all, \"of\" it */]}, \"z\": 1}",
            ),
            (
                "{\n  \"permissions\": {\n    \"allow\": [\n      \"Read\", // a\n      \"Glob\" // b\n    ]\n  }\n}",
                "{\n  \"permissions\": {\n    \"allow\": [\n      \"Read\", // a\n      \"Glob\",\n      \"Edit\" // b\n    ]\n  }\n}",
            ),
        ];
        for (before, after) in files {
            assert_eq!(with_rule(before, "allow", "Edit").as_deref(), Some(after));
            assert_eq!(
                with_rule(after, "allow", "Edit").as_deref(),
                Some(after),
                "once"
            );
        }
    }

    #[test]
    fn what_is_not_an_object_with_such_a_list_is_left_alone() {
        for text in [
            "[]",
            "{",
            "{\"permissions\": 3}",
            "{\"permissions\": {\"allow\": \"Edit\"}}",
        ] {
            assert_eq!(with_rule(text, "allow", "Edit"), None, "{text}");
        }
    }

    #[test]
    fn a_member_is_added_and_the_rest_stays() {
        let value = serde_json::json!({"command": "x"});
        let laid = |ind: &str| format!("{{\n{ind}  \"command\": \"x\"\n{ind}}}");
        let check = |before: &str, below: &[&str], after: String| {
            let changed = with_member(before, below, "b", &value);
            assert_eq!(changed.as_deref(), Some(after.as_str()), "{before}");
            assert_eq!(with_member(&after, below, "b", &value), Some(after.clone()));
            let without = without_member(&after, below, "b").unwrap();
            assert!(!without.contains("command"), "{without}");
        };
        let servers = ["servers"];
        check(
            "",
            &servers,
            format!("{{\n  \"servers\": {}\n}}\n", laid_in("b", &laid("    "))),
        );
        check(
            "{\n  \"n\": 1e3,\n  \"servers\": {\n    \"a\": {}\n  },\n  \"z\": [1, 2]\n}\n",
            &servers,
            format!(
                "{{\n  \"n\": 1e3,\n  \"servers\": {{\n    \"a\": {{}},\n    \"b\": {}\n  }},\n  \"z\": [1, 2]\n}}\n",
                laid("    ")
            ),
        );
        check(
            "{\n  \"servers\": {}\n}",
            &servers,
            format!("{{\n  \"servers\": {}\n}}", laid_in("b", &laid("    "))),
        );
        check(
            "{\"a\": 1}",
            &[],
            "{\"a\": 1, \"b\": {\"command\":\"x\"}}".to_owned(),
        );
        check(
            "{\n\t\"servers\": {\n\t\t\"b\": 3, // mine\n\t\t\"a\": {}\n\t}\n}",
            &servers,
            "{\n\t\"servers\": {\n\t\t\"b\": {\n\t\t  \"command\": \"x\"\n\t\t}, // mine\n\t\t\"a\": {}\n\t}\n}"
                .to_owned(),
        );
        for odd in ["[]", "{", "{\"servers\": 3}"] {
            assert_eq!(with_member(odd, &servers, "b", &value), None, "{odd}");
        }
    }

    fn laid_in(key: &str, value: &str) -> String {
        format!("{{\n    \"{key}\": {value}\n  }}")
    }

    #[test]
    fn a_member_is_removed_and_the_rest_stays() {
        let check = |before: &str, after: &str| {
            let found = without_member(before, &["s"], "b");
            assert_eq!(found.as_deref(), Some(after), "{before}");
        };
        check("{\"s\": {\"b\": 1}}", "{\"s\": {}}");
        check("{\"s\": {\"b\": 1, \"c\": 2}}", "{\"s\": {\"c\": 2}}");
        check(
            "{\"s\": {\"a\": 1, \"b\": [2, 3] }, \"b\": 1}",
            "{\"s\": {\"a\": 1 }, \"b\": 1}",
        );
        check(
            "{\n  \"s\": {\n    \"a\": 1,\n    \"b\": {\n      \"x\": \"}\"\n    }\n  }\n}\n",
            "{\n  \"s\": {\n    \"a\": 1\n  }\n}\n",
        );
        check(
            "{\n  \"s\": {\n    \"a\": 1,\n    \"b\": 2,\n    // three\n    \"c\": 3\n  }\n}\n",
            "{\n  \"s\": {\n    \"a\": 1,\n    // three\n    \"c\": 3\n  }\n}\n",
        );
        assert_eq!(without_member("{\"s\": {}}", &["s"], "b"), None);
        assert_eq!(without_member("{}", &["s"], "b"), None);
    }

    #[test]
    fn lines_of_places_are_found_between_comments() {
        let text = "{\n  // \"a\": [\n  \"b\": {\"c\": 1},\n  \"a\": [\n    {\"x\": \"]\"}, /* , */ 2,\n    \
                    {\n      \"k\":\n        1\n    }\n  ]\n}";
        let key = |key: &str| PathStep::Key(key.into());
        let check = |path: &[PathStep], line| assert_eq!(line_of(text, path), line, "{path:?}");
        check(&[], 1);
        check(&[key("b"), key("c")], 3);
        check(&[key("a")], 4);
        check(&[key("a"), PathStep::Index(0), key("x")], 5);
        check(&[key("a"), PathStep::Index(1)], 5);
        check(&[key("a"), PathStep::Index(2)], 6);
        check(&[key("a"), PathStep::Index(2), key("k")], 7);
        // What is missing is where it would be.
        check(&[key("a"), PathStep::Index(2), key("z")], 6);
        check(&[key("a"), PathStep::Index(9)], 4);
    }

    #[test]
    fn comments_are_blanked_and_strings_are_not() {
        let text = "{\"a\": \"// no\", /* é */ \"b\": \"\\\"/*\" } // end";
        let plain = without_comments(text);
        assert_eq!(plain.len(), text.len());
        let value: Value = serde_json::from_str(&plain).unwrap();
        assert_eq!(value, serde_json::json!({"a": "// no", "b": "\"/*"}));
    }
}
