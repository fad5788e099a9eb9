//! Schemas of tools as model APIs take them: an object at the root, without alternatives there.

use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// How deep references are followed.
const DEPTH: usize = 8;

/// Returns a schema whose root is an object. Alternatives at its root become fields that may be
/// absent: what the server refuses, it refuses itself. Returns a sentence about them, too.
pub(super) fn flattened(schema: &Object) -> (Object, Option<String>) {
    let (mut flat, note) = without_alternatives(schema, schema, DEPTH);
    flat.insert("type".into(), json!("object"));
    if !flat.get("properties").is_some_and(Value::is_object) {
        flat.insert("properties".into(), json!({}));
    }
    (flat, note)
}

/// What becomes of the fields that an alternative requires.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Required {
    Add,
    Keep,
}

/// Returns a part of a schema as one set of fields.
fn without_alternatives(part: &Object, root: &Object, depth: usize) -> (Object, Option<String>) {
    let mut flat = part.clone();
    let mut note = None;
    for branch in alternatives(&mut flat, "allOf", root, depth) {
        merge(&mut flat, &branch, Required::Add);
    }
    for kind in ["oneOf", "anyOf"] {
        let branches = alternatives(&mut flat, kind, root, depth);
        note = note.or_else(|| told(kind, &branches));
        for branch in &branches {
            merge(&mut flat, branch, Required::Keep);
        }
        require(&mut flat, common_fields(&branches));
    }
    (flat, note)
}

/// Takes a list of schemas out of a part.
fn alternatives(part: &mut Object, kind: &str, root: &Object, depth: usize) -> Vec<Object> {
    let Some(Value::Array(list)) = part.remove(kind) else {
        return Vec::new();
    };
    let list = list.iter().filter_map(Value::as_object);
    list.map(|branch| resolved(branch, root, depth)).collect()
}

/// Returns an alternative as one set of fields, with those that it refers to.
fn resolved(branch: &Object, root: &Object, depth: usize) -> Object {
    let Some(depth) = depth.checked_sub(1) else {
        return Object::new();
    };
    let mut whole = branch.clone();
    let reference = whole.remove("$ref");
    let target = reference.as_ref().and_then(Value::as_str);
    if let Some(target) = target.and_then(|target| find(root, target)) {
        merge(&mut whole, &resolved(target, root, depth), Required::Add);
    }
    without_alternatives(&whole, root, depth).0
}

/// Finds what `#/…` refers to.
fn find<'a>(root: &'a Object, reference: &str) -> Option<&'a Object> {
    let mut path = reference.strip_prefix("#/")?.split('/');
    let first = root.get(path.next()?)?;
    let found = path.try_fold(first, |at, name| at.get(name))?;
    found.as_object()
}

/// Adds the fields of an alternative. A field that is there already may be either.
fn merge(flat: &mut Object, branch: &Object, required: Required) {
    if let Some(fields) = branch.get("properties").and_then(Value::as_object) {
        let all = flat.entry("properties").or_insert_with(|| json!({}));
        if let Some(all) = all.as_object_mut() {
            for (name, schema) in fields {
                match all.get_mut(name) {
                    None => _ = all.insert(name.clone(), schema.clone()),
                    Some(known) if known == schema => {}
                    Some(known) => add_alternative(known, schema),
                }
            }
        }
    }
    if required == Required::Add {
        require(flat, fields_required(branch));
    }
    // A field of one alternative must not be forbidden by another.
    if flat.get("additionalProperties") == Some(&json!(false))
        && branch.get("additionalProperties") != Some(&json!(false))
    {
        flat.remove("additionalProperties");
    }
    for (name, value) in branch {
        let is_kept = matches!(&**name, "$defs" | "definitions" | "description");
        if is_kept && !flat.contains_key(name) {
            flat.insert(name.clone(), value.clone());
        }
    }
}

fn add_alternative(known: &mut Value, other: &Value) {
    let list = known.get_mut("anyOf").and_then(Value::as_array_mut);
    match list {
        Some(list) if list.contains(other) => {}
        Some(list) => list.push(other.clone()),
        None => *known = json!({"anyOf": [known.take(), other]}),
    }
}

fn fields_required(schema: &Object) -> Vec<String> {
    let list = schema.get("required").and_then(Value::as_array);
    let list = list.into_iter().flatten().filter_map(Value::as_str);
    list.map(str::to_owned).collect()
}

/// Returns the fields that each alternative requires.
fn common_fields(branches: &[Object]) -> Vec<String> {
    let Some((first, others)) = branches.split_first() else {
        return Vec::new();
    };
    let mut common = fields_required(first);
    for other in others {
        let required = fields_required(other);
        common.retain(|name| required.contains(name));
    }
    common
}

fn require(flat: &mut Object, fields: Vec<String>) {
    if fields.is_empty() {
        return;
    }
    let all = flat.entry("required").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut() {
        for field in fields {
            if !all.iter().any(|it| it.as_str() == Some(&field)) {
                all.push(field.into());
            }
        }
    }
}

/// Returns which fields go together.
fn told(kind: &str, branches: &[Object]) -> Option<String> {
    let lists: Vec<Vec<String>> = branches.iter().map(fields_required).collect();
    if lists.iter().all(Vec::is_empty) || lists.windows(2).all(|two| two[0] == two[1]) {
        return None;
    }
    let sets: Vec<String> = lists
        .iter()
        .map(|fields| match fields.as_slice() {
            [] => "none".to_owned(),
            fields => fields.join(" + "),
        })
        .collect();
    let which = if kind == "oneOf" {
        "exactly"
    } else {
        "at least"
    };
    Some(format!("Give {which} one of these: {}.", sets.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, expected: Value, note: Option<&str>) {
        let (flat, told) = flattened(schema.as_object().unwrap());
        assert_eq!(Value::Object(flat), expected, "{schema}");
        assert_eq!(told.as_deref(), note, "{schema}");
    }

    #[test]
    fn a_plain_object_stays_as_it_is() {
        let plain = json!({
            "type": "object",
            "properties": {"a": {"oneOf": [{"type": "string"}, {"type": "null"}]}},
            "required": ["a"],
            "additionalProperties": false,
        });
        check(plain.clone(), plain, None);
        let empty = json!({"type": "object", "properties": {}});
        check(json!({}), empty.clone(), None);
        check(json!({"type": ["object", "null"]}), empty.clone(), None);
        check(json!({"type": "string"}), empty, None);
    }

    #[test]
    fn alternatives_become_fields_that_may_be_absent() {
        check(
            json!({
                "type": "object",
                "properties": {"id": {"type": "string"}},
                "required": ["id"],
                "anyOf": [{"required": ["name"], "properties": {"name": {"type": "string"}}},
                          {"required": ["number"], "properties": {"number": {"type": "integer"}}}],
            }),
            json!({
                "type": "object",
                "properties": {
                    "id": {"type": "string"}, "name": {"type": "string"},
                    "number": {"type": "integer"},
                },
                "required": ["id"],
            }),
            Some("Give at least one of these: name; number."),
        );
        check(
            json!({"oneOf": [
                {"type": "object", "additionalProperties": false, "required": ["kind", "a"],
                 "properties": {"kind": {"const": "x"}, "a": {}}},
                {"$ref": "#/$defs/Y"},
            ], "$defs": {"Y": {"type": "object", "required": ["kind"],
                "properties": {"kind": {"const": "y"}}}}}),
            json!({
                "$defs": {"Y": {"type": "object", "required": ["kind"],
                    "properties": {"kind": {"const": "y"}}}},
                "type": "object",
                "properties": {"kind": {"anyOf": [{"const": "x"}, {"const": "y"}]}, "a": {}},
                "required": ["kind"],
            }),
            Some("Give exactly one of these: kind + a; kind."),
        );
    }

    #[test]
    fn what_all_must_fit_is_one_object() {
        check(
            json!({"allOf": [
                {"properties": {"a": {}}, "required": ["a"]},
                {"anyOf": [{"properties": {"b": {}}, "required": ["b"]}, {"$ref": "#/missing"}]},
            ]}),
            json!({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}),
            None,
        );
        // A schema that refers to itself has an end.
        check(
            json!({"$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}, "allOf": [{"$ref": "#/$defs/A"}]}),
            json!({"$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}, "type": "object", "properties": {}}),
            None,
        );
    }
}
