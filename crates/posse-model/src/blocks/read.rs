//! Parses encoded bytes into blocks.

use std::borrow::Cow;

use serde::de::{Deserializer, MapAccess, Visitor};

use super::{Block, Bytes, COMPACTION, Deserialize, EntryKind, NewEntry, Place, RawValue, fmt};

/// The fields of an object in their order.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                // The names are owned, because a name with an escape in it cannot be borrowed.
                while let Some(field) = map.next_entry::<String, &'de RawValue>()? {
                    fields.push((Cow::Owned(field.0), field.1));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Each).map(Self)
    }
}

/// The fields that tell what an item is.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind {
    r#type: Option<String>,
    role: Option<String>,
    name: Option<String>,
    id: Option<String>,
    tool_use_id: Option<String>,
    tool_call_id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
}

impl Kind {
    fn of(item: &RawValue) -> Self {
        // An item that is not an object has no kind, which is not an error.
        serde_json::from_str(item.get()).unwrap_or_default()
    }

    /// Of a tool in a list of them.
    fn tool(self) -> String {
        self.name
            .or(self.function.map(|function| function.name))
            .unwrap_or_default()
    }

    /// Of a block of a message.
    fn content(self) -> String {
        let kind = self.r#type.unwrap_or_default();
        match self.tool_use_id.or(self.id) {
            Some(id) => format!("{kind} {id}"),
            None => kind,
        }
    }

    /// Of a message that is one block.
    fn message(self) -> String {
        let role = self.role.unwrap_or_default();
        match self.tool_call_id {
            Some(id) => format!("{role} {id}"),
            None => role,
        }
    }
}

/// Returns the blocks of a preamble, and its number of messages: in some dialects the system
/// prompt is one.
pub(super) fn preamble(bytes: &Bytes) -> Result<(Vec<Block>, usize), serde_json::Error> {
    let around = |end: &str| Bytes::from([b"{", &bytes[..], end.as_bytes()].concat());
    let (closed, open) = (around("}"), around("]}"));
    // A list that is left open is where the history continues.
    let (text, fields) = match serde_json::from_slice::<Fields<'_>>(&open) {
        Ok(fields) => (&open, fields),
        Err(_) => (&closed, serde_json::from_slice(&closed)?),
    };
    let (mut blocks, mut messages) = (Vec::new(), 0);
    for (name, value) in fields.0 {
        let bytes = |value: &RawValue| text.slice_ref(value.get().as_bytes());
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value.get()) else {
            let what = serde_json::from_str(value.get()).unwrap_or_default();
            let place = Place::Field(name.into_owned());
            blocks.push(Block {
                place,
                role: String::new(),
                what,
                bytes: bytes(value),
            });
            continue;
        };
        for (number, item) in items.into_iter().enumerate() {
            if name == "messages" {
                message(text, item, number, &mut blocks)?;
                messages += 1;
                continue;
            }
            let (place, what) = (Place::Item(name.to_string(), number), Kind::of(item).tool());
            blocks.push(Block {
                place,
                role: String::new(),
                what,
                bytes: bytes(item),
            });
        }
    }
    Ok((blocks, messages))
}

/// Adds the blocks of an entry whose first message has this number. Returns its number of
/// messages.
pub(super) fn entry(
    entry: &NewEntry,
    number: usize,
    blocks: &mut Vec<Block>,
) -> Result<usize, serde_json::Error> {
    if entry.kind == EntryKind::Model {
        // Nothing of it is sent.
        return Ok(0);
    }
    let text = Bytes::from([b"[", &entry.sent()[..], b"]"].concat());
    let messages: Vec<&RawValue> = serde_json::from_slice(&text)?;
    for (at, raw) in messages.iter().enumerate() {
        // Marked as a whole, so that a difference can be recognised as a compaction.
        if entry.kind == EntryKind::Compaction {
            let (role, bytes) = (
                Kind::of(raw).role.unwrap_or_default(),
                text.slice_ref(raw.get().as_bytes()),
            );
            blocks.push(Block {
                place: Place::Message(number + at),
                role,
                what: COMPACTION.into(),
                bytes,
            });
        } else {
            message(&text, raw, number + at, blocks)?;
        }
    }
    Ok(messages.len())
}

/// Adds the blocks of a message. One with more fields than role and content is a single block.
fn message(
    text: &Bytes,
    raw: &RawValue,
    number: usize,
    blocks: &mut Vec<Block>,
) -> Result<(), serde_json::Error> {
    let fields: Fields<'_> = serde_json::from_str(raw.get())?;
    let field = |wanted: &str| {
        fields
            .0
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| *value)
    };
    let (role, content) = (field("role"), field("content"));
    let content = content.filter(|_| fields.0.len() == 2).map(RawValue::get);
    let content = content.and_then(|content| serde_json::from_str::<Vec<&RawValue>>(content).ok());
    let role = role
        .and_then(|role| serde_json::from_str(role.get()).ok())
        .unwrap_or_default();
    match content {
        Some(content) => blocks.extend(content.into_iter().enumerate().map(|(at, item)| Block {
            place: Place::Content(number, at),
            role: String::clone(&role),
            what: Kind::of(item).content(),
            bytes: text.slice_ref(item.get().as_bytes()),
        })),
        None => blocks.push(Block {
            place: Place::Message(number),
            role,
            what: Kind::of(raw).message(),
            bytes: text.slice_ref(raw.get().as_bytes()),
        }),
    }
    Ok(())
}
