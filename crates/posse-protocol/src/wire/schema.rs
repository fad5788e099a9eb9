//! The JSON Schema of the protocol.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::envelope::{WireClientMessage, WireServerMessage};
use super::version::VERSION;

/// Returns the schema of every message. `ClientMessage` and `ServerMessage` of its `$defs` describe one
/// direction each.
pub fn schema() -> Value {
    let mut generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    let client = generator.subschema_for::<WireClientMessage>();
    let server = generator.subschema_for::<WireServerMessage>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:posse:protocol:{VERSION}"),
        "title": format!("posse protocol {VERSION}"),
        "description": "Messages between posse and other programs, one per line.",
        "anyOf": [client, server],
        "$defs": generator.take_definitions(true),
    })
}
